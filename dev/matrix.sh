#!/usr/bin/env bash
# Runs the tests with several versions of PostgreSQL and ZooKeeper, one after the
# other, and writes the table of docs/portability.md.
#
#	dev/matrix.sh                       all combinations, everything of each
#	dev/matrix.sh trixie sid:bookworm   these
#	dev/matrix.sh --only "unit,tap 001 020" trixie     some tests; what was
#	                                    run stands in the table
#	dev/matrix.sh --lacks               says what is missing for that, if
#	                                    anything is
#
# A combination is a Debian release with its PostgreSQL, compiler, Perl, Python
# and ZooKeeper; or two of them: the second one is where the ZooKeeper server
# comes from.  "experimental" has the next version of PostgreSQL.  Each runs in a
# folder of its own, see chroot.sh.  As root; "dev/setup.sh package" installs what
# it needs.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=dev/lib.sh
. "$here/lib.sh"
# shellcheck source=dev/chroot.sh
. "$here/chroot.sh"

# PostgreSQL 15, 17, 18, 19; ZooKeeper 3.8 in bookworm, 3.9 in the others
all="bookworm bookworm:trixie trixie trixie:bookworm sid sid:bookworm experimental"
page=$here/../docs/portability.md
only=

case "${1:-}" in
--lacks)
	chroot_lacks | paste -s -d ' '
	exit
	;;
--only)
	only=${2:?"which tests?"}
	shift 2
	;;
-*) die "usage: dev/matrix.sh [--lacks|--only TESTS] [RELEASE[:RELEASE] ...]" ;;
esac
combinations=${*:-$all}
work=$(mktemp -d)
failed=no

# Installs the ZooKeeper server of another release, with what it needs; all
# other packages stay those of the first one.
install_zookeeper() {
	local release=$1
	add_release "$release"
	printf 'Package: *\nPin: release n=%s*\nPin-Priority: 1\n' "$release" \
		>"$chroot/etc/apt/preferences.d/$release"
	in_chroot apt-get -q update
	install_in_chroot "zookeeper/$release" "libzookeeper-java/$release"
}

version_of() {
	# shellcheck disable=SC2016
	in_chroot dpkg-query -W -f '${Version}\n' "$1" 2>/dev/null | sed 's/^[0-9]*://; s/[-+].*//'
}

# Runs dev/test.sh there, and adds what it counted to passed and failures.
run_tests() {
	local log=$1 line
	shift
	say "$combination: dev/test.sh $*"
	in_chroot nice -n 10 env ZKLOCK_SETUP=no /zklock/src/dev/test.sh --keep "$@" >"$log" 2>&1 || true
	line=$(tail -n 1 "$log")
	if [[ $line =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
		passed=$((passed + BASH_REMATCH[1]))
		failures=$((failures + BASH_REMATCH[2]))
	else
		failures=$((failures + 1))
	fi
	if [ "$failures" != 0 ]; then
		sed -n '/ FAILED /p; /^---- /,$p' "$log"
		failed=yes
	fi
}

# Replaces the combination's row in the table, or adds it.
write_row() {
	awk -v key="| $1 |" -v row="$2" '
		index($0, key) == 1 { print row; done = 1; next }
		/^\| release / { table = 1 }
		table && !/^\|/ { if (!done) print row; table = 0; done = 1 }
		{ print }
	' "$page" >"$work/page"
	cat "$work/page" >"$page"
}

run_combination() {
	local release=${combination%%:*} other='' passed=0 failures=0 tests test number=0 server
	[ "$combination" = "$release" ] || other=${combination#*:}
	say "$combination: getting ready"
	open_chroot "$release" >"$work/log" 2>&1 || die "$(tail -n 5 "$work/log")"
	install_in_chroot git >"$work/log" 2>&1
	[ -z "$other" ] || install_zookeeper "$other" >"$work/log" 2>&1 || die "$(tail "$work/log")"
	if [ "$release" = experimental ]; then
		install_in_chroot "postgresql-$next_postgres" "postgresql-server-dev-$next_postgres" \
			>"$work/log" 2>&1 || die "$(tail "$work/log")"
	fi
	mkdir "$chroot/zklock"
	work=$chroot/zklock copy_sources "$(dirname "$here")"
	in_chroot /zklock/src/dev/setup.sh >"$work/log" 2>&1 || die "$(tail "$work/log")"
	IFS=, read -r -a tests <<<"${only:-all}"
	for test in "${tests[@]}"; do
		number=$((number + 1))
		# shellcheck disable=SC2086
		run_tests "$work/$number.log" $test
	done
	server=$(in_chroot sh -c "ls /usr/lib/postgresql | sort -n | tail -n 1")
	write_row "$combination" "| $combination | $(version_of "postgresql-$server") | \
$(version_of zookeeper) | $(version_of gcc) | $(version_of python3) | ${only:-everything} | \
$passed | $failures |"
	say "$combination: $passed passed, $failures failed"
	close_chroot
}

main() {
	local combination missing
	missing=$(chroot_lacks | paste -s -d ' ')
	[ -z "$missing" ] || die "there is no $missing"
	run_user=root
	clean_up_at_exit
	for combination in $combinations; do
		run_combination
	done
	[ $failed = no ]
}

# One line, so that the file can be edited during a run: see test.sh
main; exit
