#!/bin/sh
# Sends mails to the customers on standard input, once a day, on one of all servers.  In
# the crontab of each server, so that one that is down at three is made up for:
#
#	*/10 3-5 * * *  mails.sh service=db1 <customers
set -eu

# zklock-run runs this again, under the lock.
if [ -z "${ZKLOCK_TOKEN:-}" ]; then
	exec zklock-run -d "$1" --once '1 day' --guarantee at_least_once --timeout '1 min' \
		/examples/mails -- "$0" "$1"
fi

echo "locked $ZKLOCK_TOKEN"
while read -r customer; do
	echo "mail to $customer"
done
