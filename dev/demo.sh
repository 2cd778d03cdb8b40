#!/usr/bin/env bash
# Shows zklock at work: one ZooKeeper, two PostgreSQL servers, one nightly job.
#
#	dev/demo.sh           shows it, and stops everything
#	dev/demo.sh --keep    leaves the servers running until Ctrl-C, and says how to
#	                      connect to them
#	dev/demo.sh --installed    shows the zklock that is installed, and does not
#	                      build one (PG_CONFIG or the newest version that has it)
#
# Installs missing packages first (ZKLOCK_SETUP=no: does not).  Everything else
# happens in a temporary directory, see lib.sh: PostgreSQL's sockets are there,
# ZooKeeper has a free port of the loopback interface.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=dev/lib.sh
. "$here/lib.sh"

keep=no
installed=no
bindir=
for option in "$@"; do
	case $option in
	--keep) keep=yes ;;
	--installed) installed=yes ;;
	*) die "usage: dev/demo.sh [--keep] [--installed]" ;;
	esac
done

# ---- what the story needs ----

title() {
	printf '\n== %s ==\n' "$*"
}

# Tenths of a second
now() {
	date +%s%1N
}

# The seconds since then
since() {
	local tenths=$(($(now) - $1))
	echo "$((tenths / 10)).$((tenths % 10))"
}

tell() {
	printf '[%4s s] %s\n' "$(since "$began")" "$*"
}

# Polls a command until it succeeds; the first argument says what for.
wait_until() {
	local what=$1 tries=0
	shift
	until "$@" >/dev/null 2>&1; do
		tries=$((tries + 1))
		[ $tries -lt 600 ] || die "this took too long: $what"
		sleep 0.1
	done
}

# Runs psql on a server; more arguments go to psql.
on() {
	local server=$1
	shift
	"$bindir/psql" -X -q -v ON_ERROR_STOP=1 -h "$work/$server" -U demo "$@" postgres
}

value() {
	on "$1" -A -t -c "$2"
}

is_true() {
	[ "$(value "$1" "$2")" = t ]
}

# ---- servers ----

