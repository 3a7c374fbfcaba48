"""The model picker: a button with the model in use, and a list to search in."""

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QSizePolicy, QToolButton, QWidget

from ui.composer.model_rows import ModelRow, ServerModels, model_rows
from ui.look.icons import themed_icon
from ui.look.parts.search_popup import SearchPopup
from ui.look.sentences import escape_mnemonics, native_shortcut, plain_tooltip
from ui.look.theme import ThemeSource

POPUP_SIZE = QSize(440, 460)
MAX_NAME_LENGTH = 40
ARROW_SIZE = 14
"""Pixels at 100 % zoom."""
MIN_NAME_LENGTH = 8
"""Letters of a name that are left where there is no room for all of it."""


class ModelPicker(QToolButton):
    """Shows and changes the model. A model id that no server lists can be typed."""

    model_chosen = Signal(str, str)
    """Endpoint id and model id."""
    refresh_requested = Signal()
    connect_requested = Signal()

    def __init__(self, themes: ThemeSource, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._themes = themes
        self._groups: Sequence[ServerModels] = ()
        self._current = ("", "")
        words = {
            "name": self.tr("Models"),
            "refresh": self.tr("Refresh models"),
            "link": self.tr("Connect a model…"),
        }
        self._popup = SearchPopup(themes, self._search, POPUP_SIZE, self, **words)
        self._popup.set_label(self.tr("Search models"), self.tr("Search, or type a model id"))
        self.setAccessibleName(self.tr("Model"))
        self.setProperty("kind", "quiet")
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.clicked.connect(self.open_list)
        self._popup.chosen.connect(self._on_chosen)
        self._popup.refresh_requested.connect(self.refresh_requested)
        self._popup.link_followed.connect(self.connect_requested)
        themes.changed.connect(self._apply_theme)
        self._apply_theme()
        self._update_text()

    def minimumSizeHint(self) -> QSize:
        """With a name that is cut."""
        letters = self.fontMetrics()
        more = letters.horizontalAdvance(self.text()) - MIN_NAME_LENGTH * letters.averageCharWidth()
        return self.sizeHint() - QSize(max(more, 0), 0)

    def set_models(self, groups: Sequence[ServerModels]) -> None:
        """What there is to choose from."""
        self._groups = groups
        self._popup.fill()
        self._update_text()

    def set_current(self, endpoint_id: str | None, model_id: str | None) -> None:
        """The model in use, or none."""
        self._current = (endpoint_id or "", model_id or "")
        self._popup.fill()
        self._update_text()

    def open_list(self) -> None:
        """Show the list above the button, or below where there is no room above."""
        self._popup.show_over(self)

    def _search(self, typed: str) -> Sequence[ModelRow]:
        return model_rows(self._groups, typed, self._current)

    def _on_chosen(self, row: ModelRow) -> None:
        self.model_chosen.emit(row.endpoint_id, row.model_id)

    def _update_text(self) -> None:
        endpoint_id, model_id = self._current
        listed = (model for group in self._groups if group.endpoint.id == endpoint_id for model in group.models)
        title = next((model.title or model.id for model in listed if model.id == model_id), model_id)
        words = title or self.tr("Choose a model")
        short = words if len(words) <= MAX_NAME_LENGTH else words[: MAX_NAME_LENGTH - 1] + "…"
        self.setText(escape_mnemonics(short))
        self.setAccessibleDescription(words)
        self.setToolTip(plain_tooltip(f"{words} ({native_shortcut('Ctrl+M')})"))

    def _apply_theme(self) -> None:
        # The arrow belongs behind the name; Qt puts icons in front, in reading direction.
        ltr = QGuiApplication.layoutDirection() == Qt.LayoutDirection.LeftToRight
        self.setLayoutDirection(Qt.LayoutDirection.RightToLeft if ltr else Qt.LayoutDirection.LeftToRight)
        side = round(ARROW_SIZE * self._themes.zoom / 100)
        self.setIcon(themed_icon("chevron-down", self._themes.theme, side))
        self.setIconSize(QSize(side, side))
