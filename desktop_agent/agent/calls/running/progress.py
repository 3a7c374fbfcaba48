"""Live output of a running tool, which may come from any thread, at any time, and without end."""

import asyncio
import contextlib
import threading

from desktop_agent.agent.calls.call import ToolExecution
from desktop_agent.agent.calls.scope import BatchContext
from desktop_agent.tools.answers import plain_text
from desktop_agent.vocabulary.engine_events import ToolProgress

# What one piece counts at least, so that a flood of empty ones ends too.
_MIN_PIECE_COST = 16
MAX_OUTPUT_TAIL = 4_000
"""Characters of the end of what was told that stay known, for a call that is broken off."""
_OUTPUT_CUT = "[more output is not shown]"


class LiveOutput:
    """What a tool calls with its output. Nothing is told before its start, after its end, or after Stop."""

    def __init__(self, scope: BatchContext, call: ToolExecution) -> None:
        self._scope = scope
        self._call = call
        self._left = scope.limits.result_characters
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()

    def __call__(self, text: str) -> None:
        """Tell this much more."""
        if threading.get_ident() == self._thread:
            self._emit(text)
        elif self._left > 0:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is left to be told
                self._loop.call_soon_threadsafe(self._emit, text)

    def _emit(self, text: object) -> None:
        call = self._call
        is_heard = call.is_running and call.is_open and not call.is_stopped and not self._scope.is_closed
        if not is_heard or self._left <= 0 or not issubclass(type(text), str):
            return
        words = plain_text(text)
        shown = words[: self._left]
        self._left -= max(len(words), _MIN_PIECE_COST)
        call.output_tail = (call.output_tail + shown)[-MAX_OUTPUT_TAIL:]
        self._scope.emit(ToolProgress(call.use.id, shown))
        if self._left <= 0:
            self._scope.emit(ToolProgress(call.use.id, _OUTPUT_CUT))
