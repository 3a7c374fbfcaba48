"""The dialog for the parameters of one conversation: system prompt, temperature, top-p, maximum tokens."""

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QApplication, QDialog, QPlainTextEdit, QWidget

from desktop_agent.types.providers import ConversationParameters
from ui.forms.form import Form
from ui.forms.model_fields import add_model_fields
from ui.style.controls import button, label
from ui.style.layouts import FlowRows, ScrollColumn
from ui.style.text import join_names
from ui.style.theme import SPACE_L, SPACE_M, SPACE_S
from ui.style.widgets import lay_out_dialog

_DIALOG_WIDTH = 520
_FIELDS = ("system_prompt", "temperature", "top_p", "max_tokens")


class ConversationSettingsDialog(QDialog):
    """Window-modal, shown with `open()`. An empty field is a parameter that is not sent."""

    saved = Signal(object)
    """The ConversationParameters."""

    def __init__(
        self, conversation_id: str, parameters: ConversationParameters, instructions: str, parent: QWidget | None = None
    ) -> None:
        """`instructions` of the settings apply if the conversation has none of its own."""
        super().__init__(parent)
        self.conversation_id = conversation_id
        self._form = Form()
        add_model_fields(self._form, ConversationParameters, _FIELDS)
        prompt = self._form.rows["system_prompt"].control.widget
        if isinstance(prompt, QPlainTextEdit):
            prompt.setPlaceholderText(instructions or self.tr("No system prompt"))
        self._form.show_values(dict(parameters))
        self._build()

    @classmethod
    def raise_open(cls, conversation_id: str) -> bool:
        """Raise the dialog of this conversation, if a window has one open: of two, the last Save would win."""
        for dialog in QApplication.topLevelWidgets():
            if isinstance(dialog, cls) and dialog.conversation_id == conversation_id and dialog.isVisible():
                window = dialog.parentWidget() or dialog
                window.setWindowState(window.windowState() & ~Qt.WindowState.WindowMinimized)
                window.raise_()
                dialog.raise_()
                dialog.activateWindow()
                return True
        return False

    @Slot(str, list)
    def show_folders(self, conversation_id: str, names: Sequence[str]) -> None:
        """Show which folders add instructions to those of the conversation, from the top down."""
        if conversation_id == self.conversation_id and names:
            words = self.tr("The instructions of its folders are added: {0}")
            self._form.rows["system_prompt"].show_note(words.format(join_names(names)))
            self._fit()

    def _save(self) -> None:
        if not self._form.show_errors():
            self.accept()
            self.saved.emit(ConversationParameters.model_validate(self._form.values))

    def _show_defaults(self) -> None:
        self._form.show_values(dict(ConversationParameters()))

    def _build(self) -> None:
        self.setWindowModality(Qt.WindowModality.WindowModal)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._scrolled = scrolled = ScrollColumn(SPACE_M, trailing=SPACE_S)
        scrolled.column.addWidget(self._form)
        scrolled.column.addStretch(1)
        save = button(self.tr("Save"), self._save, "primary")
        save.setDefault(True)
        defaults = button(self.tr("Use defaults"), self._show_defaults, "quiet")
        foot = FlowRows((defaults, button(self.tr("Cancel"), self.reject), save), trailing=True, apart=defaults)
        words = label(
            self.tr("These settings apply to this conversation, from the next message on."), "muted", wrap=True
        )
        lay_out_dialog(self, self.tr("Conversation settings"), words, scrolled, foot, grow=scrolled)
        self._fit()

    def _fit(self) -> None:
        """Make the dialog as high as all fields, within the screen."""
        fields = self._form.heightForWidth(_DIALOG_WIDTH - 2 * SPACE_L)
        height = self.sizeHint().height() - self._scrolled.sizeHint().height() + fields + SPACE_M
        screen = self.screen().availableSize()
        self.resize(min(_DIALOG_WIDTH, screen.width()), min(height, screen.height() - 2 * SPACE_L))
