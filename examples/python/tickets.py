"""Sends the mails on standard input, one a line, to the customers that are named, each under
a lock of its own.  All locks are awaited through one connection, which may be PgBouncer's."""

import sys
from contextlib import contextmanager

import psycopg


class Tickets:
    """Turns on any number of locks.  All programs of a role on a server share its tickets."""

    def __init__(self, url):
        # In transaction mode, PgBouncer has another session for each statement.
        self.connection = psycopg.connect(url, autocommit=True, prepare_threshold=None)

    def _ask(self, query, *values):
        return self.connection.execute(query, values).fetchone()

    def enqueue(self, paths):
        """A turn lasts a minute at most, and is given up if nobody takes it within 5 seconds."""
        self._ask("SELECT zk_enqueue_all(%s::text[], '1 min', '5 s')", paths)

    def are_left(self):
        return self._ask("SELECT EXISTS (SELECT FROM zk_tickets WHERE state IN ('waiting', 'granted'))")[0]

    @contextmanager
    def turn(self):
        """The next lock that is granted, and its token, for a block; None, None: there is none yet."""
        _, path, token = self._ask("SELECT * FROM zk_claim_next('10 s')")
        try:
            yield path, token
        finally:
            if path:
                self._ask("SELECT zk_cancel_reservation(%s, %s)", path, token)

    def assert_held(self, path, token):
        """Returns for how long the lock is surely held.  SQLSTATE 40001 or 55000: it may be lost."""
        return self._ask("SELECT zk_assert_lock(%s, %s)", path, token)[0]


def main():
    tickets = Tickets(sys.argv[1])
    tickets.enqueue([f"/examples/mails/{customer}" for customer in sys.argv[2:]])
    while tickets.are_left():
        with tickets.turn() as (path, token):
            if path:
                print("turn", path, token, flush=True)
                mail = sys.stdin.readline().strip()
                tickets.assert_held(path, token)
                print("mail", path, mail, flush=True)


if __name__ == "__main__":
    try:
        main()
    except psycopg.Error as error:
        sys.exit(f"{error.sqlstate} {error}")
