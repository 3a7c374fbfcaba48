"""Stop, from any thread."""

import asyncio
from collections.abc import Callable


class InterruptHandle:
    """Stops what an agent does. For any thread and for signal handlers; it may be kept and used again.

    Stopping twice is stopping once; where nothing is under way it does nothing, and it never raises.
    """

    def __init__(self, stop_request: "StopRequest") -> None:
        self._stop_request = stop_request

    def interrupt(self) -> None:
        """Stop what is under way now: the loop does it next, and before it begins anything else."""
        self._stop_request.request()

    __call__ = interrupt


class StopRequest:
    """What a handle asks for, until the loop has done it."""

    def __init__(self, interrupt: Callable[[], object]) -> None:
        self._interrupt = interrupt
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_requested = False

    def bind(self, loop: asyncio.AbstractEventLoop) -> None:
        """The loop in which there is something to stop; the faces say it when their work begins."""
        self._loop = loop

    def request(self) -> None:
        """From any thread: stop, unless there is nothing under way."""
        loop = self._loop
        if loop is None:
            return
        self._is_requested = True
        try:
            # Never at once: a signal handler may run in the middle of anything.
            loop.call_soon_threadsafe(self.run_pending)
        except RuntimeError:
            # The loop is closed, so nothing is under way.
            self._is_requested = False

    def run_pending(self) -> None:
        """In the loop: do what was asked for. Called before something begins that nobody meant to stop."""
        if self._is_requested:
            self._is_requested = False
            self._interrupt()
