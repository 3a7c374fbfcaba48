"""Checkpoints: files are saved before a call changes them, and restored whatever happened to them since."""

import asyncio
import contextlib
import hashlib
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import BinaryIO

import pytest

from desktop_agent.processes.worker_threads import CancelToken
from desktop_agent.storage.content_files import BlobFiles
from desktop_agent.tools.checkpoints.checkpointer import Checkpointer, RestoreReport
from desktop_agent.tools.checkpoints.restore_steps import ReplaceConsent
from desktop_agent.tools.checkpoints.snapshots import MAX_SAVED_BYTES, parse_saved_path, take_snapshot
from desktop_agent.tools.open_folders import HAS_DESCRIPTORS, FileAttributes
from desktop_agent.tools.workspace import Workspace, WorkspacePath
from desktop_agent.types.checkpoints import Checkpoint, FileState
from desktop_agent.types.errors import DiskFull, OutsideWorkspace, ToolFailed, WrongUse
from desktop_agent.types.tool_calls import FileChanges

NOBODY = 65534


class Desk:
    """A workspace folder, its checkpointer, and the checkpoints that were saved."""

    def __init__(self, root: Path, workspace: Workspace) -> None:
        self.folder = workspace.folder
        (root / "data").mkdir()
        self.blobs = BlobFiles(root / "data")
        self.kept: dict[str, Checkpoint] = {}
        self.checkpointer = self.checkpointer_for(workspace)

    def checkpointer_for(self, workspace: Workspace) -> Checkpointer:
        return Checkpointer(workspace, self.blobs, self.keep, "conversation")

    async def keep(self, checkpoint: Checkpoint) -> None:
        # As the database: a checkpoint is dumped and validated again.
        self.kept[checkpoint.id] = Checkpoint.model_validate(checkpoint.model_dump())

    async def call(self, *paths: str, does: Callable[[], object]) -> Checkpoint:
        checkpoint = await self.checkpointer.create_checkpoint("call", "message", paths)
        assert checkpoint is not None
        does()
        return await self.checkpointer.complete_checkpoint(checkpoint)

    async def restore(self, checkpoint: Checkpoint, *, ticked: bool = False) -> RestoreReport:
        """Restore twice; the second time must find nothing to do and report the same."""
        consent = self.consent(checkpoint) if ticked else {}
        first = await self.checkpointer.restore(self.kept[checkpoint.id], consent)
        before = {path: shape_of(path) for path in self.folder.rglob("*")}
        second = await self.checkpointer.restore(self.kept[checkpoint.id], consent)
        assert second.restored == ()
        assert (second.conflicts, second.failed) == (first.conflicts, first.failed)
        assert {path: shape_of(path) for path in self.folder.rglob("*")} == before
        return first

    def consent(self, checkpoint: Checkpoint) -> ReplaceConsent:
        """Consent to replacing all files as they are now."""
        consent: dict[str, list[FileState]] = {}
        for file in checkpoint.files:
            with contextlib.suppress(ToolFailed, WrongUse):
                snapshot = take_snapshot(Workspace(self.folder), parse_saved_path(file.path), CancelToken())
                consent[file.path] = [snapshot.state]
        return consent


@pytest.fixture(params=[pytest.param(True, marks=pytest.mark.skipif(not HAS_DESCRIPTORS, reason="no dir_fd")), False])
def desk(tmp_path: Path, request: pytest.FixtureRequest) -> Desk:
    (tmp_path / "work").mkdir()
    return Desk(tmp_path, Workspace(tmp_path / "work", by_descriptor=request.param))


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def shape_of(path: Path) -> tuple[int, ...] | None:
    """Return the stat fields that change when the file is touched, or None if there is no file."""
    if not os.path.lexists(path):
        return None
    info = path.lstat()
    return (info.st_ino, info.st_mode, info.st_mtime_ns, info.st_ctime_ns)


def sentence_about(restored: RestoreReport) -> str:
    (only,) = restored.skipped
    return str(only.why)


async def test_an_edited_file_gets_its_bytes_and_permissions_back(desk: Desk) -> None:
    file = desk.folder / "a.txt"
    file.write_bytes(b"old\x00\xff")
    file.chmod(0o640)

    def edit() -> None:
        file.write_bytes(b"new")
        file.chmod(0o755)

    checkpoint = await desk.call("a.txt", does=edit)
    restored = await desk.restore(checkpoint)
    assert (file.read_bytes(), mode_of(file)) == (b"old\x00\xff", 0o640)
    assert (restored.restored, restored.skipped, restored.checkpoint.restored) == (("a.txt",), (), True)
    assert desk.kept[checkpoint.id].restored


async def test_permissions_alone_are_put_back_past_write_protection(desk: Desk) -> None:
    file = desk.folder / "a.txt"
    file.write_bytes(b"same")
    file.chmod(0o444)

    def loosen() -> None:
        file.chmod(0o600)

    checkpoint = await desk.call("a.txt", does=loosen)
    await desk.restore(checkpoint)
    assert (file.read_bytes(), mode_of(file)) == (b"same", 0o444)


