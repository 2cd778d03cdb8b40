#!/usr/bin/env bash
# Explores the worlds, and looks whether some mutants are found; prints TAP.
#
#	test/worlds/run.sh		LEVELS=6 levels of main.c
#
# The programs are built before (make -C test/worlds).
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/build" || exit
levels=${LEVELS:-6}
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
		tail -n 40 <<<"$output" | sed 's/^/# /'
	fi
}

# A line for each: | world | delays with 0, 1 and 2 mishaps | states | schedules | ...
# A bound that takes a world longer is left at that.
output=$(./plain -l "$levels" -j "$jobs" -s 400 2>&1)
status=$?
worlds=0
states=0
schedules=0
while IFS='|' read -r _ world _ _ _ n m _; do
	worlds=$((worlds + 1))
	states=$((states + n))
	schedules=$((schedules + m))
	[[ $output == *"-w '${world:1:-1}' -r"* ]]
	report $((1 - $?)) "world${world% }: $((m)) schedules" "$output"
done < <(grep '^|' <<<"$output" | sort)
report $status "$worlds worlds: $schedules schedules, $states states" "$output"
[ "$worlds" = "$(grep -c '	\.name = "' ../world_list.c)" ]
report $? "all worlds were explored" "$output"
output=$(./plain -l 4 -n -j "$jobs" 2>&1)
report $? "the same at small bounds, without cutting states that were seen" "$output"
output=$(./plain -w follower -a 2>&1)
report $? "one world with delays of pings, too" "$output"
for mutant in NO_TAINT DELETE_ONCE LEASE_FROM_REPLY STOP_BREAKS_PROMISE UPGRADE_WAITS; do
	output=$(./mutants -M -m $mutant -l 3 2>&1)
	! grep -q '| none |' <<<"$output"
	report $? "mutant $mutant is found" "$output"
done
echo "1..$cases"
