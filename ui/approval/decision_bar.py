"""The decisions: buttons to allow or deny a call, and the choice of a rule that is created with it."""

from collections.abc import Callable, Sequence

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QColor, QFocusEvent, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QButtonGroup, QCheckBox, QFrame, QRadioButton, QWidget

from desktop_agent.types.blocks import JsonObject
from desktop_agent.types.tool_calls import AllowAlways, AllowForConversation, AllowOnce, Decision, Deny, DenyAndStop
from ui.approval.guarded_dialog import INPUT_DELAY_MS, MIN_ROWS_WIDTH, ShortcutBar, ShortcutButtonRows, ignore_enter
from ui.approval.labels import wrapping_label
from ui.approval.untrusted_text import fold_lines
from ui.bridge.permissions import RuleOffer
from ui.style.boxes import hbox, vbox
from ui.style.controls import ClearableField, button, label
from ui.style.layouts import FlowRows, scroll_area_of
from ui.style.removal import clear_layout
from ui.style.text import escape_mnemonics, plain_tooltip, strip_bidi_marks, translate_sentence
from ui.style.text_display import isolate_untrusted
from ui.style.theme import RADIUS_S, SPACE_M, SPACE_S, SPACE_XS, ThemeSource

# Pixels of a check box without its text.
_CHECKBOX_WIDTH = 40
# Pixels of a field without its text.
_FIELD_MARGIN = 2 * SPACE_S + 14


class _SameToolBox(QCheckBox):
    """A check box that elides its text if there is no room; the tooltip has all of it."""

    def set_full_text(self, text: str) -> None:
        self.setAccessibleName(text)
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
        full_text, room = self.accessibleName(), self.width() - _CHECKBOX_WIDTH
        shown = self.fontMetrics().elidedText(full_text, Qt.TextElideMode.ElideRight, room)
        self.setText(escape_mnemonics(shown))
        self.setToolTip(plain_tooltip(full_text) if shown != full_text else "")


class _MessageField(ClearableField):
    """A field whose placeholder is as long as there is room for."""

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        longer = (self.tr("Message to the model, sent with Deny"), self.tr("Message, sent with Deny"))
        room = self.width() - _FIELD_MARGIN
        fitting = (text for text in longer if self.fontMetrics().horizontalAdvance(text) <= room)
        self.setPlaceholderText(next(fitting, self.tr("Message")))


