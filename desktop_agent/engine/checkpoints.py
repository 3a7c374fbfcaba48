"""Checkpoints of one conversation: listed, previewed, restored; and what tools undo by themselves."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from desktop_agent.engine.undo_forecast import (
    displayed_path,
    file_difference,
    forecast_restore,
    irreversible_calls_since,
    match_saved_calls,
    undo_note_for,
)
from desktop_agent.processes.foreign_code import Fault, TaskSupervisor, deep_copy, plain_text, replace_surrogates
from desktop_agent.processes.worker_threads import run_by_size, run_in_thread
from desktop_agent.storage.store import Store
from desktop_agent.tools.checkpoints.checkpointer import Checkpointer, RestoreReport
from desktop_agent.tools.checkpoints.snapshots import SkippedFile, remove_interrupted_leftovers, skipped_because
from desktop_agent.tools.tool import AnyTool, ToolRegistry
from desktop_agent.tools.workspace import Workspace
from desktop_agent.types.blocks import JsonObject
from desktop_agent.types.checkpoints import (
    Checkpoint,
    CheckpointedCall,
    FileRestorePlan,
    FileState,
    RestorePlan,
)
from desktop_agent.types.engine_events import CheckpointRestored
from desktop_agent.types.errors import Sentence, StorageFailed, WrongUse
from desktop_agent.types.messages import Message, new_id
from desktop_agent.types.tool_calls import DiffPreview

_log = logging.getLogger(__name__)

# What a tool gets to end after it was told to, in seconds, before files are put back.
_UNDO_GRACE = 0.5
# Of what a tool says that it undid, in characters.
_MAX_UNDO_TEXT = 1_000
_TOOL_REMOVED = "The tool “{tool}” that could undo it is not there any more."
_OUTCOME_UNKNOWN = "The call of “{tool}” was broken off, so it is not known whether it took effect."
_UNDO_INTERRUPTED = "“{tool}” began to undo it before, and what came of that is not known; it is not begun again."
_UNDO_FAILED = "“{tool}” could not undo it: {why}"
_BY_HAND = Sentence("Look at what the call did, and take it back by hand.")
_BRING_TOOL_BACK = Sentence("Open the conversation with the tool and the folder that it had, then restore once more.")
_NOT_REDONE = "What “{tool}” took back is not done again; only files are brought back."


class ToolUndo:
    """Undoing is begun at most once for each call: that it begins is written before it does."""

    def __init__(self, tools: Callable[[], ToolRegistry], store: Store) -> None:
        self._tools = tools
        self._store = store

    @property
    def tools(self) -> ToolRegistry:
        """Those that may undo what their calls did; none where their folder is gone."""
        try:
            return self._tools()
        except WrongUse:
            return ToolRegistry()

    async def undo(self, checkpoint: Checkpoint) -> tuple[Checkpoint, SkippedFile | None]:
        """The checkpoint as it is noted now, and why the call was not undone where it should have been."""
        left = self._skipped(checkpoint)
        tool, arguments = self._find_tool(checkpoint.tool), checkpoint.input
        undo = tool and tool.undo
        if left is not None or not checkpoint.needs_undo or tool is None or undo is None or arguments is None:
            return checkpoint, left
        begun = checkpoint.model_copy(update={"undone": True})
        await self._store.checkpoints.save(begun)
        words = await _run_undo(tool, undo, arguments)
        if isinstance(words, Fault):
            _log.error("tool %s could not undo a call: %s", tool.name, words.trace)
            return begun, _skip(begun, _UNDO_FAILED, why=words.description)
        done = begun.model_copy(update={"undo_said": words})
        await self._store.checkpoints.save(done)
        return done, None

    def _skipped(self, checkpoint: Checkpoint) -> SkippedFile | None:
        """Why what a call did besides its files will not be undone, where it should be."""
        if not checkpoint.needs_undo:
            return None
        if checkpoint.undone:
            return _skip(checkpoint, _UNDO_INTERRUPTED)
        if checkpoint.succeeded is None:
            return _skip(checkpoint, _OUTCOME_UNKNOWN)
        return (
            None if self._find_tool(checkpoint.tool) is not None else _skip(checkpoint, _TOOL_REMOVED, _BRING_TOOL_BACK)
        )

    def reason_not_undone(self, checkpoint: Checkpoint) -> Sentence | None:
        """The same for a forecast."""
        left = self._skipped(checkpoint)
        return None if left is None else left.why

    def _find_tool(self, identity: str) -> AnyTool | None:
        """The tool that made the call, if it is there still and can undo."""
        tools = self.tools
        found = (tools.get(name) for name in tools.names)
        return next((each for each in found if each and each.identity == identity and each.undo), None)


def redo_exclusion(checkpoint: Checkpoint) -> Sentence | None:
    """What redoing leaves out of a call that was undone."""
    said = checkpoint.undo_said is not None
    return Sentence(_NOT_REDONE, {"tool": checkpoint.tool.split(" @ ")[0]}) if said else None


async def _run_undo(tool: AnyTool, undo: Callable[[Any], Awaitable[str]], arguments: JsonObject) -> str | Fault:
    """What the tool says that it undid; never nothing. What it raises or never ends is a fault."""

    async def work() -> str:
        checked = await run_by_size(lambda: tool.checked(deep_copy(arguments)), arguments)
        return replace_surrogates(plain_text(await undo(checked))[:_MAX_UNDO_TEXT]).strip() or tool.name

    fence = TaskSupervisor()
    words = await fence.run(work, tool.timeout)
    if fence.unfinished:
        await asyncio.wait(fence.unfinished, timeout=_UNDO_GRACE)
    return words


def _skip(checkpoint: Checkpoint, template: str, remedy: Sentence = _BY_HAND, **values: str) -> SkippedFile:
    return SkippedFile(checkpoint.tool, Sentence(template, {"tool": checkpoint.tool, **values}), remedy, is_undo=True)


@dataclass(frozen=True, slots=True)
class RestoreListeners:
    """`note` gets what the model is to read of a restoring, after it; `show` hears which calls have checkpoints."""

    on_note: Callable[[Message], None] = lambda _message: None
    on_saved_calls: Callable[[Sequence[CheckpointedCall]], None] = lambda _saved: None


_ConsentByFile = Mapping[str, list[FileState | tuple[int, ...]]]
_Consent = bool | _ConsentByFile


class Checkpoints:
    """Lists checkpoints, says what restoring them would do, and restores them, one restoring at a time and none while a
    run is under way.

    `history` is the branch in view, `refuse` raises WrongUse while nothing may be restored, `emit` hears of what was
    restored. `tools` are those that may undo what their calls did, `specialists` names tools whose work is that of
    others. What a restoring changes is saved first, as a checkpoint that belongs to it: restoring that one is a redo,
    and what that changes is saved in turn.
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
        # Of its own, as no run is refused because of it; a restoring waits for it.
        self._cleanup_lock = asyncio.Lock()
        self._is_cleaned_up = False

    def refuse_while_restoring(self) -> None:
        """Raises WrongUse while files are being put back: a run would change them again."""
        if self._lock.locked():
            raise WrongUse("Files are being put back just now.", "Wait a moment, then do it again.")

    def file_keeper(self, workspace: Workspace | None) -> Checkpointer:
        """What saves the files of this workspace before calls change them, and what undoing calls takes."""
        return Checkpointer(workspace, self._store.blobs, self._store.checkpoints.save, self._conversation_id)

    async def list(self) -> tuple[Checkpoint, ...]:
        """Those of calls, oldest first. Raises StorageFailed."""
        return tuple(each for each in await self._all() if each.undoes is None)

    async def _all(self) -> tuple[Checkpoint, ...]:
        """Also those of restorings."""
        return await self._store.checkpoints.of_conversation(self._conversation_id)

    async def publish_saved_calls(self) -> None:
        """Let the calls that are shown say which of them can be undone or redone. Raises StorageFailed."""
        every = await self._all()
        self._listeners.on_saved_calls(match_saved_calls(every, self._history(), self._specialists()))
        if not self._is_cleaned_up and not self._lock.locked():
            self._is_cleaned_up = True
            async with self._cleanup_lock:
                await run_in_thread(lambda _sign: remove_interrupted_leftovers(every))

    async def preview(self, *checkpoint_ids: str) -> RestorePlan:
        """What restoring these would do now; nothing is changed. Raises WrongUse for an unknown one; StorageFailed."""
        return await forecast_restore(self._find(checkpoint_ids, await self._all()), self._tool_undo.reason_not_undone)

    async def preview_redo(self, *ids: str) -> RestorePlan:
        """What redoing what was undone would do now. `ids` are of checkpoints that restorings made, or of the messages
        in which the model hears of them; what was redone before is left out. Raises StorageFailed."""
        every = await self._all()
        chosen = [each for each in reversed(every) if each.is_redo and not each.restored and _matches(each, ids)]
        forecast = await forecast_restore(chosen, self._tool_undo.reason_not_undone)
        calls = {each.undoes for each in chosen}
        left = {each.tool: why for each in every if each.id in calls and (why := redo_exclusion(each)) is not None}
        return replace(forecast, not_undone=tuple(left.values()))

    async def preview_since(self, message_id: str) -> RestorePlan:
        """What `restore_since` would do now, and the calls since then that nothing takes back. Raises as that does."""
        later = self._since(message_id, await self._all())
        forecast = await forecast_restore(later, self._tool_undo.reason_not_undone)
        began = next(each.created_at for each in self._history() if each.id == message_id)
        names = self._specialists()
        lasting = await irreversible_calls_since(
            self._store, self._conversation_id, began, self._tool_undo.tools, names
        )
        return replace(forecast, irreversible=lasting)

    async def difference(self, file: FileRestorePlan, *, replaced: bool = False) -> DiffPreview | Sentence:
        """The lines that would change in a file that was foreseen, or why there are none. Raises StorageFailed."""
        return await file_difference(file, self._store.blobs, replaced=replaced)

    async def restore(self, checkpoint_id: str, *, even_if_changed: bool = False) -> RestoreReport:
        """Undo one call and put back its files; those that were changed since only when `even_if_changed` says so.

        What was redone since is undone again, also where not all of it had been undone. The answer is about all of it;
        what was left alone is in it. Raises WrongUse while working, when the conversation is closed, and for an
        unknown one; StorageFailed.
        """
        async with self._lock, self._cleanup_lock:
            chosen = self._find((checkpoint_id,), every := await self._all())
            return _merge_results(
                await self._restore_all(_open_checkpoints(chosen[0], every), even_if_changed, _no_progress)
            )

    async def restore_since(self, message_id: str, *, even_if_changed: bool = False) -> tuple[RestoreReport, ...]:
        """Put back, newest first, what the calls of this message and of all after it changed; as `restore`.

        What was restored before is left out.
        """
        async with self._lock, self._cleanup_lock:
            return await self._restore_all(self._since(message_id, await self._all()), even_if_changed, _no_progress)

    async def restore_forecast(
        self,
        forecast: RestorePlan,
        replacing: Collection[FileRestorePlan] = (),
        on_progress: Callable[[int, int], None] = lambda _done, _all: None,
    ) -> tuple[RestoreReport, ...]:
        """Restore the checkpoints of a forecast, newest first, as `restore`; what was restored meanwhile is left out.

        Each file is looked at again. Those in `replacing` are put back although they were changed since, if they are
        still as they were foreseen. `on_progress` hears how many calls of how many are done.
        """
        async with self._lock, self._cleanup_lock:
            known = self._find(forecast.checkpoint_ids, await self._all())
            consent: _Consent = {each.key: [_expected_state(each)] for each in replacing}
            return await self._restore_all([each for each in known if not each.restored], consent, on_progress)

    def _find(self, ids: Collection[str], checkpoints: Sequence[Checkpoint]) -> Sequence[Checkpoint]:
        """Those of these ids, newest first."""
        found = [each for each in reversed(checkpoints) if each.id in ids]
        if len(found) < len(set(ids)):
            raise WrongUse("There is no such checkpoint in this conversation.", "Choose one from the list.")
        return found

    def _since(self, message_id: str, checkpoints: Sequence[Checkpoint]) -> Sequence[Checkpoint]:
        """What restoring undoes and is not restored, newest first."""
        history = self._history()
        ids = [message.id for message in history]
        if message_id not in ids:
            raise WrongUse("There is no such message in this conversation.", "Choose one that is shown.")
        at = ids.index(message_id)
        # Messages of specialists and of other branches are not in the history: time tells.
        return [
            each
            for each in reversed(checkpoints)
            if not (each.is_redo or each.restored)
            and (
                each.message_id in ids[at:]
                or (each.message_id not in ids and each.created_at >= history[at].created_at)
            )
        ]

    async def _restore_all(
        self,
        checkpoints: Sequence[Checkpoint],
        consent: _Consent,
        on_progress: Callable[[int, int], None],
    ) -> tuple[RestoreReport, ...]:
        done: list[RestoreReport] = []
        note_id = new_id()
        try:
            for each in checkpoints:
                done.append(await self._restore_one(each, consent, note_id))
                if not isinstance(consent, bool):
                    _extend_consent(consent, done[-1])
                on_progress(len(done), len(checkpoints))
        finally:
            # Also of one that was broken off: what was put back is.
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

    async def _restore_one(self, checkpoint: Checkpoint, consent: _Consent, note_id: str) -> RestoreReport:
        self._refuse()
        before = checkpoint.undo_said
        checkpoint, not_undone = await self._tool_undo.undo(checkpoint)
        folder = checkpoint.workspace
        if not isinstance(consent, bool):
            consent = {file.path: found for file in checkpoint.files if (found := consent.get(f"{folder}/{file.path}"))}
        try:
            workspace = await run_in_thread(lambda _sign: Workspace(Path(folder))) if folder else None
            keeper = self.file_keeper(workspace)
            restored = await keeper.restore(checkpoint, even_if_changed=consent, note_id=note_id)
        except WrongUse as error:
            # The folder is gone, or another one stands in its place.
            restored = RestoreReport(
                checkpoint, left_alone=tuple(skipped_because(file.path, error) for file in checkpoint.files)
            )
        if not_undone is not None:
            restored = replace(restored, left_alone=(not_undone, *restored.left_alone))
        told = CheckpointRestored(
            checkpoint.id, restored.conflicts, restored.failed, restored.undone, restored.not_undone
        )
        self._emit_restored(told)
        return replace(restored, is_new_undo=before is None and bool(restored.undone))


