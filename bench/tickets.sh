#!/usr/bin/env bash
# Measures tickets through one connection against locks of one session, and the memory of
# waits: of tickets, of sessions and of threads of Curator.
#
#	bench/tickets.sh      two minutes; ROUNDS=9 SECONDS_EACH=2
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=dev/lib.sh
. "$here/../dev/lib.sh"

[ "${ZKLOCK_SETUP:-yes}" = no ] || "$here/../dev/setup.sh"
choose_user
make_work_dir tickets
trap 'exit 130' INT TERM
say "working in $work as user $run_user"
copy_sources "$here/.."
copy_postgres
say "building for $("$PG_CONFIG" --version)"
build_and_install with_llvm=no

prepare_perl 60 test/perl
status=0
as_user "$work" perl "$work/src/bench/tickets.pl" || status=$?
if [ $status = 0 ]; then
	rm -rf "$work"
else
	echo "logs: $work/tmp_check/log"
fi
exit $status
