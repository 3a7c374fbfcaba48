"""Keys: scrolling, moving the focus through messages and their controls, selecting and copying."""

from collections.abc import Callable

from PySide6.QtCore import QKeyCombination, Qt
from PySide6.QtGui import QKeyEvent, QKeySequence

from ui.transcript.blocks.block import Control
from ui.transcript.rows.message_actions import commands_at
from ui.transcript.viewport.positions import (
    FocusStop,
    Link,
    find_focus_stop,
    iter_focus_stops,
    link_selection,
    next_focus_stop,
    scroll_to_text,
)
from ui.transcript.viewport.scroll_controller import ScrollController
from ui.transcript.viewport.selection import LAST_OFFSET, TextPosition
from ui.transcript.viewport.viewport import RowViewport

_CTRL = Qt.KeyboardModifier.ControlModifier
_SHIFT = Qt.KeyboardModifier.ShiftModifier
_HORIZONTAL_KEYS = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}
_FOCUS_STEPS = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}
_ACTIVATE_KEYS = (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space)

_TAB_STEPS = {Qt.FocusReason.BacktabFocusReason: -1, Qt.FocusReason.TabFocusReason: 1}
_SILENT_REASONS = (Qt.FocusReason.ActiveWindowFocusReason, Qt.FocusReason.PopupFocusReason)
"""For these reasons the view only gets back the focus that it had before."""

_SEARCHED_ITEMS = 200
"""Items from the end that are searched for one that has a command."""


