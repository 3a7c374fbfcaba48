"""Writes that are made soon, in order, and again after the disk refused."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from desktop_agent.agent.calls.fence import Fault
from desktop_agent.vocabulary.errors import StorageFailed

_log = logging.getLogger(__name__)
Write = TypeVar("Write")

# Streamed text reaches the disk at least this often, in seconds: twice as often as promised.
FLUSH_INTERVAL = 0.25


class WriteBehind(ABC, Generic[Write]):
    """What waits to be written. What the disk refuses is kept in memory and tried again with the next write."""

    def __init__(self) -> None:
        self._pending: deque[Write] = deque()
        self._lock = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._flushing: asyncio.Task[None] | None = None
        self._in_trouble = False
        self._trouble_listeners: list[Callable[[StorageFailed | None], None]] = []
        self._watchers: list[Callable[[], None]] = []

    @property
    def is_settled(self) -> bool:
        """Whether nothing waits to be written."""
        return not self._pending and not self._lock.locked()

    def on_trouble(self, listener: Callable[[StorageFailed | None], None]) -> None:
        """Be told once when writing begins to fail, and with None when it works again."""
        self._trouble_listeners.append(listener)

    def on_work(self, watcher: Callable[[], None]) -> None:
        """Be told when something waits to be written, and after each attempt to write it."""
        self._watchers.append(watcher)

    async def settle(self) -> None:
        """Return when everything so far is durable. Raises StorageFailed.

        A caller that is cancelled leaves the writing to go on: half a write would be written twice.
        """
        writing = asyncio.create_task(self._write_in_turn())
        writing.add_done_callback(lambda _: self._tell_watchers())
        trouble = await asyncio.shield(writing)
        if trouble is not None:
            raise trouble

    async def write_all(self) -> None:
        """Write what waits; a refusal of the disk is told to who listens for trouble, not raised."""
        try:
            await self.settle()
        except StorageFailed:
            return  # who listens has been told; the writes are kept

    async def close(self) -> None:
        """Write what is left and stop the timer."""
        self._stop_timer()
        if self._flushing is not None:
            await self._flushing
        await self.write_all()

    def _append(self, write: Write) -> None:
        """Written with whatever is written next."""
        self._pending.append(write)
        if len(self._pending) == 1:
            self._tell_watchers()

    def _write_within_the_interval(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(FLUSH_INTERVAL, self._write_now)

    def _write_soon(self, write: Write) -> None:
        self._append(write)
        self._write_now()

    def _write_now(self) -> None:
        self._stop_timer()
        if self._flushing is None or self._flushing.done():
            self._flushing = asyncio.create_task(self.write_all())
        else:
            # It may have looked for the last time already.
            self._write_within_the_interval()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tell_watchers(self) -> None:
        for watcher in self._watchers:
            watcher()

    async def _write_in_turn(self) -> StorageFailed | None:
        async with self._lock:
            trouble: StorageFailed | None = None
            try:
                await self._write_pending()
            except StorageFailed as error:
                trouble = error
            except Exception as error:  # noqa: BLE001 - what can never be written must not hold up what can
                _log.error("a part of the conversation could not be written: %s", Fault(error).trace)
                trouble = StorageFailed(f"A part of the conversation could not be written ({type(error).__name__}).")
            if (trouble is not None) != self._in_trouble:
                self._in_trouble = trouble is not None
                for listener in self._trouble_listeners:
                    listener(trouble)
            return trouble

    async def _write_pending(self) -> None:
        while self._pending:
            await self._prepare(self._pending[0])
            # Taken out first: what is noted meanwhile goes behind, not into, what is being written just now.
            write = self._pending.popleft()
            try:
                await self._write(write)
            except (StorageFailed, asyncio.CancelledError):
                self._pending.appendleft(write)
                raise
            except Exception:
                self._give_up(write)
                raise

    @abstractmethod
    async def _prepare(self, write: Write) -> None:
        """Do what must be done before this one can be written. Raises StorageFailed."""

    @abstractmethod
    async def _write(self, write: Write) -> None:
        """One write. Raises StorageFailed where it is worth trying again."""

    @abstractmethod
    def _give_up(self, write: Write) -> None:
        """This one can never be written."""
