"""Integrity checks of the database: when they are due, that they can be cancelled, and what they report."""

import asyncio
import os
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from desktop_agent.storage import guarded_database
from desktop_agent.storage.guarded_database import INDEX_REPAIRED, NO_DAMAGE, IntegrityCheck
from desktop_agent.storage.store import Store
from desktop_agent.types.errors import DatabaseDamaged
from desktop_agent.types.messages import Message

NAME = "conversations.sqlite3"
HOUR = 3600


async def fill(folder: Path, *titles: str) -> None:
    store = await Store.open(folder)
    for title in titles:
        conversation = await store.create_conversation(title=title)
        await store.commit(conversation.id, Message.user(f"said in {title}"))
    await store.close()


def add_hidden(path: Path, *, in_pages: bool = False) -> None:
    """Add a conversation that is in its table, but not in the index by which the list finds it."""
    name, keyword = ("conversations_in_folder", "AND") if in_pages else ("conversations_by_time", "WHERE")
    hiding = f" {keyword} number < 0"
    for sql in (
        f"UPDATE sqlite_schema SET sql = sql || '{hiding}' WHERE name = '{name}'",
        "INSERT INTO conversations (id, title, title_is_automatic, created_at, updated_at)"
        " VALUES ('hidden', 'hidden', 0, 1, 1)",
        f"UPDATE sqlite_schema SET sql = replace(sql, '{hiding}', '') WHERE name = '{name}'",
    ):
        # Each on a new connection, which reads the schema again.
        with closing(sqlite3.connect(path)) as db:
            db.execute("PRAGMA writable_schema=ON")
            db.execute(sql)
            db.commit()


def break_a_row(path: Path) -> None:
    """In a page of message rows, make the first row longer than its page."""
    with closing(sqlite3.connect(path)) as db:
        root = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'messages'").fetchone()[0]
    with path.open("r+b") as file:
        file.seek((root - 1) * 4096 + 8)
        file.write(b"\xff\xff")


