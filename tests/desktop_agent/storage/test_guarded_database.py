"""Damaged indexes, a replaced file and a removed log: with real files, while the store is open."""

import asyncio
import errno
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from desktop_agent.storage import database_thread
from desktop_agent.storage.guarded_database import INDEX_REPAIRED
from desktop_agent.storage.store import Store
from desktop_agent.types.errors import DatabaseReplaced, StorageFailed, WrongUse
from desktop_agent.types.messages import Message
from tests.frame.patience import PATIENCE

NAME = "conversations.sqlite3"


async def fill(folder: Path, *titles: str) -> list[str]:
    store = await Store.open(folder)
    ids: list[str] = []
    for title in titles:
        conversation = await store.create_conversation(title=title)
        await store.commit(conversation.id, Message.user(f"said in {title}"))
        ids.append(conversation.id)
    await store.close()
    return ids


def damage_index(path: Path, id_: str) -> None:
    """Change one byte of the id where it stands in the index."""
    with closing(sqlite3.connect(path)) as db:
        root = db.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_conversations_1'"
        ).fetchone()
    data = bytearray(path.read_bytes())
    offset = data.index(id_.encode(), (root[0] - 1) * 4096)
    assert offset < root[0] * 4096
    data[offset + 5] ^= 0x01
    path.write_bytes(bytes(data))


