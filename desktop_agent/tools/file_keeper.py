"""Saves the files that a call is about to change, and puts them back."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

from desktop_agent.tools.in_thread import CancelToken, run_in_thread
from desktop_agent.tools.keeping.looking import parse_saved_path, saved_file, saved_path, take_snapshot
from desktop_agent.tools.keeping.putting_back import ReplaceConsent, SkippedFile
from desktop_agent.tools.keeping.restoring import CheckpointRestore, existing_folders
from desktop_agent.tools.keeping.saving_first import RedoSaver, missing_folders
from desktop_agent.tools.workspace import Workspace, WorkspacePath
from desktop_agent.vocabulary.blocks import JsonObject
from desktop_agent.vocabulary.conduct.checkpoints import Checkpoint, SavedFile
from desktop_agent.vocabulary.errors import ToolFailed, WrongUse
from desktop_agent.vocabulary.messages import new_id, now

Result = TypeVar("Result")


class BlobStore(Protocol):
    """Bytes kept by their SHA-256. Both methods raise StorageFailed."""

    async def put(self, data: bytes) -> str:
        """Keep them; durable when it returns. The digest, in hexadecimal."""
        ...

    async def get(self, digest: str) -> bytes:
        """The bytes again, checked."""
        ...


@dataclass(frozen=True, slots=True)
class RestoreReport:
    """What restoring did. Files that were as before already appear nowhere.

    `saved` is the checkpoint of what was there until then: restoring that takes this back. None where nothing was.
    `is_new_undo`: what the call did besides was undone just now, and not at an earlier restoring.
    """

    checkpoint: Checkpoint
    restored: tuple[str, ...] = ()
    left_alone: tuple[SkippedFile, ...] = ()
    is_new_undo: bool = False
    saved: Checkpoint | None = None

    @property
    def conflicts(self) -> tuple[str, ...]:
        """Files that were changed since the call."""
        return tuple(each.path for each in self.left_alone if each.is_conflict)

    @property
    def failed(self) -> tuple[str, ...]:
        """Files that could not be put back: never saved, or the disk refused."""
        return tuple(each.path for each in self.left_alone if not each.is_conflict and not each.is_undo)

    @property
    def undone(self) -> str:
        """What the tool said when it undid what the call did besides."""
        return self.checkpoint.undo_said or ""

    @property
    def not_undone(self) -> str:
        """Why it did not."""
        return next((str(each.why) for each in self.left_alone if each.is_undo), "")


class Checkpointer:
    """Saves files of a workspace before a call changes them, and puts them back. `save_checkpoint` writes a checkpoint
    durably.

    Without a workspace it saves no files, only what a tool needs to undo a call.
    """

    def __init__(
        self,
        workspace: Workspace | None,
        blobs: BlobStore,
        save_checkpoint: Callable[[Checkpoint], Awaitable[None]],
        conversation_id: str,
    ) -> None:
        self._workspace = workspace
        self._blobs = blobs
        self._keep = save_checkpoint
        self._conversation_id = conversation_id

    async def save_before(
        self,
        tool_use_id: str,
        message_id: str,
        paths: tuple[str, ...],
        *,
        tool: str = "",
        arguments: JsonObject | None = None,
    ) -> Checkpoint | None:
        """Save these files, durably; None when there is nothing to save.

        `tool` is the identity of the tool, `arguments` what will run where the tool can undo it. Raises
        OutsideWorkspace, ToolFailed and StorageFailed: the call must not start then.
        """
        workspace = self._workspace
        places = () if workspace is None else await run_in_thread(lambda _token: _locate_all(workspace, paths))
        if not places and arguments is None:
            return None
        checkpoint = Checkpoint(
            id=new_id(),
            conversation_id=self._conversation_id,
            tool_use_id=tool_use_id,
            message_id=message_id,
            workspace=self._folder,
            created_at=now(),
            files=() if workspace is None else tuple([await self._saved(workspace, place) for place in places]),
            new_folders=()
            if workspace is None
            else await run_in_thread(lambda _token: missing_folders(workspace, places)),
            tool=tool,
            input=arguments,
        )
        await self._keep(checkpoint)
        return checkpoint

    async def record_after(self, checkpoint: Checkpoint, *, succeeded: bool | None = None) -> Checkpoint:
        """Note how the call left the files, whatever became of it. Done to the end even when cancelled.

        `succeeded` None: whether it took effect is not known. Raises StorageFailed; it is then not known how the call
        left them.
        """
        return await _finish(self._after(checkpoint, succeeded=succeeded))

    async def restore(
        self, checkpoint: Checkpoint, *, even_if_changed: ReplaceConsent = False, note_id: str = ""
    ) -> RestoreReport:
        """Put back the files that are as the call left them, saving first what is there; twice equals once.

        `even_if_changed` also replaces those that were changed since: all, or those that are still found as it says,
        by their paths in the checkpoint. `note_id` goes into the checkpoint of what is there. Raises StorageFailed
        when that could not be saved, and no file was touched, or when files were put back but it could not be noted.
        """
        if checkpoint.workspace != self._folder:
            raise WrongUse("This checkpoint belongs to another folder.")
        if self._workspace is None:
            noted = checkpoint.model_copy(update={"restored": not checkpoint.needs_undo})
            await self._note(checkpoint, noted)
            return RestoreReport(noted)
        saving = RedoSaver(self._workspace, self._blobs.put, self._keep, note_id)
        restoring = CheckpointRestore(self._workspace, checkpoint, self._blobs.get, even_if_changed, saving)
        noted = await restoring.run()
        await self._note(checkpoint, noted)
        paths = tuple(str(step.place) for step in restoring.restored_steps)
        saved = restoring.saved if restoring.saved is not None and restoring.saved.files else None
        return RestoreReport(noted, paths, tuple(restoring.left_alone), saved=saved)

    @property
    def _folder(self) -> str:
        return "" if self._workspace is None else str(self._workspace.folder)

    async def _note(self, before: Checkpoint, noted: Checkpoint) -> None:
        if noted != before:
            await self._keep(noted)

    async def _saved(self, workspace: Workspace, place: WorkspacePath) -> SavedFile:
        found = await run_in_thread(lambda token: take_snapshot(workspace, place, token, with_data=True))
        if found.data is not None:
            await self._blobs.put(found.data)
        return saved_file(saved_path(place), found)

    async def _after(self, checkpoint: Checkpoint, *, succeeded: bool | None) -> Checkpoint:
        noted, workspace = checkpoint.model_copy(update={"succeeded": succeeded}), self._workspace
        if workspace is not None:
            files = [await run_in_thread(partial(_state_after_call, workspace, file)) for file in checkpoint.files]
            folders = await run_in_thread(lambda _token: existing_folders(workspace, checkpoint.new_folders))
            noted = noted.model_copy(update={"files": tuple(files), "new_folders": folders})
        await self._keep(noted)
        return noted


def _locate_all(workspace: Workspace, paths: Iterable[str]) -> tuple[WorkspacePath, ...]:
    """Each place once; not the workspace itself, which no call can write to."""
    places = dict.fromkeys(workspace.locate(path) for path in paths)
    return tuple(place for place in places if place.parts)


def _state_after_call(workspace: Workspace, file: SavedFile, token: CancelToken) -> SavedFile:
    try:
        found = take_snapshot(workspace, parse_saved_path(file.path), token)
    except ToolFailed:
        return file  # not known: restoring will ask
    return file.model_copy(update={"after": found.state})


async def _finish(work: Coroutine[Any, Any, Result]) -> Result:
    """Wait for it even when cancelled; then pass the cancel on."""
    running = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not running.done():
        try:
            await asyncio.wait([running])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        # Looking at the exception keeps asyncio from reporting it as never retrieved.
        if not running.cancelled():
            running.exception()
        raise cancelled
    return running.result()
