"""Writes that are made soon, in order, and again after the disk refused."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from desktop_agent.tools.foreign_code import told, trace_of
from desktop_agent.vocabulary.errors import DatabaseReplaced, StorageFailed, WrittenElsewhere, WrongUse

_log = logging.getLogger(__name__)
Write = TypeVar("Write")

# Streamed text reaches the disk at least this often, in seconds: twice as often as promised.
FLUSH_INTERVAL = 0.25
# What the disk refused is tried again after so many seconds, or with the next write.
AGAIN = 3.0
# After these a conversation writes nothing more; it has to be opened again.
OVERTAKEN = (WrittenElsewhere, DatabaseReplaced)


def closed() -> WrongUse:
    """For whoever still wants something of a conversation that was closed."""
    return WrongUse("This conversation is closed.", "Open it again, and go on there.")


def _never_written(error: Exception) -> StorageFailed:
    _log.error("a part of the conversation could not be written: %s", trace_of(error))
    return StorageFailed(f"A part of the conversation could not be written ({type(error).__name__}).")


class WriteBehind(ABC, Generic[Write]):
    """What waits to be written. What the disk refuses is kept in memory and tried again with the next write,
    and after a moment.

    After WrittenElsewhere nothing is written any more: it would go between what another process writes. Nor after
    DatabaseReplaced: the file that is there now does not hold what it would go on from.
    """

    def __init__(self) -> None:
        self._pending: deque[Write] = deque()
        self._in_hand: Write | None = None
        """What is being written just now."""
        self._lock = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._again: asyncio.TimerHandle | None = None
        self._flushing: asyncio.Task[None] | None = None
        self.trouble: StorageFailed | None = None
        """What the disk said last, or why something can never be written; None while writing works."""
        self.given_up: StorageFailed | None = None
        """Why something can never be written, from the first such write on."""
        self._losses = self._losses_told = 0
        self._overtaken: WrittenElsewhere | DatabaseReplaced | None = None
        self._is_closed = False
        self._trouble_listeners: list[Callable[[StorageFailed | None], None]] = []
        self._watchers: list[Callable[[], None]] = []

    @property
    def is_settled(self) -> bool:
        """Whether nothing waits to be written."""
        return not self._pending and not self._lock.locked()

    def on_trouble(self, listener: Callable[[StorageFailed | None], None]) -> None:
        """Be told when writing begins to fail, when it ends for good (OVERTAKEN), and with None when it works again."""
        self._trouble_listeners.append(listener)

    def on_work(self, watcher: Callable[[], None]) -> None:
        """Be told when something waits to be written, and after each attempt to write it."""
        self._watchers.append(watcher)

    async def settle(self) -> None:
        """Return when everything so far is durable. Raises StorageFailed, also for what was lost since the last time.

        Whoever waits while something is lost hears of it: an effect of each may rest on that.
        A caller that is cancelled leaves the writing to go on: half a write would be written twice.
        """
        known = self._losses_told
        trouble = await self._written()
        lost = self.given_up if self._losses > known else None
        self._losses_told = self._losses
        if (fault := trouble or lost) is not None:
            raise fault

    async def write_all(self) -> None:
        """Write what waits; a refusal of the disk is told to who listens for trouble, not raised."""
        await self._written()

    async def write_at_once(self) -> None:
        """The same on any loop, without taking turns: the program ends, and its own loop does not go on any more.

        What was being written just then is written again, which is harmless: only the other loop would hear what became
        of it. Raises StorageFailed, and what else makes a write impossible.
        """
        if self._in_hand is not None:
            self._pending.appendleft(self._in_hand)
            self._in_hand = None
        while self._pending:
            try:
                await self._prepare(self._pending[0])
            except OVERTAKEN:
                raise  # somebody else writes there now
            except Exception:  # noqa: BLE001, S110 - what the other loop had prepared or handed to the disk is done already
                pass
            write = self._pending.popleft()
            try:
                await self._write(write)
            except BaseException:
                self._pending.appendleft(write)
                raise

    async def _written(self) -> StorageFailed | None:
        writing = asyncio.create_task(self._write_in_turn())
        writing.add_done_callback(lambda _: self._tell_watchers())
        return await asyncio.shield(writing)

    async def close(self) -> None:
        """Write what is left and stop the timer; what comes later raises WrongUse. Harmless when repeated."""
        self._stop_timer()
        if self._flushing is not None:
            await self._flushing
        await self.write_all()
        self._is_closed = True

    def _append(self, write: Write) -> None:
        """Written with whatever is written next. Raises WrongUse when it is closed."""
        if self._is_closed:
            raise closed()
        if self._overtaken is not None:
            return
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
        if self._again is not None:
            self._again.cancel()
            self._again = None

    def _tell_watchers(self) -> None:
        for watcher in tuple(self._watchers):
            told(watcher)

    async def _write_in_turn(self) -> StorageFailed | None:
        async with self._lock:
            trouble: StorageFailed | None = self._overtaken
            try:
                trouble = await self._write_pending() or trouble
            except OVERTAKEN as error:
                trouble = self._overtaken = self.given_up = error
                self._pending.clear()
            except StorageFailed as error:
                trouble = error
            except Exception as error:  # noqa: BLE001 - who waits for the writing hears of it in one way only
                trouble = _never_written(error)
            self._note(trouble)
            if self._pending and trouble is not None and not self._is_closed and self._again is None:
                self._again = asyncio.get_running_loop().call_later(AGAIN, self._write_now)
            return trouble

    def _note(self, trouble: StorageFailed | None) -> None:
        # What can never be written is not saved when something else is.
        before, self.trouble = self.trouble, trouble or self.given_up
        # Being overtaken is the end, whatever the disk refused before.
        is_the_end = isinstance(self.trouble, OVERTAKEN) and self.trouble is not before
        if is_the_end or (self.trouble is None) != (before is None):
            for listener in tuple(self._trouble_listeners):
                told(listener, self.trouble)

    async def _write_pending(self) -> StorageFailed | None:
        """Write all that waits; what can never be written does not hold up what can, and is told at the end."""
        trouble: StorageFailed | None = None
        while self._pending:
            await self._prepare(self._pending[0])
            # Taken out first: what is noted meanwhile goes behind, not into, what is being written just now.
            write = self._in_hand = self._pending.popleft()
            try:
                await self._write(write)
            except (StorageFailed, asyncio.CancelledError):
                self._pending.appendleft(write)
                raise
            except Exception as error:  # noqa: BLE001 - see above
                self._give_up(write)
                # Whoever asks next whether all is durable must hear it: the next effect may rest on it.
                self._losses += 1
                trouble = self.given_up = _never_written(error)
            finally:
                self._in_hand = None
        return trouble

    @abstractmethod
    async def _prepare(self, write: Write) -> None:
        """Do what must be done before this one can be written. Raises StorageFailed."""

    @abstractmethod
    async def _write(self, write: Write) -> None:
        """One write. Raises StorageFailed where it is worth trying again."""

    @abstractmethod
    def _give_up(self, write: Write) -> None:
        """This one can never be written."""
