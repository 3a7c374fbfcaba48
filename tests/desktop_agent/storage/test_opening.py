import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest

from desktop_agent.storage.migrations import MIGRATIONS, schema_version
from desktop_agent.storage.opening import DATABASE_NAME, open_database
from desktop_agent.storage.store import Store
from desktop_agent.types.errors import DatabaseTooNew, StorageFailed
from desktop_agent.types.messages import Message
from desktop_agent.types.providers import ConversationParameters, ReasoningBudget, ReasoningEffort

NEXT = (
    *MIGRATIONS,
    "ALTER TABLE conversations ADD COLUMN shelf TEXT DEFAULT 'none';\nCREATE TABLE shelves (name TEXT);\n",
)


def rows(path: Path, sql: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as db:
        return db.execute(sql).fetchall()


def sorted_files(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


async def create_old_database(folder: Path) -> Path:
    store = await Store.open(folder)
    conversation = await store.create_conversation(title="old")
    await store.commit(conversation.id, Message.user("kept"))
    await store.close()
    return folder / DATABASE_NAME


def test_the_connection_is_set_up_for_durability(tmp_path: Path, waits_for_disk: None) -> None:
    opened = open_database(tmp_path / "data")
    with closing(opened.connection) as db:
        settings = {
            name: db.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout", "secure_delete", "page_size")
        }
    expected = ("wal", 2, 1, 3000, 1, 4096)
    assert tuple(settings.values()) == expected
    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "data" / DATABASE_NAME).stat().st_mode) == 0o600


async def test_a_newer_database_is_refused_and_untouched(tmp_path: Path) -> None:
    path = await create_old_database(tmp_path)
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version=99")
    before = path.read_bytes()
    with pytest.raises(DatabaseTooNew):
        await Store.open(tmp_path)
    assert path.read_bytes() == before
    assert not any("damaged" in path.name for path in sorted_files(tmp_path))


async def test_an_older_database_is_copied_and_moved_forward(tmp_path: Path) -> None:
    path = await create_old_database(tmp_path)
    with closing(open_database(tmp_path, NEXT).connection) as db:
        assert schema_version(db) == len(NEXT)
        assert db.execute("SELECT title, shelf FROM conversations").fetchall() == [("old", "none")]
    copy = path.with_name(f"{DATABASE_NAME}.before-version-{len(NEXT)}")
    assert rows(copy, "PRAGMA user_version") == [(len(MIGRATIONS),)]
    assert rows(copy, "SELECT title FROM conversations") == [("old",)]


async def test_a_database_of_the_first_version_opens_without_a_choice_of_reasoning(tmp_path: Path) -> None:
    with closing(open_database(tmp_path, MIGRATIONS[:1]).connection) as db:
        db.execute(
            "INSERT INTO conversations (id, title, title_is_automatic, created_at, updated_at)"
            " VALUES ('a', 'old', 0, 1, 1)"
        )
    store = await Store.open(tmp_path)
    try:
        (record,) = await store.list_conversations()
        assert (record.title, record.reasoning) == ("old", None)
        changed = await store.update_conversation("a", reasoning=ReasoningEffort(level="high"))
        assert changed.reasoning == ReasoningEffort(level="high")
        assert (await store.update_conversation("a", reasoning=None)).reasoning is None
    finally:
        await store.close()


async def test_a_choice_of_reasoning_that_nobody_knows_is_none(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    conversation = await store.create_conversation(title="new", reasoning=ReasoningBudget(tokens=2000))
    assert conversation.reasoning == ReasoningBudget(tokens=2000)
    await store.close()
    with closing(sqlite3.connect(tmp_path / DATABASE_NAME)) as db, db:
        db.execute("UPDATE conversations SET reasoning = ?", ('{"type": "telepathy"}',))
    store = await Store.open(tmp_path)
    try:
        (record,) = await store.list_conversations()
        assert record.reasoning is None
    finally:
        await store.close()


async def test_a_step_that_fails_changes_nothing_and_can_be_tried_again(tmp_path: Path) -> None:
    path = await create_old_database(tmp_path)
    broken = (*NEXT, "CREATE TABLE half (a);\nCREATE TABLE shelves (again);\n")
    with pytest.raises(StorageFailed):
        open_database(tmp_path, broken)
    assert rows(path, "PRAGMA user_version") == [(len(NEXT),)]
    assert rows(path, "SELECT name FROM sqlite_master WHERE name = 'half'") == []
    with closing(open_database(tmp_path, (*NEXT, "CREATE TABLE half (a);\n")).connection) as db:
        assert schema_version(db) == len(NEXT) + 1
    assert rows(path, "SELECT body LIKE '%kept%' FROM messages") == [(1,)]


async def test_an_opening_that_was_cut_short_is_begun_again(tmp_path: Path) -> None:
    (tmp_path / f"{DATABASE_NAME}.unfinished").write_bytes(b"half a database")
    (tmp_path / f"{DATABASE_NAME}.unfinished-wal").write_bytes(b"half a log")
    await create_old_database(tmp_path)
    store = await Store.open(tmp_path)
    assert store.notices == ()
    assert len(await store.list_conversations()) == 1
    await store.close()


async def test_parameters_are_kept_and_what_nobody_can_read_is_the_default(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    parameters = ConversationParameters(temperature=0.5, system_prompt="Be brief.")
    conversation = await store.create_conversation(title="new", parameters=parameters)
    assert conversation.parameters == parameters
    await store.close()
    with closing(open_database(tmp_path).connection) as db:
        db.execute("UPDATE conversations SET parameters = ?", ('{"temperature": 9}',))
    store = await Store.open(tmp_path)
    (record,) = await store.list_conversations()
    assert record.parameters == ConversationParameters()
    await store.close()
