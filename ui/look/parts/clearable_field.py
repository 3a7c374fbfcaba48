"""A field with a button that empties it."""

from PySide6.QtWidgets import QLineEdit, QWidget

from ui.look.icons import ICON_SIZE, themed_icon
from ui.look.theme import ThemeSource


class ClearableField(QLineEdit):
    """The button is there while there is something to clear. Qt's own draws a picture that no theme reaches."""

    def __init__(self, themes: ThemeSource, placeholder: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._themes = themes
        self.setPlaceholderText(placeholder)
        self._clear = self.addAction(
            themed_icon("close", themes.theme, ICON_SIZE), QLineEdit.ActionPosition.TrailingPosition
        )
        self._clear.setText(self.tr("Clear"))
        self._clear.setVisible(False)
        self._clear.triggered.connect(self.clear)
        self.textChanged.connect(self._show_button)
        themes.changed.connect(self._apply_theme)

    def _show_button(self, text: str) -> None:
        self._clear.setVisible(bool(text))

    def _apply_theme(self) -> None:
        self._clear.setIcon(themed_icon("close", self._themes.theme, ICON_SIZE))
