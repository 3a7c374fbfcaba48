"""What a server wrote, set apart from the program's own words; and its names inside our sentences."""

from PySide6.QtWidgets import QFrame, QVBoxLayout, QWidget

from ui.look.controls import label
from ui.look.theme import SPACE_M, SPACE_S
from ui.look.visible_text import show_hidden

MAX_NAME_LENGTH = 80
# " and all of the kinds of “ and «.
_QUOTATION_MARKS = str.maketrans(dict.fromkeys('"\u201c\u201d\u201e\u201f\xab\xbb\u2039\u203a\uff02', "'"))


def quote_name(name: str) -> str:
    """A name from outside for a sentence of ours: one short line, which cannot end our quotation marks."""
    flat = " ".join(show_hidden(name).translate(_QUOTATION_MARKS).split())
    return flat if len(flat) <= MAX_NAME_LENGTH else flat[: MAX_NAME_LENGTH - 1] + "…"


class ServerTextFrame(QFrame):
    """A frame with a line of ours at its top that says whose words stand in it."""

    def __init__(self, whose: str, spacing: int = SPACE_S, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("kind", "card")
        self.setAccessibleName(whose)
        self.column = QVBoxLayout(self)
        self.column.setContentsMargins(SPACE_M, SPACE_S, SPACE_M, SPACE_M)
        self.column.setSpacing(spacing)
        self.column.addWidget(label(whose, "small", wrap=True))
