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
    Connection,
    Contradiction,
    code_of,
    connect,
    damaged,
    failure_of,
    write_something,
)
from desktop_agent.storage.database.identity import OpenFiles
from desktop_agent.storage.database.opening import (
    DATABASE_NAME,
    Opened,
    alone,
    note_damage,
    only_readable,
    open_for_writing,
)
from desktop_agent.storage.database.presence import find_others
from desktop_agent.storage.files import failure_of as file_failure_of
from desktop_agent.storage.files import gone
from desktop_agent.vocabulary.errors import DatabaseReplaced, Sentence, StorageFailed

_log = logging.getLogger(__name__)
T = TypeVar("T")


_RESTART = "Close the program and start it again. Nothing is saved until then."


@dataclass
class Pin:
    """Binds its user to one file: the one that is open when it is first used."""

    replacements: int | None = None


class GuardedDatabase:
    """All methods belong to the thread that opened the database."""

    def __init__(self, folder: Path, opened: Opened) -> None:
        self._folder = folder
        self._path = folder / DATABASE_NAME
        self._connection = opened.connection
        self._files = opened.files
        self._program: Program = opened.program
        self._presence = opened.presence
        self._stopped: DatabaseReplaced | None = None
        self._kept: Sentence | None = None
        self._notices: tuple[Sentence, ...] = ()
        self.replacements: list[DatabaseReplaced] = []
        """Of each file that was replaced while it was open. Only ever longer."""
        self.read_only = opened.read_only
        """Why nothing can be written; None where things can."""

    def run(self, work: Callable[[Connection], T], pin: Pin | None = None) -> T:
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
        except Contradiction as error:
            raise damaged(self._path, str(error)) from error
        except (sqlite3.IntegrityError, sqlite3.ProgrammingError):
            raise  # our own mistakes, not the disk's
        except sqlite3.DatabaseError as error:
            if self.read_only is not None and code_of(error) == sqlite3.SQLITE_READONLY:
                raise self.read_only from error
            raise failure_of(error, self._path) from error

    def try_writing(self) -> tuple[Sentence, ...]:
        """Write something, into a database that is opened anew where it could only be read.

        Returns what to tell about that opening. Raises StorageFailed and what is below it where it cannot be done.
        """
        if self.read_only is None:
            self.run(write_something)
            return ()
        try:
            opened = open_for_writing(self._folder, program=self._program)
        except StorageFailed as error:
            raise only_readable(error) from error
        self._connection.close()
        self._connection, self._files, self.read_only = opened.connection, opened.files, None
        self._presence = opened.presence
        return opened.notices

    def reindex(self) -> None:
        """Make all indexes anew from their tables. Raises StorageFailed."""
        self.run(lambda db: db.execute("REINDEX"))

    def note_damage(self) -> None:
        """The next opening rescues."""
        with suppress(OSError):
            note_damage(self._folder)

    def close(self) -> None:
        """Let go of the files."""
        self._connection.close()
        if self._presence is None:
            return
        with suppress(sqlite3.Error, StorageFailed), alone(self._folder):
            self._presence.end()
            find_others(self._folder).forget_killed()
        self._presence.end()

    def _check_files(self) -> None:
        if self._stopped is not None:
            raise self._stopped
        if not self._path.exists():
            # SQLite would go on writing into a file that has no name any more, and nobody would find it again.
            raise gone(self._path)
        if self.read_only is not None:
            return  # nothing can come to harm
        if self._files.is_replaced:
            self._open_new_file()
        elif self._files.has_lost_log:
            self._begin_log_anew()

    def _open_new_file(self) -> None:
        """Keep what is ours as a copy, and go on with the file that has the name now. Raises StorageFailed.

        The new one is opened before the old one is closed, which SQLite allows as they are two files; nothing is
        written to the old one any more.
        """
        _log.warning("another file has the name of the database; it is opened")
        if self._kept is None:
            self._kept = self._files.keep_copy(self._connection)
        if self._presence is not None:
            # Our own would keep us from upgrading the new file.
            self._presence.end()
        opened = open_for_writing(self._folder, program=self._program, is_live=True)
        self._connection.close()
        self._connection, self._files, self._presence = opened.connection, opened.files, opened.presence
        self.replacements.append(DatabaseReplaced(self._kept))
        self._notices += opened.notices
        self._kept = None

    def take_notices(self) -> tuple[Sentence, ...]:
        """What there is to tell about new files that were opened."""
        notices, self._notices = self._notices, ()
        return notices

    def _begin_log_anew(self) -> None:
        """What was committed stands in a log that has no name any more: it goes into the database first.

        One process alone may do that. Another one finds a log that is not its own then, in which the first writes: it
        leaves all as it is, keeps what it has as a copy, and writes nothing more. It cannot open the same file anew:
        SQLite shares the index of the log within a process, and closing the database may delete the log by its name.
        """
        try:
            with alone(self._folder):
                if self._files.has_foreign_log:
                    self._stopped = DatabaseReplaced(self._files.keep_copy(self._connection), _RESTART)
                    raise self._stopped
                self._begin_log_anew_alone()
        except sqlite3.Error as error:
            raise failure_of(error, self._path) from error
        except OSError as error:
            raise file_failure_of(error, self._path) from error

    def _begin_log_anew_alone(self) -> None:
        _log.warning("the log of the conversations was removed; a new one is begun")
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        self._files.set_rubbish_aside()
        self._connection.close()
        self._connection = connect(self._path)
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.execute("COMMIT")
        self._files = OpenFiles(self._path)
