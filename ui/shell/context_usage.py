"""The use of the context window: the usage meter in the heading, and the warning before a message overflows it."""

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QObject, QSize, Qt, Signal
from PySide6.QtWidgets import QMenu, QSizePolicy

from desktop_agent.conversation.history import ConversationUsage
from desktop_agent.types.messages import AttachedText
from desktop_agent.types.provider_events import Usage
from ui.bridge.conversation import OpenConversation
from ui.bridge.model_servers import ModelServers
from ui.composer.attachment_chips import Attachment, PastedText
from ui.composer.attachment_items import PendingPicture
from ui.composer.composer import Composer
from ui.composer.notices import ContextOverflowNotice
from ui.style.controls import PushButton, open_menu_at
from ui.style.text import escape_mnemonics, format_count, format_dollars, format_number, plain_tooltip

_PADDING = 8


class UsageMeter(PushButton):
    """Shows how full the context is, the cached share, and the cost. Pressing it shows the details in a menu, which
    leads to the usage of all conversations.

    It shows the longest text that has room and is no wider than that: the rest of the row belongs to the title.
    """

    usage_requested = Signal()
    """Show the page of usage."""

    def __init__(self) -> None:
        super().__init__()
        self._variants: tuple[str, ...] = ("",)
        self._lines: list[str] = []
        self._room = 0
        self.setAccessibleName(self.tr("Tokens and cost"))
        self.setProperty("kind", "figure")
        self.setAutoDefault(False)
        # Not fixed in height: a row is no higher than its lowest fixed widget, and the buttons beside it would shrink.
        policy = QSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Preferred)
        # The heading is as high before the first answer as after it.
        policy.setRetainSizeWhenHidden(True)
        self.setSizePolicy(policy)
        self.clicked.connect(self._show_details)
        self.hide()

    def show_usage(self, last: Usage | None, spending: ConversationUsage, window: int | None) -> None:
        """Show the usage of the last answer; `window` is the context window in tokens, or None."""
        total = spending.total or Usage()
        context = last.total_tokens if last is not None else None
        share, cost = self._cache_share(total), self._cost(total, spending)
        long, short = self._context(context, window)
        variants = ((long, share, cost), (short, share, cost), (short, cost), (cost or short,))
        self._variants = tuple(" · ".join(filter(None, variant)) for variant in variants)
        self.setVisible(bool(self._variants[0]))
        details = self._details(last, total, window, cost)
        self._lines = details
        self.setAccessibleDescription("; ".join([self._variants[0], *details]))
        self.setToolTip(plain_tooltip("\n".join(details)))
        self._fit()

    def set_room(self, room: int) -> None:
        """Set the largest width in pixels."""
        if room != self._room:
            self._room = room
            self._fit()

    def sizeHint(self) -> QSize:
        return self._size(self.text())

    def minimumSizeHint(self) -> QSize:
        return self._size(self._variants[-1])

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.FontChange:
            self._fit()

    def _fit(self) -> None:
        fitting = (variant for variant in self._variants if self._size(variant).width() <= self._room)
        self.setText(next(fitting, self._variants[-1]))
        self.updateGeometry()

    def _size(self, text: str) -> QSize:
        self.ensurePolished()
        metrics = self.fontMetrics()
        return QSize(metrics.horizontalAdvance(text) + 2 * _PADDING + 2, metrics.height() + _PADDING)

    def _show_details(self) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.setAccessibleName(self.accessibleName())
        for line in self._lines:
            menu.addAction(escape_mnemonics(line)).setEnabled(False)
        menu.addSeparator()
        usage_action = menu.addAction(self.tr("Usage of all conversations"), self.usage_requested.emit)
        menu.setActiveAction(usage_action)
        open_menu_at(self, menu, self.height())

    def _context(self, tokens: int | None, window: int | None) -> tuple[str, str]:
        if tokens is None:
            return "", ""
        if window:
            long = self.tr("{0} of {1} tokens").format(format_number(tokens), format_number(window))
            return long, f"{format_count(tokens)} / {format_count(window)}"
        return self.tr("{0} tokens").format(format_number(tokens)), format_count(tokens)

    def _cache_share(self, total: Usage) -> str:
        if not total.cache_read_tokens or not total.input_tokens:
            return ""
        return self.tr("{0} % from cache").format(round(100 * min(1.0, total.cache_read_tokens / total.input_tokens)))

    def _cost(self, total: Usage, spending: ConversationUsage) -> str:
        if total.cost is None:
            return ""
        return format_dollars(total.cost) if spending.is_complete else f"≥ {format_dollars(total.cost)}"

    def _details(self, last: Usage | None, total: Usage, window: int | None, cost: str) -> list[str]:
        lines: list[str] = []
        if last is not None and last.total_tokens is not None and window:
            percent = round(100 * last.total_tokens / window)
            lines.append(self.tr("Context: {0} % of {1} tokens").format(percent, format_number(window)))
        for words, tokens in (
            (self.tr("Input: {0} tokens"), total.input_tokens),
            (self.tr("Output: {0} tokens"), total.output_tokens),
            (self.tr("Reasoning, part of the output: {0} tokens"), total.reasoning_tokens),
            (self.tr("Read from cache: {0} tokens"), total.cache_read_tokens),
            (self.tr("Written to cache: {0} tokens"), total.cache_write_tokens),
        ):
            if tokens is not None:
                lines.append(words.format(format_number(tokens)))
        if not cost:
            lines.append(self.tr("Cost: not known"))
        elif cost.startswith("≥"):
            lines.append(self.tr("Cost: {0}; that of some answers is not known").format(cost))
        else:
            lines.append(self.tr("Cost: {0}").format(cost))
        return lines


