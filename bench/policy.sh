#!/usr/bin/env bash
# Measures zklock with other numbers than it is shipped with: how many batches
# may be under way, how many creates at hand are enough for one, and how many
# operations it may have.  "make bench-policy" calls it: about 16 minutes, into
# bench/results/policy.csv.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
out=$here/results/policy.csv

# batches under way, creates that are enough (0: nothing is gathered), and the
# largest batch
variants=("1 0 256" "2 0 256" "4 0 256" "1 16 256" "2 16 256" "4 16 256"
	"2 64 256" "2 16 32" "2 16 1024")

export BENCH_SCENARIOS="distinct one-8 three-1 three-8 three-64"
# What is cached needs no batches.
export BENCH_CONTESTANTS=uncached BENCH_ROUNDS=${BENCH_ROUNDS:-2}
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
for variant in "${variants[@]}"; do
	read -r in_flight enough largest <<<"$variant"
	COPT="-DZKL_BATCHES_IN_FLIGHT=$in_flight -DZKL_PACE_ENOUGH=$enough"
	COPT+=" -DZKL_BATCH_OPERATIONS=$largest"
	COPT=$COPT BENCH_OUT_DIR=$results "$here/run.sh"
	[ -s "$results/policy.csv" ] ||
		head -n 1 "$results/results.csv" >"$results/policy.csv"
	sed -n "s/,uncached,/,$in_flight:$enough:$largest,/p" \
		"$results/results.csv" >>"$results/policy.csv"
done
mv "$results/policy.csv" "$out"
perl -I"$here" "$here/report.pl" "$here/results"
