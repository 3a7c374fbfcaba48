"""The single writer, and the recorder of one run."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from desktop_agent.conversation.items import Added, AnswerItem, NoticeItem, Removed, ToolCallItem, Updated, UserItem
from desktop_agent.engine.session_runs import RunRecorder
from desktop_agent.engine.session_writer import SessionWriter
from desktop_agent.storage.journal_queue import JournalQueue
from desktop_agent.types.blocks import Summary
from desktop_agent.types.engine_events import (
    Envelope,
    Event,
    RetryScheduled,
    RunEnd,
    RunFinished,
    RunStarted,
    ToolStarted,
    TurnStarted,
    UserMessageReturned,
)
from desktop_agent.types.errors import StorageFailed
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.provider_events import ContentDelta, ToolArgsDelta, Usage, UsageUpdate
from desktop_agent.types.tool_calls import AllowOnce
from tests.fakes.agent_run import call, tool
from tests.fakes.scripted_provider import Turn
from tests.fakes.session import DISK, Shaky, Stage, record, shaky_store


def writer(shaky: Shaky, *messages: Message) -> SessionWriter:
    return SessionWriter(JournalQueue(shaky, record(), is_new=True), messages)  # type: ignore[arg-type]


async def test_pieces_of_text_reach_only_those_who_want_them(tmp_path: Path) -> None:
    async with shaky_store(tmp_path) as shaky:
        about = writer(shaky)
        every: list[Envelope] = []
        others: list[Envelope] = []
        about.subscribe(None, every.append)
        about.subscribe(None, others.append, pieces=False)
        recorder = RunRecorder(about)
        recorder.emit(TurnStarted("t", "m", "model"))
        recorder.emit(ContentDelta("a"))
        recorder.emit(UsageUpdate(Usage(output_tokens=1)))
        about.unsubscribe(every.append)
        recorder.emit(RunFinished(RunEnd.COMPLETED))
        assert [type(envelope.event) for envelope in every] == [TurnStarted, ContentDelta, UsageUpdate]
        assert [type(envelope.event) for envelope in others] == [TurnStarted, UsageUpdate, RunFinished]
        await about.journal_queue.close()


async def test_pieces_that_came_together_are_counted_told_and_journalled_as_if_they_came_alone(tmp_path: Path) -> None:
    async with shaky_store(tmp_path) as shaky:
        about = writer(shaky)
        changes: list[Any] = []
        singles: list[Envelope] = []
        together: list[tuple[int, list[Event]]] = []
        about.subscribe(
            changes.extend, singles.append, lambda envelope, pieces: together.append((envelope.seq, [*pieces]))
        )
        recorder = RunRecorder(about)
        pieces = [ContentDelta("a"), ContentDelta("b"), ContentDelta("c")]
        recorder.emit(TurnStarted("t", "m", "model"))
        recorder.emit(ContentDelta("abc"), pieces)
        recorder.emit(ContentDelta("d"))
        assert [(single.seq, single.event) for single in singles[1:]] == [
            (2, pieces[0]),
            (3, pieces[1]),
            (4, pieces[2]),
            (5, ContentDelta("d")),
        ]
        assert together == [(4, pieces), (5, [ContentDelta("d")])]
        assert changes == [Added(0), Updated(0, "text")]
        await about.flush()
        rows = (await shaky.store.load(about.record.id)).journal
        assert [(row.seq, row.event) for row in rows][1:] == [(5, ContentDelta("abcd"))]
        await about.journal_queue.close()


async def test_a_recorder_counts_without_gaps_and_is_deaf_after_the_end(tmp_path: Path) -> None:
    async with shaky_store(tmp_path) as shaky:
        about = writer(shaky)
        envelopes: list[Envelope] = []
        about.subscribe(None, envelopes.append)
        recorder = RunRecorder(about)
        recorder.emit(RunStarted("p"))
        recorder.emit(TurnStarted("t", "m", "model"))
        recorder.emit(ContentDelta("a"))
        assert not recorder.finished
        recorder.emit(RunFinished(RunEnd.COMPLETED))
        assert recorder.finished
        recorder.emit(ContentDelta("late"))
        recorder.emit(RunFinished(RunEnd.CANCELLED))
        await recorder.commit(Message.user("late"))
        assert [envelope.seq for envelope in envelopes] == [1, 2, 3, 4]
        assert [envelope.turn_id for envelope in envelopes] == [None, "t", "t", "t"]
        assert {envelope.run_id for envelope in envelopes} == {recorder.run_id}
        assert envelopes[-1].event == RunFinished(RunEnd.COMPLETED)
        assert recorder.history() == ()
        await about.journal_queue.close()
        assert len((await shaky.store.load(about.record.id)).journal) == 0  # the run is over on disk too


async def test_a_run_is_over_for_whoever_hears_of_its_end(tmp_path: Path) -> None:
    async with shaky_store(tmp_path) as shaky:
        about = writer(shaky)
        recorder = RunRecorder(about)
        states: list[bool] = []
        about.subscribe(None, lambda _: states.append(recorder.finished))
        recorder.emit(RunStarted("p"))
        recorder.emit(RunFinished(RunEnd.COMPLETED))
        assert states == [False, True]
        await about.journal_queue.close()


async def test_two_listeners_hear_the_same_and_one_that_fails_harms_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with shaky_store(tmp_path) as shaky:
        about = writer(shaky)
        changes: tuple[list[Any], list[Any]] = ([], [])
        events: tuple[list[Envelope], list[Envelope]] = ([], [])

        words = "what a message said"

        def fail(_: object) -> None:
            raise ValueError(words)

        about.subscribe(fail, fail)
        for position in (0, 1):
            about.subscribe(changes[position].extend, events[position].append)
        recorder = RunRecorder(about)
        recorder.emit(TurnStarted("t", "m", "model"))
        recorder.emit(ContentDelta("a"))
        assert changes[0] == changes[1] != []
        assert events[0] == events[1]
        assert len(events[0]) == 2
        assert caplog.text.count("a listener failed") == 3
        assert "ValueError" in caplog.text
        assert words not in caplog.text
        about.unsubscribe(fail)
        recorder.emit(ContentDelta("b"))
        assert caplog.text.count("a listener failed") == 3
        assert len(events[0]) == 3
        await about.journal_queue.close()


@pytest.mark.parametrize("kind", [SystemExit, GeneratorExit, KeyboardInterrupt, asyncio.CancelledError])
async def test_a_listener_that_raises_anything_ends_no_run_and_silences_nobody(
    tmp_path: Path, kind: type[BaseException]
) -> None:
    def fail(_: object) -> None:
        raise kind

    async with shaky_store(tmp_path) as shaky:
        stage = Stage(shaky, Turn(call("1", "look")), Turn(ContentDelta("done")), tools=(tool("look", read_only=True),))
        changes: list[Any] = []
        envelopes: list[Envelope] = []
        session = stage.session
        session.subscribe(fail, fail)
        session.subscribe(changes.extend, envelopes.append)
        await stage.say()
        assert [envelope.event for envelope in envelopes if isinstance(envelope.event, RunFinished)] == [
            RunFinished(RunEnd.COMPLETED)
        ]
        assert [envelope.seq for envelope in envelopes] == list(range(1, len(envelopes) + 1))
        assert changes
        assert (await stage.stored())[-1].text == "done"
        await session.close()


async def test_what_listeners_do_to_what_they_hear_reaches_neither_the_call_nor_the_disk_nor_the_model(
    tmp_path: Path,
) -> None:
    ran: list[str] = []

    async def work(word: str) -> str:
        ran.append(word)
        return word

    def vandal(envelope: Envelope) -> None:
        event: Any = envelope.event
        for name in ("input", "metadata", "effective_input", "details"):
            for value in (getattr(event, name, None), getattr(getattr(event, "result", None), name, None)):
                if isinstance(value, dict):
                    value.clear()
                    value["word"] = "vandal"

    def thief(news: Any) -> None:
        with suppress(AttributeError, TypeError):
            news.clear()

    async with shaky_store(tmp_path) as shaky:
        stage = Stage(shaky, Turn(call("1", "act", "kept")), Turn(ContentDelta("done")), tools=(tool("act", work),))
        session, changes = stage.session, list[Any]()
        session.subscribe(thief, vandal)
        session.subscribe(changes.extend)
        session.send(Message.user("go"))
        await stage.until(lambda: session.approvals.open_approvals)
        assert session.approvals.open_approvals[0].input == {"word": "kept"}
        session.approvals.answer(session.approvals.open_approvals[0].approval_id, AllowOnce())
        await stage.idle()
        assert ran == ["kept"]
        assert changes
        for messages in (session.history, await stage.stored(), stage.provider.requests[-1].messages):
            (use,) = [use for message in messages for use in message.tool_uses]
            assert (use.input, use.metadata) == ({"word": "kept"}, {})
        assert [item.input for item in session.transcript if isinstance(item, ToolCallItem)] == [{"word": "kept"}]
        await session.close()


async def test_the_journal_has_what_was_said_and_not_what_a_listener_made_of_it(tmp_path: Path) -> None:
    async with shaky_store(tmp_path) as shaky:
        about = writer(shaky)

        def vandal(envelope: Envelope) -> None:
            if isinstance(envelope.event, ToolStarted):
                envelope.event.input["word"] = "vandal"

        about.subscribe(None, vandal)
        await about.commit(Message.user("p"))
        RunRecorder(about).emit(ToolStarted("1", {"word": "kept"}))
        await about.flush()
        (row,) = (await shaky.store.load(about.record.id)).journal
        assert row.event == ToolStarted("1", {"word": "kept"})
        await about.journal_queue.close()


async def test_of_prompts_that_were_shown_nothing_piles_up(tmp_path: Path) -> None:
    async with shaky_store(tmp_path) as shaky:
        about = writer(shaky)
        shown, steered = Message.user("shown"), Message.user("steered")
        about.show(shown)
        await about.commit(shown)
        await about.commit(steered)
        texts = [item.text for item in about.transcript if isinstance(item, UserItem)]
        assert texts == ["shown", "steered"]
        sizes = _sizes(about)
        for _ in range(50):
            handed_back = Message.user("handed back")
            about.show(handed_back)
            about.emit_between_runs(UserMessageReturned(handed_back.id, "why"))
        assert _sizes(about) == sizes
        await about.journal_queue.close()


def _sizes(about: SessionWriter) -> dict[str, int]:
    return {name: len(value) for name, value in vars(about).items() if isinstance(value, set | dict | list)}


async def test_one_who_left_hears_nothing(tmp_path: Path) -> None:
    async with shaky_store(tmp_path) as shaky:
        about = writer(shaky)
        events: list[Any] = []
        about.subscribe(events.append, events.append)
        about.unsubscribe(events.append)
        about.show(Message.user("p"))
        RunRecorder(about).emit(RunStarted("p"))
        assert events == []
        await about.journal_queue.close()


async def test_messages_are_remembered_even_when_the_disk_refuses(tmp_path: Path) -> None:
    async with shaky_store(tmp_path) as shaky:
        about = writer(shaky)
        shaky.refuse = DISK
        await about.commit(Message.user("kept"))
        assert [message.text for message in about.history()] == ["kept"]
        with pytest.raises(StorageFailed):
            await about.flush()
        notices = [item for item in about.transcript if isinstance(item, NoticeItem)]
        assert [(str(notice.sentence), notice.level) for notice in notices] == [("the disk refuses", "error")]
        shaky.refuse = None
        await about.journal_queue.close()
        assert [message.text for message in (await shaky.store.load(about.record.id)).messages] == ["kept"]


async def test_trouble_in_the_middle_of_an_answer_does_not_split_it(tmp_path: Path) -> None:
    async with shaky_store(tmp_path) as shaky:
        about = writer(shaky)
        recorder = RunRecorder(about)
        recorder.emit(TurnStarted("t", "m", "model"))
        recorder.emit(ContentDelta("one "))
        shaky.refuse = DISK
        with pytest.raises(StorageFailed):
            await recorder.flush()
        recorder.emit(ContentDelta("two"))
        recorder.emit(RunFinished(RunEnd.COMPLETED))
        answers = [item for item in about.transcript if isinstance(item, AnswerItem)]
        assert [(str(item.text), item.finished) for item in answers] == [("one two", True)]
        shaky.refuse = None
        await about.journal_queue.close()


async def test_a_call_that_was_being_written_goes_when_the_request_is_sent_again(tmp_path: Path) -> None:
    async with shaky_store(tmp_path) as shaky:
        about = writer(shaky)
        changes: list[Any] = []
        about.subscribe(changes.extend, None)
        recorder = RunRecorder(about)
        recorder.emit(TurnStarted("t", "m", "model"))
        recorder.emit(ToolArgsDelta("1", "look", '{"wor'))
        recorder.emit(RetryScheduled(0.1, "It broke."))
        assert [type(item) for item in about.transcript] == [NoticeItem]
        assert changes == [Added(0), Removed(0, 1), Added(0)]
        recorder.emit(ToolArgsDelta("1", "look", '{"word'))
        assert [str(item.arguments) for item in about.transcript if hasattr(item, "arguments")] == ['{"word']
        recorder.emit(RunFinished(RunEnd.FAILED))
        await about.journal_queue.close()


async def test_usage_is_that_of_the_last_answer(tmp_path: Path) -> None:
    async with shaky_store(tmp_path) as shaky:
        earlier = Message.assistant("a").model_copy(update={"usage": Usage(total_tokens=5)})
        about = writer(shaky, Message.user("p"), earlier, Message.user("q"))
        assert about.usage == Usage(total_tokens=5)
        RunRecorder(about).emit(UsageUpdate(Usage(total_tokens=9)))
        assert about.usage == Usage(total_tokens=9)
        await about.journal_queue.close()


async def test_usage_of_a_summary_is_not_that_of_an_answer(tmp_path: Path) -> None:
    async with shaky_store(tmp_path) as shaky:
        answer = Message.assistant("a").model_copy(update={"usage": Usage(total_tokens=5)})
        blocks = (Summary(text="S", first_kept_id=answer.id),)
        summary = Message(role=Role.SYSTEM, blocks=blocks, usage=Usage(total_tokens=90_000))
        about = writer(shaky, Message.user("p"), answer, summary)
        assert about.usage == Usage(total_tokens=5)
        await about.journal_queue.close()
