"""The approval dialog: every waiting tool call, a preview of its effect, and a decision for each."""

from collections.abc import Sequence

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QKeySequence, QShortcut, QShowEvent
from PySide6.QtWidgets import QWidget

from desktop_agent.types.blocks import JsonObject
from desktop_agent.types.tool_calls import (
    AllowAlways,
    AllowForConversation,
    AllowOnce,
    Decision,
    Deny,
    DenyAndStop,
    Preview,
)
from ui.approval.arguments_view import ArgumentsView
from ui.approval.call_summary import CallHeader, ReasonNote
from ui.approval.decision_bar import DecisionBar, RuleChoice
from ui.approval.dialog_layout import DialogSizer, ShrinkingScrollArea
from ui.approval.guarded_dialog import INPUT_DELAY_MS, GuardedDialog, is_typing_in
from ui.approval.preview_view import PreviewView
from ui.approval.waiting_list import WaitingList
from ui.bridge.permissions import PendingApproval
from ui.style.boxes import vbox
from ui.style.entry_list import Entry
from ui.style.pickers import MODE_SHORTCUT, ModePicker
from ui.style.text import show_hidden, strip_bidi_marks
from ui.style.text_display import isolate_untrusted
from ui.style.theme import SPACE_L, SPACE_M, ThemeSource
from ui.style.tool_labels import tool_title

PREVIEW_DELAY_MS = 250


