#!/usr/bin/env bash
# Measures which lines of the core, of the search for deadlocks, and of what observes
# both, the unit tests and the simulation reach.
#
#	dev/coverage.sh [SEEDS]    so many schedules of the simulation (500)
#
# Prints the share of each file of src/core, src/deadlock and src/observe, the least first,
# and of all together.  Everything is built in a temporary directory.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../test"
seeds=${1:-500}
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT

# Runs a command, and shows what it said only if it fails.
quietly() {
	"$@" >"$temp/log" 2>&1 || {
		tail -n 40 "$temp/log" >&2
		exit 1
	}
}

quietly make -j "$(nproc)" -C unit BUILD="$temp/unit" build \
	CFLAGS='-std=gnu99 -g -O1 --coverage'
for program in "$temp"/unit/test_*; do
	[[ ${program##*/} == *.* ]] || (cd unit && quietly "$program")
done
quietly make -C sim BUILD="$temp/sim" "$temp/sim/sim-checked" \
	OPTIONS='-O1 --coverage'
quietly "$temp/sim/sim-checked" -s 1 -n "$seeds" -k

# gcov writes for each line how often it was reached: "-" is no code, "#####" is
# never.  A line is reached if one of the programs reached it.
for kind in unit sim; do
	(cd $kind && find "$temp/$kind" -name '*.gcda' -print0 |
		xargs -0 -n 1 gcov --stdout 2>/dev/null)
done | awk -F : '
	$2 + 0 == 0 {
		if ($3 == "Source") { n = split($4, part, "/"); file = part[n]; core = $4 ~ /src\/(core|deadlock|observe)\// }
		next
	}
	core && $1 !~ /-$/ {
		line = file ":" $2 + 0
		if (!(line in known)) { known[line]; lines[file]++ }
		if ($1 !~ /[#=]/ && !(line in reached)) { reached[line]; hits[file]++ }
	}
	END {
		form = "%6.1f %%  %5d of %5d lines  %s\n"
		for (file in lines) {
			printf form, 100 * hits[file] / lines[file], hits[file], lines[file], file | "sort -n"
			all += lines[file]
			hit += hits[file]
		}
		close("sort -n")
		printf form, 100 * hit / all, hit, all, "together"
	}'