async def test_a_new_file_goes_again_with_the_folders_made_for_it(desk: Desk) -> None:
    (desk.folder / "there").mkdir()

    def make() -> None:
        (desk.folder / "there/new/deep").mkdir(parents=True)
        (desk.folder / "there/new/deep/a.txt").write_bytes(b"")

    checkpoint = await desk.call("there/new/deep/a.txt", does=make)
    assert checkpoint.new_folders == ("there/new", "there/new/deep")
    restored = await desk.restore(checkpoint)
    assert restored.restored == ("there/new/deep/a.txt",)
    assert [path.name for path in desk.folder.rglob("*")] == ["there"]


async def test_a_new_folder_with_something_of_the_persons_in_it_stays(desk: Desk) -> None:
    def make() -> None:
        (desk.folder / "new/inner").mkdir(parents=True)
        (desk.folder / "new/inner/a.txt").write_bytes(b"of the call")

    checkpoint = await desk.call("new/inner/a.txt", does=make)
    (desk.folder / "new/mine.txt").write_bytes(b"mine")
    restored = await desk.restore(checkpoint)
    assert restored.skipped == ()
    assert sorted(path.name for path in desk.folder.rglob("*")) == ["mine.txt", "new"]


async def test_a_deleted_file_comes_back_with_its_folders(desk: Desk) -> None:
    (desk.folder / "a/b").mkdir(parents=True)
    (desk.folder / "a/b/empty.txt").write_bytes(b"")
    (desk.folder / "a/b/full.txt").write_bytes(b"full")
    checkpoint = await desk.call("a/b/empty.txt", "a/b/full.txt", does=lambda: shutil.rmtree(desk.folder / "a"))
    restored = await desk.restore(checkpoint)
    assert set(restored.restored) == {"a/b/empty.txt", "a/b/full.txt"}
    assert (desk.folder / "a/b/empty.txt").read_bytes() == b""
    assert (desk.folder / "a/b/full.txt").read_bytes() == b"full"


async def test_a_file_that_became_a_folder_and_a_folder_that_became_a_file(desk: Desk) -> None:
    (desk.folder / "file").write_bytes(b"file")
    (desk.folder / "folder").mkdir()
    (desk.folder / "folder/inner").write_bytes(b"inner")

    def swap() -> None:
        (desk.folder / "file").unlink()
        (desk.folder / "file").mkdir()
        (desk.folder / "file/new").write_bytes(b"new")
        shutil.rmtree(desk.folder / "folder")
        (desk.folder / "folder").write_bytes(b"a file now")

    checkpoint = await desk.call("file", "file/new", "folder", "folder/inner", does=swap)
    restored = await desk.restore(checkpoint)
    assert restored.skipped == ()
    assert (desk.folder / "file").read_bytes() == b"file"
    assert (desk.folder / "folder/inner").read_bytes() == b"inner"


async def test_a_folder_with_something_of_the_persons_in_it_is_not_replaced_by_a_file(desk: Desk) -> None:
    (desk.folder / "a").write_bytes(b"file")

    def turn() -> None:
        (desk.folder / "a").unlink()
        (desk.folder / "a").mkdir()

    checkpoint = await desk.call("a", does=turn)
    (desk.folder / "a/mine").write_bytes(b"mine")
    for ticked in (False, True):
        restored = await desk.restore(checkpoint, ticked=ticked)
        assert restored.failed == ("a",)
        assert sentence_about(restored) == "“a” is a folder with something in it."
        assert (desk.folder / "a/mine").read_bytes() == b"mine"


@pytest.mark.parametrize(
    "change",
    [
        lambda file: file.write_bytes(b"mine"),
        lambda file: file.unlink(),
        lambda file: file.chmod(0o755),
        lambda file: (file.unlink(), file.mkdir()),
        lambda file: (file.unlink(), file.symlink_to("elsewhere")),
    ],
    ids=["written", "deleted", "permissions", "a folder", "a link"],
)
async def test_what_the_person_changed_since_is_reported_and_left(desk: Desk, change: Callable[[Path], object]) -> None:
    file = desk.folder / "a.txt"
    file.write_bytes(b"old")
    file.chmod(0o644)
    (desk.folder / "other.txt").write_bytes(b"old")

    def edit() -> None:
        file.write_bytes(b"new")
        (desk.folder / "other.txt").write_bytes(b"new")

    checkpoint = await desk.call("a.txt", "other.txt", does=edit)
    change(file)
    as_changed = shape_of(file)
    restored = await desk.restore(checkpoint)
    is_saved = not file.is_symlink()
    assert (restored.conflicts if is_saved else restored.failed, restored.restored) == (("a.txt",), ("other.txt",))
    assert not restored.checkpoint.restored
    why = "was changed since" if is_saved else "is no longer an ordinary file, so it could not be saved first"
    assert sentence_about(restored) == f"“a.txt” {why}; it was left as it is."
    assert shape_of(file) == as_changed
    assert (desk.folder / "other.txt").read_bytes() == b"old"


async def test_what_the_person_changed_since_is_replaced_when_they_say_so(desk: Desk) -> None:
    file = desk.folder / "a.txt"
    file.write_bytes(b"old")
    checkpoint = await desk.call("a.txt", "b.txt", does=lambda: file.write_bytes(b"new"))
    file.write_bytes(b"mine")
    (desk.folder / "b.txt").write_bytes(b"mine too")
    restored = await desk.restore(checkpoint, ticked=True)
    assert set(restored.restored) == {"a.txt", "b.txt"}
    assert file.read_bytes() == b"old"
    assert not (desk.folder / "b.txt").exists()


