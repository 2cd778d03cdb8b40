#!/usr/bin/python3
"""A ZooKeeper client for tests, driven over stdin and stdout.

    zkctl.py host:port [session timeout in seconds]

Reads one JSON array per line, [command, argument, ...], and answers each with
one line, [true, value] or [false, "NameOfTheException"].  Locks are taken in
threads, so that a command never waits for one: "lock" starts, "held" tells.
The lock classes write and respect the nodes of Curator's
InterProcessReadWriteLock.
"""

import functools
import json
import logging
import sys
import threading
import time
import uuid

from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError, NoNodeError
from kazoo.security import ACL, OPEN_ACL_UNSAFE, Id, make_digest_acl
from kazoo.recipe.lock import Lock, ReadLock, WriteLock
from kazoo.retry import ForceRetryError


class CuratorWriter(Lock):
    _NODE_NAME = "__WRIT__"
    _EXCLUDE_NAMES = ["__WRIT__", "__READ__"]

    def __init__(self, client, path, identifier=None):
        super().__init__(client, path, identifier)
        self.prefix = "_c_%s-%s" % (uuid.uuid4(), self._NODE_NAME)
        self.create_path = self.path + "/" + self.prefix


class CuratorReader(CuratorWriter):
    _NODE_NAME = "__READ__"
    _EXCLUDE_NAMES = ["__WRIT__"]


class KazooWriter(Lock):
    """Without Curator's prefix: what a kazoo user gets by two lines."""
    _NODE_NAME = "__WRIT__"
    _EXCLUDE_NAMES = ["__WRIT__", "__READ__"]


class KazooReader(Lock):
    """The same for readers, as docs/interop.md shows it for kazoo 2.8."""
    _NODE_NAME = "__READ__"
    _EXCLUDE_NAMES = ["__WRIT__"]

    def _get_predecessor(self, node):
        children = self.client.get_children(self.path)
        if node not in children:
            raise ForceRetryError()
        ahead = [c for c in children if "__WRIT__" in c and c[-10:] < node[-10:]]
        return max(ahead, key=lambda c: c[-10:], default=None)


class KazooMutex(Lock):
    """The same for Curator's InterProcessMutex."""
    _NODE_NAME = "-lock-"
    _EXCLUDE_NAMES = ["-lock-"]


# The last three are kazoo's own, with kazoo's own names.
KINDS = {"write": CuratorWriter, "read": CuratorReader, "kazoo": KazooWriter,
         "kazoo_read": KazooReader, "kazoo_mutex": KazooMutex,
         "Lock": Lock, "WriteLock": WriteLock, "ReadLock": ReadLock}


class Counter(threading.Thread):
    """Acquires again and again and adds one to the number in a file; a reader
    looks at it twice instead."""

    def __init__(self, lock, reads, file, rounds):
        super().__init__(daemon=True)
        self.lock = lock
        self.reads = reads
        self.file = file
        self.rounds = rounds
        self.done = -1
        self.why = None
        self.start()

    def read(self):
        with open(self.file, encoding="ascii") as file:
            return file.read().strip()

    def inside(self):
        before = self.read()
        time.sleep(0.0002)
        if self.reads:
            if self.read() != before:
                raise RuntimeError("changed under a reader")
        else:
            with open(self.file, "w", encoding="ascii") as file:
                file.write(str(int(before) + 1))

    def run(self):
        try:
            for _ in range(self.rounds):
                with self.lock:
                    self.inside()
            self.done = self.rounds
        except Exception as error:
            self.why = repr(error)


def password_of(session):
    """What ZooKeeper makes with java.util.Random, seeded by the id."""
    mask = (1 << 48) - 1
    state = ((session ^ 0xB3415C00) ^ 0x5DEECE66D) & mask
    password = b""
    while len(password) < 16:
        state = (state * 0x5DEECE66D + 0xB) & mask
        password += (state >> 16).to_bytes(4, "little")
    return password


