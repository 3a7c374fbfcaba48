"""`ask` where the disk takes the answer no more: the system refuses files above a size."""

import asyncio
import sys
from pathlib import Path

from tests.desktop_agent.faces.asking import ROOT, Asked, Asker, finished, serving
from tests.desktop_agent.providers.loopback import Loopback, Reply, chunk, sse

LARGEST_KB = 400


async def limited(words: list[str]) -> Asked:
    """In a process whose files cannot grow beyond a size: what the journal needs fails, what is read does not."""
    limit = f'ulimit -f {LARGEST_KB}; exec "$@"'
    process = await asyncio.create_subprocess_exec(
        *("bash", "-c", limit, "bash", sys.executable, "-m", "desktop_agent", *words),
        cwd=ROOT,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    return await finished(process)


async def test_an_answer_that_was_not_stored_is_said_and_fails(ask: Asker, tmp_path: Path) -> None:
    long = "word " * 200_000
    with serving(Loopback(Reply(sse(chunk({"content": long}), chunk(finish="stop"))))) as server:
        asked = await limited(ask.words("Write much", server=server))
    assert asked.out.strip() == long.strip()
    assert "The answer was not stored: " in asked.err
    assert "only copy" in asked.err
    assert asked.code == 1


async def test_an_answer_that_was_stored_says_nothing_of_it(ask: Asker) -> None:
    with serving(Loopback(Reply(sse(chunk({"content": "short"}), chunk(finish="stop"))))) as server:
        asked = await limited(ask.words("Write little", server=server))
    assert (asked.code, asked.out) == (0, "short\n")
    assert asked.err == f"conversation {asked.conversation}\n"
