#!/usr/bin/env bash
# Measures how long deadlocks across servers last, from the last wait that makes one to
# the error; "make deadlock-bench" calls it.
#
#	bench/deadlocks.sh      ten minutes; ROUNDS=50 SCENARIOS="row lock"
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=dev/lib.sh
. "$here/../dev/lib.sh"

[ "${ZKLOCK_SETUP:-yes}" = no ] || "$here/../dev/setup.sh"
choose_user
make_work_dir deadlocks
trap 'exit 130' INT TERM
say "working in $work as user $run_user"
copy_sources "$here/.."
copy_postgres
say "building for $("$PG_CONFIG" --version)"
build_and_install with_llvm=no

prepare_perl 60 test/perl
status=0
as_user "$work" perl "$work/src/bench/deadlocks.pl" || status=$?
if [ $status = 0 ]; then
	rm -rf "$work"
else
	echo "logs: $work/tmp_check/log"
fi
exit $status
