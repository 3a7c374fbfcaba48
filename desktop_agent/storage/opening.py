"""Opens a data folder's database: created, migrated, rescued, tidied, or read-only.

SQLite reads a database in write-ahead mode only where it can make or find the log's index ("Write-Ahead Logging",
section 5, "Read-Only Databases"). Without one the file is opened as immutable, which ignores a log: where the log
holds something, log and file are put together in memory, and so is a database that is damaged or of an older version,
which is repaired or migrated there alone. Nothing is written to the folder.
"""

import shutil
import sqlite3
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from desktop_agent.storage import content_files, conversation_rows
from desktop_agent.storage.connection import (
    BUSY_MILLISECONDS,
    PAGE_SIZE,
    SAFE_PRAGMAS,
    DatabaseConnection,
    connect,
    database_error,
    decode_text,
    is_damage,
    remove_traces,
    test_write,
    with_pragmas,
)
from desktop_agent.storage.content_files import BlobFiles, PictureFiles
from desktop_agent.storage.conversation_rows import has_misplaced_messages
from desktop_agent.storage.files import file_error, make_private_folder, missing_error
from desktop_agent.storage.locks.conversation_locks import Program
from desktop_agent.storage.locks.open_files import (
    OpenFiles,
    OtherProcesses,
    Presence,
    find_other_processes,
    set_orphan_log_aside,
)
from desktop_agent.storage.migrations import (
    MIGRATIONS,
    apply_migrations,
    create_database,
    has_strange_schema,
    migrate,
    refuse_newer,
    schema_version,
)
from desktop_agent.storage.records import TRASH_RETENTION
from desktop_agent.types.errors import (
    DatabaseBusy,
    DatabaseReplaced,
    DatabaseTooNew,
    LocksRefused,
    Sentence,
    StorageFailed,
)

_HEADER_FORMAT = slice(18, 20)
"""Where the header says that the file is in write-ahead mode, which a database in memory cannot be."""
_HEADER_PAGE_COUNT = slice(28, 32)
"""Where the header says how many pages there are ("Database File Format", section 1.3.7)."""


def open_read_only(
    path: Path, *, check: bool, steps: Sequence[str] = MIGRATIONS
) -> tuple[DatabaseConnection, tuple[Sentence, ...]]:
    """Open the database read-only, and return notices about it. `check`: look for damage in all of it.

    Raises sqlite3.Error, OSError, and DatabaseTooNew.
    """
    try:
        connection = _open_current(path, steps)
    except sqlite3.Error as error:
        if not is_damage(error):
            raise
        connection = None
    if connection is not None:
        # Misplaced messages are looked for now: found while reading, they could not be repaired any more.
        is_damaged = is_truncated(path) or (check and (has_damage(connection) or has_misplaced_messages(connection)))
        if not is_damaged:
            return connection, ()
        connection.close()
    return _open_rescued(path, steps)


def is_truncated(path: Path) -> bool:
    """Return whether the file is shorter than its header says. SQLite reads zeros for the rest of a cut page.

    Not checked where pages wait in the log: the last one may still have to be copied from there. Raises OSError.
    """
    log = path.with_name(f"{path.name}-wal")
    if log.exists() and log.stat().st_size:
        return False
    with path.open("rb") as file:
        header = file.read(_HEADER_PAGE_COUNT.stop)
    return path.stat().st_size < int.from_bytes(header[_HEADER_PAGE_COUNT], "big") * PAGE_SIZE


def has_damage(connection: sqlite3.Connection) -> bool:
    """Return whether the quick check finds anything, or fails."""
    try:
        return [str(row[0]) for row in connection.execute("PRAGMA quick_check(1)")] != ["ok"]
    except sqlite3.Error as error:
        if is_damage(error):
            return True
        raise


