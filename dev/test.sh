#!/usr/bin/env bash
# Runs all tests of zklock, on PostgreSQL and ZooKeeper servers of its own.
#
#	dev/test.sh                     everything that takes ten minutes
#	dev/test.sh full                that, and what needs more: procedures of the
#	                                documents, analysis of the code, packages,
#	                                containers, TLS, Prometheus, Patroni, valgrind
#	dev/test.sh LAYER               one of format includes workflows unit sim worlds spec makefile
#	                                regress isolation tap chaos tools package release
#	                                containers tls monitoring patroni valgrind
#	dev/test.sh tap 020 031         TAP files whose names start so
#	dev/test.sh unit queue          unit programs whose names start so
#	dev/test.sh regress once        SQL tests of these names
#	dev/test.sh --keep tap 020      keeps the work directory and reuses it, so
#	                                that only the changed files are compiled
#
# Installs missing packages first (ZKLOCK_SETUP=no: does not).  ZKLOCK_CC is another
# compiler than that of PostgreSQL.  The system's PostgreSQL is not touched: see
# lib.sh.  The last line says "N passed, N failed"; the exit status is 0 only if nothing
# failed and each layer ran.
#
# Tests with servers run side by side, in as many slots as ZKLOCK_TEST_SLOTS
# says (three for each processor); a heavy one takes several.  What needs no
# servers runs beside them, one after the other, on what processor time is left.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=dev/lib.sh
. "$here/lib.sh"

keep=no
if [ "${1:-}" = --keep ]; then
	keep=yes
	shift
fi
# TAP files that "dev/test.sh" leaves out, and "full" and "tap" run: procedures of the
# documents, as other files test each of their steps, a long storm, and programs for which
# the processors must have time, or must not.
full_files=(230_moving 231_credentials 232_backups 233_operations 245_deadlock_storm
	246_run_hiccups 248_run_crowd 254_pg_cron)
left_out=()
world_levels=6	# of test/worlds/main.c
all="format includes workflows unit sim worlds spec makefile chaos tap regress isolation"
full_only="tools package release containers tls monitoring patroni valgrind"	# each is skipped if what it needs is not there
case "${1:-all}" in
all)
	layers=$all
	left_out=("${full_files[@]}")
	;;
full)
	layers="$all $full_only"
	world_levels=7
	;;
*)
	[[ " $all $full_only " == *" $1 "* ]] ||
		die "usage: dev/test.sh [--keep] [full|${all// /|}|${full_only// /|} [name ...]]"
	layers=$1
	;;
esac
shift || true
wanted=("$@")

passed=0
failed=0
failures=()
declare -A has_run=()	# layers
file_limit=${ZKLOCK_TEST_LIMIT:-600}	# seconds for one test file
slots=${ZKLOCK_TEST_SLOTS:-$((3 * $(nproc)))}

# ---- jobs ----

# A job calls a function in a process of its own.  There it calls note_result
# for each test program; when the job ends, we count its results.
jobs=()	# lane, slots that it takes, function and arguments
declare -A free=([servers]=$slots [patient]=1)	# slots of each lane
declare -A running=()	# by process id: lane, slots, file of results
njobs=0

# Puts a job into the queue of a lane.
add_job() {
	jobs+=("$*")
}

start_job() {
	local lane=$1 weight=$2 results
	shift 2
	njobs=$((njobs + 1))
	results=$work/results/$njobs
	free[$lane]=$((free[$lane] - weight))
	# With job control, as otherwise the programs would ignore SIGINT.
	set -m
	(
		trap - INT TERM
		in_job "$lane" "$@"
	) </dev/null 9>&- &
	set +m
	running[$!]="$lane $weight $results $*"
}

# The beginning of a job's process
in_job() {
	results=$work/results/$njobs
	if [ "$1" = patient ]; then
		file_limit=$((4 * file_limit))
		[[ $layers != *tap* ]] || run_by=(nice -n 10)
	fi
	shift
	"$@"
}

# Counts what a job has found; it has failed if it ended early.
finish_job() {
	local status=$2 lane weight results what line
	read -r lane weight results what <<<"${running[$1]}"
	unset "running[$1]"
	free[$lane]=$((free[$lane] + weight))
	if [ -f "$results" ]; then
		while IFS='|' read -r -a line; do
			count "${line[@]}"
		done <"$results"
	fi
	if [ "$status" != 0 ]; then
		echo "this job ended with status $status: $what" >"$results.log"
		count "${what%% *}" 1 0 0 0 "$results.log"
	fi
}

