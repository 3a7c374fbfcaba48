"""What restoring would do is said beforehand, and is what it does, on a real disk."""

import os
import random
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from desktop_agent.conversation.transcript_notices import is_undo_note
from desktop_agent.engine.checkpoints import RestoreListeners
from desktop_agent.processes.worker_threads import CancelToken
from desktop_agent.storage.store import Store
from desktop_agent.tools.checkpoints import snapshots
from desktop_agent.tools.checkpoints.snapshots import parse_saved_path, take_snapshot
from desktop_agent.tools.workspace import Workspace
from desktop_agent.types.checkpoints import Checkpoint, FileState, RestorePlan
from desktop_agent.types.errors import Sentence, StorageFailed, WrongUse
from desktop_agent.types.messages import Message
from desktop_agent.types.tool_calls import DiffPreview
from tests.desktop_agent.engine.test_checkpoints import Desk

PATHS = ("a", "b", "in/c", "in")
NOT_TEXT = "“{path}” is not text, or too long to be shown line by line."


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    store = await Store.open(tmp_path / "data")
    yield store
    await store.close()


@pytest.fixture
async def desk(store: Store, tmp_path: Path) -> Desk:
    return Desk(store, (await store.create_conversation(title="t")).id, tmp_path / "work")


async def forecast(desk: Desk) -> RestorePlan:
    return await desk.checkpoints.preview_since(desk.messages[0].id)


async def call(desk: Desk, path: str, text: str | None) -> None:
    """A call that writes a file, or deletes one."""
    checkpointer = desk.checkpoints.checkpointer(Workspace(desk.folder))
    checkpoint = await checkpointer.create_checkpoint("call", desk.messages[0].id, (path,))
    assert checkpoint is not None
    change(desk.folder / path, text)
    await checkpointer.complete_checkpoint(checkpoint)


def change(place: Path, text: str | None) -> None:
    if place.is_dir():
        shutil.rmtree(place)
    elif place.exists():
        place.unlink()
    if text is not None:
        if place.parent.is_file():
            place.parent.unlink()
        place.parent.mkdir(exist_ok=True)
        place.write_text(text)


def state(desk: Desk, path: str) -> FileState:
    return take_snapshot(Workspace(desk.folder), parse_saved_path(path), CancelToken()).state


def effects_of(plan: RestorePlan, *, replaced: bool = False) -> dict[str, str]:
    return {file.path: file.effect(replaced=replaced) for file in plan.files}


async def test_each_file_is_said_with_what_becomes_of_it_and_none_is_touched(desk: Desk) -> None:
    (desk.folder / "old").write_text("0")
    (desk.folder / "gone").write_text("0")
    (desk.folder / "hers").write_text("0")
    for path, text in (("old", "1"), ("old", "2"), ("new", "1"), ("gone", None), ("hers", "1")):
        await call(desk, path, text)
    (desk.folder / "hers").write_text("mine")
    before = desk.texts()
    plan = await forecast(desk)
    assert effects_of(plan) == {"gone": "brought_back", "hers": "left", "new": "removed", "old": "put_back"}
    assert effects_of(plan, replaced=True)["hers"] == "put_back"
    (hers,) = [file for file in plan.files if file.is_conflict]
    assert str(hers.reason) == "“hers” was changed since; it was left as it is."
    assert (desk.texts(), desk.events) == (before, [])
    assert not any(checkpoint.restored for checkpoint in await desk.checkpoints.list())
    assert plan.changes_something


@pytest.mark.parametrize("seed", range(60))
async def test_what_is_foreseen_is_what_happens(desk: Desk, seed: int) -> None:
    chance = random.Random(seed)
    (desk.folder / "a").write_text("0")
    for number in range(chance.randint(2, 9)):
        path, text = chance.choice(PATHS), chance.choice((None, str(number), str(number)))
        if chance.random() < 0.7:
            await call(desk, path, text)
        else:
            change(desk.folder / path, text)
    even = bool(seed % 2)
    before = {path: state(desk, path) for path in PATHS}
    plan = await forecast(desk)
    if even:
        willing = [file for file in plan.files if file.is_conflict]
        await desk.checkpoints.restore_forecast(plan, willing)
    else:
        await desk.checkpoints.restore_forecast(plan)
    for file in plan.files:
        assert state(desk, file.name) == (file.overwritten_state if even else file.restored_state), (seed, file)
    for path in set(PATHS) - {file.name for file in plan.files} - {"in"}:
        assert state(desk, path) == before[path]


