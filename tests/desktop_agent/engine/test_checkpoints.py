"""Restoring as a session offers it: one call, all since a message, after a crash, never while a run is under way."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from pathlib import Path

import pytest

from desktop_agent.engine.checkpoints import Checkpoints
from desktop_agent.storage.store import Store
from desktop_agent.tools.checkpoints.restore import remove_interrupted_leftovers
from desktop_agent.tools.workspace import Workspace
from desktop_agent.types.blocks import ToolResult
from desktop_agent.types.checkpoints import Checkpoint
from desktop_agent.types.engine_events import CheckpointRestored, Envelope, ToolCallPending, ToolFinished, ToolStarted
from desktop_agent.types.errors import WrongUse
from desktop_agent.types.messages import Message, now
from desktop_agent.types.tool_calls import ToolClass
from tests.desktop_agent.engine.restoring import restore_one, restore_since


class Desk:
    """A conversation over a folder, with a list of its events."""

    def __init__(self, store: Store, conversation_id: str, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.messages: list[Message] = [Message.user("go on")]
        self.events: list[CheckpointRestored] = []
        self.working = False
        self.checkpoints = Checkpoints(
            store,
            conversation_id,
            history=lambda: self.messages,
            refuse=self._refuse,
            emit=self.events.append,
        )

    def _refuse(self) -> None:
        if self.working:
            raise WrongUse("The model is still working.")

    def say(self) -> Message:
        self.messages.append(Message.user("go on"))
        return self.messages[-1]

    async def write(self, name: str, text: str, message_id: str = "", caller: Message | None = None) -> Checkpoint:
        """Write a file as a call does. `caller`: the call is a specialist's, which this message called."""
        checkpointer = self.checkpoints.checkpointer(Workspace(self.folder))
        if caller is not None:
            checkpointer = checkpointer.nested(caller.id, "its call").nested("of a specialist", "below")
        checkpoint = await checkpointer.create_checkpoint("call", message_id or self.messages[-1].id, (name,))
        assert checkpoint is not None
        (self.folder / name).write_text(text)
        return await checkpointer.complete_checkpoint(checkpoint)

    def texts(self) -> dict[str, str]:
        return {path.name: path.read_text() for path in self.folder.iterdir()}


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = await Store.open(tmp_path / "data")
    yield store
    await store.close()


@pytest.fixture
async def desk(store: Store, tmp_path: Path) -> Desk:
    return Desk(store, (await store.create_conversation(title="t")).id, tmp_path / "work")


async def test_one_call_is_taken_back_and_told(desk: Desk) -> None:
    first, second = await desk.write("a", "1"), await desk.write("b", "1")
    assert await desk.checkpoints.list() == (first, second)
    restored = await restore_one(desk.checkpoints, first.id)
    assert (restored.restored, desk.texts()) == (("a",), {"b": "1"})
    assert desk.events == [CheckpointRestored(first.id)]
    assert [checkpoint.restored for checkpoint in await desk.checkpoints.list()] == [True, False]


async def test_all_since_a_message_is_taken_back_newest_first(desk: Desk) -> None:
    await desk.write("a", "1")
    since = desk.say()
    second = await desk.write("a", "2")
    desk.say()
    third, fourth = await desk.write("a", "3"), await desk.write("b", "1")
    restored = await restore_since(desk.checkpoints, since.id)
    assert [result.checkpoint.id for result in restored] == [fourth.id, third.id, second.id]
    assert desk.texts() == {"a": "1"}
    assert await restore_since(desk.checkpoints, since.id) == ()
    assert [event.checkpoint_id for event in desk.events] == [fourth.id, third.id, second.id]


async def test_what_the_person_wrote_in_between_stays_and_is_told(desk: Desk) -> None:
    since = desk.messages[0]
    first = await desk.write("a", "1")
    (desk.folder / "a").write_text("mine")
    second = await desk.write("a", "2")
    restored = await restore_since(desk.checkpoints, since.id)
    assert desk.texts() == {"a": "mine"}
    assert [(result.restored, result.conflicts) for result in restored] == [(("a",), ()), ((), ("a",))]
    assert desk.events == [CheckpointRestored(second.id), CheckpointRestored(first.id, conflicts=("a",))]
    await restore_since(desk.checkpoints, since.id, ticked=True)
    assert desk.texts() == {}


