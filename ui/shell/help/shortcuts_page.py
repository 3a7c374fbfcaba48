"""All actions of the window that have keys."""

from PySide6.QtWidgets import QFrame, QListView, QVBoxLayout, QWidget

from ui.look.controls import label
from ui.look.parts.found_rows import FoundRow, FoundRows
from ui.look.rows import RowDelegate
from ui.look.theme import SPACE_L, SPACE_M, ThemeSource
from ui.shell.commands import commands, keys_of, numbered


class ShortcutsPage(QWidget):
    """One row for each, with its keys at the end."""

    def __init__(self, themes: ThemeSource) -> None:
        super().__init__()
        self._rows = FoundRows(self)
        self._list = QListView()
        self._list.setModel(self._rows)
        self._list.setItemDelegate(RowDelegate(themes, self._list))
        self._list.setAccessibleName(self.tr("Keyboard shortcuts"))
        self._list.setEditTriggers(QListView.EditTrigger.NoEditTriggers)
        self._list.setUniformItemSizes(True)
        self._list.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusProxy(self._list)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(SPACE_L, 0, 0, 0)
        layout.setSpacing(SPACE_M)
        layout.addWidget(label(self.tr("Keyboard shortcuts"), "heading"))
        layout.addWidget(self._list, 1)

    def show_actions_of(self, window: QWidget) -> None:
        """As they are now."""
        rows = [_row(each.text(), keys) for each in commands(window) if (keys := keys_of(each))]
        series = numbered(window)
        if series:
            keys = f"{keys_of(series[0])} … {keys_of(series[-1])}"
            rows.append(_row(self.tr("Conversation 1 to {0} of the list").format(len(series)), keys))
        self._rows.show_rows(rows)


def _row(text: str, keys: str) -> FoundRow:
    return FoundRow(text=text, detail=keys, spoken=f"{text}, {keys}", is_choosable=True)
