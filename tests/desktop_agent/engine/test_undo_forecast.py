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
from desktop_agent.types.errors import Sentence, StorageFailed, ToolFailed, WrongUse
from desktop_agent.types.messages import Message
from desktop_agent.types.tool_calls import DiffPreview
from tests.desktop_agent.engine.restoring import restore, restore_one, restore_since
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


async def call(desk: Desk, path: str, text: str | None, *, ends: bool = True) -> None:
    """A call that writes a file, or deletes one."""
    checkpointer = desk.checkpoints.checkpointer(Workspace(desk.folder))
    checkpoint = await checkpointer.create_checkpoint("call", desk.messages[0].id, (path,))
    assert checkpoint is not None
    change(desk.folder / path, text)
    if ends:
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
            await call(desk, path, text, ends=chance.random() < 0.8)
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


async def test_what_failed_is_no_conflict_of_an_older_call(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_given: object, **_more: object) -> None:
        raise ToolFailed("The disk is full.")

    (desk.folder / "a").write_text("0")
    await call(desk, "a", "1")
    await call(desk, "a", "2")
    with monkeypatch.context() as patch:
        patch.setattr(Workspace, "write", refuse)
        reports = await desk.checkpoints.restore_forecast(await forecast(desk))
    assert [(report.failed, report.conflicts) for report in reports] == [(("a",), ())] * 2
    await desk.checkpoints.restore_forecast(await forecast(desk))
    assert desk.texts() == {"a": "0"}


async def test_a_file_that_a_person_undid_by_hand_is_no_question(desk: Desk) -> None:
    await call(desk, "a", "1")
    await call(desk, "a", "2")
    (desk.folder / "a").unlink()
    plan = await forecast(desk)
    assert (len(plan.checkpoint_ids), plan.files) == (2, ())
    reports = await desk.checkpoints.restore_forecast(plan)
    assert [(report.skipped, report.checkpoint.restored) for report in reports] == [((), True)] * 2
    assert desk.texts() == {}


async def test_of_one_call_alone_it_is_a_question(desk: Desk) -> None:
    await call(desk, "a", "1")
    await call(desk, "a", "2")
    (desk.folder / "a").unlink()
    plan = await desk.checkpoints.preview((await desk.checkpoints.list())[1].id)
    assert [file.is_conflict for file in plan.files] == [True]
    (report,) = await desk.checkpoints.restore_forecast(plan)
    assert (report.conflicts, report.checkpoint.restored) == (("a",), False)


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
    await restore_one(desk.checkpoints, plan.checkpoint_ids[0])
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


