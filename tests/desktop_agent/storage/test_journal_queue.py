"""The ledger: in order, again after a failure, never twice."""

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


class Kept:
    """A ledger over a shaky store, and what it said about trouble."""

    def __init__(self, shaky: Shaky) -> None:
        self.shaky = shaky
        self.trouble: list[StorageFailed | None] = []
        self.journal_queue = JournalQueue(shaky, record(), is_new=True)  # type: ignore[arg-type]
        self.journal_queue.on_trouble(self.trouble.append)

    async def journal(self) -> tuple[Envelope, ...]:
        return (await self.shaky.store.load(self.journal_queue.record.id)).journal

    async def messages(self) -> list[str]:
        return [each.text for each in (await self.shaky.store.load(self.journal_queue.record.id)).messages]


@pytest.fixture
async def kept(tmp_path: Path) -> AsyncIterator[Kept]:
    async with shaky_store(tmp_path) as shaky:
        kept = Kept(shaky)
        yield kept
        await kept.journal_queue.close()


async def text_of(kept: Kept) -> str:
    return "".join(each.event.text for each in await kept.journal() if isinstance(each.event, ContentDelta))


def test_streamed_text_is_written_at_least_twice_a_second() -> None:
    assert FLUSH_INTERVAL <= 0.5


async def test_what_is_noted_is_written_by_itself(kept: Kept) -> None:
    kept.journal_queue.add_event(envelope(1, ContentDelta("a")))
    assert kept.journal_queue.is_new
    async with asyncio.timeout(PATIENCE):
        while kept.journal_queue.is_new or not await kept.journal():
            await asyncio.sleep(0.01)
    assert await text_of(kept) == "a"


async def test_pieces_of_different_phases_stay_apart(kept: Kept) -> None:
    given = [ContentDelta("a", "commentary"), ContentDelta("b", "commentary"), ContentDelta("c"), ContentDelta("d")]
    for number, event in enumerate(given, 1):
        kept.journal_queue.add_event(envelope(number, event))
    await kept.journal_queue.flush()
    assert [each.event for each in await kept.journal()] == [ContentDelta("ab", "commentary"), ContentDelta("cd")]


async def test_writes_keep_their_order(kept: Kept) -> None:
    kept.journal_queue.add_event(envelope(1, RunStarted("p")))
    await kept.journal_queue.commit(Message.user("one"))
    kept.journal_queue.add_event(envelope(2, ContentDelta("x")))
    kept.journal_queue.change_record(title="named")
    await kept.journal_queue.commit(Message.assistant("two"))
    await kept.journal_queue.finish_run("run")
    # What was journalled just before messages goes to the disk with them.
    writes = ["create_conversation", "commit", "append_journal", "update_conversation"]
    assert kept.shaky.asked == [*writes, "commit", "finish_run"]
    assert await kept.messages() == ["one", "two"]
    assert [each.event for each in await kept.journal()] == [RunStarted("p")]


def refuse_some_rows(kept: Kept) -> None:
    """Nothing goes to the disk together with such a row."""
    real = kept.shaky.store.append_journal

    async def refuses(conversation_id: str, envelopes: Sequence[Envelope]) -> None:
        if any(each.event == ContentDelta("no row") for each in envelopes):
            raise TypeError("no such column")
        await real(conversation_id, envelopes)

    async def commits(conversation_id: str, *messages: Message, envelopes: Sequence[Envelope] = ()) -> Any:
        await refuses(conversation_id, envelopes)
        return await Store.commit(kept.shaky.store, conversation_id, *messages)

    kept.shaky.store.append_journal = refuses  # type: ignore[method-assign]
    kept.shaky.store.commit = commits  # type: ignore[method-assign]


