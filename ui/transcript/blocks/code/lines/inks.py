"""How words of code and of terminal output are drawn in one look."""

from PySide6.QtGui import QColor, QFont, QTextCharFormat

from ui.transcript.blocks.colouring.palette import SYNTAX_COLORS
from ui.transcript.look import RenderStyle

BOLD = "bold"
"""A kind by itself, or before the name of a colour and a space."""

# Each reaches 4.5:1 on the code background of its theme, and no two are taken for each other.
TERMINAL_COLORS = {
    False: {
        "red": "#b3261e",
        "green": "#266e15",
        "yellow": "#7a5200",
        "blue": "#1a55b8",
        "magenta": "#8a2fa8",
        "cyan": "#006e88",
        "grey": "#6a6a63",
    },
    True: {
        "red": "#ff8f86",
        "green": "#84d865",
        "yellow": "#f2c86a",
        "blue": "#86aaff",
        "magenta": "#f19af0",
        "cyan": "#48d0f2",
        "grey": "#8f9299",
    },
}


class WordFormats(dict[str, QTextCharFormat]):
    """A format for each kind of word."""

    def __init__(self, style: RenderStyle) -> None:
        super().__init__()
        self._colors = {**SYNTAX_COLORS[style.theme.is_dark], **TERMINAL_COLORS[style.theme.is_dark]}

    def __missing__(self, kind: str) -> QTextCharFormat:
        made = self[kind] = QTextCharFormat()
        weight, _, color = kind.rpartition(" ")
        if BOLD in {weight, color}:
            made.setFontWeight(QFont.Weight.Bold)
        if found := self._colors.get(color):
            made.setForeground(QColor(found))
        return made
