#!/usr/bin/python3
"""UDP relays for tests, driven over stdin and stdout (pipedprogram.py).

It ends when stdin does.  UdpRelay.pm describes the commands.  A relay passes on what
arrives at its port, in one direction: nobody answers to the source of a datagram.
"""

import asyncio
import fnmatch

import pipedprogram

MOST_SEEN = 10000


class Relay(asyncio.DatagramProtocol):
    def __init__(self, target):
        self.target = target
        self.copies = 1
        self.delay = 0.0
        self.seen = []

    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, source):
        if len(self.seen) < MOST_SEEN:
            self.seen.append(data.hex())
        for _ in range(self.copies):
            if self.delay > 0:
                asyncio.get_running_loop().call_later(
                    self.delay, self.transport.sendto, data, self.target)
            else:
                self.transport.sendto(data, self.target)


class Relays:
    def __init__(self):
        self.relays = {}

    def chosen(self, pattern):
        return [relay for name, relay in self.relays.items()
                if fnmatch.fnmatchcase(name, pattern)]

    async def do_route(self, name, port, target):
        _, self.relays[name] = await asyncio.get_running_loop().create_datagram_endpoint(
            lambda: Relay(("127.0.0.1", target)), local_addr=("127.0.0.1", port))

    async def do_copies(self, pattern, copies):
        for relay in self.chosen(pattern):
            relay.copies = copies

    async def do_delay(self, pattern, seconds):
        for relay in self.chosen(pattern):
            relay.delay = seconds

    async def do_seen(self, name):
        return self.relays[name].seen


asyncio.run(pipedprogram.serve(Relays()))
