"""Connections to SQLite: set-up, errors, text that UTF-8 cannot carry, verified copies."""

import os
import sqlite3
from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol, TypeVar

from desktop_agent.storage.files import disk_full_error, find_write_error, not_writable_error, sync_folder
from desktop_agent.types.errors import DatabaseBusy, DatabaseDamaged, LocksRefused, Sentence, StorageFailed

T = TypeVar("T")
Connection = TypeVar("Connection", bound=sqlite3.Connection)
PAGE_SIZE = 4096
BUSY_MILLISECONDS = 3000

_DAMAGE_CODES = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_BUSY_CODES = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_NOT_WRITABLE_CODES = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_CANTOPEN}
# Errors of a file system that has no locks, or no memory that processes can share.
_NO_LOCK_CODES = {
    sqlite3.SQLITE_IOERR_LOCK,
    sqlite3.SQLITE_IOERR_RDLOCK,
    sqlite3.SQLITE_IOERR_UNLOCK,
    sqlite3.SQLITE_IOERR_CHECKRESERVEDLOCK,
    sqlite3.SQLITE_IOERR_SHMLOCK,
    sqlite3.SQLITE_IOERR_SHMMAP,
    sqlite3.SQLITE_PROTOCOL,
}
# SQLite reports a full disk as SQLITE_FULL or, from fsync, the WAL and its index, as one of many I/O errors; so it does
# for a disk that turned read-only under open files. A failed read means neither.
_READ_ERRORS = {sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ}


class InconsistentData(Exception):
    """Two places in the database contradict each other: one of them is damaged."""


INDEX_MISMATCH = "an index does not lead to its row"


class DatabaseConnection(sqlite3.Connection):
    """A connection that stores text with lone surrogates, which UTF-8 cannot carry, as a BLOB (see `text_of`)."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.compared_counts: set[str] = set()
        """What `require_equal_counts` has found to be equal."""

    def require_equal_counts(self, sql: str) -> None:
        """Raise InconsistentData unless the counts that `sql` selects, by indexes and by their table, are equal.

        Counting takes longer than reading a page of the list, so each connection does it once.
        """
        if sql in self.compared_counts:
            return
        if len(set(self.execute(sql).fetchone())) > 1:
            raise InconsistentData(INDEX_MISMATCH)
        self.compared_counts.add(sql)

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        """As in sqlite3, but raise DatabaseError for damage also where SQLite's message is not valid UTF-8."""
        try:
            return super().execute(sql, parameters)
        except UnicodeEncodeError:
            return super().execute(sql, _encode_row(parameters))
        except UnicodeDecodeError as error:
            # The message quotes a damaged schema, and Python decodes it as strict UTF-8.
            damage = sqlite3.DatabaseError(decode_text(error.object))
            damage.sqlite_errorcode, damage.sqlite_errorname = sqlite3.SQLITE_CORRUPT, "SQLITE_CORRUPT"
            raise damage from None

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> sqlite3.Cursor:
        """As in sqlite3; all rows are held in memory."""
        return super().executemany(sql, [_encode_row(row) for row in parameters])


def _encode_row(row: Sequence[Any]) -> list[Any]:
    return [_encode_text(value) if isinstance(value, str) else value for value in row]


def _encode_text(text: str) -> str | bytes:
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")
    return text


class RunInDatabase(Protocol):
    """Runs work in the thread of the database and waits for it."""

    def __call__(self, work: Callable[[DatabaseConnection], T], /) -> Awaitable[T]:
        """Raise StorageFailed where the work does."""
        ...


def text_of(value: Any) -> str:
    """Return the text of a column, whichever way it was stored."""
    if isinstance(value, str):
        return value
    try:
        return bytes(value).decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:  # carried over from a damaged page
        return decode_text(bytes(value))


def text_or_none(value: Any) -> str | None:
    """Return the text of a column that may be NULL."""
    return None if value is None else text_of(value)


def decode_text(raw: bytes) -> str:
    """Decode text as SQLite has it, also where a damaged page made it invalid UTF-8."""
    return raw.decode("utf-8", "replace")


def connect(path: Path) -> DatabaseConnection:
    """Open the database at `path`, which must exist. Raises sqlite3.Error."""
    connection = sqlite3.connect(
        path.absolute().as_uri() + "?mode=rw",
        timeout=BUSY_MILLISECONDS / 1000,
        isolation_level=None,
        factory=DatabaseConnection,
        uri=True,
    )
    connection.text_factory = decode_text
    # What was deleted is overwritten: it is gone for good, and a rescue cannot bring it back.
    durable = "journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "secure_delete=ON"
    return with_pragmas(connection, f"page_size={PAGE_SIZE}", *durable, *SAFE_PRAGMAS, "cache_size=-16000")


SAFE_PRAGMAS = "cell_size_check=ON", "trusted_schema=OFF", "temp_store=MEMORY"
"""For every file, which may be damaged or have a schema that is not ours."""


def with_pragmas(connection: Connection, *pragmas: str) -> Connection:
    """Set these, and return the connection; it is closed where that fails. Raises sqlite3.Error."""
    try:
        for pragma in pragmas:
            connection.execute(f"PRAGMA {pragma}").fetchall()
    except BaseException:
        connection.close()
        raise
    return connection


