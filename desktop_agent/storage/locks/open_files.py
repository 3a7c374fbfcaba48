"""Detects that the open database files were replaced, and lists which processes have the database open.

A sync client or a restored backup may replace the database while it is open. What is written then goes into a file
without a name, and the log beside the new database is that of the old one: whoever opens both together applies one to
the other. SQLite checks this itself only when it closes ("How To Corrupt An SQLite Database File", sections 1.4 and
2.4).

Each process holds the lock of a file of its own in `locks/open`, which is taken and read only under the opening lock.
A file there that nobody holds is of a killed process: if the log is missing then, somebody removed it, for only
closing the database deletes the log ("Write-Ahead Logging", section 4), and before that the file is removed.
"""

import sqlite3
import weakref
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from desktop_agent.storage.connection import write_verified_copy
from desktop_agent.storage.file_lock import FileLock, Holder, lock_path
from desktop_agent.storage.files import LOG_SUFFIXES, free_name, list_folder
from desktop_agent.storage.locks.conversation_locks import Program, holder_text
from desktop_agent.types.errors import DatabaseBusy, DatabaseReplaced, Sentence, StorageFailed
from desktop_agent.types.messages import new_id

_NOT_COPIED = (
    "Nothing is saved until its content can be copied. Check the disk and its free space; the program tries again by "
    "itself."
)
FileIdentity = tuple[int, int] | None


def file_identity(path: Path) -> FileIdentity:
    """Return device and inode; None where there is nothing. Raises OSError where that cannot be known."""
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status.st_dev, status.st_ino


class OpenFiles:
    """The database, its log and the log's index, as they were when they were opened."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._database = file_identity(path)
        self._copy_path: Path | None = None
        self._logs = {suffix: file_identity(self._log(suffix)) for suffix in LOG_SUFFIXES}

    @property
    def is_replaced(self) -> bool:
        """Return whether another file has the name of the database."""
        return file_identity(self._path) not in {self._database, None}

    @property
    def has_lost_log(self) -> bool:
        """Return whether the log is gone, or another file has its name."""
        return any(
            file_identity(self._log(suffix)) != known for suffix, known in self._logs.items() if known is not None
        )

    @property
    def is_log_empty(self) -> bool:
        """Return whether everything is in the database itself: nothing is lost with the log then. Raises OSError."""
        return self._log("-wal").stat().st_size == 0

    @property
    def has_foreign_log(self) -> bool:
        """Return whether another log has the name of ours, in which another process may be writing."""
        is_another = [file_identity(self._log(suffix)) not in {known, None} for suffix, known in self._logs.items()]
        return any(is_another) and _is_write_ahead_log(self._log("-wal"))

    def keep_copy(self, connection: sqlite3.Connection) -> Sentence:
        """Move our files away from the new database, and keep their content as a copy under another name.

        Return the notice. Raises DatabaseReplaced where it cannot be copied. The files that have our name now are not
        written.
        """
        if self._copy_path is None:
            self._copy_path = free_name(self._path, "replaced")
        aside = self._copy_path
        for suffix, known in self._logs.items():
            if known is not None and file_identity(self._log(suffix)) == known:
                with suppress(OSError):
                    self._log(suffix).replace(aside.with_name(aside.name + suffix))
        values = {"path": str(self._path), "copy": aside.name}
        try:
            write_verified_copy(connection, aside)
        except (sqlite3.Error, OSError, StorageFailed) as error:
            what = Sentence("“{path}” was replaced by another file while it was open.", values)
            raise DatabaseReplaced(what, _NOT_COPIED, detail=str(error)) from error
        for suffix in LOG_SUFFIXES:
            with suppress(OSError):
                aside.with_name(aside.name + suffix).unlink()
        return Sentence(
            "“{path}” was replaced by another file while it was open. What was in it is kept as “{copy}”.", values
        )

    def set_foreign_log_aside(self) -> None:
        """Rename a file that has the name of the log and is none. Raises OSError."""
        log = self._log("-wal")
        if file_identity(log) not in {self._logs["-wal"], None} and not _is_write_ahead_log(log):
            log.replace(free_name(log, "foreign"))

    def _log(self, suffix: str) -> Path:
        return self._path.with_name(self._path.name + suffix)


def set_orphan_log_aside(path: Path) -> str | None:
    """Rename the log of a database that is gone, and return the new name. None where there is none.

    SQLite would apply it to whatever database is made in that place next. Raises OSError.
    """
    log, index = (path.with_name(path.name + suffix) for suffix in LOG_SUFFIXES)
    new_name = None
    if file_identity(log) is not None and log.stat().st_size:
        copy = free_name(log, "kept")
        log.replace(copy)
        new_name = copy.name
    for file in (log, index):
        file.unlink(missing_ok=True)
    return new_name


def _is_write_ahead_log(path: Path) -> bool:
    """Return whether it begins as a log does; an empty one is a log too ("Database File Format", section 4.1)."""
    with path.open("rb") as file:
        return file.read(4) in {b"", b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83"}


_PRESENCE_FOLDER = "open"


class Presence:
    """This process has the database open, until `end` or until it dies."""

    def __init__(self, folder: Path, program: Program) -> None:
        """Take the lock. Raises StorageFailed."""
        path = lock_path(folder, f"{_PRESENCE_FOLDER}/{new_id()}")
        lock = FileLock(path, folder)
        lock.acquire(Holder.this_process(program))
        self._end = weakref.finalize(self, _release_presence, lock, path)
        # A process that was forked must not end its parent's.
        self._end.atexit = False

    def end(self) -> None:
        """Release the lock after closing the database: its log is gone or used by others then. Harmless when
        repeated.
        """
        self._end()


def _release_presence(lock: FileLock, path: Path) -> None:
    if not lock.is_held:
        return
    with suppress(OSError):
        path.unlink()
    lock.release()
    with suppress(OSError):
        # On Windows an open file cannot be deleted.
        path.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class OtherProcesses:
    """`present` has the processes that have the database open; None for one whose name is not known."""

    present: tuple[Holder | None, ...]
    killed: tuple[Path, ...]

    def refuse(self) -> None:
        """Raise DatabaseBusy where another process is present: a file must not be replaced or upgraded under it."""
        if not self.present:
            return
        holder = self.present[0]
        text = Sentence("another program") if holder is None else holder_text(holder)
        raise DatabaseBusy(
            Sentence("The saved conversations must be repaired or upgraded, but {who} has them open.", {"who": text}),
            "Close it, then start again.",
        )

    def forget_killed(self) -> None:
        """Remove the entries of killed processes, once their logs are handled."""
        for path in self.killed:
            with suppress(OSError):
                path.unlink()


def find_other_processes(folder: Path) -> OtherProcesses:
    """Return all that are registered, present or killed. Raises StorageFailed."""
    present: list[Holder | None] = []
    killed: list[Path] = []
    entries = list_folder(lock_path(folder, _PRESENCE_FOLDER).with_suffix(""))
    for path in sorted(path for path in entries if path.suffix == ".lock"):
        lock = FileLock(path, folder)
        holder = lock.holder()
        if lock.acquire():
            killed.append(path)
            lock.release()
        else:
            present.append(holder)
    return OtherProcesses(tuple(present), tuple(killed))
