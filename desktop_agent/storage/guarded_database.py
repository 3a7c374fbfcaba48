"""The open database, whose files are checked before each use; and the integrity check, with repair of its indexes."""

import asyncio
import logging
import re
import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

from desktop_agent.processes.worker_threads import WorkerThread
from desktop_agent.storage.connection import (
    DatabaseConnection,
    InconsistentData,
    connect,
    damaged_error,
    database_error,
    empty_log,
    is_damage,
    result_code,
    test_write,
)
from desktop_agent.storage.conversation_rows import NOT_A_BRANCH, has_misplaced_messages
from desktop_agent.storage.files import file_error, missing_error
from desktop_agent.storage.locks.conversation_locks import Program
from desktop_agent.storage.locks.open_files import OpenFiles, Presence, find_other_processes
from desktop_agent.storage.opening import (
    DATABASE_NAME,
    OpenedDatabase,
    as_read_only,
    mark_damaged,
    open_for_writing,
    opening_lock,
)
from desktop_agent.types.errors import DatabaseReplaced, Sentence, StorageFailed

_log = logging.getLogger(__name__)
T = TypeVar("T")


_RESTART_REMEDY = "Close the program and start it again. Nothing is saved until then."


@dataclass
class FilePin:
    """Binds its user to one file: the one that is open when it is first used."""

    replacements: int | None = None


class GuardedDatabase:
    """The open database. All methods belong to the thread that opened it."""

    def __init__(self, folder: Path, opened: OpenedDatabase) -> None:
        self._folder = folder
        self._path = folder / DATABASE_NAME
        self._connection = opened.connection
        self._files = opened.files
        self._program: Program = opened.program
        self._presence = opened.presence
        self._stop_error: DatabaseReplaced | None = None
        self._copy_notice: Sentence | None = None
        self._notices: tuple[Sentence, ...] = ()
        self.replacements: list[DatabaseReplaced] = []
        """One for each file that was replaced while it was open; entries are only added."""
        self.read_only = opened.read_only
        """Why nothing can be written; None where things can."""

    def run(self, work: Callable[[DatabaseConnection], T], pin: FilePin | None = None) -> T:
        """Do the work. Raises StorageFailed and its subclasses; DatabaseDamaged also for InconsistentData.

        Where the file was replaced, the work uses the new one; pinned to the old one it raises DatabaseReplaced.
        """
        try:
            self._check_files()
        except OSError as error:
            raise file_error(error, self._path) from error
        if pin is not None:
            if pin.replacements is None:
                pin.replacements = len(self.replacements)
            elif pin.replacements != len(self.replacements):
                raise self.replacements[pin.replacements]
        try:
            return work(self._connection)
        except InconsistentData as error:
            raise damaged_error(self._path, str(error)) from error
        except (sqlite3.IntegrityError, sqlite3.ProgrammingError):
            raise  # our own mistakes, not the disk's
        except sqlite3.DatabaseError as error:
            if self.read_only is not None and result_code(error) == sqlite3.SQLITE_READONLY:
                raise self.read_only from error
            raise database_error(error, self._path) from error

    def try_writing(self) -> tuple[Sentence, ...]:
        """Write something; reopen the database where it was read-only.

        Return notices about that opening. Raises StorageFailed and its subclasses where it fails.
        """
        if self.read_only is None:
            self.run(test_write)
            return ()
        try:
            opened = open_for_writing(self._folder, program=self._program)
        except StorageFailed as error:
            raise as_read_only(error) from error
        self._connection.close()
        self._connection, self._files, self.read_only = opened.connection, opened.files, None
        self._presence = opened.presence
        return opened.notices

    def reindex(self) -> None:
        """Rebuild all indexes from their tables. Raises StorageFailed."""
        self.run(lambda db: db.execute("REINDEX"))

    def mark_damaged(self) -> None:
        """Have the next opening rescue the database."""
        with suppress(OSError):
            mark_damaged(self._folder)

    def close(self) -> None:
        """Close all files."""
        if self._presence is not None:
            with suppress(sqlite3.Error, OSError, StorageFailed):
                self._close_log(self._presence)
        self._connection.close()
        if self._presence is not None:
            self._presence.end()

    def _close_log(self, presence: Presence) -> None:
        """Close the files so that a kill in between leaves no entry of this process without a log."""
        is_ours = not (self._files.is_replaced or self._files.has_lost_log)
        if is_ours:
            # Before the lock is taken: it takes long, and others would wait.
            empty_log(self._connection)
        with opening_lock(self._folder):
            if is_ours:
                empty_log(self._connection)
                if self._files.is_log_empty:
                    presence.end()
            self._connection.close()
            presence.end()
            find_other_processes(self._folder).forget_killed()

    def _check_files(self) -> None:
        if self._stop_error is not None:
            raise self._stop_error
        if not self._path.exists():
            # SQLite would keep writing into a file that has no name any more, and nobody would find it again.
            raise missing_error(self._path)
        if self.read_only is not None:
            return  # nothing is written
        if self._files.is_replaced:
            self._open_new_file()
        elif self._files.has_lost_log:
            self._restart_log()

    def _open_new_file(self) -> None:
        """Keep our file as a copy, and open the one that has the name now. Raises StorageFailed.

        The new one is opened before the old one is closed, which SQLite allows as they are two files; nothing is
        written to the old one any more.
        """
        _log.warning("another file has the name of the database; it is opened")
        if self._copy_notice is None:
            self._copy_notice = self._files.keep_copy(self._connection)
        if self._presence is not None:
            # The entry of this process would keep it from upgrading the new file.
            self._presence.end()
        opened = open_for_writing(self._folder, program=self._program, is_live=True)
        self._connection.close()
        self._connection, self._files, self._presence = opened.connection, opened.files, opened.presence
        self.replacements.append(DatabaseReplaced(self._copy_notice))
        self._notices += opened.notices
        self._copy_notice = None

    def take_notices(self) -> tuple[Sentence, ...]:
        """Return, once, the notices about new files that were opened."""
        notices, self._notices = self._notices, ()
        return notices

    def _restart_log(self) -> None:
        """Move what was committed from a log without a name into the database.

        One process alone may do that. Another one then finds a foreign log, in which the first writes: it keeps a
        copy of its own data and writes nothing more. It cannot open the same file anew: SQLite shares the index of
        the log within a process, and closing the database may delete the log by its name.
        """
        try:
            with opening_lock(self._folder):
                if self._files.has_foreign_log:
                    self._stop_error = DatabaseReplaced(self._files.keep_copy(self._connection), _RESTART_REMEDY)
                    raise self._stop_error
                self._restart_log_exclusively()
        except sqlite3.Error as error:
            raise database_error(error, self._path) from error
        except OSError as error:
            raise file_error(error, self._path) from error

    def _restart_log_exclusively(self) -> None:
        _log.warning("the log of the conversations was removed; a new one is begun")
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        self._files.set_foreign_log_aside()
        self._connection.close()
        self._connection = connect(self._path)
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.execute("COMMIT")
        self._files = OpenFiles(self._path)


