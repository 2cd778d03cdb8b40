#!/usr/bin/env bash
# Measures what batches, sessions, watches and znodes cost a ZooKeeper server;
# "make capacity" calls it.
#
#	bench/capacity.sh       about four minutes, into bench/results/capacity.csv
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=dev/lib.sh
. "$here/../dev/lib.sh"

[ "${ZKLOCK_SETUP:-yes}" = no ] || "$here/../dev/setup.sh" bench
choose_user
make_work_dir capacity
trap 'exit 130' INT TERM
say "working in $work as user $run_user"
copy_sources "$here/.."

export BENCH_DIR=$work
as_user "$work" gcc -O2 -Wall -Wextra -o "$work/crowd" "$work/src/bench/crowd.c" \
	-lzookeeper_st
PG_CONFIG=$(find_pg_config) || die "no PostgreSQL with server headers found; run dev/setup.sh"
prepare_perl 60 test/perl
export BENCH_OUT=$work/capacity.csv

status=0
as_user "$work" perl "$work/src/bench/capacity.pl" || status=$?
if [ $status = 0 ]; then
	cp "$BENCH_OUT" "$here/results/capacity.csv"
	rm -rf "$work"
else
	echo "logs: $work/tmp_check/log"
fi
exit $status
