"""The inbox: every tool call that waits for the person, of all conversations."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QDialog, QWidget

from ui.bridge.library import ConversationLibrary
from ui.bridge.waiting_calls import WaitingCall
from ui.shell.approvals import ApprovalPresenter
from ui.style.controls import announce, button, label, show_in_front
from ui.style.entry_list import Entry, EntryList
from ui.style.layouts import FlowRows
from ui.style.text import labelled, one_line, show_hidden, strip_bidi_marks, title_or_new
from ui.style.text_display import isolate_untrusted, relative_date
from ui.style.theme import SPACE_L, ThemeSource
from ui.style.tool_labels import tool_icon, tool_title
from ui.style.widgets import lay_out_dialog

if TYPE_CHECKING:
    from ui.sidebar.conversation_list import ConversationList

_SIZE = (600, 460)
"""Pixels."""
_MAX_SUBJECT_LENGTH = 200


class InboxDialog(QDialog):
    """Not modal. Enter opens the conversation of the selected call, which asks for the decision there."""

    chosen = Signal(str)
    """The approval id of a call."""

    def __init__(self, themes: ThemeSource, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._list = EntryList(themes, self.tr("Calls that wait for you"))
        hint = self.tr("Open the conversation of a call to see all of it and to decide.")
        self._hint = label(hint, "muted", wrap=True)
        empty = self.tr("Nothing waits for you. Calls that need your approval are listed here, from all conversations.")
        self._empty_note = label(empty, "muted", wrap=True)
        self._open = button(self.tr("Open"), self._choose_selected, "primary", self.tr("Open the conversation"))
        close = button(self.tr("Close"), self.reject)
        self._foot = FlowRows((close, self._open), trailing=True)
        self._build()
        self._list.itemActivated.connect(self._choose_selected)
        self._list.itemSelectionChanged.connect(self._refresh)
        self.show_calls(())

    def show_calls(self, calls: Sequence[WaitingCall]) -> None:
        """Show these calls."""
        previous_ids, now = set(self._list.ids), datetime.now(UTC)
        self._list.show_entries([self._entry(call, now) for call in calls])
        self._list.show_unless_empty(self, self._empty_note)
        self._hint.setVisible(bool(calls))
        self.setAccessibleDescription("" if calls else self._empty_note.text())
        if self.isVisible() and set(self._list.ids) != previous_ids:
            announce(self, self.tr("Waiting calls: {0}").format(len(calls)) if calls else self._empty_note.text())
        self._refresh()

    def _entry(self, call: WaitingCall, now: datetime) -> Entry:
        tool = isolate_untrusted(tool_title(call.tool)) or self.tr("A tool")
        subject = isolate_untrusted(one_line(call.subject, _MAX_SUBJECT_LENGTH))
        what = labelled(tool, subject) if subject else tool
        path = " → ".join(isolate_untrusted(name) for name in call.agent_path)
        who = self.tr("The agent {0} asks").format(path) if path else self.tr("The assistant asks")
        title = title_or_new(isolate_untrusted(" ".join(call.title.split())))
        since = self.tr("since {0}").format(relative_date(call.since, now))
        spoken = self.tr("{0}. {1}, in the conversation {2}, {3}").format(what, who, title, since)
        return Entry(
            id=call.approval_id,
            title=what,
            subtitle=self.tr("{0} · {1}").format(who, title),
            detail=since,
            icon=tool_icon(call.tool),
            spoken=strip_bidi_marks(spoken),
            tip=show_hidden(f"{what}\n{title}"),
        )

    def _choose_selected(self) -> None:
        chosen = self._list.selected_id
        if chosen is not None:
            self.chosen.emit(chosen)

    def _refresh(self) -> None:
        self._open.setEnabled(bool(self._list.selectedItems()))

    def _build(self) -> None:
        # The dialog takes the focus when the last call is gone.
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        available = self.screen().availableSize()
        self.resize(min(_SIZE[0], available.width()), min(_SIZE[1], available.height() - 2 * SPACE_L))
        self._empty_note.setAlignment(Qt.AlignmentFlag.AlignCenter)
        parts = (self._hint, self._list, self._empty_note, self._foot)
        layout = lay_out_dialog(self, self.tr("Waiting approvals"), *parts, grow=self._list)
        layout.setStretchFactor(self._empty_note, 1)


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
