#!/usr/bin/python3
"""Something on ZooKeeper's port that is no ZooKeeper, or a broken one.

    fakezk.py port

Driven over stdin and stdout (pipedprogram.py), and ends with stdin.  The
command "mode" says how new connections are treated, ends those that are open,
and counts from 0 again; "stats" tells what was counted; "modes" lists all that
are no server of another kind.

A mode is one of three kinds: what is sent at once, what is sent in answer to
the connect request, and what is sent in answer to each later request, after a
good answer to the first.
"""

import asyncio
import os
import struct
import sys

import pipedprogram

PASSWORD = bytes(range(16))
SESSION = 0x1234567890ABCDEF


def frame(body):
    return struct.pack(">i", len(body)) + body


def welcome(timeout, session, password, length=None):
    if length is None:
        length = struct.pack(">i", len(password))
    return (struct.pack(">iiq", 0, timeout, session) + length
            + (password or b"") + b"\0")


def reply(xid, error=0, body=b""):
    return struct.pack(">iqi", xid, 1, error) + body


def event(path):
    return reply(-1, 0, struct.pack(">ii", 2, 3) + path)


NOISE = os.urandom(4096)

# Sent as soon as somebody connects.  None: the connection is closed.
AT_ONCE = {
    "close": None,
    "mute": b"",
    "ssh": b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n",
    "http": b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n",
    "tls alert": b"\x15\3\3\0\2\2\x28",
    "noise": NOISE,
    "zeros": bytes(4096),
    "length -1": struct.pack(">i", -1) + NOISE,
    "length -2^31": struct.pack(">i", -2**31) + NOISE,
    "length 2^31-1": struct.pack(">i", 2**31 - 1) + NOISE,
    "length 1": struct.pack(">i", 1) + b"x",
    "half a length": b"\0\0",
}

# Sent in answer to the connect request, made from its timeout, session and
# password.
AT_CONNECT = {
    "connect: closed": lambda t, s, p: None,
    "connect: noise": lambda t, s, p: frame(NOISE[:37]),
    "connect: cut short": lambda t, s, p: frame(welcome(t, s, p))[:20],
    "connect: 4 bytes": lambda t, s, p: frame(bytes(4)),
    "connect: timeout 0": lambda t, s, p: frame(welcome(0, s, p)),
    "connect: timeout 1": lambda t, s, p: frame(welcome(1, s, p)),
    "connect: timeout -1": lambda t, s, p: frame(welcome(-1, s, p)),
    "connect: timeout 24 days": lambda t, s, p: frame(welcome(2**31 - 1, s, p)),
    "connect: password of length -1":
        lambda t, s, p: frame(welcome(t, s, None, struct.pack(">i", -1))),
    "connect: password of length 2^31-1":
        lambda t, s, p: frame(welcome(t, s, p, struct.pack(">i", 2**31 - 1))),
    "connect: no password":
        lambda t, s, p: frame(welcome(t, s, b"")),
    "connect: another password":
        lambda t, s, p: frame(welcome(t, s, PASSWORD)),
    "connect: another session": lambda t, s, p: frame(welcome(t, s ^ 1, p)),
    "connect: expired": lambda t, s, p: frame(welcome(0, 0, p)),
    "connect: twice": lambda t, s, p: frame(welcome(t, s, p)) * 2,
    "connect: then length -1":
        lambda t, s, p: frame(welcome(t, s, p)) + struct.pack(">i", -1) + NOISE,
    "connect: then noise": lambda t, s, p: frame(welcome(t, s, p)) + NOISE,
    "connect: then an event cut short":
        lambda t, s, p: frame(welcome(t, s, p)) + frame(event(b"\0")),
    "connect: then an event of length -5":
        lambda t, s, p: frame(welcome(t, s, p)) + frame(event(struct.pack(">i", -5))),
    "connect: then a reply to nothing":
        lambda t, s, p: frame(welcome(t, s, p)) + frame(reply(77)),
    "connect: then pings":
        lambda t, s, p: frame(welcome(t, s, p)) + 100 * frame(reply(-2)),
    "connect: then a failed login":
        lambda t, s, p: frame(welcome(t, s, p)) + frame(reply(-4, -115)),
}

