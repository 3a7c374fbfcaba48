"""Reads what can be found in rows, bit by bit, and remembers it as long as something is looked for."""

from collections.abc import Iterator, Sequence
from time import perf_counter

from ui.transcript.blocks.block import Block
from ui.transcript.rows.body.unread import LazySection
from ui.transcript.rows.row import Row
from ui.transcript.surface.finding.texts import (
    TextRun,
    continues_paragraph,
    is_fully_unfolded,
    iter_text_runs,
    make_unfolded_row,
    searchable_text_of,
)
from ui.transcript.surface.row_list import RowList

_MAX_CACHED_LENGTH = 6_000_000
"""Characters that are remembered, each stretch counted as if it had some more."""

_EXTRA_LENGTH = 150
_STEP_SECONDS = 0.002
"""Seconds that one step of reading a long text may take."""


class SearchableTexts:
    """Of the rows of one list, with everything in them unfolded and read."""

    def __init__(self, rows: RowList) -> None:
        self._rows = rows
        self._cache: dict[str, list[TextRun]] = {}
        self._size = 0

    def text_runs_of(self, index: int, first: int = 0) -> Iterator[TextRun | None]:
        """The stretches of a row from a block on; None in between, where reading took a while."""
        item = self._rows.transcript[index]
        row, kept = self._rows.existing_row(index), self._cache.get(item.id)
        if row and is_fully_unfolded(row) and first_lazy_section(row) is None:
            yield from _read_in_steps(row.blocks[first:])
            yield from iter_text_runs(row, first)
        elif kept is not None:
            yield from (each for each in kept if each.first >= first)
        else:
            yield from self._read(make_unfolded_row(item, self._rows.render_context), first)

    def _read(self, row: Row, first: int) -> Iterator[TextRun | None]:
        at = 0
        while (unread := first_lazy_section(row, at)) is not None:
            at = unread
            row.read(at, perf_counter() + _STEP_SECONDS)
            yield None
        yield from _read_in_steps(row.blocks)
        found: list[TextRun] = []
        for text_run in iter_text_runs(row):
            found.append(text_run)
            if text_run.first >= first:
                yield text_run
        size = _text_length(found)
        if not row.is_open and self._size + size <= _MAX_CACHED_LENGTH:
            self._size += size
            self._cache[row.item.id] = found

    def forget(self, item_id: str) -> None:
        """An item changed."""
        self._size -= _text_length(self._cache.pop(item_id, []))


def _read_in_steps(blocks: Sequence[Block]) -> Iterator[None]:
    """Read the inline text of long paragraphs, which is remembered; something comes whenever that took a while."""
    until = perf_counter() + _STEP_SECONDS
    for block in blocks:
        if continues_paragraph(block):
            searchable_text_of(block)
        if perf_counter() > until:
            yield None
            until = perf_counter() + _STEP_SECONDS


def _text_length(kept: list[TextRun]) -> int:
    return sum(len(each.text) + _EXTRA_LENGTH for each in kept)


def first_lazy_section(row: Row, start: int = 0) -> int | None:
    """The first block from an index on that was not read yet."""
    found = (at for at in range(start, len(row.blocks)) if isinstance(row.blocks[at], LazySection))
    return next(found, None)
