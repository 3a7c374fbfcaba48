"""Caret browsing: reading, selecting and opening links with the keys of a text editor."""

from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject, QPoint, QRect, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication, QKeyEvent, QPainter

from desktop_agent.conversation.items import Added, Change, Removed
from ui.transcript.input.caret_moves import CaretNavigation
from ui.transcript.rows.body.replacing import BlockReplacement
from ui.transcript.surface.places import scroll_to_text
from ui.transcript.surface.screen import RowViewport
from ui.transcript.surface.scroller import Scroller
from ui.transcript.surface.selection import TextPosition

_CTRL = Qt.KeyboardModifier.ControlModifier
_SHIFT = Qt.KeyboardModifier.ShiftModifier
_ENTER = (Qt.Key.Key_Return, Qt.Key.Key_Enter)
_HORIZONTAL_KEYS = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}
_VERTICAL_KEYS = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}
_PAGE_KEYS = {Qt.Key.Key_PageUp: -1, Qt.Key.Key_PageDown: 1}
_END_KEYS = {Qt.Key.Key_Home: -1, Qt.Key.Key_End: 1}


class Caret(QObject):
    """Off at first. `turned` says whether it is on now, `moved` that it stands elsewhere."""

    toggled = Signal(bool)
    moved = Signal()

    def __init__(
        self, viewport: RowViewport, scroller: Scroller, open_link: Callable[[str, int], None], parent: QObject
    ) -> None:
        super().__init__(parent)
        self._viewport = viewport
        self._scroller = scroller
        self._open_link = open_link
        self._navigation = CaretNavigation(viewport)
        self._position: TextPosition | None = None
        self._kept_x: float | None = None
        self._is_blink_on = True
        self._blink = QTimer(self)
        self._blink.timeout.connect(self._toggle_blink)
        viewport.on_replaced.append(self._on_replaced)

    @property
    def is_on(self) -> bool:
        """Whether there is one."""
        return self._position is not None

    @property
    def position(self) -> TextPosition | None:
        """Where it stands."""
        return self._position

    def toggle(self) -> None:
        """Put it where something is selected, else to the first text on the screen; or take it away."""
        if self.is_on:
            self.turn_off()
            return
        selection, rows = self._viewport.selection, self._viewport.rows
        start = self._viewport.place_at(QPoint(self._viewport.column, 0))
        position = self._navigation.nearest(selection.end if not selection.is_empty else start) if len(rows) else None
        if position is not None:
            self._position = position
            self._restart_blinking()
            self.toggled.emit(True)
            self.moved.emit()

    def turn_off(self) -> None:
        """Take it away. What is selected stays so."""
        if self.is_on:
            self._repaint()
            self._position = None
            self._blink.stop()
            self.toggled.emit(False)

    def handle_key(self, event: QKeyEvent) -> bool:
        """A key; answers whether it was the caret's."""
        key, modifiers = Qt.Key(event.key()), event.modifiers() & (_CTRL | _SHIFT | Qt.KeyboardModifier.AltModifier)
        position = self._navigation.nearest(self._position) if self._position else None
        if position is None or modifiers & ~(_CTRL | _SHIFT):
            return False
        if key == Qt.Key.Key_Escape:
            self.turn_off()
            return True
        if key in _ENTER and not modifiers:
            return self._open_link_at(position)
        there = self._target(position, key, with_ctrl=bool(modifiers & _CTRL))
        if there is not None:
            self.move_to(there, extends=bool(modifiers & _SHIFT), keeps_wish=key in _VERTICAL_KEYS or key in _PAGE_KEYS)
        return there is not None

    def move_to(self, position: TextPosition, *, extends: bool = False, keeps_wish: bool = False) -> None:
        """Stand here, in sight; `extends` selects up to here."""
        viewport = self._viewport
        anchor = viewport.selection.start if not viewport.selection.is_empty else self._position or position
        self._repaint()
        self._position = position
        if extends:
            viewport.select(anchor, position)
        elif not viewport.selection.is_empty:
            viewport.select(position, position)
        if not keeps_wish:
            self._kept_x = None
        block = self._navigation.block(position)
        end = (
            (position.block, position.offset + 1)
            if block and block.caret_rect_at(position.offset)
            else (position.block, 1 << 30)
        )
        self._show(position, end)
        self._restart_blinking()
        self.moved.emit()

    def follow(self, position: TextPosition) -> None:
        """The pointer or the walk through messages went here."""
        nearest = self._navigation.nearest(position)
        if self.is_on and nearest is not None:
            self._repaint()
            self._position, self._kept_x = nearest, None
            self._restart_blinking()
            self.moved.emit()

    def apply(self, changes: Sequence[Change]) -> None:
        """Rows came, or went."""
        for change in changes:
            position = self._position
            if position is None:
                return
            if isinstance(change, Added) and change.index <= position.row:
                self._position = TextPosition(position.row + 1, position.block, position.offset)
            elif isinstance(change, Removed) and change.first <= position.row:
                gone = position.row < change.first + change.count
                there = TextPosition(position.row - change.count, position.block, position.offset)
                self._position = TextPosition(max(0, change.first - 1)) if gone else there

    def _on_replaced(self, row: int, replacement: BlockReplacement) -> None:
        position = self._position
        if position and position.row == row:
            self._position = TextPosition(row, *replacement.map_position(position.block, position.offset))

    def box(self) -> QRectF | None:
        """Where it stands in the viewport."""
        position = self._navigation.nearest(self._position) if self._position and len(self._viewport.rows) else None
        box = self._navigation.box(position) if position else None
        if position is None or box is None:
            return None
        row = self._viewport.rows.row(position.row)
        corner = row.block_box(position.block).topLeft() + self._viewport.row_box(position.row).topLeft()
        return box.translated(corner)

    def paint(self, painter: QPainter) -> None:
        """A thin line, as high as its line of text."""
        box = self.box() if self._is_blink_on else None
        if box is not None:
            style = self._viewport.rows.render_context.style
            painter.fillRect(QRectF(box.left() - 1, box.top(), style.px(2), box.height()), style.color("text"))

    def _target(self, position: TextPosition, key: Qt.Key, *, with_ctrl: bool) -> TextPosition | None:
        moves = self._navigation
        if key in _HORIZONTAL_KEYS:
            step = -_HORIZONTAL_KEYS[key] if moves.is_right_to_left(position) else _HORIZONTAL_KEYS[key]
            return moves.next_position(position, step, by_word=with_ctrl)
        if key in _END_KEYS and with_ctrl:
            return moves.start() if _END_KEYS[key] < 0 else moves.end()
        if key in _END_KEYS:
            return moves.line_end(position, _END_KEYS[key])
        if with_ctrl:
            return None
        if key in _VERTICAL_KEYS:
            return moves.line(position, _VERTICAL_KEYS[key], self._preferred_x(position))
        return self._page_target(position, _PAGE_KEYS[key]) if key in _PAGE_KEYS else None

    def _preferred_x(self, position: TextPosition) -> float:
        """The x in its row to which a caret that walks through lines wants to return."""
        if self._kept_x is None:
            box = self._navigation.box(position)
            left = self._viewport.rows.row(position.row).block_box(position.block).left()
            self._kept_x = left + (box.left() if box else 0)
        return self._kept_x

    def _page_target(self, position: TextPosition, step: int) -> TextPosition | None:
        rows, wish = self._viewport.rows, self._preferred_x(position)
        self._show(position, (position.block, position.offset + 1))
        box = self.box()
        self._scroller.scroll_by(
            step * max(rows.render_context.style.line, rows.view - 2 * rows.render_context.style.line)
        )
        point = QPoint(int(wish) + self._viewport.column, int(box.center().y()) if box else 0)
        there = self._navigation.nearest(self._viewport.place_at(point), step)
        if there is None or (there <= position if step > 0 else there >= position):
            return self._navigation.start() if step < 0 else self._navigation.end()
        return there

    def _show(self, position: TextPosition, end: tuple[int, int]) -> None:
        box = self.box()
        line, view = self._viewport.rows.render_context.style.line, self._viewport.rows.view
        if box is None or not line <= box.top() <= box.bottom() <= view - line:
            selection = (position.block, position.offset), end
            scroll_to_text(self._viewport, self._scroller, position.row, selection, calmly=True)

    def _open_link_at(self, position: TextPosition) -> bool:
        """The link that the caret stands in, or at an edge of."""
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
        """Seen at once after each move, then blinking as the platform wishes."""
        self._is_blink_on = True
        cycle = QGuiApplication.styleHints().cursorFlashTime()
        if cycle > 1:
            self._blink.start(cycle // 2)
        else:
            self._blink.stop()
        self._repaint()

    def _toggle_blink(self) -> None:
        # Without the keyboard it stands still, until the next key.
        view = self._viewport.viewport.parentWidget()
        has_keyboard = view is not None and view.hasFocus()
        self._is_blink_on = not (self._is_blink_on and has_keyboard)
        if not has_keyboard:
            self._blink.stop()
        self._repaint()

    def _repaint(self) -> None:
        box = self.box()
        if box is not None:
            self._viewport.viewport.update(_rect_around(box))


def _rect_around(box: QRectF) -> QRect:
    return box.toAlignedRect().adjusted(-3, -1, 4, 1)
