"""Labels for text of any length: wrapping anywhere, selectable, or expandable."""

from math import ceil

from PySide6.QtCore import QEvent, QPoint, QPointF, QSize, Qt
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
from PySide6.QtWidgets import QLabel, QWidget

from ui.style.boxes import hbox, vbox
from ui.style.controls import ElidedLabel, LabelKind, WrappedLabel, button, label
from ui.style.text import BIDI_MARKS, strip_bidi_marks
from ui.style.text_display import in_logical_order, make_format_range
from ui.style.theme import SPACE_S

_LEAST_WIDTH = 24
_ONE_LINE = 1_000_000
"""Pixels."""


def wrapping_label(text: str = "", kind: LabelKind = "") -> QLabel:
    """Return a label that is never wider than its room, whatever words somebody else wrote."""
    widget = label(text, kind, wrap=True)
    widget.setMinimumWidth(_LEAST_WIDTH)
    return widget


_BLANKS = frozenset(" \t\u2028")
_CURSOR_MOVES = {
    Qt.Key.Key_Left: QTextLayout.previousCursorPosition,
    Qt.Key.Key_Right: QTextLayout.nextCursorPosition,
}


class SelectableLabel(WrappedLabel):
    """A label to select from with the mouse, and with Shift and arrows once clicked. Tab skips it.

    Positions are in the drawn text, in UTF-16 units.
    """

    def __init__(self, text: str = "") -> None:
        super().__init__()
        self._anchor = self._cursor = 0
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setWordWrap(True)
        self.setLayoutDirection(Qt.LayoutDirection.LeftToRight)
        self.setMinimumWidth(_LEAST_WIDTH)
        self.setText(text)
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.setCursor(Qt.CursorShape.IBeamCursor)

    @property
    def selected_text(self) -> str:
        """The selected text, without marks."""
        part = self._utf16[2 * min(self._anchor, self._cursor) : 2 * max(self._anchor, self._cursor)]
        return strip_bidi_marks(part.decode("utf-16-le", "surrogatepass")).replace("\u2028", "\n")

    def setText(self, text: str) -> None:
        super().setText(in_logical_order(text))
        self._utf16 = self._drawn_text.replace("\n", "\u2028").encode("utf-16-le", "surrogatepass")

    def sizeHint(self) -> QSize:
        layout, height = self.broken(_ONE_LINE)
        return QSize(ceil(max(layout.lineAt(row).naturalTextWidth() for row in range(layout.lineCount()))), height)

    def _is_drawn_by_qt(self, width: int) -> bool:
        del width
        return False

    def event(self, event: QEvent) -> bool:
        """Keep the keys of the selection from shortcuts."""
        if event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent) and _is_selection_key(event):
            event.accept()
            return True
        return super().event(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            position = self._position_at(event.position().toPoint())
            is_extending = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
            self._select(self._anchor if is_extending else position, position)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if event.buttons() & Qt.MouseButton.LeftButton:
            self._select(self._anchor, self._position_at(event.position().toPoint()))

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Select everything between two blanks: a word of a command, a path."""
        position = self._position_at(event.position().toPoint())
        begin = end = position
        while begin > 0 and self._char_at(begin - 1) not in _BLANKS:
            begin -= 1
        while end < self._length and self._char_at(end) not in _BLANKS:
            end += 1
        self._select(begin, end)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Copy):
            QGuiApplication.clipboard().setText(self.selected_text)
        elif event.matches(QKeySequence.StandardKey.SelectAll):
            self._select(0, self._length)
        elif _is_selection_key(event):
            self._select(self._anchor, self._next_position(Qt.Key(event.key())))
        else:
            super().keyPressEvent(event)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """Clear the selection, unless another window was activated."""
        super().focusOutEvent(event)
        if event.reason() != Qt.FocusReason.ActiveWindowFocusReason:
            self._select(0, 0)

    def paintEvent(self, event: QPaintEvent) -> None:
        del event
        colours = self.palette()
        highlight = QTextCharFormat()
        highlight.setBackground(colours.color(QPalette.ColorRole.Highlight))
        highlight.setForeground(colours.color(QPalette.ColorRole.HighlightedText))
        part = make_format_range(min(self._anchor, self._cursor), abs(self._anchor - self._cursor), highlight)
        painter = QPainter(self)
        painter.setPen(colours.color(self.foregroundRole()))
        layout, _ = self.broken(self.width())
        layout.draw(painter, QPointF(0, 0), [part] if part.length else [])

    def _select(self, begin: int, end: int) -> None:
        self._anchor, self._cursor = begin, end
        self.update()

    @property
    def _length(self) -> int:
        return len(self._utf16) // 2

    def _char_at(self, position: int) -> str:
        return self._utf16[2 * position : 2 * position + 2].decode("utf-16-le", "surrogatepass")

    def _next_position(self, key: Qt.Key) -> int:
        layout, _ = self.broken(self.width())
        previous, position = self._cursor, _CURSOR_MOVES[key](layout, self._cursor)
        while position != previous and self._char_at(min(position, previous)) in BIDI_MARKS:
            previous, position = position, _CURSOR_MOVES[key](layout, position)
        return position

    def _position_at(self, point: QPoint) -> int:
        layout, _ = self.broken(self.width())
        for index in range(layout.lineCount()):
            line = layout.lineAt(index)
            if point.y() < line.y() + line.height():
                return line.xToCursor(point.x()) if point.y() >= line.y() else 0
        return self._length


def _is_selection_key(event: QKeyEvent) -> bool:
    # The arrow keys of a Mac count as keys of the keypad.
    modifiers = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
    is_extending = event.key() in _CURSOR_MOVES and modifiers == Qt.KeyboardModifier.ShiftModifier
    return (
        is_extending
        or event.matches(QKeySequence.StandardKey.Copy)
        or event.matches(QKeySequence.StandardKey.SelectAll)
    )


class ExpandableNote(QWidget):
    """The first sentence of a note, and the rest on demand."""

    def __init__(self) -> None:
        super().__init__()
        self._short = ElidedLabel()
        self._short.setProperty("kind", "muted")
        self._full_text = wrapping_label(kind="muted")
        self._toggle_button = button(self.tr("Show all"), self._toggle, "link")
        line = hbox(self._short, spacing=SPACE_S, grow=self._short)
        line.addWidget(self._toggle_button, 0, Qt.AlignmentFlag.AlignTop)
        vbox(line, self._full_text, parent=self, spacing=0, margins=0)

    def show_note(self, short: str, whole: str) -> None:
        """Show `short` on one line; `whole` is the entire note."""
        self._short.show_text(short)
        self._short.setAccessibleName(strip_bidi_marks(short))
        self._full_text.setText(whole)
        self._toggle_button.setVisible(whole != short)
        self._set_expanded(whole=False)

    def _toggle(self) -> None:
        self._set_expanded(whole=self._full_text.isHidden())

    def _set_expanded(self, *, whole: bool) -> None:
        self._full_text.setVisible(whole)
        words = self.tr("Show less") if whole else self.tr("Show all")
        self._toggle_button.setText(words)
        self._toggle_button.setAccessibleName(words)
