#!/usr/bin/env bash
# Builds the images of docker/, and uses them.
#
#	dev/containers.sh          builds and tests; prints TAP
#	dev/containers.sh --lacks  says what is missing for that, if anything is
#
# The base is this machine's release with its PostgreSQL, made by chroot.sh: no registry
# of images is asked.  Nothing is run in a container with namespaces of its own, which
# many machines forbid, but in folders (--isolation chroot): so all servers share the
# network of this machine.  What the official images add, their entry point, is not
# tested.  As root; "dev/setup.sh containers" installs what it needs.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=dev/lib.sh
. "$here/lib.sh"
# shellcheck source=dev/chroot.sh
. "$here/chroot.sh"

lacks() {
	local command
	chroot_lacks
	for command in podman buildah docker-compose python3; do
		command -v $command >/dev/null || echo "$command"
	done
	python3 -c 'import yaml' 2>/dev/null || echo "python3-yaml"
}

case "${1:-}" in
--lacks)
	lacks | paste -s -d ,
	exit
	;;
?*) die "usage: dev/containers.sh [--lacks]" ;;
esac

number=0
declare -A began=()	# jobs that run servers, by name; each has a log of that name

# One case: what it is, and a command.  If that fails, so would the others.
step() {
	local name=$1
	shift
	number=$((number + 1))
	# Not "if ... then": there, a failure within a function would be ignored.
	set +e
	(
		set -e
		"$@"
	) >"$work/log" 2>&1
	local status=$?
	set -e
	if [ $status = 0 ]; then
		echo "ok $number - $name"
		return
	fi
	echo "not ok $number - $name"
	tail -n 40 "$work/log" | sed 's/^/#   /'
	for server in "${!began[@]}"; do
		echo "# $server:"
		tail -n 10 "$work/$server.log" | sed 's/^/#   /'
	done
	exit 1
}

# The version of PostgreSQL that a release has.  Argument: what runs apt-cache there,
# if that is not this machine.
postgres_of_release() {
	"$@" apt-cache depends postgresql | sed -n 's/.*Depends: postgresql-\([0-9]*\)$/\1/p'
}

# ---- images ----

images() {
	local tool=$1
	shift
	"$tool" --root "$work/images" --runroot "$work/run" "$@"
}

open_release() {
	open_chroot "$1" >"$work/log" 2>&1 || die "no folder with a release: $(tail -n 5 "$work/log")"
}

