"""Where a caret goes from a place: by character, word, line, screen, to the ends."""

from collections.abc import Callable, Iterator

from PySide6.QtCore import QPoint, QRectF
from PySide6.QtGui import QTextLayout

from ui.transcript.blocks.block import Block
from ui.transcript.blocks.flow import is_right_to_left
from ui.transcript.blocks.rule import RuleBlock
from ui.transcript.markdown.inline import cut, units
from ui.transcript.rows.body.unread import UnreadBlock
from ui.transcript.rows.row import Row
from ui.transcript.surface.screen import Screen
from ui.transcript.surface.selection import Place

_FAR = 1 << 20
_PROBES = 12
"""Half lines that are looked at above or below a line for the next one: cells have margins."""


class CaretMoves:
    """Places always lie in blocks with text, between characters as a person sees them."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    def block(self, place: Place) -> Block | None:
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

    def box(self, place: Place) -> QRectF | None:
        """Where a caret at a place stands, in the coordinates of its block."""
        block = self.block(place)
        if block is None:
            return None
        size = self._screen.rows.row(place.row).block_box(place.block).size()
        # A picture or a formula has a place before it and one behind it.
        return block.caret_at(place.offset) or QRectF(size.width() if place.offset else 0, 0, 0, size.height())

    def near(self, place: Place, step: int = 1) -> Place | None:
        """This place, if there is text; else the nearest one in a direction, or at last in the other."""
        block = self.block(place)
        if block and _has_text(block):
            return Place(place.row, place.block, max(0, min(place.offset, units(block.plain()))))
        return self._first(place, step) or self._first(place, -step)

    def _first(self, place: Place, step: int) -> Place | None:
        found = next(self._others(place, step), None)
        return self._end(found) if found and step < 0 else found

    def _end(self, place: Place) -> Place:
        block = self.block(place)
        return Place(place.row, place.block, units(block.plain()) if block else 0)

    def _others(self, place: Place, step: int) -> Iterator[Place]:
        """The blocks with text after a place, or before it."""
        rows = self._screen.rows
        index, at = place.row, place.block + step
        while 0 <= index < min(len(rows), len(rows.transcript)):
            row = rows.row(index)
            at = min(at, len(row.blocks) - 1) if step < 0 else at
            while 0 <= (at := _read(row, at, step)) < len(row.blocks):
                if _has_text(row.blocks[at]):
                    yield Place(index, at, 0)
                at += step
            index += step
            at = 0 if step > 0 else _FAR

    def start(self) -> Place | None:
        """The first place of all."""
        return self.near(Place())

    def end(self) -> Place | None:
        """The last place of all."""
        return self._first(Place(len(self._screen.rows) - 1, _FAR), -1)

    def beside(self, place: Place, step: int, *, by_word: bool) -> Place:
        """The next place in the order of the text; `step` is 1 or -1."""
        block = self.block(place)
        text = block.plain() if block else ""
        if block is None or place.offset == (units(text) if step > 0 else 0):
            return self._first(place, step) or place
        start, end = block.paragraph_at(place.offset)
        end = min(end, units(text))
        if place.offset == (end if step > 0 else start):
            # Over the end of a line of code, or of a cell.
            return Place(place.row, place.block, place.offset + step)
        mode = QTextLayout.CursorMode.SkipWords if by_word else QTextLayout.CursorMode.SkipCharacters
        layout = QTextLayout(cut(text, start, end))
        go = layout.nextCursorPosition if step > 0 else layout.previousCursorPosition
        offset = _stop(block, (start, end), place.offset, lambda at: start + go(at - start, mode))
        return Place(place.row, place.block, offset)

    def is_turned(self, place: Place) -> bool:
        """Whether the text around a place is written from right to left."""
        block = self.block(place)
        return block is not None and is_right_to_left(block.plain())

    def line(self, place: Place, step: int, x: float) -> Place:
        """The place in the line below, or above, that is nearest to an x of the row."""
        block, box = self.block(place), self.box(place)
        if block is None or box is None:
            return place
        frame = self._screen.rows.row(place.row).block_box(place.block)
        half = self._screen.rows.stage.look.line / 2
        y = box.bottom() + 1 if step > 0 else box.top() - 2
        for _ in range(_PROBES):
            if not 0 <= y < frame.height() or block.caret_at(place.offset) is None:
                break
            found = Place(place.row, place.block, self._settled(block, QPoint(int(x) - frame.left(), int(y))))
            other = self.box(found)
            if other and (other.center().y() - box.center().y()) * step > 1:
                return found
            y += step * half
        beyond = next(self._others(place, step), None)
        return self._entered(beyond, step, x) if beyond else place

    def _entered(self, place: Place, step: int, x: float) -> Place:
        """The first line of a block, or the last when it is entered from below."""
        if step < 0:
            place = self._end(place)
        block, box = self.block(place), self.box(place)
        if block is None or box is None or block.caret_at(place.offset) is None:
            return place
        left = self._screen.rows.row(place.row).block_box(place.block).left()
        point = QPoint(int(x) - left, int(box.center().y()))
        return Place(place.row, place.block, self._settled(block, point))

    def line_end(self, place: Place, step: int) -> Place:
        """The beginning of the line, or its end."""
        block, box = self.block(place), self.box(place)
        if block is None or box is None:
            return place
        if block.caret_at(place.offset) is None:
            return Place(place.row, place.block, units(block.plain()) if step > 0 else 0)
        x = _FAR * step * (-1 if self.is_turned(place) else 1)
        return Place(place.row, place.block, self._settled(block, QPoint(x, int(box.center().y()))))

    @staticmethod
    def _settled(block: Block, point: QPoint) -> int:
        return block.stop_at(block.offset_at(point))


def _read(row: Row, at: int, step: int) -> int:
    """Read the block at an index, if it was not read yet; answers where the walk goes on."""
    while 0 <= at < len(row.blocks) and isinstance(row.blocks[at], UnreadBlock):
        count = len(row.blocks)
        row.read(at)
        at += len(row.blocks) - count if step < 0 else 0
    return at


def _has_text(block: Block) -> bool:
    return bool(block.plain()) and not isinstance(block, RuleBlock)


def _stop(block: Block, ends: tuple[int, int], offset: int, go: Callable[[int], int]) -> int:
    """The next place at which a caret may stand: not inside of a formula."""
    while True:
        at, offset = offset, go(offset)
        if offset in {at, *ends} or block.stop_at(offset) == offset:
            return offset