async def test_after_restoring_a_change_back_is_the_persons_own(desk: Desk) -> None:
    file = desk.folder / "a.txt"
    file.write_bytes(b"old")
    checkpoint = await desk.call("a.txt", does=lambda: file.write_bytes(b"new"))
    await desk.restore(checkpoint)
    file.write_bytes(b"new")  # the same bytes as the call wrote, but now the person wants them
    assert (await desk.restore(checkpoint)).conflicts == ("a.txt",)
    assert file.read_bytes() == b"new"


async def test_a_call_that_never_ended_is_compared_with_what_was_before(desk: Desk) -> None:
    changed, untouched = desk.folder / "changed", desk.folder / "untouched"
    changed.write_bytes(b"old")
    untouched.write_bytes(b"old")
    checkpoint = await desk.checkpointer.create_checkpoint("call", "message", ("changed", "untouched", "new/a.txt"))
    assert checkpoint is not None
    changed.write_bytes(b"half")
    (desk.folder / "new").mkdir()

    restored = await desk.restore(checkpoint)
    assert (restored.conflicts, restored.restored) == (("changed",), ())
    assert "never ended" in sentence_about(restored)
    assert not (desk.folder / "new").exists()

    restored = await desk.restore(checkpoint, ticked=True)
    assert (restored.skipped, restored.restored) == ((), ("changed",))
    assert changed.read_bytes() == b"old"


async def test_the_bytes_are_durable_before_the_checkpoint_and_the_checkpoint_before_the_call(desk: Desk) -> None:
    (desk.folder / "a.txt").write_bytes(b"old")
    saved: list[bytes] = []

    async def keep(checkpoint: Checkpoint) -> None:
        saved.append(await desk.blobs.get(checkpoint.files[0].before.digest or ""))

    checkpointer = Checkpointer(Workspace(desk.folder), desk.blobs, keep, "conversation")
    checkpoint = await checkpointer.create_checkpoint("call", "message", ("a.txt",))
    assert saved == [b"old"]
    assert checkpoint is not None
    assert (checkpoint.tool_use_id, checkpoint.message_id, checkpoint.conversation_id, checkpoint.workspace) == (
        "call",
        "message",
        "conversation",
        str(desk.folder),
    )


async def test_what_cannot_be_written_down_is_raised_and_harms_nothing(desk: Desk) -> None:
    async def refuse(_checkpoint: Checkpoint) -> None:
        raise DiskFull("There is no room left.")

    file = desk.folder / "a.txt"
    file.write_bytes(b"old")
    checkpoint = await desk.call("a.txt", does=lambda: file.write_bytes(b"new"))
    refused = Checkpointer(Workspace(desk.folder), desk.blobs, refuse, "conversation")
    with pytest.raises(DiskFull):
        await refused.create_checkpoint("call", "message", ("a.txt",))
    with pytest.raises(DiskFull):
        await refused.complete_checkpoint(checkpoint)
    with pytest.raises(DiskFull):
        await refused.restore(checkpoint)
    assert file.read_bytes() == b"new"  # what cannot be saved first is not put back
    assert (await desk.restore(checkpoint)).skipped == ()


async def test_a_call_on_no_file_has_no_checkpoint(desk: Desk) -> None:
    assert await desk.checkpointer.create_checkpoint("call", "message", ()) is None
    assert await desk.checkpointer.create_checkpoint("call", "message", (".", str(desk.folder))) is None
    assert desk.kept == {}


async def test_a_file_with_several_names_is_saved_once(desk: Desk) -> None:
    (desk.folder / "inner").mkdir()
    (desk.folder / "inner/a.txt").write_bytes(b"old")
    (desk.folder / "link").symlink_to("inner")
    paths = ("inner/a.txt", "./inner//a.txt", "link/a.txt", str(desk.folder / "inner/a.txt"))
    checkpoint = await desk.checkpointer.create_checkpoint("call", "message", paths)
    assert checkpoint is not None
    assert [file.path for file in checkpoint.files] == ["inner/a.txt"]


@pytest.mark.parametrize("path", ["../outside.txt", "/etc/passwd", "out/a.txt"])
async def test_a_path_that_leads_out_is_refused_before_anything_is_written(desk: Desk, path: str) -> None:
    (desk.folder / "a.txt").write_bytes(b"old")
    (desk.folder / "out").symlink_to("/")
    with pytest.raises(OutsideWorkspace):
        await desk.checkpointer.create_checkpoint("call", "message", ("a.txt", path))
    assert desk.kept == {}