class KeyboardHandler:
    """Handles the keys of the transcript when there is no caret."""

    def __init__(
        self,
        viewport: RowViewport,
        scroller: ScrollController,
        copy: Callable[[], None],
        open_link: Callable[[str, int], None],
    ) -> None:
        self._viewport = viewport
        self._scroller = scroller
        self._copy = copy
        self._open_link = open_link
        self.is_focused_by_tab = False
        """Whether Tab brought the focus here: a view without messages then paints it around itself."""

    def handle_key(self, event: QKeyEvent) -> bool:
        """Handle a key; return whether it was used."""
        if event.matches(QKeySequence.StandardKey.Copy):
            self._copy()
            return True
        if event.matches(QKeySequence.StandardKey.SelectAll):
            self.select_all()
            return True
        modifiers = event.modifiers() & (_CTRL | _SHIFT | Qt.KeyboardModifier.AltModifier)
        key = Qt.Key(event.key())
        if modifiers == _CTRL and key in _FOCUS_STEPS:
            self.move_focus(_FOCUS_STEPS[key])
            return True
        if key in _ACTIVATE_KEYS and not modifiers:
            return self._press_focused()
        # The arrows of a Mac count as keypad.
        keys = QKeyCombination(event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier, key)
        if self._run_command(QKeySequence(keys).toString(), self._current_row()):
            return True
        if modifiers == _CTRL and key in {Qt.Key.Key_Home, Qt.Key.Key_End}:
            # As in editors.
            modifiers = Qt.KeyboardModifier.NoModifier
        return not (modifiers & ~_SHIFT) and self._scroll(key, backwards=bool(modifiers & _SHIFT))

    def _scroll(self, key: Qt.Key, *, backwards: bool) -> bool:
        line = self._viewport.rows.render_context.style.line
        page = max(line, self._viewport.rows.view - 2 * line)
        if key in {Qt.Key.Key_Tab, Qt.Key.Key_Backtab}:
            return self.move_control_focus(-1 if backwards or key == Qt.Key.Key_Backtab else 1)
        steps = {
            Qt.Key.Key_Up: -2 * line,
            Qt.Key.Key_Down: 2 * line,
            Qt.Key.Key_PageUp: -page,
            Qt.Key.Key_PageDown: page,
        }
        if key in _HORIZONTAL_KEYS:
            return self._scroll_horizontally(_HORIZONTAL_KEYS[key] * 3 * line)
        if key in steps:
            self._scroller.scroll_by(steps[key])
        elif key == Qt.Key.Key_Home:
            self._viewport.rows.render_context.when_whole(self._scroller.scroll_to_start)
        elif key == Qt.Key.Key_End:
            self._scroller.scroll_to_end()
        else:
            return False
        return True

    def select_all(self) -> None:
        """Select from the first row to the last, once all are loaded."""
        self._viewport.rows.render_context.when_whole(self._select_all)

    def _select_all(self) -> None:
        count = len(self._viewport.rows)
        if count:
            self._viewport.select(TextPosition(), TextPosition(count - 1, LAST_OFFSET, LAST_OFFSET))

    def move_focus(self, step: int) -> None:
        """Focus the next (1) or previous (-1) message; at first the one at the edge of the viewport."""
        rows = self._viewport.rows
        if not len(rows):
            return
        index = self._viewport.focused[0]
        if index < 0:
            edge = rows.top + (rows.view if step < 0 else 0)
            index = rows.row_at(edge)
        else:
            index = max(0, min(len(rows) - 1, index + step))
        self.focus_row(index)

    def focus_row(self, index: int) -> None:
        """Focus this message."""
        if 0 <= index < len(self._viewport.rows):
            self._scroller.scroll_to_row(index)
            self._viewport.focus((index, ""))

    def move_control_focus(self, step: int) -> bool:
        """Focus the next link or control of the focused message; return False when there is none."""
        index, key = self._viewport.focused
        if not 0 <= index < len(self._viewport.rows):
            return False
        row = self._viewport.rows.row(index)
        stop = next_focus_stop(row, key, step)
        if stop is None:
            self._viewport.focus((index, ""))
            return bool(key) and step < 0
        self._focus_stop(index, stop)
        return True

    def take_focus(self, reason: Qt.FocusReason) -> bool:
        """Focus something visible if Tab or Shift+Tab brought the focus to the view; return whether they did.

        Shift+Tab focuses the last link or control of the focused message. If none is focused, the one at the edge is.
        """
        if reason not in _SILENT_REASONS:
            self.is_focused_by_tab = reason in _TAB_STEPS
        rows, (index, key) = self._viewport.rows, self._viewport.focused
        if reason not in _TAB_STEPS or not len(rows):
            return False
        if not 0 <= index < len(rows):
            # Do not scroll: the beginning of the message may be far above what is being read.
            edge = rows.top + (rows.view if _TAB_STEPS[reason] < 0 else 0)
            self._viewport.focus((rows.row_at(edge), ""))
        elif key or reason == Qt.FocusReason.TabFocusReason:
            self.focus_part(index, key)
        else:
            row = rows.row(index)
            stop = next(iter_focus_stops(row, len(row.blocks) - 1, -1), None)
            self.focus_part(index, stop.key if stop else "")
        return True

    def focus_part(self, index: int, key: str) -> None:
        """Focus a message, or the link or control in it that has this key, if it still exists."""
        if not key:
            self.focus_row(index)
            return
        is_there = 0 <= index < len(self._viewport.rows)
        stop = find_focus_stop(self._viewport.rows.row(index), key) if is_there else None
        if stop is not None:
            self._focus_stop(index, stop)

    def _focus_stop(self, index: int, stop: FocusStop) -> None:
        self._viewport.focus((index, stop.key))
        self._scroller.row_arrived(index)
        self._show(index, stop)

    def _show(self, index: int, stop: FocusStop) -> None:
        position = link_selection(self._viewport.rows.row(index), stop.key)
        if position:
            scroll_to_text(self._viewport, self._scroller, index, position, calmly=True)
        elif isinstance(stop.target, Control):
            top = self._viewport.block_box(index, stop.block).top() + stop.target.box.top()
            bottom, view = top + stop.target.box.height(), self._viewport.rows.view
            if not 0 <= top <= bottom <= view:
                self._scroller.scroll_by(top - view // 3)

    def _press_focused(self) -> bool:
        index, key = self._viewport.focused
        if not key or not 0 <= index < len(self._viewport.rows):
            return False
        stop = find_focus_stop(self._viewport.rows.row(index), key)
        if stop is None:
            return False
        if isinstance(stop.target, Link):
            self._open_link(stop.target.target, index)
        else:
            stop.target.press()
        return True

    def run_command(self, keys: str) -> bool:
        """Run the command with these keys of the focused message, or else of the last one that has it."""
        if self._current_row() >= 0:
            return self._run_command(keys, self._current_row())
        last = len(self._viewport.rows.transcript) - 1
        return any(self._run_command(keys, index) for index in range(last, max(-1, last - _SEARCHED_ITEMS), -1))

    def _current_row(self) -> int:
        """Return the row of the focus, or else of the caret, or -1."""
        return self._viewport.focused[0] if self._viewport.focused[0] >= 0 else self._viewport.caret_row

    def _run_command(self, keys: str, index: int) -> bool:
        rows = self._viewport.rows
        commands = commands_at(rows.transcript, index, rows.render_context)
        run = next((command.run for command in commands if command.keys == keys), None)
        if run is not None:
            run()
        return run is not None

    def _scroll_horizontally(self, pixels: int) -> bool:
        """Scroll the block of the focused control, or else the visible blocks of the focused message."""
        index, key = self._viewport.focused
        rows = self._viewport.rows
        if not 0 <= index < len(rows):
            return False
        row, y = rows.row(index), rows.row_top(index)
        blocks = range(
            row.stack.block_at(rows.top - y), min(row.stack.block_at(rows.top + rows.view - y) + 1, len(row.blocks))
        )
        if key:
            blocks = range(int(key.partition("/")[0]), int(key.partition("/")[0]) + 1)
        moved = any(
            row.blocks[number].is_laid_out and row.blocks[number].scroll_horizontally(pixels) for number in blocks
        )
        if moved:
            self._viewport.repaint_row(index)
        return moved
