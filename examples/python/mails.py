"""Sends mails to the customers on standard input, on one server at a time."""

import contextlib
import sys

import psycopg


class Lock:
    """A lock that is held: its fencing token, and whether it still is."""

    def __init__(self, connection, path):
        self.connection = connection
        self.path = path
        self.token = self._ask("SELECT zk_fencing_token(%s)")

    def _ask(self, query):
        return self.connection.execute(query, (self.path,)).fetchone()[0]

    def assert_held(self):
        """Returns for how long the lock is surely held.  SQLSTATE 40001: it may be lost."""
        return self._ask("SELECT zk_assert_lock(%s)")


@contextlib.contextmanager
def zk_lock(connection, path, timeout=None):
    """Holds the lock during a block.  The connection must be in autocommit mode."""
    connection.execute("CALL zk_await_lock(%s, %s)", (path, timeout))
    try:
        yield Lock(connection, path)
    finally:
        if not connection.broken:  # else the lock has ended with it
            connection.execute("SELECT zk_unlock(%s)", (path,))


with psycopg.connect(sys.argv[1], autocommit=True) as connection:
    with zk_lock(connection, "/examples/mails") as lock:
        print("locked", lock.token, flush=True)
        for customer in sys.stdin:
            lock.assert_held()
            print("mail to", customer.strip(), flush=True)
