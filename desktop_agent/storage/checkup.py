"""Whether the database is whole: looked at now and then, on suspicion, or when somebody asks."""

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from desktop_agent.storage.database.checking import IntegrityCheck, is_only_indexes
from desktop_agent.storage.database.connection import damaged_error, database_error
from desktop_agent.storage.database.guarded import GuardedDatabase
from desktop_agent.storage.worker import WorkerThread
from desktop_agent.vocabulary.errors import Sentence, StorageFailed

INDEX_REPAIRED = Sentence(
    "An index of the saved conversations was damaged, so that some could not be found. It was made anew from the "
    "conversations themselves; nothing is lost."
)
NO_DAMAGE = Sentence("The saved conversations were checked; nothing is wrong with them.")
# A quick check takes about 2 ms a megabyte: what is large is read less often.
_LARGE_BYTES = 100 * 1024 * 1024
_CHECK_INTERVAL, _CHECK_INTERVAL_LARGE = timedelta(days=1), timedelta(days=7)


class IntegrityChecker:
    """Checks run in a thread and on a connection of their own: the journal does not wait for them.

    `worker` is the thread of the `database`, in which it is repaired; `notify` is told of repairs.
    """

    def __init__(
        self, path: Path, worker: WorkerThread, database: GuardedDatabase, notify: Callable[[Sentence], None]
    ) -> None:
        self._path = path
        self._last_check_file = path.with_name(f"{path.name}.last-check")
        self._worker = worker
        self._database = database
        self._notify = notify
        self._turn = asyncio.Lock()
        self._check: IntegrityCheck | None = None
        self._is_beyond_repair = False
        self._is_closed = False

    def last(self) -> datetime | None:
        """When it was found whole last; None where it never was. Reads the disk."""
        try:
            return datetime.fromtimestamp(self._last_check_file.stat().st_mtime, UTC)
        except OSError:
            return None

    def is_due(self) -> bool:
        """Whether the last one is a day ago, or a week where the database is large. Reads the disk."""
        last = self.last()
        try:
            is_large = self._path.stat().st_size > _LARGE_BYTES
        except OSError:
            return False
        return last is None or datetime.now(UTC) - last > (_CHECK_INTERVAL_LARGE if is_large else _CHECK_INTERVAL)

    async def run(self, *, full: bool) -> Sentence | None:
        """Check, and repair what can be repaired in place; returns how it went, None when it was cancelled.

        The full check compares the indexes too. Raises DatabaseDamaged when it is not whole, and StorageFailed when it
        cannot be looked at.
        """
        if self._database.read_only is not None:
            raise self._database.read_only
        async with self._turn:
            found = await self._find_damage(full=full)
            if found is None:
                return None
            if not found:
                await asyncio.to_thread(self._set_mark)
                return NO_DAMAGE
            if await self._repair(found if full else None):
                return INDEX_REPAIRED
        raise damaged_error(self._path, "\n".join(found))

    async def try_repair(self) -> bool:
        """Something misled: look at all of it, and repair what can be; the next opening rescues the rest."""
        async with self._turn:
            try:
                return not self._is_beyond_repair and await self._repair(None)
            except StorageFailed:
                return False

    def cancel(self) -> None:
        """End the check that is under way, if there is one."""
        if self._check is not None:
            self._check.cancel()

    async def close(self) -> None:
        """Cancel, and return when nothing is looked at any more."""
        self._is_closed = True
        self.cancel()
        async with self._turn:
            return

    async def _repair(self, found: list[str] | None) -> bool:
        found = found or await self._find_damage(full=True)
        if found is None:
            return False
        if is_only_indexes(found):
            with suppress(StorageFailed):
                await self._worker.run(self._database.reindex)
                found = await self._find_damage(full=True)
            if found is None:
                return False
            if not found:
                self._notify(INDEX_REPAIRED)
        self._is_beyond_repair = bool(found)
        if found:
            await self._worker.run(self._database.mark_damaged)
        return not found

    async def _find_damage(self, *, full: bool) -> list[str] | None:
        """What is wrong; None when it was cancelled. Raises StorageFailed."""
        if self._is_closed:
            return None
        worker = WorkerThread("check")
        check = self._check = IntegrityCheck(self._path, full=full)
        try:
            found = await worker.run(check.run)
        except sqlite3.Error as error:
            # It could not be looked at, which says nothing about it.
            raise database_error(error, self._path) from error
        finally:
            # Also where nobody waits for it any more.
            check.cancel()
            self._check = None
            worker.stop()
        return found

    def _set_mark(self) -> None:
        with suppress(OSError):
            self._last_check_file.touch(mode=0o600)
