"""The buttons of an approval, with one key each, and the moment of rest before they can be used.

A letter alone may have been meant for a message: what grants more than once has a key that nobody types.
"""

from collections.abc import Callable

from PySide6.QtCore import QEvent, QRect, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QKeySequence, QPainter, QPaintEvent, QResizeEvent, QShortcut
from PySide6.QtWidgets import QCheckBox, QPushButton, QStyle, QVBoxLayout, QWidget

from desktop_agent.vocabulary.blocks import JsonObject
from desktop_agent.vocabulary.tool_calls import (
    AllowAlways,
    AllowForConversation,
    AllowOnce,
    Decision,
    Deny,
    DenyAndStop,
)
from ui.look.controls import ButtonKind, ClearableField, label
from ui.look.parts.flow_rows import FlowRows
from ui.look.sentences import literal, plain_tip, shown_keys
from ui.look.theme import SPACE_S, ThemeSource

# What was on its way when the call appeared, a click or a word being typed, must not decide it.
SETTLE_MS = 400
# Pixels of a check box beside its words.
_BOX = 40
# What a line to write in has around its words.
_EDGES = 2 * SPACE_S + 14
_MESSAGE_WIDTH = 160


class KeyButton(QPushButton):
    """A push button that shows its key beside its text. Enter never presses it."""

    def __init__(self, themes: ThemeSource, text: str, key: str, kind: ButtonKind) -> None:
        super().__init__(literal(text))
        self._themes = themes
        self._key = shown_keys(key)
        self._kind = kind
        self._words = text
        self._shows_key = True
        self._why = ""
        self.setAutoDefault(False)
        self.setAccessibleName(text)
        self.setAccessibleDescription(self._key)
        self.setProperty("kind", kind)
        self.setProperty("keyed", "true")

    def show_key(self, shown: bool) -> None:  # noqa: FBT001  # a setter, like Qt's own
        """Whether there is room for the key; without it, the tooltip says it."""
        if shown != self._shows_key:
            self._shows_key = shown
            self._tell()
            self.updateGeometry()
            self.update()

    def say_why(self, why: str) -> None:
        """Say why it cannot be used; empty when it can."""
        self._why = why
        self._tell()

    def _tell(self) -> None:
        self.setToolTip(plain_tip(self._why) or ("" if self._shows_key else self._key))
        self.setAccessibleDescription(f"{self._key}. {self._why}" if self._why else self._key)

    def setText(self, text: str) -> None:
        """Other words."""
        self._words = text
        super().setText(literal(text))

    def break_words(self, width: int) -> None:
        """Stand in as many lines as this width wants: words of a button may not be cut."""
        super().setText(literal(self._words))
        around = QPushButton.sizeHint(self).width() - self.fontMetrics().horizontalAdvance(self._words)
        lines = [""]
        for word in self._words.split(" "):
            longer = f"{lines[-1]} {word}".strip()
            if lines[-1] and self.fontMetrics().horizontalAdvance(longer) + around > width:
                lines.append(word)
            else:
                lines[-1] = longer
        if len(lines) > 1:
            super().setText(literal("\n".join(lines)))

    def sizeHint(self) -> QSize:
        """Room for the text and the key."""
        if not self._shows_key:
            return super().sizeHint()
        return super().sizeHint() + QSize(self._key_width() + SPACE_S, 0)

    def minimumSizeHint(self) -> QSize:
        """The same: neither may be cut."""
        return self.sizeHint()

    def changeEvent(self, event: QEvent) -> None:
        """Its look depends on the direction, and would stay that of the first."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.LayoutDirectionChange:
            self.style().unpolish(self)
            self.style().polish(self)

    def paintEvent(self, event: QPaintEvent) -> None:
        """The button, and the key at its end."""
        super().paintEvent(event)
        if not self._shows_key:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        width, height = self._key_width(), self.fontMetrics().height()
        end = QRect(self.width() - width - SPACE_S, (self.height() - height) // 2, width, height)
        cap = QStyle.visualRect(self.layoutDirection(), self.rect(), end)
        theme = self._themes.theme
        colour = QColor(theme.on_accent if self._kind == "primary" and self.isEnabled() else theme.muted)
        painter.setPen(colour)
        font = painter.font()
        font.setPointSizeF(font.pointSizeF() * 0.82)
        painter.setFont(font)
        painter.drawText(cap, Qt.AlignmentFlag.AlignCenter, self._key)
        colour.setAlphaF(0.45)
        painter.setPen(colour)
        painter.drawRoundedRect(cap, 4, 4)

    def _key_width(self) -> int:
        return self.fontMetrics().horizontalAdvance(self._key) + 8


class KeyRows(FlowRows):
    """Its buttons show their keys as long as that does not take too many rows; else these stand in the tooltips."""

    rows_with_keys = 2

    def minimumSizeHint(self) -> QSize:
        """Of hardly any width: words of buttons stand in several lines where they must."""
        return QSize(_MESSAGE_WIDTH, super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Look again."""
        super().resizeEvent(event)
        buttons = self.findChildren(KeyButton)
        for each in buttons:
            each.show_key(True)
        fits = self.rows_for(self.width()) <= self.rows_with_keys
        for each in buttons:
            each.show_key(fits)
            each.break_words(self.width())


