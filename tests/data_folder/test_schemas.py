"""A database of each earlier version of the schema opens with everything that is in it."""

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from desktop_agent.storage.migrations import MIGRATIONS, schema_version
from desktop_agent.storage.opening import DATABASE_NAME
from desktop_agent.storage.store import Store
from tests.data_folder.reading import opening
from tests.data_folder.schemas import VERSIONS, write_database

NEWEST = len(MIGRATIONS)
each_version = pytest.mark.parametrize("version", VERSIONS)


@pytest.fixture
def data(tmp_path: Path, version: int) -> Path:
    write_database(tmp_path / DATABASE_NAME, version)
    return tmp_path


def rows(data: Path, query: str) -> list[Any]:
    with closing(sqlite3.connect(data / DATABASE_NAME)) as database:
        return database.execute(query).fetchall()


def text_of(body: str) -> str:
    return "".join(block["text"] for block in json.loads(body)["blocks"] if block["type"] == "text")


def schema_of(data: Path) -> dict[str, str]:
    """The tables, indexes and triggers, by name; without what a dump cannot keep."""
    found = rows(data, "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL")
    return {name: re.sub(r"\s+", " ", sql) for name, sql in found}


def test_every_earlier_version_is_kept() -> None:
    # One that is missing: python -m tests.data_folder.schemas
    assert set(range(1, NEWEST)) <= set(VERSIONS)


@each_version
async def test_every_conversation_of_an_earlier_version_opens(data: Path, version: int) -> None:
    conversations = rows(data, "SELECT number, id, title, deleted_at FROM conversations")
    messages = rows(data, "SELECT conversation, id, body FROM messages ORDER BY number")
    drafts = rows(data, "SELECT number, body FROM drafts")
    assert len(conversations) == 5
    assert len(messages) >= 22
    async with opening(data) as engine:
        store = engine.store
        assert not [notice for notice in engine.notices if "damaged" in str(notice)]
        listed = [*await store.list_conversations(), *await store.list_conversations(in_trash=True)]
        assert {(each.id, each.title, each.deleted_at is not None) for each in listed} == {
            (id_, title, deleted_at is not None) for _, id_, title, deleted_at in conversations
        }
        for number, id_, _, deleted_at in conversations:
            expected = [(message_id, text_of(body)) for owner, message_id, body in messages if owner == number]
            tree = await store.load_tree(id_)
            assert [(node.message.id, node.message.text) for node in tree.messages] == expected
            assert (await store.load(id_)).skipped == 0
            if deleted_at is None:
                session = await engine.session(id_)
                assert session.history
                assert not session.is_closed
        for number, body in drafts:
            names = {number: id_ for number, id_, *_ in conversations}
            assert (await store.load_draft(names.get(number))).text == json.loads(body)["text"]
        if version >= 3:
            assert len(await store.rules.all()) == 9
            with_undo = next(id_ for number, id_, *_ in conversations if number == 5)
            assert len(await store.checkpoints.of_conversation(with_undo)) == 3


@each_version
async def test_what_is_migrated_has_the_tables_of_what_is_new(data: Path, version: int, tmp_path: Path) -> None:
    await (await Store.open(data)).close()
    await (await Store.open(tmp_path / "new")).close()
    assert schema_of(data) == schema_of(tmp_path / "new")
    with closing(sqlite3.connect(data / DATABASE_NAME)) as database:
        assert schema_version(database) == NEWEST
    assert (data / f"{DATABASE_NAME}.before-version-{NEWEST}").exists() == (version < NEWEST)
