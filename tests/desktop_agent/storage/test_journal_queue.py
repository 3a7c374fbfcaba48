"""The journal queue writes in order, again after a failure, and never twice."""

import asyncio
import shutil
import sqlite3
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop_agent.storage import conversation_rows
from desktop_agent.storage.journal_queue import JournalQueue
from desktop_agent.storage.locks.conversation_locks import ConversationLocks
from desktop_agent.storage.records import ConversationState
from desktop_agent.storage.store import Store
from desktop_agent.storage.write_behind import FLUSH_INTERVAL
from desktop_agent.types.engine_events import Envelope, RunEnd, RunFinished, RunStarted, ToolProgress, TurnStarted
from desktop_agent.types.errors import StorageFailed, WrittenElsewhere, WrongUse
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.permissions import Rule, RuleEffect
from desktop_agent.types.policies import QueuedMessage
from desktop_agent.types.provider_events import ContentDelta, ThinkingDelta, ToolArgsDelta
from tests.fakes.session import DISK, Shaky, envelope, record, shaky_store
from tests.frame.another_loop import raised_on_another_loop
from tests.frame.examples import examples
from tests.frame.patience import PATIENCE


class QueueHarness:
    """A journal queue over a shaky store, and the trouble that it reported."""

    def __init__(self, shaky: Shaky) -> None:
        self.shaky = shaky
        self.trouble: list[StorageFailed | None] = []
        self.journal_queue = JournalQueue(shaky, record(), is_new=True)  # type: ignore[arg-type]
        self.journal_queue.on_trouble(self.trouble.append)

    async def journal(self) -> tuple[Envelope, ...]:
        return (await self.shaky.store.load(self.journal_queue.record.id)).journal

    async def messages(self) -> list[str]:
        return [message.text for message in (await self.shaky.store.load(self.journal_queue.record.id)).messages]


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[QueueHarness]:
    async with shaky_store(tmp_path) as shaky:
        harness = QueueHarness(shaky)
        yield harness
        await harness.journal_queue.close()


async def text_of(harness: QueueHarness) -> str:
    return "".join(row.event.text for row in await harness.journal() if isinstance(row.event, ContentDelta))


def test_streamed_text_is_written_at_least_twice_a_second() -> None:
    assert FLUSH_INTERVAL <= 0.5


async def test_what_is_noted_is_written_by_itself(harness: QueueHarness) -> None:
    harness.journal_queue.add_event(envelope(1, ContentDelta("a")))
    assert harness.journal_queue.is_new
    async with asyncio.timeout(PATIENCE):
        while harness.journal_queue.is_new or not await harness.journal():
            await asyncio.sleep(0.01)
    assert await text_of(harness) == "a"


async def test_pieces_of_different_phases_stay_apart(harness: QueueHarness) -> None:
    events = [ContentDelta("a", "commentary"), ContentDelta("b", "commentary"), ContentDelta("c"), ContentDelta("d")]
    for number, event in enumerate(events, 1):
        harness.journal_queue.add_event(envelope(number, event))
    await harness.journal_queue.flush()
    assert [row.event for row in await harness.journal()] == [ContentDelta("ab", "commentary"), ContentDelta("cd")]


async def test_writes_keep_their_order(harness: QueueHarness) -> None:
    harness.journal_queue.add_event(envelope(1, RunStarted("p")))
    await harness.journal_queue.commit(Message.user("one"))
    harness.journal_queue.add_event(envelope(2, ContentDelta("x")))
    harness.journal_queue.change_record(title="named")
    await harness.journal_queue.commit(Message.assistant("two"))
    await harness.journal_queue.finish_run("run")
    # Events queued just before messages are written together with them.
    writes = ["create_conversation", "commit", "append_journal", "update_conversation"]
    assert harness.shaky.asked == [*writes, "commit", "finish_run"]
    assert await harness.messages() == ["one", "two"]
    assert [row.event for row in await harness.journal()] == [RunStarted("p")]


