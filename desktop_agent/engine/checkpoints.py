"""Checkpoints of one conversation: listed, previewed, restored; and what tools undo by themselves."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from desktop_agent.engine.undo_forecast import (
    file_difference,
    forecast_restore,
    irreversible_calls_since,
    match_saved_calls,
    undo_note_for,
)
from desktop_agent.processes.foreign_code import Fault, TaskSupervisor, replace_surrogates
from desktop_agent.processes.worker_threads import run_by_size, run_in_thread
from desktop_agent.storage.store import Store
from desktop_agent.tools.checkpoints.checkpointer import Checkpointer, RestoreReport
from desktop_agent.tools.checkpoints.restore import remove_interrupted_leftovers
from desktop_agent.tools.checkpoints.restore_steps import SkippedFile, skipped_because
from desktop_agent.tools.tool import AnyTool, ToolRegistry
from desktop_agent.tools.workspace import Workspace
from desktop_agent.types.blocks import JsonObject
from desktop_agent.types.checkpoints import Checkpoint, CheckpointedCall, FileRestorePlan, FileState, RestorePlan
from desktop_agent.types.engine_events import CheckpointRestored
from desktop_agent.types.errors import Sentence, StorageFailed, WrongUse
from desktop_agent.types.messages import Message, new_id
from desktop_agent.types.tool_calls import DiffPreview, tool_title

_log = logging.getLogger(__name__)

# The grace of a cancelled undo, in seconds, before files are restored.
_UNDO_GRACE = 0.5
# Characters of a tool's report about an undo.
_MAX_UNDO_TEXT = 1_000
_TOOL_REMOVED = "The tool “{tool}” that could undo it is not there any more."
_OUTCOME_UNKNOWN = "The call of “{tool}” was broken off, so it is not known whether it took effect."
_UNDO_INTERRUPTED = "“{tool}” already began to undo this. Whether that worked is not known, so it is not tried again."
_UNDO_FAILED = "“{tool}” could not undo it: {why}"
_NOT_REDONE = "What “{tool}” undid is not redone; only files are restored."


class ToolUndo:
    """Undoes calls by their own tools, at most once for each call: the beginning is stored before it happens."""

    def __init__(self, tools: Callable[[], ToolRegistry], store: Store) -> None:
        self._tools = tools
        self._store = store

    @property
    def tools(self) -> ToolRegistry:
        """Return the tools that may undo their calls; none where their folder is gone."""
        try:
            return self._tools()
        except WrongUse:
            return ToolRegistry()

    async def undo(self, checkpoint: Checkpoint) -> tuple[Checkpoint, SkippedFile | None]:
        """Undo a call. Return its checkpoint as stored now, and why the call was skipped where it was."""
        skipped = self._skipped(checkpoint)
        tool, arguments = self._find_tool(checkpoint.tool), checkpoint.input
        undo = tool and tool.undo
        if skipped is not None or not checkpoint.needs_undo or tool is None or undo is None or arguments is None:
            return checkpoint, skipped
        begun = checkpoint.model_copy(update={"undone": True})
        await self._store.checkpoints.save(begun)
        report = await _run_undo(tool, undo, arguments)
        if isinstance(report, Fault):
            _log.error("tool %s could not undo a call: %s", tool.name, report.trace)
            return begun, _skip(begun, _UNDO_FAILED, why=report.description)
        done = begun.model_copy(update={"undo_said": report})
        await self._store.checkpoints.save(done)
        return done, None

    def _skipped(self, checkpoint: Checkpoint) -> SkippedFile | None:
        """Return why the effects of a call besides its files will not be undone, where they should be."""
        if not checkpoint.needs_undo:
            return None
        if checkpoint.undone:
            return _skip(checkpoint, _UNDO_INTERRUPTED)
        if checkpoint.succeeded is None:
            return _skip(checkpoint, _OUTCOME_UNKNOWN)
        return None if self._find_tool(checkpoint.tool) is not None else _skip(checkpoint, _TOOL_REMOVED)

    def reason_not_undone(self, checkpoint: Checkpoint) -> Sentence | None:
        """Return why a call would not be undone, for a forecast; None where it would be."""
        skipped = self._skipped(checkpoint)
        return None if skipped is None else skipped.why

    def _find_tool(self, identity: str) -> AnyTool | None:
        """Return the tool that made the call, if it is still there and can undo."""
        tools = self.tools
        candidates = (tools.get(name) for name in tools.names)
        return next((tool for tool in candidates if tool and tool.identity == identity and tool.undo), None)


def redo_exclusion(checkpoint: Checkpoint) -> Sentence | None:
    """Return what redoing leaves out of a call that was undone."""
    is_undo_reported = checkpoint.undo_said is not None
    return Sentence(_NOT_REDONE, {"tool": _title(checkpoint)}) if is_undo_reported else None


def _title(checkpoint: Checkpoint) -> Sentence | str:
    return tool_title(checkpoint.tool.split(" @ ")[0])


async def _run_undo(tool: AnyTool, undo: Callable[[Any], Awaitable[str]], arguments: JsonObject) -> str | Fault:
    """Return the tool's non-empty text about what it undid; an exception or a timeout is a Fault."""

    async def work() -> str:
        checked = await run_by_size(lambda: tool.checked(arguments), arguments)
        return replace_surrogates((await undo(checked))[:_MAX_UNDO_TEXT]).strip() or tool.name

    supervisor = TaskSupervisor()
    report = await supervisor.run(work, tool.timeout)
    if supervisor.unfinished:
        await asyncio.wait(supervisor.unfinished, timeout=_UNDO_GRACE)
    return report


