#!/usr/bin/env bash
# Runs the chaos test on servers of its own; "make chaos" calls it.
#
#	test/chaos/run.sh               five minutes of random faults
#	MINUTES=60 SEED=7 test/chaos/run.sh
#	TEETH=1 test/chaos/run.sh       clients that do not heed the commit check
#	TEETH=lease test/chaos/run.sh   a build that ignores the lease
#	TEETH=early test/chaos/run.sh   clients that commit after they have unlocked
#	KEEP=1 test/chaos/run.sh        leaves programs and logs where they are
#	test/chaos/run.sh liveness      measures how fast things go on instead
#
# The exit status is 0 only if every promise was kept; with TEETH only if the
# checkers saw those broken that had to be.  Logs are kept if not.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=dev/lib.sh
. "$here/../../dev/lib.sh"

program=${1:-chaos}
[ -f "$here/$program.pl" ] ||
	die "usage: test/chaos/run.sh [chaos|check|liveness]"
[ "${ZKLOCK_SETUP:-yes}" = no ] || "$here/../../dev/setup.sh"
choose_user
make_work_dir chaos
trap 'exit 130' INT TERM
say "working in $work as user $run_user"
copy_sources "$here/../.."
copy_postgres
if [ "${TEETH:-}" = lease ]; then
	sed -i 's/zkl_boottime_ms() < deadline_ms/true/' "$work/src/src/shared/gate.c"
	! cmp -s "$work/src/src/shared/gate.c" "$here/../../src/shared/gate.c" ||
		die "no lease to ignore in src/shared/gate.c"
fi
say "building for $("$PG_CONFIG" --version)"
# The extension's own assertions need no PostgreSQL that was built with them.
build_and_install COPT=-DUSE_ASSERT_CHECKING

prepare_perl 60 test/perl test/chaos
# A crash is to be looked into: find "core" in the servers' directories.
ulimit -c unlimited 2>/dev/null || true
status=0
as_user "$work" perl "$work/src/test/chaos/$program.pl" || status=$?
if [ $status = 0 ] && [ -z "${KEEP:-}" ]; then
	rm -rf "$work"
else
	echo "logs: $work/tmp_check/log"
	[ -n "${KEEP:-}" ] || rm -rf "$work/pg"
fi
exit $status
