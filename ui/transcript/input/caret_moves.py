"""Where a caret goes from a place: by character, word, line, screen, to the ends."""

from collections.abc import Callable, Iterator

from PySide6.QtCore import QPoint, QRectF
from PySide6.QtGui import QTextLayout

from ui.transcript.blocks.block import Block
from ui.transcript.blocks.flow import is_right_to_left
from ui.transcript.blocks.rule import RuleBlock
from ui.transcript.markdown.inline import slice_utf16, utf16_length
from ui.transcript.rows.body.unread import LazySection
from ui.transcript.rows.row import Row
from ui.transcript.surface.screen import RowViewport
from ui.transcript.surface.selection import TextPosition

_FAR_AWAY = 1 << 20
_PROBES = 12
"""Half lines that are looked at above or below a line for the next one: cells have margins."""


class CaretNavigation:
    """Places always lie in blocks with text, between characters as a person sees them."""

    def __init__(self, viewport: RowViewport) -> None:
        self._viewport = viewport

    def block(self, position: TextPosition) -> Block | None:
        """The block of a place, laid out."""
        rows = self._viewport.rows
        if not 0 <= position.row < len(rows):
            return None
        row = rows.row(position.row)
        if not 0 <= position.block < len(row.blocks):
            return None
        if row.settle_block(position.block):
            rows.remeasure_row(position.row)
        return row.blocks[position.block]

    def box(self, position: TextPosition) -> QRectF | None:
        """Where a caret at a place stands, in the coordinates of its block."""
        block = self.block(position)
        if block is None:
            return None
        size = self._viewport.rows.row(position.row).block_box(position.block).size()
        # A picture or a formula has a place before it and one behind it.
        return block.caret_rect_at(position.offset) or QRectF(
            size.width() if position.offset else 0, 0, 0, size.height()
        )

    def nearest(self, position: TextPosition, step: int = 1) -> TextPosition | None:
        """This place, if there is text; else the nearest one in a direction, or at last in the other."""
        block = self.block(position)
        if block and _has_text(block):
            return TextPosition(position.row, position.block, max(0, min(position.offset, utf16_length(block.plain()))))
        return self._first(position, step) or self._first(position, -step)

    def _first(self, position: TextPosition, step: int) -> TextPosition | None:
        found = next(self._other_blocks(position, step), None)
        return self._end(found) if found and step < 0 else found

    def _end(self, position: TextPosition) -> TextPosition:
        block = self.block(position)
        return TextPosition(position.row, position.block, utf16_length(block.plain()) if block else 0)

    def _other_blocks(self, position: TextPosition, step: int) -> Iterator[TextPosition]:
        """The blocks with text after a place, or before it."""
        rows = self._viewport.rows
        index, at = position.row, position.block + step
        while 0 <= index < min(len(rows), len(rows.transcript)):
            row = rows.row(index)
            at = min(at, len(row.blocks) - 1) if step < 0 else at
            while 0 <= (at := _read_block(row, at, step)) < len(row.blocks):
                if _has_text(row.blocks[at]):
                    yield TextPosition(index, at, 0)
                at += step
            index += step
            at = 0 if step > 0 else _FAR_AWAY

    def start(self) -> TextPosition | None:
        """The first place of all."""
        return self.nearest(TextPosition())

    def end(self) -> TextPosition | None:
        """The last place of all."""
        return self._first(TextPosition(len(self._viewport.rows) - 1, _FAR_AWAY), -1)

    def next_position(self, position: TextPosition, step: int, *, by_word: bool) -> TextPosition:
        """The next place in the order of the text; `step` is 1 or -1."""
        block = self.block(position)
        text = block.plain() if block else ""
        if block is None or position.offset == (utf16_length(text) if step > 0 else 0):
            return self._first(position, step) or position
        start, end = block.paragraph_at(position.offset)
        end = min(end, utf16_length(text))
        if position.offset == (end if step > 0 else start):
            # Over the end of a line of code, or of a cell.
            return TextPosition(position.row, position.block, position.offset + step)
        mode = QTextLayout.CursorMode.SkipWords if by_word else QTextLayout.CursorMode.SkipCharacters
        layout = QTextLayout(slice_utf16(text, start, end))
        go = layout.nextCursorPosition if step > 0 else layout.previousCursorPosition
        offset = _next_caret_stop(block, (start, end), position.offset, lambda at: start + go(at - start, mode))
        return TextPosition(position.row, position.block, offset)

    def is_right_to_left(self, position: TextPosition) -> bool:
        """Whether the text around a place is written from right to left."""
        block = self.block(position)
        return block is not None and is_right_to_left(block.plain())

    def line(self, position: TextPosition, step: int, x: float) -> TextPosition:
        """The place in the line below, or above, that is nearest to an x of the row."""
        block, box = self.block(position), self.box(position)
        if block is None or box is None:
            return position
        frame = self._viewport.rows.row(position.row).block_box(position.block)
        half = self._viewport.rows.render_context.style.line / 2
        y = box.bottom() + 1 if step > 0 else box.top() - 2
        for _ in range(_PROBES):
            if not 0 <= y < frame.height() or block.caret_rect_at(position.offset) is None:
                break
            found = TextPosition(
                position.row, position.block, self._valid_offset(block, QPoint(int(x) - frame.left(), int(y)))
            )
            other = self.box(found)
            if other and (other.center().y() - box.center().y()) * step > 1:
                return found
            y += step * half
        beyond = next(self._other_blocks(position, step), None)
        return self._enter_block(beyond, step, x) if beyond else position

    def _enter_block(self, position: TextPosition, step: int, x: float) -> TextPosition:
        """The first line of a block, or the last when it is entered from below."""
        if step < 0:
            position = self._end(position)
        block, box = self.block(position), self.box(position)
        if block is None or box is None or block.caret_rect_at(position.offset) is None:
            return position
        left = self._viewport.rows.row(position.row).block_box(position.block).left()
        point = QPoint(int(x) - left, int(box.center().y()))
        return TextPosition(position.row, position.block, self._valid_offset(block, point))

    def line_end(self, position: TextPosition, step: int) -> TextPosition:
        """The beginning of the line, or its end."""
        block, box = self.block(position), self.box(position)
        if block is None or box is None:
            return position
        if block.caret_rect_at(position.offset) is None:
            return TextPosition(position.row, position.block, utf16_length(block.plain()) if step > 0 else 0)
        x = _FAR_AWAY * step * (-1 if self.is_right_to_left(position) else 1)
        return TextPosition(position.row, position.block, self._valid_offset(block, QPoint(x, int(box.center().y()))))

    @staticmethod
    def _valid_offset(block: Block, point: QPoint) -> int:
        return block.caret_stop_at(block.offset_at(point))


def _read_block(row: Row, at: int, step: int) -> int:
    """Read the block at an index, if it was not read yet; answers where the walk goes on."""
    while 0 <= at < len(row.blocks) and isinstance(row.blocks[at], LazySection):
        count = len(row.blocks)
        row.read(at)
        at += len(row.blocks) - count if step < 0 else 0
    return at


def _has_text(block: Block) -> bool:
    return bool(block.plain()) and not isinstance(block, RuleBlock)


def _next_caret_stop(block: Block, ends: tuple[int, int], offset: int, go: Callable[[int], int]) -> int:
    """The next place at which a caret may stand: not inside of a formula."""
    while True:
        at, offset = offset, go(offset)
        if offset in {at, *ends} or block.caret_stop_at(offset) == offset:
            return offset
