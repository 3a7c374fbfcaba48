"""What an MCP server says about its own tool: named as its words, and set apart from ours."""

from PySide6.QtWidgets import QFrame, QPlainTextEdit, QVBoxLayout, QWidget

from ui.approval.parts.fitted_text import AutoHeightText
from ui.approval.parts.middle import Shrinkable
from ui.approval.parts.wrapped_text import WrappingLabel
from ui.approval.visible_text import fold_lines
from ui.look.fonts import body_font
from ui.look.theme import SPACE_XS, ThemeSource
from ui.look.visible_text import show_hidden

_DESCRIPTION_ROWS = (2, 4)


class ServerDescription(QFrame):
    """Hidden for tools that no server offers."""

    def __init__(self, themes: ThemeSource, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._themes = themes
        self._intro = WrappingLabel(kind="small")
        self._text = AutoHeightText(*_DESCRIPTION_ROWS)
        self._text.setAccessibleName(self.tr("The server's own words"))
        self._text.setReadOnly(True)
        self._text.setUndoRedoEnabled(False)
        self._text.setLineWrapMode(QPlainTextEdit.LineWrapMode.WidgetWidth)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, SPACE_XS, 0, 0)
        layout.setSpacing(SPACE_XS)
        layout.addWidget(self._intro)
        layout.addWidget(self._text)
        themes.changed.connect(self._apply_theme)
        self._apply_theme()
        self.hide()

    @property
    def shrinkable(self) -> Shrinkable:
        """What can be lower."""
        return self._text

    @property
    def accessible_text(self) -> str:
        """All that it says, or nothing."""
        return "" if self.isHidden() else f"{self._intro.text()} {self._text.toPlainText()}"

    def show_description(self, server: str, says: str) -> None:
        """`says` are the words of this server; without a server there are none."""
        self.setVisible(bool(server))
        words = self.tr("A tool of the server “{0}”, which says about it (nobody checked this):")
        self._intro.setText(words.format(show_hidden(server)))
        self._text.setPlainText(fold_lines(show_hidden(says)))

    def _apply_theme(self) -> None:
        self._text.setFont(body_font(self._themes.theme, self._themes.zoom, 0.92))
