"""What a restoring overwrites or removes is saved first, and comes back by a redo; also after a crash."""

import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from desktop_agent.conversation.transcript_notices import is_undo_note
from desktop_agent.engine.checkpoints import RestoreListeners
from desktop_agent.storage.store import Store
from desktop_agent.tools.checkpoints import restore as restore_module
from desktop_agent.tools.checkpoints import restore_steps, snapshots
from desktop_agent.tools.checkpoints.checkpointer import RestoreReport
from desktop_agent.tools.workspace import Workspace
from desktop_agent.types.checkpoints import Checkpoint, CheckpointedCall
from desktop_agent.types.engine_events import CheckpointRestored
from desktop_agent.types.errors import DiskFull, StorageFailed, ToolFailed
from desktop_agent.types.messages import Message
from tests.desktop_agent.engine.restoring import restore, restore_one, restore_plan, restore_since
from tests.desktop_agent.engine.test_checkpoints import Desk
from tests.desktop_agent.engine.test_undo_forecast import call, change, effects_of


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = await Store.open(tmp_path / "data")
    yield store
    await store.close()


@pytest.fixture
async def desk(store: Store, tmp_path: Path) -> Desk:
    return Desk(store, (await store.create_conversation(title="t")).id, tmp_path / "work")


@pytest.fixture
def notes(desk: Desk) -> list[Message]:
    messages: list[Message] = []
    desk.checkpoints._listeners = RestoreListeners(on_note=messages.append)
    return messages


async def redo(desk: Desk, *ids: str, ticked: bool = False) -> None:
    await restore_plan(desk.checkpoints, await desk.checkpoints.preview_redo(*ids), ticked=ticked)


async def undo_all(desk: Desk, *, ticked: bool = False) -> None:
    await restore_since(desk.checkpoints, desk.messages[0].id, ticked=ticked)


async def undo_call(desk: Desk, checkpoint: Checkpoint, *, ticked: bool = False) -> tuple[RestoreReport, ...]:
    """Undo a call as its card does, also what was redone of it."""
    ids, open_ids = {checkpoint.id}, list[str]()
    for other in await desk.checkpoints._all():
        if other.id in ids or other.undoes in ids:
            ids.add(other.id)
            open_ids += [] if other.is_redo or other.restored else [other.id]
    return await restore(desk.checkpoints, *open_ids, ticked=ticked)


async def test_one_call_back_and_forth_with_bytes_permissions_and_folders(desk: Desk) -> None:
    checkpoint = await desk.write("a", "1")
    (desk.folder / "a").chmod(0o600)
    await call(desk, "in/c", "1")
    await undo_all(desk, ticked=True)
    assert list(desk.folder.iterdir()) == []
    saved = [checkpoint for checkpoint in await desk.checkpoints._all() if checkpoint.is_redo]
    for _ in range(2):
        await redo(desk, *[checkpoint.id for checkpoint in saved])
        assert (desk.folder / "in/c").read_text() == "1"
        assert (desk.folder / "a").stat().st_mode & 0o777 == 0o600
    (restored,) = await undo_call(desk, checkpoint)
    assert restored.restored == ("a",)
    await undo_all(desk)
    assert list(desk.folder.iterdir()) == []


async def test_what_was_ticked_comes_back_as_the_person_had_it(desk: Desk, notes: list[Message]) -> None:
    (desk.folder / "a").write_text("0")
    await call(desk, "a", "1")
    (desk.folder / "a").write_text("mine")
    await undo_all(desk, ticked=True)
    assert desk.texts() == {"a": "0"}
    await redo(desk, notes[-1].id)
    assert desk.texts() == {"a": "mine"}
    await undo_all(desk)
    assert desk.texts() == {"a": "0"}


async def test_what_was_changed_after_the_undoing_stays_unless_ticked_and_is_saved_then(
    desk: Desk, notes: list[Message]
) -> None:
    (desk.folder / "a").write_text("0")
    await call(desk, "a", "1")
    await undo_all(desk)
    (desk.folder / "a").write_text("mine")
    plan = await desk.checkpoints.preview_redo(notes[-1].id)
    assert effects_of(plan) == {"a": "left"}
    await redo(desk, notes[0].id)
    assert desk.texts() == {"a": "mine"}
    await redo(desk, notes[0].id, ticked=True)
    assert desk.texts() == {"a": "1"}
    await undo_all(desk)
    assert desk.texts() == {"a": "mine"}


