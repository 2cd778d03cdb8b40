#!/usr/bin/env bash
# Installs with apt-get what building and testing zklock needs, and is quick
# and silent about what is already there.  Run as root, or as a user who may
# use sudo.  No server of the system is started for it, now or when it boots, and
# the system's PostgreSQL will create a cluster as ever.
#
#	dev/setup.sh          to build and to test
#	dev/setup.sh demo     for dev/demo.sh, and no more than that
#	dev/setup.sh bench    for "make bench", too: gnuplot, etcd, Go
#	dev/setup.sh tools    for "dev/test.sh tools", "dev/test.sh valgrind" and "make
#	                      lint", too: clang-tidy, valgrind
#	dev/setup.sh fuzz     for "make fuzz", too: clang with libFuzzer
#	dev/setup.sh containers	for "dev/test.sh containers", too: podman, buildah
#	dev/setup.sh monitoring	for "dev/test.sh monitoring", too: Prometheus
#	dev/setup.sh patroni  for "dev/test.sh patroni", too: Patroni
#	dev/setup.sh sqitch   for one case of the test of migration tools, too
#
# Several of these words may be given.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=dev/lib.sh
. "$here/lib.sh"

installed() {
	[ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

missing_of() {
	local package
	for package in "$@"; do
		installed "$package" || printf '%s ' "$package"
	done
}

# The PostgreSQL version to use: the newest with server headers here, else the
# distribution's own.
postgres_version() {
	local config version=
	config=$(find_pg_config || true)
	if [ -n "$config" ]; then
		version=$("$config" --version | sed 's/[^0-9]*\([0-9]*\).*/\1/')
	else
		version=$(apt-cache depends postgresql 2>/dev/null |
			sed -n 's/.*Depends: postgresql-\([0-9]*\)$/\1/p' | head -n 1)
	fi
	echo "${version:-15}"
}

# Of the distribution's own clang
clang_version() {
	apt-cache depends clang 2>/dev/null | sed -n 's/.*Depends: clang-\([0-9]*\)$/\1/p' |
		head -n 1
}

if ! command -v apt-get >/dev/null; then
	say "no apt-get here: install PostgreSQL with its server headers, the"
	say "ZooKeeper server, its single-threaded C client and kazoo by hand"
	exit 0
fi

# To build, and to run servers
common=(gcc make libc6-dev perl libzookeeper-st-dev libssl-dev pkg-config zookeeper
	default-jre-headless procps util-linux)
# For the layout only, and not in every release
common_if_known=()

for_tests() {
	common+=(git libipc-run-perl openssl libnetty-java default-jdk-headless libcurator-recipes-java
		python3 python3-kazoo python3-yaml python3-psycopg python3-psycopg2 ruby-activerecord ruby-pg
		libpostgresql-jdbc-java libfaketime pgbouncer spin rsync perltidy shellcheck debootstrap tini)
	common_if_known+=(pg-bsd-indent)
	# They may have come in another way.
	command -v npm >/dev/null || common+=(nodejs npm)
	command -v systemd-analyze >/dev/null || common+=(systemd)
}

only_demo=no
if [ "$*" = demo ]; then
	only_demo=yes
else
	for_tests
fi

for purpose; do
	case "$purpose" in
	demo) ;;
	bench)
		common+=(gnuplot-nox iproute2)
		common_if_known+=(etcd-server etcd-client golang-go golang-etcd-server-dev)
		;;
	patroni) common+=(patroni) ;;
	sqitch) common+=(sqitch) ;;
	tools) common+=(clang-tidy git valgrind) ;;
	fuzz)
		common+=(clang)
		common_if_known+=("libclang-rt-$(clang_version)-dev")
		;;
	containers) common+=(podman buildah docker-compose) ;;
	monitoring) common+=(prometheus prometheus-postgres-exporter) ;;
	*) die "usage: dev/setup.sh [demo|bench|tools|fuzz|containers|monitoring|patroni|sqitch] ..." ;;
	esac
