"""Caret browsing: move, select and open links with the keys of a text editor."""

from collections.abc import Callable, Iterator, Sequence

from PySide6.QtCore import QObject, QPoint, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication, QKeyEvent, QPainter, QTextLayout

from desktop_agent.conversation.items import Change, Removed
from ui.transcript.blocks.block import Block, BlockReplacement
from ui.transcript.blocks.text_block import RuleBlock
from ui.transcript.blocks.text_layout import is_right_to_left
from ui.transcript.markdown.inline import slice_utf16
from ui.transcript.markdown.text_units import utf16_length
from ui.transcript.rows.block_factory import LazySection
from ui.transcript.rows.row import Row
from ui.transcript.viewport.positions import scroll_to_text
from ui.transcript.viewport.scroll_controller import ScrollController
from ui.transcript.viewport.selection import LAST_OFFSET, TextPosition
from ui.transcript.viewport.viewport import RowViewport

_FAR_AWAY = 1 << 20
_PROBES = 12
"""Half lines that are tried above or below a line for the next one: cells have margins."""


class CaretNavigation:
    """Finds where the caret moves to: always in a block with text, between characters as a person sees them."""

    def __init__(self, viewport: RowViewport) -> None:
        self._viewport = viewport

    def block(self, position: TextPosition) -> Block | None:
        """Return the block of a position, laid out."""
        rows = self._viewport.rows
        if not 0 <= position.row < len(rows):
            return None
        row = rows.row(position.row)
        if not 0 <= position.block < len(row.blocks):
            return None
        if row.stack.settle_block(position.block):
            rows.remeasure_row(position.row)
        return row.blocks[position.block]

    def box(self, position: TextPosition) -> QRectF | None:
        """Return the box of the caret at a position, in block coordinates."""
        block = self.block(position)
        if block is None:
            return None
        size = self._viewport.rows.row(position.row).stack.block_box(position.block).size()
        # An image or a formula has a position before it and one after it.
        return block.caret_rect_at(position.offset) or QRectF(
            size.width() if position.offset else 0, 0, 0, size.height()
        )

    def nearest(self, position: TextPosition, step: int = 1) -> TextPosition | None:
        """Return this position if its block has text, else the nearest in the direction of `step`, or in the other."""
        block = self.block(position)
        if block and _has_text(block):
            return position.at(max(0, min(position.offset, utf16_length(block.plain()))))
        return self._first(position, step) or self._first(position, -step)

    def _first(self, position: TextPosition, step: int) -> TextPosition | None:
        first = next(self._other_blocks(position, step), None)
        return self._end(first) if first and step < 0 else first

    def _end(self, position: TextPosition) -> TextPosition:
        block = self.block(position)
        return position.at(utf16_length(block.plain()) if block else 0)

    def _other_blocks(self, position: TextPosition, step: int) -> Iterator[TextPosition]:
        rows = self._viewport.rows
        index, block = position.row, position.block + step
        while 0 <= index < rows.count:
            row = rows.row(index)
            block = min(block, len(row.blocks) - 1) if step < 0 else block
            while 0 <= (block := _read_block(row, block, step)) < len(row.blocks):
                if _has_text(row.blocks[block]):
                    yield TextPosition(index, block, 0)
                block += step
            index += step
            block = 0 if step > 0 else _FAR_AWAY

    def start(self) -> TextPosition | None:
        """Return the first position of the conversation."""
        return self.nearest(TextPosition())

    def end(self) -> TextPosition | None:
        """Return the last position of the conversation."""
        return self._first(TextPosition(len(self._viewport.rows) - 1, _FAR_AWAY), -1)

    def next_position(self, position: TextPosition, step: int, *, by_word: bool) -> TextPosition:
        """Return the next position in the order of the text; `step` is 1 or -1."""
        block = self.block(position)
        text = block.plain() if block else ""
        if block is None or position.offset == (utf16_length(text) if step > 0 else 0):
            return self._first(position, step) or position
        start, end = block.paragraph_at(position.offset)
        end = min(end, utf16_length(text))
        if position.offset == (end if step > 0 else start):
            # Step over the end of a line of code, or of a cell.
            return position.at(position.offset + step)
        mode = QTextLayout.CursorMode.SkipWords if by_word else QTextLayout.CursorMode.SkipCharacters
        layout = QTextLayout(slice_utf16(text, start, end))
        go = layout.nextCursorPosition if step > 0 else layout.previousCursorPosition
        return position.at(
            _next_caret_stop(block, (start, end), position.offset, lambda offset: start + go(offset - start, mode))
        )

    def is_right_to_left(self, position: TextPosition) -> bool:
        """Return whether the text around a position is written from right to left."""
        block = self.block(position)
        return block is not None and is_right_to_left(block.plain())

    def line(self, position: TextPosition, step: int, x: float) -> TextPosition:
        """Return the position in the line below or above that is nearest to an x of the row."""
        block, box = self.block(position), self.box(position)
        if block is None or box is None:
            return position
        frame = self._viewport.rows.row(position.row).stack.block_box(position.block)
        half = self._viewport.rows.render_context.style.line / 2
        y = box.bottom() + 1 if step > 0 else box.top() - 2
        for _ in range(_PROBES):
            if not 0 <= y < frame.height() or block.caret_rect_at(position.offset) is None:
                break
            target = position.at(self._valid_offset(block, QPoint(int(x) - frame.left(), int(y))))
            target_box = self.box(target)
            if target_box and (target_box.center().y() - box.center().y()) * step > 1:
                return target
            y += step * half
        beyond = next(self._other_blocks(position, step), None)
        return self._enter_block(beyond, step, x) if beyond else position

    def _enter_block(self, position: TextPosition, step: int, x: float) -> TextPosition:
        """Return a position in the first line of a block, or in the last when it is entered from below."""
        if step < 0:
            position = self._end(position)
        block, box = self.block(position), self.box(position)
        if block is None or box is None or block.caret_rect_at(position.offset) is None:
            return position
        left = self._viewport.rows.row(position.row).stack.block_box(position.block).left()
        return position.at(self._valid_offset(block, QPoint(int(x) - left, int(box.center().y()))))

    def line_end(self, position: TextPosition, step: int) -> TextPosition:
        """Return the beginning of the line, or its end."""
        block, box = self.block(position), self.box(position)
        if block is None or box is None:
            return position
        if block.caret_rect_at(position.offset) is None:
            return position.at(utf16_length(block.plain()) if step > 0 else 0)
        x = _FAR_AWAY * step * (-1 if self.is_right_to_left(position) else 1)
        return position.at(self._valid_offset(block, QPoint(x, int(box.center().y()))))

    @staticmethod
    def _valid_offset(block: Block, point: QPoint) -> int:
        return block.caret_stop_at(block.offset_at(point))