def test_write(connection: sqlite3.Connection) -> None:
    """Rewrite a page unchanged. Raises sqlite3.Error where there is no room, or nothing may be written."""
    with transaction(connection):
        version = int(connection.execute("PRAGMA user_version").fetchone()[0])
        connection.execute(f"PRAGMA user_version={version}")


@contextmanager
def transaction(connection: sqlite3.Connection) -> Generator[None]:
    """Commit all or nothing; durable when it ends."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # SQLite has rolled back by itself after some errors, a full disk among them.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


REWRITTEN_BYTES = 32 * 1024 * 1024
"""A larger file is not rewritten after each deletion: that takes its size in memory, and a second for 80 MB."""


def empty_log(connection: sqlite3.Connection) -> None:
    """Move the log into the database and empty it.

    Where another process reads just now, or the disk refuses, the log stays until a later time.
    """
    connection.execute("PRAGMA busy_timeout=0")
    try:
        with suppress(sqlite3.OperationalError):
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    finally:
        connection.execute(f"PRAGMA busy_timeout={BUSY_MILLISECONDS}")


def rewrite_if_small(connection: sqlite3.Connection) -> None:
    """Rewrite a file of up to REWRITTEN_BYTES, so that no byte of what was deleted is left in it.

    SQLite overwrites what it deletes (secure_delete), but where it spreads rows over pages anew it leaves copies in the
    room between them (`rebuildPage` of btree.c; seen with 3.40.1), and these stay when the rows are deleted later.
    Nothing happens where another process is writing, or the disk refuses.
    """
    (size,) = connection.execute("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size").fetchone()
    if size <= REWRITTEN_BYTES:
        with suppress(sqlite3.OperationalError):
            connection.execute("VACUUM")


def remove_traces(connection: sqlite3.Connection) -> None:
    """Remove what was deleted for good from the file, as far as its size allows, and from its log."""
    rewrite_if_small(connection)
    empty_log(connection)


def result_code(error: sqlite3.Error) -> int:
    """Return SQLite's result code without its extension, or SQLITE_ERROR."""
    extended: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    return extended & 0xFF


def is_damage(error: sqlite3.Error) -> bool:
    """Return whether the error says that the file is damaged."""
    return result_code(error) in _DAMAGE_CODES


def damaged_error(path: Path, detail: str) -> DatabaseDamaged:
    """Return the error for a damaged database at `path`."""
    return DatabaseDamaged(
        Sentence("The conversations in “{path}” are damaged.", {"path": str(path)}),
        "Close the program and start it again: it sets the damaged file aside and carries over what can be read.",
        detail=detail,
    )


def database_error(error: sqlite3.Error, path: Path) -> StorageFailed:
    """Return the typed error for what SQLite said about the database at `path`."""
    code = result_code(error)
    extended: int = getattr(error, "sqlite_errorcode", code)
    name: str = getattr(error, "sqlite_errorname", "SQLITE_ERROR")
    detail = f"{name}: {error}: {path}"
    if code in _DAMAGE_CODES:
        return damaged_error(path, detail)
    if extended in _NO_LOCK_CODES:
        return LocksRefused.of(str(path.parent), detail)
    if code in _BUSY_CODES:
        return DatabaseBusy("The conversations are in use by another program.", detail=detail)
    if code == sqlite3.SQLITE_FULL:
        return disk_full_error(path.parent, detail)
    if code == sqlite3.SQLITE_IOERR and extended not in _READ_ERRORS:
        return find_write_error(path) or disk_full_error(path.parent, detail)
    if code in _NOT_WRITABLE_CODES:
        return not_writable_error(path, detail)
    return StorageFailed("The conversations could not be read or written.", detail=detail)


def write_verified_copy(connection: sqlite3.Connection, target: Path) -> None:
    """Write a compact copy to `target`, which must not exist, and give it its name only after a check.

    Raises sqlite3.Error, OSError, StorageFailed if `target` exists, DatabaseDamaged if the check fails.
    """
    if target.exists():
        raise StorageFailed(
            Sentence("“{path}” exists already.", {"path": str(target)}), "Choose another name for the copy."
        )
    unfinished = target.with_name(f".{target.name}.unfinished")
    unfinished.unlink(missing_ok=True)
    try:
        os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        connection.execute("VACUUM INTO ?", (str(unfinished),))
        _verify_copy(unfinished, target)
        _sync_file(unfinished)
        unfinished.replace(target)
    except BaseException:
        with suppress(OSError):
            unfinished.unlink()
        raise
    sync_folder(target.parent)


def _verify_copy(copy: Path, target: Path) -> None:
    with closing(sqlite3.connect(copy)) as connection:
        findings = [str(row[0]) for row in connection.execute("PRAGMA integrity_check(10)")]
    if findings != ["ok"]:
        raise DatabaseDamaged(
            Sentence("The copy “{path}” could not be verified and was removed.", {"path": str(target)}),
            "Try again; if it fails again, the conversations themselves may be damaged.",
            detail="\n".join(findings),
        )


def _sync_file(path: Path) -> None:
    handle = os.open(path, os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
