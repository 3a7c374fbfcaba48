"""A process that is killed, a disk that is full, a folder that cannot be written to, a database that others hold."""

import asyncio
import errno
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from desktop_agent.storage.content_files import PictureFiles
from desktop_agent.storage.files import file_error
from desktop_agent.storage.preferences_file import PreferencesFile
from desktop_agent.storage.store import DATABASE_NAME, Store
from desktop_agent.types.errors import DatabaseBusy, DiskFull, StorageFailed
from desktop_agent.types.messages import Message
from desktop_agent.types.preferences import Preferences
from tests.desktop_agent.storage.test_store import files_with
from tests.frame.disks import fill, remount

APPENDING = """
import asyncio, sys
from datetime import UTC, datetime
from pathlib import Path
from desktop_agent.storage.store import Store
from desktop_agent.types.engine_events import Envelope
from desktop_agent.types.provider_events import ContentDelta

async def main():
    store = await Store.open(Path(sys.argv[1]))
    made = await store.create_conversation(title="t")
    print(made.id, flush=True)
    seq = 0
    while True:
        rows = [Envelope(seq + i, "run", None, None, datetime.now(UTC), ContentDelta(f"{seq + i} ")) for i in range(3)]
        await store.append_journal(made.id, rows)
        seq += 3
        print(seq, flush=True)

asyncio.run(main())
"""