async def test_what_changed_after_it_was_shown_is_left_although_it_was_ticked(desk: Desk) -> None:
    await call(desk, "a", "1")
    (desk.folder / "a").write_text("mine")
    plan = await forecast(desk)
    (desk.folder / "a").write_text("mine, newer")
    (restored,) = await desk.checkpoints.restore_forecast(plan, plan.files)
    assert (desk.texts(), restored.conflicts) == ({"a": "mine, newer"}, ("a",))


async def test_a_tick_holds_for_one_file_and_for_all_of_its_calls(desk: Desk) -> None:
    (desk.folder / "a").write_text("0")
    await call(desk, "a", "1")
    (desk.folder / "a").write_text("mine, early")
    await call(desk, "a", "2")
    await call(desk, "b", "1")
    (desk.folder / "a").write_text("mine, late")
    (desk.folder / "b").write_text("mine")
    plan = await forecast(desk)
    await desk.checkpoints.restore_forecast(plan, [file for file in plan.files if file.path == "a"])
    assert desk.texts() == {"a": "0", "b": "mine"}


async def test_a_tick_on_what_cannot_be_saved_holds_for_the_version_that_was_seen(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "MAX_SAVED_BYTES", 10)
    for name in ("a", "b"):
        (desk.folder / name).write_text("0")
        await call(desk, name, "1")
        (desk.folder / name).write_text("mine, and too large")
    plan = await forecast(desk)
    assert [file.can_be_saved for file in plan.files] == [False, False]
    (desk.folder / "a").write_text("mine, newer, and too large")
    await desk.checkpoints.restore_forecast(plan, plan.files)
    assert desk.texts() == {"a": "mine, newer, and too large", "b": "0"}


async def test_other_names_of_a_file_keep_what_is_there_and_that_is_said(desk: Desk) -> None:
    (desk.folder / "a").write_text("0")
    await call(desk, "a", "1")
    await call(desk, "new", "1")
    for name in ("a", "new"):
        os.link(desk.folder / name, desk.folder / f"{name} too")
    put_back, removed = (await forecast(desk)).files
    assert "“a” also has other names on this disk" in str(put_back.reason)
    assert removed.reason is None
    await desk.checkpoints.restore_forecast(await forecast(desk))
    assert desk.texts() == {"a": "0", "a too": "1", "new too": "1"}


async def test_what_was_restored_meanwhile_is_left_out_and_each_call_is_counted(desk: Desk) -> None:
    for name in ("a", "b", "c"):
        await call(desk, name, "1")
    plan = await forecast(desk)
    await desk.checkpoints.restore(plan.checkpoint_ids[0])
    progress: list[tuple[int, int]] = []
    done = await desk.checkpoints.restore_forecast(plan, (), lambda *counts: progress.append(counts))
    assert progress == [(1, 2), (2, 2)]
    assert [result.restored for result in done] == [("b",), ("a",)]
    assert await desk.checkpoints.restore_forecast(plan) == ()


async def test_a_folder_in_the_way_is_said_only_where_it_holds_something(desk: Desk) -> None:
    for name in ("full", "empty"):
        await call(desk, name, "1")
        change(desk.folder / name, None)
        (desk.folder / name).mkdir()
    (desk.folder / "full/x").write_text("mine")
    plan = await forecast(desk)
    assert effects_of(plan, replaced=True) == {"empty": "removed", "full": "left"}
    (full,) = [file for file in plan.files if file.path == "full"]
    assert "with something in it" in str(full.reason)


async def test_without_the_folder_everything_stays_and_says_why(desk: Desk) -> None:
    await call(desk, "a", "1")
    shutil.rmtree(desk.folder)
    plan = await forecast(desk)
    assert effects_of(plan) == {"a": "left"}
    assert not plan.changes_something
    assert "There is no folder" in str(plan.files[0].reason)


