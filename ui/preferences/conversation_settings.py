"""The dialog for the parameters of one conversation: system prompt, temperature, top-p, maximum tokens."""

from typing import Any

from pydantic import ValidationError
from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QDialog, QLineEdit, QPlainTextEdit, QWidget

from desktop_agent.types.providers import ConversationParameters
from ui.preferences.forms import ValidatedForm
from ui.style.boxes import vbox
from ui.style.controls import button, label
from ui.style.layouts import FlowRows, ScrollColumn
from ui.style.theme import SPACE_L, SPACE_M, SPACE_S

_DIALOG_WIDTH = 520
_PROMPT_LINES = 6


class ConversationSettingsDialog(QDialog):
    """Window-modal, shown with `open()`. An empty field is a parameter that is not sent."""

    saved = Signal(object)
    """The ConversationParameters."""

    def __init__(self, parameters: ConversationParameters, instructions: str, parent: QWidget | None = None) -> None:
        """`instructions` of the settings apply where the conversation has none of its own."""
        super().__init__(parent)
        self._form = ValidatedForm()
        self._prompt = QPlainTextEdit(tabChangesFocus=True)
        self._temperature, self._top_p, self._max_tokens = QLineEdit(), QLineEdit(), QLineEdit()
        self._build(instructions)
        self._show_parameters(parameters)

    def _show_parameters(self, parameters: ConversationParameters) -> None:
        self._prompt.setPlainText(parameters.system_prompt or "")
        numbers = (parameters.temperature, parameters.top_p, parameters.max_tokens)
        for field, value in zip((self._temperature, self._top_p, self._max_tokens), numbers, strict=True):
            field.setText("" if value is None else str(value))

    def _raw_values(self) -> dict[str, Any]:
        prompt = self._prompt.toPlainText()
        return {
            "system_prompt": prompt if prompt.strip() else None,
            "temperature": self._temperature.text().strip().replace(",", ".") or None,
            "top_p": self._top_p.text().strip().replace(",", ".") or None,
            "max_tokens": self._max_tokens.text().strip() or None,
        }

    def _error_for(self, name: str, sentence: str) -> str:
        try:
            ConversationParameters.model_validate({name: self._raw_values()[name]})
        except ValidationError:
            return sentence
        return ""

    def _save(self) -> None:
        if not self._form.show_errors():
            self.accept()
            self.saved.emit(ConversationParameters.model_validate(self._raw_values()))

    def _build(self, instructions: str) -> None:
        title = self.tr("Conversation settings")
        self.setWindowTitle(title)
        self.setAccessibleName(title)
        self.setWindowModality(Qt.WindowModality.WindowModal)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._prompt.setPlaceholderText(instructions or self.tr("No system prompt"))
        self._prompt.setFixedHeight(self._prompt.fontMetrics().lineSpacing() * _PROMPT_LINES)
        for field in (self._temperature, self._top_p, self._max_tokens):
            field.setPlaceholderText(self.tr("The server's default"))
        self._add_fields()
        scrolled = ScrollColumn(SPACE_M, trailing=SPACE_S)
        scrolled.column.addWidget(self._form)
        scrolled.column.addStretch(1)
        save = button(self.tr("Save"), self._save, "primary")
        save.setDefault(True)
        defaults = button(self.tr("Use defaults"), lambda: self._show_parameters(ConversationParameters()), "quiet")
        foot = FlowRows((defaults, button(self.tr("Cancel"), self.reject), save), trailing=True, apart=defaults)
        layout = vbox(label(title, "heading", wrap=True), parent=self, spacing=SPACE_M, margins=SPACE_L)
        words = self.tr("They hold for this conversation, from the next message on.")
        layout.addWidget(label(words, "muted", wrap=True))
        layout.addWidget(scrolled, 1)
        layout.addWidget(foot)
        # As high as all fields, up to the screen.
        fields = self._form.heightForWidth(_DIALOG_WIDTH - 2 * SPACE_L)
        wanted = layout.sizeHint().height() - scrolled.sizeHint().height() + fields + SPACE_M
        screen = self.screen().availableSize()
        self.resize(min(_DIALOG_WIDTH, screen.width()), min(wanted, screen.height() - 2 * SPACE_L))

    def _add_fields(self) -> None:
        number = self.tr("This is not a number from 0 to {0}. Write one such as {1}, or leave it empty.")
        count = self.tr("This is not a whole number above 0. Write one such as 4096, or leave it empty.")
        self._form.add(
            self.tr("System prompt"),
            self._prompt,
            note=self.tr("What the model is told before everything else. Empty: the instructions of the settings."),
        )
        self._form.add(
            self.tr("Temperature"),
            self._temperature,
            lambda: self._error_for("temperature", number.format("2", "0.7")),
            note=self.tr("From 0, the most predictable, to 2, the most varied."),
        )
        self._form.add(
            self.tr("Top-p"),
            self._top_p,
            lambda: self._error_for("top_p", number.format("1", "0.9")),
            note=self.tr("Only the likeliest words that together reach this share, from 0 to 1."),
        )
        self._form.add(
            self.tr("Maximum tokens"),
            self._max_tokens,
            lambda: self._error_for("max_tokens", count),
            note=self.tr("The longest answer. One that reaches it is cut, and can be continued."),
        )
