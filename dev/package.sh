#!/usr/bin/env bash
# Builds the Debian packages, and uses them.
#
#	dev/package.sh                 builds and tests; prints TAP
#	dev/package.sh FOLDER          the same, and leaves the packages there
#	dev/package.sh --release trixie    for that release of Debian, and not for this
#	                               machine's; "experimental" has the next PostgreSQL
#	dev/package.sh --lacks         says what is missing for that, if anything is
#
# They are built in a copy of the release, see chroot.sh, with what the sources say that
# building needs, for all versions of PostgreSQL of it that zklock supports.  lintian has
# nothing to say against them, and they have the files that "make install" installs.
# They are installed into a clean copy, which they leave without a trace, and where the
# tests of debian/tests run: SQL on a running server, and dev/demo.sh.  The RPM is
# installed there, too, over Debian's PostgreSQL and without looking at what it requires,
# and dev/demo.sh runs.  In another copy, dev/demo.sh installs what it needs, and no server
# of the system starts.  As root; it needs debootstrap.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=dev/lib.sh
. "$here/lib.sh"
# shellcheck source=dev/chroot.sh
. "$here/chroot.sh"

folder=
release=
while [ $# -gt 0 ]; do
	case $1 in
	--lacks)
		chroot_lacks | paste -s -d ,
		exit
		;;
	--release)
		release=${2:?"which release?"}
		shift
		;;
	-*) die "usage: dev/package.sh [--lacks|--release RELEASE] [FOLDER]" ;;
	*) folder=$1 ;;
	esac
	shift
done

number=0
servers=	# versions of PostgreSQL, if not those that are usual in the release

open_copy() {
	open_chroot "$release" >"$work/log" 2>&1 || die "no folder with a release: $(tail -n 5 "$work/log")"
}

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

# ---- in the copy where they are built ----

# As a user who owns nothing but a folder, and what is built there
as_builder() {
	# shellcheck disable=SC2016
	in_chroot setpriv --reuid builder --regid builder --init-groups env HOME=/build \
		${servers:+PG_SUPPORTED_VERSIONS="$servers"} sh -c 'cd "$0" && exec "$@"' "$@"
}

# The name and version of the sources, without Debian's revision
prepare_sources() {
	version=$(sed -n '1s/.*(\(.*\)-.*).*/\1/p' "$here/../debian/changelog")
	build=$chroot/build
	in_chroot useradd --system --home-dir /build --create-home builder
	copy_sources "$(dirname "$here")"
	mv "$work/src" "$build/zklock-$version"
	in_chroot chown -R builder:builder /build
	as_builder /build tar --exclude=debian -czf "zklock_$version.orig.tar.gz" "zklock-$version"
}

# The control file has the versions of PostgreSQL in Debian 12.
install_for_building() {
	install_in_chroot build-essential lintian rpm
	in_chroot apt-get -q -y -o Dpkg::Use-Pty=0 build-dep --no-install-recommends "/build/zklock-$version"
	[ "$release" != experimental ] || install_in_chroot "postgresql-server-dev-$next_postgres"
}

build_packages() {
	as_builder "/build/zklock-$version" dpkg-buildpackage -us -uc -F
}

# The package is not for Debian's archive, so it closes none of its bugs; and the
# lintian of a release knows no later policy.
run_lintian() {
	# shellcheck disable=SC2016
	as_builder /build sh -c 'lintian --fail-on error,warning \
		--suppress-tags initial-upload-closes-no-bugs,newer-standards-version *.changes'
}

hardened() {
	local program
	for program in "$build/zklock-$version"/debian/postgresql-*-zklock/usr/lib/postgresql/*/lib/zklock_session; do
		as_builder /build readelf -hd "${program#"$chroot"}" >"$work/elf"
		grep -q 'Type: *DYN' "$work/elf" || die "$program is not position-independent"
		grep -q BIND_NOW "$work/elf" || die "$program is not bound at its start"
	done
}

# Builds the RPM as if PostgreSQL were in the folders that the spec expects.  Whether
# all that is installed is packaged is for rpmbuild to say.
build_rpm() {
	as_builder /build mkdir -p rpm/SOURCES
	as_builder /build cp "zklock_$version.orig.tar.gz" "rpm/SOURCES/zklock-$version.tar.gz"
	cat >"$build/pg_config" <<-EOF
		#!/bin/sh
		case \$1 in
		--bindir | --pkglibdir | --sharedir | --docdir)
			dir=\${1#--}
			dir=\${dir#pkg}
			echo /usr/pgsql-$major/\${dir%dir}
			;;
		*) exec /usr/lib/postgresql/$major/bin/pg_config "\$@" ;;
		esac
	EOF
	chmod 755 "$build/pg_config"
	as_builder /build rpmbuild -bb --nodeps --define "_topdir /build/rpm" --define "_tmppath /build/rpm" \
		--define "pgversion $major" --define "pgconfig /build/pg_config" "zklock-$version/rpm/zklock.spec"
	cp "$build"/rpm/RPMS/*/"zklock_$major-$version"-*.rpm "$build/zklock.rpm"
	as_builder /build rpm -qp --requires zklock.rpm | grep libzookeeper_st
}