def refuse_some_rows(harness: QueueHarness) -> None:
    """Make every write fail that includes a row with the text “no row”."""
    append_journal = harness.shaky.store.append_journal

    async def append_or_refuse(conversation_id: str, envelopes: Sequence[Envelope]) -> None:
        if any(row.event == ContentDelta("no row") for row in envelopes):
            raise TypeError("no such column")
        await append_journal(conversation_id, envelopes)

    async def commit_or_refuse(conversation_id: str, *messages: Message, envelopes: Sequence[Envelope] = ()) -> Any:
        await append_or_refuse(conversation_id, envelopes)
        return await Store.commit(harness.shaky.store, conversation_id, *messages)

    harness.shaky.store.append_journal = append_or_refuse  # type: ignore[method-assign]
    harness.shaky.store.commit = commit_or_refuse  # type: ignore[method-assign]


async def test_a_row_that_can_never_be_written_does_not_take_the_messages_behind_it_along(
    harness: QueueHarness,
) -> None:
    refuse_some_rows(harness)
    harness.journal_queue.add_event(envelope(1, ContentDelta("a")))
    await harness.journal_queue.commit(Message.user("p"))
    harness.journal_queue.add_event(envelope(2, ContentDelta("no row")))
    await harness.journal_queue.commit(Message.user("q"))
    assert [trouble is None for trouble in harness.trouble] == [False]
    assert await harness.messages() == ["p", "q"]
    assert harness.journal_queue.is_flushed
    harness.journal_queue.add_event(envelope(3, ContentDelta("b")))
    with pytest.raises(StorageFailed, match="TypeError"):
        await harness.journal_queue.flush()
    assert await text_of(harness) == "ab"


async def test_two_rows_that_can_never_be_written_leave_nothing_behind_at_the_end(harness: QueueHarness) -> None:
    refuse_some_rows(harness)
    harness.shaky.refuse = DISK
    for number, text in enumerate(("p", "q"), 1):
        harness.journal_queue.add_event(envelope(number, ContentDelta("no row")))
        await harness.journal_queue.commit(Message.user(text))
    harness.shaky.refuse = None
    await harness.journal_queue.close()
    assert harness.journal_queue.is_flushed
    assert await harness.messages() == ["p", "q"]


async def test_flush_raises_for_what_was_lost_before_the_last_write(harness: QueueHarness) -> None:
    refuse_some_rows(harness)
    await harness.journal_queue.commit(Message.user("p"))
    harness.journal_queue.add_event(envelope(1, ContentDelta("no row")))
    harness.journal_queue.change_record(title="named")
    with pytest.raises(StorageFailed, match="TypeError"):
        await harness.journal_queue.flush()
    assert (await harness.shaky.store.load(harness.journal_queue.record.id)).record.title == "named"


async def test_the_next_flush_raises_for_what_was_lost_in_the_background(harness: QueueHarness) -> None:
    refuse_some_rows(harness)
    await harness.journal_queue.commit(Message.user("p"))
    harness.journal_queue.add_event(envelope(1, ContentDelta("no row")))
    await harness.journal_queue.write_all()
    assert harness.journal_queue.is_flushed
    with pytest.raises(StorageFailed, match="TypeError"):
        await harness.journal_queue.flush()
    await harness.journal_queue.flush()


async def test_neighbouring_pieces_are_joined_and_others_are_not(harness: QueueHarness) -> None:
    journal_queue = harness.journal_queue
    first, second = envelope(1, ThinkingDelta("a")), envelope(2, ThinkingDelta("b"))
    journal_queue.add_event(first)
    journal_queue.add_event(second)
    journal_queue.add_event(envelope(3, ContentDelta("c")))
    journal_queue.add_event(envelope(4, ContentDelta("d")))
    journal_queue.add_event(envelope(5, ContentDelta("e"), turn_id="other"))
    journal_queue.add_event(envelope(6, ToolArgsDelta("1", "look", "{")))
    journal_queue.add_event(envelope(7, ToolArgsDelta("1", None, "}")))
    journal_queue.add_event(envelope(8, ToolArgsDelta("2", "look", "{}")))
    journal_queue.add_event(envelope(9, ToolProgress("1", "x")))
    journal_queue.add_event(envelope(10, ToolProgress("2", "y")))
    for number, name in enumerate((None, "late", None), 11):
        journal_queue.add_event(envelope(number, ToolArgsDelta("3", name, str(number))))
    await journal_queue.flush()
    rows = await harness.journal()
    assert [(row.seq, row.event) for row in rows] == [
        (2, ThinkingDelta("ab")),
        (4, ContentDelta("cd")),
        (5, ContentDelta("e")),
        (7, ToolArgsDelta("1", "look", "{}")),
        (8, ToolArgsDelta("2", "look", "{}")),
        (9, ToolProgress("1", "x")),
        (10, ToolProgress("2", "y")),
        (13, ToolArgsDelta("3", "late", "111213")),
    ]
    assert rows[0].at == first.at  # thinking time counts from its first piece