def _skip(checkpoint: Checkpoint, template: str, **values: str) -> SkippedFile:
    return SkippedFile(checkpoint.tool, Sentence(template, {"tool": _title(checkpoint), **values}), is_undo=True)


@dataclass(frozen=True, slots=True)
class RestoreListeners:
    """`on_note` receives the message for the model after a restore, `on_saved_calls` the calls with checkpoints."""

    on_note: Callable[[Message], None] = lambda _message: None
    on_saved_calls: Callable[[Sequence[CheckpointedCall]], None] = lambda _saved: None


OnProgress = Callable[[int, int], None]
"""How many calls of how many are done."""


def _ignore_progress(_done: int, _total: int) -> None: ...


_Consent = Mapping[str, list[FileState]]


class Checkpoints:
    """Lists checkpoints, forecasts and restores them, one restore at a time and none while a run is active.

    `history` returns the branch in view, `refuse` raises WrongUse while nothing may be restored, `emit` receives
    restores. `tools` are those that may undo their calls, `specialists` names tools that delegate. What a restore
    changes is saved first, as a checkpoint that belongs to it: restoring that one is a redo, and what that changes is
    saved in turn.
    """

    def __init__(
        self,
        store: Store,
        conversation_id: str,
        *,
        history: Callable[[], Sequence[Message]],
        refuse: Callable[[], None],
        emit: Callable[[CheckpointRestored], None],
        listeners: RestoreListeners | None = None,
        tools: Callable[[], ToolRegistry] = ToolRegistry,
        specialists: Callable[[], Collection[str]] = tuple,
    ) -> None:
        self._store = store
        self._conversation_id = conversation_id
        self._history = history
        self._refuse = refuse
        self._emit_restored = emit
        self._listeners = listeners or RestoreListeners()
        self._tool_undo = ToolUndo(tools, store)
        self._specialists = specialists
        self._lock = asyncio.Lock()
        # Beside the other lock: a restore waits for the cleanup, but no run is refused because of it.
        self._cleanup_lock = asyncio.Lock()
        self._is_cleaned_up = False

    def refuse_while_restoring(self) -> None:
        """Raise WrongUse while files are being restored: a run would change them again."""
        if self._lock.locked():
            raise WrongUse("Files are being put back just now.", "Wait a moment, then do it again.")

    def checkpointer(self, workspace: Workspace | None) -> Checkpointer:
        """Return the checkpointer that saves the files of this workspace before calls change them."""
        return Checkpointer(workspace, self._store.blobs, self._store.checkpoints.save, self._conversation_id)

    async def list(self) -> tuple[Checkpoint, ...]:
        """Return the checkpoints of calls, oldest first. Raises StorageFailed."""
        return tuple(checkpoint for checkpoint in await self._all() if checkpoint.undoes is None)

    async def _all(self) -> tuple[Checkpoint, ...]:
        """Return all checkpoints, those of restores included."""
        return await self._store.checkpoints.of_conversation(self._conversation_id)

    async def list_unrestored(self, message_ids: Collection[str]) -> tuple[str, ...]:
        """Return the ids of the checkpoints of these messages' calls, where they are not restored.

        Raises StorageFailed.
        """
        checkpoints = await self._all()
        saved = match_saved_calls(checkpoints, self._history(), self._specialists())
        in_view = {call.checkpoint_id for call in saved if call.message_id in message_ids}
        return tuple(
            checkpoint.id
            for checkpoint in checkpoints
            if (checkpoint.id in in_view or checkpoint.message_id in message_ids)
            and checkpoint.has_effect
            and not (checkpoint.restored or checkpoint.is_redo)
        )

    async def publish_saved_calls(self) -> None:
        """Notify the listener which of the shown calls can be undone or redone. Raises StorageFailed."""
        checkpoints = await self._all()
        self._listeners.on_saved_calls(match_saved_calls(checkpoints, self._history(), self._specialists()))
        if not self._is_cleaned_up and not self._lock.locked():
            self._is_cleaned_up = True
            async with self._cleanup_lock:
                await run_in_thread(lambda _sign: remove_interrupted_leftovers(checkpoints))

    async def preview(self, *checkpoint_ids: str) -> RestorePlan:
        """Forecast restoring these; nothing is changed. Raises WrongUse for an unknown one; StorageFailed."""
        return await forecast_restore(self._find(checkpoint_ids, await self._all()), self._tool_undo.reason_not_undone)

    async def preview_redo(self, *ids: str) -> RestorePlan:
        """Forecast a redo. `ids` are of checkpoints that restores made, or of the messages in which the model reads
        of them.

        What was redone before is left out. Raises StorageFailed.
        """
        checkpoints = await self._all()
        chosen = [
            checkpoint
            for checkpoint in reversed(checkpoints)
            if checkpoint.is_redo and not checkpoint.restored and _matches(checkpoint, ids)
        ]
        forecast = await forecast_restore(chosen, self._tool_undo.reason_not_undone)
        calls = {checkpoint.undoes for checkpoint in chosen}
        excluded = {
            checkpoint.tool: why
            for checkpoint in checkpoints
            if checkpoint.id in calls and (why := redo_exclusion(checkpoint)) is not None
        }
        return replace(forecast, undo_refusals=tuple(excluded.values()))

    async def preview_since(self, message_id: str) -> RestorePlan:
        """Forecast restoring what the calls of this message and of all after it changed, and what cannot be undone.

        What was restored before is left out. Raises WrongUse for an unknown message; StorageFailed.
        """
        later = self._since(message_id, await self._all())
        forecast = await forecast_restore(later, self._tool_undo.reason_not_undone)
        history = self._history()
        position = next(index for index, message in enumerate(history) if message.id == message_id)
        # The clock may have been set back since: then one call too many is named rather than one too few.
        began = min(message.created_at for message in history[position:])
        names = self._specialists()
        irreversible = await irreversible_calls_since(
            self._store, self._conversation_id, began, self._tool_undo.tools, names
        )
        return replace(forecast, irreversible=irreversible)

    async def difference(self, file: FileRestorePlan, *, replaced: bool = False) -> DiffPreview | Sentence:
        """Return the lines that a restore would change in a file, or why there are none. Raises StorageFailed."""
        return await file_difference(file, self._store.blobs, replaced=replaced)

    async def restore_forecast(
        self,
        forecast: RestorePlan,
        replacing: Collection[FileRestorePlan] = (),
        on_progress: OnProgress = _ignore_progress,
    ) -> tuple[RestoreReport, ...]:
        """Restore the checkpoints of a forecast, newest first; what was restored meanwhile is left out.

        Each file is checked again. Those in `replacing` are restored although they were changed since, if they are
        still as forecast. Raises WrongUse while a run is active, when the conversation is closed, and for an unknown
        checkpoint; StorageFailed.
        """
        async with self._lock, self._cleanup_lock:
            known = self._find(forecast.checkpoint_ids, await self._all())
            consent: _Consent = {file.key: [file.current_state] for file in replacing}
            return await self._restore_all(
                [checkpoint for checkpoint in known if not checkpoint.restored], consent, on_progress
            )

    def _find(self, ids: Collection[str], checkpoints: Sequence[Checkpoint]) -> Sequence[Checkpoint]:
        """Return the checkpoints with these ids, newest first."""
        matching = [checkpoint for checkpoint in reversed(checkpoints) if checkpoint.id in ids]
        if len(matching) < len(set(ids)):
            raise WrongUse("There is no such checkpoint in this conversation.", "Choose one from the list.")
        return matching

    def _since(self, message_id: str, checkpoints: Sequence[Checkpoint]) -> Sequence[Checkpoint]:
        """Return the checkpoints from this message on that are not restored, newest first."""
        history = self._history()
        ids = [message.id for message in history]
        if message_id not in ids:
            raise WrongUse("There is no such message in this conversation.", "Choose one that is shown.")
        position = ids.index(message_id)

        def is_later(checkpoint: Checkpoint) -> bool:
            message_id = checkpoint.caller_message_id or checkpoint.message_id
            # Messages of other branches are not in the history: the time decides.
            return (
                checkpoint.created_at >= history[position].created_at
                if message_id not in ids
                else message_id in ids[position:]
            )

        return [
            checkpoint
            for checkpoint in reversed(checkpoints)
            if (checkpoint.has_effect or checkpoint.new_folders)
            and not (checkpoint.is_redo or checkpoint.restored)
            and is_later(checkpoint)
        ]

    async def _restore_all(
        self,
        checkpoints: Sequence[Checkpoint],
        consent: _Consent,
        on_progress: OnProgress,
    ) -> tuple[RestoreReport, ...]:
        done: list[RestoreReport] = []
        failed: dict[tuple[str, str], SkippedFile] = {}
        note_id = new_id()
        try:
            for index, checkpoint in enumerate(checkpoints):
                older = [other for other in checkpoints[index + 1 :] if other.workspace == checkpoint.workspace]
                done.append(await self._restore_one(checkpoint, older, consent, failed, note_id))
                _extend_consent(consent, done[-1])
                on_progress(len(done), len(checkpoints))
        finally:
            # Also where it was interrupted: some files may be restored.
            await self._report(done, note_id)
        return tuple(done)

    async def _report(self, done: Sequence[RestoreReport], note_id: str) -> None:
        note = undo_note_for(done, note_id)
        with suppress(WrongUse, StorageFailed):
            # Closed meanwhile: another session may have the conversation by now.
            self._refuse()
            if note is not None:
                self._listeners.on_note(note)
            await self.publish_saved_calls()

    async def _restore_one(
        self,
        checkpoint: Checkpoint,
        older: Sequence[Checkpoint],
        consent: _Consent,
        failed: dict[tuple[str, str], SkippedFile],
        note_id: str,
    ) -> RestoreReport:
        """Restore a checkpoint. `failed` are files of newer ones, which are no conflicts in this one."""
        self._refuse()
        before = checkpoint.undo_said
        checkpoint, not_undone = await self._tool_undo.undo(checkpoint)
        folder = checkpoint.workspace
        own_consent = {file.path: consent.get(f"{folder}/{file.path}", ()) for file in checkpoint.files}
        try:
            workspace = await run_in_thread(lambda _sign: Workspace(Path(folder))) if folder else None
            checkpointer = self.checkpointer(workspace)
            restored = await checkpointer.restore(checkpoint, own_consent, older=older, note_id=note_id)
        except WrongUse as error:
            # The folder is gone, or another one has its name.
            restored = RestoreReport(
                checkpoint, skipped=tuple(skipped_because(file.path, error) for file in checkpoint.files)
            )
        skipped = [failed.get((folder, file.path), file) if file.is_conflict else file for file in restored.skipped]
        failed |= {(folder, file.path): file for file in skipped if not file.is_conflict}
        restored = replace(restored, skipped=(*([] if not_undone is None else [not_undone]), *skipped))
        event = CheckpointRestored(
            checkpoint.id, restored.conflicts, restored.failed, restored.undone, restored.not_undone
        )
        self._emit_restored(event)
        return replace(restored, is_new_undo=before is None and bool(restored.undone))


def _extend_consent(consent: _Consent, report: RestoreReport) -> None:
    """Extend the person's consent to the states that were just restored: an older call may go further back."""
    for path, state in report.produced.items():
        states = consent.get(f"{report.checkpoint.workspace}/{path}")
        if states is not None:
            states.append(state)


def _matches(checkpoint: Checkpoint, ids: Collection[str]) -> bool:
    return checkpoint.id in ids or (bool(checkpoint.note_id) and checkpoint.note_id in ids)
