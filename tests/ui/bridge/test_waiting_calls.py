"""The calls that wait for the person, of all conversations."""

import asyncio
import shutil

import pytest

from desktop_agent.types.errors import StorageFailed
from desktop_agent.types.messages import Message
from desktop_agent.types.provider_events import ContentDelta
from desktop_agent.types.tool_calls import AllowOnce, Deny
from tests.fakes.agent_run import call
from tests.fakes.qt_loop import Bridge, Heard, until
from tests.fakes.scripted_provider import Turn
from ui.bridge.side_conversation import SideConversation

DONE = Turn(ContentDelta("Done"))


def write(id_, path):
    return call(id_, "write_file").model_copy(update={"input": {"path": path, "content": "Hello"}})


def run(in_loop, folder, work, *turns):
    async def whole():
        bridge = await Bridge.open(folder, *turns)
        try:
            await work(bridge)
        finally:
            await bridge.close()

    in_loop(whole())


def subjects(bridge):
    return [row.subject for row in bridge.library.waiting.rows]


async def ask(bridge, folder, title, *, in_memory=False, count=1):
    """Begin a conversation whose calls wait; return its session."""
    folder.mkdir(exist_ok=True)
    bridge.library.new(in_memory=in_memory)
    conversation = bridge.library.current
    conversation.change(title=title, title_is_automatic=False, workspace=str(folder))
    conversation.send(Message.user("Write"))
    session = bridge.engine._sessions[conversation.id]
    await until(lambda: len(session.approvals.open_approvals) == count)
    return session


def test_the_calls_of_several_conversations_wait_together_until_each_is_decided(in_loop, tmp_path):
    async def work(bridge):
        waiting = bridge.library.waiting
        first = await ask(bridge, tmp_path / "work", "Boats", count=2)
        second = await ask(bridge, tmp_path / "work", "Trees")
        rows = waiting.rows
        assert [(row.conversation_id, row.title, row.tool, row.subject) for row in rows] == [
            (first.record.id, "Boats", "write_file", "a.txt"),
            (first.record.id, "Boats", "write_file", "b.txt"),
            (second.record.id, "Trees", "write_file", "c.txt"),
        ]
        assert waiting.count == 3
        assert [row.since for row in rows] == sorted(row.since for row in rows)
        first.approvals.answer(rows[0].approval_id, AllowOnce())
        await until(lambda: subjects(bridge) == ["b.txt", "c.txt"])
        second.interrupt()
        await until(lambda: subjects(bridge) == ["b.txt"])
        first.approvals.answer(rows[1].approval_id, Deny())
        await until(lambda: waiting.count == 0)
        await until(lambda: not first.working)

    turns = Turn(write("1", "a.txt"), write("2", "b.txt")), Turn(write("3", "c.txt")), DONE
    run(in_loop, tmp_path / "data", work, *turns)


@pytest.mark.parametrize("in_memory", [False, True])
def test_the_calls_of_a_conversation_that_is_deleted_or_closed_wait_no_longer(in_loop, tmp_path, in_memory):
    async def work(bridge):
        session = await ask(bridge, tmp_path / "work", "Boats", in_memory=in_memory)
        assert bridge.library.waiting.count == 1
        bridge.library.new()
        if in_memory:
            bridge.library.close_unstored(session.record.id)
        else:
            bridge.library.delete(session.record.id)
        await until(lambda: bridge.library.waiting.count == 0)
        await bridge.idle()

    run(in_loop, tmp_path / "data", work, Turn(write("1", "a.txt")))


def test_what_a_dead_process_left_waits_until_it_is_decided_here(in_loop, tmp_path):
    left_folder = tmp_path / "left"

    async def leave(bridge):
        session = await ask(bridge, tmp_path / "work", "Boats")
        (row,) = bridge.library.waiting.rows
        await session.flush()
        # What a process has written that dies now.
        shutil.copytree(tmp_path / "data", left_folder)
        rows.append(row)

    async def find(bridge):
        waiting = bridge.library.waiting
        changes = Heard(waiting.interrupted_changed)
        waiting.find_interrupted()
        await bridge.idle()
        assert waiting.rows == tuple(rows)
        # A decision here needs the conversation at work.
        assert waiting.live_calls == {}
        assert waiting.details(rows[0].approval_id) is None
        bridge.library.open(rows[0].conversation_id)
        await until(lambda: waiting.live_calls == {rows[0].approval_id: rows[0].conversation_id})
        assert changes == [(rows[0].conversation_id, True), (rows[0].conversation_id, False)]
        # It is the same call, and waits since then.
        assert waiting.rows == tuple(rows)
        waiting.answer(rows[0].approval_id, Deny())
        await until(lambda: waiting.count == 0)
        waiting.answer(rows[0].approval_id, Deny())
        await until(lambda: not bridge.library.current.working)

    async def delete(bridge):
        waiting = bridge.library.waiting
        waiting.find_interrupted()
        await bridge.idle()
        assert waiting.count == 1
        bridge.library.delete(rows[0].conversation_id)
        await bridge.idle()
        assert waiting.count == 0

    rows = []
    run(in_loop, tmp_path / "data", leave, Turn(write("1", "a.txt")))
    shutil.copytree(left_folder, tmp_path / "again")
    run(in_loop, left_folder, find, DONE)
    run(in_loop, tmp_path / "again", delete)


