"""Sends the mails on standard input, one a line, to the customers that are named, each under
a lock of its own.  All locks are awaited through one connection, which may be PgBouncer's."""

import sys
from contextlib import contextmanager

import psycopg


# A ticket for each name that has none: at first, and again after one that has lapsed or was lost.
# A turn lasts a minute at most, and lapses if it is not taken within 5 seconds of its beginning.
ENQUEUE = """
    SELECT array_agg(path), zk_enqueue_all(array_agg(path), '1 min', '5 s')
    FROM (SELECT unnest(%s::text[])
          EXCEPT SELECT path FROM zk_tickets WHERE state IN ('waiting', 'granted')) AS lacking (path)
    HAVING count(*) > 0"""


class Turns:
    """A turn on each of any number of locks, in the order in which they are to be had."""

    def __init__(self, url, paths):
        # In transaction mode, PgBouncer has another session for each statement.
        self.connection = psycopg.connect(url, autocommit=True, prepare_threshold=None)
        self.left = set(paths)

    def _ask(self, query, *values):
        return self.connection.execute(query, values).fetchone()

    @contextmanager
    def next(self):
        """A lock and its token, for a block that uses its turn; None, None: there is none yet."""
        enqueued = self._ask(ENQUEUE, list(self.left))
        if enqueued:
            print("enqueued", *enqueued[0], file=sys.stderr)
        # Without the names, it takes tickets of other programs of this role, too.
        _, path, token = self._ask("SELECT * FROM zk_claim_next('10 s', %s::text[])", list(self.left))
        try:
            yield path, token
            self.left.discard(path)
        finally:
            if path:
                self._ask("SELECT zk_cancel_reservation(%s, %s)", path, token)

    def assert_held(self, path, token):
        """Returns for how long the lock is surely held.  SQLSTATE 40001 or 55000: it may be lost."""
        return self._ask("SELECT zk_assert_lock(%s, %s)", path, token)[0]


def main():
    turns = Turns(sys.argv[1], [f"/examples/mails/{customer}" for customer in sys.argv[2:]])
    while turns.left:
        with turns.next() as (path, token):
            if path:
                print("turn", path, token, flush=True)
                mail = sys.stdin.readline().strip()
                turns.assert_held(path, token)
                print("mail", path, mail, flush=True)


if __name__ == "__main__":
    try:
        main()
    except psycopg.Error as error:
        sys.exit(f"{error.sqlstate or ''} {error}".strip())
