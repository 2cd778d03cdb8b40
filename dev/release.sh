#!/usr/bin/env bash
# Runs the workflow of a release, .github/workflows/release.yml, as far as that can be
# done without the project's host: step by step, in a folder with the release of Debian
# that its containers have.
#
#	dev/release.sh            prints TAP
#	dev/release.sh TAG        and looks whether what is committed may have that tag
#	dev/release.sh --lacks    says what is missing for that, if anything is
#
# It keeps what the workflow keeps, in a folder of the copy.  It skips, and says so: the
# packages of PostgreSQL's own repository, so that zklock's are built for the version of
# Debian; the other architecture; images, which dev/containers.sh builds; and uploads.
# As root; "dev/setup.sh" installs what it needs.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=dev/lib.sh
. "$here/lib.sh"
# shellcheck source=dev/chroot.sh
. "$here/chroot.sh"

release=trixie
workflow=$here/../.github/workflows/release.yml

lacks() {
	chroot_lacks
	command -v git >/dev/null || echo git
	python3 -c 'import yaml' 2>/dev/null || echo python3-yaml
}

tag=
case "${1:-}" in
--lacks)
	lacks | paste -s -d ,
	exit
	;;
-*) die "usage: dev/release.sh [--lacks|TAG]" ;;
*) tag=${1:-} ;;
esac

number=0

passes() {
	number=$((number + 1))
	echo "ok $number - $1"
}

# Prints the steps of a job, each as three texts that end with a null: what it uses, the
# paths of its files, and what it runs.
steps_of() {
	python3 -c 'import sys, yaml
workflow = yaml.safe_load(open(sys.argv[1]))
for step in workflow["jobs"][sys.argv[2]]["steps"]:
    texts = step.get("uses", ""), step.get("with", {}).get("path", ""), step.get("run", "")
    sys.stdout.write("".join(text + "\0" for text in texts))' "$workflow" "$1"
}

# What is committed, with its history; without a tag, the sources as one commit
check_out() {
	rm -rf "$chroot/project" "$work/src"
	if [ -n "$tag" ]; then
		git -c safe.directory='*' clone -q --no-hardlinks "$here/.." "$chroot/project"
		chown -R root: "$chroot/project"
		return
	fi
	copy_sources "$(dirname "$here")"
	mv "$work/src" "$chroot/project"
	chown -R root: "$chroot/project"
	in_project git init -q
	in_project git add -A
	in_project git -c user.name=x -c user.email=x@x commit -q -m all
}

in_project() {
	# shellcheck disable=SC2016
	in_chroot env PG_SUPPORTED_VERSIONS="$versions" sh -c 'cd /project && exec "$@"' sh "$@"
}

# Keeps files, of which there must be some.
upload() {
	in_project bash -e -c "mkdir -p /kept && cp -v $1 /kept/"
}

download() {
	in_project cp -r /kept "$1"
}

run() {
	# shellcheck disable=SC2016
	echo "${1//'${{ github.ref_name }}'/"$tag"}" >"$chroot/step.sh"
	in_project bash -e /step.sh
}

# Says why a step cannot be run here; nothing if it can.
hindrance() {
	case $1 in
	*release.pl*) [ -n "$tag" ] || echo "no tag was named" ;;
	*apt.postgresql.org*) echo "Debian's own PostgreSQL is used" ;;
	*"gh release"*) echo "there is no host of the project" ;;
	esac
}

# One step.  If it fails, so would the others.
step() {
	local job=$1 uses=$2 path=$3 command=$4 name why status
	name="$job: ${uses:-$(head -n 1 <<<"$command")}"
	why=$(hindrance "$command")
	if [ -n "$why" ]; then
		passes "$name # SKIP $why"
		return
	fi
	# Not "if ... then": there, a failure within a function would be ignored.
	set +e
	(
		set -e
		case $uses in
		actions/checkout@*) check_out ;;
		actions/upload-artifact@*) upload "$path" ;;
		actions/download-artifact@*) download "$path" ;;
		*) run "$command" ;;
		esac
	) >"$work/log" 2>&1
	status=$?
	set -e
	if [ $status = 0 ]; then
		passes "$name"
		return
	fi
	echo "not ok $((number + 1)) - $name"
	tail -n 40 "$work/log" | sed 's/^/#   /'
	exit 1
}

main() {
	local missing job
	local -a steps
	missing=$(lacks | paste -s -d ,)
	[ -z "$missing" ] || die "there is no $missing"
	run_user=root
	make_work_dir release
	clean_up_at_exit
	open_chroot $release >"$work/log" 2>&1 || die "no folder with a release: $(tail -n 5 "$work/log")"
	mkdir "$chroot/project"
	versions=$(in_chroot apt-cache depends postgresql | sed -n 's/.*Depends: postgresql-\([0-9]*\)$/\1/p')
	for job in sources packages publish; do
		mapfile -d '' -t steps < <(steps_of $job)
		set -- "${steps[@]}"
		while [ $# -gt 0 ]; do
			step $job "$1" "$2" "$3"
			shift 3
		done
	done
	in_project sh -c 'cd release && sha256sum -c SHA256SUMS' | sed 's/^/# /'
	passes "the checksums are right"
	echo "1..$number"
}

# One line, so that the file can be edited during a run: see test.sh
main; exit
