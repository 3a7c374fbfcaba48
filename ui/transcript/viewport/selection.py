"""The selection across blocks and rows, what of it is copied, and how it stays on its text while that is still
written.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import takewhile

from PySide6.QtCore import QTextBoundaryFinder

from desktop_agent.conversation.items import Item
from ui.transcript.blocks.code.code_block import CodeBlock
from ui.transcript.clipboard import CopyExtract, CopyStep
from ui.transcript.markdown.inline import slice_utf16
from ui.transcript.markdown.text_units import utf16_length
from ui.transcript.rows.row import Row, RowSelection
from ui.transcript.rows.row_factory import make_row
from ui.transcript.viewport.row_list import RowList, RowStore


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


_COMPARED_LENGTH = 400
"""Characters behind the first difference: so much text never changes at once while it is written."""


class SelectionTracker:
    """Made before a row changes; `put_back` when it has."""

    def __init__(self, selection: Selection, rows: RowStore, index: int) -> None:
        self._selection = selection
        self._index = index
        row = rows.existing_row(index)
        is_there = row is not None and row.blocks and not selection.is_empty
        places = [each for each in (selection.start, selection.end) if each.row == index] if is_there else []
        self._row = row if places else None
        if row is None or not places:
            return
        selection.set(
            *(_exact_position(each, row) if each.row == index else each for each in (selection.start, selection.end))
        )
        lowest = min(each.block for each in (selection.start, selection.end) if each.row == index)
        # What is closed keeps its places. Without that knowledge the block before is enough to find them again.
        self._first = max(getattr(row, "closed", 0), min(lowest, len(row.blocks) - 1) - 1)
        # Code only gets longer, and may be very long.
        self._code = {at for at, block in enumerate(row.blocks) if at >= self._first and isinstance(block, CodeBlock)}
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
            self._moved_position(each, after) if each.row == self._index else each
            for each in (self._selection.start, self._selection.end)
        )
        self._selection.set(*moved)

    def _moved_position(self, position: TextPosition, after: list[str]) -> TextPosition:
        at = position.block - self._first
        if at < 0:
            return position
        if self._before[: at + 1] == after[: at + 1]:
            return position
        if not after:
            return TextPosition(self._index, max(0, self._first - 1), 0)
        before = self._before[at] if at < len(self._before) else ""
        offset = sum(len(text) + 1 for text in self._before[:at]) + len(slice_utf16(before, 0, position.offset))
        return self._position_of(_moved_offset(offset, "\n".join(self._before), "\n".join(after)), after)

    def _position_of(self, offset: int, texts: list[str]) -> TextPosition:
        for number, text in enumerate(texts):
            if offset <= len(text):
                return TextPosition(self._index, self._first + number, utf16_length(text[:offset]))
            offset -= len(text) + 1
        return TextPosition(self._index, self._first + len(texts) - 1, utf16_length(texts[-1]))


def _exact_position(position: TextPosition, row: Row) -> TextPosition:
    """The end of a block as the number it is now: what comes behind it was not selected."""
    if position.block >= len(row.blocks):
        position = TextPosition(position.row, len(row.blocks) - 1, LAST_OFFSET)
    return (
        TextPosition(position.row, position.block, utf16_length(row.blocks[position.block].plain()))
        if position.offset >= LAST_OFFSET
        else position
    )


def _texts(row: Row, first: int, code: set[int]) -> list[str]:
    """The texts of blocks that may change; of code nothing, as long as it is code."""
    blocks = row.blocks[first:]
    return [
        "" if at in code and isinstance(block, CodeBlock) else block.plain() for at, block in enumerate(blocks, first)
    ]


def _moved_offset(offset: int, before: str, after: str) -> int:
    """Where the character at an offset is now."""
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False)))
    if offset <= same:
        return offset
    old, new = before[same : same + _COMPARED_LENGTH], after[same : same + _COMPARED_LENGTH]
    found = same
    for match in SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks():
        if same + match.a >= offset and match.a:
            break
        found = same + match.b + min(offset - same - match.a, match.size)
    return min(found, len(after))
