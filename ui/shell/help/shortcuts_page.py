"""All actions of the window that have keys."""

from PySide6.QtWidgets import QFrame, QListView, QVBoxLayout, QWidget

from ui.look.controls import label
from ui.look.parts.found_rows import ResultModel, ResultRow
from ui.look.rows import RowDelegate
from ui.look.theme import SPACE_L, SPACE_M, ThemeSource
from ui.shell.commands import listed_actions, numbered_actions, shortcut_text


class ShortcutsPage(QWidget):
    """One row for each, with its keys at the end."""

    def __init__(self, themes: ThemeSource) -> None:
        super().__init__()
        self._rows = ResultModel(self)
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
        rows = [_row(each.text(), keys) for each in listed_actions(window) if (keys := shortcut_text(each))]
        series = numbered_actions(window)
        if series:
            keys = f"{shortcut_text(series[0])} … {shortcut_text(series[-1])}"
            rows.append(_row(self.tr("Conversation 1 to {0} of the list").format(len(series)), keys))
        self._rows.show_rows(rows)


def _row(text: str, keys: str) -> ResultRow:
    return ResultRow(text=text, detail=keys, spoken=f"{text}, {keys}", is_choosable=True)
