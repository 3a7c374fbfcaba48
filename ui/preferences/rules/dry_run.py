"""A call that is tried: it is written down and judged, and never made."""

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLineEdit, QVBoxLayout, QWidget

from desktop_agent.vocabulary.errors import Sentence
from ui.look.controls import ComboBox, announce, button, label, set_style_property
from ui.look.fonts import mono_font
from ui.look.parts.flow_rows import FlowRows
from ui.look.parts.json_text import arguments_from_json
from ui.look.sentences import translate_sentence
from ui.look.theme import SPACE_S, ThemeSource
from ui.look.visible_text import show_hidden

_MIN_ARGUMENTS_WIDTH = 180
"""Pixels of the arguments, at least."""


class PermissionDryRun(QWidget):
    """`wanted` carries the tool's name and the arguments; answer with `show_verdict`."""

    requested = Signal(str, object)

    def __init__(self, themes: ThemeSource, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._themes = themes
        self._tools = ComboBox()
        self._tools.setAccessibleName(self.tr("Tool"))
        self._arguments = QLineEdit("{}")
        self._arguments.setMinimumWidth(_MIN_ARGUMENTS_WIDTH)
        self._arguments.setAccessibleName(self.tr("Arguments as JSON"))
        self._arguments.returnPressed.connect(self._request_verdict)
        self._check = button(self.tr("Check"), self._request_verdict)
        self._answer = label(wrap=True)
        words = self.tr("Choose a tool and write its arguments as JSON to see what would become of the call.")
        self._help = label(words + " " + self.tr("Nothing is run."), "muted", wrap=True)
        self._arguments.setAccessibleDescription(self._help.text())
        self._none = label(self.tr("Open a conversation with tools to try its rules."), "muted", wrap=True)
        self._row = FlowRows((self._tools, self._arguments, self._check), wide=self._arguments)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_S)
        for each in (self._help, self._none, self._row, self._answer):
            layout.addWidget(each)
        themes.changed.connect(self._apply_theme)
        self._apply_theme()
        self.show_tools(())

    def show_tools(self, names: Sequence[str]) -> None:
        """The tools of the conversation that is open."""
        chosen = self._tools.currentText()
        self._tools.clear()
        self._tools.addItems(list(names))
        self._tools.setCurrentIndex(max(0, self._tools.findText(chosen)))
        for each in (self._help, self._row):
            each.setVisible(bool(names))
        self._none.setVisible(not names)
        self._answer.setVisible(bool(names and self._answer.text()))

    def show_verdict(self, sentence: Sentence) -> None:
        """What would become of the call."""
        self._show_answer(show_hidden(translate_sentence(sentence)), "")

    def _request_verdict(self) -> None:
        arguments, problem = arguments_from_json(self._arguments.text())
        if arguments is None:
            self._show_answer(problem, "error")
        elif self._tools.currentText():
            self.requested.emit(self._tools.currentText(), arguments)

    def _show_answer(self, words: str, kind: str) -> None:
        self._answer.setText(words)
        self._answer.show()
        set_style_property(self._answer, "kind", kind)
        announce(self._answer, words)

    def _apply_theme(self) -> None:
        self._arguments.setFont(mono_font(self._themes.theme, self._themes.zoom))
