"""The index follows the database, whatever happens to either, and never blocks it."""

import asyncio
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from desktop_agent.storage import opening
from desktop_agent.storage.connection import connect
from desktop_agent.storage.migrations import create_database
from desktop_agent.storage.opening import DATABASE_NAME, mark_damaged
from desktop_agent.storage.search import index_file, indexer
from desktop_agent.storage.search.index_file import INDEX_NAME, IndexWriter
from desktop_agent.storage.search.index_reader import IndexReader
from desktop_agent.storage.search.searchable_text import SearchableText, searchable_text
from desktop_agent.storage.store import Store
from desktop_agent.types.blocks import Text
from desktop_agent.types.errors import DiskFull
from desktop_agent.types.messages import Message
from desktop_agent.types.search import SearchQuery
from tests.frame.disks import fill, remount

MARKER = "qzxmarkerword"


async def titles(store: Store, text: str) -> list[str] | None:
    """Return the titles that a search finds, or None while the index is incomplete."""
    results = await store.search.find(SearchQuery(text))
    assert results is not None
    return [conversation.title for conversation in results.conversations] if results.is_complete else None


async def indexed_titles(store: Store, text: str) -> list[str] | None:
    assert await store.search.index_all()
    return await titles(store, text)


async def talk(store: Store, text: str, title: str = "A talk") -> str:
    conversation = await store.create_conversation(title=title)
    await store.commit(conversation.id, Message.user(text))
    return conversation.id


def changes(folder: Path) -> int:
    with closing(sqlite3.connect(folder / DATABASE_NAME)) as db:
        return db.execute("SELECT count(*) FROM search_changes").fetchone()[0]


def index_bytes(folder: Path) -> bytes:
    return b"".join(file.read_bytes().lower() for file in folder.glob(f"{INDEX_NAME}*"))


def rights(folder: Path) -> set[int]:
    return {file.stat().st_mode & 0o777 for file in folder.glob(f"{INDEX_NAME}*")}


async def test_the_text_of_a_changed_message_is_gathered_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await Store.open(tmp_path)
    conversation = await store.create_conversation(title="A talk")
    message = Message.user("before")
    await store.commit(conversation.id, message)
    assert await indexed_titles(store, "before ") == ["A talk"]
    gathered: list[str] = []

    def gather(changed: Message) -> SearchableText:
        gathered.append(changed.text)
        return searchable_text(changed)

    monkeypatch.setattr(index_file, "searchable_text", gather)
    await store.commit(conversation.id, message.model_copy(update={"blocks": (Text(text="after"),)}))
    assert await indexed_titles(store, "after ") == ["A talk"]
    assert gathered == ["after"]
    await store.close()


