"""A command as it is written, which breaks anywhere, and of which any part can be marked and copied."""

from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import (
    QFocusEvent,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPalette,
    QTextCharFormat,
    QTextLayout,
)

from ui.approval.parts.wrapped_text import WrappingLabel
from ui.look.written.order import BIDI_MARKS, in_logical_order, strip_bidi_marks

_BLANKS = frozenset(" \t\u2028")
_CURSOR_MOVES = {
    Qt.Key.Key_Left: QTextLayout.previousCursorPosition,
    Qt.Key.Key_Right: QTextLayout.nextCursorPosition,
}


class SelectableLabel(WrappingLabel):
    """With the mouse, and with Shift and the arrows once it was clicked. Tab passes it by.

    Places are those of what is drawn, in Qt's units.
    """

    direction = Qt.LayoutDirection.LeftToRight

    def __init__(self, text: str = "") -> None:
        super().__init__(text)
        self._anchor = self._cursor = 0
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.setCursor(Qt.CursorShape.IBeamCursor)

    @property
    def selected_text(self) -> str:
        """What is marked of it."""
        part = self._utf16[2 * min(self._anchor, self._cursor) : 2 * max(self._anchor, self._cursor)]
        return strip_bidi_marks(part.decode("utf-16-le", "surrogatepass")).replace("\u2028", "\n")

    def setText(self, text: str) -> None:
        """Another one, in the order in which it is written."""
        super().setText(in_logical_order(text))
        self._utf16 = self._drawn_text.encode("utf-16-le", "surrogatepass")

    def event(self, event: QEvent) -> bool:
        """Keys that are its own start nothing else."""
        if event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent) and _is_selection_key(event):
            event.accept()
            return True
        return super().event(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Begin to mark; with Shift, mark up to here."""
        if event.button() == Qt.MouseButton.LeftButton:
            place = self._position_at(event.position().toPoint())
            is_more = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
            self._select(self._anchor if is_more else place, place)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Up to here."""
        if event.buttons() & Qt.MouseButton.LeftButton:
            self._select(self._anchor, self._position_at(event.position().toPoint()))

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """All between two blanks: a word of a command, a path."""
        place = self._position_at(event.position().toPoint())
        begin = end = place
        while begin > 0 and self._char_at(begin - 1) not in _BLANKS:
            begin -= 1
        while end < self._length and self._char_at(end) not in _BLANKS:
            end += 1
        self._select(begin, end)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Mark more, mark all, copy."""
        if event.matches(QKeySequence.StandardKey.Copy):
            QGuiApplication.clipboard().setText(self.selected_text)
        elif event.matches(QKeySequence.StandardKey.SelectAll):
            self._select(0, self._length)
        elif _is_selection_key(event):
            self._select(self._anchor, self._next_position(Qt.Key(event.key())))
        else:
            super().keyPressEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Nothing stays marked, unless another window is only looked at."""
        super().focusOutEvent(event)
        if event.reason() != Qt.FocusReason.ActiveWindowFocusReason:
            self._select(0, 0)

    def paintEvent(self, event: QPaintEvent) -> None:
        """The text, and the ground of what is marked."""
        del event
        colours = self.palette()
        ground = QTextCharFormat()
        ground.setBackground(colours.color(QPalette.ColorRole.Highlight))
        ground.setForeground(colours.color(QPalette.ColorRole.HighlightedText))
        part = QTextLayout.FormatRange()
        part.start, part.length, part.format = min(self._anchor, self._cursor), abs(self._anchor - self._cursor), ground
        painter = QPainter(self)
        painter.setPen(colours.color(self.foregroundRole()))
        laid, _ = self._layout_at(self.width())
        laid.draw(painter, QPointF(0, 0), [part] if part.length else [])

    def _select(self, begin: int, end: int) -> None:
        self._anchor, self._cursor = begin, end
        self.update()

    @property
    def _length(self) -> int:
        return len(self._utf16) // 2

    def _char_at(self, at: int) -> str:
        return self._utf16[2 * at : 2 * at + 2].decode("utf-16-le", "surrogatepass")

    def _next_position(self, key: Qt.Key) -> int:
        """One letter on; what cannot be seen is no letter."""
        laid, _ = self._layout_at(self.width())
        before, at = self._cursor, _CURSOR_MOVES[key](laid, self._cursor)
        while at != before and self._char_at(min(at, before)) in BIDI_MARKS:
            before, at = at, _CURSOR_MOVES[key](laid, at)
        return at

    def _position_at(self, point: QPoint) -> int:
        """Between which letters this is."""
        laid, _ = self._layout_at(self.width())
        for at in range(laid.lineCount()):
            line = laid.lineAt(at)
            if point.y() < line.y() + line.height():
                return line.xToCursor(point.x()) if point.y() >= line.y() else 0
        return self._length


def _is_selection_key(event: QKeyEvent) -> bool:
    is_marking = event.key() in _CURSOR_MOVES and event.modifiers() == Qt.KeyboardModifier.ShiftModifier
    return (
        is_marking or event.matches(QKeySequence.StandardKey.Copy) or event.matches(QKeySequence.StandardKey.SelectAll)
    )
