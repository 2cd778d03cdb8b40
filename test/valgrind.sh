#!/bin/sh
# Stands in for the program "postgres" in the layer valgrind: runs postgres.checked,
# which lies beside it, and what that starts, zklock_session too, under valgrind.
# The files of $ZKLOCK_VALGRIND_LOG get what valgrind finds, one for each process.
here=$(dirname "$0")
case " $* " in
*" -V "* | *" --version "* | *" --boot "* | *" --single "*)
	exec "$here/postgres.checked" "$@"
	;;
esac
exec valgrind --quiet --trace-children=yes --num-callers=25 --gen-suppressions=all \
	--suppressions="$here/valgrind.supp" --log-file="$ZKLOCK_VALGRIND_LOG/%p" \
	"$here/postgres.checked" "$@"