@pytest.mark.parametrize("ticked", [False, True])
@pytest.mark.parametrize("target", ["the file", "its folder"])
async def test_a_link_put_there_since_leads_nowhere(desk: Desk, target: str, ticked: bool) -> None:
    outside = desk.folder.parent / "outside"
    outside.mkdir()
    (outside / "a.txt").write_bytes(b"new")
    (desk.folder / "inner").mkdir()
    file = desk.folder / "inner/a.txt"
    file.write_bytes(b"old")
    checkpoint = await desk.call("inner/a.txt", does=lambda: file.write_bytes(b"new"))
    replaced = file if target == "the file" else file.parent
    replaced.rename(desk.folder / "away")
    replaced.symlink_to(outside / "a.txt" if target == "the file" else outside)

    restored = await desk.restore(checkpoint, ticked=ticked)
    assert (restored.restored, restored.failed) == ((), ("inner/a.txt",))
    assert (outside / "a.txt").read_bytes() == b"new"
    assert replaced.is_symlink()


async def test_a_link_in_place_of_a_new_file_stays_even_so(desk: Desk) -> None:
    (desk.folder / "mine.txt").write_bytes(b"mine")
    file = desk.folder / "a.txt"
    checkpoint = await desk.call("a.txt", does=lambda: file.write_bytes(b"new"))
    file.unlink()
    file.symlink_to("mine.txt")
    for ticked in (False, True):
        assert (await desk.restore(checkpoint, ticked=ticked)).failed == ("a.txt",)
    assert file.is_symlink()
    assert file.read_bytes() == b"mine"


async def test_an_empty_folder_of_the_persons_in_place_of_a_new_file_stays(desk: Desk) -> None:
    def make() -> None:
        (desk.folder / "a").write_bytes(b"new")

    checkpoint = await desk.call("a", "a/b", does=make)
    (desk.folder / "a").unlink()
    (desk.folder / "a").mkdir()
    assert (await desk.restore(checkpoint)).conflicts == ("a",)
    assert (desk.folder / "a").is_dir()


async def test_a_folder_comes_back_with_its_files_although_the_person_removed_the_file_in_its_place(desk: Desk) -> None:
    (desk.folder / "a").mkdir()
    (desk.folder / "a/b").write_bytes(b"old")

    def turn() -> None:
        shutil.rmtree(desk.folder / "a")
        (desk.folder / "a").write_bytes(b"a file now")

    checkpoint = await desk.call("a", "a/b", does=turn)
    (desk.folder / "a").unlink()
    restored = await desk.restore(checkpoint)
    assert (restored.restored, restored.skipped) == (("a", "a/b"), ())
    assert (desk.folder / "a/b").read_bytes() == b"old"


async def test_a_private_folder_comes_back_private(desk: Desk) -> None:
    (desk.folder / "a").mkdir(mode=0o700)
    checkpoint = await desk.call("a", does=(desk.folder / "a").rmdir)
    report = await desk.restore(checkpoint)
    assert mode_of(desk.folder / "a") == 0o700
    assert report.saved is not None
    await desk.restore(report.saved)
    assert not (desk.folder / "a").exists()


async def test_a_saved_path_that_would_lead_out_is_refused(desk: Desk) -> None:
    checkpoint = await desk.call("a.txt", does=lambda: (desk.folder / "a.txt").write_bytes(b"new"))
    (desk.folder.parent / "b.txt").write_bytes(b"new")
    wrong = checkpoint.files[0].model_copy(update={"path": "../b.txt"})
    checkpoint = checkpoint.model_copy(update={"files": (wrong,)})
    restored = await desk.checkpointer.restore(checkpoint, desk.consent(checkpoint))
    assert restored.failed == ("../b.txt",)
    assert (desk.folder.parent / "b.txt").exists()


class Meddled(Workspace):
    """A workspace in which another program changes a file between the last check and the write."""

    meddle: Callable[[], object] = staticmethod(lambda: None)

    def write(
        self,
        path: WorkspacePath,
        data: bytes,
        before_replacing: Callable[[], None] = lambda: None,
        *,
        mode: int | None = None,
        prefix: str = ".",
        extras: FileAttributes = FileAttributes(),  # noqa: B008 - frozen
    ) -> None:
        self.meddle()
        super().write(path, data, before_replacing, mode=mode, prefix=prefix, extras=extras)

    def remove(self, path: WorkspacePath, before_removing: Callable[[], None] = lambda: None) -> None:
        self.meddle()
        super().remove(path, before_removing)


@pytest.mark.parametrize("was_there", [True, False])
@pytest.mark.parametrize("ticked", [True, False])
async def test_a_change_at_the_last_moment_is_not_overwritten(desk: Desk, was_there: bool, ticked: bool) -> None:
    file = desk.folder / "a.txt"
    if was_there:
        file.write_bytes(b"old")
    checkpoint = await desk.call("a.txt", does=lambda: file.write_bytes(b"new"))
    workspace = Meddled(desk.folder)
    workspace.meddle = lambda: file.write_bytes(b"own")  # as long as what the call wrote
    consent = desk.consent(checkpoint) if ticked else {}
    restored = await desk.checkpointer_for(workspace).restore(checkpoint, consent)
    assert restored.conflicts == ("a.txt",)
    assert file.read_bytes() == b"own"
    assert [path.name for path in desk.folder.iterdir()] == ["a.txt"]


async def test_a_file_made_at_the_last_moment_is_not_overwritten(desk: Desk) -> None:
    file = desk.folder / "a.txt"
    file.write_bytes(b"old")
    checkpoint = await desk.call("a.txt", does=file.unlink)
    workspace = Meddled(desk.folder)
    workspace.meddle = lambda: file.write_bytes(b"mine")
    assert (await desk.checkpointer_for(workspace).restore(checkpoint)).conflicts == ("a.txt",)
    assert file.read_bytes() == b"mine"


