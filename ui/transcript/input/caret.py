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
        self, screen: RowViewport, scroller: Scroller, open_link: Callable[[str, int], None], parent: QObject
    ) -> None:
        super().__init__(parent)
        self._screen = screen
        self._scroller = scroller
        self._open_link = open_link
        self._navigation = CaretNavigation(screen)
        self._place: TextPosition | None = None
        self._kept_x: float | None = None
        self._is_blink_on = True
        self._blink = QTimer(self)
        self._blink.timeout.connect(self._toggle_blink)
        screen.on_replaced.append(self._on_replaced)

    @property
    def is_on(self) -> bool:
        """Whether there is one."""
        return self._place is not None

    @property
    def place(self) -> TextPosition | None:
        """Where it stands."""
        return self._place

    def toggle(self) -> None:
        """Put it where something is selected, else to the first text on the screen; or take it away."""
        if self.is_on:
            self.turn_off()
            return
        selection, rows = self._screen.selection, self._screen.rows
        start = self._screen.place_at(QPoint(self._screen.column, 0))
        place = self._navigation.near(selection.end if not selection.is_empty else start) if len(rows) else None
        if place is not None:
            self._place = place
            self._restart_blinking()
            self.toggled.emit(True)
            self.moved.emit()

    def turn_off(self) -> None:
        """Take it away. What is selected stays so."""
        if self.is_on:
            self._repaint()
            self._place = None
            self._blink.stop()
            self.toggled.emit(False)

    def handle_key(self, event: QKeyEvent) -> bool:
        """A key; answers whether it was the caret's."""
        key, modifiers = Qt.Key(event.key()), event.modifiers() & (_CTRL | _SHIFT | Qt.KeyboardModifier.AltModifier)
        place = self._navigation.near(self._place) if self._place else None
        if place is None or modifiers & ~(_CTRL | _SHIFT):
            return False
        if key == Qt.Key.Key_Escape:
            self.turn_off()
            return True
        if key in _ENTER and not modifiers:
            return self._open_link_at(place)
        there = self._target(place, key, with_ctrl=bool(modifiers & _CTRL))
        if there is not None:
            self.move_to(there, extends=bool(modifiers & _SHIFT), keeps_wish=key in _VERTICAL_KEYS or key in _PAGE_KEYS)
        return there is not None

    def move_to(self, place: TextPosition, *, extends: bool = False, keeps_wish: bool = False) -> None:
        """Stand here, in sight; `extends` selects up to here."""
        screen = self._screen
        anchor = screen.selection.start if not screen.selection.is_empty else self._place or place
        self._repaint()
        self._place = place
        if extends:
            screen.select(anchor, place)
        elif not screen.selection.is_empty:
            screen.select(place, place)
        if not keeps_wish:
            self._kept_x = None
        block = self._navigation.block(place)
        end = (place.block, place.offset + 1) if block and block.caret_rect_at(place.offset) else (place.block, 1 << 30)
        self._show(place, end)
        self._restart_blinking()
        self.moved.emit()

    def follow(self, place: TextPosition) -> None:
        """The pointer or the walk through messages went here."""
        near = self._navigation.near(place)
        if self.is_on and near is not None:
            self._repaint()
            self._place, self._kept_x = near, None
            self._restart_blinking()
            self.moved.emit()

    def apply(self, changes: Sequence[Change]) -> None:
        """Rows came, or went."""
        for change in changes:
            place = self._place
            if place is None:
                return
            if isinstance(change, Added) and change.index <= place.row:
                self._place = TextPosition(place.row + 1, place.block, place.offset)
            elif isinstance(change, Removed) and change.first <= place.row:
                gone = place.row < change.first + change.count
                there = TextPosition(place.row - change.count, place.block, place.offset)
                self._place = TextPosition(max(0, change.first - 1)) if gone else there

    def _on_replaced(self, row: int, replacement: BlockReplacement) -> None:
        place = self._place
        if place and place.row == row:
            self._place = TextPosition(row, *replacement.map_position(place.block, place.offset))

    def box(self) -> QRectF | None:
        """Where it stands in the viewport."""
        place = self._navigation.near(self._place) if self._place and len(self._screen.rows) else None
        box = self._navigation.box(place) if place else None
        if place is None or box is None:
            return None
        row = self._screen.rows.row(place.row)
        corner = row.block_box(place.block).topLeft() + self._screen.row_box(place.row).topLeft()
        return box.translated(corner)

    def paint(self, painter: QPainter) -> None:
        """A thin line, as high as its line of text."""
        box = self.box() if self._is_blink_on else None
        if box is not None:
            look = self._screen.rows.render_context.style
            painter.fillRect(QRectF(box.left() - 1, box.top(), look.px(2), box.height()), look.color("text"))

    def _target(self, place: TextPosition, key: Qt.Key, *, with_ctrl: bool) -> TextPosition | None:
        moves = self._navigation
        if key in _HORIZONTAL_KEYS:
            step = -_HORIZONTAL_KEYS[key] if moves.is_right_to_left(place) else _HORIZONTAL_KEYS[key]
            return moves.beside(place, step, by_word=with_ctrl)
        if key in _END_KEYS and with_ctrl:
            return moves.start() if _END_KEYS[key] < 0 else moves.end()
        if key in _END_KEYS:
            return moves.line_end(place, _END_KEYS[key])
        if with_ctrl:
            return None
        if key in _VERTICAL_KEYS:
            return moves.line(place, _VERTICAL_KEYS[key], self._preferred_x(place))
        return self._page_target(place, _PAGE_KEYS[key]) if key in _PAGE_KEYS else None

    def _preferred_x(self, place: TextPosition) -> float:
        """The x in its row to which a caret that walks through lines wants to return."""
        if self._kept_x is None:
            box = self._navigation.box(place)
            left = self._screen.rows.row(place.row).block_box(place.block).left()
            self._kept_x = left + (box.left() if box else 0)
        return self._kept_x

    def _page_target(self, place: TextPosition, step: int) -> TextPosition | None:
        rows, wish = self._screen.rows, self._preferred_x(place)
        self._show(place, (place.block, place.offset + 1))
        box = self.box()
        self._scroller.scroll_by(
            step * max(rows.render_context.style.line, rows.view - 2 * rows.render_context.style.line)
        )
        point = QPoint(int(wish) + self._screen.column, int(box.center().y()) if box else 0)
        there = self._navigation.near(self._screen.place_at(point), step)
        if there is None or (there <= place if step > 0 else there >= place):
            return self._navigation.start() if step < 0 else self._navigation.end()
        return there

    def _show(self, place: TextPosition, end: tuple[int, int]) -> None:
        box = self.box()
        line, view = self._screen.rows.render_context.style.line, self._screen.rows.view
        if box is None or not line <= box.top() <= box.bottom() <= view - line:
            selection = (place.block, place.offset), end
            scroll_to_text(self._screen, self._scroller, place.row, selection, calmly=True)

    def _open_link_at(self, place: TextPosition) -> bool:
        """The link that the caret stands in, or at an edge of."""
        block, box = self._navigation.block(place), self._navigation.box(place)
        if block is None or box is None:
            return False
        y = int(box.center().y())
        for x in (box.left() + 2, box.left() - 2):
            if link := block.link_at(QPoint(int(x), y)):
                self._open_link(link, place.row)
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
        view = self._screen.viewport.parentWidget()
        has_keyboard = view is not None and view.hasFocus()
        self._is_blink_on = not (self._is_blink_on and has_keyboard)
        if not has_keyboard:
            self._blink.stop()
        self._repaint()

    def _repaint(self) -> None:
        box = self.box()
        if box is not None:
            self._screen.viewport.update(_rect_around(box))


def _rect_around(box: QRectF) -> QRect:
    return box.toAlignedRect().adjusted(-3, -1, 4, 1)
