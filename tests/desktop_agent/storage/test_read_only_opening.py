"""A disk that is full or read-only from the start: what was saved is shown all the same."""

import asyncio
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from desktop_agent.storage import database_thread
from desktop_agent.storage.migrations import MIGRATIONS
from desktop_agent.storage.records import Draft
from desktop_agent.storage.store import Store
from desktop_agent.types.errors import DiskFull, StorageFailed
from desktop_agent.types.messages import Message
from tests.frame.disks import fill, remount

NAME = "conversations.sqlite3"
DYING = """
import asyncio, os, sys
from pathlib import Path
from desktop_agent.storage.store import Store
from desktop_agent.types.messages import Message

async def main():
    store = await Store.open(Path(sys.argv[1]))
    made = await store.create_conversation(title="kept")
    await store.commit(made.id, Message.user("only in the log"))
    os._exit(0)

asyncio.run(main())
"""


async def fill_database(folder: Path) -> None:
    store = await Store.open(folder)
    conversation = await store.create_conversation(title="kept")
    await store.commit(conversation.id, Message.user("said before"))
    await store.close()


def fill_and_kill(folder: Path) -> None:
    subprocess.run([sys.executable, "-c", DYING, str(folder)], check=True)


async def texts(store: Store) -> list[str]:
    records = await store.list_conversations()
    return [message.text for record in records for message in (await store.load(record.id)).messages]


async def assert_refuses_to_write(store: Store, error_type: type[StorageFailed]) -> None:
    (record,) = await store.list_conversations()
    for writing in (
        store.commit(record.id, Message.user("lost?")),
        store.create_conversation(title="new"),
        store.save_draft(None, Draft("half a")),
    ):
        with pytest.raises(error_type) as refused:
            await writing
        assert "Saved conversations can still be read." in str(refused.value.remedy)


def make_full(disk: Path) -> None:
    fill(disk / "ballast")


def make_read_only(disk: Path) -> None:
    remount(disk, "ro")


def mend(disk: Path) -> None:
    remount(disk, "rw")
    (disk / "ballast").unlink(missing_ok=True)


BREAKING = pytest.mark.parametrize("break_disk", [make_full, make_read_only])


@BREAKING
async def test_what_was_saved_is_read_and_nothing_written(small_disk: Path, break_disk: Callable[[Path], None]) -> None:
    folder = small_disk / "data"
    await fill_database(folder)
    before = (folder / NAME).read_bytes()
    break_disk(small_disk)
    store = await Store.open(folder)
    assert isinstance(store.read_only, StorageFailed)
    assert store.disk.trouble is store.read_only
    assert await texts(store) == ["said before"]
    await assert_refuses_to_write(store, DiskFull if break_disk is make_full else StorageFailed)
    await store.close()
    assert (folder / NAME).read_bytes() == before


@BREAKING
@pytest.mark.parametrize("has_index", [True, False])
async def test_what_stands_in_the_log_alone_is_read_too(
    small_disk: Path, break_disk: Callable[[Path], None], *, has_index: bool
) -> None:
    folder = small_disk / "data"
    fill_and_kill(folder)
    assert (folder / f"{NAME}-wal").stat().st_size > 0
    if not has_index:
        (folder / f"{NAME}-shm").unlink()
    break_disk(small_disk)
    store = await Store.open(folder)
    assert store.read_only is not None
    assert await texts(store) == ["only in the log"]
    await assert_refuses_to_write(store, StorageFailed)
    await store.close()


@BREAKING
async def test_it_goes_on_by_itself_when_the_disk_works_again(
    small_disk: Path, break_disk: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_thread, "FIRST_RETRY_SECONDS", 0.02)
    folder = small_disk / "data"
    await fill_database(folder)
    break_disk(small_disk)
    store = await Store.open(folder)
    works = asyncio.Event()
    store.disk.on_change(lambda trouble: works.set() if trouble is None else None)
    mend(small_disk)
    await works.wait()
    assert store.read_only is None
    (record,) = await store.list_conversations()
    await store.commit(record.id, Message.user("said after"))
    await store.close()
    again = await Store.open(folder)
    assert await texts(again) == ["said before", "said after"]
    await again.close()


@BREAKING
async def test_a_database_of_an_older_version_is_read_and_left_as_it_is(
    small_disk: Path, break_disk: Callable[[Path], None]
) -> None:
    folder = small_disk / "data"
    folder.mkdir()
    with closing(sqlite3.connect(folder / NAME)) as db:
        db.executescript("PRAGMA journal_mode=WAL;" + MIGRATIONS[0] + "PRAGMA user_version=1;")
        db.execute(
            "INSERT INTO conversations (id, title, title_is_automatic, created_at, updated_at)"
            " VALUES ('c', 'old', 0, 1, 1)"
        )
        db.commit()
    before = (folder / NAME).read_bytes()
    break_disk(small_disk)
    store = await Store.open(folder)
    assert [record.title for record in await store.list_conversations()] == ["old"]
    await assert_refuses_to_write(store, StorageFailed)
    await store.close()
    assert (folder / NAME).read_bytes() == before
    assert not list(folder.glob("*.before-version-*"))


async def test_a_damaged_database_on_a_read_only_disk_is_read_as_far_as_it_can_be(small_disk: Path) -> None:
    folder = small_disk / "data"
    await fill_database(folder)
    data = bytearray((folder / NAME).read_bytes())
    data[:16] = b"no longer SQLite"
    (folder / NAME).write_bytes(bytes(data))
    make_read_only(small_disk)
    store = await Store.open(folder)
    assert "is shown (conversations: 1, messages: 1)." in str(store.notices[0])
    assert await texts(store) == ["said before"]
    await store.close()
    assert (folder / NAME).read_bytes() == bytes(data)


async def test_a_message_that_is_not_in_its_place_is_read_from_a_read_only_disk_too(small_disk: Path) -> None:
    folder = small_disk / "data"
    await fill_database(folder)
    with closing(sqlite3.connect(folder / NAME)) as db, db:
        db.execute("UPDATE messages SET parent = 33")
    make_read_only(small_disk)
    store = await Store.open(folder)
    assert "is shown (conversations: 1, messages: 1)." in str(store.notices[0])
    assert await texts(store) == ["said before"]
    await store.close()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
async def test_a_folder_without_the_right_to_write_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    await fill_database(folder)
    folder.chmod(0o500)
    try:
        store = await Store.open(folder)
        assert store.read_only is not None
        assert await texts(store) == ["said before"]
        await store.close()
    finally:
        folder.chmod(0o700)


async def test_a_disk_that_fills_up_and_is_cleared_is_told_both_times(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_thread, "FIRST_RETRY_SECONDS", 0.02)
    store = await Store.open(small_disk / "data")
    conversation = await store.create_conversation(title="kept")
    troubles: list[StorageFailed | None] = []
    works = asyncio.Event()
    store.disk.on_change(troubles.append)
    store.disk.on_change(lambda trouble: works.set() if trouble is None else None)
    make_full(small_disk)
    with pytest.raises(DiskFull):
        await store.commit(conversation.id, Message.user("x" * 100_000))
    assert isinstance(store.disk.trouble, DiskFull)
    mend(small_disk)
    await works.wait()
    assert store.disk.trouble is None
    assert [type(change) for change in troubles] == [DiskFull, type(None)]
    await store.close()
