#!/usr/bin/env bash
# Checks that each header of src/ compiles by itself: it includes what it needs.  Those
# for PostgreSQL's processes may expect postgres.h ahead of them, as all files there
# begin with it.  Prints TAP, one case per header.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../src"
pg_config=${PG_CONFIG:-pg_config}
server=$("$pg_config" --includedir-server)
libpq=$("$pg_config" --includedir)
number=0
failed=0

# Folders that know nothing of PostgreSQL's server
plain=' core deadlock observe wire znode session run '

for header in */*.h; do
	number=$((number + 1))
	flags=(-isystem "$libpq")
	[[ $plain == *" $(dirname "$header") "* ]] || flags=(-isystem "$server" -include postgres.h)
	if errors=$(gcc -std=gnu99 -Wall -Werror -fsyntax-only -DZKLOCK_OPENSSL -I. "${flags[@]}" \
		-x c "$header" 2>&1); then
		echo "ok $number - $header compiles by itself"
	else
		echo "not ok $number - $header compiles by itself"
		head -n 5 <<<"$errors" | sed 's/^/#   /'
		failed=1
	fi
done
echo "1..$number"
exit $failed
