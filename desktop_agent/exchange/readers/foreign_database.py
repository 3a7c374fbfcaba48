"""Reads SQLite databases of other programs: no lock is taken in their folder, and no file is made there.

A database at rest is opened as immutable, for which SQLite neither locks nor makes files (sqlite.org/uri.html). If it
has a log or a journal, its program is running or was killed: then all of it is copied to a folder of our own, because
SQLite writes beside a database with a log even to read it (sqlite.org/wal.html). What changes meanwhile is read again.
The folder is locked while its process lives: `remove_left_copies` removes those of processes that were killed.
"""

import os
import shutil
import sqlite3
import sys
import tempfile
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import Any, Self, TypeVar

from desktop_agent.exchange.import_report import Omission
from desktop_agent.exchange.readers.files import NotReadable, open_file
from desktop_agent.exchange.readers.reader import Limits, Reading

_SIDE_FILES = ("-wal", "-journal")
_HEADER = b"SQLite format 3\0"
_ATTEMPTS = 3
_MAX_SECONDS = 60.0
_STEPS = 100_000
_PIECE = 1_000_000
_FOLDER_PREFIX = "desktop-agent-copy-"
_IS_WRITTEN = "its program is writing to it"

Result = TypeVar("Result")
Row = dict[str, Any]
_Stamps = list[tuple[int, int, int] | None]


class ForeignDatabase:
    """An open database whose tables may have other columns than expected. It yields rows up to a size in bytes."""

    def __init__(self, connection: sqlite3.Connection, limits: Limits) -> None:
        self._connection = connection
        self._remaining = limits.file
        self._pause = limits.pause

    def select(self, table: str, columns: tuple[str, ...], rest: str = "", *values: object) -> Iterator[Row]:
        """Yield rows with these columns, None for those that the table has not. `rest` is SQL of our own.

        Raises NotReadable for too much.
        """
        known = {row[0] for row in self._connection.execute("SELECT name FROM pragma_table_info(?)", (table,))}
        names = [f'"{name}"' if name in known else f'NULL AS "{name}"' for name in columns]
        if known:
            query = f'SELECT {", ".join(names)} FROM "{table}" {rest}'  # noqa: S608 - no word of it is from a file
            for row in self._connection.execute(query, values):
                self._pause()
                self._remaining -= sum(len(value) for value in row if isinstance(value, str | bytes))
                if self._remaining < 0:
                    raise NotReadable("it is too large")
                yield dict(zip(columns, row, strict=True))


def list_rows(path: Path, table: str, columns: tuple[str, ...], reading: Reading) -> list[Row]:
    """Return the rows of a table: none where there is no database, or it cannot be read, which is counted."""
    try:
        if not path.exists():
            return []
        return read_database(path, reading.limits, lambda database: list(database.select(table, columns)))
    except (NotReadable, OSError):
        reading.report.omit(Omission.UNREADABLE_FILE)
        return []


def read_database(path: Path, limits: Limits, work: Callable[[ForeignDatabase], Result]) -> Result:
    """Return what `work` reads; it is called again when the files changed meanwhile. Raises NotReadable."""
    for _ in range(_ATTEMPTS):
        before = _stamps(path)
        try:
            with _open_database(path, limits) as database:
                result = work(database)
        # The message of a damaged schema quotes it, and is no text then.
        except (sqlite3.Error, UnicodeDecodeError) as error:
            if _stamps(path) == before:
                words = _decode(error.object) if isinstance(error, UnicodeDecodeError) else str(error)
                raise NotReadable("its database is damaged ({words})", words=words) from None
            continue
        if _stamps(path) == before:
            return result
    raise NotReadable(_IS_WRITTEN)


def _stamps(path: Path) -> _Stamps:
    stamps: _Stamps = []
    for suffix in ("", *_SIDE_FILES):
        try:
            status = os.lstat(f"{path}{suffix}")
            stamps.append((status.st_ino, status.st_size, status.st_mtime_ns))
        except OSError:
            stamps.append(None)
    return stamps


