"""The accessible text of rows and blocks, with boxes on the screen, and what accessible nodes need of the view."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QPoint, QRect

from ui.transcript.blocks.block import Block
from ui.transcript.blocks.math.math_block import MathBlock
from ui.transcript.blocks.table_block import TableBlock
from ui.transcript.blocks.text_block import RuleBlock, TextBlock
from ui.transcript.markdown.text_units import utf16_length
from ui.transcript.rows.row import MAX_SPOKEN, Row, RowSelection
from ui.transcript.rows.row_factory import make_row
from ui.transcript.viewport.selection import TextPosition
from ui.transcript.viewport.viewport import RowViewport

_KEPT_ROWS = 48
"""Rows off the screen that were made for reading."""


@dataclass(frozen=True, slots=True)
class ViewActions:
    """What assistive technology can do in the view."""

    caret: Callable[[], TextPosition | None]
    set_caret: Callable[[TextPosition], None]
    show: Callable[[int, RowSelection], None]
    open_link: Callable[[str, int], None]


class AccessibilityContext:
    """Gives accessible nodes their rows. Rows off the screen are made for that, and only their buttons are laid out."""

    def __init__(self, viewport: RowViewport, actions: ViewActions) -> None:
        self.viewport = viewport
        self.actions = actions
        self._detached_rows: OrderedDict[str, Row] = OrderedDict()

    def row(self, index: int) -> Row | None:
        """Return the row of an item, on the screen or not."""
        rows = self.viewport.rows
        if not 0 <= index < self.count:
            return None
        if known := rows.existing_row(index):
            return known
        item = rows.transcript[index]
        row = self._detached_rows.get(item.id)
        if row is None:
            row = make_row(item, rows.render_context, rows.width)
            for number, block in enumerate(row.blocks):
                if not isinstance(block, TextBlock | TableBlock | MathBlock):
                    row.stack.settle_block(number)
            # A growing row is made each time.
            if not row.is_open:
                self._detached_rows[item.id] = row
        if item.id in self._detached_rows:
            self._detached_rows.move_to_end(item.id)
        if len(self._detached_rows) > _KEPT_ROWS:
            self._detached_rows.popitem(last=False)
        return row

    @property
    def count(self) -> int:
        """The number of rows."""
        return min(len(self.viewport.rows), len(self.viewport.rows.transcript))

    def is_shown(self, index: int) -> bool:
        """Return whether the row is in the view, so that it has positions."""
        return self.viewport.rows.existing_row(index) is not None

    def forget(self) -> None:
        """Drop the rows made for reading."""
        self._detached_rows.clear()

    def forget_item(self, item_id: str) -> None:
        """Drop the row of a changed item."""
        self._detached_rows.pop(item_id, None)

    def row_box(self, index: int) -> QRect:
        """Return the box of a row in the viewport, exact or estimated, without making the row."""
        rows = self.viewport.rows
        if not 0 <= index < self.count:
            return QRect()
        top, bottom = rows.row_top(index), rows.row_top(index + 1)
        return QRect(self.viewport.column, top - rows.top, rows.width, bottom - top)

    def block_box(self, index: int, block: int) -> QRect:
        """Return the box of a block in the viewport, or that of its row."""
        box, row = self.row_box(index), self.viewport.rows.existing_row(index)
        if row and block < len(row.blocks):
            return row.stack.block_box(block).translated(box.topLeft())
        return box

    def to_global(self, box: QRect) -> QRect:
        """Map a box from the viewport to the screen."""
        return box.translated(self.viewport.widget.mapToGlobal(QPoint(0, 0)))


class AccessibleBlockText:
    """The text of one block as it is copied, or else as it is spoken. Boxes and points are global pixels."""

    def __init__(self, context: AccessibilityContext, index: int, block: int) -> None:
        self._context = context
        self._index, self._block = index, block

    def _find_block(self) -> Block | None:
        row = self._context.row(self._index)
        return row.blocks[self._block] if row and self._block < len(row.blocks) else None

    def text(self) -> str:
        """Return the whole text."""
        block = self._find_block()
        return _text_of(block) if block else ""

    def caret(self) -> int:
        """Return the offset of the caret, or -1."""
        position = self._context.actions.caret()
        is_here = position is not None and (position.row, position.block) == (self._index, self._block)
        return position.offset if position and is_here else -1

    def set_caret(self, offset: int) -> None:
        """Move the caret."""
        self._context.actions.set_caret(self._position_at(offset))

    def select(self, start: int, end: int) -> None:
        """Select a part; nothing, when both offsets are the same."""
        self._context.viewport.select(self._position_at(start), self._position_at(end))

    def _position_at(self, offset: int) -> TextPosition:
        return TextPosition(self._index, self._block, offset)

    def character_rect(self, offset: int) -> QRect:
        """Return the box of a character, or of its block, while that is not laid out."""
        box = self._context.block_box(self._index, self._block)
        block = self._find_block()
        if block and block.is_laid_out and self._context.is_shown(self._index):
            boxes = block.boxes(offset, offset + 1)
            caret = block.caret_rect_at(offset) if not boxes else None
            rect = boxes[0] if boxes else caret
            if rect is not None:
                return self._context.to_global(rect.toAlignedRect().translated(box.topLeft()))
        return self._context.to_global(box)

    def offset_at(self, point: QPoint) -> int:
        """Return the offset at a point, or -1."""
        viewport = self._context.viewport
        position = viewport.position_at(viewport.widget.mapFromGlobal(point))
        return position.offset if (position.row, position.block) == (self._index, self._block) else -1

    def scroll_to(self, offset: int) -> None:
        """Scroll to an offset."""
        self._context.actions.show(self._index, ((self._block, offset), (self._block, offset + 1)))


def _text_of(block: Block) -> str:
    return "" if isinstance(block, RuleBlock) else block.plain() or block.spoken_text()


@dataclass(frozen=True, slots=True)
class _BlockStart:
    start: int
    block: int


class AccessibleRowText:
    """The texts of the blocks of a row, one on each line, up to a limit."""

    def __init__(self, context: AccessibilityContext, index: int) -> None:
        self._context = context
        self._index = index

    def _row(self) -> Row | None:
        return self._context.row(self._index)

    def text(self) -> str:
        """Return the whole text, folded text too."""
        row = self._row()
        if row is None:
            return ""
        if not row.unfolded:
            return row.spoken_text()[:MAX_SPOKEN]
        return self._joined(row)[0]

    def _joined(self, row: Row) -> tuple[str, list[_BlockStart]]:
        parts: list[str] = []
        starts: list[_BlockStart] = []
        start = length = 0
        for number, block in enumerate(row.blocks):
            if text := _text_of(block):
                starts.append(_BlockStart(start, number))
                parts.append(text)
                start += utf16_length(text) + 1
                length += len(text) + 1
            if length > MAX_SPOKEN:
                break
        return "\n".join(parts)[:MAX_SPOKEN], starts

    def _pieces(self) -> list[_BlockStart]:
        row = self._row()
        return self._joined(row)[1] if row and row.unfolded else []

    def _at(self, offset: int) -> tuple[AccessibleBlockText, int] | None:
        pieces = [piece for piece in self._pieces() if piece.start <= offset]
        return (
            (AccessibleBlockText(self._context, self._index, pieces[-1].block), offset - pieces[-1].start)
            if pieces
            else None
        )

    def caret(self) -> int:
        """Return the offset of the caret, or -1."""
        position = self._context.actions.caret()
        if position is None or position.row != self._index:
            return -1
        starts = {piece.block: piece.start for piece in self._pieces()}
        return starts[position.block] + position.offset if position.block in starts else -1

    def set_caret(self, offset: int) -> None:
        """Move the caret."""
        if target := self._at(offset):
            target[0].set_caret(target[1])

    def select(self, start: int, end: int) -> None:
        """Select a part, over several blocks too."""
        pieces = self._pieces()
        places = [
            TextPosition(self._index, piece.block, offset - piece.start)
            for offset in (start, end)
            for piece in [candidate for candidate in pieces if candidate.start <= offset][-1:]
        ]
        if len(places) == 2:
            self._context.viewport.select(*places)

    def character_rect(self, offset: int) -> QRect:
        """Return the box of a character, or of the row."""
        target = self._at(offset)
        return (
            target[0].character_rect(target[1])
            if target
            else self._context.to_global(self._context.row_box(self._index))
        )

    def offset_at(self, point: QPoint) -> int:
        """Return the offset at a point, or -1."""
        viewport = self._context.viewport
        position = viewport.position_at(viewport.widget.mapFromGlobal(point))
        starts = {piece.block: piece.start for piece in self._pieces()}
        return (
            starts[position.block] + position.offset if position.row == self._index and position.block in starts else -1
        )

    def scroll_to(self, offset: int) -> None:
        """Scroll to an offset."""
        if target := self._at(offset):
            target[0].scroll_to(target[1])