def _read_block(row: Row, index: int, step: int) -> int:
    """Parse the block at an index if it is lazy; return the index at which to go on."""
    while 0 <= index < len(row.blocks) and isinstance(row.blocks[index], LazySection):
        count = len(row.blocks)
        row.stack.read(index)
        index += len(row.blocks) - count if step < 0 else 0
    return index


def _has_text(block: Block) -> bool:
    return bool(block.plain()) and not isinstance(block, RuleBlock)


def _next_caret_stop(block: Block, ends: tuple[int, int], offset: int, go: Callable[[int], int]) -> int:
    """Return the next offset at which a caret may be: not inside of a formula."""
    while True:
        before, offset = offset, go(offset)
        if offset in {before, *ends} or block.caret_stop_at(offset) == offset:
            return offset


_CTRL = Qt.KeyboardModifier.ControlModifier
_SHIFT = Qt.KeyboardModifier.ShiftModifier
_ENTER = (Qt.Key.Key_Return, Qt.Key.Key_Enter)
_HORIZONTAL_KEYS = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}
_VERTICAL_KEYS = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}
_PAGE_KEYS = {Qt.Key.Key_PageUp: -1, Qt.Key.Key_PageDown: 1}
_END_KEYS = {Qt.Key.Key_Home: -1, Qt.Key.Key_End: 1}