async def test_what_is_as_before_already_needs_nothing_and_counts_as_done(desk: Desk) -> None:
    first, second = desk.folder / "a.txt", desk.folder / "b.txt"
    first.write_bytes(b"old")
    checkpoint = await desk.call("a.txt", "b.txt", does=lambda: (first.write_bytes(b"new"), second.write_bytes(b"new")))
    first.write_bytes(b"old")
    restored = await desk.restore(checkpoint)
    assert (restored.restored, restored.skipped) == (("b.txt",), ())
    assert desk.kept[checkpoint.id].restored


async def test_a_restore_cancelled_midway_is_completed_by_the_next_one(desk: Desk) -> None:
    files = [desk.folder / name for name in ("a", "b", "c")]
    for file in files:
        file.write_bytes(b"old " + file.name.encode())
    checkpoint = await desk.call("a", "b", "c", does=lambda: [file.write_bytes(b"new") for file in files])
    get, digests = desk.blobs.get, list[str]()

    async def breaks_off(digest: str) -> bytes:
        digests.append(digest)
        if len(digests) == 2:
            raise asyncio.CancelledError
        return await get(digest)

    desk.blobs.get = breaks_off  # type: ignore[method-assign]
    with pytest.raises(asyncio.CancelledError):
        await desk.checkpointer.restore(checkpoint)
    assert [file.read_bytes() for file in files] == [b"old a", b"new", b"new"]
    assert not desk.kept[checkpoint.id].restored
    assert (await desk.restore(checkpoint)).restored == ("b", "c")
    assert desk.kept[checkpoint.id].restored


async def test_the_later_of_two_concurrent_restores_finds_nothing_to_do(desk: Desk) -> None:
    file, new_file = desk.folder / "a", desk.folder / "b"
    file.write_bytes(b"old")
    checkpoint = await desk.call("a", "b", does=lambda: (file.write_bytes(b"new"), new_file.write_bytes(b"new")))
    workspace = Meddled(desk.folder)

    def puts_back() -> None:
        new_file.unlink(missing_ok=True)
        file.write_bytes(b"old")

    workspace.meddle = puts_back
    late = await desk.checkpointer_for(workspace).restore(checkpoint)
    assert (late.restored, late.skipped, late.saved) == ((), (), None)
    assert desk.kept[checkpoint.id].restored


async def test_a_file_restored_by_another_program_while_it_is_saved_is_compared_again(desk: Desk) -> None:
    file = desk.folder / "a"
    file.write_bytes(b"old")
    checkpoint = await desk.call("a", does=lambda: file.write_bytes(b"new"))
    look_first = desk.checkpointer_for(PutBack(desk.folder))
    late = await look_first.restore(checkpoint)
    assert (late.restored, late.skipped, late.saved) == ((), (), None)


class PutBack(Workspace):
    """A workspace in which another program restores the file right after it was first read."""

    reads = 0

    @contextlib.contextmanager
    def open_for_reading(self, path: WorkspacePath) -> Generator[BinaryIO]:
        with super().open_for_reading(path) as file:
            yield file
        self.reads += 1

    def stat(self, path: WorkspacePath) -> os.stat_result | None:
        if self.reads == 1 and path.parts == ("a",):
            self.reads, info = 2, super().stat(path)
            (self.folder / "a").write_bytes(b"old")
            return info
        return super().stat(path)


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="no extended attributes")
async def test_extended_attributes_stay(desk: Desk) -> None:
    file = desk.folder / "a"
    file.write_bytes(b"old")
    os.setxattr(file, "user.note", b"hers")
    checkpoint = await desk.call("a", does=lambda: file.write_bytes(b"new"))
    await desk.restore(checkpoint)
    assert (file.read_bytes(), os.getxattr(file, "user.note")) == (b"old", b"hers")


class Busy(Workspace):
    """A workspace whose files are appended to by somebody else, `times` times, while they are read."""

    times = 0

    @contextlib.contextmanager
    def open_for_reading(self, path: WorkspacePath) -> Generator[BinaryIO]:
        with super().open_for_reading(path) as file:
            yield file
        if self.times:
            self.times -= 1
            with self.folder.joinpath(*path.parts).open("ab") as file:
                file.write(b"+")


async def test_a_file_that_is_written_to_while_it_is_saved_is_read_again(desk: Desk) -> None:
    (desk.folder / "a.log").write_bytes(b"line")
    workspace = Busy(desk.folder)
    workspace.times = 2
    checkpoint = await desk.checkpointer_for(workspace).create_checkpoint("call", "message", ("a.log",))
    assert checkpoint is not None
    assert checkpoint.files[0].before.digest == hashlib.sha256(b"line++").hexdigest()


async def test_a_file_that_never_rests_is_refused_with_a_sentence(desk: Desk) -> None:
    (desk.folder / "a.log").write_bytes(b"line")
    workspace = Busy(desk.folder)
    workspace.times = 1000
    with pytest.raises(ToolFailed, match="being written to by another program"):
        await desk.checkpointer_for(workspace).create_checkpoint("call", "message", ("a.log",))


