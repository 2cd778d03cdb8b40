#!/usr/bin/env bash
# Builds the Debian packages, and uses them.
#
#	dev/package.sh            builds and tests; prints TAP
#	dev/package.sh FOLDER     the same, and leaves the packages there
#	dev/package.sh --lacks    says what is missing for that, if anything is
#
# They are built for this machine's release, and for all versions of PostgreSQL
# of it that zklock supports.  lintian has nothing to say against them.  They are
# installed into a clean copy of the release, see chroot.sh, where the tests of
# debian/tests run: SQL on a running server, and dev/demo.sh.  The RPM is installed
# there, too, over Debian's PostgreSQL and without looking at what it requires, and
# dev/demo.sh runs.  In another copy, dev/demo.sh installs what it needs, and no server of
# the system starts.  As root; "dev/setup.sh package" installs what it needs.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=dev/lib.sh
. "$here/lib.sh"
# shellcheck source=dev/chroot.sh
. "$here/chroot.sh"

lacks() {
	local command
	chroot_lacks
	for command in dpkg-buildpackage dh lintian pg_buildext rpmbuild; do
		command -v $command >/dev/null || echo "$command"
	done
	[ -e /usr/share/postgresql-common/pgxs_debian_control.mk ] || echo "postgresql-server-dev-all"
}

folder=
case "${1:-}" in
--lacks)
	lacks | paste -s -d ,
	exit
	;;
-*) die "usage: dev/package.sh [--lacks|FOLDER]" ;;
*) folder=${1:-} ;;
esac

number=0

# One case: what it is, and a command.  If that fails, so would the others.
step() {
	local name=$1 status=0
	shift
	number=$((number + 1))
	# Not "if ... then": there, a failure within a function would be ignored.
	set +e
	(
		set -e
		"$@"
	) >"$work/log" 2>&1
	status=$?
	set -e
	if [ $status = 0 ]; then
		echo "ok $number - $name"
		return
	fi
	echo "not ok $number - $name"
	tail -n 40 "$work/log" | sed 's/^/#   /'
	exit 1
}

# The name and version of the sources, without Debian's revision
prepare_sources() {
	version=$(sed -n '1s/.*(\(.*\)-.*).*/\1/p' "$here/../debian/changelog")
	sources=$work/zklock-$version
	copy_sources "$(dirname "$here")"
	mv "$work/src" "$sources"
	tar -C "$work" --exclude=debian -czf "$work/zklock_$version.orig.tar.gz" "zklock-$version"
}

build_packages() {
	as_user "$sources" dpkg-buildpackage -us -uc -F
}

# The package is not for Debian's archive, so it closes none of its bugs; and the
# lintian of a release knows no later policy.
run_lintian() {
	(cd "$work" && as_user "$work" lintian --fail-on error,warning \
		--suppress-tags initial-upload-closes-no-bugs,newer-standards-version ./*.changes)
}

hardened() {
	local program
	for program in "$sources"/debian/postgresql-*-zklock/usr/lib/postgresql/*/lib/zklock_session; do
		readelf -hd "$program" >"$work/elf"
		grep -q 'Type: *DYN' "$work/elf" || die "$program is not position-independent"
		grep -q BIND_NOW "$work/elf" || die "$program is not bound at its start"
	done
}

# In both packages
examples_are_there() {
	local package
	for package in "$sources"/debian/postgresql-*-zklock; do
		[ -e "$package/usr/share/doc/${package##*/}/examples/python/mails.py" ]
		[ -d "$package/usr/share/doc/${package##*/}/examples/monitoring" ]
	done
	rpm -qlp "$work"/rpm/RPMS/*/*.rpm | grep '/examples/python/mails.py'
}

# The major version of this machine's PostgreSQL, for which the RPM is
rpm_major() {
	"$(find_pg_config)" --version | sed 's/[^0-9]*\([0-9]*\).*/\1/'
}

# Builds the RPM as if PostgreSQL were in the folders that the spec expects.  Whether
# all that is installed is packaged is for rpmbuild to say.
build_rpm() {
	local system major top=$work/rpm
	system=$(find_pg_config)
	major=$(rpm_major)
	as_user "$work" mkdir -p rpm/SOURCES
	cp "$work/zklock_$version.orig.tar.gz" "$top/SOURCES/zklock-$version.tar.gz"
	cat >"$top/pg_config" <<-EOF
		#!/bin/sh
		case \$1 in
		--bindir | --pkglibdir | --sharedir | --docdir)
			dir=\${1#--}
			dir=\${dir#pkg}
			echo /usr/pgsql-$major/\${dir%dir}
			;;
		*) exec $system "\$@" ;;
		esac
	EOF
	chmod 755 "$top/pg_config"
	as_user "$top" rpmbuild -bb --nodeps --define "_topdir $top" --define "_tmppath $top" \
		--define "pgversion $major" --define "pgconfig $top/pg_config" "$sources/rpm/zklock.spec"
	rpm -qp --requires "$top"/RPMS/*/*.rpm | grep libzookeeper_st
}

install_packages() {
	mkdir "$chroot/packages"
	cp "$work"/postgresql-*-zklock_*.deb "$chroot/packages/"
	# shellcheck disable=SC2046
	install_in_chroot $(cd "$chroot" && printf './%s ' packages/*.deb)
}

# As one of the alternatives of all versions that are installed
program_is_in_path() {
	in_chroot zklock-run --version | grep '^zklock-run (zklock) [0-9]'
	in_chroot update-alternatives --query zklock-run | grep '^Value: /usr/lib/postgresql/[0-9]*/bin/zklock-run$'
}

# What a test of debian/tests/control needs besides @, the packages built here
depends_of() {
	awk -v wanted="$1" -v RS= -F '\n' '{
		for (i = 1; i <= NF; i++) if ($i ~ /^Depends:/) depends = $i
		if ($0 ~ "test-name=" wanted) print depends
	}' "$sources/debian/tests/control" | sed 's/^Depends: *@, *//'
}

