#!/usr/bin/python3
"""TCP proxies for tests, driven over stdin and stdout (pipedprogram.py).

It ends, and all its connections with it, when stdin does.  TcpProxy.pm
describes the commands.

A route is one port on loopback and the port that its connections go to.  Each
direction, "up" to the target and "down" from it, is a queue of frames with a
gate behind it: what waits at a closed gate is delivered when it opens, as TCP
delivers late what a mended network lets through.
"""

import asyncio
import fnmatch
import re
import socket
import ssl
import struct
import sys

import pipedprogram

DIRECTIONS = ("up", "down")
CHUNK = 65536
LARGEST_FRAME = 16 * 1024 * 1024
RELEASE = re.compile(rb"Zookeeper version: [0-9.]+")
QUEUE_LENGTH = 1000


def chosen(direction):
    if direction == "both":
        return DIRECTIONS
    if direction in DIRECTIONS:
        return (direction,)
    raise ValueError("no direction: %s" % direction)


def reset_socket(writer):
    """Ends a connection with a RST instead of a FIN."""
    sock = writer.get_extra_info("socket")
    if sock is not None and not writer.transport.is_closing():
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                        struct.pack("ii", 1, 0))
    writer.transport.abort()


MULTI, EXISTS = 14, 3
ROLLED_BACK = -2  # what ZooKeeper says of what stands behind a failed operation


def skip_string(frame, at):
    length, = struct.unpack_from(">i", frame, at)
    return at + 4 + max(length, 0)


def skip_operation(frame, at, kind):
    """The end of one operation of a multi: create, delete, set or check."""
    at = skip_string(frame, at)
    if kind in (1, 5):
        at = skip_string(frame, at)
    if kind == 1:
        acls, = struct.unpack_from(">i", frame, at)
        at += 4
        for _ in range(acls):
            at = skip_string(frame, skip_string(frame, at + 4))
    return at + 4


def operations(frame):
    """The operations of a multi, as bytes."""
    at = 12
    found = []
    while True:
        kind, done, _ = struct.unpack_from(">i?i", frame, at)
        at += 9
        if done:
            return found
        end = skip_operation(frame, at, kind)
        found.append(frame[at:end])
        at = end


class Answer:
    """A result code that takes the place of the answer to one request."""

    def __init__(self, request, pattern, code):
        self.code = code
        self.failed = None
        if struct.unpack_from(">i", request, 8)[0] == MULTI:
            matches = [bool(pattern.search(op)) for op in operations(request)]
            self.operations = len(matches)
            self.failed = matches.index(True) if True in matches else 0

    def frame(self, reply):
        """A multi tells in its body which operation it was."""
        head = reply[4:16]
        if self.failed is None:
            body = head + struct.pack(">i", self.code)
        else:
            body = head + struct.pack(">i", 0)
            for i in range(self.operations):
                code = (0 if i < self.failed else
                        self.code if i == self.failed else ROLLED_BACK)
                body += struct.pack(">i?ii", -1, False, code, code)
            body += struct.pack(">i?i", -1, True, -1)
        return struct.pack(">i", len(body)) + body


def harmless(request):
    """A request that changes nothing, in the place of another."""
    body = request[4:8] + struct.pack(">ii", EXISTS, 1) + b"/" + b"\0"
    return struct.pack(">i", len(body)) + body