_MAX_FINDINGS = 100
# What `integrity_check` says of an index that disagrees with its table. The table is right then: an index is made from
# it. Everything else is left to a rescue: REINDEX frees pages, which a damaged file may still need.
_INDEX_FINDING = re.compile(
    r"row \d+ missing from index .*|wrong # of entries in index .*|non-unique entry in index .*"
    r"|row \d+ values differ from index .*"
)


class IntegrityCheck:
    """One check of the whole database. `run` belongs to a thread; `cancel` may be called from any."""

    def __init__(self, path: Path, *, full: bool) -> None:
        self._path = path
        self._pragma = "integrity_check" if full else "quick_check"
        self._mutex = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self.is_cancelled = False

    def run(self) -> list[str] | None:
        """Return the faults; empty where there are none, None when it was cancelled. Raises sqlite3.Error.

        The full check compares every index with its table, which takes several times as long.
        """
        uri = self._path.absolute().as_uri() + "?mode=ro"
        opened = sqlite3.connect(uri, uri=True, check_same_thread=False, factory=DatabaseConnection)
        with closing(opened) as connection:
            with self._mutex:
                if self.is_cancelled:
                    return None
                self._connection = connection
            try:
                findings = [str(row[0]) for row in connection.execute(f"PRAGMA {self._pragma}({_MAX_FINDINGS})")]
                if findings == ["ok"]:
                    findings = [NOT_A_BRANCH] if has_misplaced_messages(connection) else []
            except sqlite3.Error as error:
                if self.is_cancelled:
                    return None
                if is_damage(error):
                    return [str(error)]
                raise
            finally:
                with self._mutex:
                    self._connection = None
        return findings

    def cancel(self) -> None:
        """Cancel the check."""
        with self._mutex:
            self.is_cancelled = True
            if self._connection is not None:
                self._connection.interrupt()


