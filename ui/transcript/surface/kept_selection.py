"""A selection in text that is still being written: it stays on the same characters, whatever becomes of them."""

from difflib import SequenceMatcher
from itertools import takewhile

from ui.transcript.blocks.code.code_block import CodeBlock
from ui.transcript.markdown.inline import slice_utf16, utf16_length
from ui.transcript.rows.row import Row
from ui.transcript.surface.row_store import RowStore
from ui.transcript.surface.selection import LAST_OFFSET, Selection, TextPosition

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
