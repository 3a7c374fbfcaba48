"""The selection across blocks and rows, what of it is copied, and how it keeps its text while that still grows."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import takewhile

from PySide6.QtCore import QTextBoundaryFinder

from desktop_agent.conversation.items import Change, Item, Removed
from ui.transcript.blocks.block import BlockReplacement
from ui.transcript.blocks.code.code_block import CodeBlock
from ui.transcript.clipboard import CopyExtract, CopyStep
from ui.transcript.markdown.inline import slice_utf16
from ui.transcript.markdown.text_units import utf16_length
from ui.transcript.rows.row import Row, RowSelection
from ui.transcript.rows.row_factory import make_row
from ui.transcript.viewport.row_list import RowList, index_after


@dataclass(frozen=True, slots=True, order=True)
class TextPosition:
    """A position between two characters: a row, a block of it, an offset in UTF-16 units."""

    row: int = 0
    block: int = 0
    offset: int = 0

    def at(self, offset: int) -> "TextPosition":
        """Return a position in the same block."""
        return replace(self, offset=offset)

    def after_change(self, change: Change) -> "TextPosition | None":
        """Return the position when a row was added or removed above it; None when its own row was removed."""
        row = index_after(self.row, [change])
        return None if row is None else replace(self, row=row)

    def after_replacement(self, row: int, replacement: BlockReplacement) -> "TextPosition":
        """Return the position after blocks replaced one of a row."""
        if self.row != row or self.block >= LAST_OFFSET:
            return self
        return TextPosition(row, *replacement.map_position(self.block, self.offset))


LAST_OFFSET = 1 << 30


class Selection:
    """A selection from where the person began to where the pointer is; empty when both are the same."""

    def __init__(self) -> None:
        self.start = TextPosition()
        self.end = TextPosition()

    @property
    def is_empty(self) -> bool:
        return self.start == self.end

    @property
    def ends(self) -> tuple[TextPosition, TextPosition]:
        return self.start, self.end

    @property
    def ordered(self) -> tuple[TextPosition, TextPosition]:
        """Start and end in the order of the text."""
        return (self.start, self.end) if self.start <= self.end else (self.end, self.start)

    def clear(self) -> None:
        """Select nothing."""
        self.start = self.end = TextPosition()

    def set(self, start: TextPosition, end: TextPosition) -> None:
        """Select from `start` to `end`."""
        self.start, self.end = start, end

    def in_row(self, row: int) -> RowSelection | None:
        """Return the part of the selection inside one row."""
        if self.is_empty:
            return None
        first, last = self.ordered
        if not first.row <= row <= last.row:
            return None
        begin = (first.block, first.offset) if row == first.row else (0, 0)
        end = (last.block, last.offset) if row == last.row else (LAST_OFFSET, LAST_OFFSET)
        return begin, end

    def apply_change(self, change: Change) -> None:
        """Move with the rows that are added or removed above; clear it when an end of it was in a removed row."""
        if isinstance(change, Removed) or not self.is_empty:
            start, end = (position.after_change(change) for position in self.ends)
            if start and end:
                self.set(start, end)
            else:
                self.clear()


def selection_extracts(selection: Selection, rows: RowList) -> Iterator[CopyStep]:
    """Yield what is copied, block by block; after each row the number of rows done.

    Reasoning, calls and notices are left out when several rows are selected. Missing rows are made for it and dropped.
    Later changes of the rows do not change what is copied.
    """
    first, last = selection.ordered
    end = min(last.row, len(rows) - 1, len(rows.transcript) - 1)
    items = [rows.transcript[index] for index in range(first.row, end + 1)]
    ends = {index: _extracts_in_row(selection, rows.row(index), index) for index in {first.row, end} if items}
    return _extracts_by_row(items, first.row, ends, rows)


def conversation_extracts(rows: RowList) -> Iterator[CopyStep]:
    """Yield the whole conversation; before each message its author."""
    items = [rows.transcript[index] for index in range(rows.count)]
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
"""UTF-16 units on each side that are searched for the word: no word is longer."""


def word_at(text: str, offset: int) -> tuple[int, int]:
    """Return the word, the run of spaces or the sign at an offset. Offsets are UTF-16 units."""
    size = utf16_length(text)
    if not size:
        return 0, 0
    anchor = min(offset, size - 1)
    # Half of a pair is left out.
    first = anchor - utf16_length(slice_utf16(text, max(0, anchor - _WORD_WINDOW), anchor))
    window = slice_utf16(text, first, anchor + _WORD_WINDOW)
    finder = QTextBoundaryFinder(QTextBoundaryFinder.BoundaryType.Word, window)
    finder.setPosition(anchor - first + 1)
    start = finder.toPreviousBoundary()
    finder.setPosition(max(0, start))
    end = finder.toNextBoundary()
    if (word := slice_utf16(window, start, end)).isspace():
        start, end = _extend(window, start, end, str.isspace)
    elif word and all(map(_is_ideograph, word)):
        start, end = _extend(window, start, end, _is_ideograph)
    return first + max(0, start), first + (end if end > 0 else utf16_length(window))


def _extend(text: str, start: int, end: int, belongs: Callable[[str], bool]) -> tuple[int, int]:
    while start and belongs(slice_utf16(text, start - 1, start)):
        start -= 1
    while belongs(slice_utf16(text, end, end + 1)):
        end += 1
    return start, end


def _is_ideograph(char: str) -> bool:
    """Return whether a script has no spaces: only a dictionary knows where its words end."""
    return "\u3040" <= char <= "\u9fff" and char.isalpha()


_COMPARED_LENGTH = 400
"""Characters compared after the first difference: growing text never changes more at once."""


class SelectionTracker:
    """Keeps the selection on its text: made before a row changes, `restore` is called after."""

    def __init__(self, selection: Selection, rows: RowList, index: int) -> None:
        self._selection = selection
        self._index = index
        row = rows.existing_row(index)
        is_there = row is not None and row.blocks and not selection.is_empty
        positions = [position for position in selection.ends if position.row == index] if is_there else []
        self._row = row if positions else None
        if row is None or not positions:
            return
        ends = (_exact_position(position, row) if position.row == index else position for position in selection.ends)
        selection.set(*ends)
        lowest = min(position.block for position in selection.ends if position.row == index)
        # Closed blocks keep their positions. Where that is unknown, the block before is enough to find them again.
        self._first = max(getattr(row, "closed", 0), min(lowest, len(row.blocks) - 1) - 1)
        # Code only gets longer, and may be very long.
        later = enumerate(row.blocks[self._first :], self._first)
        self._code = {number for number, block in later if isinstance(block, CodeBlock)}
        self._before = _texts(row, self._first, self._code)

    def restore(self) -> None:
        """Select the same text again."""
        row = self._row
        if row is None:
            return
        after = _texts(row, self._first, self._code)
        if after[: len(self._before)] == self._before:
            return
        moved = (
            self._moved_position(position, after) if position.row == self._index else position
            for position in self._selection.ends
        )
        self._selection.set(*moved)

    def _moved_position(self, position: TextPosition, after: list[str]) -> TextPosition:
        number = position.block - self._first
        if number < 0:
            return position
        if self._before[: number + 1] == after[: number + 1]:
            return position
        if not after:
            return TextPosition(self._index, max(0, self._first - 1), 0)
        before = self._before[number] if number < len(self._before) else ""
        offset = sum(len(text) + 1 for text in self._before[:number]) + len(slice_utf16(before, 0, position.offset))
        return self._position_of(_moved_offset(offset, "\n".join(self._before), "\n".join(after)), after)

    def _position_of(self, offset: int, texts: list[str]) -> TextPosition:
        for number, text in enumerate(texts):
            if offset <= len(text):
                return TextPosition(self._index, self._first + number, utf16_length(text[:offset]))
            offset -= len(text) + 1
        return TextPosition(self._index, self._first + len(texts) - 1, utf16_length(texts[-1]))


def _exact_position(position: TextPosition, row: Row) -> TextPosition:
    """Replace the "end of block" offset by the current length: what arrives later was not selected."""
    if position.block >= len(row.blocks):
        position = TextPosition(position.row, len(row.blocks) - 1, LAST_OFFSET)
    is_end = position.offset >= LAST_OFFSET
    return position.at(utf16_length(row.blocks[position.block].plain())) if is_end else position


def _texts(row: Row, first: int, code: set[int]) -> list[str]:
    """Return the texts of blocks that may change; empty for code, which only grows."""
    blocks = enumerate(row.blocks[first:], first)
    return ["" if index in code and isinstance(block, CodeBlock) else block.plain() for index, block in blocks]


def _moved_offset(offset: int, before: str, after: str) -> int:
    """Return the offset of the same character in the changed text."""
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False)))
    if offset <= common:
        return offset
    old, new = before[common : common + _COMPARED_LENGTH], after[common : common + _COMPARED_LENGTH]
    moved = common
    for match in SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks():
        if common + match.a >= offset and match.a:
            break
        moved = common + match.b + min(offset - common - match.a, match.size)
    return min(moved, len(after))