# Runs all jobs: those of a lane begin in the order of the queue, each once
# there are slots for it.
run_jobs() {
	local -a rest
	local -A full
	local job lane weight what status
	while [ $((${#jobs[@]} + ${#running[@]})) -gt 0 ]; do
		rest=()
		full=()
		for job in "${jobs[@]}"; do
			read -r lane weight what <<<"$job"
			if [ -n "${full[$lane]:-}" ] || [ "$weight" -gt "${free[$lane]}" ]; then
				full[$lane]=yes
				rest+=("$job")
			else
				# shellcheck disable=SC2086
				start_job "$lane" "$weight" $what
			fi
		done
		jobs=("${rest[@]}")
		status=0
		wait -n -p ended || status=$?
		# shellcheck disable=SC2154
		finish_job "$ended" $status
	done
}

# Ends a process and those that it has started.
end_tree() {
	local child
	for child in $(pgrep -P "$1"); do
		end_tree "$child"
	done
	kill "$1" 2>/dev/null || true
}

interrupt() {
	local pid file
	trap - INT TERM
	for pid in "${!running[@]}"; do
		end_tree "$pid"
	done
	wait
	# Servers that a test had not got hold of yet
	for file in "$work"/tmp_check/*/pgdata/postmaster.pid; do
		[ ! -f "$file" ] || kill -INT "$(head -n 1 "$file")" || true
	done
	exit 130
}

# ---- results ----

# Called in a job.  Arguments: those of count.
note_result() {
	local IFS='|'
	echo "$*" >>"$results"
}

# Counts one test program.  Arguments: layer/name, exit status, cases that
# passed, cases that failed, seconds, log.
count() {
	local name=$1 status=$2 good=${3:-0} bad=${4:-0} seconds=$5 log=$6 reason
	reason=$(sed -n 's/^1\.\.0 # SKIP //p' "$log" 2>/dev/null)
	if [ "$status" = 0 ] && [ -n "$reason" ]; then
		has_run[${name%%/*}]=skipped
		say "$name: skipped: $reason"
		return
	fi
	# A program that died, or ran nothing, has failed even if no case says so.
	if [ "$bad" = 0 ] && { [ "$status" != 0 ] || [ "$good" = 0 ]; }; then
		bad=1
	fi
	passed=$((passed + good))
	failed=$((failed + bad))
	has_run[${name%%/*}]=yes
	if [ "$bad" = 0 ]; then
		say "$name: $good passed ($seconds s)"
	else
		say "$name: $good passed, $bad FAILED ($seconds s)"
		failures+=("$log")
	fi
}

# Counts the lines of a log that match; never fails.
matches() {
	grep -cE "$1" "$2" || true
}

# What collects the servers that a test has killed, which have lost their parent: the
# first process of a container may not do it, and a server that is not collected
# seems to run.
reaper=()
! command -v tini >/dev/null || reaper=(tini -s --)

# Runs one program that prints TAP.  Arguments: layer/name, directory, command;
# run_with is what runs it there.
run_with=as_user
run_tap() {
	local name=$1 dir=$2 log status=0 begin good bad
	shift 2
	log=$work/log/${name//\//-}.log
	begin=$(date +%s)
	"$run_with" "$dir" "${reaper[@]}" timeout --kill-after=20 "$file_limit" "$@" \
		>"$log" 2>&1 || status=$?
	[ "$status" != 124 ] || echo "# not done within $file_limit s" >>"$log"
	good=$(matches '^ok [0-9]+' "$log")
	bad=$(matches '^not ok [0-9]+' "$log")
	note_result "$name" "$status" "$good" "$bad" $(($(date +%s) - begin)) "$log"
}

# Whether a test was asked for by the beginning of its name, or all were.
is_wanted() {
	local prefix
	[ ${#wanted[@]} -gt 0 ] || return 0
	for prefix in "${wanted[@]}"; do
		prefix=${prefix##*/}
		case $1 in "${prefix%.pl}"*) return 0 ;; esac
	done
	return 1
}

test_format() {
	run_tap format "$work/src" dev/format.sh --check
}

test_includes() {
	run_tap includes "$work/src" bash test/check-includes.sh
	run_tap includes/headers "$work/src" bash test/check-headers.sh
	run_tap includes/parts "$work/src" perl test/check-parts.pl
	run_tap includes/writers "$work/src" perl test/check-writers.pl
	run_tap includes/wire "$work/src" perl test/check-wire.pl
}

test_unit() {
	local dir=$work/src/test/unit file
	local -a programs=()
	say "unit: building"
	for file in "$dir"/test_*.c; do
		file=$(basename "$file" .c)
		! is_wanted "${file#test_}" || programs+=("build/$file")
	done
	[ ${#programs[@]} -gt 0 ] || return 0
	if ! as_user "$dir" make -j "$(nproc)" "${programs[@]}" >"$work/log/unit-build.log" 2>&1; then
		note_result unit/build 1 0 0 0 "$work/log/unit-build.log"
		return
	fi
	for file in "${programs[@]}"; do
		run_tap "unit/$(basename "$file")" "$dir" "$dir/$file"
	done
}

# Many seeds of the simulation, and the mutants that it must catch
test_sim() {
	local dir=$work/src/test/sim
	say "sim: building"
	if ! as_user "$dir" make -j "$(nproc)" build >"$work/log/sim-build.log" 2>&1; then
		note_result sim/build 1 0 0 0 "$work/log/sim-build.log"
		return
	fi
	run_tap sim "$work" bash "$dir/run.sh"
	say "sim: $(sed -n 's/^ok 1 - //p' "$work/log/sim.log")"
}

# The specifications: all schedules of small instances, and a violation without each rule
test_spec() {
	local mode=quick
	[[ $layers != *valgrind* ]] || mode=full
	say "spec: running"
	run_tap spec "$work" bash "$work/src/test/spec/run.sh" "${wanted[0]:-$mode}"
}

# All schedules of small worlds
test_worlds() {
	local dir=$work/src/test/worlds
	say "worlds: building"
	if ! as_user "$dir" make -j "$(nproc)" build >"$work/log/worlds-build.log" 2>&1; then
		note_result worlds/build 1 0 0 0 "$work/log/worlds-build.log"
		return
	fi
	run_tap worlds "$work" env LEVELS="$world_levels" bash "$dir/run.sh"
	say "worlds: $(sed -n 's/^ok [0-9]* - \([0-9]* worlds: .*\)/\1/p' "$work/log/worlds.log")"
}

# What the Makefile does for those who build packages
test_makefile() {
	prepare_perl 180 test/perl
	rm -rf "$work/tmp_check/t_makefile_"*
	say "makefile: running"
	SOURCES=$work/src run_tap makefile "$work" perl "$work/src/test/makefile.pl"
}

# The exporter's queries and Prometheus' rules, with the real programs; and incidents
test_monitoring() {
	local name
	for name in monitoring incidents; do
		! is_wanted "$name" || run_tap_file monitoring "$name" "$work/src/test/$name.pl"
	done
}

# A cluster of the real Patroni
test_patroni() {
	run_tap_file patroni patroni "$work/src/test/patroni.pl"
}

# The tools of dev/ that no other test uses
test_tools() {
	say "tools: running"
	run_tap tools "$work/src" test/tools.sh
}

# Builds the Debian package, and uses it in a clean folder; as root.
test_package() {
	say "package: running"
	run_with=in_directory
	run_tap package "$here/.." "$here/package.sh"
}

# What .github/ has for the project's host, and what a release is checked for
test_workflows() {
	run_tap workflows "$work/src" perl test/workflows.pl
}

# The steps of the workflow of a release that can run here; as root.
test_release() {
	say "release: running"
	run_with=in_directory
	run_tap release "$here/.." "$here/release.sh"
}

test_containers() {
	say "containers: running"
	run_with=in_directory
	run_tap containers "$here/.." "$here/containers.sh"
}

in_directory() {
	cd "$1"
	shift
	"$@"
}

# Says what a layer needs and does not find; nothing if all is there.
lacks() {
	local program
	case $1 in
	spec) command -v spin >/dev/null || echo spin ;;
	tools)
		for program in clang-tidy git pg_bsd_indent; do
			command -v $program >/dev/null || echo $program
		done | head -n 1
		;;
	package | release | containers) "$here/$1.sh" --lacks ;;
	monitoring)
		for program in prometheus promtool prometheus-postgres-exporter; do
			command -v $program >/dev/null || echo $program
		done | head -n 1
		;;
	patroni) [ -x /usr/bin/patroni ] || echo patroni ;;
	valgrind) command -v valgrind >/dev/null || echo valgrind ;;
	esac
}

