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

from desktop_agent.storage.database.connection import PAGE_SIZE, Connection, decoded, is_damage
from desktop_agent.storage.database.messages import are_misplaced
from desktop_agent.storage.database.rescue import carry_over
from desktop_agent.storage.database.salvage import Pages, rows_in
from desktop_agent.storage.database.schema import STEPS, apply_steps, refuse_newer, version_of
from desktop_agent.vocabulary.errors import Sentence

_FORMAT = slice(18, 20)
"""Where the header says that the file is in write-ahead mode, which a database in memory cannot be."""
_COUNT = slice(28, 32)
"""Where it says how many pages there are ("Database File Format", section 1.3.7)."""


def open_read_only(path: Path, *, check: bool, steps: Sequence[str] = STEPS) -> tuple[Connection, tuple[Sentence, ...]]:
    """Open what is there, and return what to tell about it. `check` all of it for damage.

    Raises sqlite3.Error, OSError, and DatabaseTooNew.
    """
    try:
        connection = _of_today(path, steps)
    except sqlite3.Error as error:
        if not is_damage(error):
            raise
        connection = None
    if connection is not None:
        # A message out of its place is looked for now: found while reading, it could not be put right any more.
        is_damaged = is_cut_off(path) or (check and (is_not_whole(connection) or are_misplaced(connection)))
        if not is_damaged:
            return connection, ()
        connection.close()
    return _rescued(path, steps)


def is_cut_off(path: Path) -> bool:
    """Whether the file is shorter than its header says. SQLite reads zeros for the rest of a page that is cut off.

    Not asked where pages wait in the log: the last one may still have to be copied from there. Raises OSError.
    """
    log = path.with_name(f"{path.name}-wal")
    if log.exists() and log.stat().st_size:
        return False
    with path.open("rb") as file:
        header = file.read(_COUNT.stop)
    return path.stat().st_size < int.from_bytes(header[_COUNT], "big") * PAGE_SIZE


def is_not_whole(connection: sqlite3.Connection) -> bool:
    """Whether the quick check finds anything, or cannot be made."""
    try:
        return [str(row[0]) for row in connection.execute("PRAGMA quick_check(1)")] != ["ok"]
    except sqlite3.Error as error:
        if is_damage(error):
            return True
        raise


def _of_today(path: Path, steps: Sequence[str]) -> Connection | None:
    """As it is; one of an older version as a copy in memory that is brought up to date. None without any tables."""
    connection = _readable(path) or _in_memory(path)
    try:
        refuse_newer(connection, path, steps)
        version = version_of(connection)
        if 0 < version < len(steps):
            connection.close()
            connection = _in_memory(path)
            apply_steps(connection, steps)
        connection.execute("PRAGMA query_only=ON")
    except BaseException:
        connection.close()
        raise
    if version == 0:
        connection.close()
        return None
    return connection


def _readable(path: Path) -> Connection | None:
    """The file as it lies there; None where that would leave out what stands in its log."""
    with suppress(sqlite3.OperationalError):
        return _connect(path.absolute().as_uri() + "?mode=ro")
    log = path.with_name(f"{path.name}-wal")
    if log.exists() and log.stat().st_size:
        return None
    return _connect(path.absolute().as_uri() + "?immutable=1")


def _in_memory(path: Path) -> Connection:
    """All that was committed, file and log together."""
    with Pages(path) as pages:
        data = bytearray().join(pages.page(number).ljust(PAGE_SIZE, b"\0") for number in range(1, pages.count + 1))
    data[_FORMAT] = b"\x01\x01"
    connection = _connect(":memory:")
    connection.deserialize(bytes(data))
    return connection


def _rescued(path: Path, steps: Sequence[str]) -> tuple[Connection, tuple[Sentence, ...]]:
    connection = _connect(":memory:")
    apply_steps(connection, steps)
    counts = carry_over(rows_in(path), connection)
    connection.execute("PRAGMA query_only=ON")
    told = Sentence(
        "The saved conversations are damaged. {conversations} conversations with {messages} messages can be read.",
        {"conversations": str(counts["conversations"]), "messages": str(counts["messages"])},
    )
    return connection, (told,)


def _connect(database: str) -> Connection:
    """Raises sqlite3.Error, also where it can be opened but not read."""
    connection = sqlite3.connect(database, isolation_level=None, factory=Connection, uri=True)
    connection.text_factory = decoded
    try:
        for pragma in ("cell_size_check=ON", "trusted_schema=OFF", "temp_store=MEMORY", "schema_version"):
            connection.execute(f"PRAGMA {pragma}").fetchall()
    except BaseException:
        connection.close()
        raise
    return connection
