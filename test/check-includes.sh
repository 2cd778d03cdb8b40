#!/usr/bin/env bash
# Checks the folders of src/: which folder may include which others, that each
# include guard is unique, that the name of a function begins with that of its
# file, or is static and in no other file, that no function is longer than 80
# lines, that no file is too long or too short, that no file's name stands in two
# folders, and that the files that README.md names are there.  Prints TAP, one case
# per file and rule.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../src"

# The folders, from the top down: what each may include beside itself, either a
# folder or a single header of it.  The backends' half (functions, recipes,
# backend) and the worker's half (worker, core) meet in shared and znode only.
folders='
.          functions recipes backend worker shared znode wire/version.h
functions  recipes backend shared znode wire/version.h wire/look_answer.h
recipes    backend shared znode
backend    shared znode wire/version.h
worker     shared wire znode core/assert.h core/manager.h core/queue.h deadlock/deadlock.h observe
shared     znode
deadlock   core/wing.h core/manager.h core/assert.h observe/inspect.h observe/trace.h znode
observe    core znode
core       znode
session    wire znode/zkapi.h
run        wire/version.h shared/steady.h
wire       znode/zkapi.h
znode
'

# Folders that know libc only, and of that only types and strings
libc_only=' core deadlock observe wire znode '
types='<stdint.h> <stdbool.h> <stddef.h> <limits.h> <inttypes.h> <string.h>'

number=0
failed=0

# One case: its name, and what is wrong (nothing if good).
report() {
	number=$((number + 1))
	if [ -z "$2" ]; then
		echo "ok $number - $1"
	else
		echo "not ok $number - $1"
		printf '%s\n' "$2" | sed 's/^/#   /'
		failed=1
	fi
}

# The headers that a file includes, as <name> or "name".
includes() {
	sed -n 's/^[ \t]*#[ \t]*include[ \t]*\([<"][^>"]*[>"]\).*/\1/p' "$1"
}

# What the files of a folder may include; fails if the table has no such folder.
allowed() {
	awk -v folder="$1" '$1 == folder { print; found = 1 } END { exit !found }' \
		<<<"$folders"
}

# A header of PostgreSQL's or of the system's: what is wrong with it.
check_foreign() {
	local file=$1 folder=$2 header=$3
	case $header in
	*zookeeper*)
		[[ $file == session/zk* ]] || echo "includes $header"
		return
		;;
	*openssl*)
		[[ $file == session/tls.c ]] || echo "includes $header"
		return
		;;
	esac
	if [ "$folder" = session ] || [ "$folder" = run ]; then
		case $folder$header in
		'run<libpq-fe.h>') ;;
		*'<postgres'* | *'<libpq'* | *'"'*) echo "includes $header" ;;
		esac
	elif [[ $libc_only == *" $folder "* ]] && [[ $folder != wire || $header == '"'* ]]; then
		[[ $file == observe/trace.c || " $types " == *" $header "* ]] ||
			echo "includes $header"
	fi
}

