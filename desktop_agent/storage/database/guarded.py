"""The open database in the one thread that uses it: what is wrong with its files is found out before they are used."""

import logging
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from desktop_agent.storage.conversation_locks import Program
from desktop_agent.storage.database.connection import (
    DatabaseConnection,
    InconsistentData,
    connect,
    damaged_error,
    database_error,
    result_code,
    test_write,
)
from desktop_agent.storage.database.identity import OpenFiles
from desktop_agent.storage.database.opening import (
    DATABASE_NAME,
    OpenedDatabase,
    as_read_only,
    mark_damaged,
    open_for_writing,
    opening_lock,
)
from desktop_agent.storage.database.presence import find_other_processes
from desktop_agent.storage.files import file_error as file_failure_of
from desktop_agent.storage.files import missing_error
from desktop_agent.vocabulary.errors import DatabaseReplaced, Sentence, StorageFailed

_log = logging.getLogger(__name__)
T = TypeVar("T")


_RESTART_REMEDY = "Close the program and start it again. Nothing is saved until then."


@dataclass
class FilePin:
    """Binds its user to one file: the one that is open when it is first used."""

    replacements: int | None = None


class GuardedDatabase:
    """All methods belong to the thread that opened the database."""

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
        """Of each file that was replaced while it was open. Only ever longer."""
        self.read_only = opened.read_only
        """Why nothing can be written; None where things can."""

    def run(self, work: Callable[[DatabaseConnection], T], pin: FilePin | None = None) -> T:
        """Do the work. Raises StorageFailed and what is below it; DatabaseDamaged also for what contradicts itself.

        Where the file was replaced it is done on the new one; what is pinned to the old one raises DatabaseReplaced.
        """
        try:
            self._check_files()
        except OSError as error:
            raise file_failure_of(error, self._path) from error
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
        """Write something, into a database that is opened anew where it could only be read.

        Returns what to tell about that opening. Raises StorageFailed and what is below it where it cannot be done.
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
        """Make all indexes anew from their tables. Raises StorageFailed."""
        self.run(lambda db: db.execute("REINDEX"))

    def mark_damaged(self) -> None:
        """The next opening rescues."""
        with suppress(OSError):
            mark_damaged(self._folder)

    def close(self) -> None:
        """Let go of the files."""
        self._connection.close()
        if self._presence is None:
            return
        with suppress(sqlite3.Error, StorageFailed), opening_lock(self._folder):
            self._presence.end()
            find_other_processes(self._folder).forget_killed()
        self._presence.end()

    def _check_files(self) -> None:
        if self._stop_error is not None:
            raise self._stop_error
        if not self._path.exists():
            # SQLite would go on writing into a file that has no name any more, and nobody would find it again.
            raise missing_error(self._path)
        if self.read_only is not None:
            return  # nothing can come to harm
        if self._files.is_replaced:
            self._open_new_file()
        elif self._files.has_lost_log:
            self._restart_log()

    def _open_new_file(self) -> None:
        """Keep what is ours as a copy, and go on with the file that has the name now. Raises StorageFailed.

        The new one is opened before the old one is closed, which SQLite allows as they are two files; nothing is
        written to the old one any more.
        """
        _log.warning("another file has the name of the database; it is opened")
        if self._copy_notice is None:
            self._copy_notice = self._files.keep_copy(self._connection)
        if self._presence is not None:
            # Our own would keep us from upgrading the new file.
            self._presence.end()
        opened = open_for_writing(self._folder, program=self._program, is_live=True)
        self._connection.close()
        self._connection, self._files, self._presence = opened.connection, opened.files, opened.presence
        self.replacements.append(DatabaseReplaced(self._copy_notice))
        self._notices += opened.notices
        self._copy_notice = None

    def take_notices(self) -> tuple[Sentence, ...]:
        """What there is to tell about new files that were opened."""
        notices, self._notices = self._notices, ()
        return notices

    def _restart_log(self) -> None:
        """What was committed stands in a log that has no name any more: it goes into the database first.

        One process alone may do that. Another one finds a log that is not its own then, in which the first writes: it
        leaves all as it is, keeps what it has as a copy, and writes nothing more. It cannot open the same file anew:
        SQLite shares the index of the log within a process, and closing the database may delete the log by its name.
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
            raise file_failure_of(error, self._path) from error

    def _restart_log_exclusively(self) -> None:
        _log.warning("the log of the conversations was removed; a new one is begun")
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        self._files.set_foreign_log_aside()
        self._connection.close()
        self._connection = connect(self._path)
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.execute("COMMIT")
        self._files = OpenFiles(self._path)
