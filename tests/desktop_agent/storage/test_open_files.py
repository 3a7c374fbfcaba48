"""No process replaces a database that another has open, and a log that was removed after a kill is reported."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from desktop_agent.storage.opening import DATABASE_NAME
from desktop_agent.storage.store import Store
from desktop_agent.types.errors import DatabaseBusy
from desktop_agent.types.messages import Message

CHILD = """
import asyncio, sys
from pathlib import Path
from desktop_agent.storage.store import Store
from desktop_agent.types.messages import Message

async def main():
    store = await Store.open(Path(sys.argv[1]), "window")
    conversation = await store.create_conversation(title="of the child")
    await store.commit(conversation.id, Message.user("said"))
    print("open", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await store.close()

asyncio.run(main())
"""


@contextmanager
def another_process(folder: Path) -> Generator[subprocess.Popen[bytes]]:
    """Run a process that has the store open until its input ends."""
    command = [sys.executable, "-c", CHILD, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"open\n"
        yield child
        assert child.stdin is not None
        child.stdin.close()


def kill(child: subprocess.Popen[bytes]) -> None:
    os.kill(child.pid, signal.SIGKILL)
    child.wait()


async def notices_of_opening(folder: Path) -> list[str]:
    store = await Store.open(folder)
    await store.close()
    return [str(notice) for notice in store.notices]


def lock_files(folder: Path) -> list[Path]:
    return list((folder / "locks" / "open").iterdir())


async def test_nothing_is_rescued_under_another_process(tmp_path: Path) -> None:
    mark = tmp_path / f"{DATABASE_NAME}.is-damaged"
    with another_process(tmp_path) as child:
        mark.touch()
        before = (tmp_path / DATABASE_NAME).stat().st_ino
        with pytest.raises(DatabaseBusy) as refused:
            await Store.open(tmp_path)
        assert f"the window (process {child.pid})" in str(refused.value.sentence)
        assert (tmp_path / DATABASE_NAME).stat().st_ino == before
    assert "were damaged" in (await notices_of_opening(tmp_path))[0]
    assert not mark.exists()
    assert not lock_files(tmp_path)


async def test_two_processes_have_a_whole_database_open(tmp_path: Path) -> None:
    with another_process(tmp_path):
        assert await notices_of_opening(tmp_path) == []


async def test_one_that_was_killed_keeps_nobody_out(tmp_path: Path) -> None:
    with another_process(tmp_path) as child:
        kill(child)
        (tmp_path / f"{DATABASE_NAME}.is-damaged").touch()
        assert "were damaged" in (await notices_of_opening(tmp_path))[0]
    assert not lock_files(tmp_path)


async def test_a_log_that_was_removed_after_a_kill_is_told_once(tmp_path: Path) -> None:
    assert await notices_of_opening(tmp_path) == []
    with another_process(tmp_path) as child:
        kill(child)
        (tmp_path / f"{DATABASE_NAME}-wal").unlink()
        assert (
            f"“{DATABASE_NAME}-wal”, which had the newest messages, was removed"
            in (await notices_of_opening(tmp_path))[0]
        )
    assert await notices_of_opening(tmp_path) == []


async def test_a_log_that_another_process_closed_after_a_kill_is_not_told(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    with another_process(tmp_path) as child:
        kill(child)
        conversation = await store.create_conversation(title="goes on")
        await store.commit(conversation.id, Message.user("said"))
        await store.close()
    assert await notices_of_opening(tmp_path) == []


CLOSED_IN_PART = """
import asyncio, os, signal, sys
from pathlib import Path
from desktop_agent.storage import guarded_database, opening
from desktop_agent.storage.connection import DatabaseConnection
from desktop_agent.storage.store import Store

class Dying(DatabaseConnection):
    def close(self):
        super().close()
        os.kill(os.getpid(), signal.SIGKILL)

async def main(when):
    if when == "opening":
        real = opening._is_damaged
        opening._is_damaged = lambda *given: (real(*given), os.kill(os.getpid(), signal.SIGKILL))
    store = await Store.open(Path(sys.argv[1]))
    await store.create_conversation(title="stored")
    if when == "closing":
        store._thread._database._connection.__class__ = Dying
        await store.close()
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main(sys.argv[2]))
"""


@pytest.mark.parametrize("whens", [("closing",), ("working", "opening")])
def test_a_log_that_the_killed_process_closed_itself_is_not_told(tmp_path: Path, whens: tuple[str, ...]) -> None:
    assert asyncio.run(notices_of_opening(tmp_path)) == []
    for when in whens:
        command = [sys.executable, "-c", CLOSED_IN_PART, str(tmp_path), when]
        assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert not (tmp_path / f"{DATABASE_NAME}-wal").exists()
    assert asyncio.run(notices_of_opening(tmp_path)) == []
