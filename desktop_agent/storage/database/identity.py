"""Whether the files that are open are still those that have their names.

A sync client or a restored backup puts another file in the place of the database while it is open. What is written
then goes into a file without a name, and the log beside the new database is that of the old one: whoever opens both
together plays the one into the other. SQLite looks at this itself only when it closes ("How To Corrupt An SQLite
Database File", section 1.4 and 2.4).
"""

import sqlite3
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from desktop_agent.storage.database.backup import write_verified_copy
from desktop_agent.vocabulary.errors import DatabaseReplaced, Sentence, StorageFailed

_LOG_SUFFIXES = ("-wal", "-shm")
_NOT_COPIED = (
    "Nothing is saved until what was in it can be kept as a copy. Check the disk and its free space; it is tried again "
    "by itself."
)
FileIdentity = tuple[int, int] | None


def file_identity(path: Path) -> FileIdentity:
    """Device and inode; None where there is nothing. Raises OSError where that cannot be known."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


class OpenFiles:
    """The database, its log and the log's index, as they were when they were opened."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._database = file_identity(path)
        self._copy_path: Path | None = None
        self._logs = {suffix: file_identity(self._log(suffix)) for suffix in _LOG_SUFFIXES}

    @property
    def is_replaced(self) -> bool:
        """Whether another file has the name of the database."""
        return file_identity(self._path) not in {self._database, None}

    @property
    def has_lost_log(self) -> bool:
        """Whether the log is gone, or another file has its name."""
        return any(
            file_identity(self._log(suffix)) != known for suffix, known in self._logs.items() if known is not None
        )

    @property
    def has_foreign_log(self) -> bool:
        """Whether another log has the name of ours, in which another process may be writing."""
        is_another = [file_identity(self._log(suffix)) not in {known, None} for suffix, known in self._logs.items()]
        return any(is_another) and _is_write_ahead_log(self._log("-wal"))

    def keep_copy(self, connection: sqlite3.Connection) -> Sentence:
        """Take what is ours away from the new database, and keep all of it as a copy under a name of its own.

        Returns what to tell. Raises DatabaseReplaced where it cannot be copied. Nothing is written to what has our name
        now.
        """
        if self._copy_path is None:
            self._copy_path = _free_name(self._path, "replaced")
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
        for suffix in _LOG_SUFFIXES:
            with suppress(OSError):
                aside.with_name(aside.name + suffix).unlink()
        return Sentence(
            "“{path}” was replaced by another file while it was open. What was in it is kept as “{copy}”.", values
        )

    def set_foreign_log_aside(self) -> None:
        """Away with what has the name of the log and is none. Raises OSError."""
        log = self._log("-wal")
        if file_identity(log) not in {self._logs["-wal"], None} and not _is_write_ahead_log(log):
            log.replace(_free_name(log, "foreign"))

    def _log(self, suffix: str) -> Path:
        return self._path.with_name(self._path.name + suffix)


def set_orphan_log_aside(path: Path) -> str | None:
    """Keep the log of a database that is gone under a name of its own; return that. None where there is none.

    SQLite would play it into whatever database is made in that place next. Raises OSError.
    """
    log, index = (path.with_name(path.name + suffix) for suffix in _LOG_SUFFIXES)
    kept = None
    if file_identity(log) is not None and log.stat().st_size:
        copy = _free_name(log, "kept")
        log.replace(copy)
        kept = copy.name
    for each in (log, index):
        each.unlink(missing_ok=True)
    return kept


def _is_write_ahead_log(path: Path) -> bool:
    """Whether it begins as a log does; an empty one is a log too ("Database File Format", section 4.1)."""
    with path.open("rb") as file:
        return file.read(4) in {b"", b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83"}


def _free_name(path: Path, word: str) -> Path:
    name = f"{path.name}.{word}-{datetime.now().astimezone():%Y%m%d-%H%M%S}"
    free, number = path.with_name(name), 2
    while free.exists():
        free, number = path.with_name(f"{name}-{number}"), number + 1
    return free
