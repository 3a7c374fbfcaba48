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

    def __init__(self, screen: RowViewport) -> None:
        self._screen = screen

    def block(self, place: TextPosition) -> Block | None:
        """The block of a place, laid out."""
        rows = self._screen.rows
        if not 0 <= place.row < len(rows):
            return None
        row = rows.row(place.row)
        if not 0 <= place.block < len(row.blocks):
            return None
        if row.settle_block(place.block):
            rows.measured(place.row)
        return row.blocks[place.block]

    def box(self, place: TextPosition) -> QRectF | None:
        """Where a caret at a place stands, in the coordinates of its block."""
        block = self.block(place)
        if block is None:
            return None
        size = self._screen.rows.row(place.row).block_box(place.block).size()
        # A picture or a formula has a place before it and one behind it.
        return block.caret_rect_at(place.offset) or QRectF(size.width() if place.offset else 0, 0, 0, size.height())

    def near(self, place: TextPosition, step: int = 1) -> TextPosition | None:
        """This place, if there is text; else the nearest one in a direction, or at last in the other."""
        block = self.block(place)
        if block and _has_text(block):
            return TextPosition(place.row, place.block, max(0, min(place.offset, utf16_length(block.plain()))))
        return self._first(place, step) or self._first(place, -step)

    def _first(self, place: TextPosition, step: int) -> TextPosition | None:
        found = next(self._other_blocks(place, step), None)
        return self._end(found) if found and step < 0 else found

    def _end(self, place: TextPosition) -> TextPosition:
        block = self.block(place)
        return TextPosition(place.row, place.block, utf16_length(block.plain()) if block else 0)

    def _other_blocks(self, place: TextPosition, step: int) -> Iterator[TextPosition]:
        """The blocks with text after a place, or before it."""
        rows = self._screen.rows
        index, at = place.row, place.block + step
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
        return self.near(TextPosition())

    def end(self) -> TextPosition | None:
        """The last place of all."""
        return self._first(TextPosition(len(self._screen.rows) - 1, _FAR_AWAY), -1)

    def beside(self, place: TextPosition, step: int, *, by_word: bool) -> TextPosition:
        """The next place in the order of the text; `step` is 1 or -1."""
        block = self.block(place)
        text = block.plain() if block else ""
        if block is None or place.offset == (utf16_length(text) if step > 0 else 0):
            return self._first(place, step) or place
        start, end = block.paragraph_at(place.offset)
        end = min(end, utf16_length(text))
        if place.offset == (end if step > 0 else start):
            # Over the end of a line of code, or of a cell.
            return TextPosition(place.row, place.block, place.offset + step)
        mode = QTextLayout.CursorMode.SkipWords if by_word else QTextLayout.CursorMode.SkipCharacters
        layout = QTextLayout(slice_utf16(text, start, end))
        go = layout.nextCursorPosition if step > 0 else layout.previousCursorPosition
        offset = _next_caret_stop(block, (start, end), place.offset, lambda at: start + go(at - start, mode))
        return TextPosition(place.row, place.block, offset)

    def is_right_to_left(self, place: TextPosition) -> bool:
        """Whether the text around a place is written from right to left."""
        block = self.block(place)
        return block is not None and is_right_to_left(block.plain())

    def line(self, place: TextPosition, step: int, x: float) -> TextPosition:
        """The place in the line below, or above, that is nearest to an x of the row."""
        block, box = self.block(place), self.box(place)
        if block is None or box is None:
            return place
        frame = self._screen.rows.row(place.row).block_box(place.block)
        half = self._screen.rows.render_context.style.line / 2
        y = box.bottom() + 1 if step > 0 else box.top() - 2
        for _ in range(_PROBES):
            if not 0 <= y < frame.height() or block.caret_rect_at(place.offset) is None:
                break
            found = TextPosition(
                place.row, place.block, self._valid_offset(block, QPoint(int(x) - frame.left(), int(y)))
            )
            other = self.box(found)
            if other and (other.center().y() - box.center().y()) * step > 1:
                return found
            y += step * half
        beyond = next(self._other_blocks(place, step), None)
        return self._enter_block(beyond, step, x) if beyond else place

    def _enter_block(self, place: TextPosition, step: int, x: float) -> TextPosition:
        """The first line of a block, or the last when it is entered from below."""
        if step < 0:
            place = self._end(place)
        block, box = self.block(place), self.box(place)
        if block is None or box is None or block.caret_rect_at(place.offset) is None:
            return place
        left = self._screen.rows.row(place.row).block_box(place.block).left()
        point = QPoint(int(x) - left, int(box.center().y()))
        return TextPosition(place.row, place.block, self._valid_offset(block, point))

    def line_end(self, place: TextPosition, step: int) -> TextPosition:
        """The beginning of the line, or its end."""
        block, box = self.block(place), self.box(place)
        if block is None or box is None:
            return place
        if block.caret_rect_at(place.offset) is None:
            return TextPosition(place.row, place.block, utf16_length(block.plain()) if step > 0 else 0)
        x = _FAR_AWAY * step * (-1 if self.is_right_to_left(place) else 1)
        return TextPosition(place.row, place.block, self._valid_offset(block, QPoint(x, int(box.center().y()))))

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