async def test_a_row_that_can_never_be_written_does_not_take_the_messages_behind_it_along(kept: Kept) -> None:
    refuse_some_rows(kept)
    kept.journal_queue.add_event(envelope(1, ContentDelta("a")))
    await kept.journal_queue.commit(Message.user("p"))
    kept.journal_queue.add_event(envelope(2, ContentDelta("no row")))
    await kept.journal_queue.commit(Message.user("q"))
    assert [each is None for each in kept.trouble] == [False]
    assert await kept.messages() == ["p", "q"]
    assert kept.journal_queue.is_flushed
    kept.journal_queue.add_event(envelope(3, ContentDelta("b")))
    with pytest.raises(StorageFailed, match="TypeError"):
        await kept.journal_queue.flush()
    assert await text_of(kept) == "ab"


async def test_two_rows_that_can_never_be_written_leave_nothing_behind_at_the_end(kept: Kept) -> None:
    refuse_some_rows(kept)
    kept.shaky.refuse = DISK
    for number, words in enumerate(("p", "q"), 1):
        kept.journal_queue.add_event(envelope(number, ContentDelta("no row")))
        await kept.journal_queue.commit(Message.user(words))
    kept.shaky.refuse = None
    await kept.journal_queue.close()
    assert kept.journal_queue.is_flushed
    assert await kept.messages() == ["p", "q"]


async def test_who_waits_hears_of_what_was_lost_before_the_last_write(kept: Kept) -> None:
    refuse_some_rows(kept)
    await kept.journal_queue.commit(Message.user("p"))
    kept.journal_queue.add_event(envelope(1, ContentDelta("no row")))
    kept.journal_queue.change_record(title="named")
    with pytest.raises(StorageFailed, match="TypeError"):
        await kept.journal_queue.flush()
    assert (await kept.shaky.store.load(kept.journal_queue.record.id)).record.title == "named"


async def test_what_was_lost_in_the_background_is_heard_by_who_asks_next(kept: Kept) -> None:
    refuse_some_rows(kept)
    await kept.journal_queue.commit(Message.user("p"))
    kept.journal_queue.add_event(envelope(1, ContentDelta("no row")))
    await kept.journal_queue.write_all()
    assert kept.journal_queue.is_flushed
    with pytest.raises(StorageFailed, match="TypeError"):
        await kept.journal_queue.flush()
    await kept.journal_queue.flush()


