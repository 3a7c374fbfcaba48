"""The ledger: in order, again after a failure, never twice."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop_agent.storage.journal_queue import JournalQueue
from desktop_agent.storage.store import Store
from desktop_agent.storage.write_behind import FLUSH_INTERVAL
from desktop_agent.types.engine_events import Envelope, RunEnd, RunFinished, RunStarted, ToolProgress, TurnStarted
from desktop_agent.types.errors import StorageFailed
from desktop_agent.types.messages import Message
from desktop_agent.types.permissions import Rule, RuleEffect
from desktop_agent.types.provider_events import ContentDelta, ThinkingDelta, ToolArgsDelta
from tests.fakes.session import DISK, Shaky, envelope, record, shaky_store
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


async def test_a_finished_run_leaves_no_pieces_behind(kept: Kept) -> None:
    kept.journal_queue.add_event(envelope(1, ContentDelta("a")))
    kept.journal_queue.add_event(envelope(2, RunFinished(RunEnd.COMPLETED)))
    await kept.journal_queue.finish_run("run")
    assert await kept.journal() == ()


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