async def test_nothing_is_noted_until_there_is_an_index(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    await talk(store, "before")
    assert changes(tmp_path) == 0
    assert not (tmp_path / INDEX_NAME).exists()
    assert await titles(store, "before") is None
    assert await indexed_titles(store, "before") == ["A talk"]
    await store.close()
    store = await Store.open(tmp_path)
    await talk(store, "after")
    assert changes(tmp_path) > 0
    assert await indexed_titles(store, "after") == ["A talk"]
    assert changes(tmp_path) == 0
    await store.close()


async def test_what_is_written_is_found_without_being_asked_for(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    store.search.start_indexing()
    await talk(store, "needle")
    while not (found_titles := await titles(store, "needle")):
        await asyncio.sleep(0.01)
    assert found_titles == ["A talk"]
    await store.close()


async def test_segments_are_merged_as_usual_once_the_older_messages_are_there(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    await talk(store, "before")
    assert await indexed_titles(store, "before") == ["A talk"]
    await store.close()
    with closing(sqlite3.connect(tmp_path / INDEX_NAME)) as db:
        assert db.execute("SELECT v FROM words_0_config WHERE k = 'automerge'").fetchone() == (4,)


async def test_what_another_loop_writes_does_not_touch_this_one(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    store.search.start_indexing()
    while await titles(store, "needle") != []:
        await asyncio.sleep(0.01)
    loop = asyncio.get_running_loop()
    # A loop in debug mode refuses calls of other threads.
    loop.set_debug(True)
    for _ in range(3):
        await asyncio.to_thread(lambda: asyncio.run(talk(store, "needle")))
        # Most times the indexer waits again by then.
        await asyncio.sleep(0.2)
    loop.set_debug(False)
    assert await indexed_titles(store, "needle") == ["A talk"] * 3
    await store.close()


async def test_the_index_is_private(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    assert await store.search.index_all()
    assert rights(tmp_path) == {0o600}
    await store.close()


def remove(index: Path) -> None:
    index.unlink()


def cut(index: Path) -> None:
    os.truncate(index, index.stat().st_size // 2)


def overwrite(index: Path) -> None:
    index.write_bytes(b"no database" * 1000)


def empty(index: Path) -> None:
    index.write_bytes(b"")


def break_pages(index: Path) -> None:
    data = index.read_bytes()
    index.write_bytes(data[:8192] + bytes(len(data) - 8192))


def age(index: Path) -> None:
    with closing(sqlite3.connect(index)) as db:
        db.execute("PRAGMA user_version=9999")


def take_text_away(index: Path) -> None:
    with closing(sqlite3.connect(index)) as db, db:
        db.execute("UPDATE texts SET body = x'00'")


@pytest.mark.parametrize("damage", [remove, cut, overwrite, empty, break_pages, age, take_text_away])
@pytest.mark.parametrize("is_open", [True, False])
async def test_an_index_that_cannot_be_used_is_made_anew(
    tmp_path: Path, damage: Callable[[Path], None], is_open: bool
) -> None:
    store = await Store.open(tmp_path)
    id_ = await talk(store, "needle")
    assert await indexed_titles(store, "needle") == ["A talk"]
    if not is_open:
        await store.close()
    damage(tmp_path / INDEX_NAME)
    if not is_open:
        store = await Store.open(tmp_path)
    # A search that reads the damaged part.
    await store.commit(id_, (await store.load(id_)).messages[0].model_copy(update={"model": "m"}))
    for _ in range(3):
        await store.search.find(SearchQuery("needle"))
        await store.search.index_all()
    assert await indexed_titles(store, "needle") == ["A talk"]
    assert (await store.load(id_)).messages[0].text == "needle"
    await store.close()


async def test_an_index_of_another_database_is_made_anew(tmp_path: Path) -> None:
    for name in ("one", "two"):
        store = await Store.open(tmp_path / name)
        await talk(store, name)
        assert await indexed_titles(store, name) == ["A talk"]
        await store.close()
    shutil.copy(tmp_path / "one" / INDEX_NAME, tmp_path / "two" / INDEX_NAME)
    store = await Store.open(tmp_path / "two")
    assert await titles(store, "one") in (None, [])
    assert await indexed_titles(store, "one") == []
    assert await indexed_titles(store, "two") == ["A talk"]
    await store.close()


async def test_a_backup_that_is_put_back_is_indexed_anew(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "data")
    await talk(store, "early")
    assert await indexed_titles(store, "early") == ["A talk"]
    await store.snapshot(tmp_path / "backup")
    await talk(store, "late")
    assert await indexed_titles(store, "late") == ["A talk"]
    # Also while it is open.
    (tmp_path / "backup").replace(tmp_path / "data" / DATABASE_NAME)
    await store.list_conversations()
    assert await titles(store, "late") in (None, [])
    assert await indexed_titles(store, "late") == []
    assert await indexed_titles(store, "early") == ["A talk"]
    await store.close()


async def test_a_rescued_database_is_indexed_anew(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    await talk(store, "needle")
    assert await indexed_titles(store, "needle") == ["A talk"]
    await store.close()
    mark_damaged(tmp_path)
    store = await Store.open(tmp_path)
    assert store.notices
    assert changes(tmp_path) == 0
    assert await indexed_titles(store, "needle") == ["A talk"]
    await store.close()


async def test_one_process_indexes_and_the_other_one_searches(tmp_path: Path) -> None:
    first, second = await Store.open(tmp_path), await Store.open(tmp_path)
    assert await first.search.index_all()
    await talk(second, "needle")
    assert not await second.search.index_all()
    assert await indexed_titles(first, "needle") == ["A talk"]
    assert await titles(second, "needle") == ["A talk"]
    await first.close()
    await talk(second, "another")
    assert await indexed_titles(second, "another") == ["A talk"]
    await second.close()


async def test_deleted_for_good_leaves_no_byte(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    for number in range(20):
        await talk(store, f"other words {number} " * 20, title=f"talk {number}")
    deleted = [await talk(store, f"{MARKER} {MARKER}{number}", title=f"T {MARKER}") for number in range(20)]
    conversation = await store.create_conversation(title="stays")
    assert await indexed_titles(store, f"{MARKER}7") == ["T qzxmarkerword"]
    assert MARKER.encode() in index_bytes(tmp_path)
    for id_ in deleted:
        await store.delete_conversation(id_)
    await store.commit(conversation.id, Message.user("in between"))
    assert await indexed_titles(store, MARKER) == []
    assert await store.empty_trash() == len(deleted)
    assert await indexed_titles(store, MARKER) == []
    # The index stores a term without the prefix that it shares with the one before: look for its end.
    assert b"zxmarker" not in index_bytes(tmp_path)
    with closing(sqlite3.connect(tmp_path / INDEX_NAME)) as db:
        db.execute("CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab(main, words_0, 'row')")
        assert db.execute("SELECT term FROM vocabulary WHERE term >= 'q' AND term < 'r'").fetchall() == []
    assert len(await indexed_titles(store, "other words") or ()) == 20
    await store.close()


async def test_a_process_that_does_not_search_removes_what_it_deletes(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    id_ = await talk(store, MARKER)
    await store.delete_conversation(id_)
    assert await store.search.index_all()
    await store.close()
    assert b"zxmarker" in index_bytes(tmp_path)
    store = await Store.open(tmp_path)
    await store.purge_conversation(id_)
    while b"zxmarker" in index_bytes(tmp_path):
        await asyncio.sleep(0.01)
    await store.close()


async def test_a_number_that_is_used_again_is_of_the_new_conversation(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    id_ = await talk(store, "older", title="older")
    assert await indexed_titles(store, "older") == ["older"]
    await store.delete_conversation(id_)
    await store.purge_conversation(id_)
    await talk(store, "newer", title="newer")
    assert await indexed_titles(store, "older") == []
    assert await indexed_titles(store, "newer") == ["newer"]
    await store.close()


async def test_a_title_that_went_with_its_prompt_leaves_no_byte(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    for number in range(20):
        await talk(store, "words", title=f"talk {number}")
    id_ = await talk(store, "more", title=f"About {MARKER} today")
    assert await indexed_titles(store, MARKER) == [f"About {MARKER} today"]
    await store.update_conversation(id_, title="Another")
    assert await indexed_titles(store, "another") == ["Another"]
    assert b"zxmarker" not in index_bytes(tmp_path)
    assert len(await indexed_titles(store, "words") or ()) == 20
    await store.close()


async def test_a_number_that_is_used_again_leaves_no_byte_of_the_deleted_message(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    conversation = await store.create_conversation(title="A talk")
    last = Message.user(MARKER)
    await store.commit(conversation.id, Message.user("first"), last)
    assert await indexed_titles(store, MARKER) == ["A talk"]
    await store.branches.delete(conversation.id, last.id)
    await store.commit(conversation.id, Message.user("another"))
    assert await indexed_titles(store, "another") == ["A talk"]
    with closing(sqlite3.connect(tmp_path / INDEX_NAME)) as db:
        assert db.execute("SELECT max(number) FROM documents").fetchone() == (2,)
    assert b"zxmarker" not in index_bytes(tmp_path)
    await store.close()


async def test_one_entry_of_the_outbox_deletes_a_whole_conversation(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    conversation = await store.create_conversation(title="long")
    await store.commit(conversation.id, *(Message.user(f"word {number}") for number in range(200)))
    assert await indexed_titles(store, "word") == ["long"]
    await store.delete_conversation(conversation.id)
    assert await store.search.index_all()
    with closing(connect(tmp_path / DATABASE_NAME)) as db:
        db.execute("DELETE FROM conversations")
    assert changes(tmp_path) == 1
    assert await indexed_titles(store, "word") == []
    with closing(sqlite3.connect(tmp_path / INDEX_NAME)) as db:
        for table in ("conversations", "documents", "texts", "words_0_docsize", "titles_docsize"):
            assert db.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
    await store.close()


async def test_changes_that_were_indexed_but_not_removed_are_indexed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await Store.open(tmp_path)
    assert await store.search.index_all()
    await talk(store, "needle")

    def fail(*_: object) -> None:
        raise sqlite3.OperationalError

    with monkeypatch.context() as patched:
        patched.setattr(indexer.outbox, "remove_changes", fail)
        assert not await store.search.index_all()
    assert changes(tmp_path) > 0
    results = (await store.search.find(SearchQuery("needle"))) or pytest.fail("nothing")
    assert [conversation.title for conversation in results.conversations] == ["A talk"]
    begin = indexer.IndexWriter.begin
    monkeypatch.setattr(indexer.IndexWriter, "begin", fail)
    assert await indexed_titles(store, "needle") == ["A talk"]
    monkeypatch.setattr(indexer.IndexWriter, "begin", begin)
    await store.close()


async def test_what_is_indexed_while_somebody_searches_hides_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await Store.open(tmp_path)
    await talk(store, "needle")
    assert await indexed_titles(store, "needle") == ["A talk"]
    loop = asyncio.get_running_loop()
    find = IndexReader.find

    async def write_more() -> None:
        for number in range(3):
            await talk(store, f"more {number}")
            assert await store.search.index_all()

    def find_and_write(*arguments: Any) -> Any:
        results = find(*arguments)
        asyncio.run_coroutine_threadsafe(write_more(), loop).result()
        return results

    monkeypatch.setattr(IndexReader, "find", find_and_write)
    assert await titles(store, "needle") == ["A talk"]
    await store.close()


async def test_the_last_free_space_is_left_to_conversations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexer, "MIN_FREE_BYTES", 1 << 60)
    store = await Store.open(tmp_path)
    await talk(store, "needle")
    assert not await store.search.index_all()
    assert not (tmp_path / INDEX_NAME).exists()
    assert await titles(store, "needle") is None
    await store.close()


async def test_an_error_of_the_index_does_not_disturb_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(IndexWriter, "add_messages", fail)
    store = await Store.open(tmp_path)
    id_ = await talk(store, "needle")
    assert not await store.search.index_all()
    assert store.disk.trouble is None
    assert (await store.load(id_)).messages[0].text == "needle"
    await store.close()


async def test_a_folder_in_the_place_of_the_index_harms_nothing(tmp_path: Path) -> None:
    (tmp_path / INDEX_NAME).mkdir()
    store = await Store.open(tmp_path)
    await talk(store, "needle")
    assert not await store.search.index_all()
    assert await titles(store, "needle") is None
    await store.close()


async def test_a_read_only_folder_is_searched_with_the_index_it_has(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexer, "MIN_FREE_BYTES", 0)
    store = await Store.open(small_disk)
    await talk(store, "needle")
    assert await indexed_titles(store, "needle") == ["A talk"]
    await store.close()
    remount(small_disk, "ro")
    store = await Store.open(small_disk)
    assert await titles(store, "needle") == ["A talk"]
    assert not await store.search.index_all()
    assert await titles(store, "needle") == ["A talk"]
    await store.close()
    remount(small_disk, "rw")


async def test_a_folder_that_cannot_be_written_and_has_no_index_is_named(small_disk: Path) -> None:
    store = await Store.open(small_disk)
    await talk(store, "needle")
    await store.close()
    remount(small_disk, "ro")
    store = await Store.open(small_disk)
    assert not await store.search.index_all()
    results = await store.search.find(SearchQuery("needle"))
    assert results is not None
    assert not results.is_complete
    assert "the data folder is write-protected" in str(results.obstacle)
    await store.close()
    remount(small_disk, "rw")


async def test_a_full_disk_is_named_until_there_is_room_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = await Store.open(tmp_path)
    await talk(store, "needle")
    with monkeypatch.context() as patched:
        patched.setattr(indexer, "MIN_FREE_BYTES", 1 << 62)
        assert not await store.search.index_all()
        results = await store.search.find(SearchQuery("needle"))
        assert results is not None
        assert "100 MB" in str(results.obstacle)
    assert await store.search.index_all()
    results = await store.search.find(SearchQuery("needle"))
    assert results is not None
    assert results.obstacle is None
    assert results.is_complete
    await store.close()


async def test_a_database_that_is_rescued_in_memory_keeps_its_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await Store.open(tmp_path)
    await talk(store, "needle")
    assert await indexed_titles(store, "needle") == ["A talk"]
    await store.close()
    before = (tmp_path / INDEX_NAME).read_bytes()

    def refuse(*_: object, **__: object) -> None:
        raise DiskFull("no room")

    mark_damaged(tmp_path)
    data = bytearray((tmp_path / DATABASE_NAME).read_bytes())
    data[:100] = bytes(100)
    (tmp_path / DATABASE_NAME).write_bytes(data)
    monkeypatch.setattr(opening, "open_for_writing", refuse)
    store = await Store.open(tmp_path)
    assert store.read_only is not None
    assert len(await store.list_conversations()) == 1
    assert not await store.search.index_all()
    assert await titles(store, "needle") is None
    await store.close()
    assert (tmp_path / INDEX_NAME).read_bytes() == before


async def test_a_full_disk_is_searched_with_the_index_it_has(small_disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexer, "MIN_FREE_BYTES", 0)
    store = await Store.open(small_disk)
    await talk(store, "needle")
    assert await indexed_titles(store, "needle") == ["A talk"]
    id_ = await talk(store, "late")
    fill(small_disk / "full")
    assert not await store.search.index_all()
    assert store.disk.trouble is None
    results = await store.search.find(SearchQuery("needle"))
    assert results is not None
    assert [conversation.title for conversation in results.conversations] == ["A talk"]
    (small_disk / "full").unlink()
    assert await indexed_titles(store, "late") == ["A talk"]
    assert (await store.load(id_)).messages[0].text == "late"
    await store.close()


WRITING = """
import asyncio, sys
from pathlib import Path
from desktop_agent.storage.store import Store
from desktop_agent.types.errors import DiskFull
from desktop_agent.types.messages import Message

async def main():
    store = await Store.open(Path(sys.argv[1]))
    store.search.start_indexing()
    number = 0
    while True:
        made = await store.create_conversation(title=f"talk {number}")
        await store.commit(made.id, *(Message.user(f"word{number} again") for _ in range(5)))
        if number % 3 == 2:
            await store.delete_conversation(made.id)
            await store.purge_conversation(made.id)
        number += 1
        print(number, flush=True)

asyncio.run(main())
"""


def start_writing(folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", WRITING, str(folder)], stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("acknowledgements", [1, 10, 40])
async def test_kill_9_leaves_an_index_that_is_right_or_made_anew(tmp_path: Path, acknowledgements: int) -> None:
    child = start_writing(tmp_path)
    try:
        assert child.stdout is not None
        for _ in range(acknowledgements):
            assert child.stdout.readline()
        os.kill(child.pid, signal.SIGKILL)
        child.stdout.read()
    finally:
        child.kill()
        child.wait()
        if child.stdout:
            child.stdout.close()
    store = await Store.open(tmp_path)
    records = await store.list_conversations()
    written = [record for record in records if record.message_count]
    assert written
    for record in written:
        number = record.title.split()[1]
        assert await indexed_titles(store, f"word{number} ") == [record.title]
    assert sorted(await indexed_titles(store, "again") or ()) == sorted(record.title for record in written)
    with closing(sqlite3.connect(tmp_path / INDEX_NAME)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        # A conversation is still there if the kill came between its deletion and its purge.
        count = len(written) + len(await store.list_conversations(in_trash=True))
        assert db.execute("SELECT count(*) FROM documents").fetchone() == (5 * count,)
    await store.close()


def test_a_new_database_notes_nothing(tmp_path: Path) -> None:
    create_database(tmp_path / DATABASE_NAME)
    with closing(connect(tmp_path / DATABASE_NAME)) as db:
        assert db.execute("SELECT count(*) FROM search_state").fetchone() == (0,)
