"""The inside of a program that PipedProgram.pm starts: reads one JSON array per
line, [command, argument, ...], and answers each with one line, [true, value] or
[false, "what is wrong"], until its input ends.
"""

import asyncio
import json
import sys

LONGEST_LINE = 1024 * 1024


async def serve(target):
    """Each command is a coroutine of the target, do_<command>."""
    reader = asyncio.StreamReader(limit=LONGEST_LINE)
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    async for line in reader:
        command, *arguments = json.loads(line)
        try:
            value = await getattr(target, "do_" + command)(*arguments)
            answer = [True, value]
        except Exception as error:
            answer = [False, "%s: %s" % (type(error).__name__, error)]
        print(json.dumps(answer), flush=True)
