"""Dialogs whose buttons have shortcuts, guarded against keys and clicks that were meant for something else.

Buttons ignore input for a short delay after something new appears, and while the person is typing elsewhere.
"""

from collections.abc import Callable

from PySide6.QtCore import QEvent, QRect, QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QColor,
    QFocusEvent,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QShortcut,
)
from PySide6.QtWidgets import QApplication, QDialog, QLineEdit, QPlainTextEdit, QPushButton, QStyle, QWidget

from ui.style.controls import ButtonKind, announce, label
from ui.style.layouts import FlowRows
from ui.style.text import escape_mnemonics, native_shortcut, plain_tooltip
from ui.style.theme import SPACE_S, ThemeSource

MIN_ROWS_WIDTH = 160
"""Of rows of buttons, in pixels."""


class ShortcutButton(QPushButton):
    """A push button that shows its key beside its text. Enter never presses it."""

    def __init__(self, themes: ThemeSource, text: str, key: str, kind: ButtonKind) -> None:
        super().__init__(escape_mnemonics(text))
        self._themes = themes
        self._key = native_shortcut(key)
        self._kind = kind
        self._label_text = text
        self._shows_key = True
        self._disabled_reason = self._command_text = ""
        self._shortcut: QShortcut | None = None
        self.setAutoDefault(False)
        self.setAccessibleName(text)
        self.setAccessibleDescription(self._key)
        self.setProperty("kind", kind)
        self.setProperty("keyed", "true")

    def set_shortcut(self, scope: QWidget, key: str, command: Callable[[], None]) -> None:
        """Run the command for the key, within the window of `scope`, and for a click."""
        # A shortcut of the button itself would press it 100 ms later, when another call may be on the screen.
        self._shortcut = QShortcut(QKeySequence(), scope, autoRepeat=False)
        self._shortcut.setKeys(_key_sequences(key))
        self._shortcut.activated.connect(command)
        self.clicked.connect(command)

    def set_command(self, text: str, key: str) -> None:
        """Other words and another key, for the same command; a screen reader hears them behind the name."""
        self._key = native_shortcut(key)
        self._command_text = text if text != self.accessibleName() else ""
        if self._shortcut is not None:
            self._shortcut.setKeys(_key_sequences(key))
        self.setText(text)
        self._update_tooltip()

    def show_key(self, shown: bool) -> None:  # noqa: FBT001  # a setter, like Qt's own
        """Whether there is room for the key; without it, the tooltip says it."""
        if shown != self._shows_key:
            self._shows_key = shown
            self._update_tooltip()
            self.updateGeometry()
            self.update()

    def set_disabled_reason(self, why: str) -> None:
        """Say why it cannot be used; empty when it can."""
        self._disabled_reason = why
        self._update_tooltip()

    def _update_tooltip(self) -> None:
        self.setToolTip(plain_tooltip(self._disabled_reason) or ("" if self._shows_key else self._key))
        self.setAccessibleDescription(". ".join(filter(None, (self._key, self._command_text, self._disabled_reason))))

    def setText(self, text: str) -> None:
        """Other words."""
        self._label_text = text
        super().setText(escape_mnemonics(text))

    def wrap_text(self, width: int) -> None:
        """Stand in as many lines as this width wants: words of a button may not be cut."""
        super().setText(escape_mnemonics(self._label_text))
        around = QPushButton.sizeHint(self).width() - self.fontMetrics().horizontalAdvance(self._label_text)
        lines = [""]
        for word in self._label_text.split(" "):
            longer = f"{lines[-1]} {word}".strip()
            if lines[-1] and self.fontMetrics().horizontalAdvance(longer) + around > width:
                lines.append(word)
            else:
                lines[-1] = longer
        if len(lines) > 1:
            super().setText(escape_mnemonics("\n".join(lines)))

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


