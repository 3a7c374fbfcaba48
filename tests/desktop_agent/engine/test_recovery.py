"""A process that died: its journal becomes messages again."""

import asyncio
import random
import sqlite3
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop_agent.conversation.history import normalised_history
from desktop_agent.engine.engine import Engine
from desktop_agent.engine.recovery import recover
from desktop_agent.storage.opening import DATABASE_NAME
from desktop_agent.storage.records import event_to_json, read_event
from desktop_agent.storage.store import Store
from desktop_agent.types.blocks import (
    Citation,
    Image,
    Outcome,
    ServerStep,
    StoredSource,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Unknown,
)
from desktop_agent.types.engine_events import (
    ApprovalRequested,
    ApprovalResolved,
    Envelope,
    RunStarted,
    ToolCallPending,
    ToolFinished,
    ToolStarted,
    TurnStarted,
)
from desktop_agent.types.errors import Sentence
from desktop_agent.types.messages import Message, MessageState, Role
from desktop_agent.types.provider_events import (
    AnswerNamed,
    AnswerStarted,
    ContentDelta,
    MessageDelta,
    Origin,
    RequestAdjusted,
    StopReason,
    TextClosed,
    ThinkingDelta,
    Usage,
    UsageUpdate,
)
from desktop_agent.types.tool_calls import AllowOnce, ToolClass
from tests.fakes.agent_run import call, tool
from tests.fakes.scripted_provider import Turn
from tests.fakes.session import DISK, Stage, calls_of, envelope, results_of, shaky_store
from tests.frame.examples import examples

PROMPT = Message.user("go")


def recovered_messages(messages: tuple[Message, ...], journal: list[Envelope]) -> tuple[Message, ...]:
    """Return the messages that recovery adds where nobody resumes the open calls."""
    recovery = recover(messages, journal)
    return (*recovery.messages, *((recovery.open_calls.results,) if recovery.open_calls is not None else ()))


def turn(message_id: str, *events: Any, begin: int = 1) -> list[Envelope]:
    """The envelopes of one turn."""
    all_events = (TurnStarted(f"turn-{message_id}", message_id, "m"), *events)
    return [envelope(begin + n, event, turn_id=f"turn-{message_id}") for n, event in enumerate(all_events)]


def test_an_answer_that_broke_off_is_kept_as_interrupted() -> None:
    usage = Usage(total_tokens=4)
    (message,) = recovered_messages(
        (PROMPT,), turn("a", ThinkingDelta("hm"), ContentDelta("Hel"), ContentDelta("lo"), UsageUpdate(usage))
    )
    assert (message.id, message.text, message.state, message.usage) == ("a", "Hello", MessageState.INTERRUPTED, usage)
    assert isinstance(message.blocks[0], Thinking)


def test_thinking_that_broke_off_lasted_until_the_last_event() -> None:
    rows = turn("a", ThinkingDelta("hm"), ThinkingDelta("?"), UsageUpdate(Usage(total_tokens=4)))
    rows = [replace(row, at=rows[0].at + timedelta(seconds=2**number)) for number, row in enumerate(rows)]
    (message,) = recovered_messages((PROMPT,), rows)
    (thinking,) = message.blocks
    assert isinstance(thinking, Thinking)
    assert thinking.seconds == 8 - 2


def test_everything_that_an_answer_holds_survives_the_journal() -> None:
    picture = Sentence("{picture} was scaled.", {"picture": Sentence("The picture “{name}”", {"name": "a"})})
    step, unknown = ServerStep(provider="p", name="search", text="x", raw={"q": [1]}), Unknown(raw=7, provider="p")
    citation = Citation(title="t", url="https://x.example", start=0, end=2)
    use = ToolUse(id="1", name="f", provider="p", metadata={"arguments": "{ }"})
    source = StoredSource(digest="0" * 64, media_type="image/png", size=9, width=3, height=2)
    made = Image(source=source, provider="p", metadata={"thoughtSignature": "S"})
    events = (
        RequestAdjusted((picture,)),
        AnswerStarted(Origin(provider="p", account="a", prefix="b", request_id="q"), (Sentence("Stop left out."),)),
        AnswerNamed("r"),
        ContentDelta("Hi", "commentary"),
        TextClosed("p", {"id": "m1"}, (citation,)),
        step,
        made,
        unknown,
        use,
        MessageDelta(StopReason.UNKNOWN, "weird", {"a": 1}),
    )
    read = [read_event(event_to_json(event)) for event in events]
    assert read == list(events)
    (message, _) = recovered_messages((PROMPT,), turn("a", *read))
    closed = Text(text="Hi", provider="p", metadata={"id": "m1"}, citations=(citation,))
    assert message.blocks == (closed, step, made, unknown, use)
    assert message.origin == Origin(provider="p", account="a", prefix="b", request_id="q", response_id="r")
    assert message.adjustments == (picture, Sentence("Stop left out."))
    assert message.stop_details == {"raw": "weird", "a": 1}
    assert Message.model_validate_json(message.model_dump_json()) == message


