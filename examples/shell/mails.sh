#!/bin/sh
# Sends mails to the customers on standard input, once a day, on one of all servers.  In
# the crontab of each server, every ten minutes in case a run fails or a server is down:
#
#	PATH=/usr/lib/postgresql/15/bin:/usr/bin:/bin
#	*/10 3-5 * * *  /usr/local/bin/mails.sh service=db1 </etc/mails/customers 2>&1 | logger -t mails
set -eu

# zklock-run runs this again, under the lock.
if [ "${ZKLOCK_NAME:-}" != /examples/mails ]; then
	exec zklock-run -d "$1" --once '1 day' --guarantee at_least_once --timeout '1 min' \
		/examples/mails -- sh "$0" "$1"
fi

echo "locked $ZKLOCK_TOKEN"
while read -r customer; do
	echo "mail to $customer"
done
