#!/usr/bin/env bash
# Measures which lines of core/, znode/ and wire/ the unit tests and the
# simulation reach, with gcov.
#
#	dev/coverage.sh             a table, and the sum
#	dev/coverage.sh core/keep.c the lines of one file that nothing reaches
#
#	SEEDS=1000                  schedules of the simulation
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
flags='-std=gnu99 -O0 -g --coverage'

make -s -C test/unit BUILD="$build/unit" CFLAGS="$flags" -j "$(nproc)" check >"$build/log" ||
	cat "$build/log" >&2
make -s -C test/sim BUILD="$build/sim" OPTIONS="$flags" "$build/sim/sim-checked"
"$build/sim/sim-checked" -n "${SEEDS:-1000}" >"$build/log" || cat "$build/log" >&2

find "$build" -name '*.gcda' -exec gcov --json-format --stdout {} + 2>/dev/null |
	python3 -c '
import collections, json, re, sys
reached = collections.defaultdict(lambda: collections.defaultdict(int))
for line in sys.stdin:
    for f in json.loads(line)["files"]:
        name = re.search(r"src/((?:core|znode|wire)/\w+\.[ch])$", f["file"])
        for l in f["lines"] if name else []:
            reached[name[1]][l["line_number"]] += l["count"]
if len(sys.argv) > 1:
    text = open("src/" + sys.argv[1]).readlines()
    for n in sorted(n for n, count in reached[sys.argv[1]].items() if not count):
        print("%5d %s" % (n, text[n - 1].rstrip()))
    sys.exit()
total = good = 0
for name, lines in sorted(reached.items()):
    hit = sum(count > 0 for count in lines.values())
    total, good = total + len(lines), good + hit
    print("%-24s %5d of %5d lines  %5.1f %%" % (name, hit, len(lines), 100 * hit / len(lines)))
print("%-24s %5d of %5d lines  %5.1f %%" % ("all", good, total, 100 * good / total))
' "$@"