command_of() {
	awk -v wanted="$1" -v RS= -F '\n' '{
		for (i = 1; i <= NF; i++) if ($i ~ /^Test-Command:/) command = $i
		if ($0 ~ "test-name=" wanted) print command
	}' "$sources/debian/tests/control" | sed 's/^Test-Command: *//'
}

# Runs one of the package's own tests, as a user who may write the sources.
run_test() {
	local user=$2
	in_chroot apt-get -q -y -o Dpkg::Use-Pty=0 satisfy --no-install-recommends "$(depends_of "$1")"
	rm -rf "$chroot/test"
	cp -a "$sources" "$chroot/test"
	in_chroot chown -R "$user" /test
	in_chroot setpriv --reuid "$user" --init-groups --regid "$(in_chroot id -g "$user")" \
		env HOME=/test sh -c "cd /test && $(command_of "$1")"
}

purge_packages() {
	in_chroot apt-get -q -y purge 'postgresql-*-zklock'
	! find "$chroot/usr" -name '*zklock*' | grep . || die "something is left"
}

# The folders that the spec expects lead to those of Debian's PostgreSQL.
install_rpm() {
	local major home
	major=$(rpm_major)
	home=$chroot/usr/pgsql-$major
	mkdir "$home"
	ln -s "../lib/postgresql/$major/bin" "../lib/postgresql/$major/lib" "$home/"
	ln -s "../share/postgresql/$major" "$home/share"
	cp "$work"/rpm/RPMS/*/*.rpm "$chroot/packages/zklock.rpm"
	install_in_chroot rpm
	in_chroot rpm --force-debian -i --nodeps /packages/zklock.rpm
	[ -e "$chroot/usr/lib/postgresql/$major/lib/zklock_session" ]
}

remove_rpm() {
	in_chroot rpm --force-debian -e "zklock_$(rpm_major)"
	! find "$chroot/usr" -name '*zklock*' | grep . || die "something is left"
}

# In a system that lets packages start servers, and create clusters
run_demo_from_sources() {
	local conf=$chroot/etc/postgresql-common/createcluster.conf tries=0
	rm -f "$chroot/usr/sbin/policy-rc.d" "$conf"
	cp -a "$sources" "$chroot/demo"
	in_chroot /demo/dev/setup.sh demo
	in_chroot env ZKLOCK_SETUP=no /demo/dev/demo.sh
	[ ! -e "$chroot/usr/sbin/policy-rc.d" ]
	! grep '^ *create_main_cluster = false' "$conf" || die "it stays behind"
	[ -z "$(in_chroot pg_lsclusters --no-header)" ]
	# What the demo leaves behind ends soon: it removes files.
	until [ -z "$(processes_there)" ]; do
		tries=$((tries + 1))
		[ "$tries" -lt 300 ] || die "still there: $(processes_there | xargs ps -o args= -p)"
		sleep 0.2
	done
}

main() {
	local missing
	missing=$(lacks | paste -s -d ,)
	[ -z "$missing" ] || die "there is no $missing"
	choose_user
	make_work_dir package
	clean_up_at_exit
	prepare_sources
	step "the packages are built" build_packages
	if [ -n "$folder" ]; then
		mkdir -p "$folder"
		cp "$work"/*.{deb,dsc,changes,buildinfo,tar.*} "$folder/"
	fi
	step "the session program is hardened" hardened
	step "lintian is content" run_lintian
	step "the RPM is built" build_rpm
	step "the examples are in both" examples_are_there
	open_chroot "$(this_release)" >"$work/log" 2>&1 || die "no folder with a release: $(tail -n 5 "$work/log")"
	step "they can be installed" install_packages
	step "zklock-run is in PATH" program_is_in_path
	step "their SQL tests succeed on a running server" run_test installcheck postgres
	step "the demo runs from them" run_test demo root
	step "and they can be removed" purge_packages
	step "the RPM can be installed" install_rpm
	step "the demo runs from it" run_test demo root
	step "and it can be removed" remove_rpm
	close_chroot
	open_chroot "$(this_release)" >"$work/log" 2>&1 || die "no folder with a release: $(tail -n 5 "$work/log")"
	step "the demo installs what it needs, and runs" run_demo_from_sources
	echo "1..$number"
}

# One line, so that the file can be edited during a run: see test.sh
main; exit
