"""The rescue of a damaged database: renamed, its readable rows copied into a new one.

Rows are read straight from the pages, without SQLite and without trusting anything around them. A damaged header, a
broken page or a missing end stop SQLite altogether; the pages of rows that are whole can still be read one by one.
Committed pages of the write-ahead log replace those of the file. Layout: SQLite's "Database File Format", sections
1.5 (pages), 1.6 (overflow), 2.1 (records), 4.1 and 4.2 (write-ahead log).
"""

import os
import shutil
import sqlite3
import struct
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Self

from desktop_agent.data_files import load_text
from desktop_agent.storage.connection import PAGE_SIZE, connect, transaction
from desktop_agent.storage.files import free_name, sync_folder
from desktop_agent.storage.migrations import TABLES_BY_MARK, create_unfinished
from desktop_agent.types.errors import Sentence
from desktop_agent.types.messages import new_id

_LEAF_PAGE = 0x0D
_FILE_HEADER = 100
_PAGE_HEADER = 8
_LOG_HEADER = 32
_FRAME_HEADER = 24
_LOG_MAGIC = {0x377F0682: "<", 0x377F0683: ">"}
_INTEGER_SIZES = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
_UNREADABLE = (struct.error, IndexError, ValueError, OverflowError)


class SalvagedRow(NamedTuple):
    """A row as stored on the page; the column that is the row number itself is None in `values`."""

    number: int
    values: list[Any]


def read_rows(path: Path) -> Iterator[SalvagedRow]:
    """Yield every row on every readable page of the database at `path`, in the order of pages. Raises OSError."""
    with PageReader(path) as pages:
        for number in range(1, pages.count + 1):
            page = pages.page(number)
            start = _FILE_HEADER if number == 1 else 0
            # The last one may be cut off: what lies before the cut is whole.
            if len(page) >= start + _PAGE_HEADER and page[start] == _LEAF_PAGE:
                yield from _rows_on_page(pages, page, start)