class ShortcutButtonRows(FlowRows):
    """Its buttons show their keys as long as that does not take too many rows; else these stand in the tooltips."""

    max_rows_with_keys = 3

    def minimumSizeHint(self) -> QSize:
        """Of hardly any width: words of buttons stand in several lines where they must."""
        return QSize(MIN_ROWS_WIDTH, super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Look again."""
        super().resizeEvent(event)
        self.update_keys()

    def update_keys(self) -> None:
        """Look again, also where a button has other words at the same width."""
        buttons = self.findChildren(ShortcutButton)
        for each in buttons:
            each.show_key(True)
        fits = self.rows_for(self.width()) <= self.max_rows_with_keys
        for each in buttons:
            each.show_key(fits)
            each.wrap_text(self.width())


def _key_sequences(key: str) -> list[QKeySequence]:
    """Two keys are called Enter."""
    return [QKeySequence(each) for each in dict.fromkeys((key, key.replace("Enter", "Return")))]


# What was on its way when something appeared, a click or a word being typed, must not answer it.
INPUT_DELAY_MS = 400


class ShortcutBar(QWidget):
    """Buttons with a key each. They rest for a moment whenever there is something new to answer.

    A letter alone may have been meant for a message: what grants more than one thing has a key that nobody types.
    """

    input_delay_ended = Signal()

    def __init__(self, themes: ThemeSource, input_delay_ms: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._themes = themes
        self._delay_timer = QTimer(self, singleShot=True, interval=input_delay_ms)
        self._delay_timer.timeout.connect(self._refresh)
        self._delay_timer.timeout.connect(self.input_delay_ended)
        words = self.tr("You were writing. Press Tab or click in this dialog to use the keys.")
        self._typing_hint = label(words, wrap=True)
        self._typing_hint.hide()

    @property
    def is_input_delayed(self) -> bool:
        """Whether nothing can be answered yet."""
        return self._delay_timer.isActive()

    def start_input_delay(self) -> None:
        """Something has just appeared: ignore everything for a moment."""
        self._delay_timer.start()
        self._refresh()

    def extend_input_delay(self) -> None:
        """A key or click came while resting: what was on its way is still coming, so rest again."""
        if self.is_input_delayed:
            self._delay_timer.start()

    def show_typing_hint(self, writing: bool) -> None:  # noqa: FBT001  # a setter, like Qt's own
        """Whether keys are none yet, because the person was writing."""
        if writing and self._typing_hint.isHidden():
            announce(self, self._typing_hint.text())
        self._typing_hint.setVisible(writing)

    def _create_button(self, text: str, key: str, kind: ButtonKind, command: Callable[[], None]) -> ShortcutButton:
        made = ShortcutButton(self._themes, text, key, kind)
        made.set_shortcut(self, key, command)
        return made

    def _refresh(self) -> None:
        """Enable what can be used now."""
        raise NotImplementedError


class GuardedDialog(QDialog):
    """Has the keys itself, and heeds none, as long as the person who was writing has not turned to it."""

    @property
    def bar(self) -> ShortcutBar | None:
        """The buttons of what is on the screen."""
        raise NotImplementedError

    @property
    def initial_focus(self) -> QWidget:
        """What has the keys when something comes on the screen: nothing that can be written in, and no button."""
        raise NotImplementedError

    @property
    def is_blocking_keys(self) -> bool:
        """Whether keys answer nothing yet. True also before the window that comes up has them."""
        return self.focusWidget() is self

    def set_initial_focus(self, *, was_writing: bool = False) -> None:
        """Something else is on the screen; `was_writing`: about what stood there before."""
        if was_writing:
            self.setFocus()
        elif not self.is_blocking_keys:
            self.initial_focus.setFocus()
        if self.bar is not None:
            self.bar.show_typing_hint(self.is_blocking_keys)

    def setVisible(self, visible: bool) -> None:  # noqa: FBT001  # Qt's signature
        """Look whether the person is writing somewhere."""
        if visible and not self.isVisible():
            if is_typing_in(QApplication.focusWidget()):
                self.setFocus()
            elif self.is_blocking_keys:
                self.initial_focus.setFocus()
        super().setVisible(visible)

    def event(self, event: QEvent) -> bool:
        """A key that no field takes shows that somebody is still typing elsewhere, whoever gets it then."""
        if event.type() is QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent):
            if self.bar is not None:
                self.bar.extend_input_delay()
            if self.is_blocking_keys:
                # Then it is no shortcut. Ctrl+Enter, too, may be meant for the message.
                event.accept()
                return True
        return super().event(event)

    def changeEvent(self, event: QEvent) -> None:
        """Rest also when the window comes to the front by itself, long after it appeared."""
        super().changeEvent(event)
        if event.type() is QEvent.Type.ActivationChange and self.isActiveWindow() and self.bar is not None:
            self.bar.start_input_delay()

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Say why keys are none."""
        super().focusInEvent(event)
        if self.bar is not None:
            self.bar.show_typing_hint(True)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """They are, once the person has turned to something in it."""
        super().focusOutEvent(event)
        if self.bar is not None:
            self.bar.show_typing_hint(self.is_blocking_keys)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """A click on a resting button lands here."""
        if self.bar is not None:
            self.bar.extend_input_delay()
        if self.is_blocking_keys:
            self.initial_focus.setFocus()
        super().mousePressEvent(event)


def is_typing_in(part: QWidget | None) -> bool:
    """Whether somebody is in the middle of writing there."""
    match part:
        case QPlainTextEdit():
            return not part.isReadOnly() and bool(part.toPlainText())
        case QLineEdit():
            return not part.isReadOnly() and bool(part.text())
        case _:
            return False
