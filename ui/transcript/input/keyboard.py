"""Keys: scrolling, walking messages, pressing what a message offers, selecting and copying."""

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent, QKeySequence

from ui.transcript.surface.screen import Screen
from ui.transcript.surface.scroller import Scroller
from ui.transcript.surface.selection import LAST, Place

_CTRL = Qt.KeyboardModifier.ControlModifier
_SHIFT = Qt.KeyboardModifier.ShiftModifier
_PRESSES = (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space)


class Keyboard:
    """Answers whether it used a key."""

    def __init__(self, screen: Screen, scroller: Scroller, copy: Callable[[], None]) -> None:
        self._screen = screen
        self._scroller = scroller
        self._copy = copy

    def press(self, event: QKeyEvent) -> bool:
        """One key."""
        if event.matches(QKeySequence.StandardKey.Copy):
            self._copy()
            return True
        if event.matches(QKeySequence.StandardKey.SelectAll):
            self.select_all()
            return True
        modifiers = event.modifiers() & (_CTRL | _SHIFT | Qt.KeyboardModifier.AltModifier)
        key = Qt.Key(event.key())
        if modifiers == _CTRL and key in {Qt.Key.Key_Up, Qt.Key.Key_Down}:
            self.walk(-1 if key == Qt.Key.Key_Up else 1)
            return True
        if key in _PRESSES and not modifiers:
            return self._press_focused()
        return not (modifiers & ~_SHIFT) and self._scroll(key, backwards=bool(modifiers & _SHIFT))

    def _scroll(self, key: Qt.Key, *, backwards: bool) -> bool:
        line = self._screen.rows.stage.look.line
        page = max(line, self._screen.rows.view - 2 * line)
        if key in {Qt.Key.Key_Tab, Qt.Key.Key_Backtab}:
            return self.walk_controls(-1 if backwards or key == Qt.Key.Key_Backtab else 1)
        steps = {
            Qt.Key.Key_Up: -2 * line,
            Qt.Key.Key_Down: 2 * line,
            Qt.Key.Key_PageUp: -page,
            Qt.Key.Key_PageDown: page,
        }
        if key in steps:
            self._scroller.scroll_by(steps[key])
        elif key == Qt.Key.Key_Home:
            self._scroller.to_start()
        elif key == Qt.Key.Key_End:
            self._scroller.to_end()
        else:
            return False
        return True

    def select_all(self) -> None:
        """From the first row to the last."""
        count = len(self._screen.rows)
        if count:
            self._screen.select(Place(), Place(count - 1, LAST, LAST))

    def walk(self, step: int) -> None:
        """To the message before or after the one with the keyboard; at first to the one at the screen's edge."""
        rows = self._screen.rows
        if not len(rows):
            return
        index = self._screen.focused[0]
        if index < 0:
            edge = rows.top + (rows.view if step < 0 else 0)
            index = rows.row_at(edge)
        else:
            index = max(0, min(len(rows) - 1, index + step))
        self._scroller.show_row(index)
        self._screen.focus((index, ""))

    def walk_controls(self, step: int) -> bool:
        """Through what the message with the keyboard offers; answers False when there is nothing further."""
        index, key = self._screen.focused
        if not 0 <= index < len(self._screen.rows):
            return False
        keys = ["", *(f"{block}/{control.name}" for block, control in self._screen.rows.row(index).controls())]
        at = (keys.index(key) if key in keys else 0) + step
        if not 0 <= at < len(keys):
            self._screen.focus((index, ""))
            return False
        self._screen.focus((index, keys[at]))
        return True

    def _press_focused(self) -> bool:
        index, key = self._screen.focused
        if not key or not 0 <= index < len(self._screen.rows):
            return False
        for block, control in self._screen.rows.row(index).controls():
            if f"{block}/{control.name}" == key:
                control.press()
                return True
        return False
