#!/usr/bin/env bash
# Shows zklock at work: one ZooKeeper, two PostgreSQL servers, one nightly job.
#
#	dev/demo.sh           shows it and cleans up
#	dev/demo.sh --keep    leaves the servers running, and says how to use them
#	dev/demo.sh --installed    shows the zklock that is installed, and does not
#	                      build one (PG_CONFIG or the newest version that has it)
#
# Installs missing packages first (ZKLOCK_SETUP=no: does not).  Everything else
# happens in a temporary directory, on free ports of the loopback interface, see
# lib.sh.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=dev/lib.sh
. "$here/lib.sh"

keep=no
installed=no
for option in "$@"; do
	case $option in
	--keep) keep=yes ;;
	--installed) installed=yes ;;
	*) die "usage: dev/demo.sh [--keep] [--installed]" ;;
	esac
done

servers="berlin paris"
declare -A port

title() {
	printf '\n== %s ==\n' "$*"
}

free_port() {
	perl -MIO::Socket::INET -e \
		'print IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1")->sockport'
}

# Polls a command until it succeeds; the first argument says what for.
wait_until() {
	local what=$1 tries=0
	shift
	until "$@" >/dev/null 2>&1; do
		tries=$((tries + 1))
		[ $tries -lt 600 ] || die "this took too long: $what (logs are in $work)"
		sleep 0.1
	done
}

# Builds zklock, and installs it into a copy of PostgreSQL.
build_zklock() {
	say "building zklock in $work"
	copy_sources "$(dirname "$here")"
	copy_postgres
	# Bitcode takes as long as all the rest, and the demo does not need it.
	build_and_install with_llvm=no
}

