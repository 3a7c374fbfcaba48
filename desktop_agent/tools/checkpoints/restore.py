"""Restore a checkpoint, saving first what is there, so that it can be redone."""

import hashlib
import re
import stat
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from desktop_agent.processes.worker_threads import CancelToken, run_in_thread
from desktop_agent.tools.checkpoints.restore_preview import preview_restore
from desktop_agent.tools.checkpoints.restore_steps import (
    ChangedSinceSnapshot,
    ReplaceConsent,
    RestoreStep,
    SkippedFile,
    clear_path,
    plan_step,
    restore_path,
    skipped_because,
)
from desktop_agent.tools.checkpoints.snapshots import (
    FileSnapshot,
    is_same_state,
    parse_saved_path,
    saved_file,
    saved_path,
    take_snapshot,
)
from desktop_agent.tools.workspace import Workspace, WorkspacePath
from desktop_agent.types.checkpoints import Checkpoint, FileState, SavedFile
from desktop_agent.types.errors import StorageFailed, ToolFailed, WrongUse
from desktop_agent.types.messages import new_id


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

        Raises StorageFailed: then no step may be taken.
        """
        files: list[SavedFile] = []
        folders: dict[str, None] = {}
        allowed: list[RestoreStep] = []
        skipped: list[tuple[RestoreStep, ToolFailed]] = []
        for step in steps:
            try:
                snapshot, missing = await run_in_thread(partial(self._look_again, step))
            except ToolFailed as error:
                skipped.append((step, error))
                continue
            if snapshot.data is not None:
                await self.put(snapshot.data)
            allowed.append(step)
            folders |= dict.fromkeys(missing)
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
            new_folders=tuple(folders),
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

    def _look_again(self, step: RestoreStep, token: CancelToken) -> tuple[FileSnapshot, tuple[str, ...]]:
        """Return the file with its bytes, and the folders that are missing on the way to it. Raises ToolFailed."""
        snapshot = take_snapshot(self.workspace, step.place, token, with_data=True)
        if (snapshot.stamp, snapshot.state) != (step.now.stamp, step.now.state):
            raise ChangedSinceSnapshot(step.place)
        return snapshot, missing_folders(self.workspace, [step.place])

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
    """One restore of a checkpoint, right before that of `older` ones of the same folder.

    `restored_steps` and `skipped` report the files that were not as before the call. `saved` is the checkpoint of what
    it changed, None where that is nothing. `produced` are the states of files and folders that it made itself, by
    their paths in the checkpoint.
    """

    def __init__(
        self,
        workspace: Workspace,
        checkpoint: Checkpoint,
        read: Callable[[str], Awaitable[bytes]],
        consent: ReplaceConsent,
        redo_saver: RedoSaver,
        older: Sequence[Checkpoint],
    ) -> None:
        self._workspace = workspace
        self._checkpoint = checkpoint
        self._read = read
        self._consent = consent
        self._redo_saver = redo_saver
        self._older = older
        self.saved: Checkpoint | None = None
        self.restored_steps: list[RestoreStep] = []
        self.skipped: list[SkippedFile] = []
        self.produced: dict[str, FileState] = {}
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
            self.produced |= dict.fromkeys(existing, FileState(unread="folder"))
        self.produced |= {step.file.path: step.file.before for step in self.restored_steps}
        return await run_in_thread(self._updated_checkpoint)

    async def _plan_steps(self) -> list[RestoreStep]:
        steps: list[RestoreStep] = []
        skipped: dict[str, SkippedFile] = {}
        for file in self._checkpoint.files:
            step = await run_in_thread(partial(self._plan_step, file))
            if isinstance(step, RestoreStep):
                steps.append(step)
            elif step is None:
                self._as_before.add(file.path)
            else:
                skipped[file.path] = step
        if any(file.is_conflict for file in skipped.values()):
            skipped = await run_in_thread(partial(self._settle_conflicts, skipped))
        self.skipped += skipped.values()
        return steps

    def _plan_step(self, file: SavedFile, token: CancelToken) -> RestoreStep | SkippedFile | None:
        try:
            now = take_snapshot(self._workspace, parse_saved_path(file.path), token)
        except ToolFailed as error:
            return skipped_because(file.path, error)
        return plan_step(file, now, may_replace=now.state in self._consent.get(file.path, ()))

    def _settle_conflicts(self, skipped: Mapping[str, SkippedFile], token: CancelToken) -> dict[str, SkippedFile]:
        """Leave as conflicts only those where the person's choice makes a difference in the end."""
        paths = [path for path, file in skipped.items() if file.is_conflict]
        older = [
            checkpoint
            for checkpoint in self._older
            if any(_is_on_the_way(file.path, path) for file in checkpoint.files for path in paths)
        ]
        plain, willing = preview_restore(self._workspace, [self._checkpoint, *older], token)
        remaining: dict[str, SkippedFile] = {}
        for path, file in skipped.items():
            if not file.is_conflict or plain[path].then != willing[path].then:
                remaining[path] = file
            elif (reason := willing[path].skipped) is not None:
                remaining[path] = reason
            else:
                self._as_before.add(path)
        return remaining

    async def _clear(self, steps: list[RestoreStep]) -> list[RestoreStep]:
        """Remove what was not there before, innermost first; return the steps that end with that, done or failed."""
        in_the_way = {step.file.path: step for step in steps if not step.wants_file}
        ended: list[RestoreStep] = []
        for path in sorted({*in_the_way, *self._checkpoint.new_folders}, key=_depth, reverse=True):
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

    def _remove_new_folder(self, path: str, _token: CancelToken) -> None:
        # A folder with something in it stays.
        with suppress(ToolFailed):
            self._workspace.remove_folder(parse_saved_path(path))
            self.produced[path] = FileState()

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


def _is_on_the_way(path: str, other: str) -> bool:
    """Return whether both are the same, or one is below the other."""
    return f"{path}/".startswith(f"{other}/") or f"{other}/".startswith(f"{path}/")


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


_TEMPORARY_NAME = re.compile(r"[0-9a-f]{16}\.tmp")
_MAX_SCANNED = 100_000


def temporary_prefix(checkpoint_id: str) -> str:
    """Return how temporary names of this checkpoint's restore begin, and no others."""
    return f".{hashlib.sha256(checkpoint_id.encode()).hexdigest()[:32]}-"


def remove_leftovers(workspace: Workspace, checkpoint: Checkpoint) -> None:
    """Remove what an earlier restore of this checkpoint left behind. What cannot be removed stays."""
    prefix = temporary_prefix(checkpoint.id)
    for parent in {file.path.rpartition("/")[0] for file in checkpoint.files}:
        with suppress(ToolFailed):
            folder = parse_saved_path(parent) if parent else WorkspacePath(())
            for entry in workspace.entries(folder, _MAX_SCANNED):
                name = entry.name
                if entry.kind == "file" and name.startswith(prefix) and _TEMPORARY_NAME.fullmatch(name[len(prefix) :]):
                    workspace.remove(folder.child(name))


def remove_interrupted_leftovers(checkpoints: Sequence[Checkpoint]) -> None:
    """Remove leftovers of all restores that began and never ended."""
    interrupted = {checkpoint.undoes for checkpoint in checkpoints}
    for checkpoint in checkpoints:
        if checkpoint.id in interrupted and checkpoint.workspace and not checkpoint.restored:
            with suppress(WrongUse):
                remove_leftovers(Workspace(Path(checkpoint.workspace)), checkpoint)
