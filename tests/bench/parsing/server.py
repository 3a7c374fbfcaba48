"""The server of the benchmark: a child process that serves the long answers, chosen by the path of the request.

`python -m tests.bench.parsing.server EVENTS` prints two ports and serves until its input ends. At the first port each
event is an HTTP chunk, at the second each byte.
"""

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import Iterator
from functools import cache, partial

from tests.fakes.vendor_streams import dialect_of, events

_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_END = b"0\r\n\r\n"
_WRITTEN_AT_ONCE = 64 * 1024


@contextlib.contextmanager
def served(count: int) -> Iterator[tuple[int, int]]:
    """Run the server in a child process, with answers of so many events; yield its two ports."""
    command = [sys.executable, "-m", "tests.bench.parsing.server", str(count)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdin is not None
        try:
            whole, single = child.stdout.readline().split()
            yield int(whole), int(single)
        finally:
            child.stdin.close()


@cache
def _pieces(dialect: str, count: int, by_byte: bool) -> list[bytes]:
    """Return the pieces to write."""
    if not by_byte:
        return [b"%x\r\n%s\r\n" % (len(event), event) for event in events(dialect, count)] + [_END]
    # Each byte is a chunk, but one system call writes many of them: otherwise the kernel would be measured.
    data = b"".join(b"1\r\n%c\r\n" % byte for byte in b"".join(events(dialect, count))) + _END
    return [data[start : start + _WRITTEN_AT_ONCE] for start in range(0, len(data), _WRITTEN_AT_ONCE)]


async def _answer(count: int, by_byte: bool, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    # If the body were not read, the connection would end with a reset, and a quick client would lose the last bytes.
    await reader.readexactly(int(length.partition(b":")[2]))
    dialect = dialect_of(head.split(b" ")[1].decode())
    with contextlib.suppress(ConnectionError):
        writer.write(_HEAD)
        for piece in _pieces(dialect, count, by_byte):
            writer.write(piece)
            await writer.drain()
    writer.close()


async def _serve(count: int) -> None:
    servers = [
        await asyncio.start_server(partial(_answer, count, by_byte), "127.0.0.1", 0) for by_byte in (False, True)
    ]
    sys.stdout.write(" ".join(str(server.sockets[0].getsockname()[1]) for server in servers) + "\n")
    sys.stdout.flush()
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1])))
