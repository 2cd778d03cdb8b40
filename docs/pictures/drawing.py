"""A drawing of boxes, arrows and text, as SVG on the standard output.

Used by the other scripts of this folder; each makes the picture of its name:

    python3 architecture.py >architecture.svg
"""

STYLE = """
  text { font: 14px sans-serif; fill: #222 }
  .small { font-size: 12px; fill: #555 }
  .bold { font-weight: bold }
  .code { font-family: monospace; font-size: 13px }
  .box { fill: #fff; stroke: #336791; stroke-width: 1.5 }
  .frame { fill: #eef3f8; stroke: #336791; stroke-width: 1 }
  .other { fill: #fdf3e7; stroke: #b5711c; stroke-width: 1.5 }
  .line { stroke: #555; stroke-width: 1.5; fill: none }
  .life { stroke: #999; stroke-width: 1; stroke-dasharray: 4 4 }
"""

HEAD = """<marker id="head" viewBox="0 0 10 10" refX="9" refY="5"
    markerWidth="7" markerHeight="7" orient="auto-start-reverse">
    <path d="M0 0 L10 5 L0 10 z" fill="#555"/></marker>"""


def escape(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


class Drawing:
    def __init__(self, width, height, title):
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" '
            f'viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
            f"<title>{escape(title)}</title>",
            f"<style>{STYLE}</style>",
            f"<defs>{HEAD}</defs>",
            f'<rect width="{width}" height="{height}" fill="#fff"/>',
        ]

    def text(self, x, y, text, style="", anchor="middle"):
        self.parts.append(
            f'<text x="{x}" y="{y}" text-anchor="{anchor}" class="{style}">'
            f"{escape(text)}</text>"
        )

    def box(self, x, y, width, height, lines=(), style="box"):
        """A box with lines of text in its middle, the first one bold."""
        self.parts.append(
            f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" '
            f'class="{style}"/>'
        )
        top = y + height / 2 - 8 * (len(lines) - 1) + 5
        for i, line in enumerate(lines):
            self.text(x + width / 2, round(top + 16 * i), line,
                      "small" if i else "bold")

    def arrow(self, x1, y1, x2, y2, label="", both=False, style="small",
              at=0.5):
        """An arrow whose label stands at that share of its way."""
        start = ' marker-start="url(#head)"' if both else ""
        self.parts.append(
            f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" class="line" '
            f'marker-end="url(#head)"{start}/>'
        )
        if label:
            self.text(round(x1 + (x2 - x1) * at),
                      round(y1 + (y2 - y1) * at) - 6, label, style)

    def line(self, x1, y1, x2, y2, style="line"):
        self.parts.append(
            f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" class="{style}"/>'
        )

    def show(self):
        print("\n".join(self.parts + ["</svg>"]))
