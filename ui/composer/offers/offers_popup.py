"""What MCP servers offer for a message, in a list to search in."""

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QModelIndex, QObject, QPoint, QSize, Qt, Signal
from PySide6.QtGui import QGuiApplication, QHideEvent, QKeyEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLineEdit, QListView, QVBoxLayout, QWidget

from ui.bridge.mcp.offers import ServerOffers
from ui.composer.offers.offer_rows import OfferRow, OfferRows, Wanted
from ui.look.controls import IconButton, button, line
from ui.look.rows import RowDelegate
from ui.look.theme import SPACE_S, SPACE_XS, ThemeSource

POPUP_SIZE = QSize(460, 420)


class OffersPopup(QFrame):
    """Opened over the composer; what is typed in it narrows the list."""

    chosen = Signal(object)
    """The OfferRow."""
    left = Signal(str)
    """It was closed without anything being taken; what had been typed in it."""
    refresh_requested = Signal()
    settings_requested = Signal()

    def __init__(self, themes: ThemeSource, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self._themes = themes
        self._groups: Sequence[ServerOffers] = ()
        self._wanted: Wanted = "all"
        self._was_chosen = False
        self._search = QLineEdit(clearButtonEnabled=True)
        self._rows = OfferRows(self)
        self._list = QListView()
        self._list.setModel(self._rows)
        self._list.setItemDelegate(RowDelegate(themes, self._list))
        self._refresh = IconButton(themes, "refresh", self.tr("Ask the servers again"))
        self._settings = button(self.tr("MCP servers…"), self._to_settings, "link")
        self._build()
        self._search.textChanged.connect(self._narrow)
        self._search.installEventFilter(self)
        self._list.clicked.connect(self._choose)
        self._list.activated.connect(self._choose)
        self._refresh.clicked.connect(self.refresh_requested)

    def show_offers(self, groups: Sequence[ServerOffers]) -> None:
        """Another set; what was marked stays marked."""
        self._groups = groups
        marked = self._rows.row(self._list.currentIndex().row()) if self._list.currentIndex().isValid() else None
        self._narrow(self._search.text())
        place = self._rows.place_of(marked)
        if place >= 0:
            self._go_to(place)

    def open_over(self, widget: QWidget, wanted: Wanted) -> None:
        """Show above this, or below where there is no room."""
        self._wanted, self._was_chosen = wanted, False
        hints = {
            "all": self.tr("Search prompts and resources"),
            "prompts": self.tr("Search prompts"),
            "resources": self.tr("Search resources"),
        }
        self._search.setPlaceholderText(hints[wanted])
        self._search.setAccessibleName(hints[wanted])
        self.setLayoutDirection(QGuiApplication.layoutDirection())
        self._search.clear()
        self._narrow("")
        screen = widget.screen().availableGeometry()
        top, bottom = (widget.mapToGlobal(QPoint(0, y)) for y in (-SPACE_XS, widget.height() + SPACE_XS))
        above, below = top.y() - screen.top(), screen.bottom() - bottom.y()
        room = POPUP_SIZE * (self._themes.zoom / 100)
        is_above = above >= min(room.height(), below)
        self.resize(room.boundedTo(QSize(screen.width(), above if is_above else below)))
        at = top - QPoint(0, self.height()) if is_above else bottom
        at.setX(max(screen.left(), min(at.x(), screen.right() - self.width())))
        self.move(at)
        self.show()
        self._search.setFocus()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Arrow keys and Enter in the search field work the list; Backspace in an empty one closes it."""
        if watched is self._search and isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            if event.key() in {Qt.Key.Key_Down, Qt.Key.Key_Up}:
                self._step(1 if event.key() == Qt.Key.Key_Down else -1)
                return True
            if event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
                self._choose(self._list.currentIndex())
                return True
            if event.key() == Qt.Key.Key_Backspace and not self._search.text():
                self.hide()
                return True
        return super().eventFilter(watched, event)

    def hideEvent(self, event: QHideEvent) -> None:
        """However it was closed."""
        super().hideEvent(event)
        if not self._was_chosen:
            self.left.emit(self._search.text())

    def _narrow(self, typed: str) -> None:
        self._rows.show_matching(self._groups, typed, self._wanted)
        self._go_to(self._rows.next_choosable(-1, 1))

    def _step(self, step: int) -> None:
        row = self._rows.next_choosable(self._list.currentIndex().row(), step)
        if row >= 0:
            self._go_to(row)

    def _go_to(self, row: int) -> None:
        self._list.setCurrentIndex(self._rows.index(row))

    def _choose(self, index: QModelIndex) -> None:
        row: OfferRow | None = self._rows.row(index.row()) if index.isValid() else None
        if row is None or row.offered is None:
            return
        self._was_chosen = True
        self.hide()
        self.chosen.emit(row)

    def _to_settings(self) -> None:
        self.hide()
        self.settings_requested.emit()

    def _build(self) -> None:
        self.setProperty("kind", "popup")
        self.setAccessibleName(self.tr("From MCP servers"))
        self._list.setAccessibleName(self.tr("From MCP servers"))
        self._list.setMouseTracking(True)
        self._list.setEditTriggers(QListView.EditTrigger.NoEditTriggers)
        foot = QHBoxLayout()
        foot.addWidget(self._settings)
        foot.addStretch(1)
        foot.addWidget(self._refresh)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(SPACE_S, SPACE_S, SPACE_S, SPACE_S)
        layout.setSpacing(SPACE_XS)
        layout.addWidget(self._search)
        layout.addWidget(self._list, 1)
        layout.addWidget(line())
        layout.addLayout(foot)