class Control:
    def __init__(self, hosts, timeout):
        # A lost connection or session is not the test's concern: try again.
        self.zk = KazooClient(hosts=hosts, timeout=timeout,
                              connection_retry={"max_tries": -1,
                                                "max_delay": 1},
                              command_retry={"max_tries": -1, "max_delay": 1})
        self.zk.start(timeout=60)
        self.hosts = hosts
        self.locks = {}

    def ls(self, path):
        try:
            return sorted(self.zk.retry(self.zk.get_children, path))
        except NoNodeError:
            return []

    def tree(self, path):
        """All paths below one that may be read, itself not included."""
        found = []
        try:
            children = self.ls(path)
        except NoAuthError:
            return []
        for child in children:
            below = path.rstrip("/") + "/" + child
            found.append(below)
            found.extend(self.tree(below))
        return found

    def get(self, path):
        return self.zk.retry(self.zk.get, path)[0].decode("utf-8", "backslashreplace")

    def get_hex(self, path):
        return self.zk.retry(self.zk.get, path)[0].hex()

    def set(self, path, data):
        self.zk.retry(self.zk.set, path, data.encode())

    def shut_out(self, path):
        """From now on nobody who does not know the password may read it."""
        self.zk.retry(self.zk.set_acls, path,
                      [make_digest_acl("nobody", "x", all=True)])

    def let_in(self, path):
        """Takes shut_out() back."""
        self.zk.retry(self.zk.add_auth, "digest", "nobody:x")
        self.zk.retry(self.zk.set_acls, path, OPEN_ACL_UNSAFE)

    def authenticate(self, credentials):
        """user:password of the scheme digest"""
        self.zk.retry(self.zk.add_auth, "digest", credentials)

    def acl(self, path):
        """Who has which rights, each as perms:scheme:id"""
        return sorted("%d:%s:%s" % (one.perms, one.id.scheme, one.id.id)
                      for one in self.zk.retry(self.zk.get_acls, path)[0])

    def set_acl(self, path, *rights):
        """Each of the rights is like those"""
        split = [right.split(":", 2) for right in rights]
        self.zk.retry(self.zk.set_acls, path,
                      [ACL(int(perms), Id(*who)) for perms, *who in split])

    def stat(self, path):
        stat = self.zk.retry(self.zk.exists, path)
        return stat and stat._asdict()

    def create(self, path, data="", options=()):
        # If a sequential create is repeated, there may be two nodes.
        create = self.zk.create
        if "sequence" not in options:
            create = functools.partial(self.zk.retry, create)
        return create(path, data.encode(), makepath=True,
                      ephemeral="ephemeral" in options,
                      sequence="sequence" in options)

    def create_many(self, prefix, count):
        """Ephemeral sequential nodes in one directory."""
        pending = [self.zk.create_async(prefix, b"", ephemeral=True,
                                        sequence=True) for _ in range(count)]
        return len([answer.get() for answer in pending])

    def create_long(self, path, count, length):
        """Nodes in one directory, with names of so many characters."""
        for number in range(count):
            self.create("%s/%0*d" % (path, length, number))

    def delete(self, path):
        self.zk.retry(self.zk.delete, path)

    def delete_tree(self, path):
        self.zk.delete(path, recursive=True)

    def session(self):
        return self.zk.client_id[0]

    def password(self, session):
        return password_of(session).hex()

    def end_session(self, session):
        """Closes another client's session, whose password is no secret."""
        thief = KazooClient(hosts=self.hosts, timeout=10,
                            client_id=(session, password_of(session)))
        thief.start(timeout=60)
        taken = thief.client_id[0] == session
        thief.stop()
        thief.close()
        return taken

    def lock(self, key, kind, path, identifier="foreign"):
        lock = KINDS[kind](self.zk, path, identifier)
        self.locks[key] = lock
        threading.Thread(target=lock.acquire, daemon=True).start()

    def held(self, key):
        return bool(self.locks[key].is_acquired)

    def node(self, key):
        return self.locks[key].node

    def unlock(self, key):
        self.locks.pop(key).release()

    def attempt(self, kind, path):
        lock = KINDS[kind](self.zk, path, "foreign")
        got = bool(lock.acquire(blocking=False))
        if got:
            lock.release()
        return got

    def contenders(self, kind, path):
        """Who stands in the queue, as kazoo tells it"""
        return KINDS[kind](self.zk, path).contenders()

    def count(self, key, kind, path, file, rounds):
        self.locks[key] = Counter(KINDS[kind](self.zk, path),
                                  kind in ("kazoo_read", "ReadLock"), file,
                                  int(rounds))

    def counted(self, key):
        """How often it did; -1 while it is at it"""
        if self.locks[key].why:
            raise RuntimeError(self.locks[key].why)
        return self.locks[key].done

    def cancel(self, key):
        self.locks.pop(key).cancel()

    def quit(self):
        self.zk.stop()
        self.zk.close()


def main():
    logging.disable(logging.CRITICAL)
    timeout = float(sys.argv[2]) if len(sys.argv) > 2 else 10.0
    control = Control(sys.argv[1], timeout)
    for line in sys.stdin:
        command, *arguments = json.loads(line)
        try:
            answer = [True, getattr(control, command)(*arguments)]
        except Exception as error:
            answer = [False, type(error).__name__]
        print(json.dumps(answer), flush=True)
        if command == "quit":
            return


main()