# What a PostgreSQL image has: the server, its version in PG_MAJOR, its programs in PATH
make_base() {
	local name=$1 major=$2
	install_in_chroot "postgresql-$major"
	tar -C "$chroot" --exclude=./proc/* --exclude=./dev/* --exclude=./var/cache/apt/archives/* -c . |
		images podman import --change "ENV PG_MAJOR=$major" \
			--change "ENV PATH=/usr/lib/postgresql/$major/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" \
			- "localhost/$name"
}

build() {
	images podman build --isolation chroot --format docker --layers=false "$@"
}

build_zookeeper() {
	build -t localhost/zookeeper - <<-'EOF'
		FROM localhost/base
		RUN apt-get update && apt-get install -y --no-install-recommends zookeeper
	EOF
}

# ---- containers ----

free_port() {
	python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

make_containers() {
	images buildah from --name zookeeper localhost/zookeeper
	images buildah from --name berlin localhost/zklock
	images buildah from --name paris localhost/zklock
}

# Runs a command in a container, as a user of it.
within() {
	local container=$1 user=$2
	shift 2
	images buildah run --isolation chroot --user "$user" "$container" -- "$@"
}

# Starts a server.  Arguments: its name, and a command with as_server in front of what
# is the server.
begin() {
	local name=$1
	shift
	"$@" >"$work/$name.log" 2>&1 &
	began[$name]=$!
}

# Tells the number of the process, which no namespace changes, in a line of its own.
# shellcheck disable=SC2016
as_server=(sh -c 'echo $$; exec "$@"' sh)

# Ends a server, and waits for its job.  PostgreSQL waits for its clients at the first
# signal, and not at the second one; ZooKeeper needs but one.
stop() {
	local job=${began[$1]} process='' signal tries=0
	while kill -0 "$job" 2>/dev/null; do
		if [ -z "$process" ]; then
			process=$(sed -n '/^[0-9][0-9]*$/ { p; q }' "$work/$1.log")
			for signal in ${process:+TERM INT}; do
				kill "-$signal" "$process"
			done
		fi
		tries=$((tries + 1))
		[ "$tries" != 150 ] || kill -KILL "${process:-$job}"
		sleep 0.1
	done 2>/dev/null
}

clean_up_containers() {
	local status=$?
	trap - EXIT
	trap '' INT TERM
	set +e
	for server in "${!began[@]}"; do
		stop "$server"
	done
	images buildah rm --all >/dev/null 2>&1
	close_chroot
	rm -rf "${work:?}"
	exit "$status"
}

configure_zookeeper() {
	within zookeeper root sh -c "mkdir -p /tmp/zk && printf '%s\n' tickTime=500 dataDir=/tmp/zk \
		clientPort=$zk_port clientPortAddress=127.0.0.1 admin.enableServer=false >/tmp/zoo.cfg"
}

# The command of a service in the compose file, an argument on each line
command_of() {
	docker-compose -f "$here/../docker/compose.yaml" config |
		python3 -c 'import sys, yaml
print("\n".join(yaml.safe_load(sys.stdin)["services"][sys.argv[1]]["command"]))' "$1"
}

init_server() {
	within "$1" postgres initdb -A trust -U postgres -D /tmp/data
}

# What the file says, but for the addresses, which are those of other networks
start_server() {
	local name=$1 port=$2
	local -a command
	mapfile -t command < <(command_of "$name")
	begin "$name" within "$name" postgres "${as_server[@]}" "${command[@]}" -D /tmp/data -c port="$port" \
		-c listen_addresses=127.0.0.1 -c unix_socket_directories=/tmp \
		-c "zklock.connect_string=127.0.0.1:$zk_port"
}

# Each image is built for one service: parallel builds of one name would fail.
builds_once() {
	docker-compose -f "$here/../docker/$1" config |
		python3 -c 'import sys, yaml
services = yaml.safe_load(sys.stdin)["services"].values()
built = [service["image"] for service in services if "build" in service]
print(built)
sys.exit(built != ["zklock"])'
}

# Polls a command until it succeeds.
wait_until() {
	local tries=0
	until "$@" >/dev/null 2>&1; do
		tries=$((tries + 1))
		[ "$tries" -lt 300 ] || return 1
		sleep 0.2
	done
}

sql() {
	within "$1" postgres psql -X -A -t -h 127.0.0.1 -p "$2" -U postgres -c "$3"
}

extensions_are_there() {
	wait_until sql "$1" "$2" 'SELECT 1'
	sql "$1" "$2" "$(cat "$work/src/docker/create-extension.sql")"
	sql "$1" "$2" 'CREATE EXTENSION zklock_advisory'
}

is_connected() {
	[ "$(sql "$1" "$2" 'SELECT state FROM zk_status')" = connected ]
}

job_runs_once() {
	within berlin postgres nightly-job.sh \
		"host=127.0.0.1 port=$berlin user=postgres" "host=127.0.0.1 port=$paris user=postgres" \
		>"$work/job"
	cat "$work/job"
	[ "$(grep -c '^t|run by server' "$work/job")" = 1 ]
	[ "$(grep -c '^f|skipped: server' "$work/job")" = 1 ]
}

# While a program of one image has a lock, the server of another one does not get it.
programs_exclude() {
	local got
	got=$(within berlin postgres zklock-run -h 127.0.0.1 -p "$berlin" -U postgres /a -- \
		psql -X -A -t -h 127.0.0.1 -p "$paris" -U postgres -c "SELECT zk_try_lock('/a')")
	[ "$got" = f ]
	[ "$(sql paris "$paris" "SELECT zk_try_lock('/a', '30s')")" = t ]
}

# ---- the image volume ----

volume=/extensions/zklock	# where CloudNativePG mounts it

as_postgres() {
	in_chroot setpriv --reuid postgres --regid postgres --init-groups "$@"
}

# Elsewhere in the folder there is nothing of zklock, nor ZooKeeper's library.
add_volume() {
	local major=$1 container
	container=$(images buildah from localhost/extension)
	mkdir -p "$chroot$volume"
	cp -a "$(images buildah mount "$container")/." "$chroot$volume/"
	ls -R "$chroot$volume"
	! find "$chroot/usr" -name '*zklock*' -o -name '*libzookeeper*' | grep . || return 1
	as_postgres "/usr/lib/postgresql/$major/bin/initdb" -A trust -U postgres -D /tmp/data
}

# With the settings that CloudNativePG makes of a volume
start_with_volume() {
	begin rome as_postgres "${as_server[@]}" "/usr/lib/postgresql/$1/bin/postgres" -D /tmp/data \
		-c port="$rome" -c listen_addresses=127.0.0.1 -c unix_socket_directories=/tmp \
		-c "extension_control_path=\$system:$volume/share" \
		-c "dynamic_library_path=\$libdir:$volume/lib" \
		-c shared_preload_libraries=zklock -c zklock.server_name=rome \
		-c "zklock.connect_string=127.0.0.1:$zk_port"
}

# It has its session process and ZooKeeper's library from there, too.
volume_works() {
	local session
	extensions_are_there berlin "$rome"
	wait_until is_connected berlin "$rome"
	session=$(sql berlin "$rome" 'SELECT session_pid FROM zk_status')
	[ "$(readlink "/proc/$session/exe")" = "$chroot$volume/lib/zklock_session" ]
	grep -F "$chroot$volume/lib/libzookeeper_st.so.2" "/proc/$session/maps"
}

volume_excludes() {
	sql berlin "$berlin" "SELECT zk_reserve('/v', '1 min')"
	[ "$(sql berlin "$rome" "SELECT zk_try_lock('/v')")" = f ]
	[ "$(sql berlin "$rome" "SELECT zk_try_lock('/w')")" = t ]
}

main() {
	local missing major server file
	missing=$(lacks | paste -s -d ,)
	[ -z "$missing" ] || die "there is no $missing"
	choose_user
	make_work_dir containers
	trap clean_up_containers EXIT
	trap 'exit 130' INT TERM
	for file in compose.yaml ensemble.yaml; do
		step "docker-compose accepts $file" docker-compose -f "$here/../docker/$file" config -q
		step "$file builds one image, once" builds_once "$file"
	done
	copy_sources "$(dirname "$here")"
	open_release "$(this_release)"
	major=$(postgres_of_release)
	step "a base is made of this release and PostgreSQL $major" make_base base "$major"
	close_chroot
	step "the image is built" build --build-arg BASE=localhost/base -f "$work/src/docker/Dockerfile" -t localhost/zklock "$work/src"
	step "an image of ZooKeeper is built" build_zookeeper
	step "containers are made of the images" make_containers
	zk_port=$(free_port)
	step "ZooKeeper is configured" configure_zookeeper
	begin zookeeper within zookeeper root "${as_server[@]}" \
		/usr/share/zookeeper/bin/zkServer.sh start-foreground /tmp/zoo.cfg
	berlin=$(free_port)
	paris=$(free_port)
	for server in berlin paris; do
		step "$server has a database" init_server $server
		start_server $server "${!server}"
		step "$server has the extensions" extensions_are_there $server "${!server}"
	done
	step "one of the servers runs the job, the other one skips it" job_runs_once
	step "a program under a lock of one server excludes the other one" programs_exclude
	open_release sid
	major=$(postgres_of_release in_chroot)
	step "a base is made of sid and PostgreSQL $major" make_base sid "$major"
	step "the image volume is built" build --build-arg BASE=localhost/sid \
		-f "$work/src/docker/Dockerfile" --target extension -t localhost/extension "$work/src"
	step "the volume is added to a server without zklock" add_volume "$major"
	rome=$(free_port)
	start_with_volume "$major"
	step "the server finds extensions, session program and library in the volume" volume_works
	step "the server and one of the other image exclude each other" volume_excludes
	echo "1..$number"
}

# One line, so that the file can be edited during a run: see test.sh
main; exit
