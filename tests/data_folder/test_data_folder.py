"""A data folder of an earlier version opens with nothing lost: messages, calls, thinking, pictures, rules, settings."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from desktop_agent.types.errors import AgentError
from tests.data_folder.reading import (
    DATABASE,
    EXPECTED,
    KEPT,
    branches,
    copied,
    files,
    lost,
    opened,
    opening,
    plain,
    settings,
)
from ui.sidebar.conversation_list import ConversationList
from ui.sidebar.conversation_model import ConversationModel
from ui.style.theme import ThemeSource

expected: dict[str, Any] = json.loads(EXPECTED.read_text(encoding="utf-8"))


async def losses(section: str, data: Path, place: Path) -> list[str]:
    read = {"branches": lambda: branches(data, expected["leaves"]), "opened": lambda: opened(data)}
    found = await read.get(section, lambda: settings(data))()
    return list(lost(expected[section], plain(found, place)))


@pytest.mark.parametrize("section", ["branches", "opened", "settings"])
async def test_nothing_is_lost(section: str, tmp_path: Path) -> None:
    data = copied(tmp_path / section)
    assert await losses(section, data, tmp_path) == []
    for name in files(KEPT):
        if name.startswith(("pictures/", "saved-files/")):
            assert (data / name).read_bytes() == (KEPT / name).read_bytes()


async def test_the_window_lists_every_conversation(tmp_path: Path, qtbot: Any) -> None:
    async with opening(copied(tmp_path / "listed")) as engine:
        records = await engine.store.list_conversations()
    pane = ConversationList(ThemeSource())
    qtbot.addWidget(pane)
    pane.set_conversations(records)
    rows = pane.findChild(ConversationModel)
    titles = [rows.index(rows.row_of(rows.id_of(number)), 0).data() for number in range(rows.count)]
    assert titles == [each["title"][0] for each in expected["opened"]["list"]]


def row(table: str, which: str, change: str) -> Callable[[Path], None]:
    """Change the last such row, or delete it."""

    def damage(data: Path) -> None:
        where = f"WHERE number = (SELECT max(number) FROM {table} WHERE {which})"
        statement = f"UPDATE {table} SET {change} {where}" if change else f"DELETE FROM {table} {where}"
        with closing(sqlite3.connect(data / DATABASE)) as database, database:
            assert database.execute(statement).rowcount == 1

    return damage


def no_pictures(data: Path) -> None:
    for file in data.glob("pictures/*/*"):
        file.unlink()


def no_mode(data: Path) -> None:
    file = data / "preferences.json"
    file.write_text(file.read_text(encoding="utf-8").replace('"careful"', '"Careful"'), encoding="utf-8")


@pytest.mark.parametrize(
    ("section", "damage"),
    [
        ("branches", row("messages", "true", "")),
        ("branches", row("messages", "body GLOB '*signature*'", "body = replace(body, 'signature', 'sign')")),
        ("branches", row("journal", "type = 'tool_started'", "")),
        ("branches", no_pictures),
        ("opened", row("rules", "body LIKE '%curl%'", "body = replace(body, 'curl', 'wget')")),
        ("opened", row("runs", "NOT finished", "finished = 1")),
        ("opened", row("conversations", "title = 'Rules and modes'", "state = NULL")),
        ("opened", row("conversations", "title = 'A long talk'", "deleted_at = 1")),
        ("settings", no_mode),
        ("settings", row("drafts", "number = 0", "")),
    ],
)
async def test_each_loss_is_noticed(section: str, damage: Callable[[Path], None], tmp_path: Path) -> None:
    data = copied(tmp_path / section)
    damage(data)
    # It may be such that it cannot even be read.
    with suppress(AgentError):
        assert await losses(section, data, tmp_path)
