"""The composer while an earlier message is edited in it: the draft is set aside meanwhile."""

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame

from ui.composer.attachment_chips import Attachment
from ui.composer.attachment_items import AttachmentFetch
from ui.composer.composer import Composer, EditedMessage
from ui.style.boxes import hbox
from ui.style.controls import IconButton, announce, label, set_keys_tooltip
from ui.style.theme import SPACE_S, ThemeSource


class PromptEdit(QFrame):
    """The bar above the editor while an earlier message is edited. `ended`: editing has ended, sent or not."""

    ended = Signal()

    def __init__(self, themes: ThemeSource, composer: Composer) -> None:
        super().__init__()
        self._composer = composer
        self._fetches: Sequence[AttachmentFetch] = ()
        self.message_id = ""
        """The message that is being edited, or ""."""
        words = self.tr("Editing an earlier message")
        self._words = label(words, kind="small", wrap=True)
        cancel = IconButton(themes, "close", self.tr("Cancel editing"))
        set_keys_tooltip(cancel, self.tr("Cancel editing"), "Esc")
        cancel.clicked.connect(self.cancel)
        self.setAccessibleName(words)
        hbox(self._words, cancel, parent=self, margins=(SPACE_S, 0, 0, 0), grow=self._words)
        composer.frame.column.insertWidget(0, self)
        composer.escape_pressed.connect(self.cancel)
        self.hide()

    def begin(self, message_id: str, text: str, attached: Sequence[Attachment]) -> None:
        """Put the message into the composer in place of the draft; changes of another one go behind the draft."""
        self.leave()
        composer = self._composer
        self._fetches = composer.attachments.take_pending()
        self.message_id = message_id
        draft = composer.written()
        composer.set_draft(text, attached, is_saved=False)
        composer.edited = EditedMessage(composer.written(), draft)
        self.show()
        composer.editor.setFocus()
        announce(self, self.accessibleName())

    def take(self) -> str:
        """Return the id of the edited message, which is being sent, or ""; the draft comes back."""
        message_id = self.message_id
        self._end(keep_changes=False)
        return message_id

    def cancel(self) -> None:
        """Drop the changes; the draft comes back."""
        self._end(keep_changes=False)

    def leave(self) -> None:
        """Stop editing without a decision: the draft comes back, followed by the changed message."""
        self._end(keep_changes=True)

    def _end(self, *, keep_changes: bool) -> None:
        composer = self._composer
        if composer.edited is None:
            return
        draft = composer.draft() if keep_changes else composer.edited.draft
        self.message_id, composer.edited = "", None
        composer.set_draft(*draft, is_saved=False)
        composer.attachments.add_fetches(self._fetches)
        self.hide()
        self.ended.emit()
