"""From a folder to a database that can be used: created, upgraded, or rescued; and tidied."""

import shutil
import sqlite3
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from desktop_agent.storage.blobs import BlobFiles
from desktop_agent.storage.conversation_locks import Program
from desktop_agent.storage.database import checkpoints, conversations, picture_index
from desktop_agent.storage.database.connection import (
    BUSY_MILLISECONDS,
    DatabaseConnection,
    connect,
    database_error,
    is_damage,
    test_write,
)
from desktop_agent.storage.database.identity import OpenFiles, set_orphan_log_aside
from desktop_agent.storage.database.presence import OtherProcesses, Presence, find_other_processes
from desktop_agent.storage.database.reading_only import has_damage, is_truncated, open_read_only
from desktop_agent.storage.database.rescue import create_database, rebuild_database
from desktop_agent.storage.database.schema import MIGRATIONS, migrate, refuse_newer, schema_version
from desktop_agent.storage.files import file_error as file_failure_of
from desktop_agent.storage.files import missing_error
from desktop_agent.storage.paths import make_private_folder
from desktop_agent.storage.pictures import PictureFiles
from desktop_agent.storage.records import TRASH_RETENTION
from desktop_agent.vocabulary.errors import (
    DatabaseBusy,
    DatabaseReplaced,
    DatabaseTooNew,
    LocksRefused,
    Sentence,
    StorageFailed,
)

DATABASE_NAME = "conversations.sqlite3"
_LOCK_NAME = "opening.lock"
# Checking every page takes about 2 ms a megabyte. Damage in a larger file shows when it is read; it is then noted
# in a file beside the database, and the next opening rescues.
MAX_CHECKED_AT_OPENING = 16 * 1024 * 1024


# Where less is free, something is written at the opening: SQLite opens a database for which there is no room at all.
_MIN_FREE_BYTES = 4 * 1024 * 1024
_LOG_MISSING = (
    "The program was ended by force the last time, and since then “{log}” was removed, in which the newest messages "
    "stood. Some may be missing."
)
_DATABASE_MISSING = (
    "“{database}” is gone, while its log was still there. The log is kept as “{copy}”, and an empty database is begun. "
    "If you have the file, close the program, put it back, name the log “{log}” again, and start the program."
)
_NOT_READABLE = "“{path}” was replaced by another file while it was open, and that one cannot be read."
_RETRY_REMEDY = (
    "It is tried again by itself, in case the file is still being written. If it stays so, close the program and start "
    "it again: it carries over what can be read."
)
_STILL_READABLE = "What was saved can be read all the same. It goes on by itself once that has changed."


@dataclass(frozen=True, slots=True)
class OpenedDatabase:
    """The open database and what there is to tell about it.

    `read_only` says why nothing can be written; None where all is well.
    """

    connection: DatabaseConnection
    notices: tuple[Sentence, ...]
    files: OpenFiles
    program: Program
    presence: Presence | None
    read_only: StorageFailed | None = None


def open_database(folder: Path, steps: Sequence[str] = MIGRATIONS, program: Program = "library") -> OpenedDatabase:
    """Open, create, upgrade or rescue the database in `folder`, in the thread that will use it.

    One that cannot be written to is opened for reading. Raises StorageFailed and what is below it.
    """
    try:
        return open_for_writing(folder, steps, program)
    except (DatabaseTooNew, DatabaseBusy, LocksRefused):
        raise
    except StorageFailed as error:
        path = folder / DATABASE_NAME
        try:
            check = path.stat().st_size <= MAX_CHECKED_AT_OPENING or _damage_mark(path).exists()
            connection, notices = open_read_only(path, check=check, steps=steps)
        except (sqlite3.Error, OSError):
            raise error from None
        return OpenedDatabase(connection, notices, OpenFiles(path), program, None, as_read_only(error))


def as_read_only(reason: StorageFailed) -> StorageFailed:
    """The same reason, for whoever can read all the same."""
    remedy = Sentence("{remedy} {readable}", {"remedy": reason.remedy, "readable": Sentence(_STILL_READABLE)})
    return type(reason)(reason.sentence, remedy, detail=reason.detail)