def is_only_indexes(findings: Sequence[str]) -> bool:
    """Return whether only indexes are wrong, so that REINDEX repairs all of it and loses nothing."""
    lines = [line for line in "\n".join(findings).splitlines() if line and not line.startswith("*** in database")]
    # The report is limited, so other findings may follow.
    return 0 < len(lines) < _MAX_FINDINGS and all(_INDEX_FINDING.fullmatch(line) for line in lines)


INDEX_REPAIRED = Sentence(
    "An index of the saved conversations was damaged, so that some could not be found. It was rebuilt from the "
    "conversations; nothing is lost."
)
NO_DAMAGE = Sentence("The saved conversations were checked; nothing is wrong with them.")
# A quick check takes about 2 ms a megabyte: what is large is read less often.
_LARGE_BYTES = 100 * 1024 * 1024
_CHECK_INTERVAL, _CHECK_INTERVAL_LARGE = timedelta(days=1), timedelta(days=7)


class IntegrityChecker:
    """Runs integrity checks in threads and on connections of their own: the journal does not wait for them.

    `worker` is the thread of the `database`, in which it is repaired; `notify` receives notices about repairs.
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
        """Return when it was last found whole; None where it never was. Reads the disk."""
        try:
            return datetime.fromtimestamp(self._last_check_file.stat().st_mtime, UTC)
        except OSError:
            return None

    def is_due(self) -> bool:
        """Return whether the last check is a day old, or a week where the database is large. Reads the disk."""
        last = self.last()
        try:
            is_large = self._path.stat().st_size > _LARGE_BYTES
        except OSError:
            return False
        return last is None or datetime.now(UTC) - last > (_CHECK_INTERVAL_LARGE if is_large else _CHECK_INTERVAL)

    async def run(self, *, full: bool) -> Sentence | None:
        """Check, and repair what can be repaired in place; return the result in words, None when cancelled.

        The full check compares the indexes too. Raises DatabaseDamaged when it is not whole, and StorageFailed when
        it cannot be read.
        """
        if self._database.read_only is not None:
            raise self._database.read_only
        async with self._turn:
            findings = await self._find_damage(full=full)
            if findings is None:
                return None
            if not findings:
                await asyncio.to_thread(self._note_check)
                return NO_DAMAGE
            if await self._repair(findings if full else None):
                return INDEX_REPAIRED
        raise damaged_error(self._path, "\n".join(findings))

    async def try_repair(self) -> bool:
        """Check the database after an inconsistency, and repair what can be; the next opening rescues the rest."""
        async with self._turn:
            try:
                return not self._is_beyond_repair and await self._repair(None)
            except StorageFailed:
                return False

    def cancel(self) -> None:
        """Cancel the check that runs, if any."""
        if self._check is not None:
            self._check.cancel()

    async def close(self) -> None:
        """Cancel, and return when no check runs any more."""
        self._is_closed = True
        self.cancel()
        async with self._turn:
            return

    async def _repair(self, findings: list[str] | None) -> bool:
        findings = findings or await self._find_damage(full=True)
        if findings is None:
            return False
        if is_only_indexes(findings):
            with suppress(StorageFailed):
                await self._worker.run(self._database.reindex)
                findings = await self._find_damage(full=True)
            if findings is None:
                return False
            if not findings:
                self._notify(INDEX_REPAIRED)
        self._is_beyond_repair = bool(findings)
        if findings:
            await self._worker.run(self._database.mark_damaged)
        return not findings

    async def _find_damage(self, *, full: bool) -> list[str] | None:
        """Return the faults; None when it was cancelled. Raises StorageFailed."""
        if self._is_closed:
            return None
        worker = WorkerThread("check")
        check = self._check = IntegrityCheck(self._path, full=full)
        try:
            findings = await worker.run(check.run)
        except sqlite3.Error as error:
            # The check failed, which says nothing about the database.
            raise database_error(error, self._path) from error
        finally:
            # Also when the caller was cancelled.
            check.cancel()
            self._check = None
            worker.stop()
        return findings

    def _note_check(self) -> None:
        with suppress(OSError):
            self._last_check_file.touch(mode=0o600)