async def test_calls_of_specialists_and_other_branches_count_by_time(desk: Desk) -> None:
    await desk.write("before", "1", message_id="of a specialist")
    since = desk.say()
    await desk.write("after", "1", message_id="of a specialist")
    await restore_since(desk.checkpoints, since.id)
    assert desk.texts() == {"before": "1"}


async def test_a_clock_that_was_set_back_changes_nothing_for_what_a_specialist_did(desk: Desk) -> None:
    before = desk.messages[-1]
    late = Message.user("go on")
    since = late.model_copy(update={"created_at": late.created_at + timedelta(days=1)})
    desk.messages.append(since)
    await desk.write("before", "1", message_id="of a specialist", caller=before)
    await desk.write("after", "1", message_id="of a specialist", caller=since)
    await restore_since(desk.checkpoints, since.id)
    assert desk.texts() == {"before": "1"}
    (redo,) = [checkpoint for checkpoint in await desk.checkpoints._all() if checkpoint.is_redo]
    assert redo.caller_message_id == since.id


async def test_a_clock_that_was_set_back_changes_nothing_for_the_messages_in_view(desk: Desk) -> None:
    await desk.write("before", "1")
    late = Message.user("go on")
    since = late.model_copy(update={"created_at": late.created_at + timedelta(days=1)})
    desk.messages.append(since)
    await desk.write("after", "1")
    await restore_since(desk.checkpoints, since.id)
    assert desk.texts() == {"before": "1"}


async def test_a_clock_that_was_set_back_hides_no_call_that_cannot_be_undone(desk: Desk, store: Store) -> None:
    late = Message.user("go on")
    since = late.model_copy(update={"created_at": late.created_at + timedelta(days=1)})
    desk.messages += [since, Message.assistant("I run it.")]
    ends = ToolFinished("1", ToolResult(tool_use_id="1"), 1.0)
    events = [ToolCallPending("1", "run_command", {"command": "make"}, ToolClass.MUTATING), ToolStarted("1", {}), ends]
    rows = [Envelope(number, "run", None, "turn", now(), event) for number, event in enumerate(events, 1)]
    (record,) = await store.list_conversations()
    await store.append_journal(record.id, rows)
    plan = await desk.checkpoints.preview_since(since.id)
    assert [calls.tool for calls in plan.irreversible] == ["run_command"]


async def test_what_is_not_there_is_wrong_use(desk: Desk) -> None:
    await desk.write("a", "1")
    with pytest.raises(WrongUse, match="no such checkpoint"):
        await restore_one(desk.checkpoints, "nothing")
    with pytest.raises(WrongUse, match="no such message"):
        await restore_since(desk.checkpoints, "nothing")


async def test_nothing_is_restored_while_a_run_is_under_way(desk: Desk) -> None:
    checkpoint = await desk.write("a", "1")
    desk.working = True
    with pytest.raises(WrongUse, match="still working"):
        await restore_one(desk.checkpoints, checkpoint.id)
    with pytest.raises(WrongUse, match="still working"):
        await restore_since(desk.checkpoints, desk.messages[0].id)
    assert (desk.texts(), desk.events) == ({"a": "1"}, [])


async def test_a_conversation_that_was_not_written_yet_has_no_checkpoints(store: Store, tmp_path: Path) -> None:
    desk = Desk(store, "not yet", tmp_path / "work")
    assert await desk.checkpoints.list() == ()
    assert await restore_since(desk.checkpoints, desk.messages[0].id) == ()
    with pytest.raises(WrongUse):
        await desk.write("a", "1")
    assert desk.texts() == {}


