"""Tells the composer when what is written does not fit what the model can read, before it is sent."""

from collections.abc import Sequence

from PySide6.QtCore import QObject, Signal

from ui.bridge.conversation import OpenConversation
from ui.bridge.servers import ModelServers
from ui.composer.composer import Composer
from ui.composer.offers.attached import PendingResource
from ui.composer.offers.chip_row import Attachment, PastedText
from ui.composer.overflow_notice import ContextOverflowNotice
from ui.composer.pictures import PendingPicture


class ContextOverflowCheck(QObject):
    """By an estimate: so it warns once, and what is sent in spite of that is sent."""

    summary_requested = Signal()
    model_requested = Signal()

    def __init__(self, composer: Composer, servers: ModelServers, parent: QObject) -> None:
        super().__init__(parent)
        self._composer = composer
        self._servers = servers
        self._conversation: OpenConversation | None = None
        self._notice = ContextOverflowNotice()
        self._warned_about: tuple[str, Sequence[Attachment]] | None = None
        composer.add_notice(self._notice)
        self._notice.summary_requested.connect(self.summary_requested)
        self._notice.model_requested.connect(self.model_requested)
        composer.ask_before_sending(self.may_send)
        composer.draft_changed.connect(self.refresh)
        composer.draft_replaced.connect(self.refresh)
        servers.models_changed.connect(self.refresh)

    def show(self, conversation: OpenConversation) -> None:
        """The conversation on the screen."""
        self._conversation = conversation
        for signal in (conversation.record_changed, conversation.usage_changed, conversation.finished):
            signal.connect(self.refresh)
        self.refresh()

    def refresh(self) -> None:
        """Look at the draft again."""
        if self._composer.attachments.is_preparing:
            return
        draft = self._composer.draft()
        self._check(*draft)
        self._warned_about = draft if self._notice.is_shown else None

    def may_send(self, text: str, attached: Sequence[Attachment]) -> bool:
        """Whether it fits, as far as is known, or the person was told that just this does not.

        Else they are told now.
        """
        if self._warned_about == (text, attached):
            return True
        self._check(text, attached)
        self._warned_about = (text, attached) if self._notice.is_shown else None
        return self._warned_about is None

    def _check(self, text: str, attached: Sequence[Attachment]) -> None:
        conversation = self._conversation
        if conversation is None:
            return
        window = self._servers.capabilities(conversation.endpoint_id, conversation.model).context_window
        over = 0
        if window and (text or attached):
            texts = [each.text for each in attached if isinstance(each, PastedText | PendingResource)]
            pictures = sum(each.tokens for each in attached if isinstance(each, PendingPicture))
            over = conversation.context_tokens([text, *texts]) + pictures - window
        was_shown = self._notice.is_shown
        self._notice.show_overflow(over, window or 0, can_summarise=not conversation.is_empty)
        if self._notice.is_shown and not was_shown:
            self._composer.notice_shown.emit(self._notice)
