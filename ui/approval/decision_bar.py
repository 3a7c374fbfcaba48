"""The buttons of an approval, with one key each."""

from collections.abc import Callable

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QCheckBox, QVBoxLayout, QWidget

from desktop_agent.vocabulary.blocks import JsonObject
from desktop_agent.vocabulary.tool_calls import (
    AllowAlways,
    AllowForConversation,
    AllowOnce,
    Decision,
    Deny,
    DenyAndStop,
)
from ui.approval.parts.key_button import MIN_ROWS_WIDTH, ShortcutButtonRows
from ui.approval.parts.key_guard import INPUT_DELAY_MS, ShortcutBar
from ui.look.controls import ClearableField
from ui.look.sentences import escape_mnemonics, plain_tooltip
from ui.look.theme import SPACE_S, ThemeSource

# Pixels of a check box beside its words.
_CHECKBOX_WIDTH = 40
# What a line to write in has around its words.
_FIELD_MARGIN = 2 * SPACE_S + 14


class _SameToolBox(QCheckBox):
    """Its words end in an ellipsis where there is no room; the tooltip has all of them."""

    def set_full_text(self, whole: str) -> None:
        self.setAccessibleName(whole)
        self._elide()

    def sizeHint(self) -> QSize:
        words = self.fontMetrics().horizontalAdvance(self.accessibleName())
        return QSize(words + _CHECKBOX_WIDTH, super().sizeHint().height())

    def minimumSizeHint(self) -> QSize:
        return QSize(_CHECKBOX_WIDTH, self.sizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._elide()

    def _elide(self) -> None:
        whole, room = self.accessibleName(), self.width() - _CHECKBOX_WIDTH
        shown = self.fontMetrics().elidedText(whole, Qt.TextElideMode.ElideRight, room)
        self.setText(escape_mnemonics(shown))
        self.setToolTip(plain_tooltip(whole) if shown != whole else "")


class _MessageField(ClearableField):
    """Says while it is empty what it is for, at such a length as there is room."""

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        longer = (self.tr("Message to the model, sent with Deny"), self.tr("Message, sent with Deny"))
        room = self.width() - _FIELD_MARGIN
        fitting = (each for each in longer if self.fontMetrics().horizontalAdvance(each) <= room)
        self.setPlaceholderText(next(fitting, self.tr("Message")))


class DecisionBar(ShortcutBar):
    """Message to the model, and the six commands. Says what was decided; the dialog knows about which call."""

    decided = Signal(object, bool)
    """The Decision, and whether it holds for the other waiting calls of the same tool too."""
    message_changed = Signal(str)
    """The message to the model, as far as it is written."""
    edit_toggled = Signal()
    rules_requested = Signal()
    """The person wants to see which rules may be made of the call."""

    def __init__(
        self, themes: ThemeSource, input_delay_ms: int = INPUT_DELAY_MS, parent: QWidget | None = None
    ) -> None:
        super().__init__(themes, input_delay_ms, parent)
        self._edited_input: Callable[[], JsonObject | None] = lambda: None
        self._can_allow = True
        self._has_rules = False
        self._calls = 1
        self._message = _MessageField(themes)
        self._message.setAccessibleName(self.tr("Message to the model"))
        self._message.returnPressed.connect(self._deny_with_message)
        self._message.textChanged.connect(self.message_changed)
        self._for_others = _SameToolBox()
        self._for_others.toggled.connect(self._update_batch_button)
        self._allow_once = self._create_button(self.tr("Allow once"), "A", "primary", self.allow_once)
        self._allow_conversation = self._create_button(
            self.tr("Allow for this conversation"), "Ctrl+Shift+C", "", self.allow_for_conversation
        )
        self._allow_always = self._create_button(self.tr("Always allow…"), "Ctrl+Shift+W", "", self._request_rules)
        self._edit = self._create_button(self.tr("Edit arguments"), "E", "", self._emit_edit_toggled)
        self._deny = self._create_button(self.tr("Deny"), "D", "danger", self.deny)
        self._deny_and_stop = self._create_button(self.tr("Deny and stop"), "Shift+D", "danger", self.deny_and_stop)
        self._build_layout()

    def set_edited_input_source(self, edited_input: Callable[[], JsonObject | None]) -> None:
        """Ask here for edited arguments when something is allowed; None means unchanged."""
        self._edited_input = edited_input

    def set_message(self, text: str) -> None:
        """Show what was written to the model about this call."""
        self._message.setText(text)

    def offer_same_tool_calls(self, tool: str, count: int) -> None:
        """Offer to decide the other `count` waiting calls of the same tool with this one."""
        self._for_others.setChecked(False)
        self._calls = 1 + count
        self._for_others.setVisible(count > 0)
        words = (
            self.tr("Also for the other {0} calls of {1}") if count > 1 else self.tr("Also for the other call of {1}")
        )
        self._for_others.set_full_text(words.format(count, tool))

    def set_can_allow(self, can_allow: bool, *, has_rules: bool, why: str) -> None:  # noqa: FBT001  # as Qt's own
        """Whether the arguments, as they are now, could run, and whether rules may be made of them; if not, why."""
        self._can_allow, self._has_rules = can_allow, has_rules
        self._allow_always.set_disabled_reason(why)
        self._refresh()

    def set_editing(self, editing: bool) -> None:  # noqa: FBT001  # a setter, like Qt's own
        """Whether the arguments are being edited: the button then discards the edits."""
        self._edit.setText(self.tr("Discard edits") if editing else self.tr("Edit arguments"))

    def allow_always(self, rule_id: str) -> None:
        """Run it, and make the rule that was shown."""
        if self._can_allow and self._has_rules:
            self._decide(AllowAlways(rule_id=rule_id))

    def allow_once(self) -> None:
        """Run exactly this call."""
        if self._can_allow:
            self._decide(AllowOnce(edited_input=self._edited_input()))

    def allow_for_conversation(self) -> None:
        """Run it, and this tool unasked from now on."""
        if self._can_allow:
            self._decide(AllowForConversation(edited_input=self._edited_input()))

    def deny(self) -> None:
        """Do not run it."""
        self._decide(Deny(message=self._message.text().strip()))

    def deny_and_stop(self) -> None:
        """Do not run it, and stop."""
        self._decide(DenyAndStop(message=self._message.text().strip()))

    def _decide(self, decision: Decision) -> None:
        if self.is_input_delayed:
            self._delay_timer.start()
            return
        self.decided.emit(decision, self._for_others.isChecked() and not self._for_others.isHidden())

    def _deny_with_message(self) -> None:
        if self._message.text().strip():
            self.deny()

    def _request_rules(self) -> None:
        if not self.is_input_delayed and self._has_rules and self._can_allow:
            self.rules_requested.emit()

    def _emit_edit_toggled(self) -> None:
        if not self.is_input_delayed:
            self.edit_toggled.emit()

    def _update_batch_button(self, with_others: bool) -> None:  # noqa: FBT001  # a slot
        """A letter alone allows one call: more than one have a key that nobody types, and the button says so."""
        if with_others:
            words = self.tr("Allow both calls once") if self._calls == 2 else self.tr("Allow these {0} calls once")
            self._allow_once.set_command(words.format(self._calls), "Ctrl+Shift+A")
        else:
            self._allow_once.set_command(self.tr("Allow once"), "A")
        self._allowing.update_keys()

    def _refresh(self) -> None:
        ready = not self.is_input_delayed
        for each in (self._allow_once, self._allow_conversation):
            each.setEnabled(ready and self._can_allow)
        self._allow_always.setEnabled(ready and self._can_allow and self._has_rules)
        for each in (self._edit, self._deny, self._deny_and_stop):
            each.setEnabled(ready)

    def _build_layout(self) -> None:
        self._message.setMinimumWidth(MIN_ROWS_WIDTH)
        self._denying = ShortcutButtonRows(
            (self._message, self._deny, self._deny_and_stop), wide=self._message, trailing=True
        )
        self._denying.max_rows_with_keys = 1
        self._for_others.hide()
        self._allowing = ShortcutButtonRows(
            (self._edit, self._allow_always, self._allow_conversation, self._allow_once),
            apart=self._edit,
            trailing=True,
        )
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_S)
        layout.addWidget(self._typing_hint)
        layout.addWidget(self._denying)
        layout.addWidget(self._for_others)
        layout.addWidget(self._allowing)
