"""Recorders of resumed runs, and of the runs below a run."""

import gc
import weakref
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from desktop_agent.conversation.items import UserItem
from desktop_agent.engine.session_runs import RunRecorder
from desktop_agent.engine.session_writer import SessionWriter
from desktop_agent.storage.journal_queue import JournalQueue
from desktop_agent.types.engine_events import (
    CheckpointRestored,
    Envelope,
    ModeChanged,
    RunEnd,
    RunFinished,
    RunStarted,
    TurnStarted,
)
from desktop_agent.types.messages import Message
from desktop_agent.types.provider_events import ContentDelta, Usage, UsageUpdate
from tests.fakes.session import Shaky, record, shaky_store


class Desk:
    """A writer, and the envelopes that it sent."""

    def __init__(self, shaky: Shaky) -> None:
        self.shaky = shaky
        self.writer = SessionWriter(JournalQueue(shaky, record(), is_new=True))  # type: ignore[arg-type]
        self.heard: list[Envelope] = []
        self.writer.subscribe(None, self.heard.append)

    async def journal(self) -> tuple[Envelope, ...]:
        await self.writer.flush()
        return (await self.shaky.store.load(self.writer.record.id)).journal


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with shaky_store(tmp_path) as shaky:
        desk = Desk(shaky)
        yield desk
        await desk.writer.journal_queue.close()


async def test_a_run_that_is_gone_on_with_keeps_its_id_its_turn_and_its_count(desk: Desk) -> None:
    recorder = RunRecorder(desk.writer, "run", 7, "turn")
    recorder.emit(RunStarted("p", resumed=True))
    assert recorder.run_id == "run"
    assert [(envelope.seq, envelope.run_id, envelope.turn_id) for envelope in desk.heard] == [(8, "run", "turn")]


async def test_a_run_below_names_the_one_above_and_counts_for_itself(desk: Desk) -> None:
    above = RunRecorder(desk.writer)
    above.emit(RunStarted("p"))
    below = above.nested()
    further = below.nested()
    below.emit(RunStarted("q", agent="finder"))
    below.emit(TurnStarted("t", "m", "model"))
    further.emit(RunStarted("r", agent="reader"))
    above.emit(RunFinished(RunEnd.COMPLETED))
    parents = {envelope.run_id: envelope.parent_run_id for envelope in desk.heard}
    assert parents == {above.run_id: None, below.run_id: above.run_id, further.run_id: below.run_id}
    assert above.run_ids == (above.run_id, below.run_id, further.run_id)
    for run_id in parents:
        own = [envelope for envelope in desk.heard if envelope.run_id == run_id]
        assert [envelope.seq for envelope in own] == list(range(1, len(own) + 1))
        assert [isinstance(envelope.event, RunFinished) for envelope in own] == [False] * (len(own) - 1) + [True]


async def test_no_run_below_outlasts_the_one_above(desk: Desk) -> None:
    above = RunRecorder(desk.writer)
    below = above.nested()
    below.emit(RunStarted("q"))
    above.emit(RunFinished(RunEnd.CANCELLED))
    assert [type(envelope.event) for envelope in desk.heard[-2:]] == [RunFinished, RunFinished]
    assert desk.heard[-1].run_id == above.run_id
    count = len(desk.heard)
    below.emit(ContentDelta("late"))
    above.nested().emit(ContentDelta("later"))
    await below.commit(Message.user("late"))
    assert len(desk.heard) == count
    assert below.history() == ()


async def test_what_a_specialist_says_is_its_own(desk: Desk) -> None:
    above = RunRecorder(desk.writer)
    await above.commit(Message.user("ours"))
    below = above.nested()
    theirs = Message.user("theirs")
    await below.commit(theirs)
    below.emit(UsageUpdate(Usage(total_tokens=9)))
    assert below.history() == (theirs,)
    assert [message.text for message in above.history()] == ["ours"]
    assert desk.writer.usage is None
    assert [item.text for item in desk.writer.transcript if isinstance(item, UserItem)] == ["ours"]
    await desk.writer.flush()
    loaded = await desk.shaky.store.load(desk.writer.record.id)
    assert [message.text for message in loaded.messages] == ["ours"]


async def test_every_event_below_is_journalled_with_its_parent(desk: Desk) -> None:
    above = RunRecorder(desk.writer)
    above.emit(RunStarted("p"))
    below = above.nested()
    below.emit(RunStarted("q", agent="finder"))
    below.emit(ContentDelta("hm"))
    assert [(envelope.run_id, envelope.parent_run_id) for envelope in await desk.journal()] == [
        (above.run_id, None),
        (below.run_id, above.run_id),
        (below.run_id, above.run_id),
    ]


async def test_what_happens_between_runs_is_told_and_not_journalled(desk: Desk) -> None:
    desk.writer.emit_between_runs(ModeChanged("default", "plan", "person"))
    desk.writer.emit_between_runs(CheckpointRestored("c"))
    assert [(envelope.seq, envelope.run_id, envelope.turn_id) for envelope in desk.heard] == [(0, "", None)] * 2
    await desk.writer.flush()
    assert desk.shaky.asked == []


async def test_a_prompt_is_shown_once_and_one_of_the_runtimes_own_never(desk: Desk) -> None:
    shown, unseen = Message.user("shown"), Message.user("unseen")
    own = Message.user("go on").model_copy(update={"injected_by": "guard"})
    desk.writer.show(shown)
    await desk.writer.commit(shown, unseen, own)
    assert [item.text for item in desk.writer.transcript if isinstance(item, UserItem)] == ["shown", "unseen"]
    assert desk.writer.history() == (shown, unseen, own)


async def test_a_run_below_that_has_ended_is_not_held(desk: Desk) -> None:
    above = RunRecorder(desk.writer)
    above.emit(RunStarted("p"))
    below = above.nested()
    further = below.nested()
    ids = (above.run_id, below.run_id, further.run_id)
    await further.commit(Message.user("theirs"))
    references = (weakref.ref(below), weakref.ref(further))
    below.emit(RunFinished(RunEnd.COMPLETED))
    below.emit(RunFinished(RunEnd.COMPLETED))
    del below, further
    gc.collect()
    assert [reference() for reference in references] == [None, None]
    assert above.run_ids == ids
    above.emit(RunFinished(RunEnd.COMPLETED))
    assert [envelope.run_id for envelope in desk.heard if isinstance(envelope.event, RunFinished)] == [
        ids[2],
        ids[1],
        ids[0],
    ]
