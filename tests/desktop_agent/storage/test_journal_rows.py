import asyncio
import base64
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from desktop_agent.storage.conversation_lists import UndecidedCall
from desktop_agent.storage.store import Store
from desktop_agent.types.blocks import Base64Source, Image, StoredSource, Text, ToolResult, ToolUse
from desktop_agent.types.engine_events import (
    ApprovalRequested,
    ApprovalResolved,
    Envelope,
    ErrorOccurred,
    Event,
    ModeChangeRequested,
    PolicyApplied,
    RunEnd,
    RunFinished,
    RunStarted,
    ToolCallPending,
    ToolFinished,
    ToolStarted,
    TurnStarted,
)
from desktop_agent.types.errors import RateLimited, WrittenElsewhere, WrongUse
from desktop_agent.types.messages import Message
from desktop_agent.types.provider_events import (
    ContentDelta,
    Done,
    MessageDelta,
    StopReason,
    ThinkingBlock,
    ThinkingDelta,
    ToolArgsDelta,
    Usage,
    UsageUpdate,
)
from desktop_agent.types.tool_calls import ToolClass
from tests.desktop_agent.storage.test_store import json_objects, png, texts
from tests.frame.examples import examples

AT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


def envelope(seq: int, event: Event, run: str = "run") -> Envelope:
    return Envelope(seq, run, None, "turn", AT + timedelta(seconds=seq), event)


