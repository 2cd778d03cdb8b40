#!/bin/sh
# The job of the demo: both servers start it at the same moment, and one runs it.
# Arguments: the connections, as psql takes them.
set -eu

for server; do
	until psql -X -q -d "$server" -c 'SELECT 1' >/dev/null 2>&1 &&
		[ "$(psql -X -A -t -d "$server" -c 'SELECT state FROM zk_status' 2>/dev/null)" = connected ]; do
		sleep 1
	done
done
for server; do
	psql -X -A -t -d "$server" -c \
		"CALL zk_run_exclusive('/batch/nightly', 'SELECT pg_sleep(3)', timeout => '0')" &
done
wait
