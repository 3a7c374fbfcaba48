"""Waits for a disk that refused something to take it again, and tells of both."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from desktop_agent.vocabulary.errors import StorageFailed

_log = logging.getLogger(__name__)

# Seconds between two tries; twice as many each time, up to the longest.
FIRST_RETRY_SECONDS = 2.0
MAX_RETRY_SECONDS = 30.0


class DiskWatch:
    """`trouble` is what the disk refused last; None while it takes everything.

    `recover` tries whether the disk works again, and raises StorageFailed while it does not. It is called now and then
    while there is trouble.
    """

    def __init__(self, recover: Callable[[], Awaitable[None]]) -> None:
        self._recover = recover
        self.trouble: StorageFailed | None = None
        self._listeners: list[Callable[[StorageFailed | None], None]] = []
        self._task: asyncio.Task[None] | None = None
        self._pause = FIRST_RETRY_SECONDS
        self._ended_at = 0.0
        self._is_closed = False

    def on_change(self, listener: Callable[[StorageFailed | None], None]) -> None:
        """Be told when trouble begins or becomes another, and with None when it is over."""
        self._listeners.append(listener)

    def report_trouble(self, trouble: StorageFailed) -> None:
        """The disk refused something."""
        if self._is_closed:
            return
        self._set(trouble)
        if self._task is None:
            loop = asyncio.get_running_loop()
            # A little room is soon used up again: then it is not tried as often.
            self._pause = self._pause if loop.time() - self._ended_at < MAX_RETRY_SECONDS else FIRST_RETRY_SECONDS
            self._task = loop.create_task(self._watch())

    async def close(self) -> None:
        """Try no more."""
        self._is_closed = True
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _watch(self) -> None:
        while self.trouble is not None:
            await asyncio.sleep(self._pause)
            self._pause = min(2 * self._pause, MAX_RETRY_SECONDS)
            try:
                await self._recover()
            except StorageFailed as error:
                self._set(error)
            except Exception:  # noqa: BLE001 - whoever waits for the disk waits for this task
                _log.exception("whether the disk takes things again is not known")
            else:
                self._ended_at = asyncio.get_running_loop().time()
                self._task = None
                self._set(None)
                return

    def _set(self, trouble: StorageFailed | None) -> None:
        is_same = str(trouble) == str(self.trouble)
        self.trouble = trouble
        if is_same:
            return
        _log.info("the disk: %s", "it takes everything again" if trouble is None else type(trouble).__name__)
        for listener in tuple(self._listeners):
            listener(trouble)