async def test_restoring_twice_and_redoing_twice_is_once(desk: Desk, notes: list[Message]) -> None:
    first = await desk.write("a", "1")
    for _ in range(2):
        await undo_call(desk, first)
        assert desk.texts() == {}
    every = await desk.checkpoints._all()
    assert len(every) == 2
    for _ in range(2):
        await redo(desk, every[1].id)
        assert desk.texts() == {"a": "1"}
    assert len(await desk.checkpoints._all()) == 3
    assert await desk.checkpoints.list() == (every[0],)
    for _ in range(2):
        for restored in await undo_call(desk, first):
            assert restored.checkpoint.message_id == first.message_id
        assert desk.texts() == {}
    assert len(notes) == 3


async def test_the_model_hears_of_it_and_calls_can_say_it(desk: Desk, notes: list[Message]) -> None:
    shown: list[list[CheckpointedCall]] = []
    desk.checkpoints._listeners = RestoreListeners(notes.append, lambda saved: shown.append(list(saved)))
    (desk.folder / "b").write_text("0")
    for name, text in (("a", "1"), ("b", None)):
        await call(desk, name, text)
    await undo_all(desk)
    await redo(desk, notes[0].id)
    assert is_undo_note(notes[1])
    assert notes[1].injected_by == "redo"
    assert "redid what had been undone" in notes[1].text
    assert "- `a`: as it was before it was undone" in notes[1].text
    assert "- `b`: removed, as it was not there before it was undone" in notes[1].text
    assert [(state.restored, state.is_redo, state.note_id) for state in shown[0]] == [
        (True, False, ""),
        (True, False, ""),
        (False, True, notes[0].id),
        (False, True, notes[0].id),
    ]
    assert [(state.restored, state.is_redo) for state in shown[1][4:]] == [(False, False)] * 2
    assert [type(event) for event in desk.events] == [CheckpointRestored] * 4


async def test_a_message_that_came_later_has_nothing_of_an_older_call_that_was_redone(desk: Desk) -> None:
    await desk.write("a", "1", message_id="of a specialist")
    await undo_all(desk)
    since = desk.say()
    await redo(desk, *[checkpoint.id for checkpoint in await desk.checkpoints._all()])
    assert (await desk.checkpoints.preview_since(since.id)).checkpoint_ids == ()
    assert len((await desk.checkpoints.preview_since(desk.messages[0].id)).checkpoint_ids) == 1


async def test_what_a_tool_took_back_is_said_not_to_be_done_again(desk: Desk) -> None:
    checkpoint = await desk.write("a", "1")
    call = {"tool": "book @ x", "input": {}, "undo_said": "Unbooked."}
    await desk.checkpoints._store.checkpoints.save(checkpoint.model_copy(update=call))
    await undo_all(desk)
    plan = await desk.checkpoints.preview_redo(*[checkpoint.id for checkpoint in await desk.checkpoints._all()])
    assert effects_of(plan) == {"a": "brought_back"}
    assert [str(refusal) for refusal in plan.undo_refusals] == [
        "What “book” undid is not redone; only files are restored."
    ]