def _expected_state(file: FileRestorePlan) -> FileState | tuple[int, ...]:
    """What it must still be; of what could not be read, one version looks like the next."""
    return file.current_state if file.can_be_saved or file.stamp is None else file.stamp


def _no_progress(_done: int, _all: int) -> None:
    """Nobody waits for it."""


def _extend_consent(consent: _ConsentByFile, restored: RestoreReport) -> None:
    """What was put back for the person may be put back further by an older call."""
    checkpoint, put_back = restored.checkpoint, set(restored.restored)
    for file in checkpoint.files:
        states = consent.get(f"{checkpoint.workspace}/{file.path}")
        if states is not None and displayed_path(file.path) in put_back:
            states.append(file.before)


def _matches(checkpoint: Checkpoint, ids: Collection[str]) -> bool:
    return checkpoint.id in ids or (bool(checkpoint.note_id) and checkpoint.note_id in ids)


def _open_checkpoints(checkpoint: Checkpoint, every: Sequence[Checkpoint]) -> Sequence[Checkpoint]:
    """Those that restoring this has to mean, newest first: itself, and what was saved whenever it was redone."""
    found, above = [checkpoint], {checkpoint.id}
    for each in every:
        if each.undoes in above:
            above.add(each.id)
            found += [each] if each.is_redo == checkpoint.is_redo else []
    return [each for each in reversed(found) if not each.restored] or [checkpoint]


def _merge_results(done: Sequence[RestoreReport]) -> RestoreReport:
    """One restoring of one call out of several, newest first; `checkpoint` and `saved` are the last of theirs."""
    restored = tuple(dict.fromkeys(path for each in done for path in each.restored))
    left = {each.path: each for one in done for each in one.left_alone if each.path not in restored}
    return RestoreReport(
        done[-1].checkpoint,
        restored,
        tuple(left.values()),
        is_new_undo=any(each.is_new_undo for each in done),
        saved=next((each.saved for each in reversed(done) if each.saved is not None), None),
    )