check_includes() {
	local file=$1 folder may header
	folder=$(dirname "$file")
	if ! may=" $(allowed "$folder") "; then
		echo "$folder is no folder of the table in test/check-includes.sh"
		return
	fi
	includes "$file" | while read -r header; do
		local name=${header//[\"<>]/}
		if [[ $header == '<'* ]] || [ ! -e "$name" ]; then
			check_foreign "$file" "$folder" "$header"
		elif [[ $may != *" $(dirname "$name") "* && $may != *" $name "* ]]; then
			echo "includes $header"
		fi
	done
}

# The guard tells folder and name, so that no two are the same.
check_guard() {
	local guard=ZKL_${1^^}
	guard=${guard//[\/.]/_}
	grep -q "^#ifndef $guard\$" "$1" && grep -q "^#define $guard\$" "$1" ||
		echo "its include guard is not $guard"
}

# The functions of a file that others can call (of a header, all of them), and
# whose names do not begin with zkl_ and the file's name, or that of one of its
# sections ("---- name: what it is ----").  What SQL calls is zkl_sql_ and its name
# there; the loader and the shell have names of their own, and so has what the core
# calls of its host.
misnamed_functions() {
	local prefix
	prefix=zkl_$(basename "${1%.[ch]}")
	awk -v prefix="$prefix" -v header="${1##*.}" '
		/^\/\* ---- [a-z_]+(:| ----)/ {
			sub(":$", "", $3)
			section["zkl_" $3]
		}
		/^[a-z_0-9A-Z]+\(/ && $0 !~ /;$/ &&
			(header == "h" || before !~ /(^|[ \t])static([ \t]|$)/) {
			name = $0
			sub(/\(.*/, "", name)
			if (name == prefix || index(name, prefix "_") == 1 ||
				name ~ /^(zkl_sql_.*|_PG_init|main|connect|zkl_worker_main|zkl_assert_failed)$/)
				next
			for (s in section)
				if (name == s || index(name, s "_") == 1)
					next
			print name " does not begin with " prefix ", nor with a section"
		}
		/[^ \t]/ { before = $0 }
	' "$1"
}

# Static functions of one name in several files: gdb and grep cannot tell them
# apart.
shared_names() {
	awk '
		/^[a-z_0-9A-Z]+\(/ && before ~ /(^|[ \t])static([ \t]|$)/ && $0 !~ /;$/ {
			name = $0
			sub(/\(.*/, "", name)
			if (name in file && file[name] != FILENAME)
				print name " is in " file[name] " and in " FILENAME
			file[name] = FILENAME
		}
		/[^ \t]/ { before = $0 }
	' "$@"
}

# Functions of more than 80 lines, braces included.
long_functions() {
	awk '
		/^\{/ && before !~ /^(typedef|struct|enum|union)/ && before !~ /=$/ { start = NR; name = before }
		/^\}/ && start { n = NR - start + 1; if (n > 80) print name ": " n " lines"; start = 0 }
		/[^ \t]/ { before = $0 }
	' "$1"
}

# A file of more than 1200 lines has several subjects, and a short one is hardly a
# subject by itself: in these folders each has at least 60.
no_short_files=' backend recipes '

bad_length() {
	local lines
	lines=$(wc -l <"$1")
	[ "$lines" -le 1200 ] || echo "it has $lines lines, more than 1200"
	[[ $1 == *.h || $no_short_files != *" $(dirname "$1") "* ]] || [ "$lines" -ge 60 ] ||
		echo "it has only $lines lines"
}

# Headers that only the file of that name includes: what they have belongs there.
own_headers() {
	local header users
	for header in "${@#./}"; do
		users=$(grep -l "\"$header\"" ./*.c ./*/*.[ch] ../test/*/*.[ch] |
			grep -v "^./${header%.h}\.c$" || true)
		[ -n "$users" ] || echo "$header"
	done
}

# Names of files, without .c and .h, that stand in several folders: what such a
# name tells depends on who reads it.
twice_named() {
	printf '%s\n' "${@%.[ch]}" | sort -u | awk -F/ '
		$NF in folder { print $NF " is in " folder[$NF] " and in " $(NF - 1) }
		{ folder[$NF] = $(NF - 1) }'
}

# What README.md calls folder/file.c is there.
check_readme_files() {
	# shellcheck disable=SC2016
	grep -o '`[a-z]*/[a-z_]*\.[ch]`' README.md | tr -d '`' | sort -u |
		while read -r file; do [ -e "$file" ] || echo "no such file: $file"; done
}

shopt -s nullglob
for file in *.[ch] */*.[ch]; do report "$file: includes" "$(check_includes "$file")"; done
for file in */*.h; do report "$file: guard" "$(check_guard "$file")"; done
for file in *.[ch] */*.[ch]; do
	report "$file: names of functions" "$(misnamed_functions "$file")"
done
for file in *.c */*.c; do
	report "$file: functions of at most 80 lines" "$(long_functions "$file")"
done
for file in *.[ch] */*.[ch]; do report "$file: length" "$(bad_length "$file")"; done
report "headers that others include" "$(own_headers ./*/*.h)"
report "names of files" "$(twice_named ./*.[ch] ./*/*.[ch])"
report "names of static functions" "$(shared_names ./*.c ./*/*.c)"
report "README.md: files" "$(check_readme_files)"
echo "1..$number"
exit $failed