# pg_regress says "test x ... ok" up to PostgreSQL 15 and TAP from 16 on.
# Arguments: name, where below $work/src its results and its server are, and
# arguments of make.  The server's log is with the results up to 15.  What was
# not expected comes last, so that it is shown.
run_regress() {
	local name=$1 log=$work/log/$1.log status=0 begin good bad
	local -a details=("$work/src"/{"$2","$3"}/log/postmaster.log "$work/src/$2/regression.diffs")
	shift 3
	rm -f "${details[@]}"
	begin=$(date +%s)
	as_user "$work/src" "${reaper[@]}" timeout --kill-after=20 "$file_limit" \
		make PG_CONFIG="$PG_CONFIG" OWN_SERVERS=yes "$@" installcheck >"$log" 2>&1 || status=$?
	good=$(matches '\.\.\. ok |^ok [0-9]+' "$log")
	bad=$(matches '\.\.\. FAILED|^not ok [0-9]+' "$log")
	if [ "$status" != 0 ]; then
		tail -n 60 "${details[@]}" >>"$log" 2>/dev/null || true
	fi
	note_result "$name" "$status" "$good" "$bad" $(($(date +%s) - begin)) "$log"
}

test_regress() {
	say "regress: running"
	if [ ${#wanted[@]} -gt 0 ]; then
		run_regress regress . tmp_check_regress ISOLATION= TAP_TESTS= \
			REGRESS="install ${wanted[*]/#install/}"
	else
		run_regress regress . tmp_check_regress ISOLATION= TAP_TESTS=
	fi
}

test_isolation() {
	say "isolation: running"
	run_regress isolation output_iso tmp_check_iso REGRESS= TAP_TESTS=
}

# Removes what an earlier run of a TAP file has kept.
forget_servers() {
	rm -rf "$work/tmp_check/t_$1_"* "$work/tmp_check/log/$1"* \
		"$work/tmp_check/log/regress_log_$1"
}

# Runs a TAP file.  Arguments: layer, its name, and where it is.
run_tap_file() {
	local layer=$1 name=$2 file=$3
	prepare_perl 180 test/perl test/chaos
	forget_servers "$name"
	say "$layer/$name: running"
	run_tap "$layer/$name" "$work" perl "$file"
	# What the test did, beside what it found
	if [ -f "$work/tmp_check/log/regress_log_$name" ]; then
		cp "$work/tmp_check/log/regress_log_$name" "$work/log/$layer-$name.details.log"
	fi
}

test_tap() {
	run_tap_file tap "$1" "$work/src/test/t/$1.pl"
}

# The same file, under another name, with TLS between PostgreSQL and the proxies
# that stand before ZooKeeper
test_tls() {
	local file=$work/tls/$1_tls.pl
	as_user "$work" mkdir -p tls
	as_user "$work" cp "$work/src/test/t/$1.pl" "$file"
	export ZKLOCK_TEST_TLS=1
	run_tap_file tls "$1_tls" "$file"
}

# One TAP file of each area
valgrind_files=(010_lifetimes 020_giving_up 022_lost_statements 053_caching
	061_own_queue 074_tls 091_operator 181_semaphores 190_once 222_fleet_waits
	240_lock_waits)

# Makes a copy of PostgreSQL whose servers run under valgrind.
copy_postgres_checked() {
	local bin=$work/valgrind${bindir#"$work/pg"}
	rm -rf "$work/valgrind"
	as_user "$work" cp -a pg valgrind
	as_user "$work" mv "$bin/postgres" "$bin/postgres.checked"
	as_user "$work" cp src/test/valgrind.sh "$bin/postgres"
	as_user "$work" cp src/test/valgrind.supp "$bin"
}

# The same file, under another name, with these servers
test_valgrind() {
	local name=$1_valgrind found=$work/log/valgrind-$1.found
	PG_CONFIG=$work/valgrind${PG_CONFIG#"$work/pg"}
	export ZKLOCK_VALGRIND_LOG=$work/valgrind/log/$1
	as_user "$work" mkdir -p "$ZKLOCK_VALGRIND_LOG"
	as_user "$work" cp "src/test/t/$1.pl" "valgrind/$name.pl"
	file_limit=$((5 * file_limit))
	PG_TEST_TIMEOUT_DEFAULT=600 run_tap_file valgrind "$name" "$work/valgrind/$name.pl"
	cat "$ZKLOCK_VALGRIND_LOG"/* >"$found"
	note_result "valgrind/$name: clean" 0 "$(find "$ZKLOCK_VALGRIND_LOG" -type f -print -quit | wc -l)" \
		"$(matches '^==[0-9]+== +at 0x' "$found")" 0 "$found"
}

# A short run of what "make chaos" does for as long as one likes.
test_chaos() {
	prepare_perl 180 test/perl test/chaos
	run_tap chaos/check "$work" perl "$work/src/test/chaos/check.pl"
	forget_servers chaos
	say "chaos: running"
	MINUTES=1 ROUND_SECONDS=25 run_tap chaos/faults "$work" \
		perl "$work/src/test/chaos/chaos.pl"
}

# TAP files that take long, the longest first: they begin before the others.
long_files=(160_masses 191_once_faults 220_fleet_locks 054_cached_crowd
	093_worn_out 101_session_process 150_sequence_end 122_single_answers
	182_bounds 216_dialects_of_root 120_fake_server 181_semaphores
	031_processes 053_caching 131_server_ends 043_foreign_break)

# All TAP files, in the order in which they begin
tap_names() {
	local file name
	for name in "${long_files[@]}"; do
		[ ! -f "$work/src/test/t/$name.pl" ] || echo "$name"
	done
	for file in "$work"/src/test/t/*.pl; do
		name=${file##*/}
		name=${name%.pl}
		[[ " ${long_files[*]} ${left_out[*]} " == *" $name "* ]] || echo "$name"
	done
}

# How many slots a job takes that loads the processors, or measures what depends
# on them
heavy=$((slots < 3 ? slots : 3))

# How many slots a TAP file takes
slots_of() {
	case $1 in
	021_storm | 050_requests | 051_many_waiters | 160_masses | 244_deadlock_costs | 245_deadlock_storm) echo $heavy ;;
	246_run_hiccups | 248_run_crowd) echo "$slots" ;;	# nothing beside it would be in time
	*) echo 1 ;;
	esac
}

