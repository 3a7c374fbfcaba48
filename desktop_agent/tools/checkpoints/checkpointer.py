"""Save files before a call changes them, and restore a checkpoint; a restore saves first, so that it can be redone."""

import codecs
import stat
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from desktop_agent.processes.worker_threads import CancelToken, run_in_thread, runs_to_its_end
from desktop_agent.tools.checkpoints.snapshots import (
    ChangedSinceSnapshot,
    FileSnapshot,
    ReplaceConsent,
    RestoreStep,
    SkippedFile,
    clear_path,
    is_replacing_allowed,
    is_same_state,
    parse_saved_path,
    plan_step,
    remove_leftovers,
    restore_path,
    saved_file,
    saved_path,
    skipped_because,
    take_snapshot,
    temporary_prefix,
)
from desktop_agent.tools.workspace import Workspace, WorkspacePath
from desktop_agent.types.blocks import JsonObject
from desktop_agent.types.checkpoints import Checkpoint, FileState, SavedFile
from desktop_agent.types.errors import StorageFailed, ToolFailed, WrongUse
from desktop_agent.types.line_diff import count_changes
from desktop_agent.types.messages import new_id, now


@dataclass(frozen=True, slots=True)
class RedoSaver:
    """Saves what a restore is about to replace. `put` stores bytes and `save_checkpoint` writes a checkpoint, both
    durably.

    `note_id` as in Checkpoint.
    """

    workspace: Workspace
    put: Callable[[bytes], Awaitable[str]]
    save_checkpoint: Callable[[Checkpoint], Awaitable[None]]
    note_id: str = ""

    async def save(
        self, checkpoint: Checkpoint, steps: Sequence[RestoreStep]
    ) -> tuple[Checkpoint | None, list[RestoreStep], list[tuple[RestoreStep, ToolFailed]]]:
        """Save what these steps would change; return the checkpoint, the steps to take, and why others are skipped.

        What may be replaced although it cannot be saved is in no checkpoint. Raises StorageFailed: then no step may be
        taken.
        """
        files: list[SavedFile] = []
        allowed: list[RestoreStep] = []
        skipped: list[tuple[RestoreStep, ToolFailed]] = []
        for step in steps:
            try:
                snapshot = await run_in_thread(partial(self._unchanged_snapshot, step))
            except ToolFailed as error:
                skipped.append((step, error))
                continue
            if snapshot.data is not None:
                await self.put(snapshot.data)
            allowed.append(step)
            if snapshot.state.unread in {None, "folder"}:
                # The expected state, so that a change by others is noticed after a crash, too.
                files.append(saved_file(step.file.path, snapshot, step.file.before))
        if not files:
            return None, allowed, skipped
        saved = Checkpoint(
            id=new_id(),
            conversation_id=checkpoint.conversation_id,
            tool_use_id=checkpoint.tool_use_id,
            message_id=checkpoint.message_id,
            workspace=checkpoint.workspace,
            created_at=checkpoint.created_at,
            files=tuple(files),
            new_folders=await run_in_thread(
                lambda _token: missing_folders(self.workspace, [step.place for step in allowed])
            ),
            caller_message_id=checkpoint.caller_message_id,
            caller_tool_use_id=checkpoint.caller_tool_use_id,
            undoes=checkpoint.id,
            is_redo=not checkpoint.is_redo,
            note_id=self.note_id,
        )
        await self.save_checkpoint(saved)
        return saved, allowed, skipped

    async def finish(
        self, saved: Checkpoint, done: Collection[str], untouched: Collection[str], folders: tuple[str, ...]
    ) -> Checkpoint:
        """Keep in the checkpoint only files that the restore changed: `done` certainly were, `untouched` were not.

        `folders` are those that it made. Raises StorageFailed.
        """
        doubtful = [file for file in saved.files if file.path not in untouched]
        files = await run_in_thread(
            lambda token: tuple(file for file in doubtful if self._is_changed(file, done, token))
        )
        updated = saved.model_copy(update={"files": files, "new_folders": folders})
        if updated != saved:
            await self.save_checkpoint(updated)
        return updated

    def _unchanged_snapshot(self, step: RestoreStep, token: CancelToken) -> FileSnapshot:
        snapshot = take_snapshot(self.workspace, step.place, token, with_data=True)
        if (snapshot.stamp, snapshot.state) != (step.now.stamp, step.now.state):
            raise ChangedSinceSnapshot(step.place)
        return snapshot

    def _is_changed(self, file: SavedFile, done: Collection[str], token: CancelToken) -> bool:
        if file.path in done:
            return True
        with suppress(ToolFailed):
            # A step that failed may have taken effect all the same.
            return take_snapshot(self.workspace, parse_saved_path(file.path), token).state == file.after
        return True