def test_a_journal_of_an_older_version_is_read() -> None:
    old = [
        '{"type":"content_delta","text":"Hi"}',
        '{"type":"tool_use","id":"1","name":"f","input":{},"malformed":null}',
        '{"type":"message_delta","stop_reason":"tool_use","raw":"stop","details":null}',
    ]
    (message, _) = recovered_messages((PROMPT,), turn("a", *map(read_event, old)))
    assert message.blocks == (Text(text="Hi"), ToolUse(id="1", name="f"))


def test_nothing_said_is_nothing_to_keep() -> None:
    assert recovered_messages((PROMPT,), [envelope(1, RunStarted("p"), turn_id=None), *turn("a", begin=2)]) == ()
    assert recovered_messages((PROMPT,), []) == ()


def test_what_had_started_is_unknown_and_what_had_not_is_cancelled() -> None:
    done = ToolResult(tool_use_id="1", content=(Text(text="ok"),))
    journal = turn(
        "a",
        *(call(str(number), "act") for number in (1, 2, 3)),
        ToolStarted("1", {}),
        ToolFinished("1", done),
        ToolStarted("2", {}),
    )
    answer, results = recovered_messages((PROMPT,), journal)
    assert [result.outcome for result in results_of((results,)).values()] == ["succeeded", "unknown", "cancelled"]
    assert results_of((results,))["1"] == done
    assert results.role is Role.TOOL
    # The same when the answer was committed before the end came.
    messages = recovered_messages((PROMPT, answer), journal)
    assert [message.role for message in messages] == [Role.TOOL]
    assert [result.outcome for result in results_of(messages).values()] == ["succeeded", "unknown", "cancelled"]
    assert recovered_messages((PROMPT, answer, *messages), journal) == ()


def test_a_call_id_of_an_earlier_turn_is_another_call() -> None:
    done = ToolResult(tool_use_id="1", content=(Text(text="first"),))
    first = turn("a", call("1", "look"), ToolStarted("1", {}), ToolFinished("1", done))
    second = turn("b", call("1", "act"), begin=10)
    committed = Message(id="a", role=Role.ASSISTANT, blocks=(call("1", "look"),))
    messages = recovered_messages((PROMPT, committed, Message.tool_results([done])), [*first, *second])
    assert [message.id for message in messages][:1] == ["b"]
    assert results_of(messages)["1"].outcome is Outcome.CANCELLED


async def _life(folder: Path) -> tuple[list[Envelope], list[tuple[Message, ...]]]:
    """One run with everything in it: its events, and the history at each of them."""
    async with shaky_store(folder) as shaky:
        stage = Stage(
            shaky,
            Turn(ThinkingDelta("hm"), ContentDelta("I "), ContentDelta("look"), call("1", "look"), call("2", "act")),
            Turn(ContentDelta("and "), call("1", "act"), call("2", "look")),
            Turn(ContentDelta("done"), ContentDelta(".")),
            tools=(tool("look", read_only=True), tool("act")),
        )
        histories: list[tuple[Message, ...]] = []
        stage.session.subscribe(on_event=lambda _: histories.append(stage.session.history))
        stage.session.send(Message.user("go"))
        while stage.session.working:
            for approval in stage.session.approvals.open_approvals:
                stage.session.approvals.answer(approval.approval_id, AllowOnce())
            await asyncio.sleep(0)
        await stage.session.close()
        return stage.events, histories


def test_a_crash_after_any_event_loses_nothing_that_was_journalled(tmp_path: Path) -> None:
    events, histories = asyncio.run(_life(tmp_path))
    assert len(events) > 25
    for cut in range(1, len(events)):
        journal = events[:cut]
        # What the last event was followed by may have been committed before the end, or not.
        for committed in (histories[cut - 1], histories[cut]):
            _check_recovery(committed, journal)