# Sets bindir to the programs of a PostgreSQL that has zklock.
find_installed() {
	local dir
	if [ -n "${PG_CONFIG:-}" ]; then
		bindir=$("$PG_CONFIG" --bindir)
		return
	fi
	for dir in $(printf '%s\n' /usr/lib/postgresql/*/ | sort -V -r); do
		bindir=${dir}bin
		[ ! -x "$bindir/initdb" ] || [ ! -e "${dir}lib/zklock.so" ] || return 0
	done
	die "zklock is not installed for any version of PostgreSQL"
}

configure_zookeeper() {
	zookeeper=127.0.0.1:$(perl -MIO::Socket::INET -e \
		'print IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1")->sockport')
	as_user "$work" tee zoo.cfg >/dev/null <<-EOS
		tickTime=1000
		dataDir=$work/zookeeper
		clientPort=${zookeeper#*:}
		clientPortAddress=127.0.0.1
		admin.enableServer=false
	EOS
	as_user "$work" tee log4j.properties >/dev/null <<-EOS
		log4j.rootLogger=WARN, OUT
		log4j.appender.OUT=org.apache.log4j.ConsoleAppender
		log4j.appender.OUT.layout=org.apache.log4j.SimpleLayout
	EOS
}

start_zookeeper() {
	as_user "$work" sh -c 'echo $$ >zookeeper.pid
		exec java -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 \
			-cp .:/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-log4j12.jar:/usr/share/java/log4j-1.2.jar \
			org.apache.zookeeper.server.quorum.QuorumPeerMain zoo.cfg' \
		</dev/null >>"$work/zookeeper.log" 2>&1 &
}

stop_zookeeper() {
	[ ! -s "$work/zookeeper.pid" ] || kill -9 "$(cat "$work/zookeeper.pid")"
}

configure_postgres() {
	as_user "$work" "$bindir/initdb" -D "$1" -U demo -N -E UTF8 --no-locale -A trust >/dev/null
	as_user "$work" tee -a "$1/postgresql.conf" >/dev/null <<-EOS
		listen_addresses = ''
		unix_socket_directories = '$work/$1'
		fsync = off
		shared_preload_libraries = 'zklock'
		zklock.server_name = '$1'
		zklock.connect_string = '$zookeeper'
		zklock.session_timeout = '4s'
		zklock.tick_time = '1s'
		zklock.commit_wait = '1min'
	EOS
}

# Our own child, so that a server that is killed leaves no zombie as postmaster.
start_postgres() {
	as_user "$work" "$bindir/postgres" -D "$1" </dev/null >>"$work/$1.log" 2>&1 &
	wait_until "$1 takes connections" value "$1" "SELECT 1"
}

# Kills a server with all of its processes; some may just have ended by themselves.
kill_postgres() {
	local processes
	processes=$(value "$1" "SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()
		UNION ALL SELECT session_pid FROM zk_status")
	# shellcheck disable=SC2086
	kill -9 "$(head -n 1 "$work/$1/postmaster.pid")" $processes 2>/dev/null
}

prepare_server() {
	configure_postgres "$1"
	start_postgres "$1"
	on "$1" -c "CREATE EXTENSION zklock" -c "CREATE TABLE reports (written_at timestamptz DEFAULT now())"
	wait_until "$1 connects to ZooKeeper" is_true "$1" "SELECT state = 'connected' FROM zk_status"
}

stop_all() {
	local status=$? server
	trap - EXIT
	trap '' INT TERM PIPE
	set +e
	[ $status = 0 ] || [ $status = 130 ] || tail -n 10 "$work"/*.log 2>/dev/null
	stop_zookeeper
	for server in berlin paris; do
		as_user "$work" "$bindir/pg_ctl" -D "$server" -m immediate stop >/dev/null 2>&1
	done
	# The copy of PostgreSQL has so many files that nobody wants to wait for it.
	rm -rf "$work" &
	say "everything is stopped, $work is being removed"
	exit $status
}

# ---- the job ----

declare -A job	# the standard input of psql, by server

# Begins the job on a server, with the function that takes the lock; its work is a
# report, and lasts until commit_job.
begin_job() {
	local input
	exec {input}> >(on "$1" >/dev/null 2>&1)
	job_process=$!
	job[$1]=$input
	echo "BEGIN; SELECT $2('/nightly'); INSERT INTO reports DEFAULT VALUES;" >&"$input"
}

commit_job() {
	local input=${job[$1]}
	echo 'COMMIT; \q' >&"$input"
	exec {input}>&-
}

has_committed() {
	wait "$job_process" || die "the job could not commit"
}

count_reports() {
	value "$1" "SELECT count(*) FROM reports"
}

# Whether that server has the lock, or (second argument: 2) is the next one
has_place() {
	is_true paris "SELECT server = '$1' FROM zk_queue('/nightly') WHERE position = $2"
}

# ---- the story ----

story() {
	local killed stopped server
	local queue="SELECT position, server, mode, usename FROM zk_queue('/nightly')"
	began=$(now)
	title "The nightly job starts on both servers"
	begin_job berlin zk_try_xact_lock
	wait_until "berlin has the lock" has_place berlin 1
	tell "berlin: zk_try_xact_lock('/nightly') is true, it runs the job"
	tell "paris: zk_try_xact_lock('/nightly') is $(value paris "SELECT zk_try_xact_lock('/nightly')::text"), it skips the job"

	title "kill -9 for all processes of berlin, in the middle of the job"
	begin_job paris zk_xact_lock
	wait_until "paris waits" has_place paris 2
	tell "paris: waits in zk_xact_lock('/nightly')"
	kill_postgres berlin
	killed=$(now)
	tell "berlin: is dead"
	commit_job berlin
	wait_until "paris has the lock" has_place paris 1
	tell "paris: has the lock, $(since "$killed") s later, as the session timeout is 4 s"
	tell "paris: $queue"
	on paris -P footer=off -c "$queue" | sed '/^$/d; s/ *$//; s/^/           /'
	commit_job paris
	has_committed
	tell "paris: COMMIT, the job is done ($(count_reports paris) report)"
	start_postgres berlin
	tell "berlin: runs again, without the transaction that was under way ($(count_reports berlin) reports)"

	title "ZooKeeper stops under a commit"
	begin_job paris zk_xact_lock
	wait_until "paris has the lock" has_place paris 1
	stop_zookeeper
	tell "ZooKeeper: is dead, paris has the lock"
	wait_until "the lease ends" is_true paris "SELECT lease_remaining = '0' FROM zk_status"
	commit_job paris
	wait_until "the commit waits" is_true paris "SELECT count(*) = 1 FROM pg_stat_activity
		WHERE query = 'COMMIT;' AND state = 'active' AND wait_event_type = 'Extension'"
	stopped=$(now)
	tell "paris: COMMIT waits, as ZooKeeper does not confirm the lock"
	start_zookeeper
	tell "ZooKeeper: starts again"
	has_committed
	tell "paris: COMMIT, after $(since "$stopped") s ($(count_reports paris) reports)"

	title "Both servers want the summary, once a day"
	for server in berlin paris; do
		tell "$server: zk_once('/summary', '1 day') is $(value $server "SELECT zk_once('/summary', '1 day')::text")"
	done
}

main() {
	local server
	[ "${ZKLOCK_SETUP:-yes}" = no ] || [ $installed = yes ] || "$here/setup.sh" demo
	choose_user
	make_work_dir demo
	trap stop_all EXIT
	trap 'exit 130' INT TERM PIPE
	if [ $installed = yes ]; then
		find_installed
	else
		say "building zklock in $work"
		copy_sources "$(dirname "$here")"
		copy_postgres
		# Bitcode takes as long as all the rest, and the demo does not need it.
		build_and_install with_llvm=no
	fi
	say "starting ZooKeeper and two PostgreSQL servers, berlin and paris"
	configure_zookeeper
	start_zookeeper
	for server in berlin paris; do
		prepare_server $server
	done
	story
	if [ $keep = yes ]; then
		title "Try it yourself; Ctrl-C stops everything"
		for server in berlin paris; do
			echo "psql -h $work/$server -U demo postgres"
		done
		trap 'exit 0' INT TERM
		wait
	fi
}

main