async def test_a_folder_that_is_gone_is_said_and_other_folders_are_restored(desk: Desk, tmp_path: Path) -> None:
    first_checkpoint = await desk.write("a", "1")
    first = desk.folder
    desk.folder = tmp_path / "second"
    desk.folder.mkdir()
    await desk.write("b", "1")
    shutil.rmtree(first)
    restored = await restore_since(desk.checkpoints, desk.messages[0].id)
    assert [(result.restored, result.failed) for result in restored] == [(("b",), ()), ((), ("a",))]
    assert "There is no folder" in str(restored[1].skipped[0].why)
    assert desk.events[-1] == CheckpointRestored(first_checkpoint.id, failed=("a",))
    assert (desk.texts(), first.exists()) == ({}, False)


async def test_a_folder_that_is_a_link_to_another_now_is_left_alone(desk: Desk, tmp_path: Path) -> None:
    checkpoint = await desk.write("a", "1")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/a").write_text("1")
    shutil.rmtree(desk.folder)
    desk.folder.symlink_to(tmp_path / "other")
    restored = await restore_one(desk.checkpoints, checkpoint.id, ticked=True)
    assert restored.failed == ("a",)
    assert (tmp_path / "other/a").read_text() == "1"


CALL = """
import asyncio, sys, time
from pathlib import Path
from desktop_agent.engine.checkpoints import Checkpoints
from desktop_agent.storage.store import Store
from desktop_agent.tools.workspace import Workspace

async def main():
    data, work, conversation = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    store = await Store.open(data)
    checkpoints = Checkpoints(store, conversation, history=lambda: (), refuse=lambda: None, emit=print)
    checkpointer = checkpoints.checkpointer(Workspace(work))
    await checkpointer.create_checkpoint("call", "message", ("touched", "untouched", "new"))
    (work / "touched").write_text("half")
    print("in the middle", flush=True)
    time.sleep(60)

asyncio.run(main())
"""


async def test_a_program_killed_in_the_middle_of_a_call_leaves_a_checkpoint_that_asks(
    store: Store, desk: Desk, tmp_path: Path
) -> None:
    for name in ("touched", "untouched"):
        (desk.folder / name).write_text("old")
    conversation_id = (await store.list_conversations())[0].id
    await store.close()
    kill_in_the_middle(str(tmp_path / "data"), str(desk.folder), conversation_id)

    reopened = await Store.open(tmp_path / "data")
    after = Desk(reopened, conversation_id, desk.folder)
    (checkpoint,) = await after.checkpoints.list()
    assert [file.after for file in checkpoint.files] == [None, None, None]
    restored = await restore_one(after.checkpoints, checkpoint.id)
    assert (restored.conflicts, restored.restored) == (("touched",), ())
    assert after.texts() == {"touched": "half", "untouched": "old"}
    restored = await restore_one(after.checkpoints, checkpoint.id, ticked=True)
    assert (restored.skipped, restored.restored) == ((), ("touched",))
    assert after.texts() == {"touched": "old", "untouched": "old"}
    await reopened.close()


def kill_in_the_middle(*arguments: str) -> None:
    child = subprocess.Popen([sys.executable, "-c", CALL, *arguments], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        assert child.stdout.readline().strip() == "in the middle"
        os.kill(child.pid, signal.SIGKILL)
    finally:
        child.kill()
        child.wait()
        if child.stdout:
            child.stdout.close()


async def test_a_restoring_waits_until_what_others_left_behind_is_swept_and_a_run_does_not(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint, begun, go_on = await desk.write("a", "1"), threading.Event(), threading.Event()

    def slow(every: Sequence[Checkpoint]) -> None:
        begun.set()
        assert go_on.wait(30)
        remove_interrupted_leftovers(every)

    monkeypatch.setattr("desktop_agent.engine.checkpoints.remove_interrupted_leftovers", slow)
    showing = asyncio.ensure_future(desk.checkpoints.publish_saved_calls())
    assert await asyncio.to_thread(begun.wait, 30)
    desk.checkpoints.refuse_while_restoring()
    restoring = asyncio.ensure_future(restore_one(desk.checkpoints, checkpoint.id))
    await asyncio.wait([restoring], timeout=0.3)
    assert desk.texts() == {"a": "1"}
    go_on.set()
    await asyncio.gather(showing, restoring)
    assert desk.texts() == {}
