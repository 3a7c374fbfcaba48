"""Keeps the inbox up to date, and opens what the person chooses."""

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget

from ui.bridge.library import ConversationLibrary
from ui.shell.approvals import ApprovalPresenter
from ui.style.controls import show_in_front
from ui.style.theme import ThemeSource

if TYPE_CHECKING:
    from ui.shell.inbox.inbox_dialog import InboxDialog
    from ui.sidebar.conversation_list import ConversationList


class InboxPresenter(QObject):
    """Shows every call that waits; the decision is made in the approval dialog of its conversation."""

    count_changed = Signal(int)
    """How many calls wait."""

    def __init__(
        self,
        themes: ThemeSource,
        library: ConversationLibrary,
        sidebar: "ConversationList",
        approvals: ApprovalPresenter,
        window: QWidget,
    ) -> None:
        super().__init__(window)
        self._themes = themes
        self._library = library
        self._sidebar = sidebar
        self._approvals = approvals
        self._window = window
        self._dialog: InboxDialog | None = None
        library.waiting.changed.connect(self._refresh)
        # A conversation may have another title, or have been deleted.
        library.listing.listed.connect(self._refresh)

    def show(self) -> None:
        """Show the inbox."""
        if self._dialog is None:
            # Late: not opened on most days.
            from ui.shell.inbox.inbox_dialog import InboxDialog

            self._dialog = InboxDialog(self._themes, self._window)
            self._dialog.chosen.connect(self.open_call)
        self._dialog.show_calls(self._library.waiting.rows)
        show_in_front(self._dialog)
        # Other processes may have ended since, or have taken over what waited.
        self._library.waiting.find_interrupted()

    def open_call(self, approval_id: str) -> None:
        """Open the conversation of this call with its approval dialog; nothing happens if it was decided meanwhile."""
        call = next((call for call in self._library.waiting.rows if call.approval_id == approval_id), None)
        if call is None:
            self._refresh()
            return
        if self._dialog is not None:
            self._dialog.hide()
        self._sidebar.conversation_chosen.emit(call.conversation_id)
        self._approvals.show_call(approval_id)

    def _refresh(self) -> None:
        self.count_changed.emit(self._library.waiting.count)
        if self._dialog is not None and self._dialog.isVisible():
            self._dialog.show_calls(self._library.waiting.rows)
