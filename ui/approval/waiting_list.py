"""The list of waiting items in a dialog: tool calls, or requests of MCP servers."""

from collections.abc import Sequence

from PySide6.QtCore import QSignalBlocker, Signal
from PySide6.QtWidgets import QBoxLayout, QWidget

from ui.approval.labels import wrapping_label
from ui.style.boxes import vbox
from ui.style.entry_list import Entry, EntryList
from ui.style.theme import SPACE_S, ThemeSource

_MAX_WIDGET_SIZE = 16_777_215
"""QWIDGETSIZE_MAX."""


class WaitingList(QWidget):
    """One row for each item, and their number; hidden while there is only one."""

    chosen = Signal(str)
    """The id of an item, when the person selects another one."""

    def __init__(self, themes: ThemeSource, name: str, count_text: str) -> None:
        """`name` is the accessible name; `count_text` has a place for the number."""
        super().__init__()
        self._count_text = count_text
        self._count = wrapping_label(kind="muted")
        self._list = EntryList(themes, name)
        self._list.currentItemChanged.connect(self._emit_chosen)
        self.setFocusProxy(self._list)
        vbox(self._count, self._list, parent=self, spacing=SPACE_S, margins=0, grow=self._list)
        self.hide()

    def show_items(self, items: Sequence[Entry], current: str | None) -> None:
        """List the items and select the current one without a signal."""
        with QSignalBlocker(self._list):
            self._list.show_entries(items)
            self._list.select(current)
        self._count.setText(self._count_text.format(len(items)))
        self.setVisible(len(items) > 1)

    def arrange(self, layout: QBoxLayout, width: int, height: int, *, is_above: bool) -> None:
        """Place the list beside the other parts of the layout, `width` pixels wide, or above them, `height` high."""
        across, down = QBoxLayout.Direction.LeftToRight, QBoxLayout.Direction.TopToBottom
        layout.setDirection(down if is_above else across)
        self.setMinimumWidth(0 if is_above else width)
        self.setMaximumWidth(_MAX_WIDGET_SIZE if is_above else width)
        self.setMaximumHeight(height if is_above else _MAX_WIDGET_SIZE)

    def _emit_chosen(self) -> None:
        if self._list.currentRow() >= 0:
            self.chosen.emit(self._list.ids[self._list.currentRow()])
