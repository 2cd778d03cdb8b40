"""Sends mails to the customers on standard input, on one server at a time."""

import sys

import psycopg


class zk_lock:
    """A lock that is held during a block.  The connection must be in autocommit mode."""

    def __init__(self, connection, path, timeout=None):
        if not connection.autocommit:
            raise ValueError("zk_lock needs autocommit")
        self.connection, self.path, self.timeout = connection, path, timeout

    def _ask(self, query):
        return self.connection.execute(query, (self.path,)).fetchone()[0]

    def __enter__(self):
        self.connection.execute("CALL zk_await_lock(%s, %s)", (self.path, self.timeout))
        return self

    def token(self):
        return self._ask("SELECT zk_fencing_token(%s)")

    def assert_held(self):
        """Returns for how long the lock is surely held.  SQLSTATE 40001: it may be lost."""
        return self._ask("SELECT zk_assert_lock(%s)")

    def __exit__(self, error, *_):
        try:
            held = self._ask("SELECT zk_unlock(%s)")
        except psycopg.Error:
            held = False
            self.connection.close()  # which ends the lock, too
        if not held and error is None:
            raise psycopg.errors.SerializationFailure(f"lock {self.path} was lost")


def main():
    with psycopg.connect(sys.argv[1], autocommit=True) as connection:
        with zk_lock(connection, "/examples/mails") as lock:
            print("locked", lock.token(), flush=True)
            for customer in sys.stdin:
                lock.assert_held()
                print("mail to", customer.strip(), flush=True)


if __name__ == "__main__":
    try:
        main()
    except psycopg.Error as error:
        sys.exit(f"{error.sqlstate or ''} {error}".strip())