def start(program: str, folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", program, str(folder)], stdout=subprocess.PIPE, text=True)


DELETING = """
import asyncio, os, signal, sys
from pathlib import Path
from desktop_agent.storage.store import Store

def watch(db, moment):
    statements = []
    def on_statement(statement):
        statements.append(statement)
        if moment in {statement, statements[-2:-1] and "after " + statements[-2]}:
            os.kill(os.getpid(), signal.SIGKILL)
    db.set_trace_callback(on_statement)

async def main():
    store = await Store.open(Path(sys.argv[1]))
    (record,) = await store.list_conversations()
    loaded = await store.load(record.id)
    await store.run(lambda db: watch(db, (Path(sys.argv[1]) / "moment").read_text()))
    await store.branches.delete(record.id, loaded.messages[1].id, head_message_id=loaded.messages[0].id, title="new")

asyncio.run(main())
"""


@pytest.mark.parametrize(("moment", "remaining"), [("COMMIT", 40), ("after COMMIT", 1)])
async def test_a_kill_while_messages_are_deleted_leaves_all_or_nothing_of_it(
    tmp_path: Path, moment: str, remaining: int
) -> None:
    store = await Store.open(tmp_path)
    conversation = await store.create_conversation(title="old")
    await store.commit(
        conversation.id, *(Message.user("zqxmarker" * 1_000 if index else "kept") for index in range(40))
    )
    await store.close()
    (tmp_path / "moment").write_text(moment)
    child = start(DELETING, tmp_path)
    await asyncio.to_thread(child.communicate)
    assert child.returncode == -signal.SIGKILL
    store = await Store.open(tmp_path)
    loaded = await store.load(conversation.id)
    assert (len(loaded.messages), loaded.record.title) == (remaining, "old" if remaining > 1 else "new")
    assert len((await store.load_tree(conversation.id)).messages) == remaining
    await store.close()
    assert files_with(tmp_path, b"zqxmarker") == ([DATABASE_NAME] if remaining > 1 else [])


@pytest.mark.parametrize("acknowledgements", [1, 7, 60])
async def test_what_was_acknowledged_survives_kill_9(tmp_path: Path, acknowledgements: int) -> None:
    child = start(APPENDING, tmp_path)
    try:
        assert child.stdout is not None
        id_ = child.stdout.readline().strip()
        for _ in range(acknowledgements):
            assert child.stdout.readline()
        os.kill(child.pid, signal.SIGKILL)
        last_lines = child.stdout.read().splitlines()
    finally:
        child.kill()
        child.wait()
        if child.stdout:
            child.stdout.close()
    acknowledged = int(last_lines[-1]) if last_lines and last_lines[-1] else acknowledgements * 3

    store = await Store.open(tmp_path)
    assert store.notices == ()
    loaded = await store.load(id_)
    assert len(loaded.journal) >= acknowledged
    assert [row.seq for row in loaded.journal] == list(range(len(loaded.journal)))
    assert len(loaded.journal) % 3 == 0  # never a part of a batch
    await store.close()


async def test_a_full_database_says_so_keeps_what_it_has_and_recovers(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    conversation = await store.create_conversation(title="t")
    await store.commit(conversation.id, Message.user("before"))
    await store.run(lambda db: db.execute("PRAGMA max_page_count=30").fetchall())
    with pytest.raises(DiskFull):
        await store.commit(conversation.id, Message.user("x" * 500_000))
    assert [message.text for message in (await store.load(conversation.id)).messages] == ["before"]
    await store.run(lambda db: db.execute("PRAGMA max_page_count=100000").fetchall())
    await store.commit(conversation.id, Message.user("x" * 500_000))
    await store.close()
    again = await Store.open(tmp_path)
    assert again.notices == ()
    assert (await again.load(conversation.id)).record.message_count == 2
    await again.close()


async def test_a_full_disk_says_so_keeps_what_it_has_and_recovers(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    store = await Store.open(small_disk / "data")
    conversation = await store.create_conversation(title="t")
    await store.commit(conversation.id, Message.user("before"))
    fill(ballast)
    with pytest.raises(DiskFull, match="no room"):
        await commit_many(store, conversation.id)
    messages = (await store.load(conversation.id)).messages
    assert messages[0].text == "before"

    picture = PictureFiles(small_disk / "data")
    with pytest.raises(DiskFull):
        await picture.put(b"\x89PNG\r\n\x1a\n" + bytes(100_000), "image/png", 1, 1)
    with pytest.raises(DiskFull):
        await PreferencesFile(small_disk / "data").save(Preferences())
    with pytest.raises(DiskFull):
        await store.snapshot(small_disk / "data" / "copy")
    with pytest.raises(DiskFull):
        await Store.open(small_disk / "new")
    assert leftovers(small_disk) == []

    ballast.unlink()
    await store.commit(conversation.id, Message.user("after"))
    await store.close()
    again = await Store.open(small_disk / "data")
    assert again.notices == ()
    assert (await again.load(conversation.id)).messages[-1].text == "after"
    await again.close()


async def commit_many(store: Store, id_: str) -> None:
    for number in range(50):
        await store.commit(id_, Message.user(str(number) * 20_000))


def leftovers(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.name.startswith((".writing", ".copy"))]


async def test_a_disk_that_is_read_only_says_so(small_disk: Path) -> None:
    store = await Store.open(small_disk / "data")
    await store.close()
    remount(small_disk, "ro")
    with pytest.raises(StorageFailed, match=f"“{small_disk}” cannot be written to"):
        await Store.open(small_disk / "new")
    # A restore, an export and a copy fail too, and the remedy does not name another data folder.
    assert str(file_error(OSError(errno.EROFS, "Read-only file system"), small_disk).remedy) == (
        "Make the folder writable, or choose another one."
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
async def test_a_folder_that_is_read_only_says_so(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o500)
    with pytest.raises(StorageFailed, match="cannot be written to"):
        await Store.open(folder)


async def test_a_database_held_by_another_is_busy_and_then_is_not(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    conversation = await store.create_conversation(title="t")
    await store.run(lambda db: db.execute("PRAGMA busy_timeout=20").fetchall())
    with closing(sqlite3.connect(tmp_path / "conversations.sqlite3", isolation_level=None)) as other_db:
        other_db.execute("BEGIN IMMEDIATE")
        with pytest.raises(DatabaseBusy):
            await store.commit(conversation.id, Message.user("x"))
        assert len(await store.list_conversations()) == 1  # reading goes on
        other_db.execute("ROLLBACK")
    await store.commit(conversation.id, Message.user("x"))
    await store.close()


async def test_two_stores_on_one_folder_see_each_other(tmp_path: Path) -> None:
    first, second = await asyncio.gather(Store.open(tmp_path), Store.open(tmp_path))
    conversation = await first.create_conversation(title="t")
    await asyncio.gather(*(s.commit(conversation.id, Message.user(str(n))) for n in range(10) for s in (first, second)))
    assert (await second.load(conversation.id)).record.message_count == 20
    assert len((await first.load(conversation.id)).messages) == 20
    await asyncio.gather(first.close(), second.close())


async def test_a_folder_that_was_moved_away_says_so_and_goes_on_when_it_is_back(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "data", tmp_path / "elsewhere"
    folder.mkdir()
    store = await Store.open(folder)
    conversation = await store.create_conversation(title="t")
    folder.rename(elsewhere)
    with pytest.raises(StorageFailed, match="gone"):
        await store.commit(conversation.id, Message.user("lost?"))
    elsewhere.rename(folder)
    await store.commit(conversation.id, Message.user("kept"))
    await store.close()
    again = await Store.open(folder)
    assert [message.text for message in (await again.load(conversation.id)).messages] == ["kept"]
    await again.close()
