"""Live output of a running tool, which may come from any thread, at any time, and without end."""

import asyncio
import contextlib
import threading

from desktop_agent.agent.calls.call import Call
from desktop_agent.agent.calls.scope import Scope
from desktop_agent.tools.answers import plain
from desktop_agent.vocabulary.engine_events import ToolProgress

# What one piece counts at least, so that a flood of empty ones ends too.
_LEAST = 16
MOST_SHOWN = 4_000
"""Characters of the end of what was told that stay known, for a call that is broken off."""
_ENOUGH = "[more output is not shown]"


class Progress:
    """What a tool calls with its output. Nothing is told before its start, after its end, or after Stop."""

    def __init__(self, scope: Scope, call: Call) -> None:
        self._scope = scope
        self._call = call
        self._left = scope.limits.result_characters
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()

    def __call__(self, text: str) -> None:
        """Tell this much more."""
        if threading.get_ident() == self._thread:
            self._tell(text)
        elif self._left > 0:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is left to be told
                self._loop.call_soon_threadsafe(self._tell, text)

    def _tell(self, text: object) -> None:
        call = self._call
        is_heard = call.is_running and call.is_open and not call.is_stopped and not self._scope.is_closed
        if not is_heard or self._left <= 0 or not issubclass(type(text), str):
            return
        words = plain(text)
        shown = words[: self._left]
        self._left -= max(len(words), _LEAST)
        call.shown = (call.shown + shown)[-MOST_SHOWN:]
        self._scope.emit(ToolProgress(call.use.id, shown))
        if self._left <= 0:
            self._scope.emit(ToolProgress(call.use.id, _ENOUGH))