# The jobs of a layer, longest first
add_layer() {
	local name
	case $1 in
	format | includes | workflows | unit | sim | worlds | spec | makefile | tools | package | release | containers)
		add_job patient 1 "test_$1"
		;;
	regress | isolation | monitoring | patroni) add_job servers 1 "test_$1" ;;
	chaos) add_job servers $heavy test_chaos ;;
	tap)
		for name in $(tap_names); do
			! is_wanted "$name" || add_job servers "$(slots_of "$name")" test_tap "$name"
		done
		;;
	valgrind)
		copy_postgres_checked
		for name in "${valgrind_files[@]}"; do
			! is_wanted "$name" || add_job servers 1 test_valgrind "$name"
		done
		;;
	tls)
		for name in $(tap_names); do
			if is_wanted "$name" && grep -q 'net => ' "$work/src/test/t/$name.pl"; then
				add_job servers "$(slots_of "$name")" test_tls "$name"
			fi
		done
		;;
	esac
}

# For tests of programs that make cgroups: moves the tests to where only root can make
# one, beside one in which the user can.  Without cgroups of version 2, or if they are
# not ours to make, the tests stay where they are.
make_cgroup() {
	local top
	[ "$(id -u)" = 0 ] || return 0
	top=$(findmnt -n -t cgroup2 -o TARGET | head -n 1)
	[ -n "$top" ] || return 0
	parent=$top$(sed -n 's/^0:://p' /proc/self/cgroup)
	cgroup=${parent%/}/zklock-tests.$$
	if mkdir "$cgroup" "$cgroup/tests" "$cgroup/own" 2>/dev/null &&
		chown "$run_user" "$cgroup"/{,own/}cgroup.procs "$cgroup/own" &&
		echo $$ >"$cgroup/tests/cgroup.procs"; then
		export ZKLOCK_TEST_CGROUP=$cgroup/own
	fi 2>/dev/null
	trap leave_cgroup EXIT
}

