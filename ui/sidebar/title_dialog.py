"""Renaming the open conversation where no row of the list shows its title, and why it cannot be renamed."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QDialog, QLineEdit, QWidget

from desktop_agent.types.errors import Sentence
from ui.bridge.conversation import OpenConversation
from ui.bridge.side_conversation import ConversationSource
from ui.style.controls import button
from ui.style.layouts import FlowRows
from ui.style.theme import ThemeSource
from ui.style.widgets import lay_out_dialog

_WIDTH = 420
"""Pixels."""


def refuse_rename(conversation: OpenConversation) -> Sentence | None:
    """Return why a conversation cannot have another title now, or None."""
    if conversation.is_found:
        return Sentence("This conversation of another program is only read here. Continue it here, then rename it.")
    if not conversation.is_stored or (conversation.is_in_memory and conversation.is_empty):
        return Sentence("There is nothing in this conversation yet. Send a message first, then rename it.")
    return conversation.held_by


def ask_title(themes: ThemeSource, conversation: OpenConversation, source: ConversationSource, parent: QWidget) -> None:
    """Ask for the title of a conversation that may be renamed, and set it."""
    dialog, conversation_id = TitleDialog(themes, conversation.title, parent), conversation.id

    def change(title: str) -> None:
        source.change(conversation_id, title=title, title_is_automatic=False)

    dialog.chosen.connect(change)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.open()


class TitleDialog(QDialog):
    """Asks for another title. Not modal."""

    chosen = Signal(str)
    """Another title, which is not blank."""

    def __init__(self, themes: ThemeSource, title: str, parent: QWidget) -> None:
        super().__init__(parent)
        self._before = title
        self._title = QLineEdit(title)
        self._title.setAccessibleName(self.tr("Title"))
        self._title.selectAll()
        self.setMinimumWidth(min(themes.scaled(_WIDTH), self.screen().availableSize().width()))
        self._accept = button(self.tr("Rename"), self._choose, "primary")
        self._accept.setDefault(True)
        buttons = FlowRows((button(self.tr("Cancel"), self.reject), self._accept), trailing=True)
        lay_out_dialog(self, self.tr("Rename"), self._title, buttons)
        self._title.textChanged.connect(self._refresh)
        self._refresh()

    def _refresh(self) -> None:
        self._accept.setEnabled(bool(self._title.text().strip()))

    def _choose(self) -> None:
        if (title := self._title.text().strip()) != self._before:
            self.chosen.emit(title)
        self.accept()
