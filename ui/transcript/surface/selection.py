"""What is selected, across blocks and rows, and what of it is copied."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from PySide6.QtCore import QTextBoundaryFinder

from desktop_agent.conversation.items import Item
from ui.transcript.copying.passage import CopyExtract, CopyStep
from ui.transcript.markdown.inline import slice_utf16, utf16_length
from ui.transcript.rows.chooser import make_row
from ui.transcript.rows.row import Row, RowSelection
from ui.transcript.surface.row_list import RowList


@dataclass(frozen=True, slots=True, order=True)
class TextPosition:
    """Between two characters: a row, a block of it, an offset in UTF-16 units."""

    row: int = 0
    block: int = 0
    offset: int = 0


LAST_OFFSET = 1 << 30


class Selection:
    """From where the person began to where the pointer is; nothing when both are the same."""

    def __init__(self) -> None:
        self.start = TextPosition()
        self.end = TextPosition()

    @property
    def is_empty(self) -> bool:
        """Nothing selected."""
        return self.start == self.end

    @property
    def ordered(self) -> tuple[TextPosition, TextPosition]:
        """The earlier place first."""
        return (self.start, self.end) if self.start <= self.end else (self.end, self.start)

    def clear(self) -> None:
        """Select nothing."""
        self.start = self.end = TextPosition()

    def set(self, start: TextPosition, end: TextPosition) -> None:
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
        end = (last.block, last.offset) if row == last.row else (LAST_OFFSET, LAST_OFFSET)
        return begin, end

    def rows_added(self, index: int) -> None:
        """Rows at and after this index stand one further down."""
        self.start, self.end = (
            TextPosition(each.row + 1, each.block, each.offset) if each.row >= index and not self.is_empty else each
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
            TextPosition(each.row - count, each.block, each.offset) if each.row >= first else each
            for each in (self.start, self.end)
        )


def selected_text_parts(selection: Selection, rows: RowList) -> Iterator[str]:
    """The selected plain text, row by row. Reasoning, calls and notices are left out when several rows are selected."""
    parts: list[str] = []
    for step in selection_extracts(selection, rows):
        if isinstance(step, CopyExtract):
            parts += [step.before, step.text]
        elif parts:
            yield "".join(parts)
            parts = []


def selection_extracts(selection: Selection, rows: RowList) -> Iterator[CopyStep]:
    """What is copied, block by block; after each row the number of rows that are done.

    Reasoning, calls and notices are left out when several rows are selected. Rows that are not there are made for it
    and given up. What is copied is what stands there now.
    """
    first, last = selection.ordered
    end = min(last.row, len(rows) - 1, len(rows.transcript) - 1)
    items = [rows.transcript[index] for index in range(first.row, end + 1)]
    ends = {index: _extracts_in_row(selection, rows.row(index), index) for index in {first.row, end} if items}
    return _extracts_by_row(items, first.row, ends, rows)


def conversation_extracts(rows: RowList) -> Iterator[CopyStep]:
    """Of the whole conversation; before each message whose it is."""
    items = [rows.transcript[index] for index in range(min(len(rows), len(rows.transcript)))]
    return _extracts_by_row(items, 0, {}, rows, with_names=True)


def _extracts_in_row(selection: Selection, row: Row, index: int) -> Iterator[CopyExtract]:
    part = selection.in_row(index)
    if part is None or part[0][0] >= len(row.blocks):
        return iter(())
    return row.extracts(part[0], None if part[1][0] >= len(row.blocks) else part[1])


def _extracts_by_row(
    items: list[Item], first: int, ends: dict[int, Iterator[CopyExtract]], rows: RowList, *, with_names: bool = False
) -> Iterator[CopyStep]:
    render_context = rows.render_context
    for number, item in enumerate(items):
        known = rows.existing_row(first + number)
        row = known if known and known.item is item else make_row(item, render_context, 0)
        if row.is_copied or len(items) == 1:
            if with_names:
                yield row.label
            yield from ends.get(first + number) or row.extracts()
        yield number + 1


_WORD_WINDOW = 400
"""UTF-16 units on each side in which a word is looked for: no word is longer."""


def word_at(text: str, offset: int) -> tuple[int, int]:
    """The word, the run of spaces or the sign at an offset. Offsets are UTF-16 units."""
    size = utf16_length(text)
    if not size:
        return 0, 0
    at = min(offset, size - 1)
    # Half of a pair is left out.
    first = at - utf16_length(slice_utf16(text, max(0, at - _WORD_WINDOW), at))
    near = slice_utf16(text, first, at + _WORD_WINDOW)
    finder = QTextBoundaryFinder(QTextBoundaryFinder.BoundaryType.Word, near)
    finder.setPosition(at - first + 1)
    start = finder.toPreviousBoundary()
    finder.setPosition(max(0, start))
    end = finder.toNextBoundary()
    if (found := slice_utf16(near, start, end)).isspace():
        start, end = _extend(near, start, end, str.isspace)
    elif found and all(map(_is_ideograph, found)):
        start, end = _extend(near, start, end, _is_ideograph)
    return first + max(0, start), first + (end if end > 0 else utf16_length(near))


def _extend(text: str, start: int, end: int, belongs: Callable[[str], bool]) -> tuple[int, int]:
    """With all that belongs to it on both sides."""
    while start and belongs(slice_utf16(text, start - 1, start)):
        start -= 1
    while belongs(slice_utf16(text, end, end + 1)):
        end += 1
    return start, end


def _is_ideograph(char: str) -> bool:
    """Of a script without spaces: where its words end only a dictionary knows."""
    return "\u3040" <= char <= "\u9fff" and char.isalpha()
