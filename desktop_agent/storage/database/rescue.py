"""What happens to a damaged database: set aside under another name, its readable rows carried over into a new one."""

import os
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from desktop_agent.storage.database.connection import connect, transaction
from desktop_agent.storage.database.salvage import SalvagedRow, read_rows
from desktop_agent.storage.database.schema import TABLES_BY_MARK, migrate
from desktop_agent.storage.files import damaged_copy_path, sync_folder
from desktop_agent.vocabulary.errors import Sentence
from desktop_agent.vocabulary.messages import new_id

_BATCH_ROWS = 5000
_COLUMN_TYPES: dict[str, type | tuple[type, ...]] = {"INTEGER": int, "TEXT": (str, bytes)}

# What points at a row that is lost, or in a circle, is mended so that every message can still be reached.
_REPAIRS = (
    "DELETE FROM runs WHERE conversation NOT IN (SELECT number FROM conversations)",
    "DELETE FROM journal WHERE number >> 32 NOT IN (SELECT number FROM runs)",
    "DELETE FROM checkpoints WHERE conversation NOT IN (SELECT number FROM conversations)",
    "DELETE FROM drafts WHERE number <> 0 AND number NOT IN (SELECT number FROM conversations)",
    # A position alone is wrong where its neighbours on both sides agree: the parent, and a child or the head's count.
    """UPDATE messages SET position = 1 + coalesce(
           (SELECT g.position FROM messages g WHERE g.number = messages.parent), 0)
       WHERE number IN (
           SELECT m.number FROM messages m LEFT JOIN messages g
               ON g.number = m.parent AND g.number < m.number AND g.conversation = m.conversation
           WHERE (m.parent IS NULL OR g.number IS NOT NULL) AND m.position <> 1 + coalesce(g.position, 0) AND (
               EXISTS (SELECT 1 FROM messages c WHERE c.parent = m.number AND c.conversation = m.conversation
                   AND c.position = 2 + coalesce(g.position, 0))
               OR EXISTS (SELECT 1 FROM conversations k WHERE k.number = m.conversation AND k.head = m.number
                   AND k.message_count = 1 + coalesce(g.position, 0))))""",
    # A parent by the position; where that leads nowhere it was wrong itself, or the one before is lost.
    """UPDATE messages SET parent = coalesce(
           (SELECT max(b.number) FROM messages b WHERE b.conversation = messages.conversation
               AND b.number < messages.number AND b.position = messages.position - 1),
           (SELECT b.number FROM messages b WHERE b.conversation = messages.conversation
               AND b.number < messages.number AND b.number = messages.parent),
           (SELECT max(b.number) FROM messages b WHERE b.conversation = messages.conversation
               AND b.number < messages.number AND messages.parent IS NOT NULL))
       WHERE (parent IS NOT NULL OR position > 1) AND NOT EXISTS (SELECT 1 FROM messages b
           WHERE b.number = messages.parent AND b.number < messages.number
               AND b.conversation = messages.conversation AND b.position = messages.position - 1)""",
    # A head is believed unless fewer messages led to it than were counted.
    """UPDATE conversations SET head = coalesce(
           (SELECT max(b.number) FROM messages b
               WHERE b.conversation = conversations.number AND b.position = message_count),
           (SELECT b.number FROM messages b WHERE b.conversation = conversations.number AND b.number = head),
           (SELECT max(b.number) FROM messages b WHERE b.conversation = conversations.number))
       WHERE (head IS NOT NULL OR message_count > 0) AND NOT EXISTS (SELECT 1 FROM messages b
           WHERE b.number = head AND b.conversation = conversations.number AND b.position >= message_count)""",
)
_LOST_CONVERSATIONS = """
    SELECT conversation, min(created_at), max(number) FROM messages
    WHERE conversation NOT IN (SELECT number FROM conversations) GROUP BY conversation"""


def create_database(path: Path) -> None:
    """Make a new, empty database; the name appears only when it is complete. Raises sqlite3.Error and OSError."""
    unfinished = _create_unfinished(path)
    unfinished.replace(path)
    sync_folder(path.parent)


def rebuild_database(path: Path) -> Sentence:
    """Put a new database with all readable rows in place of the damaged one; says what was done.

    The damaged file is kept beside it as `TOOL_NAME.damaged-YYYYMMDD-HHMMSS`, its log and log index likewise.
    Raises sqlite3.Error and OSError; the damaged file is then where it was.
    """
    unfinished = _create_unfinished(path)
    with closing(connect(unfinished)) as connection:
        counts = copy_rows(read_rows(path), connection)
    aside = _set_damaged_aside(path)
    unfinished.replace(path)
    sync_folder(path.parent)
    return Sentence(
        "The saved conversations were damaged. The damaged file was kept as “{name}”; {conversations} conversations "
        "with {messages} messages could be read and were carried over.",
        {
            "name": aside.name,
            "conversations": str(counts["conversations"]),
            "messages": str(counts["messages"]),
        },
    )