class Caret(QObject):
    """Caret browsing, off at first. `toggled` says whether it is on now, `moved` that the position changed."""

    toggled = Signal(bool)
    moved = Signal()

    def __init__(
        self, viewport: RowViewport, scroller: ScrollController, open_link: Callable[[str, int], None], parent: QObject
    ) -> None:
        super().__init__(parent)
        self._viewport = viewport
        self._scroller = scroller
        self._open_link = open_link
        self._navigation = CaretNavigation(viewport)
        self.position: TextPosition | None = None
        self._kept_x: float | None = None
        self._is_blink_on = True
        self._blink = QTimer(self)
        self._blink.timeout.connect(self._toggle_blink)
        viewport.on_replaced.append(self._on_replaced)

    @property
    def is_on(self) -> bool:
        return self.position is not None

    def toggle(self) -> None:
        """Put the caret at the selection, or else at the first visible text; or turn it off."""
        if self.is_on:
            self.turn_off()
            return
        selection, rows = self._viewport.selection, self._viewport.rows
        start = self._viewport.position_at(QPoint(self._viewport.column, 0))
        position = self._navigation.nearest(selection.end if not selection.is_empty else start) if len(rows) else None
        if position is not None:
            self.position = position
            self._restart_blinking()
            self.toggled.emit(True)
            self.moved.emit()

    def turn_off(self) -> None:
        """Remove the caret; the selection stays."""
        if self.is_on:
            self._repaint()
            self.position = None
            self._blink.stop()
            self.toggled.emit(False)

    def handle_key(self, event: QKeyEvent) -> bool:
        """Handle a key; return whether it was for the caret."""
        key, modifiers = Qt.Key(event.key()), event.modifiers() & (_CTRL | _SHIFT | Qt.KeyboardModifier.AltModifier)
        position = self._navigation.nearest(self.position) if self.position else None
        if position is None or modifiers & ~(_CTRL | _SHIFT):
            return False
        if key == Qt.Key.Key_Escape:
            self.turn_off()
            return True
        if key in _ENTER and not modifiers:
            return self._open_link_at(position)
        target = self._target(position, key, with_ctrl=bool(modifiers & _CTRL))
        if target is not None:
            self.move_to(target, extends=bool(modifiers & _SHIFT), keeps_x=key in _VERTICAL_KEYS | _PAGE_KEYS)
        return target is not None

    def move_to(self, position: TextPosition, *, extends: bool = False, keeps_x: bool = False) -> None:
        """Move the caret and scroll to it; `extends` selects up to there."""
        viewport = self._viewport
        anchor = viewport.selection.start if not viewport.selection.is_empty else self.position or position
        self._repaint()
        self.position = position
        if extends:
            viewport.select(anchor, position)
        elif not viewport.selection.is_empty:
            viewport.select(position, position)
        if not keeps_x:
            self._kept_x = None
        block = self._navigation.block(position)
        has_rect = block is not None and block.caret_rect_at(position.offset) is not None
        self._show(position, (position.block, position.offset + 1 if has_rect else LAST_OFFSET))
        self._restart_blinking()
        self.moved.emit()

    def follow(self, position: TextPosition) -> None:
        """Move to where the pointer or the message focus went."""
        nearest = self._navigation.nearest(position)
        if self.is_on and nearest is not None:
            self._repaint()
            self.position, self._kept_x = nearest, None
            self._restart_blinking()
            self.moved.emit()

    def apply(self, changes: Sequence[Change]) -> None:
        """Follow the text when rows are added or removed."""
        for change in changes if self.position else ():
            moved = self.position.after_change(change) if self.position else None
            if moved is None and isinstance(change, Removed):
                moved = TextPosition(max(0, change.first - 1))
            self.position = moved

    def _on_replaced(self, row: int, replacement: BlockReplacement) -> None:
        if self.position:
            self.position = self.position.after_replacement(row, replacement)

    def box(self) -> QRectF | None:
        """Return the box of the caret in the viewport."""
        position = self._navigation.nearest(self.position) if self.position and len(self._viewport.rows) else None
        box = self._navigation.box(position) if position else None
        if position is None or box is None:
            return None
        return box.translated(self._viewport.block_box(position.row, position.block).topLeft())

    def paint(self, painter: QPainter) -> None:
        """Paint a thin line, as high as its line of text."""
        box = self.box() if self._is_blink_on else None
        if box is not None:
            style = self._viewport.rows.render_context.style
            painter.fillRect(QRectF(box.left() - 1, box.top(), style.px(2), box.height()), style.color("text"))

    def _target(self, position: TextPosition, key: Qt.Key, *, with_ctrl: bool) -> TextPosition | None:
        navigation = self._navigation
        if key in _HORIZONTAL_KEYS:
            step = -_HORIZONTAL_KEYS[key] if navigation.is_right_to_left(position) else _HORIZONTAL_KEYS[key]
            return navigation.next_position(position, step, by_word=with_ctrl)
        if key in _END_KEYS and with_ctrl:
            return navigation.start() if _END_KEYS[key] < 0 else navigation.end()
        if key in _END_KEYS:
            return navigation.line_end(position, _END_KEYS[key])
        if with_ctrl:
            return None
        if key in _VERTICAL_KEYS:
            return navigation.line(position, _VERTICAL_KEYS[key], self._preferred_x(position))
        return self._page_target(position, _PAGE_KEYS[key]) if key in _PAGE_KEYS else None

    def _preferred_x(self, position: TextPosition) -> float:
        """Return the x in the row that moving through lines returns to."""
        if self._kept_x is None:
            box = self._navigation.box(position)
            left = self._viewport.rows.row(position.row).stack.block_box(position.block).left()
            self._kept_x = left + (box.left() if box else 0)
        return self._kept_x

    def _page_target(self, position: TextPosition, step: int) -> TextPosition | None:
        rows, x = self._viewport.rows, self._preferred_x(position)
        line = rows.render_context.style.line
        self._show(position, (position.block, position.offset + 1))
        box = self.box()
        self._scroller.scroll_by(step * max(line, rows.view - 2 * line))
        point = QPoint(int(x) + self._viewport.column, int(box.center().y()) if box else 0)
        target = self._navigation.nearest(self._viewport.position_at(point), step)
        if target is None or (target <= position if step > 0 else target >= position):
            return self._navigation.start() if step < 0 else self._navigation.end()
        return target

    def _show(self, position: TextPosition, end: tuple[int, int]) -> None:
        box = self.box()
        line, view = self._viewport.rows.render_context.style.line, self._viewport.rows.view
        if box is None or not line <= box.top() <= box.bottom() <= view - line:
            selection = (position.block, position.offset), end
            scroll_to_text(self._viewport, self._scroller, position.row, selection, calmly=True)

    def _open_link_at(self, position: TextPosition) -> bool:
        block, box = self._navigation.block(position), self._navigation.box(position)
        if block is None or box is None:
            return False
        y = int(box.center().y())
        for x in (box.left() + 2, box.left() - 2):
            if link := block.link_at(QPoint(int(x), y)):
                self._open_link(link, position.row)
                return True
        return False

    def _restart_blinking(self) -> None:
        """Show the caret after each move, then blink as the platform does."""
        self._is_blink_on = True
        cycle = QGuiApplication.styleHints().cursorFlashTime()
        if cycle > 1:
            self._blink.start(cycle // 2)
        else:
            self._blink.stop()
        self._repaint()

    def _toggle_blink(self) -> None:
        # Without the focus the caret stops blinking until the next key.
        view = self._viewport.widget.parentWidget()
        has_keyboard = view is not None and view.hasFocus()
        self._is_blink_on = not (self._is_blink_on and has_keyboard)
        if not has_keyboard:
            self._blink.stop()
        self._repaint()

    def _repaint(self) -> None:
        box = self.box()
        if box is not None:
            self._viewport.widget.update(box.toAlignedRect().adjusted(-3, -1, 4, 1))