async def test_what_the_disk_refused_is_written_later_once(harness: QueueHarness) -> None:
    harness.shaky.refuse = DISK
    harness.journal_queue.add_event(envelope(1, ContentDelta("a")))
    with pytest.raises(StorageFailed):
        await harness.journal_queue.flush()
    await harness.journal_queue.commit(Message.user("one"))  # told, not raised
    harness.journal_queue.add_event(envelope(2, ContentDelta("b")))
    with pytest.raises(StorageFailed):
        await harness.journal_queue.flush()
    assert harness.trouble == [DISK]
    harness.shaky.refuse = None
    await harness.journal_queue.commit(Message.user("two"))
    assert harness.trouble == [DISK, None]
    assert await harness.messages() == ["one", "two"]
    assert await text_of(harness) == "ab"
    await harness.journal_queue.flush()
    assert harness.trouble == [DISK, None]


async def test_notes_that_come_while_a_write_fails_stay_behind_it(harness: QueueHarness) -> None:
    await harness.journal_queue.commit(Message.user("p"))
    harness.shaky.gate = asyncio.Event()
    harness.journal_queue.add_event(envelope(1, ContentDelta("a")))
    writing = asyncio.create_task(harness.journal_queue.flush())
    await harness.shaky.reached.wait()
    harness.journal_queue.add_event(envelope(2, ContentDelta("b")))
    harness.shaky.refuse = DISK
    harness.shaky.gate.set()
    with pytest.raises(StorageFailed):
        await writing
    harness.shaky.refuse = harness.shaky.gate = None
    harness.journal_queue.add_event(envelope(3, ContentDelta("c")))
    await harness.journal_queue.flush()
    assert await text_of(harness) == "abc"
    assert [row.seq for row in await harness.journal()] in ([1, 3], [3])


async def test_a_cancelled_caller_leaves_the_write_whole(harness: QueueHarness) -> None:
    await harness.journal_queue.commit(Message.user("p"))
    harness.shaky.late_gate = asyncio.Event()
    harness.journal_queue.add_event(envelope(1, ContentDelta("a")))
    writing = asyncio.create_task(harness.journal_queue.flush())
    await harness.shaky.reached.wait()
    writing.cancel()
    await asyncio.gather(writing, return_exceptions=True)
    assert writing.cancelled()
    harness.journal_queue.add_event(envelope(2, ContentDelta("b")))
    harness.shaky.late_gate.set()
    await harness.journal_queue.flush()
    assert [(row.seq, row.event) for row in await harness.journal()] == [(1, ContentDelta("a")), (2, ContentDelta("b"))]


async def test_close_waits_for_the_write_under_way_and_writes_the_rest(harness: QueueHarness) -> None:
    harness.shaky.gate = asyncio.Event()
    committing = asyncio.create_task(harness.journal_queue.commit(Message.user("one")))
    await harness.shaky.reached.wait()
    closing = asyncio.create_task(harness.journal_queue.close())
    await asyncio.sleep(0.01)
    assert not closing.done()
    harness.shaky.gate.set()
    await closing
    assert await harness.messages() == ["one"]
    await committing


async def test_what_can_never_be_written_does_not_hold_up_the_rest(
    harness: QueueHarness, caplog: pytest.LogCaptureFixture
) -> None:
    await harness.journal_queue.commit(Message.user("p"))
    harness.shaky.refuse = TypeError("no such column")
    harness.journal_queue.add_event(envelope(1, ContentDelta("a")))
    with pytest.raises(StorageFailed, match="TypeError"):
        await harness.journal_queue.flush()
    harness.shaky.refuse = None
    await harness.journal_queue.commit(Message.user("q"))
    assert await harness.messages() == ["p", "q"]
    # No end of the trouble is reported, as something is lost.
    assert [trouble is None for trouble in harness.trouble] == [False]
    assert "could not be written" in caplog.text


