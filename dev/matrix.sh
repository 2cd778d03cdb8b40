#!/usr/bin/env bash
# Runs the tests with several versions of PostgreSQL and ZooKeeper, one after the
# other, and writes the table of test/matrix.md.
#
#	dev/matrix.sh                       all combinations, everything of each
#	dev/matrix.sh trixie sid:bookworm   these
#	dev/matrix.sh --only "unit,tap 001 020" trixie     some tests; they have a
#	                                    row of their own
#	dev/matrix.sh --newest "unit,tap 001 020"          some tests, with the
#	                                    newest PostgreSQL that can be had; the
#	                                    table is left alone, and the last line
#	                                    says "N passed, N failed"
#	dev/matrix.sh --lacks               says what is missing for that, if
#	                                    anything is
#
# A combination is a Debian release with its PostgreSQL, compiler, Perl, Python
# and ZooKeeper; or two of them: the second one is where the ZooKeeper server
# comes from.  "experimental" has the next version of PostgreSQL.  Each runs in a
# folder of its own, see chroot.sh.  If one cannot be made ready, its row says so,
# and the others run.  As root; "dev/setup.sh" installs what it needs.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=dev/lib.sh
. "$here/lib.sh"
# shellcheck source=dev/chroot.sh
. "$here/chroot.sh"

# PostgreSQL 15, 17, 18, 19; ZooKeeper 3.8 in bookworm, 3.9 in the others
all="bookworm bookworm:trixie trixie trixie:bookworm sid sid:bookworm experimental"
# Those with the newest PostgreSQL; the last one is stable, and can always be had
newest="experimental sid trixie"
page=$here/../test/matrix.md
only=
only_newest=no

case "${1:-}" in
--lacks)
	chroot_lacks | paste -s -d ,
	exit
	;;
--only)
	only=${2:?"which tests?"}
	shift 2
	;;
--newest)
	only=${2:?"which tests?"}
	only_newest=yes
	shift 2
	# shellcheck disable=SC2086
	set -- $newest
	;;
-*) die "usage: dev/matrix.sh [--lacks|--newest TESTS|--only TESTS] [RELEASE[:RELEASE] ...]" ;;
esac
combinations=${*:-$all}
work=$(mktemp -d)
passed=0	# of a combination
failures=0
failed=no
tested=	# the commit and the date, in a row

# Installs the ZooKeeper server of another release, with what it needs; all
# other packages stay those of the first one.
install_zookeeper() {
	local release=$1
	add_release "$release" &&
		printf 'Package: *\nPin: release n=%s*\nPin-Priority: 1\n' "$release" \
			>"$chroot/etc/apt/preferences.d/$release" &&
		in_chroot apt-get -q update &&
		install_in_chroot "zookeeper/$release" "libzookeeper-java/$release"
}

# Makes a folder with all that the tests need.  It is a condition, where "set -e"
# does not count.
make_ready() {
	local combination=$1 release=${1%%:*}
	open_chroot "$release" || return
	install_in_chroot git || return
	[ "$combination" = "$release" ] || install_zookeeper "${combination#*:}" || return
	[ "$release" != experimental ] ||
		install_in_chroot "postgresql-$next_postgres" "postgresql-server-dev-$next_postgres" || return
	mkdir "$chroot/zklock" || return
	work=$chroot/zklock copy_sources "$(dirname "$here")" || return
	in_chroot /zklock/src/dev/setup.sh
}

# The commit of the sources, which may have changed since
tested_commit() {
	local -a git=(git -c safe.directory='*' -C "$here/..")
	"${git[@]}" rev-parse --short HEAD 2>/dev/null || return 0
	"${git[@]}" diff --quiet HEAD -- src sql || echo "and changes"
}

version_of() {
	# shellcheck disable=SC2016
	in_chroot dpkg-query -W -f '${Version}\n' "$1" 2>/dev/null | sed 's/^[0-9]*://; s/[-+].*//'
}

# The newest PostgreSQL there, which is the one that is tested
server_there() {
	in_chroot sh -c 'ls /usr/lib/postgresql | sort -n | tail -n 1'
}

# Runs dev/test.sh there, and adds what it counted to passed and failures.
run_tests() {
	local log=$1 line bad=1
	shift
	say "$combination: dev/test.sh $*"
	in_chroot nice -n 10 env ZKLOCK_SETUP=no /zklock/src/dev/test.sh --keep "$@" >"$log" 2>&1 || true
	line=$(tail -n 1 "$log")
	if [[ $line =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
		passed=$((passed + BASH_REMATCH[1]))
		bad=${BASH_REMATCH[2]}
	fi
	failures=$((failures + bad))
	if [ "$bad" != 0 ]; then
		keep_logs
		sed -n '/ FAILED /p; /^---- /,$p' "$log"
		failed=yes
	fi
}

# Runs what was asked for there.
run_all_tests() {
	local tests test number=0
	IFS=, read -r -a tests <<<"${only:-all}"
	for test in "${tests[@]}"; do
		number=$((number + 1))
		# shellcheck disable=SC2086
		run_tests "$work/$number.log" $test
	done
	say "$combination: $passed passed, $failures failed"
}

# Replaces the row of this combination and of these tests, or adds it.  A row of
# everything replaces those of some tests, too.
write_row() {
	awk -v key="| $combination |" -v tests="| ${only:-everything} |" -v row="$1" '
		index($0, key) == 1 && (tests == "| everything |" || index($0, tests)) {
			if (!done) print row
			done = 1
			next
		}
		/^\| release / { table = 1 }
		table && !/^\|/ { if (!done) print row; table = 0; done = 1 }
		{ print }
	' "$page" >"$work/page"
	cat "$work/page" >"$page"
}

run_combination() {
	passed=0
	failures=0
	say "$combination: getting ready"
	if ! make_ready "$combination" >"$work/log" 2>&1; then
		say "$combination: cannot be made ready"
		tail -n 10 "$work/log"
		close_chroot
		write_row "| $combination | not ready | | | | ${only:-everything} | 0 | 1 | $tested |"
		failed=yes
		return
	fi
	run_all_tests
	write_row "| $combination | $(version_of "postgresql-$(server_there)") | \
$(version_of zookeeper) | $(in_chroot gcc -dumpfullversion) | $(version_of python3) | ${only:-everything} | \
$passed | $failures | $tested |"
	close_chroot
}

# Runs the tests in the first folder that can be made ready.
run_newest() {
	for combination in $combinations; do
		say "$combination: getting ready"
		if make_ready "$combination" >"$work/log" 2>&1; then
			say "PostgreSQL $(version_of "postgresql-$(server_there)")"
			run_all_tests
			close_chroot
			echo "$passed passed, $failures failed"
			return
		fi
		say "$combination: cannot be made ready"
		tail -n 10 "$work/log"
		close_chroot
	done
	failed=yes
	echo "0 passed, 1 failed"
}

main() {
	local combination missing
	missing=$(chroot_lacks | paste -s -d ,)
	[ -z "$missing" ] || die "there is no $missing"
	run_user=root
	clean_up_at_exit
	tested="$(tested_commit | paste -s -d " ") | $(date +%F)"
	if [ $only_newest = yes ]; then
		run_newest
	else
		for combination in $combinations; do
			run_combination
		done
	fi
	[ $failed = no ]
}

# One line, so that the file can be edited during a run: see test.sh
main; exit