async def test_a_folder_without_the_right_to_write_is_said_beforehand(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    (desk.folder / "in").mkdir()
    (desk.folder / "in/old").write_text("0")
    for path, text in (("a", "1"), ("in/old", "1"), ("in/new", "1")):
        await call(desk, path, text)
    # Root may write everywhere, so the system's answer is made up.
    monkeypatch.setattr(os, "access", lambda folder, _mode: Path(folder).name != "in")
    plan = await forecast(desk)
    assert effects_of(plan, replaced=True) == {"a": "removed", "in/new": "left", "in/old": "left"}
    assert [str(file.reason) for file in plan.files if file.reason] == [
        "The folder of “in/new” cannot be written to.",
        "The folder of “in/old” cannot be written to.",
    ]


class TestWhatIsInTheWay:
    """Files and folders that took the place of what a call changed."""

    async def test_of_a_call_that_broke_off_a_full_folder_is_no_conflict(self, desk: Desk) -> None:
        (desk.folder / "a").write_text("0")
        await call(desk, "a", None, ends=False)
        change(desk.folder / "a/x", "mine")
        plan = await forecast(desk)
        assert [(file.path, file.effect(replaced=True), file.is_conflict) for file in plan.files] == [
            ("a", "left", False)
        ]
        (report,) = await desk.checkpoints.restore_forecast(plan)
        assert (report.failed, report.conflicts) == (("a",), ())
        assert report.skipped[0].why == plan.files[0].reason
        assert "with something in it" in str(plan.files[0].reason)
        shutil.move(desk.folder / "a/x", desk.folder / "x")
        (report,) = await restore_since(desk.checkpoints, desk.messages[0].id, ticked=True)
        assert (report.skipped, desk.texts()) == ((), {"a": "0", "x": "mine"})

    async def test_of_a_call_that_broke_off_an_empty_folder_goes(self, desk: Desk) -> None:
        await call(desk, "in/c", "1", ends=False)
        (desk.folder / "in/c").unlink()
        (report,) = await restore_since(desk.checkpoints, desk.messages[0].id)
        assert (report.skipped, list(desk.folder.iterdir())) == ((), [])

    async def test_a_folder_that_a_call_that_broke_off_removed_comes_back(self, desk: Desk) -> None:
        (desk.folder / "in").mkdir()
        await call(desk, "in", None, ends=False)
        plan = await forecast(desk)
        assert effects_of(plan) == {"in": "brought_back"}
        await desk.checkpoints.restore_forecast(plan)
        assert (desk.folder / "in").is_dir()

    async def test_a_folder_that_a_call_only_named_does_not_come_back(self, desk: Desk) -> None:
        (desk.folder / "in").mkdir()
        checkpointer = desk.checkpoints.checkpointer(Workspace(desk.folder))
        checkpoint = await checkpointer.create_checkpoint("call", desk.messages[0].id, ("in", "a"))
        assert checkpoint is not None
        (desk.folder / "a").write_text("1")
        await checkpointer.complete_checkpoint(checkpoint)
        (desk.folder / "in").rmdir()
        await desk.checkpoints.restore_forecast(await forecast(desk))
        assert list(desk.folder.iterdir()) == []

    async def test_a_tick_holds_where_a_newer_call_made_a_folder_of_it(self, desk: Desk) -> None:
        (desk.folder / "a").write_text("0")
        await call(desk, "a", None, ends=False)
        await call(desk, "a/x", "1")
        reports = await restore_since(desk.checkpoints, desk.messages[0].id, ticked=True)
        assert [report.skipped for report in reports] == [(), ()]
        assert desk.texts() == {"a": "0"}

    async def test_a_tick_holds_where_a_newer_undo_makes_a_folder_of_it(self, desk: Desk) -> None:
        (desk.folder / "a").write_text("0")
        checkpointer = desk.checkpoints.checkpointer(Workspace(desk.folder))
        assert await checkpointer.create_checkpoint("call", desk.messages[0].id, ("a", "a/x")) is not None
        change(desk.folder / "a", None)
        change(desk.folder / "a/x", "1")
        await call(desk, "a/x", None)
        (desk.folder / "a").rmdir()
        reports = await restore_since(desk.checkpoints, desk.messages[0].id, ticked=True)
        assert [report.skipped for report in reports] == [(), ()]
        assert desk.texts() == {"a": "0"}

    async def test_a_file_where_a_folder_must_be_is_said_beforehand(self, desk: Desk) -> None:
        change(desk.folder / "in/c", "0")
        await call(desk, "in/c", None)
        change(desk.folder / "in", "mine")
        plan = await forecast(desk)
        assert [(file.path, file.effect(replaced=True), file.is_conflict) for file in plan.files] == [
            ("in/c", "left", False)
        ]
        (report,) = await desk.checkpoints.restore_forecast(plan)
        assert (report.failed, str(report.skipped[0].why)) == (("in/c",), str(plan.files[0].reason))
        assert desk.texts() == {"in": "mine"}

    async def test_nor_is_a_file_below_it_a_conflict(self, desk: Desk) -> None:
        change(desk.folder / "in/c", "0")
        await call(desk, "in/c", "1")
        change(desk.folder / "in", "mine")
        plan = await forecast(desk)
        assert not any(file.is_conflict for file in plan.files)
        (report,) = await desk.checkpoints.restore_forecast(plan)
        assert (report.failed, report.conflicts, desk.texts()) == (("in/c",), (), {"in": "mine"})

    async def test_a_link_on_the_way_is_no_conflict(self, desk: Desk, tmp_path: Path) -> None:
        change(desk.folder / "in/c", "0")
        await call(desk, "in/c", "1")
        (desk.folder / "in").rename(tmp_path / "away")
        (desk.folder / "in").symlink_to(tmp_path / "away")
        plan = await forecast(desk)
        assert [(file.path, file.effect(replaced=True), file.is_conflict) for file in plan.files] == [
            ("in/c", "left", False)
        ]
        (report,) = await desk.checkpoints.restore_forecast(plan, plan.files)
        assert (report.failed, (tmp_path / "away/c").read_text()) == (("in/c",), "1")


async def test_folders_of_a_call_that_failed_go_and_what_changed_nothing_is_left_out(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    (desk.folder / "large").write_text("more than ten")
    with monkeypatch.context() as patch:
        patch.setattr(snapshots, "MAX_SAVED_BYTES", 10)
        await call(desk, "large", "more than ten")
    await call(desk, "in/c", None)
    checkpointer = desk.checkpoints.checkpointer(Workspace(desk.folder))
    checkpoint = await checkpointer.create_checkpoint("call", desk.messages[0].id, ("in/c",))
    assert checkpoint is not None
    (desk.folder / "in").mkdir()
    await checkpointer.complete_checkpoint(checkpoint)
    plan = await forecast(desk)
    assert (plan.checkpoint_ids, plan.files) == ((checkpoint.id,), ())
    await desk.checkpoints.restore_forecast(plan)
    assert desk.texts() == {"large": "more than ten"}


async def test_what_is_on_the_disk_of_a_file_that_cannot_be_told_stays_so(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    (desk.folder / "a").write_text("0")
    await call(desk, "a", "1")
    await call(desk, "a", "2")

    def refuse(*_given: object) -> None:
        raise ToolFailed("The system does not permit access to “a”.")

    monkeypatch.setattr(Workspace, "stat", refuse)
    (file,) = (await forecast(desk)).files
    assert (file.effect(), file.effect(replaced=True), file.is_conflict) == ("left", "left", False)


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

    async def test_a_folder_that_goes_or_comes_back_is_no_file(self, desk: Desk) -> None:
        (desk.folder / "gone").mkdir()
        await call(desk, "gone", None)
        await call(desk, "new", "1")
        change(desk.folder / "new", None)
        (desk.folder / "new").mkdir()
        plan = await forecast(desk)
        assert effects_of(plan, replaced=True) == {"gone": "brought_back", "new": "removed"}
        for file in plan.files:
            difference = await desk.checkpoints.difference(file, replaced=True)
            assert str(difference) == f"“{file.path}” is an empty folder."

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
        for _ in range(2):
            await restore(desk.checkpoints, checkpoint.id)
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