async def test_a_large_file_is_not_saved_and_restoring_says_so(desk: Desk) -> None:
    file = desk.folder / "large.bin"
    with file.open("wb") as opened:
        opened.truncate(MAX_SAVED_BYTES + 1)
    (desk.folder / "small.txt").write_bytes(b"old")

    def change() -> None:
        file.write_bytes(b"new")
        (desk.folder / "small.txt").write_bytes(b"new")

    checkpoint = await desk.call("large.bin", "small.txt", does=change)
    assert checkpoint.files[0].before == FileState(unread="too_large")
    for ticked in (False, True):
        restored = await desk.restore(checkpoint, ticked=ticked)
        assert restored.failed == ("large.bin",)
        assert sentence_about(restored) == "“large.bin” was larger than 256 MB and not saved."
        assert not restored.checkpoint.restored
    assert file.read_bytes() == b"new"
    assert (desk.folder / "small.txt").read_bytes() == b"old"


async def test_a_file_that_the_call_made_large_stays_as_it_could_not_be_saved_first(desk: Desk) -> None:
    file = desk.folder / "a.bin"
    file.write_bytes(b"old")

    def grow() -> None:
        with file.open("wb") as opened:
            opened.truncate(MAX_SAVED_BYTES + 1)

    checkpoint = await desk.call("a.bin", does=grow)
    for ticked in (False, True):
        restored = await desk.restore(checkpoint, ticked=ticked)
        assert restored.failed == ("a.bin",)
        assert "is larger than 256 MB now" in sentence_about(restored)
    assert file.stat().st_size == MAX_SAVED_BYTES + 1


async def test_a_pipe_holds_nothing_up_and_is_left_alone(desk: Desk) -> None:
    os.mkfifo(desk.folder / "pipe")
    checkpoint = await desk.call("pipe", does=(desk.folder / "pipe").unlink)
    restored = await desk.restore(checkpoint)
    assert sentence_about(restored) == "“pipe” was not an ordinary file, so it was not saved."


async def test_a_name_that_is_no_unicode_survives_and_can_be_shown(desk: Desk) -> None:
    name = os.fsdecode(b"\xff")
    (desk.folder / name).mkdir()
    (desk.folder / "link").symlink_to(name)
    file = desk.folder / name / "a.txt"
    file.write_bytes(b"old")
    checkpoint = await desk.call("link/a.txt", does=lambda: file.write_bytes(b"new"))
    restored = await desk.restore(checkpoint)
    assert file.read_bytes() == b"old"
    assert all(path.encode() for path in restored.restored)


async def test_a_lost_blob_is_reported_and_the_other_files_come_back(desk: Desk) -> None:
    for name in ("a", "b"):
        (desk.folder / name).write_bytes(f"old {name}".encode())

    def edit() -> None:
        for name in ("a", "b"):
            (desk.folder / name).write_bytes(b"new")

    checkpoint = await desk.call("a", "b", does=edit)
    desk.blobs.remove_all_but({hashlib.sha256(b"old b").hexdigest()})
    restored = await desk.restore(checkpoint)
    assert (restored.failed, restored.restored) == (("a",), ("b",))
    assert sentence_about(restored) == "A saved file is missing from the data folder."
    assert (desk.folder / "a").read_bytes() == b"new"


async def test_a_folder_that_is_gone_is_said_and_nothing_is_made_in_its_place(desk: Desk) -> None:
    (desk.folder / "a.txt").write_bytes(b"old")
    checkpoint = await desk.call("a.txt", "b.txt", does=lambda: (desk.folder / "a.txt").write_bytes(b"new"))
    shutil.rmtree(desk.folder)
    with pytest.raises(ToolFailed, match="is not there any more"):
        await desk.checkpointer.create_checkpoint("call", "message", ("a.txt",))
    restored = await desk.checkpointer.restore(checkpoint, desk.consent(checkpoint))
    assert restored.failed == ("a.txt", "b.txt")
    assert all("is not there any more" in str(skipped.why) for skipped in restored.skipped)
    assert not desk.folder.exists()


async def test_a_call_that_takes_the_whole_folder_away_still_ends(desk: Desk) -> None:
    (desk.folder / "a.txt").write_bytes(b"old")
    checkpoint = await desk.call("a.txt", does=lambda: shutil.rmtree(desk.folder))
    assert checkpoint.files[0].after is None
    desk.folder.mkdir()
    assert (await desk.restore(checkpoint)).conflicts == ("a.txt",)
    assert (await desk.restore(checkpoint, ticked=True)).restored == ("a.txt",)


async def test_a_checkpoint_of_another_folder_is_not_restored(desk: Desk, tmp_path: Path) -> None:
    checkpoint = await desk.call("a.txt", does=lambda: (desk.folder / "a.txt").write_bytes(b"new"))
    (tmp_path / "other").mkdir()
    with pytest.raises(WrongUse, match="another folder"):
        await desk.checkpointer_for(Workspace(tmp_path / "other")).restore(checkpoint)


