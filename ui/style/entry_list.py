"""A list of things that have an id, as calls that wait, deleted conversations or backups."""

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QListWidget, QListWidgetItem, QWidget

from ui.style.accessibility import choose_toggled_row
from ui.style.list_rows import RowDelegate, RowRole
from ui.style.text import plain_tooltip
from ui.style.theme import ThemeSource

_MIN_HEIGHT = 60
"""Pixels."""
_ID_ROLE = Qt.ItemDataRole.UserRole + 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One row; `spoken` is for a screen reader."""

    id: str
    title: str
    subtitle: str = ""
    detail: str = ""
    icon: str = ""
    spoken: str
    tip: str = ""


class EntryList(QListWidget):
    """What is selected stays selected when the entries are shown again."""

    def __init__(self, themes: ThemeSource, name: str) -> None:
        """`name` is the accessible name."""
        super().__init__()
        self.setAccessibleName(name)
        self.setItemDelegate(RowDelegate(themes, self))
        self.setMouseTracking(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        # Qt's own minimum would push the buttons off a low screen.
        self.setMinimumHeight(_MIN_HEIGHT)
        choose_toggled_row(self, self.setCurrentIndex)

    @property
    def ids(self) -> list[str]:
        """Return the ids of all entries."""
        return [str(self.item(row).data(_ID_ROLE)) for row in range(self.count())]

    @property
    def selected_id(self) -> str | None:
        """Return the id of the selected entry."""
        return next((str(item.data(_ID_ROLE)) for item in self.selectedItems()), None)

    def show_entries(self, entries: Sequence[Entry]) -> None:
        """Show these. If the selected one is gone, the one now in its row is selected."""
        row, selected = max(self.currentRow(), 0), self.selected_id
        scroll_position = self.verticalScrollBar().value()
        self.clear()
        for entry in entries:
            item = QListWidgetItem(entry.title, self)
            item.setData(_ID_ROLE, entry.id)
            item.setData(RowRole.SUBTITLE, entry.subtitle)
            item.setData(RowRole.DETAIL, entry.detail)
            item.setData(RowRole.ICON, entry.icon)
            item.setData(Qt.ItemDataRole.AccessibleTextRole, entry.spoken)
            item.setToolTip(plain_tooltip(entry.tip))
        self.select(selected, row)
        self.verticalScrollBar().setValue(scroll_position)

    def select(self, entry_id: str | None, row: int = 0) -> None:
        """Select an entry; where there is none with this id, the one in this row or the last one."""
        ids = self.ids
        self.setCurrentRow(ids.index(entry_id) if entry_id in ids else min(row, len(ids) - 1))

    def show_unless_empty(self, dialog: QDialog, note: QWidget) -> None:
        """Show the list if it has entries, else the note. The dialog takes the focus when the last entry is gone."""
        has_some, was_hidden = self.count() > 0, self.isHidden()
        if not has_some and self.hasFocus():
            dialog.setFocus()
        self.setVisible(has_some)
        note.setVisible(not has_some)
        if has_some and was_hidden:
            self.setFocus()