leave_cgroup() {
	local tries=50
	echo $$ >"$parent/cgroup.procs" || true
	rmdir "$cgroup/own" || true
	# What tests have killed may not be collected yet.
	until rmdir "$cgroup/tests" || [ $((tries -= 1)) = 0 ]; do sleep 0.1; done
	rmdir "$cgroup" || true
} 2>/dev/null

# Shows what failed, removes what nobody needs, and says the result.
finish() {
	local log
	if [ $failed = 0 ]; then
		[ $keep = yes ] || rm -rf "$work"
	else
		for log in "${failures[@]}"; do
			printf '\n---- %s ----\n' "$log"
			grep -vE '^ok [0-9]+' "$log" | tail -n 60 || true
			if [ -f "${log%.log}.details.log" ]; then
				printf '\n---- %s (its end) ----\n' "${log%.log}.details.log"
				tail -n 25 "${log%.log}.details.log"
			fi
		done
		printf '\nlogs are kept: %s/log, servers: %s/tmp_check/log\n' "$work" "$work"
		[ $keep = yes ] || rm -rf "$work/pg"
	fi
	echo "$passed passed, $failed failed"
	[ $failed = 0 ]
}

# Makes the work directory, with a copy of the sources.
prepare_work_dir() {
	local top
	top=$(dirname "$here")
	if [ $keep = yes ]; then
		reuse_work_dir test "$top"
		sync_sources "$top"
	else
		make_work_dir test
		copy_sources "$top"
	fi
	say "working in $work as user $run_user"
	as_user "$work" mkdir -p log
	rm -rf "$work/results"
	mkdir "$work/results"
}