async def test_a_conversation_whose_index_entry_is_damaged_is_found_and_the_index_repaired(tmp_path: Path) -> None:
    first, second = await fill(tmp_path, "one", "two")
    damage_index(tmp_path / NAME, first)
    store = await Store.open(tmp_path)
    notices: list[object] = []
    store.on_notice(notices.append)
    assert {record.id for record in await store.list_conversations()} == {first, second}
    loaded = await store.load(first)
    assert [message.text for message in loaded.messages] == ["said in one"]
    assert notices == [INDEX_REPAIRED]
    with pytest.raises(WrongUse, match="There is no conversation"):
        await store.load("unknown")
    assert notices == [INDEX_REPAIRED]
    await store.close()
    with closing(sqlite3.connect(tmp_path / NAME)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def texts_in(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return {str(body) for (body,) in db.execute("SELECT body FROM messages")}


def holds(texts: set[str], part: str) -> bool:
    return any(part in text for text in texts)


async def test_a_file_that_is_put_in_its_place_is_opened_and_the_old_one_kept(tmp_path: Path) -> None:
    folder, backup = tmp_path / "data", tmp_path / "backup"
    (id_,) = await fill(folder, "old")
    shutil.copytree(folder, backup)
    store = await Store.open(folder)
    notices: list[str] = []
    store.on_notice(lambda sentence: notices.append(str(sentence)))
    replaced: list[DatabaseReplaced] = []
    store.on_replaced(replaced.append)
    pinned, unused = store.pinned(), store.pinned()
    await pinned.commit(id_, Message.user("precious"))
    (backup / NAME).replace(folder / NAME)

    assert [record.title for record in await store.list_conversations()] == ["old"]
    assert len(replaced) == 1
    with pytest.raises(DatabaseReplaced, match="replaced by another file"):
        await pinned.commit(id_, Message.user("goes on from what is not there"))
    await unused.commit(id_, Message.user("in the new one"))
    assert store.disk.trouble is None
    (aside,) = folder.glob(f"{NAME}.replaced-*")
    [notice] = notices
    assert aside.name in notice
    await store.close()
    new, old = texts_in(folder / NAME), texts_in(aside)
    assert holds(new, "in the new one")
    assert not holds(new, "precious")
    assert not holds(new, "goes on")
    assert holds(old, "precious")
    assert not (folder / f"{NAME}-wal").exists()


async def test_a_trash_that_nobody_has_seen_is_not_emptied(tmp_path: Path) -> None:
    folder, backup = tmp_path / "data", tmp_path / "backup"
    (id_,) = await fill(backup, "deleted once")
    store = await Store.open(backup)
    await store.delete_conversation(id_)
    await store.close()
    store = await Store.open(folder)
    (backup / NAME).replace(folder / NAME)
    with pytest.raises(DatabaseReplaced):
        await store.empty_trash()
    [record] = await store.list_conversations(in_trash=True)
    assert record.title == "deleted once"
    assert await store.empty_trash() == 1
    await store.close()


async def test_a_file_that_is_still_being_written_is_waited_for_and_not_rescued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_thread, "FIRST_RETRY_SECONDS", 0.01)
    folder, backup = tmp_path / "data", tmp_path / "backup"
    await fill(backup, "old")
    store = await Store.open(folder)
    content = (backup / NAME).read_bytes()
    arriving = tmp_path / "arriving"
    arriving.write_bytes(content[: len(content) // 2])
    arriving.replace(folder / NAME)
    with pytest.raises(DatabaseReplaced, match="cannot be read"):
        await store.list_conversations()
    replaced, is_over = asyncio.Event(), asyncio.Event()
    store.on_replaced(lambda _: replaced.set())
    store.disk.on_change(lambda trouble: is_over.set() if trouble is None else None)
    with (folder / NAME).open("r+b") as file:
        file.write(content)
    await replaced.wait()
    await is_over.wait()
    assert [record.title for record in await store.list_conversations()] == ["old"]
    await store.close()
    assert not list(folder.glob("*.damaged-*"))
    assert len(list(folder.glob(f"{NAME}.replaced-*"))) == 1


WRITING = """
import asyncio, sys
from pathlib import Path
from desktop_agent.storage.store import Store
from desktop_agent.types.errors import StorageFailed
from desktop_agent.types.messages import Message

async def main():
    store = await Store.open(Path(sys.argv[1]))
    made = await store.create_conversation(title="t")
    print(made.id, flush=True)
    while sys.stdin.readline() == "write\\n":
        try:
            message = Message.user("kept")
            await store.commit(made.id, message)
        except StorageFailed as error:
            print("refused", flush=True)
        else:
            print(message.id, flush=True)
    await store.close()
    print("closed", flush=True)

asyncio.run(main())
"""


def test_of_two_processes_one_begins_a_log_anew_and_nothing_that_was_committed_is_lost(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITING, str(tmp_path)]
    pipe = subprocess.PIPE
    with (
        subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as first,
        subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as second,
    ):

        def request(process: "subprocess.Popen[str]", command_word: str) -> str:
            assert process.stdin
            assert process.stdout
            process.stdin.write(f"{command_word}\n")
            process.stdin.flush()
            return process.stdout.readline().strip()

        for process in (first, second):
            assert process.stdout
            process.stdout.readline()
        committed = {request(process, "write") for process in (first, second)}
        for suffix in ("-wal", "-shm"):
            (tmp_path / f"{NAME}{suffix}").unlink()
        for _ in range(5):
            committed |= {request(process, "write") for process in (first, second)}
        request(second, "end")
        committed.add(request(first, "write"))
        request(first, "end")
    assert "refused" in committed, "the second one leaves all as it is"
    with closing(sqlite3.connect(tmp_path / NAME)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        stored = {id_ for (id_,) in db.execute("SELECT id FROM messages")}
    assert committed - stored == {"refused"}
    assert not list(tmp_path.glob("*.foreign-*"))


@pytest.mark.parametrize("has_other", [False, True])
async def test_a_log_that_is_removed_or_replaced_costs_nothing(tmp_path: Path, has_other: bool) -> None:
    (id_,) = await fill(tmp_path, "one")
    store = await Store.open(tmp_path)
    await store.commit(id_, Message.user("in the log"))
    log = tmp_path / f"{NAME}-wal"
    log.unlink()
    if has_other:
        log.write_bytes(b"not ours")
    await store.commit(id_, Message.user("after it"))
    with closing(sqlite3.connect(tmp_path / NAME)) as db:
        texts = [body for (body,) in db.execute("SELECT body FROM messages ORDER BY number")]
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert ["in one" in texts[0], "in the log" in texts[1], "after it" in texts[2]] == [True, True, True]
    await store.close()


async def test_the_log_of_a_database_that_is_gone_is_kept_and_played_into_no_new_one(tmp_path: Path) -> None:
    live, folder, away = tmp_path / "live", tmp_path / "killed", tmp_path / "away"
    store = await Store.open(live)
    conversation = await store.create_conversation(title="t")
    await store.commit(conversation.id, Message.user("in the log"))
    # The state that a killed process leaves.
    shutil.copytree(live, folder)
    await store.close()
    (folder / NAME).rename(away)
    store = await Store.open(folder)
    assert await store.list_conversations() == ()
    (kept_log,) = folder.glob(f"{NAME}-wal.kept-*")
    assert any(kept_log.name in str(notice) for notice in store.notices)
    await store.close()
    away.rename(folder / NAME)
    kept_log.rename(folder / f"{NAME}-wal")
    store = await Store.open(folder)
    assert [message.text for message in (await store.load(conversation.id)).messages] == ["in the log"]
    await store.close()


async def test_a_folder_that_cannot_be_reached_is_refused_as_the_disk_refuses_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_thread, "FIRST_RETRY_SECONDS", 0.01)
    real, is_away = Path.stat, True

    def stat(path: Path, **options: bool) -> os.stat_result:
        if is_away and path.name == NAME:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return real(path, **options)

    store = await Store.open(tmp_path)
    conversation = await store.create_conversation(title="t")
    monkeypatch.setattr(Path, "stat", stat)
    with pytest.raises(StorageFailed):
        await store.commit(conversation.id, Message.user("one"))
    is_away = False
    async with asyncio.timeout(PATIENCE):
        while store.disk.trouble is not None:
            await asyncio.sleep(0.01)
    await store.commit(conversation.id, Message.user("two"))
    await store.close()