def missing_folders(workspace: Workspace, places: Iterable[WorkspacePath]) -> tuple[str, ...]:
    """Return the folders on the way to these places that do not exist yet."""
    folders = dict.fromkeys(
        WorkspacePath(place.parts[:count]) for place in places for count in range(1, len(place.parts))
    )
    return tuple(saved_path(folder) for folder in folders if workspace.stat(folder) is None)


class CheckpointRestore:
    """One restore of a checkpoint. `restored_steps` and `skipped` report the files that were not as before the call.

    `saved` is the checkpoint of what it changed, None where that is nothing.
    """

    def __init__(
        self,
        workspace: Workspace,
        checkpoint: Checkpoint,
        read: Callable[[str], Awaitable[bytes]],
        consent: ReplaceConsent,
        redo_saver: RedoSaver,
    ) -> None:
        self._workspace = workspace
        self._checkpoint = checkpoint
        self._read = read
        self._consent = consent
        self._redo_saver = redo_saver
        self.saved: Checkpoint | None = None
        self.restored_steps: list[RestoreStep] = []
        self.skipped: list[SkippedFile] = []
        # Paths that were as before the call already: somebody else restored them, or an earlier restore did.
        self._as_before: set[str] = set()

    async def run(self) -> Checkpoint:
        """Restore; return the checkpoint as it is to be saved.

        Raises StorageFailed when nothing was done, or when `saved` could not be written.
        """
        await run_in_thread(lambda _token: remove_leftovers(self._workspace, self._checkpoint))
        self.saved, steps, refused = await self._redo_saver.save(self._checkpoint, await self._plan_steps())
        for step, error in refused:
            await self._skip(step, error)
        ended = await self._clear(steps)
        await self._fill([step for step in steps if step not in ended])
        if self.saved is not None:
            folders = self.saved.new_folders
            existing = await run_in_thread(lambda _token: existing_folders(self._workspace, folders))
            done = [step.file.path for step in self.restored_steps]
            self.saved = await self._redo_saver.finish(self.saved, done, self._as_before, existing)
        return await run_in_thread(self._updated_checkpoint)

    async def _plan_steps(self) -> list[RestoreStep]:
        steps: list[RestoreStep] = []
        for file in self._checkpoint.files:
            step = await run_in_thread(partial(self._plan_step, file))
            if isinstance(step, RestoreStep):
                steps.append(step)
            elif step is None:
                self._as_before.add(file.path)
            else:
                self.skipped.append(step)
        return steps

    def _plan_step(self, file: SavedFile, token: CancelToken) -> RestoreStep | SkippedFile | None:
        return plan_step(self._workspace, file, token, self._consent)

    async def _clear(self, steps: list[RestoreStep]) -> list[RestoreStep]:
        """Remove what was not there before, innermost first; return the steps that end with that, done or failed."""
        in_the_way = {step.file.path: step for step in steps if not step.wants_file}
        ended: list[RestoreStep] = []
        for path in sorted({*in_the_way, *self._new_folders()}, key=_depth, reverse=True):
            step = in_the_way.get(path)
            if step is None:
                await run_in_thread(partial(self._remove_new_folder, path))
            elif not await self._attempt(step, run_in_thread(partial(self._clear_one, step))):
                ended.append(step)
            elif not step.wants_folder:
                ended.append(step)
                self.restored_steps.append(step)
        return ended

    def _clear_one(self, step: RestoreStep, _token: CancelToken) -> None:
        clear_path(self._workspace, step)

    def _new_folders(self) -> tuple[str, ...]:
        """Return the folders that the call certainly made, or all that were not there before it."""
        is_known = all(
            file.after is not None or is_replacing_allowed(self._consent, file.path) for file in self._checkpoint.files
        )
        return self._checkpoint.new_folders if is_known or self._consent is True else ()

    def _remove_new_folder(self, path: str, _token: CancelToken) -> None:
        # A folder with something in it stays.
        with suppress(ToolFailed):
            self._workspace.remove_folder(parse_saved_path(path))

    async def _fill(self, steps: list[RestoreStep]) -> None:
        for step in sorted(steps, key=lambda step: _depth(step.file.path)):
            if await self._attempt(step, self._fill_one(step)):
                self.restored_steps.append(step)

    async def _fill_one(self, step: RestoreStep) -> None:
        digest = step.file.before.digest
        data = await self._read(digest) if digest is not None else b""
        prefix = temporary_prefix(self._checkpoint.id)
        await run_in_thread(lambda _token: restore_path(self._workspace, step, data, prefix))

    async def _attempt(self, step: RestoreStep, action: Awaitable[None]) -> bool:
        try:
            await action
        except (ToolFailed, StorageFailed) as error:
            await self._skip(step, error)
            return False
        return True

    async def _skip(self, step: RestoreStep, error: ToolFailed | StorageFailed) -> None:
        # Another program may have restored it meanwhile.
        changed = isinstance(error, ChangedSinceSnapshot) or isinstance(error.__cause__, FileNotFoundError)
        if changed and await run_in_thread(partial(self._plan_step, step.file)) is None:
            self._as_before.add(step.file.path)
        else:
            self.skipped.append(skipped_because(step.file.path, error))

    def _updated_checkpoint(self, _token: CancelToken) -> Checkpoint:
        """Return the checkpoint, in which the state before the call is now expected of the restored files."""
        done = {step.file.path for step in self.restored_steps} | self._as_before
        files = tuple(
            file.model_copy(update={"after": file.before}) if file.path in done else file
            for file in self._checkpoint.files
        )
        return self._checkpoint.model_copy(
            update={
                "files": files,
                "new_folders": existing_folders(self._workspace, self._checkpoint.new_folders),
                "restored": not self._checkpoint.needs_undo
                and all(is_same_state(file.before, file.after) for file in files),
            }
        )


