#!/usr/bin/env bash
# Formats the sources as PostgreSQL does.
#
#	dev/format.sh           formats all files in place
#	dev/format.sh --check   changes nothing; prints TAP, one case per language
#	dev/format.sh --changed only the files that differ from the upstream branch, or
#	                        if there is none, from the last commit
#
# C: pg_bsd_indent with pgindent's options.  Types that are not zklock's own
# have to be in dev/typedefs.list.  Perl: perltidy, see .perltidyrc.  Shell: only
# looked at, by shellcheck.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD

check=no
changed=no
for option in "$@"; do
	case "$option" in
	--check) check=yes ;;
	--changed) changed=yes ;;
	*)
		echo "usage: dev/format.sh [--check] [--changed]" >&2
		exit 2
		;;
	esac
done

number=0
failed=0
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
if [ "$changed" = yes ]; then
	base=$(git merge-base HEAD '@{upstream}' 2>/dev/null) || base=HEAD
	git diff --name-only "$base" >"$temp/changed"
	git ls-files --others --exclude-standard >>"$temp/changed"
fi

# Our own files whose names match one of the patterns, sorted.
sources() {
	local -a names=(-name "$1")
	shift
	while [ $# -gt 0 ]; do
		names+=(-o -name "$1")
		shift
	done
	find src test bench dev .ci -type f \( "${names[@]}" \) -printf '%p\n' | sort
}

# Of the files on its input, those that are to be looked at
chosen() {
	if [ "$changed" = yes ]; then
		grep -Fxf "$temp/changed" || true
	else
		cat
	fi
}

# One case.  Arguments: what it is, a program and a pattern for its version,
# because the layout depends on it; then a function that prints what is wrong.
report() {
	number=$((number + 1))
	if ! "$2" --version 2>/dev/null | grep "$3" >/dev/null; then
		echo "ok $number - $1 # SKIP this needs $2 $3"
	elif "$4" >"$temp/wrong" 2>&1 && [ ! -s "$temp/wrong" ]; then
		echo "ok $number - $1"
	else
		failed=1
		echo "not ok $number - $1"
		sed 's/^/#   /' "$temp/wrong"
	fi
}

# The names that our own sources give to types.
# shellcheck disable=SC2016
own_types() {
	sources '*.[ch]' | xargs perl -0777 -ne '
		print "$1\n" while /^typedef\s+(?:struct|enum|union)\s*\w*\s*\{.*?^\}\s*(\w+);/gms;
		print "$1\n" while /^typedef\s+[^{;(]*?(\w+)(?:\[[^;]*)?;/gm;
		print "$1\n" while /^typedef\s+[^{;(]*\(\s*\*?\s*(\w+)\s*\)\s*\(/gm;'
}

# As in pgindent, the "*" of a function's result type stays close to it.  The
# type "text" is not in the list, because that would spoil each variable of this
# name, so its "*" is mended here, too.
indent() {
	pg_bsd_indent -bad -bap -bbb -bc -bl -cli1 -cp33 -cdb -nce -d0 -di12 \
		-nfc1 -i4 -l79 -lp -lpl -nip -npro -sac -tpg -ts4 \
		-U"$temp/typedefs" <"$1" |
		sed -E -e 's/^([A-Za-z_][^ \t]*)[ \t]+\*$/\1 */' \
			-e 's/\<const[ \t]+text \*/const text */' \
			-e 's/\<text \* ?([a-z_]+[,)])/text *\1/g'
}

# Takes over a formatted file, or says how the source differs from it.
compare() {
	if [ "$check" = no ]; then
		cmp -s "$1" "$2" || cat "$2" >"$1"
	else
		diff -u --label "$1" --label "$1, by dev/format.sh" "$1" "$2" || true
	fi
}

format_c() {
	local file
	{
		own_types
		cat dev/typedefs.list
	} | sort -u >"$temp/typedefs"
	sources '*.[ch]' | chosen | while read -r file; do
		if indent "$file" >"$temp/out" 2>"$temp/err" && [ ! -s "$temp/err" ]; then
			compare "$file" "$temp/out"
		else
			echo "$file: pg_bsd_indent cannot read this: $(cat "$temp/err")"
			grep -A 1 'INDENT\*\*' "$temp/out" || true
		fi
	done
}

format_perl() {
	local file
	local -a files
	mapfile -t files < <(sources '*.p[lm]' | chosen)
	[ ${#files[@]} -gt 0 ] || return 0
	mkdir "$temp/perl"
	cp --parents "${files[@]}" "$temp/perl"
	(cd "$temp/perl" && perltidy -pro="$root/.perltidyrc" -b -bext=/ "${files[@]}")
	for file in "${files[@]}"; do
		compare "$file" "$temp/perl/$file"
	done
}

check_shell() {
	# Newer versions ask for the callers of functions that are passed by name.
	sources '*.sh' run | chosen | xargs --no-run-if-empty shellcheck --exclude=SC2317,SC2329
}

report "layout of C" pg_bsd_indent '2\.1\.1' format_c
report "layout of Perl" perltidy 'v2022' format_perl
report "shell scripts" shellcheck 'version:' check_shell
echo "1..$number"
exit $failed