# Sets bindir to the programs of a PostgreSQL that has zklock.
use_installed() {
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

# Runs psql on a server; more arguments go to psql.
on() {
	local server=$1
	shift
	PGPASSFILE=$work/pgpass "$bindir/psql" -X -q -v ON_ERROR_STOP=1 \
		-h 127.0.0.1 -p "${port[$server]}" -U demo -d postgres "$@"
}

value() {
	on "$1" -A -t -c "$2"
}

is_true() {
	[ "$(value "$1" "$2")" = t ]
}

# A server that is just starting may take a connection and never answer.
zookeeper_serves() {
	timeout 1 bash -c \
		"exec 3<>/dev/tcp/127.0.0.1/$zk_port; echo srvr >&3; grep -q ^Mode: <&3"
}

# A script that ends everything, by process id, and removes the directory.
write_stop_script() {
	cat >"$work/stop" <<-EOS
		#!/bin/sh
		# Stops what dev/demo.sh started, and removes it.
		stop() {
		    [ -f "\$1" ] || return 0
		    pid=\$(head -n 1 "\$1")
		    kill -"\$2" "\$pid" 2>/dev/null || return 0
		    n=0
		    while kill -0 "\$pid" 2>/dev/null && [ \$n -lt 300 ]; do sleep 0.1; n=\$((n + 1)); done
		    kill -KILL "\$pid" 2>/dev/null
		    return 0
		}
		for server in $servers; do stop "$work/\$server/postmaster.pid" INT; done
		stop "$work/zookeeper.pid" TERM
		rm -rf "$work"
	EOS
	chmod 755 "$work/stop"
}

start_zookeeper() {
	zk_port=$(free_port)
	as_user "$work" mkdir zookeeper
	as_user "$work" tee zookeeper/zoo.cfg >/dev/null <<-EOS
		tickTime=1000
		dataDir=$work/zookeeper/data
		clientPort=$zk_port
		clientPortAddress=127.0.0.1
		admin.enableServer=false
	EOS
	as_user "$work" tee zookeeper/log4j.properties >/dev/null <<-EOS
		log4j.rootLogger=WARN, OUT
		log4j.appender.OUT=org.apache.log4j.ConsoleAppender
		log4j.appender.OUT.layout=org.apache.log4j.SimpleLayout
	EOS
	as_user "$work" setsid sh -c 'echo $$ >zookeeper.pid
		exec java -Xmx256m -XX:+UseSerialGC -cp "zookeeper:/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-log4j12.jar:/usr/share/java/log4j-1.2.jar" \
			org.apache.zookeeper.server.quorum.QuorumPeerMain zookeeper/zoo.cfg' \
		</dev/null >"$work/zookeeper.log" 2>&1 &
	wait_until "ZooKeeper starts" zookeeper_serves
}

start_postgres() {
	local server=$1
	port[$server]=$(free_port)
	as_user "$work" "$bindir/initdb" -D "$server" -U demo -N -E UTF8 --no-locale \
		-A scram-sha-256 --pwfile=password >/dev/null
	as_user "$work" tee -a "$server/postgresql.conf" >/dev/null <<-EOS
		port = ${port[$server]}
		listen_addresses = '127.0.0.1'
		unix_socket_directories = ''
		fsync = off
		shared_preload_libraries = 'zklock'
		zklock.server_name = '$server'
		zklock.connect_string = '127.0.0.1:$zk_port'
		zklock.session_timeout = '4s'
		zklock.tick_time = '1s'
	EOS
	as_user "$work" "$bindir/pg_ctl" -D "$server" -l "$work/$server.log" -w start >/dev/null ||
		die "$server did not start, see $work/$server.log"
	on "$server" -c 'CREATE EXTENSION zklock'
	wait_until "$server connects to ZooKeeper" \
		is_true "$server" "SELECT state = 'connected' FROM zk_status"
}

# The job that skips: only one of all servers shall do it.
skipping_job() {
	cat <<-'EOS'
		BEGIN;
		SELECT zk_try_xact_lock('/batch/nightly') AS mine,
		       zk_fencing_token('/batch/nightly') AS token \gset
		\if :mine
		    SELECT pg_sleep(1) \g /dev/null
		    \echo '   ' :server ': RAN the job, with fencing token' :token
		\else
		    \echo '   ' :server ': SKIPPED it, another server runs it'
		\endif
		COMMIT;
	EOS
}

# The job that waits: all do it, one after the other.
waiting_job() {
	cat <<-'EOS'
		\set ON_ERROR_STOP off
		SELECT clock_timestamp() AS asked \gset
		SELECT zk_lock('/batch/import') AS token \gset
		SELECT round(extract(epoch FROM clock_timestamp() - :'asked'), 3) AS waited \gset
		\echo '   ' :server ': WAITED' :waited 's, runs now with fencing token' :token
		SELECT pg_sleep(:seconds) \g /dev/null
		SELECT zk_unlock('/batch/import') \g /dev/null
	EOS
}

jobs=()

# Starts a job in the background: which, on which server, its name, seconds.
start_job() {
	"$1" | on "$2" -A -t -v server="$3" -v seconds="${4:-1}" &
	jobs+=($!)
}

wait_for_jobs() {
	wait "${jobs[@]}" || true
	jobs=()
}

show_queue() {
	on "$1" -P footer=off -c "SELECT position, granted, server, pid, mode,
			date_trunc('second', requested_at) AS since
		FROM zk_queue('/batch/import')" | sed 's/^./    &/'
}

queue_is() {
	is_true berlin "SELECT count(*) = $1 FROM zk_queue('/batch/import')"
}

# Ends the job of the session that holds a lock; its next statement is zk_unlock().
end_job() {
	is_true "$1" "SELECT bool_or(pg_cancel_backend(pid))
		FROM zk_locks JOIN pg_stat_activity USING (pid)
		WHERE zk_locks.state = 'granted' AND wait_event = 'PgSleep'"
}

cleanup() {
	local status=$?
	trap - EXIT
	trap '' INT TERM PIPE
	set +e
	if [ $status = 0 ] && [ $keep = yes ]; then
		return
	fi
	case $status in
	0) ;;
	130) say "interrupted" ;;
	*)
		say "stopping, because something went wrong"
		tail -n 10 "${work:-/nowhere}"/{zookeeper,berlin,paris}.log 2>/dev/null
		;;
	esac
	if [ -n "${work:-}" ] && [ -x "$work/stop" ]; then
		"$work/stop"
	elif [ -n "${work:-}" ]; then
		rm -rf "$work"
	fi
	say "everything is stopped and removed"
	exit $status
}

