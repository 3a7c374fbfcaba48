"""What can be put back of one conversation's calls."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from desktop_agent.agent.calls.fence import Fence
from desktop_agent.conversation.folding.undo_notes import undo_note
from desktop_agent.engine.undo.forecasting import difference, forecast_of
from desktop_agent.engine.undo.lasting import lasting_since
from desktop_agent.engine.undo.saved_calls import saved_calls
from desktop_agent.storage.store import Store
from desktop_agent.tools.answers import plain, whole
from desktop_agent.tools.file_keeper import FileKeeper, Restored
from desktop_agent.tools.foreign_code import Fault, copied
from desktop_agent.tools.in_thread import by_size, in_thread
from desktop_agent.tools.keeping.putting_back import LeftAlone, failed
from desktop_agent.tools.registry import ToolRegistry
from desktop_agent.tools.tool import AnyTool
from desktop_agent.tools.workspace import Workspace
from desktop_agent.vocabulary.blocks import JsonObject
from desktop_agent.vocabulary.conduct.checkpoints import Checkpoint, FileForecast, FileState, Forecast, SavedCall
from desktop_agent.vocabulary.engine_events import CheckpointRestored
from desktop_agent.vocabulary.errors import Sentence, WrongUse
from desktop_agent.vocabulary.messages import Message
from desktop_agent.vocabulary.tool_calls import DiffPreview, TextPreview

_log = logging.getLogger(__name__)

# What a tool gets to end after it was told to, in seconds, before files are put back.
_GRACE = 0.5
# Of what a tool says that it undid, in characters.
_LONGEST_WORDS = 1_000
_GONE = "The tool “{tool}” that could undo it is not there any more."
_NOT_ENDED = "The call of “{tool}” was broken off, so it is not known whether it took effect."
_BROKEN_OFF = "“{tool}” began to undo it before, and what came of that is not known; it is not begun again."
_FAILED = "“{tool}” could not undo it: {why}"
_BY_HAND = Sentence("Look at what the call did, and take it back by hand.")
_BRING_BACK = Sentence("Open the conversation with the tool and the folder that it had, then restore once more.")


@dataclass(frozen=True, slots=True)
class Telling:
    """`note` gets what the model is to read of a restoring, after it; `show` hears which calls have checkpoints."""

    note: Callable[[Message], None] = lambda _message: None
    show: Callable[[Sequence[SavedCall]], None] = lambda _saved: None


class Checkpoints:
    """Lists checkpoints, says what restoring them would do, and restores them, one restoring at a time and none while a
    run is under way.

    `history` is the branch in view, `refuse` raises WrongUse while nothing may be restored, `tell` hears of what was
    restored. `tools` are those that may undo what their calls did, `specialists` names tools whose work is that of
    others. Undoing is begun at most once for each call: that it begins is written before it does.
    """

    def __init__(
        self,
        store: Store,
        conversation_id: str,
        *,
        history: Callable[[], Sequence[Message]],
        refuse: Callable[[], None],
        tell: Callable[[CheckpointRestored], None],
        telling: Telling | None = None,
        tools: Callable[[], ToolRegistry] = ToolRegistry,
        specialists: Callable[[], Collection[str]] = tuple,
    ) -> None:
        self._store = store
        self._conversation_id = conversation_id
        self._history = history
        self._refuse = refuse
        self._tell = tell
        self._telling = telling or Telling()
        self._tools = partial(_known, tools)
        self._specialists = specialists
        self._lock = asyncio.Lock()

    def refuse_meanwhile(self) -> None:
        """Raises WrongUse while files are being put back: a run would change them again."""
        if self._lock.locked():
            raise WrongUse("Files are being put back just now.", "Wait a moment, then do it again.")

    def keeper(self, workspace: Workspace | None) -> FileKeeper:
        """What saves the files of this workspace before calls change them, and what undoing calls takes."""
        return FileKeeper(workspace, self._store.blobs, self._store.checkpoints.save, self._conversation_id)

    async def list(self) -> tuple[Checkpoint, ...]:
        """All of them, oldest first. Raises StorageFailed."""
        return await self._store.checkpoints.of(self._conversation_id)

    async def show(self) -> None:
        """Let the calls that are shown say which of them can be undone. Raises StorageFailed."""
        self._telling.show(saved_calls(await self.list(), self._history(), self._specialists()))

    async def preview(self, *checkpoint_ids: str) -> Forecast:
        """What restoring these would do now; nothing is changed. Raises WrongUse for an unknown one; StorageFailed."""
        return await forecast_of(self._chosen(checkpoint_ids, await self.list()), self._why_not_undone)

    async def preview_since(self, message_id: str) -> Forecast:
        """What `restore_since` would do now, and the calls since then that nothing takes back. Raises as that does."""
        later = [each for each in self._since(message_id, await self.list()) if not each.restored]
        forecast = await forecast_of(later, self._why_not_undone)
        began = next(each.created_at for each in self._history() if each.id == message_id)
        names = self._specialists()
        lasting = await lasting_since(self._store, self._conversation_id, began, self._tools(), names)
        return replace(forecast, lasting=lasting)

    async def difference(self, file: FileForecast, *, replaced: bool = False) -> DiffPreview | TextPreview:
        """The lines that would change in a file that was foreseen. Raises StorageFailed."""
        return await difference(file, self._store.blobs, replaced=replaced)

    async def restore(self, checkpoint_id: str, *, even_if_changed: bool = False) -> Restored:
        """Undo one call and put back its files; those that were changed since only when `even_if_changed` says so.

        What was left alone is in the answer. Raises WrongUse while working, when the conversation is closed, and for an
        unknown one; StorageFailed.
        """
        async with self._lock:
            chosen = self._chosen((checkpoint_id,), await self.list())
            return (await self._restore_all(chosen, even_if_changed, _silent))[0]

    async def restore_since(self, message_id: str, *, even_if_changed: bool = False) -> tuple[Restored, ...]:
        """Put back, newest first, what the calls of this message and of all after it changed; as `restore`.

        What was restored before is left out.
        """
        async with self._lock:
            later = self._since(message_id, await self.list())
            return await self._restore_all([each for each in later if not each.restored], even_if_changed, _silent)

    async def restore_foreseen(
        self,
        forecast: Forecast,
        replacing: Collection[FileForecast] = (),
        on_progress: Callable[[int, int], None] = lambda _done, _all: None,
    ) -> tuple[Restored, ...]:
        """Restore the calls of a forecast, newest first, as `restore`; what was restored meanwhile is left out.

        Each file is looked at again. Those in `replacing` are put back although they were changed since, if they are
        still as they were foreseen. `on_progress` hears how many calls of how many are done.
        """
        async with self._lock:
            known = self._chosen(forecast.calls, await self.list())
            consent = {each.key: [each.now] for each in replacing}
            return await self._restore_all([each for each in known if not each.restored], consent, on_progress)

    def _chosen(self, ids: Collection[str], checkpoints: Sequence[Checkpoint]) -> Sequence[Checkpoint]:
        """Those of these ids, newest first."""
        found = [each for each in reversed(checkpoints) if each.id in ids]
        if len(found) < len(set(ids)):
            raise WrongUse("There is no such checkpoint in this conversation.", "Choose one from the list.")
        return found

    def _since(self, message_id: str, checkpoints: Sequence[Checkpoint]) -> Sequence[Checkpoint]:
        history = self._history()
        ids = [message.id for message in history]
        if message_id not in ids:
            raise WrongUse("There is no such message in this conversation.", "Choose one that is shown.")
        at = ids.index(message_id)
        # Messages of specialists and of other branches are not in the history: time tells.
        return [
            each
            for each in reversed(checkpoints)
            if each.message_id in ids[at:] or (each.message_id not in ids and each.created_at >= history[at].created_at)
        ]

    async def _restore_all(
        self,
        checkpoints: Sequence[Checkpoint],
        consent: "bool | Mapping[str, list[FileState]]",
        on_progress: Callable[[int, int], None],
    ) -> tuple[Restored, ...]:
        done: list[Restored] = []
        try:
            for each in checkpoints:
                done.append(await self._restored(each, consent))
                if not isinstance(consent, bool):
                    _go_on_consenting(consent, done[-1])
                on_progress(len(done), len(checkpoints))
        finally:
            # Also of one that was broken off: what was put back is.
            self._tell_the_model(done)
        return tuple(done)

    def _tell_the_model(self, done: Sequence[Restored]) -> None:
        note = _note_about(done)
        with suppress(WrongUse):
            # Closed meanwhile: another session may have the conversation by now.
            self._refuse()
            if note is not None:
                self._telling.note(note)

    async def _restored(self, checkpoint: Checkpoint, consent: "bool | Mapping[str, list[FileState]]") -> Restored:
        self._refuse()
        before = checkpoint.undo_said
        checkpoint, not_undone = await self._undone(checkpoint)
        folder = checkpoint.workspace
        if not isinstance(consent, bool):
            consent = {file.path: found for file in checkpoint.files if (found := consent.get(f"{folder}/{file.path}"))}
        try:
            workspace = await in_thread(lambda _sign: Workspace(Path(folder))) if folder else None
            restored = await self.keeper(workspace).restore(checkpoint, even_if_changed=consent)
        except WrongUse as error:
            # The folder is gone, or another one stands in its place.
            restored = Restored(checkpoint, left_alone=tuple(failed(file.path, error) for file in checkpoint.files))
        if not_undone is not None:
            restored = replace(restored, left_alone=(not_undone, *restored.left_alone))
        told = CheckpointRestored(
            checkpoint.id, restored.conflicts, restored.failed, restored.undone, restored.not_undone
        )
        self._tell(told)
        return replace(restored, is_new_undo=before is None and bool(restored.undone))

    async def _undone(self, checkpoint: Checkpoint) -> tuple[Checkpoint, LeftAlone | None]:
        """The checkpoint as it is noted now, and why the call was not undone where it should have been."""
        left = self._left_alone(checkpoint)
        tool, arguments = self._tool(checkpoint.tool), checkpoint.input
        undo = tool and tool.undo
        if left is not None or not checkpoint.owes_undo or tool is None or undo is None or arguments is None:
            return checkpoint, left
        begun = checkpoint.model_copy(update={"undone": True})
        await self._store.checkpoints.save(begun)
        words = await _undo(tool, undo, arguments)
        if isinstance(words, Fault):
            _log.error("tool %s could not undo a call: %s", tool.name, words.trace)
            return begun, _left_alone(begun, _FAILED, why=words.words)
        done = begun.model_copy(update={"undo_said": words})
        await self._store.checkpoints.save(done)
        return done, None

    def _left_alone(self, checkpoint: Checkpoint) -> LeftAlone | None:
        """Why what a call did besides its files will not be undone, where it should be."""
        if not checkpoint.owes_undo:
            return None
        if checkpoint.undone:
            return _left_alone(checkpoint, _BROKEN_OFF)
        if checkpoint.succeeded is None:
            return _left_alone(checkpoint, _NOT_ENDED)
        return None if self._tool(checkpoint.tool) is not None else _left_alone(checkpoint, _GONE, _BRING_BACK)

    def _why_not_undone(self, checkpoint: Checkpoint) -> Sentence | None:
        left = self._left_alone(checkpoint)
        return None if left is None else left.why

    def _tool(self, identity: str) -> AnyTool | None:
        """The tool that made the call, if it is there still and can undo."""
        tools = self._tools()
        found = (tools.get(name) for name in tools.names)
        return next((each for each in found if each and each.identity == identity and each.undo), None)


async def _undo(tool: AnyTool, undo: Callable[[Any], Awaitable[str]], arguments: JsonObject) -> str | Fault:
    """What the tool says that it undid; never nothing. What it raises or never ends is a fault."""

    async def work() -> str:
        checked = await by_size(lambda: tool.checked(copied(arguments)), arguments)
        return whole(plain(await undo(checked))[:_LONGEST_WORDS]).strip() or tool.name

    fence = Fence()
    words = await fence.value(work, tool.timeout)
    if fence.inside:
        await asyncio.wait(fence.inside, timeout=_GRACE)
    return words


def _known(tools: Callable[[], ToolRegistry]) -> ToolRegistry:
    try:
        return tools()
    except WrongUse:
        return ToolRegistry()  # its folder is gone


def _silent(_done: int, _all: int) -> None:
    """Nobody waits for it."""


def _go_on_consenting(consent: "Mapping[str, list[FileState]]", restored: Restored) -> None:
    """What was put back for the person may be put back further by an older call."""
    checkpoint, put_back = restored.checkpoint, set(restored.restored)
    for file in checkpoint.files:
        states = consent.get(f"{checkpoint.workspace}/{file.path}")
        if states is not None and _shown(file.path) in put_back:
            states.append(file.before)


def _note_about(done: Sequence[Restored]) -> Message | None:
    """For the model, about several that were restored one after the other."""
    again: dict[str, str] = {}
    for each in done:
        was = {_shown(file.path): file.before for file in each.checkpoint.files}
        for path in each.restored:
            was_there = path in was and was[path] != FileState()
            again[path] = "as it was before" if was_there else "removed, as it was not there before"
    left = [path for each in done for path in (*each.conflicts, *each.failed)]
    return undo_note(again, left, [each.undone for each in done if each.is_new_undo])


def _shown(path: str) -> str:
    return path.encode("utf-8", "replace").decode()


def _left_alone(checkpoint: Checkpoint, template: str, remedy: Sentence = _BY_HAND, **values: str) -> LeftAlone:
    return LeftAlone(checkpoint.tool, Sentence(template, {"tool": checkpoint.tool, **values}), remedy, is_undo=True)