def _create_unfinished(path: Path) -> Path:
    unfinished = path.with_name(f"{path.name}.unfinished")
    for suffix in ("", "-wal", "-shm"):
        unfinished.with_name(unfinished.name + suffix).unlink(missing_ok=True)
    os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    with closing(connect(unfinished)) as connection:
        migrate(connection, unfinished)
    return unfinished


def copy_rows(rows: Iterator[SalvagedRow], connection: sqlite3.Connection) -> Counter[str]:
    """Insert these rows into empty tables, and repair what points at lost ones; returns how many each table has."""
    connection.execute("PRAGMA foreign_keys=OFF")
    writers = {mark: _RowWriter(connection, table) for mark, table in TABLES_BY_MARK.items()}
    with transaction(connection):
        for row in rows:
            # Column 0 is the row number, column 1 the mark.
            mark = row.values[1] if len(row.values) > 1 else None
            if isinstance(mark, int) and mark in writers:
                writers[mark].add(row)
        for writer in writers.values():
            writer.flush()
        _repair_links(connection)
    counts: Counter[str] = Counter()
    for table in TABLES_BY_MARK.values():
        counts[table] = connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608  our own names
    return counts


class _RowWriter:
    """Inserts rows of one table, many at a time; a row that does not fit the table is left out."""

    def __init__(self, connection: sqlite3.Connection, table: str) -> None:
        self._connection = connection
        columns = connection.execute(f"PRAGMA table_info({table})").fetchall()
        self._kinds = [_COLUMN_TYPES[column[2]] for column in columns]
        self._defaults = [_default_value(column[4]) for column in columns]
        places = ", ".join("?" * len(columns))
        self._insert = f"INSERT OR IGNORE INTO {table} VALUES ({places})"  # noqa: S608  our own names
        self._rows: list[list[Any]] = []

    def add(self, row: SalvagedRow) -> None:
        """Queue one row; columns that a later version added are filled with their defaults."""
        values = [row.number, *row.values[1:]][: len(self._defaults)]
        if not all(value is None or isinstance(value, kind) for value, kind in zip(values, self._kinds, strict=False)):
            return
        self._rows.append(values + self._defaults[len(values) :])
        if len(self._rows) >= _BATCH_ROWS:
            self.flush()

    def flush(self) -> None:
        """Write what is queued."""
        self._connection.executemany(self._insert, self._rows)
        self._rows.clear()


def _default_value(default: str | None) -> int | str | None:
    if default is None or default == "NULL":
        return None
    return int(default) if default.lstrip("-").isdigit() else default.strip("'")


def _repair_links(connection: sqlite3.Connection) -> None:
    for number, created_at, head in connection.execute(_LOST_CONVERSATIONS).fetchall():
        connection.execute(
            "INSERT INTO conversations (number, id, title, title_is_automatic, created_at, updated_at, head)"
            " SELECT ?, ?, 'Recovered conversation', 0, t, t, ? FROM"
            " (SELECT coalesce(strftime('%s', ?), strftime('%s')) * 1000000 AS t)",
            (number, new_id(), head, created_at),
        )
    for statement in _REPAIRS:
        connection.execute(statement)
    _recount_positions(connection)


def _recount_positions(connection: sqlite3.Connection) -> None:
    """A position is the parent's and one; a parent's number is smaller, so one pass in order is enough."""
    depths: dict[int, int] = {}
    wrong: list[tuple[int, int]] = []
    for number, parent, position in connection.execute("SELECT number, parent, position FROM messages ORDER BY number"):
        depth = depths[number] = depths.get(parent, 0) + 1
        if depth != position:
            wrong.append((depth, number))
    connection.executemany("UPDATE messages SET position = ? WHERE number = ?", wrong)
    connection.execute(
        "UPDATE conversations SET message_count ="
        " coalesce((SELECT position FROM messages WHERE messages.number = conversations.head), 0)"
    )


def _set_damaged_aside(path: Path) -> Path:
    """A second name for the damaged file, so that at no moment there is none of the usual name."""
    aside = damaged_copy_path(path)
    try:
        os.link(path, aside)
    except OSError:  # a file system without hard links
        shutil.copy2(path, aside)
    for suffix in ("-wal", "-shm"):
        # Moved away before the new file takes the name: a log found beside it would be played into it.
        with suppress(FileNotFoundError):
            path.with_name(path.name + suffix).replace(aside.with_name(aside.name + suffix))
    return aside