async def test_unfinished_runs_come_back_in_order_with_their_deltas(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    conversation = await store.create_conversation(title="t")
    events: list[Event] = [RunStarted("m"), ContentDelta("a"), ContentDelta("b"), ToolStarted("1", {"x": 1})]
    rows = [envelope(seq, event) for seq, event in enumerate(events)]
    await store.append_journal(conversation.id, rows[:2])
    await store.append_journal(conversation.id, rows[2:])
    await store.append_journal(conversation.id, rows[1:])  # a repeated call changes nothing
    await store.close()
    again = await Store.open(tmp_path)
    loaded = await again.load(conversation.id)
    assert loaded.journal == tuple(rows)
    assert loaded.skipped == 0
    await again.close()


async def test_another_row_in_the_same_place_is_an_error_and_nothing_of_it_is_written(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    conversation = await store.create_conversation(title="t")
    rows = [envelope(0, RunStarted("m")), envelope(1, ContentDelta("a\ud800"))]
    await store.append_journal(conversation.id, rows)
    await store.append_journal(conversation.id, rows)
    conflicting = [envelope(2, ContentDelta("new")), envelope(1, ContentDelta("b"))]
    with pytest.raises(WrittenElsewhere, match="Another process has written"):
        await store.append_journal(conversation.id, conflicting)
    with pytest.raises(WrittenElsewhere):
        await store.commit(conversation.id, Message.user("and this"), envelopes=conflicting)
    loaded = await store.load(conversation.id)
    assert loaded.journal == tuple(rows)
    assert loaded.messages == ()
    await store.close()


async def test_finished_runs_are_not_loaded_and_other_conversations_neither(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    first = await store.create_conversation(title="1")
    second = await store.create_conversation(title="2")
    child = Envelope(0, "child", "run", None, AT.astimezone(timezone(timedelta(hours=5, minutes=30))), RunStarted("c"))
    await store.append_journal(first.id, [envelope(0, RunStarted("m")), child])
    await store.append_journal(second.id, [envelope(0, RunStarted("other"))])  # the same run id elsewhere
    await store.append_journal(first.id, [envelope(1, RunFinished(RunEnd.COMPLETED))])
    assert (await store.load(first.id)).journal == (child,)
    assert (await store.load(second.id)).journal == (envelope(0, RunStarted("other")),)
    await store.close()


async def test_finish_run_deletes_that_runs_deltas_only(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    conversation = await store.create_conversation(title="t")
    events: list[Event] = [
        RunStarted("m"),
        ContentDelta("a"),
        ThinkingDelta("b"),
        ToolArgsDelta("1", "n", "{"),
        ToolUse(id="1", name="n"),
        Done(),
    ]
    await store.append_journal(conversation.id, [envelope(seq, event) for seq, event in enumerate(events)])
    await store.append_journal(conversation.id, [envelope(0, ContentDelta("keep"), run="another")])
    await store.finish_run(conversation.id, "run")
    await store.finish_run(conversation.id, "never started")
    rows = (await store.load(conversation.id)).journal
    assert [row.event for row in rows] == [events[0], events[4], events[5], ContentDelta("keep")]
    await store.close()


async def test_a_picture_in_an_event_becomes_a_file(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    conversation = await store.create_conversation(title="t")
    image = Image(source=Base64Source(media_type="image/png", data=png()))
    result = ToolResult(tool_use_id="1", content=(Text(text="x"), image))
    await store.append_journal(conversation.id, [envelope(0, ToolFinished("1", result))])
    (row,) = (await store.load(conversation.id)).journal
    assert isinstance(row.event, ToolFinished)
    part = row.event.result.content[1]
    assert isinstance(part, Image)
    assert isinstance(part.source, StoredSource)
    assert await store.pictures.get(part.source) == base64.b64decode(png())
    await store.close()


async def test_a_picture_that_the_model_made_becomes_a_file(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    conversation = await store.create_conversation(title="t")
    image = Image(source=Base64Source(media_type="image/png", data=png()), provider="p", metadata={"s": 1})
    await store.append_journal(conversation.id, [envelope(0, image)])
    (row,) = (await store.load(conversation.id)).journal
    assert isinstance(row.event, Image)
    assert isinstance(row.event.source, StoredSource)
    assert (row.event.provider, row.event.metadata) == ("p", {"s": 1})
    assert await store.pictures.get(row.event.source) == base64.b64decode(png())
    await store.close()


async def test_unknown_and_damaged_rows_are_skipped_and_counted(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    conversation = await store.create_conversation(title="t")
    await store.append_journal(conversation.id, [envelope(seq, ContentDelta(str(seq))) for seq in range(4)])
    await store.close()
    with closing(sqlite3.connect(tmp_path / "conversations.sqlite3")) as db, db:
        first = db.execute("SELECT min(number) FROM journal").fetchone()[0]
        db.execute('UPDATE journal SET event = \'{"type":"from_the_future"}\' WHERE number = ?', (first,))
        db.execute("UPDATE journal SET event = '{' WHERE number = ?", (first + 1,))
        db.execute("UPDATE journal SET at = 'yesterday' WHERE number = ?", (first + 2,))
    again = await Store.open(tmp_path)
    loaded = await again.load(conversation.id)
    assert [row.event for row in loaded.journal] == [ContentDelta("3")]
    assert loaded.skipped == 3
    await again.close()


async def test_a_place_outside_the_run_is_refused(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    conversation = await store.create_conversation(title="t")
    for seq in (-1, 1 << 32):
        with pytest.raises(WrongUse):
            await store.append_journal(conversation.id, [envelope(0, Done()), envelope(seq, Done())])
    assert (await store.load(conversation.id)).journal == ()
    await store.close()


events: st.SearchStrategy[Any] = (
    st.builds(ContentDelta, texts)
    | st.builds(ThinkingDelta, texts)
    | st.builds(ThinkingBlock, texts, texts, json_objects)
    | st.builds(ToolArgsDelta, texts, st.none() | texts, texts)
    | st.builds(ToolUse, id=texts, name=texts, input=json_objects)
    | st.builds(MessageDelta, st.sampled_from(StopReason), st.none() | texts, st.none() | json_objects)
    | st.builds(UsageUpdate, st.builds(Usage, input_tokens=st.integers(0, 10**9)))
    | st.builds(TurnStarted, texts, texts, texts)
    | st.builds(ModeChangeRequested, texts, texts, st.datetimes(timezones=st.just(UTC)))
    | st.builds(PolicyApplied, texts, st.lists(texts).map(tuple))
    | st.builds(ApprovalResolved, texts, texts, texts, st.sampled_from(["person", "rule"]), st.none() | json_objects)
    | st.just(ErrorOccurred.of(RateLimited("slow down", detail="d")))
)


@settings(
    max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), st.none() | texts, events), max_size=12))
def test_any_journal_comes_back_identical(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str | None, Event]]
) -> None:
    journal = [Envelope(seq, run, parent, parent, AT, event) for seq, (run, parent, event) in enumerate(rows)]

    async def write_and_load(folder: Path) -> tuple[Envelope, ...]:
        store = await Store.open(folder)
        conversation = await store.create_conversation(title="t")
        await store.append_journal(conversation.id, journal)
        loaded = await store.load(conversation.id)
        await store.close()
        return loaded.journal

    loaded_rows = asyncio.run(write_and_load(tmp_path_factory.mktemp("journal")))
    for run in ("a", "b"):
        assert [row for row in loaded_rows if row.run_id == run] == [row for row in journal if row.run_id == run]
    assert len(loaded_rows) == len(journal)


async def test_a_call_of_a_specialist_whose_process_is_gone_waits_for_nobody(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    conversation = await store.create_conversation(title="t")
    request = ApprovalRequested("1", "n", "", agent_path=("helper",))
    nested = Envelope(0, "nested", "run", "turn", AT, request)
    await store.append_journal(conversation.id, [envelope(0, RunStarted("m")), nested])
    assert [run.waits_for_approval for run in await store.find_interrupted_runs()] == [False]
    await store.append_journal(conversation.id, [envelope(1, ApprovalRequested("2", "c", ""))])
    assert [run.waits_for_approval for run in await store.find_interrupted_runs()] == [True]
    await store.close()


async def test_what_waits_in_a_dead_run_is_told_by_its_tool_its_first_text_and_its_time(tmp_path: Path) -> None:
    store = await Store.open(tmp_path)
    conversation = await store.create_conversation(title="Boats")
    rows: list[Event] = [
        RunStarted("m"),
        ToolCallPending("1", "write_file", {"mode": 7, "path": "a.txt", "content": "x" * 500_000}, ToolClass.MUTATING),
        ToolCallPending("2", "run_command", {"command": "make\n  test"}, ToolClass.MUTATING),
        ToolCallPending("3", "fetch_page", {"url": "http://here"}, ToolClass.READ_ONLY),
        ApprovalRequested("a1", "1", ""),
        ApprovalRequested("a2", "2", "", effective_input={"command": "make check"}),
        ApprovalRequested("a3", "3", ""),
        ApprovalRequested("a4", "unknown", ""),
        ApprovalResolved("a3", "3", "deny", "person"),
    ]
    await store.append_journal(conversation.id, [envelope(number, row) for number, row in enumerate(rows)])
    (runs,) = await store.find_interrupted_runs()
    assert (runs.conversation_id, runs.title, runs.waits_for_approval) == (conversation.id, "Boats", True)
    assert runs.waiting_calls == (
        UndecidedCall("a1", "write_file", "a.txt", AT + timedelta(seconds=4)),
        UndecidedCall("a2", "run_command", "make check", AT + timedelta(seconds=5)),
        UndecidedCall("a4", "", "", AT + timedelta(seconds=7)),
    )
    await store.close()


async def test_a_message_that_has_the_number_of_a_deleted_one_is_news(tmp_path: Path) -> None:
    writing, reading = await Store.open(tmp_path), await Store.open(tmp_path)
    conversation = await writing.create_conversation(title="t")
    first, second = Message.user("a"), Message.user("b")
    await writing.commit(conversation.id, first, second)
    _, position = await reading.begin_following(conversation.id)
    await writing.branches.delete(conversation.id, second.id, head_message_id=first.id)
    await writing.commit(conversation.id, Message.user("c"))
    news = await reading.news(conversation.id, position)
    assert news is not None
    assert not news.is_continued
    await writing.close()
    await reading.close()
