"""An engine over a folder that cannot be written to: everything can be read, nothing is begun that would be lost."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from desktop_agent.conversation.items import NoticeItem, UserItem
from desktop_agent.engine import session_opening
from desktop_agent.engine.engine import Engine
from desktop_agent.storage import database_thread, write_behind
from desktop_agent.types.errors import DiskFull, StorageFailed
from desktop_agent.types.messages import Message
from tests.frame.disks import fill, remount
from tests.frame.patience import PATIENCE


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_opening, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(database_thread, "FIRST_RETRY_SECONDS", 0.02)
    monkeypatch.setattr(write_behind, "RETRY_SECONDS", 0.02)


async def filled(folder: Path) -> str:
    engine = await Engine.open(folder)
    record = await engine.store.create_conversation(title="kept")
    await engine.store.commit(record.id, Message.user("said before"))
    await engine.close()
    return record.id


def break_disk(disk: Path, how: str) -> None:
    if how == "full":
        fill(disk / "ballast")
    else:
        remount(disk, "ro")


def mend(disk: Path) -> None:
    remount(disk, "rw")
    (disk / "ballast").unlink(missing_ok=True)


@pytest.mark.parametrize("how", ["full", "read-only"])
async def test_a_conversation_is_read_until_it_can_be_written(small_disk: Path, how: str) -> None:
    folder = small_disk / "data"
    id_ = await filled(folder)
    break_disk(small_disk, how)
    engine = await Engine.open(folder)
    with pytest.raises(StorageFailed) as error:
        await engine.session(id_)
    follower = await engine.follow_conversation(id_, error.value)
    assert [item.text for item in follower.session.transcript if isinstance(item, UserItem)] == ["said before"]
    with pytest.raises(StorageFailed) as refused:
        follower.session.send(Message.user("lost?"))
    assert refused.value.whole == error.value.whole
    with pytest.raises(StorageFailed) as refused:
        engine.new_session(endpoint_id="x", model="m").send(Message.user("lost?"))
    assert refused.value.whole == error.value.whole
    assert await engine.interrupted_conversations() == ()

    reading = asyncio.create_task(follower.run_until_free())
    mend(small_disk)
    async with asyncio.timeout(PATIENCE):
        await reading
    session = await engine.session(id_)
    assert [message.text for message in session.history] == ["said before"]
    await engine.close()


async def test_ask_says_why_and_sends_nothing(small_disk: Path) -> None:
    folder = small_disk / "data"
    id_ = await filled(folder)
    remount(small_disk, "ro")
    for words in (["--demo", "hi"], ["--continue", id_, "hi"]):
        command = [sys.executable, "-m", "desktop_agent", "ask", "--data-dir", str(folder), *words]
        process = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=False)
        assert process.returncode == 1
        assert process.stdout == ""
        assert "cannot be written to" in process.stderr
        assert "Traceback" not in process.stderr


async def test_what_the_disk_refused_is_written_by_itself_later_and_the_notice_leaves(small_disk: Path) -> None:
    engine = await Engine.open(small_disk / "data")
    session = engine.new_session(endpoint_id="x", model="m")
    session._writer.add(Message.user("first"))
    await session.flush()
    fill(small_disk / "ballast")
    session._writer.add(Message.user("x" * 100_000))
    with pytest.raises(StorageFailed):
        await session.flush()
    notices = [item for item in session.transcript if isinstance(item, NoticeItem)]
    assert [notice.level for notice in notices] == ["error"]
    mend(small_disk)
    async with asyncio.timeout(PATIENCE):
        while not session._writer.journal_queue.is_flushed:
            await asyncio.sleep(0.01)
    assert not [item for item in session.transcript if isinstance(item, NoticeItem)]
    assert (await engine.store.record(session.record.id)).message_count == 2
    await engine.close()


async def test_a_conversation_of_which_something_is_not_written_is_not_deleted(small_disk: Path) -> None:
    engine = await Engine.open(small_disk / "data")
    session = engine.new_session(endpoint_id="x", model="m")
    id_ = session.record.id
    session._writer.add(Message.user("first"))
    await session.flush()
    fill(small_disk / "ballast")
    session._writer.add(Message.user("x" * 100_000))
    del session
    with pytest.raises(DiskFull):
        await engine.delete_conversation(id_)
    assert [session.record.id for session in engine.unsaved] == [id_]
    mend(small_disk)
    assert len((await engine.session(id_)).history) == 2
    await engine.delete_conversation(id_)
    assert engine.unsaved == ()
    assert await engine.store.list_conversations() == ()
    await engine.close()
