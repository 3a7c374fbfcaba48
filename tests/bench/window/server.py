"""The server: a child process that writes one long answer at an even pace, piece by piece.

`python -m tests.bench.window.server PIECES` prints its port and serves until its input ends. It answers Chat
Completions; each piece is an event and an HTTP chunk.
"""

import asyncio
import contextlib
import json
import subprocess
import sys
from collections.abc import Generator
from functools import partial
from itertools import cycle, islice

from tests.fakes.vendor_streams import said

RATE = 200
"""Pieces a second."""
LENGTH = 5
"""Characters of a piece."""
WARMING = 100
"""Pieces of the answer to a prompt that asks for a short answer."""
_TITLE = 5
"""Pieces of the answer to any other request, which is for the title of the conversation."""
_PARAGRAPH = 60
"""Words of a paragraph."""
_WORDS = [
    "an",
    "answer",
    "explains",
    "what",
    "was",
    "asked,",
    "gives",
    "a",
    "reason,",
    "and",
    "names",
    "what",
    "to",
    "look",
    "at",
    "next.",
    "It",
    "is",
    "neither",
    "short",
    "nor",
    "long,",
    "as",
    "most",
    "of",
    "them",
    "are,",
    "and",
    "nobody",
    "has",
    "to",
    "read",
    "it",
    "twice",
    "to",
    "know",
    "what",
    "was",
    "meant",
    "by",
    "it.",
]
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_END = b"0\r\n\r\n"


@contextlib.contextmanager
def served(count: int) -> Generator[int]:
    """Run the server in a child process; yield its port."""
    command = [sys.executable, "-m", "tests.bench.window.server", str(count)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdin is not None
        try:
            yield int(child.stdout.readline())
        finally:
            child.stdin.close()


def pieces_of(count: int) -> list[str]:
    """Return the answer, paragraphs of ordinary words, in so many pieces."""
    words = cycle(_WORDS)
    text = ""
    while len(text) < count * LENGTH:
        text += " ".join(islice(words, _PARAGRAPH)) + "\n\n"
    return [text[start : start + LENGTH] for start in range(0, count * LENGTH, LENGTH)]


async def _write_evenly(writer: asyncio.StreamWriter, frames: list[bytes]) -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    for number, frame in enumerate(frames):
        await asyncio.sleep(began + number / RATE - loop.time())
        writer.write(frame)
    await writer.drain()


async def _answer(count: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
        head = await reader.readuntil(b"\r\n\r\n")
        if head.startswith(b"GET"):
            writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
        else:
            length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            request = json.loads(await reader.readexactly(int(length.partition(b":")[2])))
            sizes = {"short": WARMING, "long": count}
            pieces = pieces_of(sizes.get(request["messages"][-1]["content"], _TITLE))
            writer.write(_HEAD)
            await _write_evenly(
                writer, [b"%x\r\n%s\r\n" % (len(event), event) for event in said("openai-chat", pieces)]
            )
            writer.write(_END)
    writer.close()


async def _serve(count: int) -> None:
    server = await asyncio.start_server(partial(_answer, count), "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1])))
