#!/usr/bin/env bash
# Runs the simulation and tries the mutants; prints TAP.
#
#	test/sim/run.sh		SEEDS=20000 schedules, and ten times as many per mutant at most
#
# The programs are built before (make -C test/sim).
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/build" || exit
seeds=${SEEDS:-20000}
jobs=$(nproc)
cases=0

# Reports one case; shows what a failed one said.
report() {
	local status=$1 name=$2 output=$3
	cases=$((cases + 1))
	if [ "$status" = 0 ]; then
		echo "ok $cases - $name"
	else
		echo "not ok $cases - $name"
		tail -n 80 <<<"$output" | sed 's/^/# /'
	fi
}

output=$(./plain -c -n "$seeds" -j "$jobs" 2>&1)
status=$?
report $status "$([ $status = 0 ] && tail -n 1 <<<"$output" || echo "$seeds schedules")" "$output"
! grep '^seen 0 times' <<<"$output" >/dev/null
report $? "they have shown all that they must (seen.h)" "$(grep '^seen' <<<"$output")"
output=$(./plain ../corpus/* 2>&1)
report $? "the inputs from which the fuzzer starts" "$output"
output=$(./plain -d -n 200 2>&1)
report $? "the same seed, the same run: 200 schedules twice" "$output"
# What they tell obeys the specification: as it comes, and read from a file.
output=$(./plain -v -n $((seeds / 40)) -j "$jobs" 2>&1)
report $? "$((seeds / 40)) schedules whose traces obey the specification" "$output"
output=$(./plain -s 7 -t | ../../spec/build/validate /dev/stdin)
report $? "a trace that is printed: $output" "$output"
while read -r mutant seed; do
	output=$(./mutants -v -k -m "$mutant" -s "$seed" 2>&1)
	grep 'breaks the specification' <<<"$output" >/dev/null
	report $? "the trace of mutant $mutant is refused" "$output"
done <<'END'
READ_BEFORE_BEAT 1
LEASE_FROM_REPLY 1
IGNORE_GAP 1
NO_TAINT 1
DYING_SESSION 1
CANCEL_FORGETS_NODE 1
GRANT_WITHOUT_LEASE 11
KEEP_HOLDS 88
END
output=$(./sim-checked -s 1000000 -n 600 -j "$jobs" 2>&1)
report $? "600 schedules with sanitizers" "$output"

# What an acquire may cost 20 servers, in requests of all of them.  Two batches,
# one that creates and one that deletes.  A third of these acquires follow on
# another server's, and list; one in 16 waits behind another server, watches, and
# lists when that one has gone; a directory is watched from the second time on.
output=$(./scale servers=20 backends=5 names=50 own=0.8 think=50 hold=5 most=2.5 2>&1)
report $? "20 servers, 50 names: at most 2.5 requests per acquire" "$output"
# All in one queue: two batches, a listing when it comes, a watch on the one
# ahead, a listing when that one has gone, however many were before it.
output=$(./scale servers=20 backends=1 names=1 think=5 hold=5 most=5.1 2>&1)
report $? "20 servers, one name: at most 5.1 requests per acquire" "$output"

# A line each: | mutant | the bug | rule broken | first seed |
output=$(./mutants -M -n $((10 * seeds)) -j "$jobs" 2>&1)
while IFS='|' read -r _ mutant _ rule seed _; do
	mutant=${mutant// /}
	case $mutant in mutant | ---*) continue ;; esac
	status=0
	[[ $seed =~ [0-9] ]] || status=1
	report $status "mutant $mutant is caught:$rule(seed $seed)" "$output"
done < <(grep '^|' <<<"$output")
[ "$(grep -c '^| [A-Z]' <<<"$output")" = \
	"$(grep -c '^	X(' ../mutant_list.h | awk '{ print $1 - 1 }')" ]
report $? "all mutants were tried" "$output"
output=$(diff <(grep -o '^| [A-Z_]* |[^|]*|' <<<"$output" | sort) \
	<(grep -o '^| [A-Z_]* |[^|]*|' ../../evidence.md | sort))
report $? "test/evidence.md has all mutants, and no others" "$output"
echo "1..$cases"
