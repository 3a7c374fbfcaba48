"""A field, and a list under it that narrows as one types."""

from collections.abc import Callable, Sequence

from PySide6.QtCore import QEvent, QModelIndex, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QListView, QVBoxLayout, QWidget

from ui.look.controls import ClearableField, announce
from ui.look.parts.found_rows import ResultModel, ResultRow
from ui.look.rows import RowDelegate
from ui.look.theme import SPACE_XS, ThemeSource


class SearchPanel(QWidget):
    """The keyboard stays in the field: arrow keys walk the list, Enter chooses. `find` says what is found."""

    chosen = Signal(object)
    """The ResultRow."""
    results_changed = Signal()
    """Something else is found now."""
    backspace_pressed = Signal()
    """Backspace in the empty field."""

    def __init__(self, themes: ThemeSource, find: Callable[[str], Sequence[ResultRow]], name: str) -> None:
        super().__init__()
        self._find = find
        self.field = ClearableField(themes)
        self.rows = ResultModel(self)
        self._list = QListView()
        self._list.setModel(self.rows)
        self._list.setItemDelegate(RowDelegate(themes, self._list))
        self._list.setAccessibleName(name)
        self._list.setMouseTracking(True)
        self._list.setEditTriggers(QListView.EditTrigger.NoEditTriggers)
        self.column = QVBoxLayout(self)
        self.column.setContentsMargins(0, 0, 0, 0)
        self.column.setSpacing(SPACE_XS)
        self.column.addWidget(self.field)
        self.column.addWidget(self._list, 1)
        self.setFocusProxy(self.field)
        self.field.textChanged.connect(self.filter_rows)
        self.field.installEventFilter(self)
        self._list.clicked.connect(self.choose)
        self._list.activated.connect(self.choose)

    def set_label(self, name: str, hint: str = "") -> None:
        """What is searched here, and what the empty field shows where that is more."""
        self.field.setAccessibleName(name)
        self.field.setPlaceholderText(hint or name)

    def reset(self) -> None:
        """Empty the field, show what is found for nothing."""
        self.field.clear()
        self.filter_rows("")

    def fill(self) -> None:
        """Something else may be found now. What is marked stays marked; out of sight nothing is."""
        if not self.isVisible():
            return
        at = self._list.currentIndex()
        marked = self.rows.row(at.row()) if at.isValid() else None
        self.filter_rows(self.field.text())
        place = self.rows.place_of(marked)
        if place >= 0:
            self._go_to(place)

    def _take_key(self, key: int) -> bool:
        """Return whether a key (Qt.Key) that was pressed in the field is not for the field."""
        match key:
            case Qt.Key.Key_Down:
                self._step(1)
            case Qt.Key.Key_Up:
                self._step(-1)
            case Qt.Key.Key_Return | Qt.Key.Key_Enter:
                self.choose(self._list.currentIndex())
            case Qt.Key.Key_Backspace if not self.field.text():
                self.backspace_pressed.emit()
            case _:
                return False
        return True

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Keys go to the list first."""
        if watched is self.field and isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            return self._take_key(event.key()) or super().eventFilter(watched, event)
        return super().eventFilter(watched, event)

    def filter_rows(self, typed: str) -> None:
        """Show what is found for these words."""
        self.rows.show_rows(self._find(typed))
        at = -1 if typed else self.rows.current
        self._go_to(at if at >= 0 else self.rows.next_choosable(-1, 1))
        self.results_changed.emit()

    def whole_height(self, most: int) -> int:
        """Return the pixels in which every row is seen without scrolling; where that is more than `most`, `most`."""
        height = self.field.sizeHint().height() + self.column.spacing() + 2 * self._list.frameWidth()
        for each in range(self.rows.rowCount()):
            if height >= most:
                break
            height += self._list.sizeHintForIndex(self.rows.index(each)).height()
        return min(height, most)

    def choose(self, index: QModelIndex) -> None:
        """Take this row, where it can be chosen."""
        row = self.rows.row(index.row()) if index.isValid() else None
        if row is not None and row.is_choosable:
            self.chosen.emit(row)

    def _step(self, step: int) -> None:
        row = self.rows.next_choosable(self._list.currentIndex().row(), step)
        if row >= 0:
            self._go_to(row)

    def _go_to(self, row: int) -> None:
        index = self.rows.index(row)
        self._list.setCurrentIndex(index)
        if index.isValid() and self.isVisible():
            # The keyboard is in the field, so that nothing else tells who cannot see the mark.
            announce(self.field, str(index.data(Qt.ItemDataRole.AccessibleTextRole)))
