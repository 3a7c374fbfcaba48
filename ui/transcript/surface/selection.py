"""What is selected, across blocks and rows, and what of it is copied."""

from collections.abc import Iterator
from dataclasses import dataclass

from ui.transcript.rows.row import Selection as RowSelection
from ui.transcript.surface.row_list import RowList


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Between two characters: a row, a block of it, an offset in UTF-16 units."""

    row: int = 0
    block: int = 0
    offset: int = 0


LAST = 1 << 30


class Selection:
    """From where the person began to where the pointer is; nothing when both are the same."""

    def __init__(self) -> None:
        self.start = Place()
        self.end = Place()

    @property
    def is_empty(self) -> bool:
        """Nothing selected."""
        return self.start == self.end

    @property
    def ordered(self) -> tuple[Place, Place]:
        """The earlier place first."""
        return (self.start, self.end) if self.start <= self.end else (self.end, self.start)

    def clear(self) -> None:
        """Select nothing."""
        self.start = self.end = Place()

    def set(self, start: Place, end: Place) -> None:
        """Select from here to there."""
        self.start, self.end = start, end

    def in_row(self, row: int) -> RowSelection | None:
        """The part inside one row."""
        if self.is_empty:
            return None
        first, last = self.ordered
        if not first.row <= row <= last.row:
            return None
        begin = (first.block, first.offset) if row == first.row else (0, 0)
        end = (last.block, last.offset) if row == last.row else (LAST, LAST)
        return begin, end

    def rows_added(self, index: int) -> None:
        """Rows at and after this index stand one further down."""
        self.start, self.end = (
            Place(each.row + 1, each.block, each.offset) if each.row >= index and not self.is_empty else each
            for each in (self.start, self.end)
        )

    def rows_removed(self, first: int, count: int) -> None:
        """What was selected in rows that are gone is not selected any more."""
        _, last = self.ordered
        if last.row < first:
            return
        if any(first <= each.row < first + count for each in (self.start, self.end)):
            self.clear()
            return
        self.start, self.end = (
            Place(each.row - count, each.block, each.offset) if each.row >= first else each
            for each in (self.start, self.end)
        )


def pieces_of(selection: Selection, rows: RowList) -> Iterator[str]:
    """The selected plain text, row by row. Reasoning, calls and notices are left out when several rows are selected."""
    first, last = selection.ordered
    for index in range(first.row, min(last.row, len(rows) - 1) + 1):
        row = rows.row(index)
        if first.row != last.row and not row.in_copies:
            yield ""
            continue
        part = selection.in_row(index)
        if part is None:
            continue
        (block, offset), end = part
        whole_end = end[0] >= len(row.blocks)
        if block < len(row.blocks):
            yield row.plain((block, offset), None if whole_end else end)


def word_around(text: str, offset: int) -> tuple[int, int]:
    """The word, the run of spaces or the sign at an offset. Offsets are UTF-16 units."""
    data = text.encode("utf-16-le")
    chars = [data[at : at + 2].decode("utf-16-le", "replace") for at in range(0, len(data), 2)]
    if not chars:
        return 0, 0
    at = min(offset, len(chars) - 1)
    kind = _kind(chars[at])
    start = end = at
    while start and _kind(chars[start - 1]) == kind and kind != "sign":
        start -= 1
    while end < len(chars) and _kind(chars[end]) == kind and (kind != "sign" or end == at):
        end += 1
    return start, max(end, start + 1)


def _kind(char: str) -> str:
    # Halves of a pair decode to the replacement sign; both belong to one character.
    if char.isalnum() or char in "_\ufffd'’":
        return "word"
    return "space" if char.isspace() else "sign"