def open_for_writing(
    folder: Path, steps: Sequence[str] = MIGRATIONS, program: Program = "library", *, is_live: bool = False
) -> OpenedDatabase:
    """The same, or not at all. Raises DatabaseBusy where others are present and the database must be replaced.

    `is_live`: the program works already, and another file has appeared. Nothing is created, rescued or tidied then: it
    may still be on its way, and what the old one used may be wanted again. Raises DatabaseReplaced where it cannot be
    read.
    """
    make_private_folder(folder, within=folder if is_live else None)
    path = folder / DATABASE_NAME
    try:
        with opening_lock(folder):
            others = find_other_processes(folder)
            # Before anything is opened, which makes a new log.
            lonely = None if is_live or path.exists() else set_orphan_log_aside(path)
            is_log_lost = bool(others.killed) and not others.present and _has_lost_log(path)
            connection, notices = _open_connection(path, steps, others, is_live=is_live)
            try:
                presence = Presence(folder, program)
            except BaseException:
                connection.close()
                raise
            others.forget_killed()
    except sqlite3.Error as error:
        raise database_error(error, path) from error
    except OSError as error:
        raise file_failure_of(error, path) from error
    if lonely is not None:
        notices = (
            *notices,
            Sentence(_DATABASE_MISSING, {"database": path.name, "log": f"{path.name}-wal", "copy": lonely}),
        )
    if is_log_lost:
        notices = (*notices, Sentence(_LOG_MISSING, {"log": f"{path.name}-wal"}))
    return OpenedDatabase(connection, notices, OpenFiles(path), program, presence)


@contextmanager
def opening_lock(folder: Path) -> Generator[None]:
    """One opening at a time, in all processes: two must not create, upgrade or rescue the same file.

    An exclusive transaction on an empty database is a lock on every platform, and ends with its process.
    """
    with closing(sqlite3.connect(folder / _LOCK_NAME, timeout=BUSY_MILLISECONDS / 1000, isolation_level=None)) as lock:
        lock.execute("BEGIN EXCLUSIVE")
        yield


def mark_damaged(folder: Path) -> None:
    """Remember that reading found damage, so that the next opening rescues. Raises OSError."""
    _damage_mark(folder / DATABASE_NAME).touch(mode=0o600)


def _open_connection(
    path: Path, steps: Sequence[str], others: OtherProcesses, *, is_live: bool
) -> tuple[DatabaseConnection, tuple[Sentence, ...]]:
    notices: tuple[Sentence, ...] = ()
    if not path.exists():
        if is_live:
            raise missing_error(path)
        create_database(path)
    elif _is_damaged(path, steps):
        if is_live:
            raise DatabaseReplaced(Sentence(_NOT_READABLE, {"path": str(path)}), _RETRY_REMEDY)
        others.refuse()
        notices = (rebuild_database(path),)
        _damage_mark(path).unlink(missing_ok=True)
    connection = connect(path)
    try:
        # Also the question whether we may write at all.
        if shutil.disk_usage(path.parent).free < _MIN_FREE_BYTES:
            test_write(connection)
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("COMMIT")
        if schema_version(connection) != len(steps):
            others.refuse()
        migrate(connection, path, steps)
        # What nothing uses may be on its way into a message of somebody else.
        if not others.present and not is_live:
            if conversations.purge_trash(connection, TRASH_RETENTION):
                checkpoints.remove_unused_blobs(connection, BlobFiles(path.parent))
            picture_index.remove_unused_pictures(connection, PictureFiles(path.parent))
    except BaseException:
        connection.close()
        raise
    return connection, notices


def _has_lost_log(path: Path) -> bool:
    return path.exists() and not path.with_name(f"{path.name}-wal").exists()


def _damage_mark(path: Path) -> Path:
    return path.with_name(f"{path.name}.is-damaged")


def _is_damaged(path: Path, steps: Sequence[str]) -> bool:
    # An empty file is no database of ours: ours gets its name when its tables are there.
    if path.stat().st_size == 0:
        return True
    try:
        connection = connect(path)
    except sqlite3.Error as error:
        if is_damage(error):
            return True
        raise
    try:
        refuse_newer(connection, path, steps)
        if schema_version(connection) == 0 or _damage_mark(path).exists() or is_truncated(path):
            return True
        return path.stat().st_size <= MAX_CHECKED_AT_OPENING and has_damage(connection)
    except sqlite3.Error as error:
        if is_damage(error):
            return True
        raise
    finally:
        connection.close()