def _check_recovery(committed: tuple[Message, ...], journal: list[Envelope]) -> None:
    added = recovered_messages(committed, journal)
    whole = (*committed, *added)
    streamed = "".join(envelope.event.text for envelope in journal if isinstance(envelope.event, ContentDelta))
    shown = "".join(message.text for message in whole if message.role is Role.ASSISTANT)
    assert shown == streamed
    assert normalised_history(whole) == whole  # every call has exactly one result, right after it
    assert recovered_messages(whole, journal) == ()
    answers = [message for message in whole if message.tool_uses]
    if answers and whole[-1].role is Role.TOOL and whole[-1] in added:
        turn_id = next(
            e.turn_id for e in journal if isinstance(e.event, TurnStarted) and e.event.message_id == answers[-1].id
        )
        here = [envelope.event for envelope in journal if envelope.turn_id == turn_id]
        started = {event.id for event in here if isinstance(event, ToolStarted)}
        finished = {event.id: event.result for event in here if isinstance(event, ToolFinished)}
        for call_id, result in results_of((whole[-1],)).items():
            if call_id in finished:
                assert result == finished[call_id]
            else:
                assert result.outcome is (Outcome.UNKNOWN if call_id in started else Outcome.CANCELLED)


_steps = st.lists(
    st.sampled_from(["text", "thinking", "call", "start", "finish", "turn"]),
    max_size=20,
)


@settings(max_examples=examples(150), deadline=None)
@given(_steps, st.integers(0, 1000))
def test_any_journal_becomes_messages_that_a_server_takes(steps: list[str], seed: int) -> None:
    chance = random.Random(seed)
    journal, text = turn("m0"), ""
    open_calls: list[str] = []
    started: list[str] = []
    for number, step in enumerate(steps, 1):
        event: Any = None
        if step == "turn" and not open_calls:
            journal += turn(f"m{number}", begin=len(journal) + 1)
            continue
        if step == "text" and not open_calls:
            event = ContentDelta(chance.choice("abc"))
            text += event.text
        elif step == "thinking" and not open_calls:
            event = ThinkingDelta("t")
        elif step == "call":
            event = ToolUse(id=f"c{len(open_calls)}", name="act")
            if started:
                continue
            open_calls.append(event.id)
        elif step == "start" and open_calls:
            event = ToolStarted(chance.choice(open_calls), {})
            started.append(event.id)
        elif step == "finish" and started:
            event = ToolFinished(started[-1], ToolResult(tool_use_id=started[-1]))
        if event is not None:
            last = journal[-1]
            journal.append(envelope(last.seq + 1, event, turn_id=last.turn_id))
    messages = recovered_messages((PROMPT,), journal)
    whole = (PROMPT, *messages)
    assert "".join(message.text for message in messages) == text
    assert normalised_history(whole) == whole
    assert recovered_messages(whole, journal) == ()
    assert len(results_of(messages)) == len(calls_of(messages))


async def _crashed(folder: Path, journal: list[Envelope], *messages: Message) -> str:
    """A conversation as a process leaves it that is killed."""
    store = await Store.open(folder)
    record = await store.create_conversation(title="t")
    await store.commit(record.id, PROMPT, *messages)
    await store.append_journal(record.id, journal)
    await store.close()
    return record.id


async def test_opening_puts_it_in_order_once(tmp_path: Path) -> None:
    id_ = await _crashed(tmp_path, turn("a", ContentDelta("half"), call("1", "act"), ToolStarted("1", {})))
    first: tuple[Message, ...] = ()
    for _ in range(2):
        engine = await Engine.open(tmp_path)
        session = await engine.session(id_)
        first = first or session.history
        assert session.history == first
        assert [message.role for message in first] == [Role.USER, Role.ASSISTANT, Role.TOOL]
        assert results_of(first)["1"].outcome is Outcome.UNKNOWN
        loaded = await engine.store.load(id_)
        assert loaded.messages == first
        assert loaded.journal == ()
        await engine.close()
    with closing(sqlite3.connect(tmp_path / DATABASE_NAME)) as db:
        rows = db.execute("SELECT number & 0xffffffff, type FROM journal ORDER BY number").fetchall()
    # The run is over, right behind its last event, and its pieces have gone: the message has them.
    assert rows == [(1, "turn_started"), (3, "tool_use"), (4, "tool_started"), (5, "run_finished")]


async def test_opening_it_twice_at_once_puts_it_in_order_once(tmp_path: Path) -> None:
    id_ = await _crashed(tmp_path, turn("a", call("1", "act"), ToolStarted("1", {})))
    engine = await Engine.open(tmp_path)
    one, two = await asyncio.gather(engine.session(id_), engine.session(id_))
    assert one is two
    assert len((await engine.store.load(id_)).messages) == 3
    await engine.close()


