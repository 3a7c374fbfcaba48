"""A database that cannot be written to, opened for reading: on a full disk, or in a folder that is read-only.

SQLite reads a database in write-ahead mode only where it can make or find the log's index ("Write-Ahead Logging",
section 5, "Read-Only Databases"). Without one it is told that nobody changes the file, which makes it ignore a log that
is there: where one holds something, log and file are put together in memory, and so is a database that is damaged or of
an older version, which is repaired or upgraded there alone. Nothing is written to the folder.
"""

import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from desktop_agent.storage.database.connection import PAGE_SIZE, DatabaseConnection, decode_text, is_damage
from desktop_agent.storage.database.messages import has_misplaced_messages
from desktop_agent.storage.database.rescue import copy_rows
from desktop_agent.storage.database.salvage import PageReader, read_rows
from desktop_agent.storage.database.schema import MIGRATIONS, apply_migrations, refuse_newer, schema_version
from desktop_agent.vocabulary.errors import Sentence

_HEADER_FORMAT = slice(18, 20)
"""Where the header says that the file is in write-ahead mode, which a database in memory cannot be."""
_HEADER_PAGE_COUNT = slice(28, 32)
"""Where it says how many pages there are ("Database File Format", section 1.3.7)."""


def open_read_only(
    path: Path, *, check: bool, steps: Sequence[str] = MIGRATIONS
) -> tuple[DatabaseConnection, tuple[Sentence, ...]]:
    """Open what is there, and return what to tell about it. `check` all of it for damage.

    Raises sqlite3.Error, OSError, and DatabaseTooNew.
    """
    try:
        connection = _open_current(path, steps)
    except sqlite3.Error as error:
        if not is_damage(error):
            raise
        connection = None
    if connection is not None:
        # A message out of its place is looked for now: found while reading, it could not be put right any more.
        is_damaged = is_truncated(path) or (check and (has_damage(connection) or has_misplaced_messages(connection)))
        if not is_damaged:
            return connection, ()
        connection.close()
    return _open_rescued(path, steps)


def is_truncated(path: Path) -> bool:
    """Whether the file is shorter than its header says. SQLite reads zeros for the rest of a page that is cut off.

    Not asked where pages wait in the log: the last one may still have to be copied from there. Raises OSError.
    """
    log = path.with_name(f"{path.name}-wal")
    if log.exists() and log.stat().st_size:
        return False
    with path.open("rb") as file:
        header = file.read(_HEADER_PAGE_COUNT.stop)
    return path.stat().st_size < int.from_bytes(header[_HEADER_PAGE_COUNT], "big") * PAGE_SIZE


def has_damage(connection: sqlite3.Connection) -> bool:
    """Whether the quick check finds anything, or cannot be made."""
    try:
        return [str(row[0]) for row in connection.execute("PRAGMA quick_check(1)")] != ["ok"]
    except sqlite3.Error as error:
        if is_damage(error):
            return True
        raise


def _open_current(path: Path, steps: Sequence[str]) -> DatabaseConnection | None:
    """As it is; one of an older version as a copy in memory that is brought up to date. None without any tables."""
    connection = _open_in_place(path) or _open_in_memory(path)
    try:
        refuse_newer(connection, path, steps)
        version = schema_version(connection)
        if 0 < version < len(steps):
            connection.close()
            connection = _open_in_memory(path)
            apply_migrations(connection, steps)
        connection.execute("PRAGMA query_only=ON")
    except BaseException:
        connection.close()
        raise
    if version == 0:
        connection.close()
        return None
    return connection


def _open_in_place(path: Path) -> DatabaseConnection | None:
    """The file as it lies there; None where that would leave out what stands in its log."""
    with suppress(sqlite3.OperationalError):
        return _connect_read_only(path.absolute().as_uri() + "?mode=ro")
    log = path.with_name(f"{path.name}-wal")
    if log.exists() and log.stat().st_size:
        return None
    return _connect_read_only(path.absolute().as_uri() + "?immutable=1")


def _open_in_memory(path: Path) -> DatabaseConnection:
    """All that was committed, file and log together."""
    with PageReader(path) as pages:
        data = bytearray().join(pages.page(number).ljust(PAGE_SIZE, b"\0") for number in range(1, pages.count + 1))
    data[_HEADER_FORMAT] = b"\x01\x01"
    connection = _connect_read_only(":memory:")
    connection.deserialize(bytes(data))
    return connection


def _open_rescued(path: Path, steps: Sequence[str]) -> tuple[DatabaseConnection, tuple[Sentence, ...]]:
    connection = _connect_read_only(":memory:")
    apply_migrations(connection, steps)
    counts = copy_rows(read_rows(path), connection)
    connection.execute("PRAGMA query_only=ON")
    told = Sentence(
        "The saved conversations are damaged. {conversations} conversations with {messages} messages can be read.",
        {"conversations": str(counts["conversations"]), "messages": str(counts["messages"])},
    )
    return connection, (told,)


def _connect_read_only(database: str) -> DatabaseConnection:
    """Raises sqlite3.Error, also where it can be opened but not read."""
    connection = sqlite3.connect(database, isolation_level=None, factory=DatabaseConnection, uri=True)
    connection.text_factory = decode_text
    try:
        for pragma in ("cell_size_check=ON", "trusted_schema=OFF", "temp_store=MEMORY", "schema_version"):
            connection.execute(f"PRAGMA {pragma}").fetchall()
    except BaseException:
        connection.close()
        raise
    return connection