def _rows_on_page(pages: "PageReader", page: bytes, start: int) -> Iterator[SalvagedRow]:
    (cells,) = struct.unpack_from(">H", page, start + 3)
    for index in range(min(cells, PAGE_SIZE // 4)):
        try:
            (offset,) = struct.unpack_from(">H", page, start + _PAGE_HEADER + 2 * index)
            yield _read_row(pages, page, offset)
        except _UNREADABLE:
            continue


def _read_row(pages: "PageReader", page: bytes, offset: int) -> SalvagedRow:
    size, offset = _read_varint(page, offset)
    number, offset = _read_varint(page, offset)
    number = number - (1 << 64) if number >> 63 else number
    return SalvagedRow(number, _read_values(_read_payload(pages, page, offset, size)))


def _read_payload(pages: "PageReader", page: bytes, offset: int, size: int) -> bytes:
    limit = PAGE_SIZE - 35
    if size <= limit:
        return _require_size(page[offset : offset + size], size)
    least = (PAGE_SIZE - 12) * 32 // 255 - 23
    local = least + (size - least) % (PAGE_SIZE - 4)
    local = local if local <= limit else least
    if size > pages.count * PAGE_SIZE:
        raise ValueError
    pieces = [page[offset : offset + local]]
    missing = size - local
    (following,) = struct.unpack_from(">I", page, offset + local)
    while missing > 0:
        overflow = pages.page(following)
        (following,) = struct.unpack_from(">I", overflow, 0)
        pieces.append(overflow[4 : 4 + missing])
        missing -= len(pieces[-1])
    return _require_size(b"".join(pieces), size)


def _require_size(data: bytes, size: int) -> bytes:
    if len(data) != size:
        raise ValueError
    return data


def _read_values(payload: bytes) -> list[Any]:
    end, offset = _read_varint(payload, 0)
    kinds: list[int] = []
    while offset < end:
        kind, offset = _read_varint(payload, offset)
        kinds.append(kind)
    values: list[Any] = []
    offset = end
    for kind in kinds:
        value, offset = _read_value(payload, offset, kind)
        values.append(value)
    return values


def _read_value(payload: bytes, offset: int, kind: int) -> tuple[Any, int]:
    if kind == 0:
        return None, offset
    if kind in _INTEGER_SIZES:
        end = offset + _INTEGER_SIZES[kind]
        return int.from_bytes(_require_size(payload[offset:end], end - offset), "big", signed=True), end
    if kind == 7:
        return struct.unpack_from(">d", payload, offset)[0], offset + 8
    if kind in {8, 9}:
        return kind - 8, offset
    if kind < 12:
        raise ValueError
    end = offset + (kind - 12) // 2
    data = _require_size(payload[offset:end], end - offset)
    return (data.decode("utf-8", "replace") if kind % 2 else data), end


def _read_varint(data: bytes, offset: int) -> tuple[int, int]:
    value = 0
    for index in range(8):
        byte = data[offset + index]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, offset + index + 1
    return value << 8 | data[offset + 8], offset + 9


class PageReader:
    """Pages by number, as the last committed transaction left them."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._log: BinaryIO | None = None
        self._in_log: dict[int, int] = {}
        self.count = -(-path.stat().st_size // PAGE_SIZE)
        log = path.with_name(path.name + "-wal")
        if log.exists():
            self._log = log.open("rb")
            self._in_log = _committed_pages(self._log)
            self.count = max(self.count, *self._in_log, 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        if self._log:
            self._log.close()

    def page(self, number: int) -> bytes:
        """Return one page; shorter than a page, or empty, where the file ends."""
        if number < 1:
            raise ValueError
        if self._log and number in self._in_log:
            self._log.seek(self._in_log[number])
            return self._log.read(PAGE_SIZE)
        self._file.seek((number - 1) * PAGE_SIZE)
        return self._file.read(PAGE_SIZE)


def _committed_pages(log: BinaryIO) -> dict[int, int]:
    """Return where the log holds the newest committed copy of each page."""
    header = log.read(_LOG_HEADER)
    order = _LOG_MAGIC.get(int.from_bytes(header[:4], "big"))
    if order is None or len(header) < _LOG_HEADER:
        return {}
    sums = _checksums(header[:24], order, (0, 0))
    if sums != struct.unpack_from(">II", header, 24):
        return {}
    committed: dict[int, int] = {}
    pending: dict[int, int] = {}
    while len(frame := log.read(_FRAME_HEADER + PAGE_SIZE)) == _FRAME_HEADER + PAGE_SIZE:
        sums = _checksums(frame[:8] + frame[_FRAME_HEADER:], order, sums)
        if frame[8:16] != header[16:24] or sums != struct.unpack_from(">II", frame, 16):
            break
        number, size_after = struct.unpack_from(">II", frame, 0)
        pending[number] = log.tell() - PAGE_SIZE
        if size_after:
            committed.update(pending)
            pending.clear()
    return committed


def _checksums(data: bytes, order: str, start: tuple[int, int]) -> tuple[int, int]:
    first, second = start
    integers = struct.unpack(f"{order}{len(data) // 4}I", data)
    for index in range(0, len(integers), 2):
        first = (first + integers[index] + second) & 0xFFFFFFFF
        second = (second + integers[index + 1] + first) & 0xFFFFFFFF
    return first, second


_BATCH_ROWS = 5000
_COLUMN_TYPES: dict[str, type | tuple[type, ...]] = {"INTEGER": int, "TEXT": (str, bytes)}

_LOST_CONVERSATIONS = """
    SELECT conversation, min(created_at), max(number) FROM messages
    WHERE conversation NOT IN (SELECT number FROM conversations) GROUP BY conversation"""


def rebuild_database(path: Path) -> Sentence:
    """Replace the damaged database by a new one with all readable rows; return what was done, in words.

    The damaged file is kept beside it as `NAME.damaged-YYYYMMDD-HHMMSS`, its log and log index likewise. Raises
    sqlite3.Error and OSError; the damaged file is then where it was.
    """
    unfinished = create_unfinished(path)
    with closing(connect(unfinished)) as connection:
        counts = copy_rows(read_rows(path), connection)
    aside = _set_damaged_aside(path)
    unfinished.replace(path)
    sync_folder(path.parent)
    return Sentence(
        "The saved conversations were damaged. The damaged file was kept as “{name}”; what could be read was carried "
        "over (conversations: {conversations}, messages: {messages}). If something is missing, a backup may have it: "
        "Settings → Storage.",
        {
            "name": aside.name,
            "conversations": str(counts["conversations"]),
            "messages": str(counts["messages"]),
        },
    )


def copy_rows(rows: Iterator[SalvagedRow], connection: sqlite3.Connection) -> Counter[str]:
    """Insert these rows into empty tables, and repair references to lost ones; return how many each table has."""
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
    for statement in load_text(__name__, "tables/repairs.sql").split(";\n"):
        connection.execute(statement)
    _recount_positions(connection)


def _recount_positions(connection: sqlite3.Connection) -> None:
    """Set each position to one more than the parent's; parents have smaller numbers, so one pass is enough."""
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
    """Give the damaged file a second name, so that at no moment there is none of the usual name."""
    aside = free_name(path, "damaged")
    try:
        os.link(path, aside)
    except OSError:  # a file system without hard links
        shutil.copy2(path, aside)
    for suffix in ("-wal", "-shm"):
        # Moved away before the new file takes the name: a log beside it would be applied to it.
        with suppress(FileNotFoundError):
            path.with_name(path.name + suffix).replace(aside.with_name(aside.name + suffix))
    return aside
