"""Usage of models: summed up, kept when conversations are deleted, and counted from an older database."""

import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from desktop_agent.storage.connection import connect
from desktop_agent.storage.migrations import MIGRATIONS, apply_migrations
from desktop_agent.storage.opening import DATABASE_NAME
from desktop_agent.storage.records import ConversationState, message_to_json, state_to_json
from desktop_agent.storage.store import Store
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.provider_events import Usage
from desktop_agent.types.spending import FIGURE_NAMES, NANOS, UsageFigures, UsageKey

PRICED = UsageFigures(answers=1, tokens=100, input_tokens=80, output_tokens=20, cost_nanos=NANOS)
UNPRICED = UsageFigures(answers=1, unpriced=1, tokens=7)
NOBODY_KNOWS = UsageFigures(answers=1, uncounted=1, unpriced=1)
MONDAY, TUESDAY = date(2026, 3, 2), date(2026, 3, 3)


async def test_rows_add_up_by_day_model_and_project(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    try:
        await store.usage.add({UsageKey(MONDAY, "a", "/x"): PRICED, UsageKey(MONDAY, "b", ""): UNPRICED})
        await store.usage.add({UsageKey(MONDAY, "a", "/x"): PRICED, UsageKey(TUESDAY, "b", "/\ud800"): UNPRICED})
        days = await store.usage.report("day")
        assert [(row.key, row.figures) for row in days.rows] == [
            ("2026-03-02", PRICED + PRICED + UNPRICED),
            ("2026-03-03", UNPRICED),
        ]
        models = await store.usage.report("model")
        assert [row.key for row in models.rows] == ["a", "b"]
        projects = await store.usage.report("project", since=TUESDAY)
        assert [row.key for row in projects.rows] == ["/\ud800"]
        assert (await store.usage.report("day", until=MONDAY)).total == PRICED + PRICED + UNPRICED
        assert await store.usage.used_since(TUESDAY) == UNPRICED
        assert (await store.usage.used_since(date(2027, 1, 1))).cost is None
    finally:
        await store.close()


async def test_what_was_spent_stays_when_its_conversation_is_deleted_for_good(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    try:
        record = await store.create_conversation(title="Gone", model="a", workspace="/x")
        await store.usage.add({UsageKey(MONDAY, "a", "/x"): PRICED})
        await store.delete_conversation(record.id)
        await store.purge_conversation(record.id)
        assert (await store.usage.report("day")).total == PRICED
    finally:
        await store.close()


def test_the_columns_are_the_figures(tmp_path: Path) -> None:
    (tmp_path / "new").touch()
    with closing(connect(tmp_path / "new")) as db:
        apply_migrations(db)
        columns = [row[1] for row in db.execute("PRAGMA table_info(usage)")]
    assert tuple(columns[5:]) == FIGURE_NAMES


def test_unknown_is_never_zero() -> None:
    assert UNPRICED.cost is None
    assert (UNPRICED + PRICED).cost == 1.0
    assert NOBODY_KNOWS.known_tokens is None
    assert (NOBODY_KNOWS + UNPRICED).known_tokens == 7
    assert UsageFigures.of(None) == NOBODY_KNOWS
    assert UsageFigures.of(Usage()) == NOBODY_KNOWS
    assert UsageFigures.of(Usage(input_tokens=5, output_tokens=2, cost=0.0)).cost == 0.0


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def answer(created_at: datetime, usage: Usage | None, role: Role = Role.ASSISTANT) -> Message:
    return Message(role=role, created_at=created_at, model="m", usage=usage)


def older_database(folder: Path) -> None:
    path = folder / DATABASE_NAME
    path.touch()
    used = Usage(input_tokens=80, output_tokens=20, total_tokens=100, cost=1.0)
    # On the night in which the clocks go forward, 23:30 UTC is 00:30 of the next day.
    messages = (
        answer(datetime(2026, 3, 28, 22, 30, tzinfo=UTC), used),
        answer(datetime(2026, 3, 28, 23, 30, tzinfo=UTC), used),
        answer(datetime(2026, 3, 29, 21, 59, tzinfo=UTC), used.model_copy(update={"cost": None})),
        answer(datetime(2026, 3, 29, 22, 1, tzinfo=UTC), None),
        answer(datetime(2026, 3, 30, 10, 0, tzinfo=UTC), used, Role.SYSTEM),
        answer(datetime(2026, 3, 30, 10, 0, tzinfo=UTC), None, Role.SYSTEM),
        answer(datetime(2026, 3, 30, 10, 0, tzinfo=UTC), None, Role.USER),
    )
    state = state_to_json(ConversationState(title_usage=Usage(total_tokens=9, cost=0.5)))
    with closing(connect(path)) as db:
        apply_migrations(db, MIGRATIONS[:7])
        for number, (endpoint, origin) in enumerate((("s", None), ("demo", None), ("s", '{"program":"x","id":"1"}'))):
            db.execute(
                "INSERT INTO conversations (id, title, title_is_automatic, created_at, updated_at, endpoint_id, model,"
                " workspace, state, origin) VALUES (?, 'T', 0, 0, ?, ?, 'm', '/w', ?, ?)",
                (str(number), int(datetime(2026, 4, 1, 12, tzinfo=UTC).timestamp() * 1e6), endpoint, state, origin),
            )
            for position, message in enumerate(messages, 1):
                db.execute(
                    "INSERT INTO messages (conversation, id, position, role, state, created_at, body)"
                    " VALUES (?, ?, ?, ?, 'complete', ?, ?)",
                    (
                        number + 1,
                        message.id,
                        position,
                        message.role.value,
                        message.created_at.isoformat(),
                        message_to_json(message),
                    ),
                )
        db.execute("UPDATE messages SET body = 'no JSON' WHERE conversation = 1 AND position = 7")


@pytest.mark.usefixtures("berlin")
async def test_an_older_database_is_counted_from_its_messages_by_local_days(tmp_path: Path) -> None:
    older_database(tmp_path)
    store = await Store.open(tmp_path)
    try:
        days = {row.key: row.figures for row in (await store.usage.report("day")).rows}
        assert days == {
            "2026-03-28": PRICED,
            "2026-03-29": UsageFigures(2, 0, 1, 200, 160, 40, cost_nanos=NANOS),
            "2026-03-30": NOBODY_KNOWS + PRICED,
            "2026-04-01": UsageFigures(1, tokens=9, cost_nanos=NANOS // 2),
        }
        (project,) = (await store.usage.report("project")).rows
        assert project.key == "/w"
    finally:
        await store.close()