async def test_a_cancelled_call_is_noted_all_the_same(desk: Desk) -> None:
    file = desk.folder / "a.txt"
    file.write_bytes(b"old")
    checkpoint = await desk.checkpointer.create_checkpoint("call", "message", ("a.txt",))
    assert checkpoint is not None
    file.write_bytes(b"new")
    noting = asyncio.create_task(desk.checkpointer.complete_checkpoint(checkpoint))
    await asyncio.sleep(0)
    noting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await noting
    assert desk.kept[checkpoint.id].files[0].after is not None
    assert (await desk.restore(checkpoint)).restored == ("a.txt",)


async def test_a_cancelled_saving_leaves_no_checkpoint(desk: Desk) -> None:
    (desk.folder / "a.txt").write_bytes(b"old")
    saving = asyncio.create_task(desk.checkpointer.create_checkpoint("call", "message", ("a.txt",)))
    await asyncio.sleep(0)
    saving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await saving
    assert desk.kept == {}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte."""
    mount, unmount = shutil.which("mount"), shutil.which("umount")
    if os.geteuid() != 0 or not mount or not unmount:
        pytest.skip("mounting a small file system needs root and mount")
    folder = tmp_path / "small"
    folder.mkdir()
    if subprocess.run([mount, "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], check=False).returncode != 0:
        pytest.skip("this machine lets nobody mount a file system")
    yield folder
    subprocess.run([unmount, "-l", str(folder)], check=True)


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def remount_read_only(folder: Path) -> None:
    subprocess.run([shutil.which("mount") or "", "-o", "remount,ro", str(folder)], check=True)


async def test_a_full_disk_leaves_what_is_there_and_restoring_again_helps(small_disk: Path, tmp_path: Path) -> None:
    desk = Desk(tmp_path, Workspace(small_disk))
    (small_disk / "a.bin").write_bytes(b"o" * 600_000)
    checkpoint = await desk.call("a.bin", does=lambda: (small_disk / "a.bin").write_bytes(b"new"))
    (small_disk / "filler").write_bytes(b"f" * 700_000)
    restored = await desk.restore(checkpoint)
    assert restored.failed == ("a.bin",)
    assert sentence_about(restored) == "The disk is full; “a.bin” was not written."
    assert names_in(small_disk) == ["a.bin", "filler"]
    assert (small_disk / "a.bin").read_bytes() == b"new"
    (small_disk / "filler").unlink()
    assert (await desk.restore(checkpoint)).restored == ("a.bin",)
    assert (small_disk / "a.bin").read_bytes() == b"o" * 600_000


async def test_a_full_data_folder_keeps_the_call_from_starting(small_disk: Path, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work/a.bin").write_bytes(os.urandom(2_000_000))
    desk = Desk(small_disk, Workspace(tmp_path / "work"))
    with pytest.raises(DiskFull):
        await desk.checkpointer.create_checkpoint("call", "message", ("a.bin",))
    assert desk.kept == {}


async def test_a_disk_that_can_only_be_read_is_said(small_disk: Path, tmp_path: Path) -> None:
    desk = Desk(tmp_path, Workspace(small_disk))
    (small_disk / "a.txt").write_bytes(b"old")

    def change() -> None:
        (small_disk / "a.txt").write_bytes(b"new")
        (small_disk / "b.txt").write_bytes(b"new")

    checkpoint = await desk.call("a.txt", "b.txt", does=change)
    remount_read_only(small_disk)
    restored = await desk.restore(checkpoint)
    assert set(restored.failed) == {"a.txt", "b.txt"}
    assert all("is on a read-only disk" in str(skipped.why) for skipped in restored.skipped)


@pytest.fixture
def as_nobody() -> Iterator[Path]:
    """A folder of a user without rights; the test runs as that user."""
    folder = Path(tempfile.mkdtemp(prefix="checkpoints-"))
    folder.chmod(0o777)
    was_root = os.geteuid() == 0
    if was_root:
        os.seteuid(NOBODY)
    try:
        yield folder
    finally:
        if was_root:
            os.seteuid(0)
        for path in folder.rglob("*"):
            path.chmod(0o700)
        shutil.rmtree(folder)


async def test_a_file_that_may_not_be_read_is_not_saved_and_restoring_says_so(as_nobody: Path) -> None:
    (as_nobody / "work").mkdir()
    desk = Desk(as_nobody, Workspace(as_nobody / "work"))
    file = desk.folder / "a.txt"
    file.write_bytes(b"secret")
    file.chmod(0)
    checkpoint = await desk.call("a.txt", does=file.unlink)
    assert checkpoint.files[0].before == FileState(unread="not_permitted")
    restored = await desk.restore(checkpoint)
    assert sentence_about(restored) == "“a.txt” could not be read before the call, so it was not saved."


async def test_a_folder_that_may_not_be_written_to_is_said(as_nobody: Path) -> None:
    (as_nobody / "work/inner").mkdir(parents=True)
    desk = Desk(as_nobody, Workspace(as_nobody / "work"))
    file = desk.folder / "inner/a.txt"
    file.write_bytes(b"old")
    checkpoint = await desk.call("inner/a.txt", does=lambda: file.write_bytes(b"new"))
    file.parent.chmod(0o555)
    restored = await desk.restore(checkpoint)
    assert sentence_about(restored) == "The system does not permit access to “inner/a.txt”."
    assert file.read_bytes() == b"new"


async def test_the_event_loop_goes_on_while_a_file_is_saved(desk: Desk) -> None:
    (desk.folder / "a.bin").write_bytes(b"x" * 4_000_000)
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    await desk.checkpointer.create_checkpoint("call", "message", ("a.bin",))
    counting.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await counting
    assert turns > 100


HAS_ATTRIBUTES = pytest.mark.skipif(not hasattr(os, "setxattr"), reason="no extended attributes")


def attributes_of(path: Path) -> dict[str, bytes]:
    return {name: os.getxattr(path, name) for name in os.listxattr(path) if name.startswith("user.")}


@HAS_ATTRIBUTES
async def test_a_file_that_comes_back_has_its_attributes(desk: Desk) -> None:
    path = desk.folder / "a"
    path.write_text("as it was")
    os.setxattr(path, "user.note", b"hers\xff")
    deleted = await desk.call("a", does=path.unlink)
    assert (await desk.restore(deleted)).restored == ("a",)
    assert attributes_of(path) == {"user.note": b"hers\xff"}


@HAS_ATTRIBUTES
async def test_a_restored_file_has_its_old_attributes_and_those_added_since(desk: Desk) -> None:
    def replace() -> None:
        path.unlink()
        path.write_text("new")
        os.setxattr(path, "user.note", b"the call's")
        os.setxattr(path, "user.added", b"x")

    path = desk.folder / "a"
    path.write_text("as it was")
    os.setxattr(path, "user.note", b"hers")
    report = await desk.restore(await desk.call("a", does=replace))
    assert path.read_text() == "as it was"
    assert attributes_of(path) == {"user.note": b"hers", "user.added": b"x"}
    # A redo restores the attributes that the call had left.
    assert report.saved is not None
    await desk.restore(report.saved)
    assert path.read_text() == "new"
    assert attributes_of(path) == {"user.note": b"the call's", "user.added": b"x"}


@HAS_ATTRIBUTES
async def test_attributes_alone_are_no_change(desk: Desk) -> None:
    path = desk.folder / "a"
    path.write_text("as it was")
    checkpoint = await desk.call("a", does=lambda: path.write_text("new"))
    os.setxattr(path, "user.note", b"mine, since")
    restored = await desk.restore(checkpoint)
    assert (restored.restored, restored.conflicts) == (("a",), ())
    assert attributes_of(path) == {"user.note": b"mine, since"}


@HAS_ATTRIBUTES
async def test_attributes_that_were_damaged_on_disk_leave_the_bytes(desk: Desk) -> None:
    path = desk.folder / "a"
    path.write_text("as it was")
    os.setxattr(path, "user.note", b"hers")
    deleted = await desk.call("a", does=path.unlink)
    (file,) = deleted.files
    damaged = file.model_copy(update={"attributes": (("user.note", "no base64!"), ("security.x", "eA=="))})
    desk.kept[deleted.id] = deleted.model_copy(update={"files": (damaged,)})
    assert (await desk.restore(deleted)).restored == ("a",)
    assert path.read_text() == "as it was"
    assert attributes_of(path) == {}


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
async def test_a_file_that_comes_back_has_its_owner_where_we_may(desk: Desk) -> None:
    path = desk.folder / "a"
    path.write_text("as it was")
    os.chown(path, NOBODY, NOBODY)
    path.chmod(0o640)
    await desk.restore(await desk.call("a", does=path.unlink))
    info = path.stat()
    assert (info.st_uid, info.st_gid, mode_of(path)) == (NOBODY, NOBODY, 0o640)


@pytest.mark.parametrize(
    ("before", "after", "lines", "kind"),
    [
        (None, b"a\nb\n", (2, 0), "created"),
        (b"a\nb\nc\n", b"a\nx\nc\n", (1, 1), "changed"),
        (b"a\nb\n", None, (0, 2), "deleted"),
        (b"a\n", b"a\n", (0, 0), ""),
        ("ä\n".encode("latin-1"), b"a\n", (1, 1), "changed"),
        ("a\nb\n".encode("utf-16"), "a\nč\nb\n".encode("utf-16"), (1, 0), "changed"),
        (None, "a\nb\n".encode("utf-16"), (2, 0), "created"),
        (b"a\0", b"b\0", None, "changed"),
        (b"a" * 3_000_000, b"b", None, "changed"),
        (b"b", b"a" * 3_000_000, None, "changed"),
    ],
    ids=["new", "changed", "deleted", "same", "latin-1", "UTF-16", "new in UTF-16", "binary", "was long", "is long"],
)
async def test_what_a_call_changed_is_counted_in_lines(
    desk: Desk, before: bytes | None, after: bytes | None, lines: tuple[int, int] | None, kind: str
) -> None:
    file = desk.folder / "a"
    if before is not None:
        file.write_bytes(before)
    checkpoint = await desk.call("a", does=file.unlink if after is None else lambda: file.write_bytes(after))
    expected = {"created": (), "changed": (), "deleted": (), **({kind: ("a",)} if kind else {})}
    assert checkpoint.changes == FileChanges(**expected, count=len(kind) > 0, lines=lines)
    assert checkpoint.has_effect is (before != after)
    assert desk.kept[checkpoint.id].lines == lines