# The files that "make install" installs with a pg_config
installed_by_make() {
	rm -rf "$build/made" "$build/installed"
	as_builder /build mkdir made
	as_builder /build/made make -j "$(nproc)" -f "/build/zklock-$version/Makefile" with_llvm=no all install \
		"PG_CONFIG=$1" DESTDIR=/build/installed >"$work/make" 2>&1
	(cd "$build/installed" && find . -type f) | sed 's/^.//' | sort
}

# A package has the files that "make install" installs with a pg_config, and documents of
# its own besides.  Debian compresses documents, and has the changelog among its own.
has_what_make_installs() {
	local name=$1 pg_config=$2 files=$3
	installed_by_make "$pg_config" >"$work/installed"
	grep . "$work/installed" >/dev/null
	grep -v -E "^/usr/share/(doc|licenses)/$name(-$version)?/" "$files" | sort >"$work/packaged"
	diff "$work/installed" "$work/packaged"
}

debs_have_what_make_installs() {
	local package name
	for package in "$build"/postgresql-*-zklock_*.deb; do
		name=$(basename "${package%%_*}")
		dpkg-deb --fsys-tarfile "$package" | tar -t |
			sed -n '/[^/]$/s/^.//p' | sed '/\/extension\//s/\.gz$//' >"$work/files"
		server=${name//[!0-9]/}
		echo "/usr/share/doc/postgresql-doc-$server/extension/zklock/CHANGELOG.md" >>"$work/files"
		has_what_make_installs "$name" "/usr/lib/postgresql/$server/bin/pg_config" "$work/files"
	done
}

rpm_has_what_make_installs() {
	as_builder /build rpm -qp --qf '[%{FILEMODES:perms} %{FILENAMES}\n]' zklock.rpm |
		sed -n 's/^-[^ ]* //p' | grep -v /.build-id/ >"$work/files"
	has_what_make_installs "zklock_$major" /build/pg_config "$work/files"
}

# In both packages
examples_are_there() {
	local package
	for package in "$build/zklock-$version"/debian/postgresql-*-zklock; do
		[ -e "$package/usr/share/doc/${package##*/}/examples/python/mails.py" ]
		[ -d "$package/usr/share/doc/${package##*/}/examples/monitoring" ]
	done
	grep '/examples/python/mails.py' "$work/files"
}

keep_packages() {
	mv "$build/zklock-$version" "$work/sources"
	mkdir "$work/packages"
	cp "$build"/*.{deb,dsc,changes,buildinfo,tar.*} "$build"/rpm/RPMS/*/*.rpm "$work/packages/"
	[ -z "$folder" ] || {
		mkdir -p "$folder"
		cp "$work"/packages/* "$folder/"
	}
}

# ---- in a clean copy ----

# Files with their sizes, but for what package managers write down
files_there() {
	(cd "$chroot" && find . -xdev \( -path ./proc -o -path ./tmp -o -path ./packages -o -path ./root \
		-o -path './var/lib/[adr]p*' -o -path ./var/cache -o -path ./var/log \) -prune -o -printf '%p %y %l ' \
		\( -type f -printf '%s' -o -true \) -printf '\n') | sort
}

# What was there before is there, and nothing else.
leaves_no_trace() {
	files_there | diff "$work/before" -
}

install_packages() {
	# shellcheck disable=SC2046
	install_in_chroot $(cd "$chroot" && printf './%s ' packages/*.deb)
}

# As one of the alternatives of all versions that are installed
program_is_in_path() {
	in_chroot zklock-run --version | grep '^zklock-run (zklock) [0-9]'
	in_chroot update-alternatives --query zklock-run | grep '^Value: /usr/lib/postgresql/[0-9]*/bin/zklock-run$'
}

install_dependencies() {
	local package
	mkdir "$chroot/packages"
	cp "$work"/packages/postgresql-*-zklock_*.deb "$chroot/packages/"
	cp "$work/packages/zklock_$major-$version"-*.rpm "$chroot/packages/zklock.rpm"
	for package in "$chroot"/packages/*.deb; do
		in_chroot apt-get -q -y -o Dpkg::Use-Pty=0 satisfy --no-install-recommends \
			"$(dpkg-deb -f "$package" Depends)"
	done
	install_in_chroot rpm
	make_folders_of_rpm
	files_there >"$work/before"
}

# What a test of debian/tests/control needs besides @, the packages built here
depends_of() {
	awk -v wanted="$1" -v RS= -F '\n' '{
		for (i = 1; i <= NF; i++) if ($i ~ /^Depends:/) depends = $i
		if ($0 ~ "test-name=" wanted) print depends
	}' "$work/sources/debian/tests/control" | sed 's/^Depends: *@, *//'
}

command_of() {
	awk -v wanted="$1" -v RS= -F '\n' '{
		for (i = 1; i <= NF; i++) if ($i ~ /^Test-Command:/) command = $i
		if ($0 ~ "test-name=" wanted) print command
	}' "$work/sources/debian/tests/control" | sed 's/^Test-Command: *//'
}

# Runs one of the package's own tests, as a user who may write the sources.
run_test() {
	local user=$2
	in_chroot apt-get -q -y -o Dpkg::Use-Pty=0 satisfy --no-install-recommends "$(depends_of "$1")"
	rm -rf "$chroot/test"
	cp -a "$work/sources" "$chroot/test"
	in_chroot chown -R "$user" /test
	in_chroot setpriv --reuid "$user" --init-groups --regid "$(in_chroot id -g "$user")" \
		env HOME=/test sh -c "cd /test && $(command_of "$1")"
}

purge_packages() {
	in_chroot apt-get -q -y purge 'postgresql-*-zklock'
}

install_and_purge() {
	install_packages
	[ -n "$(leaves_no_trace)" ]
	purge_packages
	leaves_no_trace
}

# Those that the spec expects lead to those of Debian's PostgreSQL; RHEL has one for licenses.
make_folders_of_rpm() {
	local home=$chroot/usr/pgsql-$major
	mkdir -p "$home/doc" "$chroot/usr/share/licenses"
	ln -s "../lib/postgresql/$major/bin" "../lib/postgresql/$major/lib" "$home/"
	ln -s "../share/postgresql/$major" "$home/share"
}

# The rpm of Debian 12 wants to be told that this is Debian.
rpm_there() {
	local -a options=(--force-debian)
	in_chroot rpm "${options[@]}" --version || options=()
	in_chroot rpm "${options[@]}" "$@"
}

install_rpm() {
	rpm_there -i --nodeps /packages/zklock.rpm
}

remove_rpm() {
	rpm_there -e "zklock_$major"
}

install_and_remove_rpm() {
	install_rpm
	[ -n "$(leaves_no_trace)" ]
	remove_rpm
	leaves_no_trace
}

# In a system that lets packages start servers, and create clusters
run_demo_from_sources() {
	local conf=$chroot/etc/postgresql-common/createcluster.conf tries=0
	rm -f "$chroot/usr/sbin/policy-rc.d" "$conf"
	cp -a "$work/sources" "$chroot/demo"
	in_chroot /demo/dev/setup.sh demo
	in_chroot env ZKLOCK_SETUP=no /demo/dev/demo.sh
	[ ! -e "$chroot/usr/sbin/policy-rc.d" ]
	! grep '^ *create_main_cluster = false' "$conf" || die "it stays behind"
	[ -z "$(in_chroot pg_lsclusters --no-header)" ]
	# What the demo leaves behind ends soon: it removes files.
	until [ -z "$(processes_there)" ]; do
		tries=$((tries + 1))
		[ "$tries" -lt 300 ] || die "still there: $(processes_there | sed 's|.*|/proc/&/cmdline|' | xargs cat | tr '\0' ' ')"
		sleep 0.2
	done
}

main() {
	local missing
	missing=$(chroot_lacks | paste -s -d ,)
	[ -z "$missing" ] || die "there is no $missing"
	release=${release:-$(this_release)}
	[ "$release" != experimental ] || servers=$next_postgres
	run_user=root
	make_work_dir package
	clean_up_at_exit
	open_copy
	prepare_sources
	step "what building needs is installed" install_for_building
	major=$(in_chroot sh -c 'ls /usr/lib/postgresql | sort -n | tail -n 1')
	echo "# $release: $(in_chroot "/usr/lib/postgresql/$major/bin/pg_config" --version)"
	step "the packages are built" build_packages
	step "the session program is hardened" hardened
	step "lintian is content" run_lintian
	step "they have what make installs" debs_have_what_make_installs
	step "the RPM is built" build_rpm
	step "it has what make installs" rpm_has_what_make_installs
	step "the examples are in both" examples_are_there
	keep_packages
	close_chroot
	open_copy
	step "what they need is installed" install_dependencies
	step "they can be installed, and leave nothing behind" install_and_purge
	step "and so can the RPM" install_and_remove_rpm
	step "they can be installed again" install_packages
	step "zklock-run is in PATH" program_is_in_path
	step "their SQL tests succeed on a running server" run_test installcheck postgres
	step "the demo runs from them" run_test demo root
	step "and they can be removed" purge_packages
	step "the RPM can be installed again" install_rpm
	step "the demo runs from it" run_test demo root
	close_chroot
	open_copy
	step "the demo installs what it needs, and runs" run_demo_from_sources
	echo "1..$number"
}

# One line, so that the file can be edited during a run: see test.sh
main; exit
