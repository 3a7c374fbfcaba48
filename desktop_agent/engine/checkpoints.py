"""What can be put back of one conversation's calls."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from desktop_agent.agent.calls.fence import Fence
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
from desktop_agent.vocabulary.conduct.checkpoints import Checkpoint
from desktop_agent.vocabulary.engine_events import CheckpointRestored
from desktop_agent.vocabulary.errors import Sentence, WrongUse
from desktop_agent.vocabulary.messages import Message

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


class Checkpoints:
    """Lists checkpoints and restores them, one restoring at a time and none while a run is under way.

    `history` is the branch in view, `refuse` raises WrongUse while nothing may be restored, `tell` hears of what was
    restored, and `tools` are those that may undo what their calls did. Undoing is begun at most once for each call:
    that it begins is written before it does.
    """

    def __init__(
        self,
        store: Store,
        conversation_id: str,
        *,
        history: Callable[[], Sequence[Message]],
        refuse: Callable[[], None],
        tell: Callable[[CheckpointRestored], None],
        tools: Callable[[], ToolRegistry] = ToolRegistry,
    ) -> None:
        self._store = store
        self._conversation_id = conversation_id
        self._history = history
        self._refuse = refuse
        self._tell = tell
        self._tools = tools
        self._lock = asyncio.Lock()

    def keeper(self, workspace: Workspace | None) -> FileKeeper:
        """What saves the files of this workspace before calls change them, and what undoing calls takes."""
        return FileKeeper(workspace, self._store.blobs, self._store.checkpoints.save, self._conversation_id)

    async def list(self) -> tuple[Checkpoint, ...]:
        """All of them, oldest first. Raises StorageFailed."""
        return await self._store.checkpoints.of(self._conversation_id)

    async def restore(self, checkpoint_id: str, *, even_if_changed: bool = False) -> Restored:
        """Undo one call and put back its files; those that were changed since only when `even_if_changed` says so.

        What was left alone is in the answer. Raises WrongUse while working, when the conversation is closed, and for an
        unknown one; StorageFailed.
        """
        async with self._lock:
            for checkpoint in await self.list():
                if checkpoint.id == checkpoint_id:
                    return await self._restored(checkpoint, even_if_changed=even_if_changed)
        raise WrongUse("There is no such checkpoint in this conversation.", "Choose one from the list.")

    async def restore_since(self, message_id: str, *, even_if_changed: bool = False) -> tuple[Restored, ...]:
        """Put back, newest first, what the calls of this message and of all after it changed; as `restore`.

        What was restored before is left out.
        """
        async with self._lock:
            later = self._since(message_id, await self.list())
            return tuple(
                [await self._restored(each, even_if_changed=even_if_changed) for each in later if not each.restored]
            )

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

    async def _restored(self, checkpoint: Checkpoint, *, even_if_changed: bool) -> Restored:
        self._refuse()
        checkpoint, not_undone = await self._undone(checkpoint)
        try:
            folder = checkpoint.workspace
            workspace = await in_thread(lambda _sign: Workspace(Path(folder))) if folder else None
            restored = await self.keeper(workspace).restore(checkpoint, even_if_changed=even_if_changed)
        except WrongUse as error:
            # The folder is gone, or another one stands in its place.
            restored = Restored(checkpoint, left_alone=tuple(failed(file.path, error) for file in checkpoint.files))
        if not_undone is not None:
            restored = replace(restored, left_alone=(not_undone, *restored.left_alone))
        told = CheckpointRestored(
            checkpoint.id, restored.conflicts, restored.failed, restored.undone, restored.not_undone
        )
        self._tell(told)
        return restored

    async def _undone(self, checkpoint: Checkpoint) -> tuple[Checkpoint, LeftAlone | None]:
        """The checkpoint as it is noted now, and why the call was not undone where it should have been."""
        if not checkpoint.owes_undo:
            return checkpoint, None
        if checkpoint.undone:
            return checkpoint, _left_alone(checkpoint, _BROKEN_OFF)
        if checkpoint.succeeded is None:
            return checkpoint, _left_alone(checkpoint, _NOT_ENDED)
        tool, arguments = self._tool(checkpoint.tool), checkpoint.input
        undo = tool and tool.undo
        if tool is None or undo is None or arguments is None:
            return checkpoint, _left_alone(checkpoint, _GONE, _BRING_BACK)
        begun = checkpoint.model_copy(update={"undone": True})
        await self._store.checkpoints.save(begun)
        words = await _undo(tool, undo, arguments)
        if isinstance(words, Fault):
            _log.error("tool %s could not undo a call: %s", tool.name, words.trace)
            return begun, _left_alone(begun, _FAILED, why=words.words)
        done = begun.model_copy(update={"undo_said": words})
        await self._store.checkpoints.save(done)
        return done, None

    def _tool(self, identity: str) -> AnyTool | None:
        """The tool that made the call, if it is there still and can undo."""
        try:
            tools = self._tools()
        except WrongUse:
            return None  # its folder is gone
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


def _left_alone(checkpoint: Checkpoint, template: str, remedy: Sentence = _BY_HAND, **values: str) -> LeftAlone:
    return LeftAlone(checkpoint.tool, Sentence(template, {"tool": checkpoint.tool, **values}), remedy, is_undo=True)