@pytest.mark.parametrize("in_pages", [True, False])
async def test_a_conversation_that_its_index_hides_is_listed_and_the_index_repaired(
    tmp_path: Path, *, in_pages: bool
) -> None:
    await fill(tmp_path, "one", "two")
    add_hidden(tmp_path / NAME, in_pages=in_pages)
    store = await Store.open(tmp_path)
    notices: list[object] = []
    store.on_notice(notices.append)
    listed = (await store.list_page(9))[0] if in_pages else await store.list_conversations()
    assert {record.title for record in listed} == {"one", "two", "hidden"}
    assert notices == [INDEX_REPAIRED]
    await store.close()
    with closing(sqlite3.connect(tmp_path / NAME)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


async def test_a_check_is_due_once_a_day_and_once_a_week_where_there_is_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(tmp_path, "one")
    store = await Store.open(tmp_path)
    check = store.integrity_checker
    assert check.last() is None
    assert check.is_due()
    assert await check.run(full=False) == NO_DAMAGE
    assert check.last() is not None
    assert not check.is_due()
    two_days_ago = time.time() - 48 * HOUR
    os.utime(tmp_path / f"{NAME}.last-check", (two_days_ago, two_days_ago))
    assert check.is_due()
    monkeypatch.setattr(guarded_database, "_LARGE_BYTES", 1)
    assert not check.is_due()
    await store.close()


async def test_a_full_check_repairs_an_index_and_says_so(tmp_path: Path) -> None:
    await fill(tmp_path, "one", "two")
    add_hidden(tmp_path / NAME)
    store = await Store.open(tmp_path)
    assert await store.integrity_checker.run(full=True) == INDEX_REPAIRED
    assert await store.integrity_checker.run(full=True) == NO_DAMAGE
    await store.close()


@pytest.mark.parametrize("full", [True, False])
async def test_damage_is_told_and_rescued_at_the_next_start(tmp_path: Path, *, full: bool) -> None:
    await fill(tmp_path, "one", "two")
    store = await Store.open(tmp_path)
    break_a_row(tmp_path / NAME)
    with pytest.raises(DatabaseDamaged) as damaged:
        await store.integrity_checker.run(full=full)
    assert "start it again" in str(damaged.value.remedy)
    assert store.integrity_checker.is_due()
    await store.close()
    again = await Store.open(tmp_path)
    assert again.notices
    await again.close()


CHANGED_NUMBERS = {
    "a parent that is not there": "UPDATE messages SET parent = 60 WHERE number = 3",
    "a parent that comes later": "UPDATE messages SET parent = 5 WHERE number = 3",
    "an earlier parent": "UPDATE messages SET parent = 1 WHERE number = 7",
    "a parent elsewhere": "UPDATE messages SET parent = 4 WHERE number = 5",
    "no parent": "UPDATE messages SET parent = NULL WHERE number = 5",
    "a position": "UPDATE messages SET position = 66 WHERE number = 3",
    "an earlier end": "UPDATE conversations SET head = 3 WHERE number = 1",
    "an end elsewhere": "UPDATE conversations SET head = 8 WHERE number = 1",
    "an end that is not there": "UPDATE conversations SET head = 71 WHERE number = 1",
    "no end": "UPDATE conversations SET head = NULL WHERE number = 1",
    "a count": "UPDATE conversations SET message_count = 68 WHERE number = 1",
    "a smaller count": "UPDATE conversations SET message_count = 2 WHERE number = 1",
}


@pytest.mark.parametrize("statement", CHANGED_NUMBERS.values(), ids=CHANGED_NUMBERS)
async def test_a_changed_number_hides_no_message(tmp_path: Path, statement: str) -> None:
    """SQLite finds nothing wrong with it, although messages refer to their parents by such numbers."""
    store = await Store.open(tmp_path)
    conversations = [await store.create_conversation(title=title) for title in ("one", "two")]
    expected = [[f"{conversation.title} {turn}" for turn in range(4)] for conversation in conversations]
    for turn in range(4):
        for conversation, texts in zip(conversations, expected, strict=True):
            await store.commit(conversation.id, Message.user(texts[turn]))
    with closing(sqlite3.connect(tmp_path / NAME)) as db:
        db.execute("PRAGMA foreign_keys=OFF")
        db.execute(statement)
        db.commit()
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    with pytest.raises(DatabaseDamaged):
        await store.integrity_checker.run(full=False)
    with pytest.raises(DatabaseDamaged) as damaged:
        await store.load(conversations[0].id)
    assert "start it again" in str(damaged.value.remedy)
    await store.close()
    again = await Store.open(tmp_path)
    assert again.notices
    assert [
        [message.text for message in (await again.load(conversation.id)).messages] for conversation in conversations
    ] == expected
    assert await again.integrity_checker.run(full=True) == NO_DAMAGE
    await again.close()


CHANGED_BESIDE_ANOTHER_BRANCH = {
    "a position": "UPDATE messages SET position = 67 WHERE number = 5",
    "the position of the end": "UPDATE messages SET position = 68 WHERE number = 6",
    "the first position": "UPDATE messages SET position = 3 WHERE number = 1",
    "a parent": "UPDATE messages SET parent = 60 WHERE number = 6",
}


@pytest.mark.parametrize("statement", CHANGED_BESIDE_ANOTHER_BRANCH.values(), ids=CHANGED_BESIDE_ANOTHER_BRANCH)
async def test_a_changed_number_leads_onto_no_other_branch(tmp_path: Path, statement: str) -> None:
    store = await Store.open(tmp_path)
    conversation = await store.create_conversation(title="one")
    first = [Message.user(text) for text in ("u1", "a2", "u3", "a4")]
    await store.commit(conversation.id, *first)
    await store.update_conversation(conversation.id, head_message_id=first[1].id)
    await store.commit(conversation.id, Message.user("u3 edited"), Message.user("a4 new"))
    await store.close()
    with closing(sqlite3.connect(tmp_path / NAME)) as db:
        db.execute(statement)
        db.commit()
    store = await Store.open(tmp_path)
    with pytest.raises(DatabaseDamaged):
        await store.load(conversation.id)
    await store.close()
    again = await Store.open(tmp_path)
    texts = [message.text for message in (await again.load(conversation.id)).messages]
    assert texts == ["u1", "a2", "u3 edited", "a4 new"]
    await again.close()


async def test_closing_ends_a_check_and_nothing_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await fill(tmp_path, "one")
    store = await Store.open(tmp_path)
    started, go_on = threading.Event(), threading.Event()
    run, checks = IntegrityCheck.run, list[IntegrityCheck]()

    def run_when_allowed(check: IntegrityCheck) -> list[str] | None:
        checks.append(check)
        started.set()
        go_on.wait()
        return run(check)

    monkeypatch.setattr(IntegrityCheck, "run", run_when_allowed)
    checking = asyncio.create_task(store.integrity_checker.run(full=True))
    await asyncio.to_thread(started.wait)
    assert (await store.list_conversations())[0].title == "one", "nobody waits for a check"
    closing_ = asyncio.create_task(store.close())
    while not checks[0].is_cancelled:
        await asyncio.sleep(0)
    go_on.set()
    assert await checking is None
    await closing_
    assert store.integrity_checker.last() is None


def run_check(folder: Path) -> tuple[int, str, str]:
    command = [sys.executable, "-m", "desktop_agent", "check", "--data-dir", str(folder)]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    return process.returncode, process.stdout, process.stderr


async def test_the_command_says_that_nothing_is_wrong_or_what_it_repaired(tmp_path: Path) -> None:
    await fill(tmp_path, "one", "two")
    assert await asyncio.to_thread(run_check, tmp_path) == (0, f"{NO_DAMAGE}\n", "")
    add_hidden(tmp_path / NAME)
    assert await asyncio.to_thread(run_check, tmp_path) == (0, f"{INDEX_REPAIRED}\n", "")
    break_a_row(tmp_path / NAME)
    code, out, err = await asyncio.to_thread(run_check, tmp_path)
    assert (code, err) == (1, "")
    assert "were damaged" in out


def test_the_command_makes_nothing_where_nothing_was_saved(tmp_path: Path) -> None:
    code, out, err = run_check(tmp_path / "nothing")
    assert (code, out) == (1, "")
    assert "There are no saved conversations" in err
    assert not (tmp_path / "nothing").exists()