class ContextOverflowCheck(QObject):
    """Compares an estimate with the context window: it warns once, and a second attempt is sent."""

    def __init__(self, composer: Composer, servers: ModelServers, parent: QObject) -> None:
        super().__init__(parent)
        self._composer = composer
        self._servers = servers
        self._conversation: OpenConversation | None = None
        self.notice = ContextOverflowNotice()
        self._warned_about: tuple[str, Sequence[Attachment]] | None = None
        composer.add_notice(self.notice)
        composer.checks.append(self.may_send)
        composer.draft_timer.timeout.connect(self.refresh)
        composer.draft_replaced.connect(self.refresh)
        servers.models_changed.connect(self.refresh)

    def show(self, conversation: OpenConversation) -> None:
        """Check the drafts of this conversation."""
        self._conversation = conversation
        for signal in (conversation.record_changed, conversation.usage_changed, conversation.finished):
            signal.connect(self.refresh)
        self.refresh()

    def refresh(self) -> None:
        """Check the draft again."""
        if self._composer.attachments.is_preparing:
            return
        draft = self._composer.written()
        self._check(*draft)
        self._warned_about = None if self.notice.isHidden() else draft

    def may_send(self, text: str, attached: Sequence[Attachment]) -> bool:
        """Return whether the message fits, as far as is known, or the person was warned about it before.

        Otherwise warn now.
        """
        if self._warned_about == (text, attached):
            return True
        self._check(text, attached)
        self._warned_about = None if self.notice.isHidden() else (text, attached)
        return self._warned_about is None

    def _check(self, text: str, attached: Sequence[Attachment]) -> None:
        conversation = self._conversation
        if conversation is None:
            return
        window = self._servers.capabilities(conversation.endpoint_id, conversation.model).context_window
        overflow = 0
        if window and (text or attached):
            texts = [attachment.text for attachment in attached if isinstance(attachment, PastedText | AttachedText)]
            pictures = sum(attachment.tokens for attachment in attached if isinstance(attachment, PendingPicture))
            overflow = conversation.context_tokens([text, *texts]) + pictures - window
        was_hidden = self.notice.isHidden()
        self.notice.show_overflow(overflow, window or 0, can_summarise=not conversation.is_empty)
        if was_hidden and not self.notice.isHidden():
            self._composer.notice_shown.emit(self.notice)