class TestDifference:
    """The lines that would change."""

    async def test_before_and_after(self, desk: Desk) -> None:
        (desk.folder / "a").write_text("0")
        await call(desk, "a", "1")
        await call(desk, "b", "1")
        first, second = (await forecast(desk)).files
        assert await desk.checkpoints.difference(first) == DiffPreview("a", "1", "0")
        assert await desk.checkpoints.difference(second) == DiffPreview("b", "1", None)

    async def test_what_is_no_text_or_another_file_by_now_is_a_sentence(self, desk: Desk) -> None:
        await call(desk, "a", "1\0")
        (file,) = (await forecast(desk)).files
        difference = await desk.checkpoints.difference(file)
        assert isinstance(difference, Sentence)
        assert (difference.template, difference.values) == (NOT_TEXT, {"path": "a"})
        (desk.folder / "a").write_text("2")
        difference = await desk.checkpoints.difference(file)
        assert isinstance(difference, Sentence)
        assert "a different file now" in difference.template

    async def test_what_stays_has_none_and_lost_bytes_are_told(self, desk: Desk, tmp_path: Path) -> None:
        (desk.folder / "a").write_text("0")
        await call(desk, "a", "1")
        (desk.folder / "a").write_text("mine")
        (file,) = (await forecast(desk)).files
        difference = await desk.checkpoints.difference(file)
        assert difference == Sentence("“{path}” stays as it is.", {"path": "a"})
        shutil.rmtree(tmp_path / "data/saved-files")
        with pytest.raises(StorageFailed):
            await desk.checkpoints.difference(file, replaced=True)


class TestNote:
    """What the model hears."""

    @pytest.fixture
    def notes(self, desk: Desk) -> list[Message]:
        messages: list[Message] = []
        desk.checkpoints._listeners = RestoreListeners(on_note=messages.append)
        return messages

    async def test_one_for_all_with_what_was_not_put_back(self, desk: Desk, notes: list[Message]) -> None:
        for name in ("a", "b", "c"):
            await call(desk, name, "1")
        (desk.folder / "b").write_text("mine")
        await desk.checkpoints.restore_forecast(await forecast(desk))
        (note,) = notes
        assert is_undo_note(note)
        assert "- `a`: removed, as it was not there before" in note.text
        assert note.text.index("not put back") < note.text.index("`b`")

    async def test_none_where_nothing_was_changed(self, desk: Desk, notes: list[Message]) -> None:
        await call(desk, "a", "1")
        (checkpoint,) = await desk.checkpoints.list()
        await desk.checkpoints.restore(checkpoint.id)
        await desk.checkpoints.restore(checkpoint.id)
        assert len(notes) == 1

    async def test_of_one_that_is_broken_off_what_was_done_is_noted(self, desk: Desk, notes: list[Message]) -> None:
        await call(desk, "a", "1")
        await call(desk, "b", "1")

        def breaks_off(done: int, _all: int) -> None:
            if done == 1:
                raise StorageFailed("The disk is full.")

        with pytest.raises(StorageFailed):
            await desk.checkpoints.restore_forecast(await forecast(desk), (), breaks_off)
        assert desk.texts() == {"a": "1"}
        assert "`b`" in notes[0].text

    async def test_no_run_begins_meanwhile(self, desk: Desk) -> None:
        await call(desk, "a", "1")
        refused: list[str] = []

        def looks(_done: int, _all: int) -> None:
            with pytest.raises(WrongUse, match="put back just now"):
                desk.checkpoints.refuse_while_restoring()
            refused.append("yes")

        await desk.checkpoints.restore_forecast(await forecast(desk), (), looks)
        assert refused == ["yes"]
        desk.checkpoints.refuse_while_restoring()


async def test_an_unknown_checkpoint_is_wrong_use(desk: Desk) -> None:
    with pytest.raises(WrongUse, match="no such checkpoint"):
        await desk.checkpoints.preview("nothing")
    with pytest.raises(WrongUse, match="no such checkpoint"):
        await desk.checkpoints.restore_forecast(RestorePlan(checkpoint_ids=("nothing",)))


async def test_what_a_tool_would_undo_is_said_or_why_not(desk: Desk) -> None:
    checkpointer = desk.checkpoints.checkpointer(None)
    checkpoint = await checkpointer.create_checkpoint("call", desk.messages[0].id, (), tool="book @ x", arguments={})
    assert checkpoint is not None
    await checkpointer.complete_checkpoint(Checkpoint.model_validate(checkpoint.model_dump()), succeeded=True)
    plan = await forecast(desk)
    assert plan.undo_tools == ()
    assert "is not there any more" in str(plan.undo_refusals[0])
