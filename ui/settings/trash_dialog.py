"""The trash: deleted conversations, to restore or to purge."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QKeySequence, QResizeEvent, QShortcut
from PySide6.QtWidgets import QDialog, QWidget

from desktop_agent.types.errors import Sentence
from ui.bridge.library import ConversationLibrary
from ui.style.controls import button, label
from ui.style.entry_list import Entry, EntryList
from ui.style.layouts import FlowRows
from ui.style.server_fields import Status, StatusLine
from ui.style.text import title_or_new
from ui.style.text_display import relative_date
from ui.style.theme import SPACE_L, SPACE_M, ThemeSource
from ui.style.widgets import ConfirmBar, lay_out_dialog

if TYPE_CHECKING:
    from ui.bridge.conversation_listing import ListedConversation

_SIZE = QSize(560, 520)
"""Pixels."""


class TrashDialog(QDialog):
    """Not modal. Enter restores the selected conversation; Delete asks before it purges."""

    def __init__(self, themes: ThemeSource, library: ConversationLibrary, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._library = library
        self._days = days = library.trash.days
        """How long a conversation stays."""
        self._purge_id: str | None = None
        self._has_more = False
        self._list = EntryList(themes, self.tr("Deleted conversations"))
        words = self.tr("Conversations stay in the trash for {0} days. Then they are deleted for good.").format(days)
        self._hint = label(words, "muted", wrap=True)
        self._empty_note = label(self.tr("The trash is empty."), "muted")
        self._restore = button(self.tr("Restore"), self._restore_selected, "primary")
        self._purge = button(self.tr("Delete for good…"), self._confirm_purge_selected)
        self._empty = button(self.tr("Empty trash…"), self._confirm_purge_all, "quiet")
        close = button(self.tr("Close"), self.reject)
        self._problem = StatusLine(themes)
        self._foot = FlowRows((self._empty, close, self._purge, self._restore), trailing=True, apart=self._empty)
        self._confirm = ConfirmBar(
            (self.tr("Keep"), self.tr("Keep")), (self.tr("Delete for good"), self.tr("Really delete for good"))
        )
        self._build()
        self._connect()
        self.show_conversations(())
        library.trash.listed.connect(self.show_conversations)

    def show_conversations(self, conversations: "Sequence[ListedConversation]", has_more: bool = False) -> None:  # noqa: FBT001, FBT002  a slot
        """Show the trash."""
        self._has_more = has_more
        now = datetime.now(UTC)
        self._hide_confirmation()
        self.show_problem("")
        self._list.show_entries([self._entry(conversation, now) for conversation in conversations])
        self._list.show_unless_empty(self, self._empty_note)
        self._refresh()

    def show_problem(self, problem: Sentence | str) -> None:
        """Show what went wrong with a conversation; "" hides it."""
        self._problem.show_state(Status.ERROR, problem)

    def _entry(self, record: "ListedConversation", now: datetime) -> Entry:
        title = title_or_new(record.title)
        deleted_at = record.deleted_at or now
        days = math.ceil((deleted_at + timedelta(days=self._days) - now) / timedelta(days=1))
        remaining = (
            self.tr("Deleted for good in {0} days").format(days) if days > 1 else self.tr("Deleted for good soon")
        )
        deleted = relative_date(deleted_at, now)
        spoken = self.tr("{0}, deleted {1}. {2}").format(title, deleted, remaining)
        return Entry(id=record.id, title=title, subtitle=remaining, detail=deleted, spoken=spoken)

    def _restore_selected(self) -> None:
        chosen = self._list.selected_id
        if chosen is not None:
            self._library.restore(chosen)

    def _confirm_purge_selected(self) -> None:
        self._purge_id = self._list.selected_id
        if self._purge_id is not None:
            title = self._list.currentItem().text()
            self._show_confirmation(self.tr("Delete “{0}” for good? This cannot be undone.").format(title))

    def _confirm_purge_all(self) -> None:
        self._purge_id = None
        count = self._list.count()
        words = self.tr("Delete this conversation for good? This cannot be undone.")
        if self._has_more:
            words = self.tr("Delete everything in the trash for good? This cannot be undone.")
        elif count > 1:
            words = self.tr("Delete all {0} conversations for good? This cannot be undone.").format(count)
        self._show_confirmation(words)

    def _show_confirmation(self, words: str) -> None:
        self._confirm.ask(words)
        self._refresh()

    def _on_confirmed(self) -> None:
        if self._purge_id is None:
            self._library.trash.empty()
        else:
            self._library.trash.purge(self._purge_id)
        self._on_declined()

    def _on_declined(self) -> None:
        self._hide_confirmation()
        self._list.setFocus()

    def _hide_confirmation(self) -> None:
        self._confirm.hide()
        self._refresh()

    def _refresh(self) -> None:
        can_act = self._list.count() > 0 and self._confirm.isHidden()
        self._empty.setEnabled(can_act)
        for widget in (self._restore, self._purge):
            widget.setEnabled(can_act and bool(self._list.selectedItems()))
        # With large text there is only room for the question while it is asked.
        self._foot.setVisible(self._confirm.isHidden())
        self._fit_hint()
        # The selection must not change while it is asked about.
        self._list.setEnabled(self._confirm.isHidden())

    def _on_scrolled(self, value: int) -> None:
        if self._has_more and value >= self._list.verticalScrollBar().maximum():
            self._library.trash.read_on()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_hint()

    def _fit_hint(self) -> None:
        """Show the hint, which the rows repeat, only if the list and the buttons leave room for it."""
        layout, width = self.layout(), self.width()
        if layout is None:
            return
        needed = layout.totalMinimumHeightForWidth(width)
        if self._hint.isHidden():
            needed += self._hint.heightForWidth(width - 2 * SPACE_L) + SPACE_M
        self._hint.setVisible(self._confirm.isHidden() and needed <= self.height())

    def _connect(self) -> None:
        self._confirm.confirmed.connect(self._on_confirmed)
        self._confirm.declined.connect(self._on_declined)
        self._list.itemActivated.connect(self._restore_selected)
        self._list.verticalScrollBar().valueChanged.connect(self._on_scrolled)
        self._list.itemSelectionChanged.connect(self._refresh)
        keys = QKeySequence(QKeySequence.StandardKey.Delete)
        QShortcut(keys, self._list, context=Qt.ShortcutContext.WidgetShortcut).activated.connect(
            self._confirm_purge_selected
        )

    def _build(self) -> None:
        self.resize(_SIZE.boundedTo(self.screen().availableSize()))
        self._empty_note.setAlignment(Qt.AlignmentFlag.AlignCenter)
        parts = (self._hint, self._list, self._empty_note, self._problem, self._confirm, self._foot)
        layout = lay_out_dialog(self, self.tr("Trash"), *parts, grow=self._list)
        layout.setStretchFactor(self._empty_note, 1)
        # As high as its content, up to the screen.
        height = max(_SIZE.height(), layout.totalHeightForWidth(self.width()))
        self.resize(self.width(), min(height, self.screen().availableSize().height() - 2 * SPACE_L))
