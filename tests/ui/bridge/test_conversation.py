"""A session as the screens see it."""

import asyncio
from types import SimpleNamespace

import pytest
import shiboken6

from desktop_agent.conversation.items import Added, AnswerItem, Prepended, Removed, Updated
from desktop_agent.storage.records import ConversationState
from desktop_agent.types.engine_events import ApprovalRequested, RunEnd, RunFinished, RunStarted
from desktop_agent.types.messages import Message
from desktop_agent.types.provider_events import ContentDelta, Usage, UsageUpdate
from desktop_agent.types.tool_calls import AllowOnce, DiffPreview, TextPreview
from tests.fakes.agent_run import call
from tests.fakes.qt_loop import Bridge, Heard, prompts, until
from tests.fakes.scripted_provider import Turn, Wait
from ui.bridge.conversation import ConversationHistory, OpenConversation


class Silent:
    """A session that reports what the test passes to `tell`."""

    history = ()
    history_loader = SimpleNamespace(unloaded_count=0)
    record = SimpleNamespace(state=ConversationState())

    def subscribe(self, on_changes, on_event, *, pieces):
        self.tell = on_changes

    def unsubscribe(self, listener):
        self.tell = None


def test_what_titles_and_specialists_used_before_is_part_of_the_sum():
    session = Silent()
    session.record = SimpleNamespace(
        state=ConversationState(title_usage=Usage(cost=0.25), specialist_usage=Usage(cost=0.5))
    )
    assert ConversationHistory(session).spending.total.cost == 0.75


class Ticks:
    """A clock that a test advances by hand."""

    def __init__(self, clock):
        self.clock = clock
        self.asked = 0

    def request(self):
        self.asked += 1

    @property
    def tick(self):
        return self.clock.tick


@pytest.fixture
def by_hand(qtbot):
    from ui.bridge.event_loop import FrameClock

    clock = FrameClock()
    session, ticks = Silent(), Ticks(clock)
    conversation = OpenConversation(session, ticks)
    yield session, ticks, conversation, Heard(conversation.changed)
    conversation.deleteLater()
    clock.deleteLater()


def test_the_changes_of_a_frame_come_together(by_hand):
    session, ticks, _, groups = by_hand
    session.tell([Added(0)])
    session.tell([Updated(0, "text")])
    session.tell([Updated(0, "text"), Updated(0, "state"), Updated(1, "text")])
    session.tell([Updated(0, "text")])
    assert groups == []
    assert ticks.asked == 4
    ticks.tick.emit()
    assert groups == [[Added(0), Updated(0, "text"), Updated(0, "state"), Updated(1, "text")]]
    ticks.tick.emit()
    assert len(groups) == 1
    session.tell([Updated(0, "text")])
    ticks.tick.emit()
    assert groups[1:] == [[Updated(0, "text")]]


@pytest.mark.parametrize("change", [Added(1), Removed(1, 1)])
def test_updates_are_never_joined_across_a_change_of_places(by_hand, change):
    session, ticks, _, groups = by_hand
    session.tell([Updated(0, "text"), Updated(0, "text")])
    session.tell([change])
    session.tell([Updated(0, "text"), Updated(0, "text")])
    ticks.tick.emit()
    assert groups == [[Updated(0, "text"), change, Updated(0, "text")]]


def test_earlier_items_are_told_of_at_once(by_hand):
    session, _, _, groups = by_hand
    session.tell([Updated(0, "text")])
    session.tell([Prepended(2)])
    assert groups == [[Updated(0, "text"), Prepended(2)]]


def test_one_who_is_detached_is_silent(by_hand):
    session, ticks, conversation, groups = by_hand
    session.tell([Added(0)])
    conversation.detach()
    ticks.tick.emit()
    assert groups == []
    assert session.tell is None


def test_what_was_used_is_told_to_nobody_where_another_conversation_was_shown_meanwhile(by_hand, monkeypatch):
    _, ticks, *_ = by_hand
    conversation = OpenConversation(Silent(), ticks)
    used = Heard(conversation.usage_changed)

    async def counted():
        conversation.detach()
        shiboken6.delete(conversation)

    monkeypatch.setattr(conversation.history, "count_usage", counted)
    asyncio.run(conversation.count_usage())
    assert used == []


def test_a_run_is_told_from_its_start_to_its_end(in_loop, tmp_path):
    async def work():
        usage = UsageUpdate(Usage(total_tokens=5))
        bridge = await Bridge.open(tmp_path, Turn(ContentDelta("Hel"), ContentDelta("lo"), usage), Turn())
        bridge.library.new()
        conversation = bridge.library.current
        working, finished = Heard(conversation.working_changed), Heard(conversation.finished)
        used, changed = Heard(conversation.usage_changed), Heard(conversation.changed)
        all_changes = []
        conversation.finished.connect(lambda: all_changes.extend(change for group in changed for change in group))
        assert (conversation.is_empty, conversation.working, prompts(conversation)) == (True, False, [])
        conversation.send(Message.user("Say hello"))
        assert working == [True]
        assert conversation.working
        assert not conversation.is_empty
        await until(lambda: finished)
        assert working[-1] is False
        assert not conversation.working
        assert len(used) == 1
        assert conversation.usage == Usage(total_tokens=5)
        # What was said last is on the screen before the end is told.
        assert all_changes[-1] == Updated(1, "state")
        assert [str(item.text) for item in conversation.transcript if isinstance(item, AnswerItem)] == ["Hello"]
        assert (conversation.title, prompts(conversation)) == ("Say hello", ["Say hello"])
        await bridge.close()

    in_loop(work())