def _depth(path: str) -> int:
    return path.count("/")


def existing_folders(workspace: Workspace, folders: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of these places that are folders."""
    existing: list[str] = []
    for path in folders:
        with suppress(ToolFailed):
            status = workspace.stat(parse_saved_path(path))
            if status is not None and stat.S_ISDIR(status.st_mode):
                existing.append(path)
    return tuple(existing)


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
    `is_new_undo`: what the call did beyond files was undone just now, and not by an earlier restore.
    """

    checkpoint: Checkpoint
    restored: tuple[str, ...] = ()
    skipped: tuple[SkippedFile, ...] = ()
    is_new_undo: bool = False
    saved: Checkpoint | None = None

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
        self, checkpoint: Checkpoint, *, even_if_changed: ReplaceConsent = False, note_id: str = ""
    ) -> RestoreReport:
        """Restore the files that are still as the call left them, saving first what is there. Twice equals once.

        `even_if_changed` also replaces those that were changed since: all, or those that are still as it says, by their
        paths in the checkpoint. `note_id` goes into the checkpoint of what is there. Raises StorageFailed when that
        could not be saved, and no file was touched, or when files were restored but it could not be noted.
        """
        if checkpoint.workspace != self._folder:
            raise WrongUse("This checkpoint belongs to another folder.")
        if self._workspace is None:
            updated = checkpoint.model_copy(update={"restored": not checkpoint.needs_undo})
            await self._save_if_changed(checkpoint, updated)
            return RestoreReport(updated)
        redo_saver = RedoSaver(self._workspace, self._blobs.put, self._save_checkpoint, note_id)
        restore = CheckpointRestore(self._workspace, checkpoint, self._blobs.get, even_if_changed, redo_saver)
        updated = await restore.run()
        await self._save_if_changed(checkpoint, updated)
        paths = tuple(str(step.place) for step in restore.restored_steps)
        saved = restore.saved if restore.saved is not None and restore.saved.files else None
        return RestoreReport(updated, paths, tuple(restore.skipped), saved=saved)

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
    old, new = _decode_lines(before), _decode_lines(after)
    return None if len(after) > _MAX_COUNTED_BYTES or old is None or new is None else count_changes(old, new)


def _decode_lines(data: bytes) -> str | None:
    """Return a text with as many lines as the file; None for what is no text."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", "replace")
    # Any bytes are Latin-1, and lines are counted alike in every encoding that has ASCII in it.
    return None if b"\0" in data else data.decode("latin-1")