async def test_what_changes_while_the_conversation_is_being_made_is_kept(harness: QueueHarness) -> None:
    harness.shaky.gate = asyncio.Event()
    committing = asyncio.create_task(harness.journal_queue.commit(Message.user("one")))
    await harness.shaky.reached.wait()
    harness.journal_queue.change_record(model="another", title="named", title_is_automatic=False)
    harness.shaky.gate.set()
    await committing
    stored = (await harness.shaky.store.load(harness.journal_queue.record.id)).record
    assert (stored.model, stored.title, stored.title_is_automatic) == ("another", "named", False)


async def test_a_change_to_a_kept_conversation_is_written_by_itself(harness: QueueHarness) -> None:
    await harness.journal_queue.commit(Message.user("one"))
    harness.journal_queue.add_event(envelope(1, ContentDelta("a")))  # its timer must not outlive the flush
    harness.journal_queue.change_record(workspace="/w")
    async with asyncio.timeout(PATIENCE):
        while (await harness.shaky.store.load(harness.journal_queue.record.id)).record.workspace != "/w":
            await asyncio.sleep(0.005)


async def test_a_timer_that_finds_a_write_under_way_looks_again(
    harness: QueueHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("desktop_agent.storage.write_behind.FLUSH_INTERVAL", 0.01)
    await harness.journal_queue.commit(Message.user("one"))
    may_end = asyncio.Event()

    async def wait_to_end() -> None:
        await may_end.wait()

    harness.journal_queue._flushing = asyncio.create_task(wait_to_end())
    harness.journal_queue.add_event(envelope(1, ContentDelta("a")))
    await asyncio.sleep(0.05)
    may_end.set()
    async with asyncio.timeout(PATIENCE):
        while not await harness.journal():
            await asyncio.sleep(0.005)


_steps = st.lists(
    st.one_of(
        st.tuples(st.just("text"), st.text(max_size=3)),
        st.tuples(st.just("think"), st.text(max_size=3)),
        st.tuples(st.just("refuse"), st.booleans()),
        st.tuples(st.just("settle"), st.none()),
        st.tuples(st.just("commit"), st.text(max_size=3)),
        st.tuples(st.just("turn"), st.none()),
    ),
    max_size=25,
)


@settings(max_examples=examples(40), deadline=None)
@given(_steps)
def test_nothing_is_lost_doubled_or_moved(tmp_path_factory: pytest.TempPathFactory, steps: list[Any]) -> None:
    async def play() -> None:
        async with shaky_store(tmp_path_factory.mktemp("ledger")) as shaky:
            harness = QueueHarness(shaky)
            expected: dict[tuple[str, str], str] = {}
            committed: list[str] = []
            turn = "0"
            for seq, (kind, value) in enumerate(steps, 1):
                match kind:
                    case "text" | "think":
                        event = ContentDelta(value) if kind == "text" else ThinkingDelta(value)
                        harness.journal_queue.add_event(envelope(seq, event, turn_id=turn))
                        expected[kind, turn] = expected.get((kind, turn), "") + value
                    case "refuse":
                        shaky.refuse = DISK if value else None
                    case "settle":
                        await asyncio.gather(harness.journal_queue.flush(), return_exceptions=True)
                    case "commit":
                        await harness.journal_queue.commit(Message.user(value))
                        committed.append(value)
                    case _:
                        turn = str(seq)
                        harness.journal_queue.add_event(envelope(seq, TurnStarted(turn, "m", "m"), turn_id=turn))
            shaky.refuse = None
            harness.journal_queue.add_event(envelope(len(steps) + 1, RunStarted("end")))
            await harness.journal_queue.close()
            stored: dict[tuple[str, str], str] = {}
            rows = await harness.journal()
            assert [row.seq for row in rows] == sorted({row.seq for row in rows})
            for row in rows:
                if isinstance(row.event, ContentDelta | ThinkingDelta):
                    key = ("text" if isinstance(row.event, ContentDelta) else "think", row.turn_id or "")
                    stored[key] = stored.get(key, "") + row.event.text
            assert stored == expected
            assert await harness.messages() == committed

    asyncio.run(play())


@pytest.mark.parametrize("soon", [False, True])
async def test_a_finished_run_leaves_no_pieces_behind(harness: QueueHarness, *, soon: bool) -> None:
    harness.journal_queue.add_event(envelope(1, RunStarted("p")))
    harness.journal_queue.add_event(envelope(2, ContentDelta("a")))
    await harness.journal_queue.flush()
    if soon:
        harness.journal_queue.finish_run_soon("run")
        await harness.journal_queue.flush()
    else:
        await harness.journal_queue.finish_run("run")
    assert [row.event for row in await harness.journal()] == [RunStarted("p")]
    harness.journal_queue.add_event(envelope(3, RunFinished(RunEnd.COMPLETED)))
    await harness.journal_queue.flush()
    assert await harness.journal() == ()


@pytest.mark.parametrize("lost", [Message.assistant("ab"), Message.user("ab")], ids=["answer", "prompt"])
async def test_the_pieces_of_an_answer_that_can_never_be_written_outlast_their_run(
    harness: QueueHarness, lost: Message
) -> None:
    commit = harness.shaky.store.commit

    async def commit_or_refuse(conversation_id: str, *messages: Message, **more: Any) -> Any:
        if lost in messages:
            raise ValueError("never")
        return await commit(conversation_id, *messages, **more)

    harness.shaky.store.commit = commit_or_refuse  # type: ignore[method-assign]
    harness.journal_queue.add_event(envelope(1, RunStarted("p")))
    harness.journal_queue.add_event(envelope(2, ContentDelta("ab")))
    await harness.journal_queue.commit(lost)
    harness.journal_queue.add_event(envelope(3, RunFinished(RunEnd.COMPLETED)))
    await harness.journal_queue.finish_run("run")
    pieces = [RunStarted("p"), ContentDelta("ab")] if lost.role is Role.ASSISTANT else []
    assert [row.event for row in await harness.journal()] == pieces


async def test_what_the_disk_refused_can_be_read_with_its_reason(harness: QueueHarness) -> None:
    journal_queue = harness.journal_queue
    journal_queue.add_event(envelope(1, RunStarted("p")))
    assert journal_queue.unwritten is None  # it is on its way
    harness.shaky.refuse = DISK
    await journal_queue.commit(Message.user("one"))
    for number, event in enumerate((ContentDelta("a"), ContentDelta("b"), ThinkingDelta("c")), 2):
        journal_queue.add_event(envelope(number, event))
    journal_queue.change_record(title="named")
    journal_queue.add_event(envelope(5, ContentDelta("d")))
    assert journal_queue.unwritten is not None
    rows, reason = journal_queue.unwritten
    assert [(row.seq, row.event) for row in rows] == [
        (1, RunStarted("p")),
        (3, ContentDelta("ab")),
        (4, ThinkingDelta("c")),
        (5, ContentDelta("d")),
    ]
    assert reason is DISK
    harness.shaky.refuse = None
    await journal_queue.flush()
    assert journal_queue.unwritten is None
    assert await text_of(harness) == "abd"
    harness.shaky.refuse = TypeError("no such column")
    await journal_queue.commit(Message.user("two"))
    assert journal_queue.unwritten is not None
    rows, reason = journal_queue.unwritten
    assert (rows, "TypeError" in str(reason)) == ((), True)


async def test_a_conversation_is_created_once_though_the_disk_refuses_what_comes_next(harness: QueueHarness) -> None:
    async def refuse() -> None:
        harness.shaky.refuse = DISK

    harness.shaky.after = refuse
    await harness.journal_queue.commit(Message.user("one"))
    assert not harness.journal_queue.is_new
    assert await harness.messages() == []
    harness.shaky.refuse = harness.shaky.after = None
    await harness.journal_queue.flush()
    assert await harness.messages() == ["one"]
    assert harness.shaky.asked == ["create_conversation", "commit", "commit"]


async def test_a_conversation_that_a_stopped_loop_had_created_is_written_on_another(harness: QueueHarness) -> None:
    await harness.shaky.store.create_conversation(id_=harness.journal_queue.record.id, title="t")
    harness.journal_queue.add_messages(Message.user("one"))
    assert raised_on_another_loop(harness.journal_queue.write_at_once) is None
    assert not harness.journal_queue.is_new
    harness.journal_queue.save_rule(Rule(effect=RuleEffect.DENY, tool="x"))
    await harness.journal_queue.commit(Message.user("two"))
    assert await harness.messages() == ["one", "two"]
    assert harness.trouble == []


WAITING = ConversationState(queue=(QueuedMessage(message=Message.user("waits")),))


@pytest.mark.parametrize(("state", "begins"), [(ConversationState(mode="plan"), False), (WAITING, True)])
async def test_a_change_begins_a_conversation_only_where_a_message_waits(
    harness: QueueHarness, state: ConversationState, *, begins: bool
) -> None:
    harness.journal_queue.change_record(state=state)
    await harness.journal_queue.flush()
    assert harness.journal_queue.is_new is not begins
    assert len(await harness.shaky.store.list_conversations()) == begins
    await harness.journal_queue.commit(Message.user("p"))
    assert (await harness.shaky.store.record(harness.journal_queue.record.id)).state == state


async def test_going_back_in_a_conversation_that_waits_to_be_created_is_kept(harness: QueueHarness) -> None:
    first, second = Message.user("one"), Message.assistant("two")
    harness.journal_queue.add_messages(first, second)
    harness.journal_queue.change_record(head_message_id=first.id)
    await harness.journal_queue.flush()
    assert await harness.messages() == ["one"]


async def test_a_conversation_in_memory_begins_with_its_first_message_and_writes_nothing() -> None:
    journal_queue = JournalQueue(None, record(), is_new=True)
    journal_queue.add_event(envelope(1, ContentDelta("a")))
    journal_queue.change_record(title="named", state=WAITING)
    journal_queue.save_rule(Rule(effect=RuleEffect.DENY, tool="x"))
    await journal_queue.commit()
    assert journal_queue.is_new
    journal_queue.add_messages(Message.user("p"))
    assert not journal_queue.is_new
    await journal_queue.commit()
    assert not journal_queue.is_new
    assert journal_queue.record.title == "named"
    assert journal_queue.is_flushed
    await journal_queue.flush()
    await journal_queue.close()
    assert journal_queue.unwritten is None
    with pytest.raises(WrongUse):
        await journal_queue.commit(Message.user("late"))


@pytest.mark.parametrize("refuses", [False, True])
async def test_the_lock_is_held_from_the_first_write_until_all_is_written(tmp_path: Path, *, refuses: bool) -> None:
    async with shaky_store(tmp_path) as shaky:
        new_record = record()
        lock, other = [ConversationLocks(tmp_path, "library").lock(new_record.id) for _ in range(2)]
        journal_queue = JournalQueue(shaky, new_record, is_new=True, lock=lock)  # type: ignore[arg-type]
        journal_queue.save_rule(Rule(effect=RuleEffect.DENY, tool="x"))
        await journal_queue.flush()
        assert await other.is_free()
        shaky.gate = asyncio.Event()
        committing = asyncio.create_task(journal_queue.commit(Message.user("p")))
        await shaky.reached.wait()
        # The lock is taken before the conversation is in the list.
        assert (await other.is_free(), await shaky.store.list_conversations()) == (False, ())
        shaky.gate.set()
        await committing
        await journal_queue.flush()
        assert not await other.is_free()
        shaky.refuse = DISK if refuses else None
        await journal_queue.commit(Message.user("q"))
        await journal_queue.close()
        assert await other.is_free() is not refuses
        shaky.refuse = None
        await journal_queue.flush()
        assert await other.is_free()


@pytest.mark.parametrize("writer", ["nobody", "itself", "itself, refused", "itself, going back", "another"])
async def test_where_its_lock_was_removed_it_writes_on_unless_another_has_written(tmp_path: Path, writer: str) -> None:
    async with shaky_store(tmp_path) as shaky:
        first, second, mine = Message.user("one"), Message.assistant("two"), Message.user("mine")
        id_ = (await shaky.store.create_conversation(title="t")).id
        await shaky.store.commit(id_, first, second)
        lock = await ConversationLocks(tmp_path, "library").acquire(id_)
        journal_queue = JournalQueue(shaky, await shaky.store.record(id_), is_new=False, lock=lock)  # type: ignore[arg-type]
        match writer:
            case "itself":
                await journal_queue.commit(mine)
            case "itself, refused":
                # It has reached the disk, and is written again.
                await shaky.store.commit(id_, mine)
                shaky.refuse = DISK
                await journal_queue.commit(mine)
            case "itself, going back":
                journal_queue.change_record(head_message_id=first.id)
                await journal_queue.flush()
            case "another":
                await shaky.store.commit(id_, Message.user("theirs"))
            case _:
                pass
        texts = [message.text for message in (await shaky.store.load(id_)).messages]
        assert "record" not in shaky.asked
        shutil.rmtree(tmp_path / "locks")
        # At first the disk does not tell who has written.
        shaky.refuse = DISK
        await journal_queue.commit(Message.user("late"))
        shaky.refuse = None
        await journal_queue.write_all()
        is_overtaken = writer == "another"
        assert isinstance(journal_queue.trouble, WrittenElsewhere) is is_overtaken
        assert [message.text for message in (await shaky.store.load(id_)).messages] == [
            *texts,
            *["late"][is_overtaken:],
        ]
        await journal_queue.write_all()
        if not is_overtaken:
            await journal_queue.commit(Message.user("later"))
        assert shaky.asked.count("record") == 2
        await journal_queue.close()


async def test_where_its_lock_was_removed_and_taken_by_another_it_writes_nothing_more(tmp_path: Path) -> None:
    async with shaky_store(tmp_path) as shaky:
        id_ = (await shaky.store.create_conversation(title="t")).id
        lock = await ConversationLocks(tmp_path, "library").acquire(id_)
        journal_queue = JournalQueue(shaky, await shaky.store.record(id_), is_new=False, lock=lock)  # type: ignore[arg-type]
        shutil.rmtree(tmp_path / "locks")
        other = await ConversationLocks(tmp_path, "library").acquire(id_)
        journal_queue.add_messages(Message.user("late"))
        with pytest.raises(WrittenElsewhere):
            await journal_queue.flush()
        assert (await shaky.store.load(id_)).messages == ()
        await journal_queue.close()
        await other.release()


async def test_what_comes_while_a_first_rule_is_written_is_written_too(tmp_path: Path) -> None:
    async with shaky_store(tmp_path) as shaky:
        journal_queue = JournalQueue(shaky, record(), is_new=True)  # type: ignore[arg-type]
        troubles: list[object] = []
        journal_queue.on_trouble(troubles.append)
        shaky.late_gate = asyncio.Event()
        journal_queue.save_rule(Rule(effect=RuleEffect.DENY, tool="x"))
        await shaky.reached.wait()
        journal_queue.add_event(envelope(1, ContentDelta("a")))
        journal_queue.add_messages(Message.user("my only words"))
        shaky.late_gate.set()
        await journal_queue.close()
        loaded = await shaky.store.load(journal_queue.record.id)
        assert [message.text for message in loaded.messages] == ["my only words"]
        assert len(loaded.journal) == 1
        assert troubles == []


async def test_a_rule_that_waits_begins_no_conversation(tmp_path: Path) -> None:
    async with shaky_store(tmp_path) as shaky:
        journal_queue = JournalQueue(shaky, record(), is_new=True)  # type: ignore[arg-type]
        journal_queue.save_rule(Rule(effect=RuleEffect.DENY, tool="x"))
        journal_queue.change_record(title="named")
        await journal_queue.close()
        assert await shaky.store.list_conversations() == ()
        assert len(await shaky.store.rules.all()) == 1


async def test_what_can_never_be_written_is_logged_without_its_words(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with shaky_store(tmp_path) as shaky:
        journal_queue = JournalQueue(shaky, record(), is_new=True)  # type: ignore[arg-type]
        await journal_queue.commit(Message.user("p"))
        shaky.refuse = ValueError("sk-secret")
        await journal_queue.commit(Message.user("q"))
        shaky.refuse = None
        await journal_queue.close()
    assert "ValueError" in caplog.text
    assert "sk-secret" not in caplog.text


async def test_a_conversation_that_cannot_be_read_when_it_was_made_is_kept_by_the_next_attempt(
    harness: QueueHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        refused = sqlite3.OperationalError("disk I/O error")
        refused.sqlite_errorcode = sqlite3.SQLITE_IOERR_READ
        raise refused

    with monkeypatch.context() as patch:
        patch.setattr(conversation_rows, "load_record", refuse)
        await harness.journal_queue.commit(Message.user("one"))
        assert harness.trouble != []
    await harness.journal_queue.flush()
    assert await harness.messages() == ["one"]
    assert harness.trouble[-1] is None