@contextmanager
def _open_database(path: Path, limits: Limits) -> Generator[ForeignDatabase]:
    with open_file(path) as file:
        if file.read(len(_HEADER)) != _HEADER:
            raise NotReadable("it is not a SQLite database")
    stamps = _stamps(path)
    if not any(stamp is not None and stamp[1] for stamp in stamps[1:]):
        with _connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", limits) as database:
            yield database
        return
    if sum(stamp[1] for stamp in stamps if stamp is not None) > limits.database_copy:
        raise NotReadable("its program is running, and its database is too large to be copied")
    if _shared.copies is not None:
        with _connect(f"{_shared.copies.copy_of(path, stamps, limits).as_uri()}?mode=rw", limits) as database:
            yield database
        return
    with _folder_for_copies() as folder:
        copy = folder / "copy.sqlite"
        _copy_files(path, stamps, copy, limits)
        with _connect(f"{copy.as_uri()}?mode=rw", limits) as database:
            yield database


@contextmanager
def _folder_for_copies() -> Generator[Path]:
    with tempfile.TemporaryDirectory(prefix=_FOLDER_PREFIX, ignore_cleanup_errors=True) as name, ExitStack() as stack:
        # Wait for `remove_left_copies` of another process, which may have locked the folder while it is empty.
        handle = _lock_folder(Path(name), waits=True)
        if handle is not None:
            stack.callback(os.close, handle)
        yield Path(name)


def remove_left_copies() -> None:
    """Remove the copies of processes that were killed. On Windows, and where folders cannot be locked, they stay."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_FOLDER_PREFIX}*"):
        handle = _lock_folder(folder, waits=False)
        if handle is not None:
            with suppress(OSError):
                # An empty one may be about to be locked by its process.
                if any(folder.iterdir()):
                    shutil.rmtree(folder)
            os.close(handle)


if sys.platform == "win32":

    def _lock_folder(folder: Path, *, waits: bool) -> int | None:  # noqa: ARG001
        return None

else:
    import fcntl

    def _lock_folder(folder: Path, *, waits: bool) -> int | None:
        """Return a handle that holds the lock until it is closed; None where it cannot be locked.

        Links and other users' folders are not locked: anybody may write in the folder for temporary files.
        """
        try:
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:
            return None
        with suppress(OSError):
            if os.fstat(handle).st_uid == os.geteuid():
                fcntl.flock(handle, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
                return handle
        os.close(handle)
        return None


def _copy_files(path: Path, stamps: _Stamps, copy: Path, limits: Limits) -> None:
    """Copy a database with its log. Raises NotReadable where it is not as the stamps say."""
    for suffix, stamp in zip(("", *_SIDE_FILES), stamps, strict=True):
        if stamp is not None:
            with open_file(Path(f"{path}{suffix}")) as source, Path(f"{copy}{suffix}").open("wb") as target:
                while piece := source.read(_PIECE):
                    limits.pause()
                    target.write(piece)
    if _stamps(path) != stamps:
        raise NotReadable(_IS_WRITTEN)


class SharedCopies:
    """The newest copy of each database, read again for as long as its database stays as it is.

    They are removed at the end of its `with` block; one thread at a time has them in use.
    """

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._folder: Path | None = None
        self._copies: dict[Path, tuple[_Stamps, Path]] = {}
        self._count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @contextmanager
    def in_use(self) -> Generator[None]:
        """Let this thread read them until the end of the block."""
        _shared.copies = self
        try:
            yield
        finally:
            _shared.copies = None

    def copy_of(self, path: Path, stamps: _Stamps, limits: Limits) -> Path:
        """Return a copy of the state that the stamps are of. Raises NotReadable."""
        known, copy = self._copies.pop(path, (None, None))
        if copy is not None:
            if known == stamps:
                self._copies[path] = stamps, copy
                return copy
            for suffix in ("", "-shm", *_SIDE_FILES):
                Path(f"{copy}{suffix}").unlink(missing_ok=True)
        self._count += 1
        if self._folder is None:
            self._folder = self._stack.enter_context(_folder_for_copies())
        copy = self._folder / f"copy-{self._count}.sqlite"
        _copy_files(path, stamps, copy, limits)
        self._copies[path] = stamps, copy
        return copy


class _Shared(threading.local):
    copies: SharedCopies | None = None


_shared = _Shared()


@contextmanager
def _connect(uri: str, limits: Limits) -> Generator[ForeignDatabase]:
    end = monotonic() + _MAX_SECONDS
    with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as connection:
        connection.text_factory = _decode
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, limits.document)
        connection.set_progress_handler(lambda: monotonic() > end, _STEPS)
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA query_only = ON")
        yield ForeignDatabase(connection, limits)


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "replace")
