# shellcheck shell=bash
# Debian releases in folders; to be sourced behind lib.sh, by root.
#
# A release is fetched once, by debootstrap from the mirror that this machine
# uses, and kept in $chroots.  A script works in a copy of it, which is removed
# with all that was mounted there.  Downloaded packages are kept, too: a copy has links to
# them, and a folder of its own, so that several scripts can install at once.
#
# ZKLOCK_APT_CONF has lines for apt.conf there, such as a proxy.  ZKLOCK_LOGS is a folder
# where a script that fails, or is interrupted, leaves the logs of tests there.

chroots=${ZKLOCK_CHROOTS:-/var/cache/zklock}
chroot=	# the copy
kept_packages=	# the folder with packages of its release
next_postgres=19	# which experimental has

debian_mirror() {
	# shellcheck disable=SC2016
	apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' |
		grep -v security | sort | head -n 1
}

# The release that this machine runs.  sid has testing's name in os-release.
this_release() {
	local name
	name=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
	# shellcheck disable=SC2016
	apt-get indextargets --format '$(CODENAME)' 'Created-By: Packages' 'Origin: Debian' |
		awk -v name="$name" '{ print $0 == name ? 0 : $0 == "sid" ? 1 : 2, $0 }' | sort -u | sed -n '1s/^. //p'
}

# Says what is missing to work in folders; nothing if all is there.
chroot_lacks() {
	local mirror temp
	[ "$(id -u)" = 0 ] || echo "root"
	unshare --mount true 2>/dev/null || echo "right to mount"
	command -v debootstrap >/dev/null || echo "debootstrap"
	mirror=$(debian_mirror 2>/dev/null) || true
	temp=$(mktemp -d)
	/usr/lib/apt/apt-helper download-file "${mirror%/}/dists/sid/InRelease" "$temp/InRelease" \
		>/dev/null 2>&1 || echo "Debian mirror that answers"
	rm -rf "$temp"
}

# Adds a release to the copy's sources of packages.  The files of sid and
# experimental expire after a week; a mirror may be older.
add_release() {
	local release=$1 mirror
	mirror=$(debian_mirror)
	{
		if [ "$release" = sid ] || [ "$release" = experimental ]; then
			echo "deb [check-valid-until=no] $mirror $release main"
		else
			echo "deb $mirror $release main"
			echo "deb $mirror $release-updates main"
			echo "deb ${mirror%/}-security $release-security main"
		fi
	} >"$chroot/etc/apt/sources.list.d/$release.list"
}

# Fetches a release, unless it is there.
fetch_release() {
	local new=$chroots/$1.new
	[ ! -e "$chroots/$1" ] || return 0
	rm -rf "$new"
	debootstrap --variant=minbase "$1" "$new" "$(debian_mirror)" || return 1
	rm -f "$new/etc/apt/sources.list"
	printf '127.0.0.1 localhost\n::1 localhost\n' >"$new/etc/hosts"
	printf '#!/bin/sh\nexit 101\n' >"$new/usr/sbin/policy-rc.d"
	chmod 755 "$new/usr/sbin/policy-rc.d"
	mkdir -p "$new/etc/postgresql-common"
	echo 'create_main_cluster = false' >"$new/etc/postgresql-common/createcluster.conf"
	echo force-unsafe-io >"$new/etc/dpkg/dpkg.cfg.d/unsafe-io"
	mv "$new" "$chroots/$1"
}

# Links to the packages of a folder, also in another one
share_packages() {
	find "$1" -maxdepth 1 -name '*.deb' -exec cp --link --no-clobber -t "$2" {} +
}

# Sets $chroot to a copy of a release, ready to be used.  "experimental" is sid,
# with PostgreSQL from experimental.
open_chroot() {
	local release=$1
	[ "$release" != experimental ] || release=sid
	kept_packages=$chroots/packages-$release
	mkdir -p "$kept_packages"
	fetch_release "$release" || return 1
	chroot=$(mktemp -d "$chroots/$1.XXXXXX")
	chmod 755 "$chroot"
	cp -a --reflink=auto "$chroots/$release/." "$chroot/"
	cp /etc/resolv.conf "$chroot/etc/resolv.conf"
	echo "${ZKLOCK_APT_CONF:-}" >"$chroot/etc/apt/apt.conf.d/zklock"
	add_release "$release"
	if [ "$1" = experimental ]; then
		add_release experimental
		printf 'Package: src:postgresql-%s src:postgresql-common\nPin: release a=experimental\nPin-Priority: 990\n' \
			$next_postgres >"$chroot/etc/apt/preferences.d/experimental"
	fi
	mount -t proc proc "$chroot/proc"
	mount -t tmpfs -o mode=1777 tmpfs "$chroot/dev/shm"
	mkdir -p "$chroot/var/cache/apt/archives"
	share_packages "$kept_packages" "$chroot/var/cache/apt/archives"
	in_chroot apt-get -q update
}

# Runs a command there, with nothing of this environment.
in_chroot() {
	chroot "$chroot" env -i HOME=/root TERM=dumb LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
		PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
}

install_in_chroot() {
	in_chroot apt-get -q -y -o Dpkg::Options::=--force-confold -o Dpkg::Use-Pty=0 \
		install --no-install-recommends "$@"
}

# Copies the logs of tests and of their servers to where they outlive the copy.
keep_logs() {
	local folder kept
	[ -n "$chroot" ] && [ -n "${ZKLOCK_LOGS:-}" ] || return 0
	for folder in "$chroot"/tmp/zklock-test*/{log,tmp_check/log}; do
		[ -d "$folder" ] || continue
		kept=$ZKLOCK_LOGS/${chroot##*/}/${folder#"$chroot"/tmp/}
		mkdir -p "$kept"
		cp -R "$folder/." "$kept/"
	done
}

# The processes that run in the copy
processes_there() {
	local process
	for process in /proc/[0-9]*; do
		[ "$(readlink "$process/root")" != "$chroot" ] || echo "${process#/proc/}"
	done
}

# Ends what still runs in the copy, and removes it.  A mount that a process still
# uses is out of the way at once, and ends with it.
close_chroot() {
	local process folder
	[ -n "$chroot" ] || return 0
	for process in $(processes_there); do
		kill -KILL "$process" || true
	done
	share_packages "$chroot/var/cache/apt/archives" "$kept_packages" || true
	for folder in dev/shm proc; do
		! mountpoint -q "$chroot/$folder" || umount --lazy "$chroot/$folder" || return
	done
	rm -rf --one-file-system "$chroot"
	chroot=
}

# Removes the copy and $work when the script ends, however it does.
clean_up_at_exit() {
	trap clean_up EXIT
	trap 'exit 130' INT TERM
}

clean_up() {
	local status=$?
	trap - EXIT
	trap '' INT TERM
	set +e
	[ "$status" = 0 ] || keep_logs
	close_chroot
	rm -rf "${work:?}"
	exit "$status"
}
