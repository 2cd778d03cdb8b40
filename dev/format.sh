#!/usr/bin/env bash
# Formats the sources as PostgreSQL's pgindent does.
#
#	dev/format.sh           formats all files in place
#	dev/format.sh --check   changes nothing; prints TAP, one case per language
#
# C: pg_bsd_indent with pgindent's options.  Types that are not zklock's own
# have to be in dev/typedefs.list.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cd "$here/.."

case "${1:-}" in
'') check=no ;;
--check) check=yes ;;
*)
	echo "usage: dev/format.sh [--check]" >&2
	exit 2
	;;
esac

number=0
failed=0
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT

# The names that our own sources give to types.
own_types() {
	find src test bench -name '*.[ch]' -print0 | xargs -0 perl -0777 -ne '
		print "$1\n" while /^typedef\s+(?:struct|enum|union)\s*\w*\s*\{.*?^\}\s*(\w+);/gms;
		print "$1\n" while /^typedef\s+[^{;(]*?(\w+)(?:\[[^;]*)?;/gm;
		print "$1\n" while /^typedef\s+[^{;(]*\(\s*\*?\s*(\w+)\s*\)\s*\(/gm;'
}

# As in pgindent, the "*" of a function's result type stays close to it.  The
# type "text" is not in the list, because that would spoil each variable of this
# name, so its "*" is mended here, too.
format_c() {
	pg_bsd_indent -bad -bap -bbb -bc -bl -cli1 -cp33 -cdb -nce -d0 -di12 \
		-nfc1 -i4 -l79 -lp -lpl -nip -npro -sac -tpg -ts4 \
		-U"$temp/typedefs" <"$1" |
		sed -E -e 's/^([A-Za-z_][^ \t]*)[ \t]+\*$/\1 */' \
			-e 's/\<const[ \t]+text \*/const text */' \
			-e 's/\<text \* ?([a-z_]+[,)])/text *\1/g'
}

# Formats files, or tells which are not formatted.  Arguments: what they are,
# the program and a pattern for its version, as layouts differ with it; the
# function that formats one file.  The names come from standard input.
format() {
	local what=$1 program=$2 version=$3 function=$4 file
	number=$((number + 1))
	if ! "$program" --version 2>/dev/null | grep -q "$version"; then
		echo "ok $number - $what # SKIP this needs $program $version"
		return
	fi
	: >"$temp/wrong"
	while read -r file; do
		if ! "$function" "$file" >"$temp/out" 2>"$temp/err" || [ -s "$temp/err" ]; then
			sed "s|^|$file: |" "$temp/err" "$temp/out" | grep -i -m 3 -E 'error|warning' \
				>>"$temp/wrong" || echo "$file: $program failed" >>"$temp/wrong"
		elif ! cmp -s "$file" "$temp/out"; then
			if [ $check = yes ]; then
				diff -u --label "$file" --label formatted "$file" "$temp/out" \
					>"$temp/diff" || true
				head -n 20 "$temp/diff" >>"$temp/wrong"
			else
				echo "# formatted $file"
				cat "$temp/out" >"$file"
			fi
		fi
	done
	if [ -s "$temp/wrong" ]; then
		failed=1
		echo "not ok $number - $what (run dev/format.sh)"
		sed 's/^/#   /' "$temp/wrong"
	else
		echo "ok $number - $what"
	fi
}

{ own_types; cat dev/typedefs.list; } | sort -u >"$temp/typedefs"
format "layout of C" pg_bsd_indent '2\.1\.1' format_c \
	< <(find src test bench -name '*.[ch]' | sort)
echo "1..$number"
exit $failed
