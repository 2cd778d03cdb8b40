#!/usr/bin/env bash
# Static analysis of what needs no headers of PostgreSQL: src/core, src/deadlock,
# src/znode, src/wire and src/session.  Runs gcc -fanalyzer and, if it is installed,
# clang-tidy (see .clang-tidy), and prints what they find.
#
#	dev/lint.sh [FILE ...]    these files only
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[ $# -gt 0 ] || set -- src/{core,deadlock,observe,znode,wire,session}/*.c
flags=(-std=gnu99 -Wall -Wextra -Isrc -DZKLOCK_OPENSSL)
status=0

# One process for each file: several in one disturb each other.
printf '%s\0' "$@" | xargs -0 -P "$(nproc)" -n 1 \
	gcc "${flags[@]}" -O2 -Wshadow -Wpointer-arith -Wwrite-strings -Wformat=2 \
	-fanalyzer -Werror -o /dev/null -c || status=1
if command -v clang-tidy >/dev/null; then
	printf '%s\0' "$@" | xargs -0 -P "$(nproc)" -I FILE \
		clang-tidy --quiet FILE -- "${flags[@]}" 2>/dev/null || status=1
else
	echo "clang-tidy is not installed"
fi
exit $status