class Connection:
    """A client's connection to a route, and the one to the target behind."""

    def __init__(self, route, reader, writer):
        self.route = route
        self.reader = {"up": reader}
        self.writer = {"down": writer}
        self.queue = {d: asyncio.Queue(QUEUE_LENGTH) for d in DIRECTIONS}
        self.tasks = []
        self.client_gone = False
        self.losing = set()  # xids of requests whose replies get lost
        self.answers = {}  # by xid: what takes the place of the reply

    def start(self, coroutine):
        task = asyncio.ensure_future(coroutine)
        task.add_done_callback(lambda t: t.cancelled() or t.exception())
        self.tasks.append(task)

    async def run(self):
        route = self.route
        self.start(self.receive("up"))
        # Neither SYN nor the answer to it gets through a closed gate.
        await route.gate["up"].wait()
        await route.gate["down"].wait()
        if self.client_gone:
            self.end()
            return
        if not await self.connect():
            self.end()
            return
        self.start(self.receive("down"))
        self.start(self.deliver("up"))
        self.start(self.deliver("down"))

    async def connect(self):
        """
        A client of the target itself would be refused while nobody listens
        there, and try again; here it is connected already.  So the proxy of a
        patient route tries again in its place.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.route.patience
        while True:
            try:
                self.reader["down"], self.writer["up"] = \
                    await asyncio.open_connection(*self.route.target,
                                                  limit=CHUNK)
                return True
            except OSError:
                if loop.time() >= deadline or self.client_gone:
                    return False
                await asyncio.sleep(0.05)

    async def receive(self, direction):
        """Reads frame by frame, into the queue; None stands for the end."""
        loop = asyncio.get_running_loop()
        first = True
        try:
            while True:
                frame = await self.read_frame(direction, first)
                due = loop.time() + self.route.delay[direction]
                if first and direction == "down":
                    due += self.route.greeting
                first = False
                await self.queue[direction].put((due, frame))
        except (OSError, asyncio.IncompleteReadError):
            pass
        if direction == "up":
            self.client_gone = True
        due = loop.time() + self.route.delay[direction]
        await self.queue[direction].put((due, None))

    async def read_frame(self, direction, first):
        reader = self.reader[direction]
        if self.route.framed:
            head = await reader.readexactly(4)
            length, = struct.unpack(">i", head)
            if 0 <= length <= LARGEST_FRAME:
                return head + await reader.readexactly(length)
            return head
        if first and direction == "up" and self.route.announce:
            return await self.read_announcement(reader)
        data = await reader.read(CHUNK)
        if not data:
            raise OSError("end")
        return data

    async def read_announcement(self, reader):
        """
        What a ZooKeeper server says first on an election port: i64 version,
        i64 id, i32 length, its own address.  The other one calls back there,
        so the address of the way back through the proxy takes its place.
        """
        head = await reader.readexactly(20)
        await reader.readexactly(struct.unpack(">i", head[16:])[0])
        address = self.route.announce.encode()
        return head[:16] + struct.pack(">i", len(address)) + address

    async def deliver(self, direction):
        route = self.route
        writer = self.writer[direction]
        try:
            while True:
                due, frame = await self.queue[direction].get()
                wait = due - asyncio.get_running_loop().time()
                if wait > 0:
                    await asyncio.sleep(wait)
                if direction == "up" and frame is not None:
                    route.catch(frame)
                await route.gate[direction].wait()
                if frame is None:
                    break
                if route.dropping[direction]:
                    route.dropped[direction] += 1
                    continue
                if direction == "up":
                    self.note_request(frame)
                    frame = self.replace_request(frame)
                elif self.is_lost_reply(frame):
                    route.lose(self)
                    return
                elif len(frame) >= 20 and frame[4:8] in self.answers:
                    frame = self.answers.pop(frame[4:8]).frame(frame)
                elif route.release is not None:
                    frame = RELEASE.sub(route.release, frame)
                route.bytes[direction] += len(frame)
                left = route.cut[direction]
                if left is not None and len(frame) >= left:
                    route.cut[direction] = None
                    route.cuts += 1
                    writer.write(frame[:left])
                    await writer.drain()
                    self.end(reset=True)
                    return
                if left is not None:
                    route.cut[direction] = left - len(frame)
                writer.write(frame)
                await writer.drain()
        except OSError:
            pass
        self.end()

    def note_request(self, frame):
        pattern = self.route.losing
        if pattern is not None and pattern.search(frame):
            self.route.losing = None
            self.losing.add(frame[4:8])

    def replace_request(self, frame):
        route = self.route
        if (route.answering is None or len(frame) < 12
                or not route.answering.search(frame)):
            return frame
        self.answers[frame[4:8]] = Answer(frame, route.answer_to, route.code)
        route.answered += 1
        route.answers_left -= 1
        if route.answers_left == 0:
            route.answering = None
        return frame if route.carry_out else harmless(frame)

    def is_lost_reply(self, frame):
        return len(frame) >= 8 and frame[4:8] in self.losing

    def end(self, reset=False):
        self.route.connections.discard(self)
        for writer in self.writer.values():
            if reset:
                reset_socket(writer)
            else:
                writer.close()
        current = asyncio.current_task()
        for task in self.tasks:
            if task is not current:
                task.cancel()


def tls_context(options):
    if not options:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(options["file"], options["key"])
    return context


class Route:
    def __init__(self, target, framed, announce, patience, tls):
        self.target = target
        self.tls = tls_context(tls)
        self.patience = patience
        self.framed = framed
        self.announce = announce
        self.connections = set()
        self.gate = {d: asyncio.Event() for d in DIRECTIONS}
        self.delay = dict.fromkeys(DIRECTIONS, 0)
        self.greeting = 0
        self.dropping = dict.fromkeys(DIRECTIONS, False)
        self.cut = dict.fromkeys(DIRECTIONS)
        self.losing = None
        self.loss_is_due = False
        self.hold_when_lost = False
        self.answering = self.answer_to = None
        self.code = self.answers_left = self.answered = 0
        self.carry_out = False
        self.catching = None
        self.release = None
        self.server = None
        self.port = 0
        self.accepted = self.cuts = self.lost = self.caught = 0
        self.bytes = dict.fromkeys(DIRECTIONS, 0)
        self.dropped = dict.fromkeys(DIRECTIONS, 0)

    async def listen(self):
        if self.server is None:
            self.server = await asyncio.start_server(
                self.accept, "127.0.0.1", self.port, limit=CHUNK,
                reuse_address=True, ssl=self.tls)
            self.port = self.server.sockets[0].getsockname()[1]

    async def accept(self, reader, writer):
        # It came just before the route began to refuse.
        if self.server is None:
            reset_socket(writer)
            return
        connection = Connection(self, reader, writer)
        self.connections.add(connection)
        self.accepted += 1
        connection.start(connection.run())

    def lose(self, connection):
        self.lost += 1
        self.loss_is_due = False
        if self.hold_when_lost:
            self.hold()
        connection.end(reset=True)

    def catch(self, frame):
        if self.catching is not None and self.catching.search(frame):
            self.catching = None
            self.caught += 1
            self.hold("up")

    def hold(self, direction="both"):
        for d in chosen(direction):
            self.gate[d].clear()

    def pass_all(self):
        self.greeting = 0
        for direction in DIRECTIONS:
            self.gate[direction].set()
            self.delay[direction] = 0
            self.dropping[direction] = False
            self.cut[direction] = None
        self.losing = None
        # A reply that is about to be lost may be later than this.
        self.hold_when_lost = False
        self.answering = None
        self.catching = None


class Control:
    def __init__(self):
        self.routes = {}

    def named(self, pattern):
        found = [route for name, route in self.routes.items()
                 if fnmatch.fnmatchcase(name, pattern)]
        if not found:
            raise ValueError("no route: %s" % pattern)
        return found

    async def do_route(self, name, port, target, options=None):
        options = options or {}
        host, _, target_port = str(target).rpartition(":")
        route = Route((host or "127.0.0.1", int(target_port)),
                      options.get("framed", True), options.get("announce"),
                      options.get("patience", 0), options.get("tls"))
        route.port = port
        route.pass_all()
        await route.listen()
        self.routes[name] = route
        return route.port

    async def do_retarget(self, pattern, target):
        host, _, port = str(target).rpartition(":")
        for route in self.named(pattern):
            route.target = (host or "127.0.0.1", int(port))

    async def do_pass(self, pattern):
        for route in self.named(pattern):
            route.pass_all()
            await route.listen()

    async def do_hold(self, pattern, direction="both"):
        for route in self.named(pattern):
            route.hold(direction)

    async def do_drop(self, pattern, direction="both"):
        for route in self.named(pattern):
            for d in chosen(direction):
                route.dropping[d] = True

    async def do_delay(self, pattern, seconds, direction="both"):
        for route in self.named(pattern):
            for d in chosen(direction):
                route.delay[d] = seconds

    async def do_greet(self, pattern, seconds):
        for route in self.named(pattern):
            route.greeting = seconds

    async def do_release(self, pattern, release, kind):
        for route in self.named(pattern):
            route.release = ("%s version: %s" % (kind, release)).encode()

    async def do_reset(self, pattern):
        ended = 0
        for route in self.named(pattern):
            for connection in list(route.connections):
                connection.end(reset=True)
                ended += 1
        return ended

    async def do_refuse(self, pattern):
        for route in self.named(pattern):
            if route.server is not None:
                route.server.close()
                route.server = None
        return await self.do_reset(pattern)

    async def do_cut(self, pattern, count, direction):
        for route in self.named(pattern):
            for d in chosen(direction):
                route.cut[d] = count

    async def do_lose_reply(self, pattern, regex, hold=False):
        for route in self.named(pattern):
            route.losing = re.compile(regex.encode(), re.DOTALL)
            route.loss_is_due = True
            route.hold_when_lost = hold

    async def do_answer(self, pattern, kind, regex, code, times, carry_out):
        begin = b"^.{8}" + re.escape(struct.pack(">i", kind))
        for route in self.named(pattern):
            route.answering = re.compile(begin + b".*" + regex.encode(),
                                         re.DOTALL)
            route.answer_to = re.compile(regex.encode(), re.DOTALL)
            route.code = code
            route.answers_left = times
            route.answered = 0
            route.carry_out = carry_out

    async def do_catch(self, pattern, regex):
        for route in self.named(pattern):
            route.catching = re.compile(regex.encode(), re.DOTALL)

    async def do_sever(self, pattern):
        severed = 0
        for route in self.named(pattern):
            route.hold()
            for connection in route.connections:
                reset_socket(connection.writer["down"])
                severed += 1
        return severed

    async def do_stats(self, name):
        route, = self.named(name)
        return {"port": route.port, "accepted": route.accepted,
                "open": len(route.connections), "cuts": route.cuts,
                "lost": route.lost, "loss_is_due": route.loss_is_due,
                "answered": route.answered,
                "caught": route.caught,
                "bytes": route.bytes,
                "dropped": route.dropped}

    async def do_names(self):
        return sorted(self.routes)


async def main():
    await pipedprogram.serve(Control())


asyncio.run(main())
