#!/usr/bin/python3
"""A session process that misbehaves, in the place of zklock_session.

FakeSession.pm puts it there.  It is started by the worker, with the link on
descriptor 3; what it does is the word in the file "mode" beside it.  First it
removes itself, so that it is met once, unless the file "stay" is there too; it
notes each start in the file "starts".  With an argument it lists what it can
do.
"""

import os
import random
import socket
import struct
import sys
import time

START, CONNECTED, GONE, REPLY, EVENT, PONG, LOG, STEP = 1, 64, 65, 66, 67, 68, 69, 70
HEADER = "=IIIiQ"
HERE = os.path.dirname(os.path.abspath(__file__))

link = None


def frame(kind, body=b"", rc=0, tag=0):
    return struct.pack(HEADER, len(body), kind, 1, rc, tag) + body


def string(data):
    return struct.pack("=I", len(data)) + data


def read_frame():
    header = link.recv(24, socket.MSG_WAITALL)
    if len(header) < 24:
        sys.exit(0)
    length, kind, _, _, tag = struct.unpack(HEADER, header)
    body = link.recv(length, socket.MSG_WAITALL) if length else b""
    return kind, tag, body


def read_start():
    """The session that the worker wants to attach: id, password, timeout."""
    kind, _, body = read_frame()
    assert kind == START
    at = 8 + struct.unpack_from("=I", body, 4)[0]
    session, length = struct.unpack_from("=qI", body, at)
    at += 12
    return session, body[at:at + length], struct.unpack_from("=I", body, at + length)[0]


def connect():
    session, password, timeout = read_start()
    link.sendall(frame(CONNECTED, struct.pack("=q", session) + string(password)
                       + struct.pack("=I", timeout)))


def say(data):
    link.sendall(data)
    mute()


def mute():
    time.sleep(3600)


def come_to(last):
    """An attempt that goes so far: 1 started, 2 resolved, 3 accepted"""
    read_start()
    for step in range(1, last + 1):
        link.sendall(frame(STEP, bytes([step])))


def spin():
    while True:
        pass


def unfinished():
    connect()
    link.sendall(frame(REPLY, bytes(100))[:50])


def random_frames(kinds):
    """Well-formed frames of the given kinds, with anything in them."""
    for _ in range(3000):
        size = random.choice((0, 1, 4, 12, 40, 200))
        link.sendall(frame(random.choice(kinds), random.randbytes(size),
                           random.choice((0, -1, -101, -9999)),
                           random.getrandbits(64)))


def answer(body, rc=0):
    """Answers everything that it is asked with the same."""
    connect()
    while True:
        kind, tag, _ = read_frame()
        link.sendall(frame(PONG if kind == 9 else REPLY,
                           b"" if kind == 9 else body(), rc, tag))


def flood():
    connect()
    pong = frame(PONG) * 1000
    for _ in range(300):
        link.sendall(pong)
    mute()


def other_protocol():
    """The real program, started by a library with the next link protocol"""
    header = link.recv(24, socket.MSG_WAITALL)
    length = struct.unpack_from("=I", header)[0]
    body = link.recv(length, socket.MSG_WAITALL)
    number = struct.unpack_from("=I", body)[0]
    ours, theirs = socket.socketpair()
    ours.sendall(header + struct.pack("=I", number + 1) + body[4:])
    if os.fork() == 0:
        theirs.close()
        while data := ours.recv(65536):
            link.sendall(data)
        os._exit(0)
    os.dup2(theirs.fileno(), 3)
    os.execl(HERE + "/real", "zklock_session")


ILL_STRING = struct.pack("=I", 0xFFFFFFFF) + b"x"
STAT = struct.pack("=qqqqqii", 5, 5, 0, 0, 0, 1, 0)

MODES = {
    "exit": lambda: sys.exit(0),
    "abort": os.abort,
    "mute": mute,
    "spin": spin,
    "noise": lambda: say(os.urandom(100000)),
    "zeros": lambda: say(bytes(100000)),
    "length 2^32-1": lambda: say(struct.pack("=I", 0xFFFFFFFF) + bytes(20)),
    "half a frame": unfinished,
    "half a frame, then silence": lambda: (unfinished(), mute()),
    "started, then silence": lambda: (come_to(1), mute()),
    "resolved, then silence": lambda: (come_to(2), mute()),
    "accepted, then silence": lambda: (come_to(3), mute()),
    "accepted, then exit": lambda: come_to(3),
    "steps that there are not":
        lambda: say(b"".join(frame(STEP, bytes([n])) for n in (3, 0, 2, 1, 4, 255))
                    + frame(STEP)),
    "connected, then silence": lambda: (connect(), mute()),
    "connected, then spin": lambda: (connect(), spin()),
    "connected, then noise": lambda: (connect(), say(os.urandom(100000))),
    "random replies and events":
        lambda: (connect(), random_frames((REPLY, EVENT, PONG, STEP, 0, 72, 4711))),
    "random replies at once":
        lambda: random_frames((REPLY, EVENT, PONG, STEP, 0, 72, 4711)),
    "ill string in a log": lambda: say(frame(LOG, b"\1" + ILL_STRING)),
    "ill string in an event":
        lambda: (connect(), say(frame(EVENT, b"\1" + ILL_STRING))),
    "empty goodbye": lambda: say(frame(GONE)),
    "unknown goodbye": lambda: say(frame(GONE, b"\x63" + ILL_STRING)),
    "empty answers": lambda: answer(lambda: b""),
    "answers of zeros": lambda: answer(lambda: bytes(300)),
    "answers of noise": lambda: answer(lambda: os.urandom(300)),
    "answers with 4 000 million results":
        lambda: answer(lambda: struct.pack("=I", 0xFFFFFFFF) + bytes(300)),
    "unknown errors": lambda: answer(lambda: b"", -9999),
    "flood": flood,
    "another protocol": other_protocol,
    # These say that the session is gone, and are believed.
    "lies: another session":
        lambda: say(frame(CONNECTED, struct.pack("=q", 4711)
                          + string(b"0123456789abcdef")
                          + struct.pack("=I", 4000))),
    "lies: expired": lambda: say(frame(GONE, b"\3" + string(b"expired"))),
    "lies: transaction numbers that went back":
        lambda: answer(lambda: struct.pack("=Ii", 1, 0) + string(b"") + b"\1"
                       + STAT),
    "lies: anything": lambda: random_frames(tuple(range(60, 75))),
}


def main():
    global link
    if len(sys.argv) > 1:
        print("\n".join(MODES))
        return
    link = socket.socket(fileno=3)
    link.setblocking(True)
    with open(HERE + "/mode", encoding="ascii") as file:
        mode = file.read().strip()
    with open(HERE + "/starts", "a", encoding="ascii") as file:
        file.write(mode + "\n")
    if not os.path.exists(HERE + "/stay"):
        os.unlink(HERE + "/fake")
    MODES[mode]()


main()
