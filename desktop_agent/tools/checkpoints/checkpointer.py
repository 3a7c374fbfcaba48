"""Save files before a call changes them, and restore a checkpoint."""

import codecs
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Protocol

from desktop_agent.processes.worker_threads import CancelToken, run_in_thread, runs_to_its_end
from desktop_agent.tools.checkpoints.restore import CheckpointRestore, RedoSaver, existing_folders, missing_folders
from desktop_agent.tools.checkpoints.restore_steps import ReplaceConsent, SkippedFile
from desktop_agent.tools.checkpoints.snapshots import parse_saved_path, saved_file, saved_path, take_snapshot
from desktop_agent.tools.workspace import Workspace, WorkspacePath
from desktop_agent.types.blocks import JsonObject
from desktop_agent.types.checkpoints import Checkpoint, FileState, SavedFile
from desktop_agent.types.errors import ToolFailed, WrongUse
from desktop_agent.types.messages import new_id, now


class BlobStore(Protocol):
    """Bytes stored by their SHA-256. Both methods raise StorageFailed."""

    async def put(self, data: bytes) -> str:
        """Store bytes, durable on return; return the digest in hexadecimal."""
        ...

    async def get(self, digest: str) -> bytes:
        """Return the bytes, checked."""
        ...


@dataclass(frozen=True, slots=True)
class RestoreReport:
    """What a restore did. Files that were as before already appear nowhere.

    `saved` is the checkpoint of what was replaced: restoring that reverts this restore. None where nothing was.
    `produced` as in CheckpointRestore. `is_new_undo`: what the call did beyond files was undone just now, and not by an
    earlier restore.
    """

    checkpoint: Checkpoint
    restored: tuple[str, ...] = ()
    skipped: tuple[SkippedFile, ...] = ()
    is_new_undo: bool = False
    saved: Checkpoint | None = None
    produced: Mapping[str, FileState] = field(default_factory=dict[str, FileState])

    @property
    def conflicts(self) -> tuple[str, ...]:
        """Files that were changed since the call."""
        return tuple(file.path for file in self.skipped if file.is_conflict)

    @property
    def failed(self) -> tuple[str, ...]:
        """Files that could not be restored: never saved, or the disk refused."""
        return tuple(file.path for file in self.skipped if not file.is_conflict and not file.is_undo)

    @property
    def undone(self) -> str:
        """What the tool reported when it undid what the call did beyond files."""
        return self.checkpoint.undo_said or ""

    @property
    def not_undone(self) -> str:
        """Why the tool did not undo that."""
        return next((str(skipped.why) for skipped in self.skipped if skipped.is_undo), "")


_MAX_COUNTED_BYTES = 2_000_000
"""The size up to which the changed lines of a file are counted."""