class DecisionBar(ShortcutBar):
    """The message to the model and the six commands. The dialog knows which call they are about."""

    decided = Signal(object, bool)
    """The Decision, and whether it is also for the other waiting calls of the same tool."""
    message_changed = Signal(str)
    """The message to the model as typed so far."""
    edit_toggled = Signal()
    rules_requested = Signal()
    """The person wants to see the rules that can be made of the call."""

    def __init__(
        self,
        themes: ThemeSource,
        edited_input: Callable[[], JsonObject | None] = lambda: None,
        input_delay_ms: int = INPUT_DELAY_MS,
    ) -> None:
        """`edited_input` returns the edited arguments when a call is allowed; None means unchanged."""
        super().__init__(themes, input_delay_ms)
        self._edited_input = edited_input
        self._can_allow = True
        self._has_rules = False
        self._is_always_asked = False
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

    def set_message(self, text: str) -> None:
        """Show the message to the model about this call."""
        self._message.setText(text)

    def offer_same_tool_calls(self, tool: str, count: int) -> None:
        """Offer to decide the other `count` waiting calls of the same tool with this one."""
        self._for_others.setChecked(False)
        self._calls = 1 + count
        self._for_others.setVisible(count > 0)
        one, several = self.tr("Also for the other call of “{1}”"), self.tr("Also for the other {0} calls of “{1}”")
        words = several if count > 1 else one
        self._for_others.set_full_text(words.format(count, tool))

    def set_can_allow(self, can_allow: bool, *, has_rules: bool, why: str, is_always_asked: bool = False) -> None:  # noqa: FBT001
        """Set whether the current arguments can run, whether rules can be made of them, and if not, why.

        `is_always_asked`: the call can be allowed only once.
        """
        self._can_allow, self._has_rules, self._is_always_asked = can_allow, has_rules, is_always_asked
        self._allow_always.set_disabled_reason(why)
        self._allow_conversation.set_disabled_reason(why if is_always_asked else "")
        self._refresh()

    def set_editing(self, editing: bool) -> None:  # noqa: FBT001  # a setter, like Qt's own
        """Set whether the arguments are being edited: the button then discards the edits, and by no bare letter."""
        if editing:
            self._edit.set_command(self.tr("Discard edits"), "Ctrl+Shift+D")
        else:
            self._edit.set_command(self.tr("Edit arguments"), "E")
        self._allowing.update_keys()

    def show_primary_action(self, is_choosing_rule: bool) -> None:  # noqa: FBT001  # a slot
        """Make the button that allows once the primary one, except while a rule is chosen, which has its own."""
        self._allow_once.set_kind("" if is_choosing_rule else "primary")

    def allow_always(self, rule_id: str) -> None:
        """Allow the call and create this rule."""
        if self._can_allow and self._has_rules:
            self._decide(AllowAlways(rule_id=rule_id))

    def allow_once(self) -> None:
        """Allow exactly this call."""
        if self._can_allow:
            self._decide(AllowOnce(edited_input=self._edited_input()))

    def allow_for_conversation(self) -> None:
        """Allow the call, and the tool in this conversation from now on."""
        if self._can_allow and not self._is_always_asked:
            self._decide(AllowForConversation(edited_input=self._edited_input()))

    def deny(self) -> None:
        """Deny the call, with the message that was written."""
        self._decide(Deny(message=self._message.text().strip()))

    def deny_and_stop(self) -> None:
        """Deny the call and stop the agent."""
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
        """Give the button that allows several calls a shortcut that is no letter, to avoid typing it by accident."""
        if with_others:
            words = self.tr("Allow both calls once") if self._calls == 2 else self.tr("Allow these {0} calls once")
            self._allow_once.set_command(words.format(self._calls), "Ctrl+Shift+A")
        else:
            self._allow_once.set_command(self.tr("Allow once"), "A")
        self._allowing.update_keys()

    def _refresh(self) -> None:
        ready = not self.is_input_delayed
        self._allow_once.setEnabled(ready and self._can_allow)
        self._allow_conversation.setEnabled(ready and self._can_allow and not self._is_always_asked)
        self._allow_always.setEnabled(ready and self._can_allow and self._has_rules)
        for widget in (self._edit, self._deny, self._deny_and_stop):
            widget.setEnabled(ready)

    def _build_layout(self) -> None:
        self._message.setMinimumWidth(MIN_ROWS_WIDTH)
        denying = (self._message, self._deny, self._deny_and_stop)
        self._denying = ShortcutButtonRows(denying, wide=self._message, trailing=True)
        self._denying.max_rows_with_keys = 1
        self._for_others.hide()
        allowing = (self._edit, self._allow_always, self._allow_conversation, self._allow_once)
        self._allowing = ShortcutButtonRows(allowing, apart=self._edit, trailing=True)
        rows = (self._typing_hint, self._denying, self._for_others, self._allowing)
        vbox(*rows, parent=self, spacing=SPACE_S, margins=0)


