#!/usr/bin/env bash
# Checks the layers of src/: who may include whom, strictly downward, and that
# no function is longer than 80 lines.  Prints TAP, one case per file and rule.
#
#	core/*		libc's type headers, <string.h> and core/ only
#	wire		libc only; both programs are built with it
#	session/*	libc, wire.h and session/; zookeeper.h in zk*.[ch] alone
#	the rest	PostgreSQL's headers, and what the lists below allow
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../src"

# PostgreSQL's side, from the bottom up: a file may include what comes before
# it in its own list.  The backend half and the worker half meet in shmem, and
# module.c starts both.
leaves="zklock compat core listing errand epilogue retry"
backend_half="encoding self target shmem slot refusal stall claim wait request duration ask children members maximum hold extend history turn commit notice late statement lifetime acquire release job once semaphore row ownqueue queuefuncs views sqlfuncs arrayfuncs semaphorefuncs barrier operator revoke leader hosts module"
worker_half="hosts self wire shmem slot byslot bounds link pulse segment errandio queueview breakhead breaking breaklock childwatch runner closer identity outage renewal closing diagnosis supervisor intake exchange incoming worker"

# What a file may include, by its name without extension.
allowed() {
	local half may found=
	for half in "$backend_half" "$worker_half"; do
		case " $half " in
		*" $1 "*) found=yes && may=" $half" && echo "${may%% "$1"*}" ;;
		esac
	done
	[ "$1" != module ] || echo worker
	case " $leaves " in *" $1 "*) found="yes" ;; esac
	[ -n "$found" ] || return 1
}

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

is_ours() {
	[ -e "$1" ] || [ -e "core/$1" ] || [ -e "session/$1" ]
}

check_core() {
	local header
	includes "$1" | while read -r header; do
		case $header in
		'<stdint.h>' | '<stdbool.h>' | '<stddef.h>' | '<limits.h>' | \
			'<inttypes.h>' | '<string.h>') ;;
		'"core/'*) ;;
		'"'*) [ -e "core/${header//\"/}" ] || echo "includes $header" ;;
		*) echo "includes $header" ;;
		esac
	done
}

check_wire() {
	includes "$1" | grep -v -e '^<' -e '^"wire.h"$' | sed 's/^/includes /' || true
}

check_session() {
	local header
	includes "$1" | while read -r header; do
		case $header in
		*zookeeper*) case $1 in session/zk*) ;; *) echo "includes $header" ;; esac ;;
		'<postgres'* | '<libpq'*) echo "includes $header" ;;
		'<'* | '"wire.h"' | '"../wire.h"' | '"session/'*) ;;
		*) [ -e "session/${header//\"/}" ] || echo "includes $header" ;;
		esac
	done
}

check_postgres() {
	local header layer own may
	own=$(basename "$1" | sed 's/\.[ch]$//')
	if ! may=$(allowed "$own"); then
		echo "$own has no layer: give it one in test/check-includes.sh"
		return
	fi
	may="$own $leaves $may"
	includes "$1" | while read -r header; do
		case $header in
		*zookeeper*) echo "includes $header" && continue ;;
		'<'*) continue ;;
		esac
		header=${header//\"/}
		is_ours "$header" || continue
		case $header in
		core/*) layer=core ;;
		session/*) layer=session ;;
		*) layer=${header%.h} ;;
		esac
		case " ${may//$'\n'/ } " in
		*" $layer "*) ;;
		*) echo "includes $header" ;;
		esac
	done
}

# Functions of more than 80 lines, braces included.
long_functions() {
	awk '
		/^\{/ && before !~ /^(typedef|struct|enum|union)/ && before !~ /=$/ { start = NR; name = before }
		/^\}/ && start { n = NR - start + 1; if (n > 80) print name ": " n " lines"; start = 0 }
		/[^ \t]/ { before = $0 }
	' "$1"
}

shopt -s nullglob
for file in core/*.[ch]; do report "$file: includes" "$(check_core "$file")"; done
for file in session/*.[ch]; do report "$file: includes" "$(check_session "$file")"; done
for file in *.[ch]; do
	case $file in
	wire.[ch]) report "$file: includes" "$(check_wire "$file")" ;;
	*) report "$file: includes" "$(check_postgres "$file")" ;;
	esac
done
for file in *.c core/*.c session/*.c; do
	report "$file: functions of at most 80 lines" "$(long_functions "$file")"
done
echo "1..$number"
exit $failed