# ClickHouse Keeper, as in its sources (KeeperTCPHandler.cpp, FourLetterCommand.cpp): its
# ids count from 1, whatever session the client asks for, and no session has a password.
KEEPER = "connect: ClickHouse Keeper"
KEEPER_SRVR = b"""ClickHouse Keeper version: v24.8.4.13-lts-8c4e1b5f3a6d
Latency min/avg/max: 0/0/0
Received: 2
Sent: 2
Connections: 1
Outstanding: 0
Zxid: 0x3
Mode: standalone
Node count: 4
"""
AT_CONNECT[KEEPER] = lambda t, s, p: frame(welcome(t, 1, bytes(16))[:-1])

# Sent in answer to each request after a good connect.
AT_REQUEST = {
    "request: silence": lambda xid: b"",
    "request: closed": lambda xid: None,
    "request: noise": lambda xid: frame(NOISE[:100]),
    "request: length -1": lambda xid: struct.pack(">i", -1),
    "request: length 2^31-1": lambda xid: struct.pack(">i", 2**31 - 1),
    "request: 4 bytes": lambda xid: frame(struct.pack(">i", xid)),
    "request: another's reply": lambda xid: frame(reply(xid + 1)),
    "request: reply cut short": lambda xid: frame(reply(xid))[:10],
    "request: reply without a body": lambda xid: frame(reply(xid)),
    "request: noise as body": lambda xid: frame(reply(xid, 0, NOISE)),
    "request: length -1 in the body":
        lambda xid: frame(reply(xid, 0, 64 * b"\xff")),
    "request: length 2^31-1 in the body":
        lambda xid: frame(reply(xid, 0, 16 * b"\x7f\xff\xff\xff")),
    "request: zeros as body": lambda xid: frame(reply(xid, 0, bytes(400))),
    "request: node exists": lambda xid: frame(reply(xid, -110)),
    "request: system error": lambda xid: frame(reply(xid, -1)),
    "request: unknown error": lambda xid: frame(reply(xid, -9999)),
    "request: expired": lambda xid: frame(reply(xid, -112)),
    "request: two replies": lambda xid: 2 * frame(reply(xid, -101)),
}


class Fake:
    def __init__(self, port):
        self.port = port
        self.mode = "mute"
        self.writers = set()
        self.server = None
        self.accepted = self.requests = 0

    async def do_listen(self):
        self.server = await asyncio.start_server(
            self.accept, "127.0.0.1", self.port, reuse_address=True)

    async def do_stop(self):
        self.server.close()
        self.end_all()
        await self.server.wait_closed()

    async def do_mode(self, mode):
        if not any(mode in m for m in (AT_ONCE, AT_CONNECT, AT_REQUEST)):
            raise ValueError("no mode: %s" % mode)
        self.mode = mode
        self.accepted = self.requests = 0
        self.end_all()

    async def do_stats(self):
        return {"accepted": self.accepted, "requests": self.requests,
                "open": len(self.writers)}

    async def do_modes(self):
        return [m for kind in (AT_ONCE, AT_CONNECT, AT_REQUEST) for m in kind
                if m != KEEPER]

    def end_all(self):
        for writer in list(self.writers):
            writer.transport.abort()
        self.writers.clear()

    async def accept(self, reader, writer):
        self.writers.add(writer)
        self.accepted += 1
        try:
            await self.converse(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass
        self.writers.discard(writer)
        writer.close()

    async def converse(self, reader, writer):
        mode = self.mode
        if mode in AT_ONCE:
            await self.say(writer, AT_ONCE[mode])
            await reader.read(-1)
            return
        length = await reader.readexactly(4)
        if mode == KEEPER and length == b"srvr":
            await self.say(writer, KEEPER_SRVR)
            return
        body = await reader.readexactly(struct.unpack(">i", length)[0])
        timeout, session = struct.unpack(">iq", body[12:24])
        password = body[28:44] if session else PASSWORD
        session = session or SESSION
        if mode in AT_CONNECT:
            await self.say(writer, AT_CONNECT[mode](
                timeout, session, password))
            await reader.read(-1)
            return
        await self.say(writer, frame(welcome(timeout, session, password)))
        while True:
            body = await self.read_frame(reader)
            self.requests += 1
            xid, = struct.unpack(">i", body[:4])
            await self.say(writer, AT_REQUEST[mode](xid))

    @staticmethod
    async def read_frame(reader):
        length, = struct.unpack(">i", await reader.readexactly(4))
        return await reader.readexactly(length)

    @staticmethod
    async def say(writer, what):
        if what is None:
            raise OSError("closed")
        writer.write(what)
        await writer.drain()


async def main():
    fake = Fake(int(sys.argv[1]))
    await fake.do_listen()
    await pipedprogram.serve(fake)


asyncio.run(main())