def test_the_next_prompt_can_be_sent_when_the_end_is_told(in_loop, tmp_path):
    async def work():
        bridge = await Bridge.open(tmp_path, Turn(), Turn())
        bridge.library.new()
        conversation = bridge.library.current
        conversation.finished.connect(
            lambda: conversation.send(Message.user("second")) if len(bridge.provider.requests) == 1 else None
        )
        conversation.send(Message.user("first"))
        await until(lambda: len(bridge.provider.requests) == 2 and not conversation.working)
        assert [item.text for item in conversation.transcript] == ["first", "second"]
        await bridge.close()

    in_loop(work())


def test_stop_ends_the_run(in_loop, tmp_path):
    async def work():
        wait = Wait(asyncio.Event(), asyncio.Event())
        bridge = await Bridge.open(tmp_path, Turn(ContentDelta("half"), wait))
        bridge.library.new()
        conversation = bridge.library.current
        finished = Heard(conversation.finished)
        conversation.send(Message.user("p"))
        await wait.reached.wait()
        conversation.stop()
        await until(lambda: finished)
        assert conversation.transcript[1].interrupted
        await bridge.close()

    in_loop(work())


def test_waiting_calls_are_shown_previewed_and_answered(in_loop, tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()

    async def work():
        write = call("1", "write_file").model_copy(update={"input": {"path": "a.txt", "content": "new"}})
        bridge = await Bridge.open(tmp_path / "data", Turn(write), Turn(ContentDelta("done")))
        bridge.library.new()
        conversation = bridge.library.current
        conversation.change(workspace=str(folder))
        approval_changes, finished = Heard(conversation.approvals_changed), Heard(conversation.finished)
        conversation.send(Message.user("p"))
        await until(conversation.approvals.waiting)
        assert approval_changes
        (waiting,) = conversation.approvals.waiting()
        assert waiting.tool == "write_file"
        assert waiting.preview == DiffPreview("a.txt", None, "new")
        assert waiting.validate({"path": 1}) is not None
        assert waiting.validate({"path": "b.txt", "content": ""}) is None
        preview = await conversation.approvals.preview(waiting.approval_id, {"path": "b.txt", "content": "x"})
        assert preview == DiffPreview("b.txt", None, "x")
        outside = await conversation.approvals.preview(waiting.approval_id, {"path": "../b.txt", "content": "x"})
        assert isinstance(outside, TextPreview)
        assert await conversation.approvals.preview("nobody", {}) is None
        conversation.approvals.answer(waiting.approval_id, AllowOnce())
        assert conversation.approvals.waiting() == ()
        await until(lambda: finished)
        assert (folder / "a.txt").read_text() == "new"
        await bridge.close()

    in_loop(work())


def test_a_message_that_goes_back_is_there_to_be_taken_up_again(in_loop, tmp_path):
    async def work():
        wait = Wait(asyncio.Event(), asyncio.Event())
        bridge = await Bridge.open(tmp_path, Turn(ContentDelta("half"), wait))
        bridge.library.new()
        conversation = bridge.library.current
        returned, finished = Heard(conversation.returned), Heard(conversation.finished)
        conversation.send(Message.user("p"))
        await wait.reached.wait()
        later = Message.user("later")
        bridge.engine._sessions[conversation.id].steer(later)
        conversation.stop()
        await until(lambda: finished and returned)
        assert returned == [later]
        await bridge.close()

    in_loop(work())


def test_what_a_specialist_does_neither_begins_nor_ends_anything(in_loop, tmp_path):
    async def work():
        wait = Wait(asyncio.Event(), asyncio.Event())
        bridge = await Bridge.open(tmp_path, Turn(ContentDelta("half"), wait))
        bridge.library.new()
        conversation = bridge.library.current
        conversation.send(Message.user("p"))
        await wait.reached.wait()
        working, finished = Heard(conversation.working_changed), Heard(conversation.finished)
        used, approval_changes = Heard(conversation.usage_changed), Heard(conversation.approvals_changed)
        nested = bridge.engine._sessions[conversation.id]._active_run.recorder.nested()
        nested.emit(RunStarted("q", agent="finder"))
        nested.emit(UsageUpdate(Usage(total_tokens=5)))
        nested.emit(ApprovalRequested("a", "1", "d"))
        nested.emit(RunFinished(RunEnd.COMPLETED))
        assert (working, finished, used) == ([], [], [])
        assert len(approval_changes) == 1
        wait.until.set()
        await until(lambda: finished)
        await bridge.close()

    in_loop(work())
