"""A lock between processes: those that end, those that are killed, and places where nothing can be locked."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from desktop_agent.storage.files import data_folder
from desktop_agent.storage.locks.conversation_locks import process_lock

CHILD = Path(__file__).with_name("lock_child.py")


@asynccontextmanager
async def another(name: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a process that holds the lock."""
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(sys.executable, str(CHILD), name, stdin=pipe, stdout=pipe)
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        assert await child.stdout.readline() == b"True\n"
        yield child
    finally:
        child.stdin.close()
        await child.wait()


async def is_free(name: str, seconds: float = 0) -> bool:
    async with process_lock(name, seconds) as is_alone:
        return is_alone


async def test_another_process_is_kept_out_until_it_leaves():
    async with another("a") as child:
        assert not await is_free("a")
        assert await is_free("b")
        waiting = asyncio.create_task(is_free("a", 60))
        child.stdin.close()
        assert await waiting
    assert await is_free("a")


async def test_a_process_that_is_killed_leaves_nothing_locked():
    async with another("a") as child:
        child.kill()
        await child.wait()
        assert await is_free("a")


async def test_the_same_process_is_kept_out_too():
    async with process_lock("a", 0) as first, process_lock("a", 0.1) as second:
        assert (first, second) == (True, False)
    assert await is_free("a")


async def test_who_is_cancelled_while_waiting_holds_nothing():
    async with process_lock("a", 0):
        waiting = asyncio.create_task(is_free("a", 60))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
        assert waiting.cancelled()
    assert await is_free("a")


async def test_where_nothing_can_be_locked_nobody_is_kept_out(monkeypatch):
    (data_folder() / "a.lock").mkdir()
    async with process_lock("a", 0) as first, process_lock("a", 0) as second:
        assert (first, second) == (True, True)
    blocked = data_folder() / "file"
    blocked.write_text("")
    monkeypatch.setenv("XDG_DATA_HOME", str(blocked))
    assert await is_free("a")
