"""What an MCP server says about its own tool: named as its words, and set apart from ours."""

from PySide6.QtWidgets import QFrame, QPlainTextEdit, QVBoxLayout, QWidget

from ui.approval.parts.fitted_text import FittedText
from ui.approval.parts.middle import GivesWay
from ui.approval.parts.wrapped_text import WrappedText
from ui.approval.visible_text import folded
from ui.look.fonts import body_font
from ui.look.theme import SPACE_XS, ThemeSource
from ui.look.visible_text import with_hidden_shown

_ROWS = (2, 4)


class ServerWords(QFrame):
    """Hidden for tools that no server offers."""

    def __init__(self, themes: ThemeSource, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._themes = themes
        self._who = WrappedText(kind="small")
        self._text = FittedText(*_ROWS)
        self._text.setAccessibleName(self.tr("The server's own words"))
        self._text.setReadOnly(True)
        self._text.setUndoRedoEnabled(False)
        self._text.setLineWrapMode(QPlainTextEdit.LineWrapMode.WidgetWidth)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, SPACE_XS, 0, 0)
        layout.setSpacing(SPACE_XS)
        layout.addWidget(self._who)
        layout.addWidget(self._text)
        themes.changed.connect(self._dress)
        self._dress()
        self.hide()

    @property
    def giver(self) -> GivesWay:
        """What can be lower."""
        return self._text

    @property
    def words(self) -> str:
        """All that it says, or nothing."""
        return "" if self.isHidden() else f"{self._who.text()} {self._text.toPlainText()}"

    def show_words(self, server: str, says: str) -> None:
        """`says` are the words of this server; without a server there are none."""
        self.setVisible(bool(server))
        words = self.tr("A tool of the server “{0}”, which says about it (nobody checked this):")
        self._who.setText(words.format(with_hidden_shown(server)))
        self._text.setPlainText(folded(with_hidden_shown(says)))

    def _dress(self) -> None:
        self._text.setFont(body_font(self._themes.theme, self._themes.zoom, 0.92))
