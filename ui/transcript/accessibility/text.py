"""The accessible text of rows and blocks, with boxes on the screen, and what accessible nodes need of the view."""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence

from PySide6.QtCore import QPoint, QRect
from PySide6.QtGui import QAccessibleTextInterface

from ui.transcript.blocks.block import Block, Control
from ui.transcript.blocks.math.math_block import MathBlock
from ui.transcript.blocks.table_block import TableBlock
from ui.transcript.blocks.text_block import RuleBlock, TextBlock
from ui.transcript.input.caret import Caret
from ui.transcript.markdown.inline import slice_utf16
from ui.transcript.markdown.text_units import utf16_length
from ui.transcript.rows.block_factory import MAX_SPOKEN, LazySection
from ui.transcript.rows.row import Row
from ui.transcript.rows.row_factory import make_row
from ui.transcript.viewport.positions import scroll_to_text
from ui.transcript.viewport.scroll_controller import ScrollController
from ui.transcript.viewport.selection import TextPosition
from ui.transcript.viewport.viewport import RowViewport

_TEXTS = (TextBlock, TableBlock, MathBlock)
"""What has no buttons, and takes long to lay out."""
_KEPT_ROWS = 48
"""Rows off the screen that were made for reading."""


class AccessibilityContext:
    """Gives accessible nodes their rows. Rows off the screen are made for that, and only their buttons are laid out.

    `focus` focuses a message, or the link or control in it that has this key.
    """

    def __init__(
        self,
        viewport: RowViewport,
        scroller: ScrollController,
        caret: Caret,
        open_link: Callable[[str, int], None],
        focus: Callable[[int, str], None],
    ) -> None:
        self.viewport, self.scroller, self.caret = viewport, scroller, caret
        self.open_link, self.focus = open_link, focus
        self._detached_rows: OrderedDict[str, Row] = OrderedDict()

    def row(self, index: int) -> Row | None:
        """Return the row of an item, on the screen or not."""
        rows = self.viewport.rows
        if not 0 <= index < rows.count:
            return None
        if existing := rows.existing_row(index):
            return existing
        item = rows.transcript[index]
        row = self._detached_rows.get(item.id)
        if row is None:
            row = make_row(item, rows.render_context, rows.width)
            for number, block in enumerate(row.blocks):
                if not isinstance(block, _TEXTS):
                    row.stack.settle_block(number)
            # A growing row is made anew each time.
            if not row.is_open:
                self._detached_rows[item.id] = row
        if item.id in self._detached_rows:
            self._detached_rows.move_to_end(item.id)
        if len(self._detached_rows) > _KEPT_ROWS:
            self._detached_rows.popitem(last=False)
        return row

    def block(self, index: int, block: int) -> Block | None:
        """Return a block of a row, if it still exists."""
        row = self.row(index)
        return row.blocks[block] if row and block < len(row.blocks) else None

    def controls(self, index: int, number: int) -> Sequence[Control]:
        """Return the buttons of a block, which is laid out for that: it may have changed off the screen."""
        row, rows = self.row(index), self.viewport.rows
        block = self.block(index, number)
        if row is None or block is None:
            return ()
        is_laid = not isinstance(block, (*_TEXTS, LazySection)) and row.stack.settle_block(number)
        if is_laid and rows.existing_row(index) is row:
            # What is in view must not move.
            row.render_context.signals.content_arrived.emit(row.item.id)
        return block.controls()

    def forget(self) -> None:
        """Drop the rows made for reading."""
        self._detached_rows.clear()

    def forget_item(self, item_id: str) -> None:
        """Drop the row of a changed item."""
        self._detached_rows.pop(item_id, None)

    def row_box(self, index: int) -> QRect:
        """Return the box of a row in the viewport, exact or estimated, without making the row."""
        rows = self.viewport.rows
        if not 0 <= index < rows.count:
            return QRect()
        top, bottom = rows.row_top(index), rows.row_top(index + 1)
        return QRect(self.viewport.column, top - rows.top, rows.width, bottom - top)

    def block_box(self, index: int, block: int) -> QRect:
        """Return the box of a block in the viewport, or that of its row."""
        row = self.viewport.rows.existing_row(index)
        return self.viewport.block_box(index, block) if row and block < len(row.blocks) else self.row_box(index)

    def visible_block(self, index: int, block: int) -> Block | None:
        """Return a block if it is laid out in the view, so that its text has positions."""
        row = self.viewport.rows.existing_row(index)
        visible = row.blocks[block] if row and block < len(row.blocks) else None
        return visible if visible and visible.is_laid_out else None

    def to_global(self, box: QRect) -> QRect:
        """Map a box from the viewport to the screen."""
        return box.translated(self.viewport.widget.mapToGlobal(QPoint(0, 0)))


