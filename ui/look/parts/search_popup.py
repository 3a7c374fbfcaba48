"""A list over the window, and a field above it that narrows the list as it is typed in."""

from collections.abc import Callable, Sequence

from PySide6.QtCore import QEvent, QModelIndex, QObject, QPoint, QSize, Qt, Signal
from PySide6.QtGui import QGuiApplication, QHideEvent, QKeyEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLineEdit, QListView, QVBoxLayout, QWidget

from ui.look.controls import IconButton, button, line
from ui.look.parts.found_rows import FoundRow, FoundRows
from ui.look.rows import RowDelegate
from ui.look.theme import SPACE_S, SPACE_XS, ThemeSource


class SearchPopup(QFrame):
    """The keyboard stays in the field: arrow keys walk the list, Enter chooses. `find` says what is found."""

    chosen = Signal(object)
    """The FoundRow."""
    left = Signal(str)
    """It was closed without anything being chosen; what had been typed in it."""
    refresh_requested = Signal()
    link_followed = Signal()

    def __init__(
        self,
        themes: ThemeSource,
        find: Callable[[str], Sequence[FoundRow]],
        size: QSize,
        parent: QWidget,
        *,
        name: str,
        refresh: str,
        link: str,
    ) -> None:
        """`size` is for 100 % zoom. `refresh` names the button that asks anew, `link` the way to a page of its own."""
        super().__init__(parent, Qt.WindowType.Popup)
        self._themes, self._find, self._size = themes, find, size
        self._was_chosen = False
        self._search = QLineEdit(clearButtonEnabled=True)
        self._rows = FoundRows(self)
        self._list = QListView()
        self._list.setModel(self._rows)
        self._list.setItemDelegate(RowDelegate(themes, self._list))
        self._refresh = IconButton(themes, "refresh", refresh)
        self._link = button(link, self._follow, "link")
        self._build(name)
        self._search.textChanged.connect(self._narrow)
        self._search.installEventFilter(self)
        self._list.clicked.connect(self._choose)
        self._list.activated.connect(self._choose)
        self._refresh.clicked.connect(self.refresh_requested)

    @property
    def typed(self) -> str:
        """What stands in the field."""
        return self._search.text()

    def say_what_for(self, name: str, hint: str = "") -> None:
        """What is searched here, and what the empty field shows where that is more."""
        self._search.setAccessibleName(name)
        self._search.setPlaceholderText(hint or name)

    def fill(self) -> None:
        """Something else may be found now. What is marked stays marked; out of sight nothing is."""
        if not self.isVisible():
            return
        at = self._list.currentIndex()
        marked = self._rows.row(at.row()) if at.isValid() else None
        self._narrow(self._search.text())
        place = self._rows.place_of(marked)
        if place >= 0:
            self._go_to(place)

    def show_over(self, widget: QWidget) -> None:
        """Show with an empty field above this, or below where there is no room; where neither has, in the larger."""
        self._was_chosen = False
        self.setLayoutDirection(QGuiApplication.layoutDirection())
        self._search.clear()
        self._narrow("")
        screen = widget.screen().availableGeometry()
        top, bottom = (widget.mapToGlobal(QPoint(0, y)) for y in (-SPACE_XS, widget.height() + SPACE_XS))
        above, below = top.y() - screen.top(), screen.bottom() - bottom.y()
        wanted = self._size * (self._themes.zoom / 100)
        is_above = above >= min(wanted.height(), below)
        self.resize(wanted.boundedTo(QSize(screen.width(), above if is_above else below)))
        at = top - QPoint(0, self.height()) if is_above else bottom
        at.setX(max(screen.left(), min(at.x(), screen.right() - self.width())))
        self.move(at)
        self.show()
        self._search.setFocus()

    def take_key(self, key: int) -> bool:
        """A key (Qt.Key) that was pressed in the field; whether it is for the list and not for the field."""
        match key:
            case Qt.Key.Key_Down:
                self._step(1)
            case Qt.Key.Key_Up:
                self._step(-1)
            case Qt.Key.Key_Return | Qt.Key.Key_Enter:
                self._choose(self._list.currentIndex())
            case _:
                return False
        return True

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Keys go to the list first."""
        if watched is self._search and isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            return self.take_key(event.key()) or super().eventFilter(watched, event)
        return super().eventFilter(watched, event)

    def hideEvent(self, event: QHideEvent) -> None:
        """However it was closed."""
        super().hideEvent(event)
        if not self._was_chosen:
            self.left.emit(self._search.text())

    def _narrow(self, typed: str) -> None:
        self._rows.show_rows(self._find(typed))
        at = -1 if typed else self._rows.current
        self._go_to(at if at >= 0 else self._rows.next_choosable(-1, 1))

    def _step(self, step: int) -> None:
        row = self._rows.next_choosable(self._list.currentIndex().row(), step)
        if row >= 0:
            self._go_to(row)

    def _go_to(self, row: int) -> None:
        self._list.setCurrentIndex(self._rows.index(row))

    def _choose(self, index: QModelIndex) -> None:
        row = self._rows.row(index.row()) if index.isValid() else None
        if row is None or not row.is_choosable:
            return
        self._was_chosen = True
        self.hide()
        self.chosen.emit(row)

    def _follow(self) -> None:
        self.hide()
        self.link_followed.emit()

    def _build(self, name: str) -> None:
        self.setProperty("kind", "popup")
        self.setAccessibleName(name)
        self._list.setAccessibleName(name)
        self._list.setMouseTracking(True)
        self._list.setEditTriggers(QListView.EditTrigger.NoEditTriggers)
        foot = QHBoxLayout()
        foot.addWidget(self._link)
        foot.addStretch(1)
        foot.addWidget(self._refresh)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(SPACE_S, SPACE_S, SPACE_S, SPACE_S)
        layout.setSpacing(SPACE_XS)
        layout.addWidget(self._search)
        layout.addWidget(self._list, 1)
        layout.addWidget(line())
        layout.addLayout(foot)
