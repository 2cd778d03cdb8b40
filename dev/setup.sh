#!/usr/bin/env bash
# Installs with apt-get what building and testing zklock needs, and is quick
# and silent about what is already there.  Run as root, or as a user who may
# use sudo.  No server of the system is started for it.
#
#	dev/setup.sh          to build and to test
#	dev/setup.sh bench    for "make bench", too: gnuplot, etcd, Go.  etcd's package
#	                      starts a server, unless the system forbids it.
#	dev/setup.sh tools    for "dev/test.sh tools", "dev/test.sh valgrind" and "make
#	                      lint", too: clang-tidy, valgrind
#	dev/setup.sh fuzz     for "make fuzz", too: clang with libFuzzer
#	dev/setup.sh package  for dev/package.sh and dev/matrix.sh, too
#	dev/setup.sh containers	for "dev/test.sh containers", too: podman, buildah
#	dev/setup.sh monitoring	for "dev/test.sh monitoring", too: Prometheus.  Its
#	                      packages start servers, unless the system forbids it.
#	dev/setup.sh patroni  for "dev/test.sh patroni", too: Patroni
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

common=(gcc make libc6-dev perl libipc-run-perl libzookeeper-st-dev
	libssl-dev openssl pkg-config libnetty-java
	zookeeper default-jdk-headless libcurator-recipes-java python3
	python3-kazoo python3-psycopg python3-psycopg2 ruby-activerecord ruby-pg
	libpostgresql-jdbc-java libfaketime pgbouncer procps util-linux rsync perltidy shellcheck debootstrap tini)
# They may have come in another way.
command -v npm >/dev/null || common+=(nodejs npm)
command -v systemd-analyze >/dev/null || common+=(systemd)
# For the layout only, and not in every release
common_if_known=(pg-bsd-indent)

for purpose; do
	case "$purpose" in
	bench)
		common+=(gnuplot-nox iproute2)
		common_if_known+=(etcd-server etcd-client golang-go golang-etcd-server-dev)
		;;
	patroni) common+=(patroni python3-yaml) ;;
	tools) common+=(clang-tidy git valgrind) ;;
	fuzz)
		common+=(clang)
		common_if_known+=("libclang-rt-$(clang_version)-dev")
		;;
	package) common+=(build-essential debhelper lintian postgresql-server-dev-all rpm) ;;
	containers) common+=(podman buildah docker-compose python3-yaml) ;;
	monitoring) common+=(prometheus prometheus-postgres-exporter) ;;
	*) die "usage: dev/setup.sh [bench|tools|fuzz|package|containers|monitoring|patroni] ..." ;;
	esac
done

known_of() {
	local package
	for package in "$@"; do
		! apt-cache show "$package" >/dev/null 2>&1 || printf '%s ' "$package"
	done
}

# The server, its headers and, if they are packaged for it, pg_cron and PL/Perl
packages_of() {
	echo "postgresql-$1" "postgresql-server-dev-$1"
	known_of "postgresql-$1-cron" "postgresql-plperl-$1"
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

# The package would otherwise create a database cluster and start it.
if ! installed postgresql-common; then
	as_root mkdir -p /etc/postgresql-common
	[ -e /etc/postgresql-common/createcluster.conf ] ||
		echo 'create_main_cluster = false' |
		as_root tee /etc/postgresql-common/createcluster.conf >/dev/null
fi

# shellcheck disable=SC2046
missing=$(missing_of "${common[@]}" $(known_of "${common_if_known[@]}") \
	$(packages_of "$version"))
say "installing: $missing"
# shellcheck disable=SC2086
as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y \
	-o Dpkg::Options::=--force-confold -o Dpkg::Use-Pty=0 \
	install --no-install-recommends $missing 2>&1 |
	awk '/ newly installed/ { for (i = 2; i <= NF; i++) if ($(i + 1) == "newly") all = 2 * $i }
		/^(Unpacking|Setting up) / && ++n % 40 == 0 { print "... " n " of " all " steps done"; fflush() }
		/^(E:|Err:|dpkg: error)/ { print; fflush() }'
say "all packages are installed"