# Makes what the servers of the tests start from, unless it is there.
make_templates() {
	[ ! -d "$ZKLOCK_TEST_TEMPLATES" ] || return 0
	prepare_perl 180 test/perl
	as_user "$work" perl "$work/src/test/templates.pl" >"$work/log/templates.log" 2>&1 ||
		{ cat "$work/tmp_check/log/regress_log_templates" >>"$work/log/templates.log"; return 1; }
}

# Makes a PostgreSQL with the extension.
build() {
	# Where tests that run at the same time tell each other their ports
	export PG_TEST_PORT_DIR=${TMPDIR:-/tmp}/zklock-ports-$run_user
	make_own_dir "$PG_TEST_PORT_DIR" 700
	copy_postgres
	say "building for $("$PG_CONFIG" --version), warnings are errors"
	export ZKLOCK_TEST_TEMPLATES=$work/templates
	make_templates &
	# Bitcode takes as long as all the rest, and no test needs it.
	build_and_install COPT=-Werror with_llvm=no ||
		count build 1 0 0 0 "$work/build.log"
	wait $! || count templates 1 0 0 0 "$work/log/templates.log"
}

main() {
	local layer missing
	[ "${ZKLOCK_SETUP:-yes}" = no ] || "$here/setup.sh"
	choose_user
	prepare_work_dir
	trap interrupt INT TERM
	make_cgroup
	case $layers in *makefile* | *regress* | *isolation* | *tap* | *chaos* | *tls* | *monitoring* | *patroni* | *valgrind*) build ;; esac
	for layer in $layers; do
		case $layer in
		makefile | regress | isolation | tap | chaos | tls | monitoring | patroni | valgrind) [ -z "${has_run[build]:-}" ] || continue ;;
		esac
		missing=$(lacks "$layer")
		if [ -n "$missing" ]; then
			has_run[$layer]=skipped
			say "$layer: skipped, because there is no $missing"
			continue
		fi
		add_layer "$layer"
	done
	run_jobs
	for layer in $layers; do
		if [ -z "${has_run[$layer]:-}" ] && [ -z "${has_run[build]:-}" ]; then
			echo "layer $layer ran nothing" >"$work/log/$layer.log"
			count "$layer" 1 0 0 0 "$work/log/$layer.log"
		fi
	done
	finish
}

# The shell reads a script as it runs it: this line is the last one that it
# reads, so the file can be edited during a run.
main; exit
