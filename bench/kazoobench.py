"""kazoo as a contestant: one of these is one server, with one ZooKeeper session
and a thread for each client.  Commands and answers are those of
CuratorBench.java; kazoo's locks are not re-entrant, so it refuses that."""

import random
import sys
import threading
import time

from kazoo.client import KazooClient


class Holder(threading.Thread):
    """A lock that the driver has taken by name."""

    def __init__(self, lock):
        super().__init__(daemon=True)
        self.lock = lock
        self.held = threading.Event()
        self.release = threading.Event()
        self.releasing = threading.Event()
        self.start()

    def run(self):
        self.lock.acquire()
        self.held_at = time.monotonic_ns()
        self.held.set()
        self.release.wait()
        self.released_at = time.monotonic_ns()
        self.releasing.set()
        self.lock.release()


class Worker(threading.Thread):
    """One client of a run."""

    def __init__(self, bench, kind, names, number, warm_at, end_at):
        super().__init__(daemon=True)
        self.bench = bench
        self.kind = kind
        self.names = names
        self.number = number
        self.warm_at = warm_at
        self.end_at = end_at
        self.total = 0
        self.samples = []
        self.failure = None

    def path(self):
        root = self.bench.root
        if self.names == "distinct":
            return "%s/distinct/%d" % (root, self.number)
        if self.names in ("one", "held"):
            return "%s/%s" % (root, self.names)
        return "%s/many/%d" % (root, random.randrange(int(self.names)))

    def once(self):
        zk = self.bench.zk
        if self.kind == "shared":
            write = random.randrange(10) == 0
            lock = (zk.WriteLock if write else zk.ReadLock)(self.path())
        else:
            lock = zk.Lock(self.path())
        if self.kind == "try":
            if lock.acquire(blocking=False):
                raise RuntimeError("a try that had to fail did not")
            return
        lock.acquire()
        lock.release()

    def run(self):
        try:
            while True:
                begin = time.monotonic_ns()
                if begin >= self.end_at:
                    break
                self.once()
                end = time.monotonic_ns()
                self.total += 1
                if begin >= self.warm_at and end <= self.end_at:
                    self.samples.append(end - begin)
        except Exception as e:  # the driver reports whatever it is
            self.failure = e


class Bench:
    def __init__(self, hosts, root):
        self.root = root
        self.holders = {}
        self.zk = KazooClient(hosts=hosts, timeout=10)
        self.zk.start(timeout=60)

    def run(self, kind, clients, names, seconds, warmup):
        if kind == "reentry":
            raise RuntimeError("kazoo's locks are not re-entrant")
        warm_at = time.monotonic_ns() + int(float(warmup) * 1e9)
        end_at = warm_at + int(float(seconds) * 1e9)
        workers = [Worker(self, kind, names, n, warm_at, end_at)
                   for n in range(int(clients))]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
            if worker.failure:
                raise worker.failure
        samples = sorted(s for worker in workers for s in worker.samples)
        if not samples:
            raise RuntimeError("no pair was done")
        n = len(samples)
        return "rate=%.1f total=%d p50=%.4f p99=%.4f" % (
            n / float(seconds), sum(worker.total for worker in workers),
            samples[n // 2] / 1e6, samples[n - 1 - n // 100] / 1e6)

    def lock(self, name, path):
        self.holders[name] = Holder(self.zk.Lock(self.root + path))
        return ""

    def held(self, name):
        self.holders[name].held.wait()
        return "at=%d" % self.holders[name].held_at

    def unlock(self, name):
        holder = self.holders[name]
        holder.release.set()
        holder.releasing.wait()
        return "at=%d" % holder.released_at

    def forget(self):
        for holder in self.holders.values():
            holder.release.set()
        for holder in self.holders.values():
            holder.join()
        self.holders = {}
        return ""


def main():
    bench = Bench(sys.argv[1], sys.argv[2])
    print("ok", flush=True)
    for line in sys.stdin:
        words = line.split()
        try:
            print("ok " + getattr(bench, words[0])(*words[1:]), flush=True)
        except Exception as e:
            print("error %s: %s" % (type(e).__name__, str(e).replace("\n", " ")),
                  flush=True)
    bench.zk.stop()


main()