class Checkpointer:
    """Saves files of a workspace before a call changes them, and restores them.

    `save_checkpoint` writes a checkpoint durably. Without a workspace it saves no files, only what a tool needs to undo
    a call.
    """

    def __init__(
        self,
        workspace: Workspace | None,
        blobs: BlobStore,
        save_checkpoint: Callable[[Checkpoint], Awaitable[None]],
        conversation_id: str,
        caller: tuple[str, str] = ("", ""),
    ) -> None:
        self._workspace = workspace
        self._blobs = blobs
        self._save_checkpoint = save_checkpoint
        self._conversation_id = conversation_id
        self._caller = caller
        self._before: dict[str, dict[str, bytes]] = {}
        """By checkpoint, until its call has ended: the files that are small enough to have their lines counted."""

    def nested(self, message_id: str, tool_use_id: str) -> "Checkpointer":
        """Return a checkpointer for what works for this call; of nested calls the outermost counts."""
        caller = self._caller if any(self._caller) else (message_id, tool_use_id)
        return Checkpointer(self._workspace, self._blobs, self._save_checkpoint, self._conversation_id, caller)

    async def create_checkpoint(
        self,
        tool_use_id: str,
        message_id: str,
        paths: tuple[str, ...],
        *,
        tool: str = "",
        arguments: JsonObject | None = None,
    ) -> Checkpoint | None:
        """Save these files, durably; None when there is nothing to save.

        `tool` is the identity of the tool, `arguments` are what will run, where the tool can undo it. Raises
        OutsideWorkspace, ToolFailed and StorageFailed: the call must not start then.
        """
        workspace = self._workspace
        places = () if workspace is None else await run_in_thread(lambda _token: _locate_all(workspace, paths))
        if not places and arguments is None:
            return None
        before: dict[str, bytes] = {}
        checkpoint = Checkpoint(
            id=new_id(),
            conversation_id=self._conversation_id,
            tool_use_id=tool_use_id,
            message_id=message_id,
            workspace=self._folder,
            created_at=now(),
            files=()
            if workspace is None
            else tuple([await self._save_file(workspace, place, before) for place in places]),
            new_folders=()
            if workspace is None
            else await run_in_thread(lambda _token: missing_folders(workspace, places)),
            tool=tool,
            input=arguments,
            caller_message_id=self._caller[0],
            caller_tool_use_id=self._caller[1],
        )
        await self._save_checkpoint(checkpoint)
        self._before[checkpoint.id] = before
        return checkpoint

    @runs_to_its_end
    async def complete_checkpoint(self, checkpoint: Checkpoint, *, succeeded: bool | None = None) -> Checkpoint:
        """Record how the call left the files, whatever its outcome. Finishes even when cancelled.

        `succeeded` None: whether it took effect is not known. Raises StorageFailed; it is then not known how the call
        left them.
        """
        updated, workspace = checkpoint.model_copy(update={"succeeded": succeeded}), self._workspace
        before = self._before.pop(checkpoint.id, {})
        if workspace is not None:
            files = [
                await run_in_thread(partial(_file_after_call, workspace, file, before.get(file.path)))
                for file in checkpoint.files
            ]
            folders = await run_in_thread(lambda _token: existing_folders(workspace, checkpoint.new_folders))
            updated = updated.model_copy(update={"files": tuple(files), "new_folders": folders})
        await self._save_checkpoint(updated)
        return updated

    async def restore(
        self,
        checkpoint: Checkpoint,
        consent: ReplaceConsent = MappingProxyType({}),
        *,
        older: Sequence[Checkpoint] = (),
        note_id: str = "",
    ) -> RestoreReport:
        """Restore the files that are still as the call left them, saving first what is there. Twice equals once.

        `older` ones of the same folder are restored right after it, newest first. `note_id` goes into the checkpoint of
        what is there. Raises StorageFailed when that could not be saved, and no file was touched, or when files were
        restored but it could not be noted.
        """
        if checkpoint.workspace != self._folder:
            raise WrongUse("This checkpoint belongs to another folder.")
        if self._workspace is None:
            updated = checkpoint.model_copy(update={"restored": not checkpoint.needs_undo})
            await self._save_if_changed(checkpoint, updated)
            return RestoreReport(updated)
        redo_saver = RedoSaver(self._workspace, self._blobs.put, self._save_checkpoint, note_id)
        restore = CheckpointRestore(self._workspace, checkpoint, self._blobs.get, consent, redo_saver, older)
        updated = await restore.run()
        await self._save_if_changed(checkpoint, updated)
        paths = tuple(str(step.place) for step in restore.restored_steps)
        saved = restore.saved if restore.saved is not None and restore.saved.files else None
        return RestoreReport(updated, paths, tuple(restore.skipped), saved=saved, produced=restore.produced)

    @property
    def _folder(self) -> str:
        return "" if self._workspace is None else str(self._workspace.folder)

    async def _save_if_changed(self, before: Checkpoint, updated: Checkpoint) -> None:
        if updated != before:
            await self._save_checkpoint(updated)

    async def _save_file(self, workspace: Workspace, place: WorkspacePath, before: dict[str, bytes]) -> SavedFile:
        snapshot = await run_in_thread(lambda token: take_snapshot(workspace, place, token, with_data=True))
        if snapshot.data is not None:
            await self._blobs.put(snapshot.data)
        data = b"" if snapshot.state == FileState() else snapshot.data
        if data is not None and len(data) <= _MAX_COUNTED_BYTES:
            before[saved_path(place)] = data
        return saved_file(saved_path(place), snapshot)


def _locate_all(workspace: Workspace, paths: Iterable[str]) -> tuple[WorkspacePath, ...]:
    """Locate each place once; not the workspace itself, which no call can write to."""
    places = dict.fromkeys(workspace.locate(path) for path in paths)
    return tuple(place for place in places if place.parts)


def _file_after_call(workspace: Workspace, file: SavedFile, before: bytes | None, token: CancelToken) -> SavedFile:
    try:
        snapshot = take_snapshot(workspace, parse_saved_path(file.path), token, with_data=before is not None)
    except ToolFailed:
        return file  # not known: restoring will ask
    after = b"" if snapshot.state == FileState() else snapshot.data
    lines = None if before is None or after is None else _changed_lines(before, after)
    return file.model_copy(update={"after": snapshot.state, "lines": lines})


def _changed_lines(before: bytes, after: bytes) -> tuple[int, int] | None:
    """Return how many lines were added and removed; None for what is no text, or too long."""
    from desktop_agent.types.line_diff import count_changes

    old, new = _decode_lines(before), _decode_lines(after)
    return None if len(after) > _MAX_COUNTED_BYTES or old is None or new is None else count_changes(old, new)


def _decode_lines(data: bytes) -> str | None:
    """Return a text with as many lines as the file; None for what is no text."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", "replace")
    # Any bytes are Latin-1, and lines are counted alike in every encoding that has ASCII in it.
    return None if b"\0" in data else data.decode("latin-1")