def _open_current(path: Path, steps: Sequence[str]) -> DatabaseConnection | None:
    """Open it as it is; an older version as a migrated copy in memory. None where its tables are not ours alone."""
    connection = _open_in_place(path) or _open_in_memory(path)
    try:
        refuse_newer(connection, path, steps)
        version = 0 if has_strange_schema(connection, steps) else schema_version(connection)
        if 0 < version < len(steps):
            connection.close()
            connection = _open_in_memory(path)
            apply_migrations(connection, steps)
        connection.execute("PRAGMA query_only=ON")
    except BaseException:
        connection.close()
        raise
    if version <= 0:
        connection.close()
        return None
    return connection


def _open_in_place(path: Path) -> DatabaseConnection | None:
    """Open the file itself; None where that would leave out what its log holds."""
    with suppress(sqlite3.OperationalError):
        return _connect_read_only(path.absolute().as_uri() + "?mode=ro")
    log = path.with_name(f"{path.name}-wal")
    if log.exists() and log.stat().st_size:
        return None
    return _connect_read_only(path.absolute().as_uri() + "?immutable=1")


def _open_in_memory(path: Path) -> DatabaseConnection:
    """Return all that was committed, file and log together."""
    from desktop_agent.storage.rescue import PageReader

    with PageReader(path) as pages:
        data = bytearray().join(pages.page(number).ljust(PAGE_SIZE, b"\0") for number in range(1, pages.count + 1))
    data[_HEADER_FORMAT] = b"\x01\x01"
    connection = _connect_read_only(":memory:")
    connection.deserialize(bytes(data))
    return connection


def _open_rescued(path: Path, steps: Sequence[str]) -> tuple[DatabaseConnection, tuple[Sentence, ...]]:
    from desktop_agent.storage.rescue import copy_rows, read_rows

    connection = _connect_read_only(":memory:")
    apply_migrations(connection, steps)
    counts = copy_rows(read_rows(path), connection)
    connection.execute("PRAGMA query_only=ON")
    notice = Sentence(
        "The saved conversations are damaged. What can be read of them is shown (conversations: {conversations}, "
        "messages: {messages}).",
        {"conversations": str(counts["conversations"]), "messages": str(counts["messages"])},
    )
    return connection, (notice,)


def _connect_read_only(database: str) -> DatabaseConnection:
    """Raise sqlite3.Error also where it can be opened but not read."""
    connection = sqlite3.connect(database, isolation_level=None, factory=DatabaseConnection, uri=True)
    connection.text_factory = decode_text
    return with_pragmas(connection, *SAFE_PRAGMAS, "schema_version")


DATABASE_NAME = "conversations.sqlite3"
_LOCK_NAME = "opening.lock"
# Checking every page takes about 2 ms a megabyte. Damage in a larger file shows when it is read; it is then noted
# in a file beside the database, and the next opening rescues.
MAX_CHECKED_AT_OPENING = 16 * 1024 * 1024


# Where less is free, something is written at the opening: SQLite opens a database for which there is no room at all.
_MIN_FREE_BYTES = 4 * 1024 * 1024
_LOG_MISSING = (
    "The program was killed the last time, and “{log}”, which had the newest messages, was removed since then. Some "
    "messages may be missing."
)
_DATABASE_MISSING = (
    "“{database}” is gone, while its log was still there. The log is kept as “{copy}”, and an empty database is begun. "
    "If you have the file, close the program, put it back, name the log “{log}” again, and start the program."
)
_NOT_READABLE = "“{path}” was replaced by another file while it was open, and that one cannot be read."
_RETRY_REMEDY = (
    "The program tries again by itself, in case the file is still being written. If that does not help, close the "
    "program and start it again: it then carries over what can be read."
)
_STILL_READABLE = "Saved conversations can still be read. Saving continues by itself when the problem is solved."


@dataclass(frozen=True, slots=True)
class OpenedDatabase:
    """The open database and the notices about its opening.

    `read_only` says why nothing can be written; None where it can.
    """

    connection: DatabaseConnection
    notices: tuple[Sentence, ...]
    files: OpenFiles
    program: Program
    presence: Presence | None
    read_only: StorageFailed | None = None