class RuleChoice(QFrame):
    """The choice of a rule, narrowest first, grouped by the folder that it applies in. `granted` carries its id."""

    granted = Signal(str)
    reveal_requested = Signal(list)
    """Widgets to scroll into view, the most important last."""
    cancelled = Signal()
    toggled = Signal(bool)
    """Whether the choice is shown."""

    def __init__(self, themes: ThemeSource) -> None:
        super().__init__()
        self._themes = themes
        self.setProperty("kind", "card")
        self._offers: Sequence[RuleOffer] = ()
        self._group = QButtonGroup(self)
        self._choices = vbox(spacing=SPACE_XS, margins=0)
        self._stays = wrapping_label(self.tr("The rule is stored, although this conversation is not."), "muted")
        self._grant = button(self.tr("Allow and keep this rule"), self._emit_granted, "primary")
        ignore_enter(self._grant)
        self._group.idClicked.connect(self._on_clicked)
        self._build_layout()
        self.hide()

    @property
    def focused_row(self) -> QWidget | None:
        return next((button.parentWidget() for button in self._group.buttons() if button.hasFocus()), None)

    @property
    def selected(self) -> RuleOffer | None:
        """The selected rule."""
        index = self._group.checkedId()
        return self._offers[index] if 0 <= index < len(self._offers) else None

    def set_offers(self, offers: Sequence[RuleOffer], after: QWidget, *, is_in_memory: bool = False) -> None:
        """Show these rules, after `after` in the tab order. `is_in_memory`: the conversation itself is not stored."""
        self._offers = offers
        self._stays.setVisible(is_in_memory)
        clear_layout(self._choices)
        folders = [offer.workspace for offer in self._offers]
        for index, offer in enumerate(self._offers):
            if index == 0 or folders[index - 1] != folders[index]:
                if index:
                    self._choices.addSpacing(SPACE_S)
                self._choices.addWidget(wrapping_label(self._scope_text(offer), "strong"))
            self._choices.addWidget(self._create_row(index, offer))
        # The choices were created after the widgets below them.
        for choice in (self._group.button(index) for index in range(len(self._offers))):
            self.setTabOrder(after, choice)
            after = choice
        self._grant.setEnabled(bool(self._offers))

    def setVisible(self, visible: bool) -> None:  # noqa: FBT001  # Qt's signature
        super().setVisible(visible)
        self.toggled.emit(visible)

    def open_choice(self) -> None:
        """Show the choice and focus the first rule."""
        self.show()
        if self._offers:
            self._group.button(0).setChecked(True)
            self._group.button(0).setFocus()
        self.reveal_requested.emit([self, self.focused_row or self])

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Escape closes the choice, not the dialog."""
        if event.key() == Qt.Key.Key_Escape:
            self._cancel()
            return
        super().keyPressEvent(event)

    def _create_row(self, index: int, offer: RuleOffer) -> QWidget:
        words = translate_sentence(offer.words, isolate_untrusted)
        note = self.tr("Allows the least") if index == 0 and len(self._offers) > 1 else ""
        row = _RuleRow(self._themes, fold_lines(words), note)
        self._group.addButton(row.choice, index)
        row.choice.setAccessibleName(strip_bidi_marks(f"{words}. {self._scope_text(offer)}"))
        return row

    def _scope_text(self, offer: RuleOffer) -> str:
        if offer.workspace is None:
            return self.tr("In every conversation")
        return self.tr("Only in conversations of the folder {0}").format(isolate_untrusted(offer.workspace))

    def _on_clicked(self, index: int) -> None:
        # Scroll the whole rule into view: it may have been clicked while half hidden.
        self._group.button(index).setFocus()
        self.reveal_requested.emit([self, self.focused_row or self])

    def _emit_granted(self) -> None:
        if self.selected is not None:
            self.granted.emit(self.selected.rule_id)

    def _cancel(self) -> None:
        self.hide()
        self.cancelled.emit()

    def _build_layout(self) -> None:
        note = label(self.tr("Rules can be revoked in the settings."), "muted", wrap=True)
        cancel = button(self.tr("Cancel"), self._cancel)
        intro = label(self.tr("From now on allow without asking:"))
        parts = (intro, self._choices, self._stays, note, FlowRows((cancel, self._grant), trailing=True))
        vbox(*parts, parent=self, spacing=SPACE_S, margins=(SPACE_M, SPACE_S, SPACE_M, SPACE_S))


class _RuleRow(QWidget):
    """A radio button with the words of its rule: one target for clicks, with one focus ring."""

    def __init__(self, themes: ThemeSource, words: str, note: str) -> None:
        super().__init__()
        self._themes = themes
        self.choice = _RuleButton(self)
        # The row draws the focus ring.
        self.choice.setStyleSheet("QRadioButton:focus { border-color: transparent; }")
        texts = vbox(wrapping_label(words), spacing=0)
        if note:
            texts.addWidget(wrapping_label(note, "muted"))
        layout = hbox(parent=self, spacing=SPACE_XS, margins=SPACE_XS)
        layout.addWidget(self.choice, 0, Qt.AlignmentFlag.AlignTop)
        layout.addLayout(texts, 1)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() is Qt.MouseButton.LeftButton and self.rect().contains(event.position().toPoint()):
            self.choice.click()

    def paintEvent(self, event: QPaintEvent) -> None:
        del event
        if self.choice.hasFocus():
            painter = QPainter(self)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(QColor(self._themes.theme.accent), 2))
            painter.drawRoundedRect(self.rect().adjusted(1, 1, -1, -1), RADIUS_S, RADIUS_S)


class _RuleButton(QRadioButton):
    """A radio button that scrolls its whole rule into view when it gets the focus."""

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self._update_row()
        area, row = scroll_area_of(self), self.parentWidget()
        if area is not None and row is not None:
            area.ensureWidgetVisible(row, 0, 0)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._update_row()

    def _update_row(self) -> None:
        row = self.parentWidget()
        if row is not None:
            row.update()
