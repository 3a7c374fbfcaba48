"""Runs work on the database in the one thread that may use it, and watches a disk that refused something."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from desktop_agent.processes.listeners import Listeners
from desktop_agent.processes.worker_threads import WorkerThread
from desktop_agent.storage.connection import DatabaseConnection
from desktop_agent.storage.guarded_database import FilePin, GuardedDatabase, IntegrityChecker
from desktop_agent.storage.locks.conversation_locks import Program
from desktop_agent.storage.opening import DATABASE_NAME, OpenedDatabase, open_database
from desktop_agent.types.errors import (
    DatabaseBusy,
    DatabaseDamaged,
    DatabaseReplaced,
    Sentence,
    StorageFailed,
    WrittenElsewhere,
    WrongUse,
)

_log = logging.getLogger(__name__)

# Seconds between two tries; twice as many each time, up to the longest.
FIRST_RETRY_SECONDS = 2.0
MAX_RETRY_SECONDS = 30.0


class DiskWatch:
    """`trouble` is the disk's last refusal; None while it takes everything.

    `recover` tests whether the disk works again, and raises StorageFailed while it does not. It is called now and
    then while there is trouble.
    """

    def __init__(self, recover: Callable[[], Awaitable[None]]) -> None:
        self._recover = recover
        self.trouble: StorageFailed | None = None
        self._changed = Listeners[[StorageFailed | None]]()
        self.on_change = self._changed.add
        """Call a listener when trouble begins or changes, and with None when it is over."""
        self._task: asyncio.Task[None] | None = None
        self._pause = FIRST_RETRY_SECONDS
        self._ended_at = 0.0
        self._is_closed = False

    def report_trouble(self, trouble: StorageFailed) -> None:
        """Report a refusal of the disk."""
        if self._is_closed:
            return
        self._set(trouble)
        if self._task is None:
            loop = asyncio.get_running_loop()
            # Freed room may be used up again at once: then the pause is not shortened.
            self._pause = self._pause if loop.time() - self._ended_at < MAX_RETRY_SECONDS else FIRST_RETRY_SECONDS
            self._task = loop.create_task(self._watch())

    async def test(self) -> None:
        """Report it if the disk refuses writes now."""
        try:
            await self._recover()
        except StorageFailed as error:
            self.report_trouble(error)

    async def close(self) -> None:
        """Stop testing."""
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
            except Exception:  # noqa: BLE001 - everything that waits for the disk waits for this task
                _log.exception("could not test whether the disk can be written again")
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
        _log.info("disk: %s", "can be written again" if trouble is None else type(trouble).__name__)
        self._changed.notify(trouble)


T = TypeVar("T")
_THREAD_NAME = "conversations"


class DatabaseThread:
    """The database and its thread. Made by `DatabaseThread.open`. `notices` are for the person, about the opening."""

    def __init__(self, folder: Path, worker: WorkerThread, opened: OpenedDatabase) -> None:
        self.notices = opened.notices
        self._worker = worker
        self._database = GuardedDatabase(folder, opened)
        self._notice = Listeners[[Sentence]]()
        self.on_notice = self._notice.add
        """Call a listener with notices about repairs while the database is open."""
        self._replaced = Listeners[[DatabaseReplaced]]()
        self.on_replaced = self._replaced.add
        """Call a listener when another file has been opened in place of this one."""
        self._replacements_notified = 0
        self.integrity_checker = IntegrityChecker(folder / DATABASE_NAME, worker, self._database, self._notice.notify)
        self.disk = DiskWatch(self._try_writing)
        if opened.read_only is not None:
            self.disk.report_trouble(opened.read_only)
        self._closing: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, folder: Path, program: Program) -> "DatabaseThread":
        """Open the database in `folder`. Raises as `open_database` does."""
        worker = WorkerThread(_THREAD_NAME)
        future = worker.submit(lambda: open_database(folder, program=program))
        try:
            opened = await asyncio.shield(asyncio.wrap_future(future))
        except BaseException:
            # When only the waiter was cancelled, the thread still opens the database: then it closes it again.
            worker.submit(lambda: _close_opened(future))
            worker.stop()
            raise
        return cls(folder, worker, opened)

    @property
    def read_only(self) -> StorageFailed | None:
        """Return why nothing can be written, from the opening on; None where it can."""
        return self._database.read_only

    async def run(self, work: Callable[[DatabaseConnection], T], pin: FilePin | None = None) -> T:
        """Do the work, also when the caller is cancelled. Raises StorageFailed and its subclasses.

        `pin` binds it to the file that the first work with the same pin used: raises DatabaseReplaced once another
        file is open.
        """
        if self._closing is not None:
            raise WrongUse("The store is closed.")
        try:
            return await self._run(work, pin)
        except DatabaseDamaged:
            if not await self.integrity_checker.try_repair():
                raise
        except (DatabaseBusy, WrittenElsewhere):
            raise
        except StorageFailed as error:
            if error not in self._database.replacements:
                self.disk.report_trouble(error)
            raise
        return await self._run(work, pin)

    async def run_quietly(self, work: Callable[[DatabaseConnection], T]) -> T:
        """Do work that can be left out: a refusal is not reported as trouble of the disk, and nothing is repaired.

        Raises StorageFailed.
        """
        if self._closing is not None:
            raise WrongUse("The store is closed.")
        return await self._run(work, None)

    def pin_to_known_file(self) -> FilePin:
        """Return a pin to the file that listeners know: what people see comes from it."""
        return FilePin(self._replacements_notified)

    async def close(self) -> None:
        """Finish what is queued, close the database and end its thread. Harmless when repeated."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._close())
        await asyncio.shield(self._closing)

    async def _run(self, work: Callable[[DatabaseConnection], T], pin: FilePin | None) -> T:
        try:
            return await self._worker.run(lambda: self._database.run(work, pin))
        finally:
            self._notify_replacements()

    async def _try_writing(self) -> None:
        """Raise StorageFailed as long as nothing can be written."""
        try:
            notices = await self._worker.run(self._database.try_writing)
        finally:
            self._notify_replacements()
        for notice in notices:
            self._notice.notify(notice)

    def _notify_replacements(self) -> None:
        new = self._database.replacements[self._replacements_notified :]
        self._replacements_notified += len(new)
        for replaced in new:
            self._notice.notify(replaced.whole)
            self._replaced.notify(replaced)
        for notice in self._database.take_notices() if new else ():
            self._notice.notify(notice)

    async def _close(self) -> None:
        try:
            await self.disk.close()
            await self.integrity_checker.close()
        finally:
            try:
                await self._worker.run(self._database.close)
            finally:
                self._worker.stop()


def _close_opened(future: "Future[OpenedDatabase]") -> None:
    if future.exception() is None:
        opened = future.result()
        opened.connection.close()
        if opened.presence is not None:
            opened.presence.end()