def test_opened_without_a_look_before_it_waits_since_the_same_moment(in_loop, tmp_path):
    async def leave(bridge):
        session = await ask(bridge, tmp_path / "work", "Boats")
        rows.extend(bridge.library.waiting.rows)
        await session.flush()
        shutil.copytree(tmp_path / "data", tmp_path / "left")

    async def find(bridge):
        bridge.library.open(rows[0].conversation_id)
        await until(lambda: bridge.library.waiting.count)
        assert bridge.library.waiting.rows == tuple(rows)
        bridge.library.current.stop()
        await until(lambda: bridge.library.waiting.count == 0)

    rows = []
    run(in_loop, tmp_path / "data", leave, Turn(write("1", "a.txt")))
    run(in_loop, tmp_path / "left", find)


def test_a_conversation_opens_where_its_times_cannot_be_read(in_loop, tmp_path, monkeypatch):
    async def find(bridge):
        async def fail():
            raise StorageFailed("The disk is tired.")

        monkeypatch.setattr(bridge.engine.store, "find_interrupted_runs", fail)
        bridge.library.open(left_call.conversation_id)
        await until(lambda: bridge.library.waiting.count)
        (row,) = bridge.library.waiting.rows
        assert row.since > left_call.since
        bridge.library.current.stop()
        await until(lambda: bridge.library.waiting.count == 0)

    (left_call,) = leave_a_call(in_loop, tmp_path)
    run(in_loop, tmp_path / "left", find)


def leave_a_call(in_loop, tmp_path):
    """Leave a call as a process does that dies now; return its row. The data folder is `left`."""
    rows = []

    async def leave(bridge):
        session = await ask(bridge, tmp_path / "work", "Boats")
        rows.extend(bridge.library.waiting.rows)
        await session.flush()
        shutil.copytree(tmp_path / "data", tmp_path / "left")

    run(in_loop, tmp_path / "data", leave, Turn(write("1", "a.txt")))
    return rows


def test_a_conversation_that_is_open_but_not_resumed_waits_still(in_loop, tmp_path):
    rows = leave_a_call(in_loop, tmp_path)

    async def find(bridge):
        waiting = bridge.library.waiting
        waiting.find_interrupted()
        await bridge.idle()
        # As when it is renamed, or another one is chosen while it loads.
        session = await bridge.engine.session(rows[0].conversation_id, whole=False)
        waiting.find_interrupted()
        await bridge.idle()
        assert session.can_resume
        assert waiting.rows == tuple(rows)
        bridge.library.open(rows[0].conversation_id)
        await until(lambda: waiting.live_calls)
        waiting.find_interrupted()
        await bridge.idle()
        assert waiting.rows == tuple(rows)
        bridge.library.current.stop()
        await until(lambda: waiting.count == 0)

    run(in_loop, tmp_path / "left", find)


def test_a_call_that_is_resumed_in_a_window_beside_is_listed_once(in_loop, tmp_path):
    rows = leave_a_call(in_loop, tmp_path)

    async def find(bridge):
        waiting = bridge.library.waiting
        bridge.library.new()
        waiting.find_interrupted()
        await bridge.idle()
        assert waiting.count == 1
        beside = SideConversation(bridge.library, bridge.engine, bridge.clock, bridge.tasks)
        beside.open(rows[0].conversation_id)
        await until(lambda: waiting.live_calls)
        assert waiting.count == 1
        assert waiting.rows == tuple(rows)
        beside.current.stop()
        await until(lambda: waiting.count == 0)
        beside.close()

    run(in_loop, tmp_path / "left", find)


def test_a_call_that_is_resumed_while_it_is_looked_for_is_listed_once(in_loop, tmp_path):
    rows = leave_a_call(in_loop, tmp_path)

    async def find(bridge):
        waiting, find_interrupted = bridge.library.waiting, bridge.engine.interrupted_conversations
        has_looked, resumed = asyncio.Event(), asyncio.Event()

        async def find_late():
            conversations = await find_interrupted()
            has_looked.set()
            await resumed.wait()
            return conversations

        bridge.engine.interrupted_conversations = find_late
        waiting.find_interrupted()
        await has_looked.wait()
        bridge.library.open(rows[0].conversation_id)
        await until(lambda: waiting.live_calls)
        resumed.set()
        await bridge.idle()
        assert waiting.rows == tuple(rows)
        bridge.library.current.stop()
        await until(lambda: waiting.count == 0)

    run(in_loop, tmp_path / "left", find)
