"""Disk work off the event loop, such that nothing of it is left running once a cancel has been answered."""

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

from desktop_agent.vocabulary.errors import ToolFailed

Result = TypeVar("Result")


class Stopped(ToolFailed):
    """The work saw that it was cancelled before it had an effect."""

    kind = "stopped"


class StopSign:
    """Raised by the loop's side, looked at by the thread before each step that matters."""

    def __init__(self) -> None:
        self._raised = threading.Event()

    def hoist(self) -> None:
        """Ask the work to end."""
        self._raised.set()

    def check(self) -> None:
        """Raise Stopped when the work should end."""
        if self._raised.is_set():
            raise Stopped("The call was stopped before it did anything.")


async def in_thread(work: Callable[[StopSign], Result]) -> Result:
    """Run `work` in a worker thread.

    A cancel hoists the sign, waits for the thread's end, and only then is passed on.
    """
    sign = StopSign()
    running = asyncio.ensure_future(asyncio.to_thread(work, sign))
    cancelled: asyncio.CancelledError | None = None
    while not running.done():
        try:
            await asyncio.wait([running])
        except asyncio.CancelledError as error:
            sign.hoist()
            cancelled = error
    if cancelled is not None:
        # Looking at the exception keeps asyncio from reporting it as never retrieved.
        if not running.cancelled():
            running.exception()
        raise cancelled
    return running.result()
