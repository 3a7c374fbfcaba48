"""The open database in the one thread that uses it: what is wrong with its files is found out before they are used."""

import logging
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from desktop_agent.storage.database.connection import Connection, IndexDamaged, connect, damaged, failure_of
from desktop_agent.storage.database.identity import OpenFiles
from desktop_agent.storage.database.opening import DATABASE_NAME, Opened, note_damage
from desktop_agent.storage.files import failure_of as file_failure_of
from desktop_agent.storage.files import gone
from desktop_agent.vocabulary.errors import DatabaseReplaced

_log = logging.getLogger(__name__)
T = TypeVar("T")


class GuardedDatabase:
    """All methods belong to the thread that opened the database."""

    def __init__(self, folder: Path, opened: Opened) -> None:
        self._folder = folder
        self._path = folder / DATABASE_NAME
        self._connection = opened.connection
        self._files = opened.files
        self._replaced: DatabaseReplaced | None = None

    def run(self, work: Callable[[Connection], T]) -> T:
        """Do the work. Raises StorageFailed and what is below it; DatabaseDamaged also for an index that misleads."""
        self._check_files()
        try:
            return work(self._connection)
        except IndexDamaged as error:
            raise damaged(self._path, "an index does not lead to its row") from error
        except (sqlite3.IntegrityError, sqlite3.ProgrammingError):
            raise  # our own mistakes, not the disk's
        except sqlite3.DatabaseError as error:
            raise failure_of(error, self._path) from error

    def reindex(self) -> None:
        """Make all indexes anew from their tables. Raises StorageFailed."""
        self.run(lambda db: db.execute("REINDEX"))

    def note_damage(self) -> None:
        """The next opening rescues."""
        with suppress(OSError):
            note_damage(self._folder)

    def close(self) -> None:
        """Let go of the files."""
        if self._replaced is None and not self._files.is_replaced:
            with suppress(OSError):
                self._files.set_foreign_logs_aside()
        self._connection.close()

    def _check_files(self) -> None:
        if self._replaced is not None:
            raise self._replaced
        if not self._path.exists():
            # SQLite would go on writing into a file that has no name any more, and nobody would find it again.
            raise gone(self._path)
        if self._files.is_replaced:
            self._replaced = self._files.part(self._connection)
            raise self._replaced
        if self._files.has_lost_log:
            self._begin_log_anew()

    def _begin_log_anew(self) -> None:
        """What was committed stands in a log that has no name any more: it goes into the database first."""
        _log.warning("the log of the conversations was removed or replaced; a new one is begun")
        try:
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            self._files.set_foreign_logs_aside()
            self._connection.close()
            self._connection = connect(self._path)
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise failure_of(error, self._path) from error
        except OSError as error:
            raise file_failure_of(error, self._path) from error
        self._files = OpenFiles(self._path)