class AccessibleText(QAccessibleTextInterface):
    """The text of one block, or of all blocks of a row, one on each line up to a limit. Offsets are UTF-16 units.

    A block is read as it is copied, or else as it is spoken; a folded row as it is spoken. Boxes and points are global.
    """

    def __init__(self, context: AccessibilityContext, index: Callable[[], int], block: int | None = None) -> None:
        super().__init__()
        self._context, self._index, self._block = context, index, block

    def whole(self) -> str:
        """Return the whole text, folded text too."""
        if self._block is not None:
            block = self._context.block(self._index(), self._block)
            return _text_of(block) if block else ""
        row = self._context.row(self._index())
        if row and not row.unfolded:
            return row.spoken_text()[:MAX_SPOKEN]
        return "\n".join(text for _, text in _texts_of(row))[:MAX_SPOKEN] if row else ""

    def _starts(self) -> dict[int, int]:
        """Return where the text of each block begins; a folded row has no positions."""
        if self._block is not None:
            return {self._block: 0}
        row = self._context.row(self._index())
        starts: dict[int, int] = {}
        start = 0
        for number, text in _texts_of(row) if row and row.unfolded else ():
            starts[number] = start
            start += utf16_length(text) + 1
        return starts

    def _position_of(self, offset: int) -> TextPosition | None:
        starts = [(block, start) for block, start in self._starts().items() if start <= offset]
        return TextPosition(self._index(), starts[-1][0], offset - starts[-1][1]) if starts else None

    def _offset_of(self, position: TextPosition | None) -> int:
        starts = self._starts() if position and position.row == self._index() else {}
        return starts[position.block] + position.offset if position and position.block in starts else -1

    def characterCount(self) -> int:
        return utf16_length(self.whole())

    def text(self, startOffset: int, endOffset: int, /) -> str:  # noqa: N803  Qt's names
        """Return a part of the text."""
        text = self.whole()
        return slice_utf16(text, max(0, startOffset), endOffset if endOffset >= 0 else utf16_length(text))

    def cursorPosition(self) -> int:
        return self._offset_of(self._context.caret.position)

    def setCursorPosition(self, position: int, /) -> None:
        if target := self._position_of(position):
            self._context.caret.move_to(target)

    def selectionCount(self) -> int:
        return 0

    def addSelection(self, startOffset: int, endOffset: int, /) -> None:  # noqa: N803
        start, end = self._position_of(startOffset), self._position_of(endOffset)
        if start and end:
            self._context.viewport.select(start, end)

    def removeSelection(self, selectionIndex: int, /) -> None:  # noqa: N803
        del selectionIndex
        self.addSelection(0, 0)

    def setSelection(self, selectionIndex: int, startOffset: int, endOffset: int, /) -> None:  # noqa: N803
        del selectionIndex
        self.addSelection(startOffset, endOffset)

    def characterRect(self, offset: int, /) -> QRect:
        """Return the box of a character, or of its block while that is not laid out."""
        context, target = self._context, self._position_of(offset)
        if target is None:
            return context.to_global(context.row_box(self._index()))
        box = context.block_box(target.row, target.block)
        if block := context.visible_block(target.row, target.block):
            boxes = block.boxes(target.offset, target.offset + 1)
            rect = boxes[0] if boxes else block.caret_rect_at(target.offset)
            box = rect.toAlignedRect().translated(box.topLeft()) if rect is not None else box
        return context.to_global(box)

    def offsetAtPoint(self, point: QPoint, /) -> int:
        viewport = self._context.viewport
        return self._offset_of(viewport.position_at(viewport.widget.mapFromGlobal(point)))

    def scrollToSubstring(self, startIndex: int, endIndex: int, /) -> None:  # noqa: N803
        del endIndex
        context = self._context
        if target := self._position_of(startIndex):
            part = (target.block, target.offset), (target.block, target.offset + 1)
            scroll_to_text(context.viewport, context.scroller, target.row, part)


def _text_of(block: Block) -> str:
    return "" if isinstance(block, RuleBlock) else block.plain() or block.spoken_text()


def _texts_of(row: Row) -> Iterator[tuple[int, str]]:
    """Yield the blocks that have text, until the limit is exceeded."""
    length = 0
    for number, block in enumerate(row.blocks):
        if text := _text_of(block):
            yield number, text
            length += len(text) + 1
        if length > MAX_SPOKEN:
            return