def open_database(folder: Path, steps: Sequence[str] = MIGRATIONS, program: Program = "library") -> OpenedDatabase:
    """Open, create, upgrade or rescue the database in `folder`, in the thread that will use it.

    One that cannot be written is opened read-only. Raises StorageFailed and its subclasses.
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
    """Return the same reason, worded for a database that can still be read."""
    remedy = Sentence("{remedy} {readable}", {"remedy": reason.remedy, "readable": Sentence(_STILL_READABLE)})
    return type(reason)(reason.sentence, remedy, detail=reason.detail)


def open_for_writing(
    folder: Path, steps: Sequence[str] = MIGRATIONS, program: Program = "library", *, is_live: bool = False
) -> OpenedDatabase:
    """Open the database for writing. Raises DatabaseBusy where others are present and it must be replaced.

    `is_live`: the program works already, and another file has appeared. Nothing is created, rescued or tidied then:
    it may still be being copied, and the files of the old one may be wanted again. Raises DatabaseReplaced where it
    cannot be read.
    """
    make_private_folder(folder, within=folder if is_live else None)
    path = folder / DATABASE_NAME
    try:
        with opening_lock(folder):
            others = find_other_processes(folder)
            # Before anything is opened, which makes a new log.
            orphan_log = None if is_live or path.exists() else set_orphan_log_aside(path)
            has_log = path.with_name(f"{path.name}-wal").exists()
            is_log_lost = bool(others.killed) and not others.present and path.exists() and not has_log
            if not is_log_lost:
                # The log is there. Looking for damage moves it into the database, and we may be killed after that.
                others.forget_killed()
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
        raise file_error(error, path) from error
    if orphan_log is not None:
        values = {"database": path.name, "log": f"{path.name}-wal", "copy": orphan_log}
        notices += (Sentence(_DATABASE_MISSING, values),)
    if is_log_lost:
        notices += (Sentence(_LOG_MISSING, {"log": f"{path.name}-wal"}),)
    return OpenedDatabase(connection, notices, OpenFiles(path), program, presence)


@contextmanager
def opening_lock(folder: Path) -> Generator[None]:
    """Allow one opening at a time, in all processes: two must not create, upgrade or rescue the same file.

    An exclusive transaction on an empty database is a lock on every platform, and ends with its process.
    """
    with closing(sqlite3.connect(folder / _LOCK_NAME, timeout=BUSY_MILLISECONDS / 1000, isolation_level=None)) as lock:
        lock.execute("BEGIN EXCLUSIVE")
        yield


def mark_damaged(folder: Path) -> None:
    """Have the next opening rescue: reading found damage. Raises OSError."""
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
        from desktop_agent.storage.rescue import rebuild_database

        notices = (rebuild_database(path),)
        _damage_mark(path).unlink(missing_ok=True)
    connection = connect(path)
    try:
        # This also tests whether we may write at all.
        if shutil.disk_usage(path.parent).free < _MIN_FREE_BYTES:
            test_write(connection)
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("COMMIT")
        if schema_version(connection) != len(steps):
            others.refuse()
        migrate(connection, path, steps)
        # A picture that nothing uses may be on its way into a message of another process.
        if not others.present and not is_live:
            if conversation_rows.purge_trash(connection, TRASH_RETENTION):
                content_files.remove_unused_blobs(connection, BlobFiles(path.parent))
                remove_traces(connection)
            content_files.remove_unused_pictures(connection, PictureFiles(path.parent))
    except BaseException:
        connection.close()
        raise
    return connection, notices


def _damage_mark(path: Path) -> Path:
    return path.with_name(f"{path.name}.is-damaged")


def _is_damaged(path: Path, steps: Sequence[str]) -> bool:
    # An empty file is no database of ours: ours gets its name once it has its tables.
    if path.stat().st_size == 0:
        return True
    try:
        with closing(connect(path)) as connection:
            refuse_newer(connection, path, steps)
            if schema_version(connection) <= 0 or _damage_mark(path).exists() or is_truncated(path):
                return True
            if has_strange_schema(connection, steps):
                return True
            return path.stat().st_size <= MAX_CHECKED_AT_OPENING and has_damage(connection)
    except sqlite3.Error as error:
        if is_damage(error):
            return True
        raise