class TestNotSavable:
    """What cannot be saved first."""

    @pytest.mark.parametrize(
        ("replace", "why"),
        [
            (lambda file: file.write_bytes(b"x" * 99), "is larger than 256 MB now, so it could not be saved first"),
            (
                lambda file: (file.unlink(), file.symlink_to("x")),
                "is no longer an ordinary file, so it could not be saved",
            ),
        ],
        ids=["too large", "a link"],
    )
    async def test_it_is_said_beforehand_and_stays_even_if_chosen(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch, replace: object, why: str
    ) -> None:
        (desk.folder / "a").write_text("0")
        await call(desk, "a", "1")
        assert callable(replace)
        replace(desk.folder / "a")
        monkeypatch.setattr(snapshots, "MAX_SAVED_BYTES", 10)
        plan = await desk.checkpoints.preview_since(desk.messages[0].id)
        (file,) = plan.files
        assert (file.effect(), file.effect(replaced=True), file.is_conflict) == ("left", "left", False)
        assert why in str(file.reason)
        (restored,) = await desk.checkpoints.restore_forecast(plan, plan.files)
        assert restored.failed == ("a",)
        assert (desk.folder / "a").is_symlink() or len((desk.folder / "a").read_bytes()) == 99
        assert len(await desk.checkpoints._all()) == 1

    async def test_without_room_to_save_nothing_is_touched(self, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
        await call(desk, "a", "1")

        async def full(_data: bytes) -> str:
            raise DiskFull("There is no room left.")

        monkeypatch.setattr(desk.checkpoints._store.blobs, "put", full)
        with pytest.raises(StorageFailed):
            await undo_all(desk)
        assert desk.texts() == {"a": "1"}
        monkeypatch.undo()
        await undo_all(desk)
        assert desk.texts() == {}

    async def test_what_changes_while_it_is_saved_is_left(self, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
        await call(desk, "a", "1")
        await call(desk, "b", "1")
        real = restore_module.take_snapshot

        def late(workspace: Workspace, place: object, *rest: object, **more: bool) -> object:
            if str(place) == "a" and more:
                (desk.folder / "a").write_text("mine")
            return real(workspace, place, *rest, **more)

        monkeypatch.setattr(restore_module, "take_snapshot", late)
        await undo_all(desk)
        assert desk.texts() == {"a": "mine"}
        assert [event.conflicts for event in desk.events] == [(), ("a",)]
        assert [checkpoint.files[0].path for checkpoint in await desk.checkpoints._all() if checkpoint.is_redo] == ["b"]

    async def test_what_cannot_be_looked_at_any_more_is_left_alone(
        self, desk: Desk, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*_given: object) -> None:
            raise ToolFailed("The system does not permit access to it.")

        for name in ("a", "b"):
            await call(desk, name, "1")
        plan = await desk.checkpoints.preview_since(desk.messages[0].id)
        real = restore_module.missing_folders
        monkeypatch.setattr(restore_module, "missing_folders", refuse)
        first, second = await desk.checkpoints.restore_forecast(plan)
        assert (first.failed, second.failed, desk.texts()) == (("b",), ("a",), {"a": "1", "b": "1"})
        monkeypatch.setattr(restore_module, "missing_folders", real)
        await undo_all(desk)
        assert desk.texts() == {}

    async def test_what_could_not_be_put_back_is_not_offered(self, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
        (desk.folder / "a").write_text("0")
        await call(desk, "a", "1")

        def refuse(*_given: object, **_more: object) -> None:
            raise restore_steps.ChangedSinceSnapshot(snapshots.parse_saved_path("a"))

        monkeypatch.setattr(Workspace, "write", refuse)
        await undo_all(desk)
        assert desk.texts() == {"a": "1"}
        assert [checkpoint.files for checkpoint in await desk.checkpoints._all() if checkpoint.is_redo] == [()]
        assert (
            await desk.checkpoints.preview_redo(*[checkpoint.id for checkpoint in await desk.checkpoints._all()])
        ).files == ()


async def test_saved_copies_go_with_the_conversation(desk: Desk, store: Store, tmp_path: Path) -> None:
    await call(desk, "a", "1")
    (desk.folder / "a").write_text("mine")
    await undo_all(desk, ticked=True)
    files = tmp_path / "data/saved-files"

    def kept() -> list[bytes]:
        return [path.read_bytes() for path in files.glob("??/*")]

    assert b"mine" in kept()
    conversation_id = (await store.list_conversations())[0].id
    await store.close()
    reopened = await Store.open(tmp_path / "data")
    assert b"mine" in kept()
    await reopened.delete_conversation(conversation_id)
    await reopened.empty_trash()
    await reopened.close()
    assert kept() == []


RESTORING = """
import asyncio, os, signal, sys
from pathlib import Path
from desktop_agent.engine.checkpoints import Checkpoints
from desktop_agent.storage.store import Store
from desktop_agent.tools.workspace import Workspace

async def main():
    data, work, conversation, writes = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    store = await Store.open(data)
    checkpoints = Checkpoints(store, conversation, history=lambda: (), refuse=lambda: None, emit=print)
    real, done = Workspace.write, []
    def write(*given, **more):
        if len(done) == writes:
            os.kill(os.getpid(), signal.SIGKILL)
        done.append(real(*given, **more))
    Workspace.write = write
    (checkpoint,) = await checkpoints.list()
    plan = await checkpoints.preview(checkpoint.id)
    await checkpoints.restore_forecast(plan, plan.files)
    sys.exit(3)

asyncio.run(main())
"""


DIES_BEFORE_REPLACING = """
from desktop_agent.tools import open_folders
import os, signal
for kind in (open_folders._DescriptorFolder, open_folders._PathFolder):
    kind.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
"""


def ended_with(*arguments: str, program: str = RESTORING) -> int:
    return subprocess.run([sys.executable, "-c", program, *arguments], check=False).returncode


@pytest.mark.parametrize("writes", [0, 1])
async def test_killed_between_saving_and_restoring_the_saved_copy_is_found_again(
    store: Store, desk: Desk, tmp_path: Path, writes: int
) -> None:
    for name in ("a", "b"):
        (desk.folder / name).write_text("old")
    checkpointer = desk.checkpoints.checkpointer(Workspace(desk.folder))
    checkpoint = await checkpointer.create_checkpoint("call", desk.messages[0].id, ("a", "b"))
    assert checkpoint is not None
    for name in ("a", "b"):
        change(desk.folder / name, "new")
    await checkpointer.complete_checkpoint(checkpoint)
    (desk.folder / "a").write_text("mine")
    conversation_id = (await store.list_conversations())[0].id
    await store.close()
    arguments = [str(tmp_path / "data"), str(desk.folder), conversation_id, str(writes)]
    assert ended_with(*arguments) == -signal.SIGKILL

    reopened = await Store.open(tmp_path / "data")
    after = Desk(reopened, conversation_id, desk.folder)
    after.messages = desk.messages
    assert after.texts() == {"a": "old" if writes else "mine", "b": "new"}
    saved = [checkpoint.id for checkpoint in await after.checkpoints._all() if checkpoint.is_redo]
    await redo(after, *saved)
    assert after.texts() == {"a": "mine", "b": "new"}
    await undo_all(after, ticked=True)
    assert after.texts() == {"a": "old", "b": "old"}
    await redo(after, *[checkpoint.id for checkpoint in await after.checkpoints._all()])
    assert after.texts() == {"a": "mine", "b": "new"}
    await reopened.close()


@pytest.mark.parametrize("opened", [True, False])
async def test_killed_while_a_file_is_put_back_no_half_done_file_stays_for_ever(
    store: Store, desk: Desk, tmp_path: Path, opened: bool
) -> None:
    (desk.folder / "in").mkdir()
    (desk.folder / "in/a").write_text("old")
    await call(desk, "in/a", "1")
    hers = desk.folder / f"in/.{'0' * 32}-0123456789abcdef.tmp"
    hers.write_text("mine")
    conversation_id = (await store.list_conversations())[0].id
    await store.close()
    arguments = [str(tmp_path / "data"), str(desk.folder), conversation_id, "9"]
    assert ended_with(*arguments, program=DIES_BEFORE_REPLACING + RESTORING) == -signal.SIGKILL
    assert len(list((desk.folder / "in").iterdir())) == 3

    reopened = await Store.open(tmp_path / "data")
    after = Desk(reopened, conversation_id, desk.folder)
    after.messages = desk.messages
    if opened:
        await after.checkpoints.publish_saved_calls()
        assert (desk.folder / "in/a").read_text() == "1"
    else:
        (checkpoint,) = await after.checkpoints.list()
        assert (await restore_one(after.checkpoints, checkpoint.id)).checkpoint.restored
    assert {path.name for path in (desk.folder / "in").iterdir()} == {"a", hers.name}
    await reopened.close()


async def test_what_was_only_partly_undone_and_redone_is_undone_again(desk: Desk) -> None:
    for name in "ab":
        (desk.folder / name).write_text("0")
    checkpointer = desk.checkpoints.checkpointer(Workspace(desk.folder))
    checkpoint = await checkpointer.create_checkpoint("call", desk.messages[-1].id, ("a", "b"))
    assert checkpoint is not None
    for name in "ab":
        (desk.folder / name).write_text("1")
    await checkpointer.complete_checkpoint(checkpoint)
    (desk.folder / "b").write_text("mine")
    restored = await restore_one(desk.checkpoints, checkpoint.id)
    assert (restored.restored, restored.conflicts) == (("a",), ("b",))
    assert restored.saved is not None
    for _ in range(2):
        await redo(desk, restored.saved.id)
        assert desk.texts() == {"a": "1", "b": "mine"}
        restored, rest = await undo_call(desk, checkpoint)
        assert (restored.restored, restored.conflicts, rest.restored, rest.conflicts) == (("a",), (), (), ("b",))
        assert rest.checkpoint.id == checkpoint.id
        assert restored.saved is not None
        assert desk.texts() == {"a": "0", "b": "mine"}
    (restored,) = await undo_call(desk, checkpoint, ticked=True)
    assert (restored.restored, restored.conflicts, desk.texts()) == (("b",), (), {"a": "0", "b": "0"})