class _OthersBox(QCheckBox):
    """Its words end in an ellipsis where there is no room; the tooltip has all of them."""

    def show_words(self, whole: str) -> None:
        self.setAccessibleName(whole)
        self._elide()

    def sizeHint(self) -> QSize:
        words = self.fontMetrics().horizontalAdvance(self.accessibleName())
        return QSize(words + _BOX, super().sizeHint().height())

    def minimumSizeHint(self) -> QSize:
        return QSize(_BOX, self.sizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._elide()

    def _elide(self) -> None:
        whole, room = self.accessibleName(), self.width() - _BOX
        shown = self.fontMetrics().elidedText(whole, Qt.TextElideMode.ElideRight, room)
        self.setText(literal(shown))
        self.setToolTip(plain_tip(whole) if shown != whole else "")


class _Message(ClearableField):
    """Says while it is empty what it is for, at such a length as there is room."""

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        longer = (self.tr("Message to the model, sent with Deny"), self.tr("Message, sent with Deny"))
        room = self.width() - _EDGES
        fitting = (each for each in longer if self.fontMetrics().horizontalAdvance(each) <= room)
        self.setPlaceholderText(next(fitting, self.tr("Message")))


class DecisionBar(QWidget):
    """Message to the model, and the six commands. Says what was decided; the dialog knows about which call."""

    decided = Signal(object, bool)
    """The Decision, and whether it holds for the other waiting calls of the same tool too."""
    message_changed = Signal(str)
    """The message to the model, as far as it is written."""
    edit_toggled = Signal()
    rules_wanted = Signal()
    """The person wants to see which rules may be made of the call."""

    def __init__(self, themes: ThemeSource, settle_ms: int = SETTLE_MS, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._edited_input: Callable[[], JsonObject | None] = lambda: None
        self._can_allow = True
        self._has_rules = False
        self._rest = QTimer(self, singleShot=True, interval=settle_ms)
        self._rest.timeout.connect(self._refresh)
        self._message = _Message(themes)
        self._message.setAccessibleName(self.tr("Message to the model"))
        self._message.returnPressed.connect(self._deny_with_message)
        self._message.textChanged.connect(self.message_changed)
        self._for_others = _OthersBox()
        words = self.tr("You were writing. Press Tab or click in this dialog to use the keys.")
        self._writing = label(words, "small", wrap=True)
        self._allow_once = self._command(themes, self.tr("Allow once"), "A", "primary", self.allow_once)
        self._allow_conversation = self._command(
            themes, self.tr("Allow for this conversation"), "Ctrl+Shift+C", "", self.allow_for_conversation
        )
        self._allow_always = self._command(themes, self.tr("Always allow…"), "Ctrl+Shift+W", "", self._want_rules)
        self._edit = self._command(themes, self.tr("Edit arguments"), "E", "", self._toggle_edit)
        self._deny = self._command(themes, self.tr("Deny"), "D", "danger", self.deny)
        self._deny_and_stop = self._command(themes, self.tr("Deny and stop"), "Shift+D", "danger", self.deny_and_stop)
        self._arrange()

    @property
    def is_resting(self) -> bool:
        """Whether commands are ignored because the call has only just appeared."""
        return self._rest.isActive()

    def use(self, edited_input: Callable[[], JsonObject | None]) -> None:
        """Ask here for edited arguments when something is allowed; None means unchanged."""
        self._edited_input = edited_input

    def settle(self) -> None:
        """A call has just appeared: ignore everything for a moment."""
        self._rest.start()
        self._refresh()

    def set_message(self, text: str) -> None:
        """Show what was written to the model about this call."""
        self._message.setText(text)

    def still_arriving(self) -> None:
        """A key or click came while resting: what was on its way is still coming, so rest again."""
        if self.is_resting:
            self._rest.start()

    def say_writing(self, writing: bool) -> None:  # noqa: FBT001  # a setter, like Qt's own
        """Whether letters are no keys yet, because the person was writing elsewhere."""
        self._writing.setVisible(writing)

    def offer_others(self, tool: str, count: int) -> None:
        """Offer to decide the other `count` waiting calls of the same tool with this one."""
        self._for_others.setChecked(False)
        self._for_others.setVisible(count > 0)
        words = (
            self.tr("Also for the other {0} calls of {1}") if count > 1 else self.tr("Also for the other call of {1}")
        )
        self._for_others.show_words(words.format(count, tool))

    def set_can_allow(self, can_allow: bool, *, has_rules: bool, why: str) -> None:  # noqa: FBT001  # as Qt's own
        """Whether the arguments, as they are now, could run, and whether rules may be made of them; if not, why."""
        self._can_allow, self._has_rules = can_allow, has_rules
        self._allow_always.say_why(why)
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
        if self.is_resting:
            self._rest.start()
            return
        self.decided.emit(decision, self._for_others.isChecked() and not self._for_others.isHidden())

    def _deny_with_message(self) -> None:
        if self._message.text().strip():
            self.deny()

    def _want_rules(self) -> None:
        if not self.is_resting and self._has_rules and self._can_allow:
            self.rules_wanted.emit()

    def _toggle_edit(self) -> None:
        if not self.is_resting:
            self.edit_toggled.emit()

    def _command(
        self, themes: ThemeSource, text: str, key: str, kind: ButtonKind, command: Callable[[], None]
    ) -> KeyButton:
        made = KeyButton(themes, text, key, kind)
        made.clicked.connect(command)
        # A shortcut of the button itself would press it 100 ms later, when another call may be on the screen.
        shortcut = QShortcut(QKeySequence(key), self, context=Qt.ShortcutContext.WindowShortcut, autoRepeat=False)
        shortcut.activated.connect(command)
        return made

    def _refresh(self) -> None:
        ready = not self.is_resting
        for each in (self._allow_once, self._allow_conversation):
            each.setEnabled(ready and self._can_allow)
        self._allow_always.setEnabled(ready and self._can_allow and self._has_rules)
        for each in (self._edit, self._deny, self._deny_and_stop):
            each.setEnabled(ready)

    def _arrange(self) -> None:
        self._message.setMinimumWidth(_MESSAGE_WIDTH)
        self._denying = KeyRows((self._message, self._deny, self._deny_and_stop), wide=self._message, trailing=True)
        self._denying.rows_with_keys = 1
        self._for_others.hide()
        self._writing.hide()
        self._allowing = KeyRows(
            (self._for_others, self._edit, self._allow_always, self._allow_conversation, self._allow_once),
            wide=self._for_others,
            trailing=True,
        )
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(SPACE_S)
        layout.addWidget(self._writing)
        layout.addWidget(self._denying)
        layout.addWidget(self._allowing)
