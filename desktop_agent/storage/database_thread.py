"""Runs work on the database in the one thread that may use it, and tells what is found out about its file."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar

from desktop_agent.storage.checkup import IntegrityChecker
from desktop_agent.storage.conversation_locks import Program
from desktop_agent.storage.database.connection import DatabaseConnection
from desktop_agent.storage.database.guarded import FilePin, GuardedDatabase
from desktop_agent.storage.database.opening import DATABASE_NAME, OpenedDatabase, open_database
from desktop_agent.storage.disk_watch import DiskWatch
from desktop_agent.storage.worker import WorkerThread
from desktop_agent.vocabulary.errors import (
    DatabaseBusy,
    DatabaseDamaged,
    DatabaseReplaced,
    Sentence,
    StorageFailed,
    WrittenElsewhere,
    WrongUse,
)

T = TypeVar("T")
_THREAD_NAME = "conversations"


class DatabaseThread:
    """Made by `DatabaseThread.open`. `notices` are what the person must be told about the opening."""

    def __init__(self, folder: Path, worker: WorkerThread, opened: OpenedDatabase) -> None:
        self.notices = opened.notices
        self._worker = worker
        self._database = GuardedDatabase(folder, opened)
        self._notice_listeners: list[Callable[[Sentence], None]] = []
        self._replaced_listeners: list[Callable[[DatabaseReplaced], None]] = []
        self._replacements_notified = 0
        self.integrity_checker = IntegrityChecker(folder / DATABASE_NAME, worker, self._database, self._notify)
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
        """Why nothing can be written, from the opening on; None where things can."""
        return self._database.read_only

    def on_notice(self, listener: Callable[[Sentence], None]) -> None:
        """Be told what was found and repaired while the database was open."""
        self._notice_listeners.append(listener)

    def on_replaced(self, listener: Callable[[DatabaseReplaced], None]) -> None:
        """Be told that another file is open from now on."""
        self._replaced_listeners.append(listener)

    async def run(self, work: Callable[[DatabaseConnection], T], pin: FilePin | None = None) -> T:
        """Do the work, also when the caller is cancelled. Raises StorageFailed and what is below it.

        `pin` binds it to the file to which the first work with the same one was done: raises DatabaseReplaced once
        another file is open.
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

    def pin_to_known_file(self) -> FilePin:
        """Bind to the file that was told of last: what people see is from that one."""
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
        """Raises StorageFailed as long as nothing can be written."""
        try:
            notices = await self._worker.run(self._database.try_writing)
        finally:
            self._notify_replacements()
        for notice in notices:
            self._notify(notice)

    def _notify_replacements(self) -> None:
        new = self._database.replacements[self._replacements_notified :]
        self._replacements_notified += len(new)
        for replaced in new:
            self._notify(replaced.whole)
            for listener in tuple(self._replaced_listeners):
                listener(replaced)
        for notice in self._database.take_notices() if new else ():
            self._notify(notice)

    def _notify(self, notice: Sentence) -> None:
        for listener in tuple(self._notice_listeners):
            listener(notice)

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
