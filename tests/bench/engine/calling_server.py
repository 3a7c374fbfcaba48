"""The server of the latency benchmark: a child process that answers Chat Completions with a call, then with a word.

`python -m tests.bench.engine.calling_server` prints its port and serves until its input ends. An argument of the call
is the time at which its last byte is written, of the clock that all processes share.
"""

import asyncio
import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


@contextlib.contextmanager
def served() -> Iterator[int]:
    """Run the server in a child process; yield its port."""
    command = [sys.executable, "-m", "tests.bench.engine.calling_server"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdin is not None
        try:
            yield int(child.stdout.readline())
        finally:
            child.stdin.close()


def _chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
    return b"data: %s\n\n" % json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}).encode()


def _call(number: int) -> bytes:
    arguments = json.dumps({"at": time.monotonic(), "number": number})
    call = {"index": 0, "id": f"call_{number}", "function": {"name": "note", "arguments": arguments}}
    return _chunk({"tool_calls": [call]}) + _chunk({}, "tool_calls") + b"data: [DONE]\n\n"


def _framed(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n0\r\n\r\n" % (len(data), data)


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    number = 0
    with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = next(line for line in head.split(b"\r\n") if line.startswith(b"content-length:"))
            request = json.loads(await reader.readexactly(int(length.partition(b":")[2])))
            writer.write(_HEAD)
            await writer.drain()
            # The head goes first, as from a model that thinks. The rest is one write, so that the time of its last
            # byte is known.
            await asyncio.sleep(0.002)
            number += 1
            is_answered = request["messages"][-1]["role"] == "tool"
            writer.write(
                _framed(_chunk({"content": "done"}, "stop") + b"data: [DONE]\n\n" if is_answered else _call(number))
            )
            await writer.drain()
    writer.close()


async def _main() -> None:
    server = await asyncio.start_server(_serve, "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_main())