class ApprovalDialog(GuardedDialog):
    """Window-modal, shown with `open()`. Closing it decides nothing: the calls keep waiting."""

    decided = Signal(str, object)
    """The approval's id and the Decision."""
    postponed = Signal()
    """The person closed the dialog without deciding."""
    trusted = Signal()
    """The person trusts the untrusted content so far."""
    preview_requested = Signal(str, object)
    """The approval's id and edited arguments: answer with `set_preview`."""

    def __init__(
        self, themes: ThemeSource, parent: QWidget | None = None, input_delay_ms: int = INPUT_DELAY_MS
    ) -> None:
        super().__init__(parent)
        self._calls: dict[str, PendingApproval] = {}
        self._decided: set[str] = set()
        # Edits and messages also of calls that are not shown: the person may return to their conversation.
        self._edits: dict[str, str] = {}
        self._messages: dict[str, str] = {}
        self._current: str | None = None
        self._offered: list[str] = []
        """The call on the screen, and those that can be decided with it."""
        self._list = WaitingList(themes, self.tr("Waiting calls"), self.tr("{0} calls are waiting"))
        self.mode = ModePicker(themes)
        self._header = CallHeader(themes, self.mode)
        self._reasons = ReasonNote(themes)
        self._rules = RuleChoice(themes)
        self._preview = PreviewView(themes)
        self._arguments = ArgumentsView(themes)
        self._scroll_area = ShrinkingScrollArea(
            (self._header, self._reasons, self._preview, self._arguments, self._rules),
            (*self._arguments.shrinkables, self._header.shrinkable, *self._preview.shrinkables),
        )
        self._bar = DecisionBar(themes, lambda: self._arguments.edited_input, input_delay_ms)
        self._preview_timer = QTimer(self, singleShot=True, interval=PREVIEW_DELAY_MS)
        self._sizer = DialogSizer(themes, self, self._list, self._scroll_area, self._bar)
        self._build_layout()
        self._connect_signals()

    @property
    def current(self) -> PendingApproval | None:
        return self._calls.get(self._current or "")

    @property
    def bar(self) -> DecisionBar:
        return self._bar

    @property
    def initial_focus(self) -> QWidget:
        """The list of calls when several wait, else the preview or the arguments."""
        return (self._list if len(self._calls) > 1 else self._preview.initial_focus) or self._arguments.view

    def set_approvals(self, calls: Sequence[PendingApproval]) -> None:
        """Show the calls that wait, in order. With none left the dialog closes."""
        waiting = {call.approval_id: call for call in calls if call.approval_id not in self._decided}
        self._calls = waiting
        if not waiting:
            self._current = None
            if self.isVisible():
                self.accept()
        elif self._current not in waiting:
            self._show_approval(next(iter(waiting)))
        else:
            call = waiting[self._current]
            self._reasons.show_reasons(call.reasons, call.untrusted_sources)
            self._show_list()
            self._update_batch_offer()

    def show_call(self, approval_id: str) -> None:
        """Show this call, if it waits here."""
        if approval_id in self._calls and approval_id != self._current:
            self._show_approval(approval_id)

    def set_preview(self, approval_id: str, arguments: JsonObject, preview: Preview | None) -> None:
        """Show the effect of edited arguments, unless they have been edited again since the request."""
        if approval_id == self._current and arguments is self._arguments.arguments:
            self._preview.show_preview(preview)

    def show_rejection(self, approval_id: str, why: str) -> None:
        """Show why a decision was rejected. Its call still waits, as do those that were decided with it."""
        self._decided.clear()
        self._offered.clear()
        if approval_id == self._current:
            self._arguments.show_rejection(why)
            self._scroll_area.reveal([self._arguments])

    def setVisible(self, visible: bool) -> None:  # noqa: FBT001  # Qt's signature
        """Set the width first: Qt centres the dialog over its window when it is shown."""
        if visible and not self.isVisible():
            self._sizer.set_initial_width()
        super().setVisible(visible)

    def showEvent(self, event: QShowEvent) -> None:
        self._sizer.fit_height()
        super().showEvent(event)
        self._bar.start_input_delay()

    def reject(self) -> None:
        """Leave the editor of arguments while nothing is edited, else close the dialog without deciding: edits stay."""
        if self._arguments.is_editing and not self._arguments.has_edits and self._arguments.view.hasFocus():
            self._arguments.discard()
            self._arguments.view.setFocus()
            return
        super().reject()
        self.postponed.emit()

    def _connect_signals(self) -> None:
        self._list.chosen.connect(self._show_approval)
        self._bar.decided.connect(self._decide)
        self._bar.edit_toggled.connect(self._arguments.toggle)
        self._bar.message_changed.connect(self._store_message)
        self._arguments.changed.connect(self._arguments_changed)
        self._preview_timer.timeout.connect(self._request_preview)
        self._reasons.trusted.connect(self._on_trusted)
        self._bar.rules_requested.connect(self._rules.open_choice)
        self._rules.reveal_requested.connect(self._scroll_area.reveal)
        QShortcut(QKeySequence(MODE_SHORTCUT), self, autoRepeat=False).activated.connect(self.mode.open_menu)
        self._rules.toggled.connect(self._bar.show_primary_action)
        self._rules.granted.connect(self._bar.allow_always)
        self._rules.cancelled.connect(self._arguments.view.setFocus)

    def _show_approval(self, approval_id: str) -> None:
        call = self._calls[approval_id]
        # The call may have been answered elsewhere. After their own decision the person is done typing.
        was_writing = self.isVisible() and self._current not in self._decided and is_typing_in(self.focusWidget())
        self._current = approval_id
        self._preview_timer.stop()
        self._header.show_call(call)
        self._reasons.show_reasons(call.reasons, call.untrusted_sources)
        self._rules.hide()
        self._rules.set_offers(call.offers, self._arguments.last_in_tab_order, is_in_memory=call.is_in_memory)
        self.setAccessibleDescription(
            " ".join(filter(None, (self._header.accessible_text, self._reasons.accessible_text)))
        )
        self._preview.set_known_folder(call.workspace)
        self._preview.show_preview(call.preview)
        # For edited arguments this requests a new preview.
        self._arguments.show_call(call.arguments, call.validate, self._edits.get(approval_id))
        self._bar.set_message(self._messages.get(approval_id, ""))
        self._set_editing()
        self._update_allowed()
        self._update_batch_offer()
        self._show_list()
        self._bar.start_input_delay()
        self._scroll_area.verticalScrollBar().setValue(0)
        self.set_initial_focus(was_writing=was_writing)

    def _show_list(self) -> None:
        self._list.show_items([_waiting_item(call) for call in self._calls.values()], self._current)

    def _decide(self, decision: Decision, for_others: bool) -> None:  # noqa: FBT001  # a slot
        call = self.current
        if call is None:
            return
        ids = [call.approval_id]
        if for_others:
            ids += [other.approval_id for other in self._same_tool_calls(call)]
        self._decided.update(ids)
        for approval_id in ids:
            is_own = approval_id == call.approval_id
            self.decided.emit(approval_id, decision if is_own else _decision_for_others(decision))
            if approval_id not in self._decided:
                # The decision was rejected. The others wait too: the person has to decide again.
                break
        for approval_id in self._decided.intersection(ids):
            self._edits.pop(approval_id, None)
            self._messages.pop(approval_id, None)
        # With the current calls: a slot may have called set_approvals, and calls that it removed must not come back.
        self.set_approvals(list(self._calls.values()))

    def _store_message(self, text: str) -> None:
        if self._current is not None:
            self._messages[self._current] = text

    def _arguments_changed(self) -> None:
        call = self.current
        if call is None:
            return
        text = self._arguments.edited_text
        if text is None:
            self._edits.pop(call.approval_id, None)
        else:
            self._edits[call.approval_id] = text
        self._set_editing()
        self._update_allowed()
        self._refresh_preview(call)

    def _set_editing(self) -> None:
        self._bar.set_editing(self._arguments.is_editing)
        self._preview.set_reserve_status(self._arguments.is_editing)

    def _update_allowed(self) -> None:
        """Update what can be allowed. Rules are offered only for the original arguments, for which they were made."""
        call, is_edited = self.current, self._arguments.edited_input is not None
        has_rules = call is not None and bool(call.offers) and not is_edited
        why = "" if has_rules else self.tr("No rule can be made from this call.")
        is_always_asked = call is not None and call.is_always_asked
        if is_always_asked:
            why = self.tr("You are asked about every call of this tool.")
        elif is_edited:
            why = self.tr("A rule is made from the original arguments. Discard your edits to make one.")
        self._bar.set_can_allow(self._arguments.is_valid, has_rules=has_rules, why=why, is_always_asked=is_always_asked)
        if is_edited or not self._arguments.is_valid:
            self._rules.hide()

    def _on_trusted(self) -> None:
        if not self._bar.is_input_delayed:
            self.trusted.emit()

    def _refresh_preview(self, call: PendingApproval) -> None:
        if call.preview is None:
            return
        if self._arguments.edited_input is None and self._arguments.is_valid:
            self._preview_timer.stop()
            self._preview.show_preview(call.preview)
        else:
            self._preview.show_waiting(valid=self._arguments.is_valid)
            self._preview_timer.start()

    def _request_preview(self) -> None:
        if self._current is not None and self._arguments.is_valid:
            self.preview_requested.emit(self._current, self._arguments.arguments)

    def _same_tool_calls(self, call: PendingApproval) -> list[PendingApproval]:
        return [other for other in self._calls.values() if other.tool == call.tool and other is not call]

    def _update_batch_offer(self) -> None:
        """Offer to decide other calls too. If these change, the person has to accept the offer again."""
        call = self.current
        if call is None:
            return
        offered = [other.approval_id for other in (call, *self._same_tool_calls(call))]
        if offered != self._offered:
            self._offered = offered
            self._bar.offer_same_tool_calls(show_hidden(tool_title(call.tool)), len(offered) - 1)

    def _build_layout(self) -> None:
        self.setAccessibleName(self.tr("Approve tool call"))
        self.setWindowTitle(self.tr("Approve tool call"))
        self.setWindowModality(Qt.WindowModality.WindowModal)
        # Otherwise Qt moves the focus from the dialog to one of its children.
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        detail = vbox(self._scroll_area, self._sizer.foot, spacing=SPACE_M, grow=self._scroll_area)
        line = self._sizer.main_layout
        line.setSpacing(SPACE_L)
        line.addWidget(self._list)
        line.addLayout(detail, 1)
        vbox(line, parent=self, margins=SPACE_L)


def _waiting_item(call: PendingApproval) -> Entry:
    tool, subject = isolate_untrusted(tool_title(call.tool)), isolate_untrusted(call.subject)
    whole = f"{tool}: {subject}"
    return Entry(id=call.approval_id, title=tool, subtitle=subject, spoken=strip_bidi_marks(whole), tip=whole)


def _decision_for_others(decision: Decision) -> Decision:
    """Return the decision for another call: edited arguments and a rule belong to one call only."""
    match decision:
        case AllowOnce() | AllowAlways():
            return AllowOnce()
        case AllowForConversation():
            return AllowForConversation()
        case Deny() | DenyAndStop():
            return decision
