#!/usr/bin/python3
"""Changes what a stopped ZooKeeper server will start with.

    zksnapshot.py version-2-directory path counter

Sets the counter of creates of a znode, from which the numbers of sequential
children come, in the newest snapshot.
"""

import glob
import os
import struct
import sys
import zlib

SEAL = struct.pack(">i", 1) + b"/"


def seals(data):
    """
    The offsets of checksums, each of all that is before it and followed by
    the string "/": of the tree, and of its digest.
    """
    return [at - 8 for at in range(8, len(data) - len(SEAL) + 1)
            if data[at:at + len(SEAL)] == SEAL
            and struct.unpack_from(">q", data, at - 8)[0]
            == zlib.adler32(data[:at - 8])]


def find_counter(data, path):
    """
    The offset of a node's cversion: string path, buffer data, i64 acl, and of
    its stat i64 czxid, mzxid, ctime, mtime, i32 version, cversion.
    """
    name = path.encode()
    wanted = struct.pack(">i", len(name)) + name
    at = data.index(wanted) + len(wanted)
    length, = struct.unpack_from(">i", data, at)
    at += 4 + max(length, 0) + 8
    return at + 8 * 4 + 4


def main():
    directory, path, counter = sys.argv[1:]
    file = max(glob.glob(directory + "/snapshot.*"),
               key=lambda name: int(name.rpartition(".")[2], 16))
    with open(file, "rb") as handle:
        data = bytearray(handle.read())

    ends = seals(data)
    struct.pack_into(">i", data, find_counter(data, path), int(counter))
    for end in ends:
        struct.pack_into(">q", data, end, zlib.adler32(data[:end]))
    assert ends and seals(data) == ends
    with open(file + ".new", "wb") as handle:
        handle.write(data)
    os.rename(file + ".new", file)


main()