title "Getting ready"
[ "${ZKLOCK_SETUP:-yes}" = no ] || [ $installed = yes ] || "$here/setup.sh"
choose_user
trap cleanup EXIT
trap 'exit 130' INT TERM PIPE
make_work_dir demo
write_stop_script
if [ $installed = yes ]; then
	use_installed
	say "using $("$bindir/postgres" --version) in $bindir"
else
	build_zklock
fi
password=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
(umask 077 && echo "$password" >"$work/password" && echo "127.0.0.1:*:*:demo:$password" >"$work/pgpass")
[ "$(id -u)" != 0 ] || chown "$run_user" "$work/password"
say "starting one ZooKeeper"
start_zookeeper
for server in $servers; do
	say "starting PostgreSQL server \"$server\""
	start_postgres "$server"
done
for server in $servers; do
	printf '    %-10s PostgreSQL on 127.0.0.1:%s, ZooKeeper session %s\n' "$server" \
		"${port[$server]}" "$(value "$server" 'SELECT session_id FROM zk_status')"
done

title "The nightly job starts on both servers at the same moment"
echo "It asks zk_try_xact_lock('/batch/nightly') and skips when another has it:"
start_job skipping_job berlin berlin
start_job skipping_job paris paris
wait_for_jobs

title "A job that may not be skipped waits for its turn"
echo "Three sessions call zk_lock('/batch/import'); all three want to run:"
start_job waiting_job berlin 'berlin, first session' 1000 2>/dev/null
wait_until "the first session holds the lock" queue_is 1
start_job waiting_job paris 'paris, its session' 1
wait_until "the second session waits" queue_is 2
start_job waiting_job berlin 'berlin, second session' 1
wait_until "the third session waits" queue_is 3
echo
echo "    The queue meanwhile, as zk_queue('/batch/import') shows it on paris:"
show_queue paris
wait_until "the first session ends its job" end_job berlin
wait_for_jobs
echo
echo "    First come, first served over both servers.  The fencing tokens grow"
echo "    with each grant: a system that remembers the largest one it has seen"
echo "    can refuse whoever comes late with an older one."

title "The holder dies in the middle of its job"
start_job waiting_job berlin berlin 1000 2>/dev/null
wait_until "berlin holds the lock" queue_is 1
start_job waiting_job paris paris 0
wait_until "paris waits" queue_is 2
echo "    berlin holds the lock, paris waits; now berlin's session is killed:"
value berlin "SELECT pg_terminate_backend(pid) FROM zk_locks WHERE state = 'granted'" >/dev/null
wait_for_jobs

title "What each server says of itself"
for server in $servers; do
	on "$server" -x -c "SELECT * FROM zk_status" | sed 's/^./    &/'
done

if [ $keep = yes ]; then
	title "Try it yourself: two terminals, one server each"
	for server in $servers; do
		printf "    %-8s psql 'host=127.0.0.1 port=%s user=demo dbname=postgres passfile=%s'\n" \
			"$server" "${port[$server]}" "$work/pgpass"
	done
	echo
	echo "    SELECT zk_lock('/batch/nightly');        -- on both: the second one waits"
	echo "    SELECT * FROM zk_queue('/batch/nightly');"
	echo "    SELECT zk_unlock('/batch/nightly');"
	echo
	echo "To stop it all and remove it:  $work/stop"
else
	title "Done"
fi