@pytest.mark.parametrize("killed_at", ["append_journal", "finish_run"])
async def test_a_kill_in_the_middle_of_putting_in_order_doubles_nothing(
    tmp_path: Path, killed_at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    id_ = await _crashed(tmp_path, turn("a", ContentDelta("half"), call("1", "act"), ToolStarted("1", {})))
    engine = await Engine.open(tmp_path)

    async def killed(*_: object) -> None:
        raise DISK

    with monkeypatch.context() as patch:
        patch.setattr(Store, killed_at, killed)
        await engine.session(id_)
        await engine.close()
    engine = await Engine.open(tmp_path)
    session = await engine.session(id_)
    assert [message.role for message in session.history] == [Role.USER, Role.ASSISTANT, Role.TOOL]
    assert (await engine.store.load(id_)).messages == session.history
    await engine.close()


def open_turn(*events: Any, **answer: Any) -> tuple[Message, list[Envelope]]:
    """A whole answer with three calls, and the journal of the turn that asked for it."""
    calls = tuple(call(str(number), "act") for number in (1, 2, 3))
    whole = Message(id="a", role=Role.ASSISTANT, blocks=calls, stop_reason=StopReason.TOOL_USE)
    return whole.model_copy(update=answer), turn("a", *calls, *events)


def test_the_calls_of_a_whole_answer_stay_open() -> None:
    done = ToolResult(tool_use_id="1", content=(Text(text="ok"),))
    requests = [ApprovalRequested(f"approval {number}", number, "d") for number in ("2", "3")]
    decided = ApprovalResolved("approval 2", "2", "allow_once", "person", digest="d")
    announced = ToolCallPending("1", "act", {}, ToolClass.MUTATING)
    answer, journal = open_turn(announced, ToolStarted("1", {}), ToolFinished("1", done), *requests, decided)
    recovery = recover((PROMPT, answer), journal)
    assert recovery.messages == ()
    assert recovery.ended == ()
    assert recovery.open_calls is not None
    assert recovery.open_calls.last == journal[-1]
    recovered = recovery.open_calls.recovered_calls
    assert (recovered.finished, recovered.started, recovered.announced) == ({"1": done}, {"1"}, {"1"})
    assert (recovered.decided, recovered.waiting) == ({"2": decided}, {"3": requests[1]})
    outcomes = [result.outcome for result in results_of((recovery.open_calls.results,)).values()]
    assert outcomes == [Outcome.SUCCEEDED, Outcome.CANCELLED, Outcome.CANCELLED]
    assert [envelope.event for envelope in recovery.open_calls.shown_events] == [ToolFinished("1", done)]


def test_calls_stay_open_though_only_the_beginning_of_their_turn_was_journalled() -> None:
    answer, journal = open_turn()
    recovery = recover((PROMPT, answer), journal[:1])
    assert recovery.open_calls is not None
    assert (recovery.open_calls.last, recovery.open_calls.shown_events) == (journal[0], ())
    assert recovery.ended == ()


@pytest.mark.parametrize(
    ("answer", "stopped_run"),
    [
        ({}, "run"),
        ({"state": MessageState.INTERRUPTED}, None),
        ({"stop_reason": StopReason.REFUSAL}, None),
    ],
    ids=["stopped", "cut short", "refused"],
)
def test_calls_that_nobody_would_run_are_closed(answer: dict[str, Any], stopped_run: str | None) -> None:
    whole, journal = open_turn(**answer)
    recovery = recover((PROMPT, whole), journal, stopped_run)
    assert recovery.open_calls is None
    assert [result.outcome for result in results_of(recovery.messages).values()] == [Outcome.CANCELLED] * 3
    assert recovery.ended == (journal[-1],)


def test_a_question_that_stop_took_back_says_that_the_run_was_stopped() -> None:
    approval = ApprovalRequested("approval", "1", "d")
    withdrawn = ApprovalResolved("approval", "1", "withdrawn", "stop")
    answer, journal = open_turn(approval, withdrawn)
    assert recover((PROMPT, answer), journal).open_calls is None
    # One call alone was stopped: it has its result, and the others go on.
    cancelled = ToolFinished("1", ToolResult(tool_use_id="1", outcome=Outcome.CANCELLED))
    answer, journal = open_turn(approval, withdrawn, cancelled)
    assert recover((PROMPT, answer), journal).open_calls is not None


def test_calls_without_a_journal_are_closed() -> None:
    answer, _ = open_turn()
    recovery = recover((PROMPT, answer), [])
    assert recovery.open_calls is None
    assert len(results_of(recovery.messages)) == 3


def test_what_a_specialist_said_becomes_no_message_and_its_run_is_over() -> None:
    answer, journal = open_turn(ToolStarted("1", {}))
    below = [
        replace(envelope, run_id="below", parent_run_id="run", turn_id="turn-b")
        for envelope in turn("b", ContentDelta("theirs"), ToolStarted("1", {}))
    ]
    recovery = recover((PROMPT, answer), [*journal, *below])
    assert recovery.messages == ()
    assert recovery.ended == (below[-1],)
    assert recovery.open_calls is not None
    assert recovery.open_calls.recovered_calls.started == {"1"}
    assert recovery.open_calls.last == journal[-1]
