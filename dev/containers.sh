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
began=()	# processes that we have started

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
	exit 1
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

# Starts a server in a container; whatever runs in it ends with this script.
begin() {
	within "$@" >"$work/$1.log" 2>&1 &
	began+=($!)
}

stop_all() {
	local container process root
	for container in zookeeper berlin paris; do
		root=$(images buildah mount "$container" 2>/dev/null) || continue
		for process in /proc/[0-9]*; do
			[ "$(readlink "$process/root")" != "$root" ] || kill -KILL "${process#/proc/}" || true
		done
	done
	[ ${#began[@]} = 0 ] || kill "${began[@]}" 2>/dev/null || true
	images buildah rm --all >/dev/null 2>&1 || true
}

clean_up_containers() {
	local status=$?
	trap - EXIT
	set +e
	stop_all
	close_chroot
	rm -rf "${work:?}"
	exit "$status"
}

start_zookeeper() {
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
	begin "$name" postgres "${command[@]}" -D /tmp/data -c port="$port" \
		-c listen_addresses=127.0.0.1 -c unix_socket_directories=/tmp \
		-c "zklock.connect_string=127.0.0.1:$zk_port"
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

extension_is_there() {
	wait_until sql "$1" "$2" 'SELECT 1'
	sql "$1" "$2" 'CREATE EXTENSION zklock'
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

volume_major=18		# extension_control_path came with it
volume=/extensions/zklock

as_postgres() {
	in_chroot setpriv --reuid postgres --regid postgres --init-groups "$@"
}

# To where CloudNativePG mounts it; elsewhere in the folder nothing is of zklock.
add_volume() {
	local container
	container=$(images buildah from localhost/extension)
	mkdir -p "$chroot$volume"
	cp -a "$(images buildah mount "$container")/." "$chroot$volume/"
	ls -R "$chroot$volume"
	! find "$chroot/usr" -name '*zklock*' | grep . || return 1
	as_postgres "/usr/lib/postgresql/$volume_major/bin/initdb" -A trust -U postgres -D /tmp/data
}

# The settings that CloudNativePG makes of a volume
start_with_volume() {
	as_postgres env LD_LIBRARY_PATH=$volume/lib "/usr/lib/postgresql/$volume_major/bin/postgres" -D /tmp/data \
		-c port="$rome" -c listen_addresses=127.0.0.1 -c unix_socket_directories=/tmp \
		-c "extension_control_path=$volume/share:\$system" \
		-c "dynamic_library_path=$volume/lib:\$libdir" \
		-c shared_preload_libraries=zklock -c zklock.server_name=rome \
		-c "zklock.connect_string=127.0.0.1:$zk_port" >"$work/rome.log" 2>&1 &
	began+=($!)
}

volume_works() {
	wait_until sql berlin "$rome" 'SELECT 1' || { tail "$work/rome.log"; return 1; }
	sql berlin "$rome" 'CREATE EXTENSION zklock'
	sql berlin "$berlin" "SELECT zk_reserve('/v', '1 min')"
	[ "$(sql berlin "$rome" "SELECT zk_try_lock('/v', '30s')")" = f ]
	[ "$(sql berlin "$rome" "SELECT zk_try_lock('/w', '30s')")" = t ]
}

main() {
	local missing major
	missing=$(lacks | paste -s -d ,)
	[ -z "$missing" ] || die "there is no $missing"
	choose_user
	make_work_dir containers
	trap clean_up_containers EXIT
	trap 'exit 130' INT TERM
	zk_port=$(free_port)
	berlin=$(free_port)
	paris=$(free_port)
	rome=$(free_port)
	major=$(apt-cache depends postgresql | sed -n 's/.*Depends: postgresql-\([0-9]*\)$/\1/p' | head -n 1)
	step "docker-compose accepts the compose file" docker-compose -f "$here/../docker/compose.yaml" config -q
	copy_sources "$(dirname "$here")"
	open_release "$(this_release)"
	step "a base of this release, with PostgreSQL $major" make_base base "$major"
	close_chroot
	step "the image is built" build --build-arg BASE=localhost/base -f "$work/src/docker/Dockerfile" -t localhost/zklock "$work/src"
	step "one of ZooKeeper, too" build_zookeeper
	step "containers of them" make_containers
	step "ZooKeeper is set up" start_zookeeper
	begin zookeeper root /usr/share/zookeeper/bin/zkServer.sh start-foreground /tmp/zoo.cfg
	for server in berlin paris; do
		step "$server: a database" init_server $server
		start_server $server "${!server}"
		step "$server: its extension" extension_is_there $server "${!server}"
	done
	step "of two servers one runs the job" job_runs_once
	step "and a program has a lock of both" programs_exclude
	open_release sid
	step "a base of sid, with PostgreSQL $volume_major" make_base sid "$volume_major"
	step "the image volume is built" build --build-arg BASE=localhost/sid \
		-f "$work/src/docker/Dockerfile" --target extension -t localhost/extension "$work/src"
	step "it is added to a server" add_volume
	start_with_volume
	step "which finds all in it" volume_works
	echo "1..$number"
}

# One line, so that the file can be edited during a run: see test.sh
main; exit
