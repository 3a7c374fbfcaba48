"""A question over the window, with an answer to each of its buttons."""

from typing import Literal

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QDialog, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from ui.look.controls import button, label
from ui.look.icons import pixmap
from ui.look.parts.flow_rows import FlowRows
from ui.look.parts.scrolled_column import ScrollColumn
from ui.look.theme import SPACE_L, SPACE_M, ThemeSource

_QUESTION_WIDTH = 580
_QUESTION_ICON = 32
"""Pixels at 100 % zoom."""


class QuestionBox(QDialog):
    """It waits for nobody: show it with `open()`. Words that do not fit scroll, and buttons stand in rows.

    Qt's own message box goes beyond a small screen where text is large, and cuts the words of its buttons.
    """

    answered = Signal(str)
    """Which answer was given; "" where the question was closed without one."""

    def __init__(self, themes: ThemeSource, title: str, question: str, words: str, parent: QWidget) -> None:
        super().__init__(parent)
        self._themes = themes
        self._answer = ""
        self._buttons: list[QPushButton] = []
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(title)
        self.setAccessibleName(question)
        self.setAccessibleDescription(words)
        self._scroll = ScrollColumn(SPACE_M, trailing=SPACE_M)
        icon = QLabel()
        icon.setPixmap(pixmap("warning", themes.theme.warning, round(_QUESTION_ICON * themes.zoom / 100), 2))
        head = QHBoxLayout()
        head.setSpacing(SPACE_M)
        head.addWidget(icon, 0, Qt.AlignmentFlag.AlignTop)
        head.addWidget(label(question, "heading", wrap=True), 1)
        self._scroll.column.addLayout(head)
        self._scroll.column.addWidget(label(words, wrap=True))
        self._scroll.column.addStretch(1)
        self._scroll.setAccessibleName(question)
        self._scroll.verticalScrollBar().rangeChanged.connect(self._update_focus_policy)
        self.finished.connect(lambda: self.answered.emit(self._answer))

    def add_answer(self, text: str, answer: str, kind: Literal["", "primary", "danger"] = "") -> QPushButton:
        """Add a button. The first one has the focus: it is to lose nothing, like Escape."""
        made = button(text, lambda: self.answer_with(answer), kind)
        made.setAutoDefault(True)
        made.setDefault(not self._buttons)
        self._buttons.append(made)
        return made

    def answer_with(self, answer: str) -> None:
        """Answer it, as its button would."""
        self._answer = answer
        self.accept()

    def open(self) -> None:
        """Show it over its window, as large as its words, or as the screen has room."""
        layout = QVBoxLayout(self)
        layout.setContentsMargins(SPACE_L, SPACE_L, SPACE_L, SPACE_L)
        layout.setSpacing(SPACE_L)
        layout.addWidget(self._scroll, 1)
        buttons = FlowRows(self._buttons, trailing=True)
        layout.addWidget(buttons)
        room = self.screen().availableSize()
        width = min(round(_QUESTION_WIDTH * self._themes.zoom / 100), room.width())
        inside = width - 2 * SPACE_L
        wanted = self._scroll.column.heightForWidth(inside) + buttons.heightForWidth(inside)
        self.resize(width, min(wanted + 3 * SPACE_L, room.height() - 2 * SPACE_L))
        super().open()
        self._buttons[0].setFocus()

    def _update_focus_policy(self, _least: int, most: int) -> None:
        # By keys, too.
        self._scroll.setFocusPolicy(Qt.FocusPolicy.TabFocus if most > 0 else Qt.FocusPolicy.NoFocus)
