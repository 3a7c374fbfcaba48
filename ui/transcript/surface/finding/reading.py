"""Reads what can be found in rows, bit by bit, and remembers it as long as something is looked for."""

from collections.abc import Iterator, Sequence
from time import perf_counter

from ui.transcript.blocks.block import Block
from ui.transcript.rows.body.unread import UnreadBlock
from ui.transcript.rows.row import Row
from ui.transcript.surface.finding.texts import Stretch, goes_on, shows_all, stretches, text_of, whole_row
from ui.transcript.surface.row_list import RowList

_REMEMBERED = 6_000_000
"""Characters that are remembered, each stretch counted as if it had some more."""

_MORE = 150
_STEP = 0.002
"""Seconds that one step of reading a long text may take."""


class Texts:
    """Of the rows of one list, with everything in them unfolded and read."""

    def __init__(self, rows: RowList) -> None:
        self._rows = rows
        self._kept: dict[str, list[Stretch]] = {}
        self._size = 0

    def of(self, index: int, first: int = 0) -> Iterator[Stretch | None]:
        """The stretches of a row from a block on; None in between, where reading took a while."""
        item = self._rows.transcript[index]
        row, kept = self._rows.known(index), self._kept.get(item.id)
        if row and shows_all(row) and first_unread(row) is None:
            yield from _pieces_read(row.blocks[first:])
            yield from stretches(row, first)
        elif kept is not None:
            yield from (each for each in kept if each.first >= first)
        else:
            yield from self._read(whole_row(item, self._rows.stage), first)

    def _read(self, row: Row, first: int) -> Iterator[Stretch | None]:
        at = 0
        while (unread := first_unread(row, at)) is not None:
            at = unread
            row.read(at, perf_counter() + _STEP)
            yield None
        yield from _pieces_read(row.blocks)
        found: list[Stretch] = []
        for stretch in stretches(row):
            found.append(stretch)
            if stretch.first >= first:
                yield stretch
        size = _size(found)
        if not row.is_open and self._size + size <= _REMEMBERED:
            self._size += size
            self._kept[row.item.id] = found

    def forget(self, item_id: str) -> None:
        """An item changed."""
        self._size -= _size(self._kept.pop(item_id, []))


def _pieces_read(blocks: Sequence[Block]) -> Iterator[None]:
    """Read the inline text of long paragraphs, which is remembered; something comes whenever that took a while."""
    until = perf_counter() + _STEP
    for block in blocks:
        if goes_on(block):
            text_of(block)
        if perf_counter() > until:
            yield None
            until = perf_counter() + _STEP


def _size(kept: list[Stretch]) -> int:
    return sum(len(each.text) + _MORE for each in kept)


def first_unread(row: Row, start: int = 0) -> int | None:
    """The first block from an index on that was not read yet."""
    found = (at for at in range(start, len(row.blocks)) if isinstance(row.blocks[at], UnreadBlock))
    return next(found, None)
