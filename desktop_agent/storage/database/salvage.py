"""Rows read straight from the pages of a database, without SQLite and without trusting anything around them.

A damaged header, a broken page or a missing end stop SQLite altogether; the pages of rows that are whole can still be
read one by one. Committed pages of the write-ahead log replace those of the file. Layout: SQLite's "Database File
Format", sections 1.5 (pages), 1.6 (overflow), 2.1 (records), 4.1 and 4.2 (write-ahead log).
"""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Self

from desktop_agent.storage.database.connection import PAGE_SIZE

_LEAF_PAGE = 0x0D
_FILE_HEADER = 100
_PAGE_HEADER = 8
_LOG_HEADER = 32
_FRAME_HEADER = 24
_LOG_MAGIC = {0x377F0682: "<", 0x377F0683: ">"}
_INTEGER_SIZES = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
_UNREADABLE = (struct.error, IndexError, ValueError, OverflowError)


class SalvagedRow(NamedTuple):
    """A row as it lies on the page; the column that is the row number itself is None in `values`."""

    number: int
    values: list[Any]


def read_rows(path: Path) -> Iterator[SalvagedRow]:
    """Every row on every readable page of the database at `path`, in the order of pages. Raises OSError."""
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
            (at,) = struct.unpack_from(">H", page, start + _PAGE_HEADER + 2 * index)
            yield _read_row(pages, page, at)
        except _UNREADABLE:
            continue


def _read_row(pages: "PageReader", page: bytes, at: int) -> SalvagedRow:
    size, at = _read_varint(page, at)
    number, at = _read_varint(page, at)
    number = number - (1 << 64) if number >> 63 else number
    return SalvagedRow(number, _read_values(_read_payload(pages, page, at, size)))


def _read_payload(pages: "PageReader", page: bytes, at: int, size: int) -> bytes:
    most = PAGE_SIZE - 35
    if size <= most:
        return _require_size(page[at : at + size], size)
    least = (PAGE_SIZE - 12) * 32 // 255 - 23
    local = least + (size - least) % (PAGE_SIZE - 4)
    local = local if local <= most else least
    if size > pages.count * PAGE_SIZE:
        raise ValueError
    pieces = [page[at : at + local]]
    missing = size - local
    (following,) = struct.unpack_from(">I", page, at + local)
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
    end, at = _read_varint(payload, 0)
    kinds: list[int] = []
    while at < end:
        kind, at = _read_varint(payload, at)
        kinds.append(kind)
    values: list[Any] = []
    at = end
    for kind in kinds:
        value, at = _read_value(payload, at, kind)
        values.append(value)
    return values


def _read_value(payload: bytes, at: int, kind: int) -> tuple[Any, int]:
    if kind == 0:
        return None, at
    if kind in _INTEGER_SIZES:
        end = at + _INTEGER_SIZES[kind]
        return int.from_bytes(_require_size(payload[at:end], end - at), "big", signed=True), end
    if kind == 7:
        return struct.unpack_from(">d", payload, at)[0], at + 8
    if kind in {8, 9}:
        return kind - 8, at
    if kind < 12:
        raise ValueError
    end = at + (kind - 12) // 2
    data = _require_size(payload[at:end], end - at)
    return (data.decode("utf-8", "replace") if kind % 2 else data), end


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for index in range(8):
        byte = data[at + index]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + index + 1
    return value << 8 | data[at + 8], at + 9


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
        """One page; shorter than a page, or empty, where the file ends."""
        if number < 1:
            raise ValueError
        if self._log and number in self._in_log:
            self._log.seek(self._in_log[number])
            return self._log.read(PAGE_SIZE)
        self._file.seek((number - 1) * PAGE_SIZE)
        return self._file.read(PAGE_SIZE)


def _committed_pages(log: BinaryIO) -> dict[int, int]:
    """Where the log holds the newest committed copy of each page."""
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
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for index in range(0, len(words), 2):
        first = (first + words[index] + second) & 0xFFFFFFFF
        second = (second + words[index + 1] + first) & 0xFFFFFFFF
    return first, second
