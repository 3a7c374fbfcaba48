"""The model picker: a button with the model in use, and a list to search in."""

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QModelIndex, QObject, QPoint, QSize, Qt, Signal
from PySide6.QtGui import QGuiApplication, QKeyEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLineEdit, QListView, QToolButton, QVBoxLayout, QWidget

from ui.composer.model_rows import ModelRows, ModelsOfServer
from ui.look.controls import IconButton, button, line
from ui.look.icons import themed_icon
from ui.look.rows import RowDelegate
from ui.look.sentences import literal, plain_tip
from ui.look.theme import SPACE_S, SPACE_XS, ThemeSource

POPUP_SIZE = QSize(440, 460)
LONGEST_NAME = 40


class ModelPicker(QToolButton):
    """Shows and changes the model. A model id that no server lists can be typed."""

    model_chosen = Signal(str, str)
    """Endpoint id and model id."""
    refresh_requested = Signal()
    connect_requested = Signal()

    def __init__(self, themes: ThemeSource, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._themes = themes
        self._groups: Sequence[ModelsOfServer] = ()
        self._current = ("", "")
        self._popup = ModelPopup(themes, self)
        self.setAccessibleName(self.tr("Model"))
        self.setProperty("kind", "quiet")
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.clicked.connect(self.open_list)
        self._popup.model_chosen.connect(self.model_chosen)
        self._popup.refresh_requested.connect(self.refresh_requested)
        self._popup.connect_requested.connect(self.connect_requested)
        themes.changed.connect(self._dress)
        self._dress()
        self._say()

    def set_models(self, groups: Sequence[ModelsOfServer]) -> None:
        """What there is to choose from."""
        self._groups = groups
        self._popup.show_models(groups, self._current)
        self._say()

    def set_current(self, endpoint_id: str | None, model_id: str | None) -> None:
        """The model in use, or none."""
        self._current = (endpoint_id or "", model_id or "")
        self._popup.show_models(self._groups, self._current)
        self._say()

    def open_list(self) -> None:
        """Show the list above the button, or below where there is no room above."""
        self._popup.resize(POPUP_SIZE * (self._themes.zoom / 100))
        at = self.mapToGlobal(QPoint(0, -self._popup.height() - SPACE_XS))
        screen = self.screen().availableGeometry()
        if at.y() < screen.top():
            at = self.mapToGlobal(QPoint(0, self.height() + SPACE_XS))
        at.setX(max(screen.left(), min(at.x(), screen.right() - self._popup.width())))
        self._popup.open_at(at)

    def _say(self) -> None:
        endpoint_id, model_id = self._current
        listed = (model for group in self._groups if group.endpoint.id == endpoint_id for model in group.models)
        title = next((model.title or model.id for model in listed if model.id == model_id), model_id)
        words = title or self.tr("Choose a model")
        short = words if len(words) <= LONGEST_NAME else words[: LONGEST_NAME - 1] + "…"
        self.setText(literal(short))
        self.setAccessibleDescription(words)
        self.setToolTip(plain_tip(f"{words} (Ctrl+M)"))

    def _dress(self) -> None:
        # The arrow belongs behind the name; Qt puts icons in front, in reading direction.
        ltr = QGuiApplication.layoutDirection() == Qt.LayoutDirection.LeftToRight
        self.setLayoutDirection(Qt.LayoutDirection.RightToLeft if ltr else Qt.LayoutDirection.LeftToRight)
        self.setIcon(themed_icon("chevron-down", self._themes.theme, 14))
        self.setIconSize(QSize(14, 14))


class ModelPopup(QFrame):
    """The list behind the picker."""

    model_chosen = Signal(str, str)
    refresh_requested = Signal()
    connect_requested = Signal()

    def __init__(self, themes: ThemeSource, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self._groups: Sequence[ModelsOfServer] = ()
        self._current = ("", "")
        self._search = QLineEdit(placeholderText=self.tr("Search, or type a model id"), clearButtonEnabled=True)
        self._rows = ModelRows(self)
        self._list = QListView()
        self._list.setModel(self._rows)
        self._list.setItemDelegate(RowDelegate(themes, self._list))
        self._refresh = IconButton(themes, "refresh", self.tr("Refresh models"))
        self._connect_button = button(self.tr("Connect a model…"), self._connect, "link")
        self._build()
        self._search.textChanged.connect(self._narrow)
        self._search.installEventFilter(self)
        self._list.clicked.connect(self._choose)
        self._list.activated.connect(self._choose)
        self._refresh.clicked.connect(self.refresh_requested)

    def show_models(self, groups: Sequence[ModelsOfServer], current: tuple[str, str]) -> None:
        """Another set of models, or another one in use."""
        self._groups, self._current = groups, current
        self._narrow(self._search.text())

    def open_at(self, place: QPoint) -> None:
        """Show with an empty search."""
        self.setLayoutDirection(QGuiApplication.layoutDirection())
        self._search.clear()
        self._narrow("")
        self.move(place)
        self.show()
        self._search.setFocus()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Arrow keys and Enter in the search field work the list."""
        if watched is self._search and isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            if event.key() in {Qt.Key.Key_Down, Qt.Key.Key_Up}:
                self._step(1 if event.key() == Qt.Key.Key_Down else -1)
                return True
            if event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
                self._choose(self._list.currentIndex())
                return True
        return super().eventFilter(watched, event)

    def _narrow(self, typed: str) -> None:
        self._rows.show_matching(self._groups, typed, self._current)
        row = self._rows.index_of(*self._current)
        self._go_to(row if row >= 0 and not typed else self._rows.next_choosable(-1, 1))

    def _step(self, step: int) -> None:
        row = self._rows.next_choosable(self._list.currentIndex().row(), step)
        if row >= 0:
            self._go_to(row)

    def _go_to(self, row: int) -> None:
        self._list.setCurrentIndex(self._rows.index(row))

    def _choose(self, index: QModelIndex) -> None:
        if not index.isValid() or not self._rows.row(index.row()).model_id:
            return
        row = self._rows.row(index.row())
        self.hide()
        self.model_chosen.emit(row.endpoint_id, row.model_id)

    def _connect(self) -> None:
        self.hide()
        self.connect_requested.emit()

    def _build(self) -> None:
        self.setProperty("kind", "popup")
        self.setAccessibleName(self.tr("Models"))
        self._search.setAccessibleName(self.tr("Search models"))
        self._list.setAccessibleName(self.tr("Models"))
        self._list.setMouseTracking(True)
        self._list.setEditTriggers(QListView.EditTrigger.NoEditTriggers)
        foot = QHBoxLayout()
        foot.addWidget(self._connect_button)
        foot.addStretch(1)
        foot.addWidget(self._refresh)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(SPACE_S, SPACE_S, SPACE_S, SPACE_S)
        layout.setSpacing(SPACE_XS)
        layout.addWidget(self._search)
        layout.addWidget(self._list, 1)
        layout.addWidget(line())
        layout.addLayout(foot)
