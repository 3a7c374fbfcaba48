"""What calls did besides their files is taken back by the tools that made them, where those can."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from desktop_agent.agent.calls.fence import TaskSupervisor
from desktop_agent.storage.store import Store
from desktop_agent.tools.answers import plain_text, replace_surrogates
from desktop_agent.tools.foreign_code import Fault, deep_copy
from desktop_agent.tools.in_thread import run_by_size
from desktop_agent.tools.keeping.putting_back import SkippedFile
from desktop_agent.tools.registry import ToolRegistry
from desktop_agent.tools.tool import AnyTool
from desktop_agent.vocabulary.blocks import JsonObject
from desktop_agent.vocabulary.conduct.checkpoints import Checkpoint
from desktop_agent.vocabulary.errors import Sentence, WrongUse

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