async def test_neighbouring_pieces_are_joined_and_others_are_not(kept: Kept) -> None:
    journal_queue = kept.journal_queue
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
    rows = await kept.journal()
    assert [(each.seq, each.event) for each in rows] == [
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


async def test_what_the_disk_refused_is_written_later_once(kept: Kept) -> None:
    kept.shaky.refuse = DISK
    kept.journal_queue.add_event(envelope(1, ContentDelta("a")))
    with pytest.raises(StorageFailed):
        await kept.journal_queue.flush()
    await kept.journal_queue.commit(Message.user("one"))  # told, not raised
    kept.journal_queue.add_event(envelope(2, ContentDelta("b")))
    with pytest.raises(StorageFailed):
        await kept.journal_queue.flush()
    assert kept.trouble == [DISK]
    kept.shaky.refuse = None
    await kept.journal_queue.commit(Message.user("two"))
    assert kept.trouble == [DISK, None]
    assert await kept.messages() == ["one", "two"]
    assert await text_of(kept) == "ab"
    await kept.journal_queue.flush()
    assert kept.trouble == [DISK, None]


async def test_notes_that_come_while_a_write_fails_stay_behind_it(kept: Kept) -> None:
    await kept.journal_queue.commit(Message.user("p"))
    kept.shaky.gate = asyncio.Event()
    kept.journal_queue.add_event(envelope(1, ContentDelta("a")))
    writing = asyncio.create_task(kept.journal_queue.flush())
    await kept.shaky.reached.wait()
    kept.journal_queue.add_event(envelope(2, ContentDelta("b")))
    kept.shaky.refuse = DISK
    kept.shaky.gate.set()
    with pytest.raises(StorageFailed):
        await writing
    kept.shaky.refuse = kept.shaky.gate = None
    kept.journal_queue.add_event(envelope(3, ContentDelta("c")))
    await kept.journal_queue.flush()
    assert await text_of(kept) == "abc"
    assert [each.seq for each in await kept.journal()] in ([1, 3], [3])


async def test_a_cancelled_caller_leaves_the_write_whole(kept: Kept) -> None:
    await kept.journal_queue.commit(Message.user("p"))
    kept.shaky.late_gate = asyncio.Event()
    kept.journal_queue.add_event(envelope(1, ContentDelta("a")))
    writing = asyncio.create_task(kept.journal_queue.flush())
    await kept.shaky.reached.wait()
    writing.cancel()
    await asyncio.gather(writing, return_exceptions=True)
    assert writing.cancelled()
    kept.journal_queue.add_event(envelope(2, ContentDelta("b")))
    kept.shaky.late_gate.set()
    await kept.journal_queue.flush()
    assert [(each.seq, each.event) for each in await kept.journal()] == [(1, ContentDelta("a")), (2, ContentDelta("b"))]


async def test_close_waits_for_the_write_under_way_and_writes_the_rest(kept: Kept) -> None:
    kept.shaky.gate = asyncio.Event()
    committing = asyncio.create_task(kept.journal_queue.commit(Message.user("one")))
    await kept.shaky.reached.wait()
    closing = asyncio.create_task(kept.journal_queue.close())
    await asyncio.sleep(0.01)
    assert not closing.done()
    kept.shaky.gate.set()
    await closing
    assert await kept.messages() == ["one"]
    await committing


async def test_what_can_never_be_written_does_not_hold_up_the_rest(
    kept: Kept, caplog: pytest.LogCaptureFixture
) -> None:
    await kept.journal_queue.commit(Message.user("p"))
    kept.shaky.refuse = TypeError("no such column")
    kept.journal_queue.add_event(envelope(1, ContentDelta("a")))
    with pytest.raises(StorageFailed, match="TypeError"):
        await kept.journal_queue.flush()
    kept.shaky.refuse = None
    await kept.journal_queue.commit(Message.user("q"))
    assert await kept.messages() == ["p", "q"]
    # Nobody is told that all is well again: something is lost.
    assert [each is None for each in kept.trouble] == [False]
    assert "could not be written" in caplog.text


async def test_what_changes_while_the_conversation_is_being_made_is_kept(kept: Kept) -> None:
    kept.shaky.gate = asyncio.Event()
    committing = asyncio.create_task(kept.journal_queue.commit(Message.user("one")))
    await kept.shaky.reached.wait()
    kept.journal_queue.change_record(model="another", title="named", title_is_automatic=False)
    kept.shaky.gate.set()
    await committing
    stored = (await kept.shaky.store.load(kept.journal_queue.record.id)).record
    assert (stored.model, stored.title, stored.title_is_automatic) == ("another", "named", False)


async def test_a_change_to_a_kept_conversation_is_written_by_itself(kept: Kept) -> None:
    await kept.journal_queue.commit(Message.user("one"))
    kept.journal_queue.add_event(envelope(1, ContentDelta("a")))  # its timer must not outlive the flush
    kept.journal_queue.change_record(workspace="/w")
    async with asyncio.timeout(PATIENCE):
        while (await kept.shaky.store.load(kept.journal_queue.record.id)).record.workspace != "/w":
            await asyncio.sleep(0.005)


async def test_a_timer_that_finds_a_write_under_way_looks_again(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("desktop_agent.storage.write_behind.FLUSH_INTERVAL", 0.01)
    await kept.journal_queue.commit(Message.user("one"))
    waits = asyncio.Event()

    async def under_way() -> None:
        await waits.wait()

    kept.journal_queue._flushing = asyncio.create_task(under_way())
    kept.journal_queue.add_event(envelope(1, ContentDelta("a")))
    await asyncio.sleep(0.05)
    waits.set()
    async with asyncio.timeout(PATIENCE):
        while not await kept.journal():
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
            kept = Kept(shaky)
            said: dict[tuple[str, str], str] = {}
            committed: list[str] = []
            turn = "0"
            for seq, (what, value) in enumerate(steps, 1):
                match what:
                    case "text" | "think":
                        event = ContentDelta(value) if what == "text" else ThinkingDelta(value)
                        kept.journal_queue.add_event(envelope(seq, event, turn_id=turn))
                        said[what, turn] = said.get((what, turn), "") + value
                    case "refuse":
                        shaky.refuse = DISK if value else None
                    case "settle":
                        await asyncio.gather(kept.journal_queue.flush(), return_exceptions=True)
                    case "commit":
                        await kept.journal_queue.commit(Message.user(value))
                        committed.append(value)
                    case _:
                        turn = str(seq)
                        kept.journal_queue.add_event(envelope(seq, TurnStarted(turn, "m", "m"), turn_id=turn))
            shaky.refuse = None
            kept.journal_queue.add_event(envelope(len(steps) + 1, RunStarted("end")))
            await kept.journal_queue.close()
            found: dict[tuple[str, str], str] = {}
            rows = await kept.journal()
            assert [each.seq for each in rows] == sorted({each.seq for each in rows})
            for each in rows:
                if isinstance(each.event, ContentDelta | ThinkingDelta):
                    key = ("text" if isinstance(each.event, ContentDelta) else "think", each.turn_id or "")
                    found[key] = found.get(key, "") + each.event.text
            assert found == said
            assert await kept.messages() == committed

    asyncio.run(play())


@pytest.mark.parametrize("soon", [False, True])
async def test_a_finished_run_leaves_no_pieces_behind(kept: Kept, *, soon: bool) -> None:
    kept.journal_queue.add_event(envelope(1, RunStarted("p")))
    kept.journal_queue.add_event(envelope(2, ContentDelta("a")))
    await kept.journal_queue.flush()
    if soon:
        kept.journal_queue.finish_run_soon("run")
        await kept.journal_queue.flush()
    else:
        await kept.journal_queue.finish_run("run")
    assert [each.event for each in await kept.journal()] == [RunStarted("p")]
    kept.journal_queue.add_event(envelope(3, RunFinished(RunEnd.COMPLETED)))
    await kept.journal_queue.flush()
    assert await kept.journal() == ()


@pytest.mark.parametrize("lost", [Message.assistant("ab"), Message.user("ab")], ids=["answer", "prompt"])
async def test_the_pieces_of_an_answer_that_can_never_be_written_outlast_their_run(kept: Kept, lost: Message) -> None:
    real = kept.shaky.store.commit

    async def commits(conversation_id: str, *messages: Message, **more: Any) -> Any:
        if lost in messages:
            raise ValueError("never")
        return await real(conversation_id, *messages, **more)

    kept.shaky.store.commit = commits  # type: ignore[method-assign]
    kept.journal_queue.add_event(envelope(1, RunStarted("p")))
    kept.journal_queue.add_event(envelope(2, ContentDelta("ab")))
    await kept.journal_queue.commit(lost)
    kept.journal_queue.add_event(envelope(3, RunFinished(RunEnd.COMPLETED)))
    await kept.journal_queue.finish_run("run")
    pieces = [RunStarted("p"), ContentDelta("ab")] if lost.role is Role.ASSISTANT else []
    assert [each.event for each in await kept.journal()] == pieces


async def test_what_the_disk_refused_can_be_read_with_its_reason(kept: Kept) -> None:
    journal_queue = kept.journal_queue
    journal_queue.add_event(envelope(1, RunStarted("p")))
    assert journal_queue.unwritten is None  # it is on its way
    kept.shaky.refuse = DISK
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
    kept.shaky.refuse = None
    await journal_queue.flush()
    assert journal_queue.unwritten is None
    assert await text_of(kept) == "abd"
    kept.shaky.refuse = TypeError("no such column")
    await journal_queue.commit(Message.user("two"))
    assert journal_queue.unwritten is not None
    rows, reason = journal_queue.unwritten
    assert (rows, "TypeError" in str(reason)) == ((), True)


async def test_a_conversation_is_created_once_though_the_disk_refuses_what_comes_next(kept: Kept) -> None:
    async def refuse() -> None:
        kept.shaky.refuse = DISK

    kept.shaky.after = refuse
    await kept.journal_queue.commit(Message.user("one"))
    assert not kept.journal_queue.is_new
    assert await kept.messages() == []
    kept.shaky.refuse = kept.shaky.after = None
    await kept.journal_queue.flush()
    assert await kept.messages() == ["one"]
    assert kept.shaky.asked == ["create_conversation", "commit", "commit"]


async def test_a_conversation_that_a_stopped_loop_had_created_is_written_on_another(kept: Kept) -> None:
    await kept.shaky.store.create_conversation(id_=kept.journal_queue.record.id, title="t")
    kept.journal_queue.add_messages(Message.user("one"))
    assert raised_on_another_loop(kept.journal_queue.write_at_once) is None
    assert not kept.journal_queue.is_new
    kept.journal_queue.save_rule(Rule(effect=RuleEffect.DENY, tool="x"))
    await kept.journal_queue.commit(Message.user("two"))
    assert await kept.messages() == ["one", "two"]
    assert kept.trouble == []


WAITING = ConversationState(queue=(QueuedMessage(message=Message.user("waits")),))


@pytest.mark.parametrize(("state", "begins"), [(ConversationState(mode="plan"), False), (WAITING, True)])
async def test_a_change_begins_a_conversation_only_where_a_message_waits(
    kept: Kept, state: ConversationState, *, begins: bool
) -> None:
    kept.journal_queue.change_record(state=state)
    await kept.journal_queue.flush()
    assert kept.journal_queue.is_new is not begins
    assert len(await kept.shaky.store.list_conversations()) == begins
    await kept.journal_queue.commit(Message.user("p"))
    assert (await kept.shaky.store.record(kept.journal_queue.record.id)).state == state


async def test_going_back_in_a_conversation_that_waits_to_be_created_is_kept(kept: Kept) -> None:
    first, second = Message.user("one"), Message.assistant("two")
    kept.journal_queue.add_messages(first, second)
    kept.journal_queue.change_record(head_message_id=first.id)
    await kept.journal_queue.flush()
    assert await kept.messages() == ["one"]


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
        about = record()
        lock, other = [ConversationLocks(tmp_path, "library").lock(about.id) for _ in range(2)]
        journal_queue = JournalQueue(shaky, about, is_new=True, lock=lock)  # type: ignore[arg-type]
        journal_queue.save_rule(Rule(effect=RuleEffect.DENY, tool="x"))
        await journal_queue.flush()
        assert await other.is_free()
        shaky.gate = asyncio.Event()
        committing = asyncio.create_task(journal_queue.commit(Message.user("p")))
        await shaky.reached.wait()
        # Before anybody can find it in the list.
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
                # It has reached the disk, and is tried again.
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
        said = [each.text for each in (await shaky.store.load(id_)).messages]
        assert "record" not in shaky.asked
        shutil.rmtree(tmp_path / "locks")
        # At first it cannot be seen who has written.
        shaky.refuse = DISK
        await journal_queue.commit(Message.user("late"))
        shaky.refuse = None
        await journal_queue.write_all()
        is_overtaken = writer == "another"
        assert isinstance(journal_queue.trouble, WrittenElsewhere) is is_overtaken
        assert [each.text for each in (await shaky.store.load(id_)).messages] == [*said, *["late"][is_overtaken:]]
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
        assert [each.text for each in loaded.messages] == ["my only words"]
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
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        refused = sqlite3.OperationalError("disk I/O error")
        refused.sqlite_errorcode = sqlite3.SQLITE_IOERR_READ
        raise refused

    with monkeypatch.context() as patch:
        patch.setattr(conversation_rows, "load_record", refuse)
        await kept.journal_queue.commit(Message.user("one"))
        assert kept.trouble != []
    await kept.journal_queue.flush()
    assert await kept.messages() == ["one"]
    assert kept.trouble[-1] is None
