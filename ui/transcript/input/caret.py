"""Caret browsing: reading, selecting and opening links with the keys of a text editor."""

from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject, QPoint, QRect, QRectF, Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication, QKeyEvent, QPainter

from desktop_agent.conversation.items import Added, Change, Removed
from ui.transcript.input.caret_moves import CaretMoves
from ui.transcript.rows.body.replacing import Replacement
from ui.transcript.surface.places import show_place
from ui.transcript.surface.screen import Screen
from ui.transcript.surface.scroller import Scroller
from ui.transcript.surface.selection import Place

_CTRL = Qt.KeyboardModifier.ControlModifier
_SHIFT = Qt.KeyboardModifier.ShiftModifier
_ENTER = (Qt.Key.Key_Return, Qt.Key.Key_Enter)
_SIDES = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}
_LINES = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}
_PAGES = {Qt.Key.Key_PageUp: -1, Qt.Key.Key_PageDown: 1}
_ENDS = {Qt.Key.Key_Home: -1, Qt.Key.Key_End: 1}


class Caret(QObject):
    """Off at first. `turned` says whether it is on now, `moved` that it stands elsewhere."""

    turned = Signal(bool)
    moved = Signal()

    def __init__(
        self, screen: Screen, scroller: Scroller, open_link: Callable[[str, int], None], parent: QObject
    ) -> None:
        super().__init__(parent)
        self._screen = screen
        self._scroller = scroller
        self._open_link = open_link
        self._moves = CaretMoves(screen)
        self._place: Place | None = None
        self._wish: float | None = None
        self._is_lit = True
        self._blink = QTimer(self)
        self._blink.timeout.connect(self._flash)
        screen.on_replaced.append(self._on_replaced)

    @property
    def is_on(self) -> bool:
        """Whether there is one."""
        return self._place is not None

    @property
    def place(self) -> Place | None:
        """Where it stands."""
        return self._place

    def toggle(self) -> None:
        """Put it where something is selected, else to the first text on the screen; or take it away."""
        if self.is_on:
            self.leave()
            return
        selection, rows = self._screen.selection, self._screen.rows
        start = self._screen.place_at(QPoint(self._screen.column, 0))
        place = self._moves.near(selection.end if not selection.is_empty else start) if len(rows) else None
        if place is not None:
            self._place = place
            self._shine()
            self.turned.emit(True)
            self.moved.emit()

    def leave(self) -> None:
        """Take it away. What is selected stays so."""
        if self.is_on:
            self._repaint()
            self._place = None
            self._blink.stop()
            self.turned.emit(False)

    def press(self, event: QKeyEvent) -> bool:
        """A key; answers whether it was the caret's."""
        key, modifiers = Qt.Key(event.key()), event.modifiers() & (_CTRL | _SHIFT | Qt.KeyboardModifier.AltModifier)
        place = self._moves.near(self._place) if self._place else None
        if place is None or modifiers & ~(_CTRL | _SHIFT):
            return False
        if key == Qt.Key.Key_Escape:
            self.leave()
            return True
        if key in _ENTER and not modifiers:
            return self._open(place)
        there = self._there(place, key, with_ctrl=bool(modifiers & _CTRL))
        if there is not None:
            self.put(there, extends=bool(modifiers & _SHIFT), keeps_wish=key in _LINES or key in _PAGES)
        return there is not None

    def put(self, place: Place, *, extends: bool = False, keeps_wish: bool = False) -> None:
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
            self._wish = None
        block = self._moves.block(place)
        end = (place.block, place.offset + 1) if block and block.caret_at(place.offset) else (place.block, 1 << 30)
        self._show(place, end)
        self._shine()
        self.moved.emit()

    def follow(self, place: Place) -> None:
        """The pointer or the walk through messages went here."""
        near = self._moves.near(place)
        if self.is_on and near is not None:
            self._repaint()
            self._place, self._wish = near, None
            self._shine()
            self.moved.emit()

    def apply(self, changes: Sequence[Change]) -> None:
        """Rows came, or went."""
        for change in changes:
            place = self._place
            if place is None:
                return
            if isinstance(change, Added) and change.index <= place.row:
                self._place = Place(place.row + 1, place.block, place.offset)
            elif isinstance(change, Removed) and change.first <= place.row:
                gone = place.row < change.first + change.count
                there = Place(place.row - change.count, place.block, place.offset)
                self._place = Place(max(0, change.first - 1)) if gone else there

    def _on_replaced(self, row: int, replacement: Replacement) -> None:
        place = self._place
        if place and place.row == row:
            self._place = Place(row, *replacement.moved(place.block, place.offset))

    def box(self) -> QRectF | None:
        """Where it stands in the viewport."""
        place = self._moves.near(self._place) if self._place and len(self._screen.rows) else None
        box = self._moves.box(place) if place else None
        if place is None or box is None:
            return None
        row = self._screen.rows.row(place.row)
        corner = row.block_box(place.block).topLeft() + self._screen.row_box(place.row).topLeft()
        return box.translated(corner)

    def paint(self, painter: QPainter) -> None:
        """A thin line, as high as its line of text."""
        box = self.box() if self._is_lit else None
        if box is not None:
            look = self._screen.rows.stage.look
            painter.fillRect(QRectF(box.left() - 1, box.top(), look.px(2), box.height()), look.color("text"))

    def _there(self, place: Place, key: Qt.Key, *, with_ctrl: bool) -> Place | None:
        moves = self._moves
        if key in _SIDES:
            step = -_SIDES[key] if moves.is_turned(place) else _SIDES[key]
            return moves.beside(place, step, by_word=with_ctrl)
        if key in _ENDS and with_ctrl:
            return moves.start() if _ENDS[key] < 0 else moves.end()
        if key in _ENDS:
            return moves.line_end(place, _ENDS[key])
        if with_ctrl:
            return None
        if key in _LINES:
            return moves.line(place, _LINES[key], self._wished(place))
        return self._page(place, _PAGES[key]) if key in _PAGES else None

    def _wished(self, place: Place) -> float:
        """The x in its row to which a caret that walks through lines wants to return."""
        if self._wish is None:
            box = self._moves.box(place)
            left = self._screen.rows.row(place.row).block_box(place.block).left()
            self._wish = left + (box.left() if box else 0)
        return self._wish

    def _page(self, place: Place, step: int) -> Place | None:
        rows, wish = self._screen.rows, self._wished(place)
        self._show(place, (place.block, place.offset + 1))
        box = self.box()
        self._scroller.scroll_by(step * max(rows.stage.look.line, rows.view - 2 * rows.stage.look.line))
        point = QPoint(int(wish) + self._screen.column, int(box.center().y()) if box else 0)
        there = self._moves.near(self._screen.place_at(point), step)
        if there is None or (there <= place if step > 0 else there >= place):
            return self._moves.start() if step < 0 else self._moves.end()
        return there

    def _show(self, place: Place, end: tuple[int, int]) -> None:
        box = self.box()
        line, view = self._screen.rows.stage.look.line, self._screen.rows.view
        if box is None or not line <= box.top() <= box.bottom() <= view - line:
            selection = (place.block, place.offset), end
            show_place(self._screen, self._scroller, place.row, selection, calmly=True)

    def _open(self, place: Place) -> bool:
        """The link that the caret stands in, or at an edge of."""
        block, box = self._moves.block(place), self._moves.box(place)
        if block is None or box is None:
            return False
        y = int(box.center().y())
        for x in (box.left() + 2, box.left() - 2):
            if link := block.link_at(QPoint(int(x), y)):
                self._open_link(link, place.row)
                return True
        return False

    def _shine(self) -> None:
        """Seen at once after each move, then blinking as the platform wishes."""
        self._is_lit = True
        cycle = QGuiApplication.styleHints().cursorFlashTime()
        if cycle > 1:
            self._blink.start(cycle // 2)
        else:
            self._blink.stop()
        self._repaint()

    def _flash(self) -> None:
        # Without the keyboard it stands still, until the next key.
        view = self._screen.viewport.parentWidget()
        has_keyboard = view is not None and view.hasFocus()
        self._is_lit = not (self._is_lit and has_keyboard)
        if not has_keyboard:
            self._blink.stop()
        self._repaint()

    def _repaint(self) -> None:
        box = self.box()
        if box is not None:
            self._screen.viewport.update(_around(box))


def _around(box: QRectF) -> QRect:
    return box.toAlignedRect().adjusted(-3, -1, 4, 1)
