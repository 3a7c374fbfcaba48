"""What calls did besides their files is taken back by the tools that made them, where those can."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from desktop_agent.agent.calls.fence import Fence
from desktop_agent.storage.store import Store
from desktop_agent.tools.answers import plain, whole
from desktop_agent.tools.foreign_code import Fault, copied
from desktop_agent.tools.in_thread import by_size
from desktop_agent.tools.keeping.putting_back import LeftAlone
from desktop_agent.tools.registry import ToolRegistry
from desktop_agent.tools.tool import AnyTool
from desktop_agent.vocabulary.blocks import JsonObject
from desktop_agent.vocabulary.conduct.checkpoints import Checkpoint
from desktop_agent.vocabulary.errors import Sentence, WrongUse

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
_NOT_AGAIN = "What “{tool}” took back is not done again; only files are brought back."


class UndoingByTools:
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

    async def undone(self, checkpoint: Checkpoint) -> tuple[Checkpoint, LeftAlone | None]:
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

    def why_not_undone(self, checkpoint: Checkpoint) -> Sentence | None:
        """The same for a forecast."""
        left = self._left_alone(checkpoint)
        return None if left is None else left.why

    def _tool(self, identity: str) -> AnyTool | None:
        """The tool that made the call, if it is there still and can undo."""
        tools = self.tools
        found = (tools.get(name) for name in tools.names)
        return next((each for each in found if each and each.identity == identity and each.undo), None)


def not_done_again(checkpoint: Checkpoint) -> Sentence | None:
    """What redoing leaves out of a call that was undone."""
    said = checkpoint.undo_said is not None
    return Sentence(_NOT_AGAIN, {"tool": checkpoint.tool.split(" @ ")[0]}) if said else None


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
