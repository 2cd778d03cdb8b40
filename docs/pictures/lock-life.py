"""The way of one lock from zk_lock() to its release, as a sequence."""

from drawing import Drawing

LIVES = [
    (70, "backend A"), (210, "slot A"), (400, "worker"),
    (590, "zklock_session"), (760, "ZooKeeper"),
]
X = {name: x for x, name in LIVES}
STEPS = [
    ("backend A", "slot A", "WAITING", "zk_lock('/a')"),
    ("backend A", "worker", "wakes it", ""),
    ("slot A", "worker", "request", ""),
    ("worker", "slot A", "id of the znode", ""),
    ("worker", "zklock_session", "batch: beat, creates, deletes", ""),
    ("zklock_session", "ZooKeeper", "one transaction", ""),
    ("ZooKeeper", "zklock_session", "numbers, transaction id", ""),
    ("zklock_session", "worker", "results", "is anybody ahead?"),
    ("worker", "slot A", "GRANTED, fencing token", ""),
    ("worker", "backend A", "wakes it", ""),
    ("backend A", "slot A", "RELEASED", "zk_unlock('/a')"),
    ("slot A", "worker", "release", "grants the next one"),
    ("worker", "zklock_session", "next batch: delete", ""),
    ("zklock_session", "ZooKeeper", "one transaction", ""),
    ("ZooKeeper", "zklock_session", "done", ""),
    ("zklock_session", "worker", "result", ""),
    ("worker", "slot A", "FREE", ""),
]
STEP = 38
height = 90 + STEP * len(STEPS)

d = Drawing(860, height, "The life of a lock")
for x, name in LIVES:
    style = "other" if name == "ZooKeeper" else "box"
    d.line(x, 46, x, height - 14, "life")
    d.box(x - 62, 14, 124, 32, [name], style)
for i, (source, target, label, note) in enumerate(STEPS):
    y = 82 + STEP * i
    between = {source, target} == {"backend A", "worker"}
    d.arrow(X[source], y, X[target], y, label,
            at=0.5 if not between else 0.75 if target == "worker" else 0.25)
    if note:
        left = source == "backend A"
        d.text(X[source if left else target] + (4 if left else 10), y + 16,
               note, "code" if left else "small", "start")
d.show()