done

known_of() {
	local package
	for package in "$@"; do
		! apt-cache show "$package" >/dev/null 2>&1 || printf '%s ' "$package"
	done
}

# The server, its headers and, if they are packaged for it, what tests need of it
packages_of() {
	echo "postgresql-$1" "postgresql-server-dev-$1"
	[ $only_demo = yes ] || known_of "postgresql-$1-cron" "postgresql-plperl-$1"
}

# Is anything missing but the server, whose name is not known before the
# package lists are there?
# shellcheck disable=SC2046
missing=$(missing_of "${common[@]}" $(known_of "${common_if_known[@]}"))
if [ -z "$missing" ] && find_pg_config >/dev/null; then
	version=$(postgres_version)
	# shellcheck disable=SC2046
	missing=$(missing_of $(packages_of "$version"))
	if [ -z "$missing" ]; then
		say "all packages are installed"
		exit 0
	fi
fi

say "updating the package lists (apt-get update)"
as_root env DEBIAN_FRONTEND=noninteractive apt-get -q update >/dev/null
version=$(postgres_version)

# ---- no server starts ----

cluster_conf=/etc/postgresql-common/createcluster.conf
policy=/usr/sbin/policy-rc.d
services=(pgbouncer prometheus prometheus-postgres-exporter patroni etcd-server)	# packages
undo=()	# functions

# A package of PostgreSQL would create a database cluster.
forbid_cluster() {
	undo+=(allow_cluster)
	as_root mkdir -p "${cluster_conf%/*}"
	[ ! -e $cluster_conf ] || as_root cp -p $cluster_conf $cluster_conf.before
	echo 'create_main_cluster = false' | as_root tee $cluster_conf >/dev/null
}

# The file is as it was, or as the package would have made it.
allow_cluster() {
	local original=$cluster_conf.before
	if [ -e $original ]; then
		as_root mv $original $cluster_conf
		return
	fi
	as_root rm -f $cluster_conf $cluster_conf.ucf-dist
	original=/usr/share/postgresql-common/${cluster_conf##*/}
	[ ! -e "$original" ] || as_root cp "$original" $cluster_conf
}

# Packages start their servers, and have them start at each boot.
forbid_servers() {
	local service
	for service in "${services[@]}"; do
		installed "$service" || new_services+=("$service")
	done
	undo+=(disable_servers)
	[ ! -e $policy ] || return 0
	undo+=(allow_servers)
	printf '#!/bin/sh\nexit 101\n' | as_root tee $policy >/dev/null
	as_root chmod 755 $policy
}

allow_servers() {
	as_root rm -f $policy
}

disable_servers() {
	local service
	command -v systemctl >/dev/null || return 0
	for service in "${new_services[@]}"; do
		! installed "$service" || as_root systemctl --quiet disable "${service%-server}" 2>/dev/null || true
	done
}

undo_all() {
	local status=$? function
	trap - EXIT
	set +e
	for function in "${undo[@]}"; do
		$function
	done
	exit "$status"
}

new_services=()
trap undo_all EXIT
trap 'exit 130' INT TERM
forbid_cluster
forbid_servers

# shellcheck disable=SC2046
missing=$(missing_of "${common[@]}" $(known_of "${common_if_known[@]}") \
	$(packages_of "$version"))
say "installing: $missing"
# shellcheck disable=SC2086
as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y \
	-o Dpkg::Options::=--force-confold -o Dpkg::Use-Pty=0 \
	install --no-install-recommends $missing 2>&1 |
	awk '/ upgraded, .* newly installed/ { all = 2 * ($1 + $3) }
		/^(Unpacking|Setting up) / && ++n % 40 == 0 && n < all { print "... " n " of " all " steps done"; fflush() }
		/^(E:|Err:|dpkg: error)/ { print; fflush() }'
say "all packages are installed"
