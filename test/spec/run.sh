#!/usr/bin/env bash
# Looks at all schedules of the specifications, with all rules, and finds the violation that
# each rule prevents; prints TAP.
#
#	test/spec/run.sh			what takes a minute
#	test/spec/run.sh full		all instances
#	test/spec/run.sh pictures	writes the violations anew, into the files that are kept
#	test/spec/run.sh NAME		the instances whose names contain that
#
# Spin compares 64 bits of hash of each state (hash-compact, not bitstate): two that collide
# would be taken for one, less likely than one in a thousand for 10 million states.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mode=${1:-quick}
cases=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit

# Makes and runs the search; what it says is in "found".  Arguments: how, specification, flags
search() {
	local how=$1 file=$2
	shift 2
	rm -f ./*.trail pan*
	local -a options=(-w -O2 -DSAFETY -DHC4 -DNOBOUNDCHECK -DMEMLIM=7000)
	if [ "$how" = all ]; then
		spin -a "$@" "$here/$file.pml" >found || return
	else
		spin -a -DBREADTH "$@" "$here/$file.pml" >found || return
		options+=(-DBFS)
	fi
	"${CC:-gcc}" "${options[@]}" -o pan pan.c && ./pan -m5000000 >found 2>&1
}

# The messages of the violation, a line each
picture() {
	local file=$1
	shift
	spin -t -k "$file.pml.trail" -DBREADTH "$@" "$here/$file.pml" 2>/dev/null |
		sed -n '/^spin: /q; s/^ *//p'
}

number() {
	sed -n "$1" found | head -n 1
}

report() {
	cases=$((cases + 1))
	if [ "$1" = 0 ]; then
		echo "ok $cases - $2"
	else
		echo "not ok $cases - $2"
		tail -n 30 found | sed 's/^/# /'
	fi
}

wanted() {
	case $mode in
	full) true ;;
	pictures) [ "$2" != all ] ;;
	quick) [ "$1" = quick ] ;;
	*) [[ $3 == *"$mode"* ]] ;;
	esac
}

# A violation is looked for in breadth, so it is the shortest.
while IFS='|' read -r when name file how flags; do
	read -r when <<<"$when"
	read -r name <<<"$name"
	read -r file <<<"$file"
	read -r how <<<"$how"
	read -ra options <<<"$flags"
	case $when in '' | '#'*) continue ;; esac
	wanted "$when" "$how" "$name" || continue
	begin=$(date +%s)
	search "$how" "$file" "${options[@]}"
	errors=$(number 's/.*errors: \([0-9]*\)$/\1/p')
	states=$(number 's/^ *\([0-9.e+]*\) states, stored.*/\1/p')
	depth=$(number 's/.*depth reached \([0-9]*\).*/\1/p')
	memory=$(number 's/^ *\([0-9.]*\)[[:space:]]*total actual memory.*/\1/p')
	seconds=$(($(date +%s) - begin))
	if [ "$how" = all ]; then
		[ "$errors" = 0 ] && ! grep -qE 'max search depth too small|out of memory|memory limit' found
		report $? "$name: no violation in $states states (depth $depth, $memory MB, $seconds s)"
		continue
	fi
	picture "$file" "${options[@]}" >steps
	[ "$errors" = 1 ] && [ -s steps ]
	report $? "$name: violated after $(wc -l <steps) steps ($states states, $seconds s)"
	[ "$mode" != pictures ] || cp steps "$here/$how.txt"
done <"$here/instances"
echo "1..$cases"
