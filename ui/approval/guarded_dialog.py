"""Dialogs whose buttons have shortcuts, guarded against keys and clicks that were meant for something else.

Buttons ignore input for a short delay after something new appears, and while the person is typing elsewhere.
"""

from collections.abc import Callable

import shiboken6
from PySide6.QtCore import QCoreApplication, QEvent, QObject, QRect, QSize, Qt, QTimer, Signal
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

from ui.style.controls import ButtonKind, announce, label, set_style_property
from ui.style.layouts import FlowRows
from ui.style.text import escape_mnemonics, native_shortcut, plain_tooltip, writes_text
from ui.style.theme import SPACE_S, ThemeSource

MIN_ROWS_WIDTH = 160
"""The least width of rows of buttons, in pixels."""


class _EnterFilter(QObject):
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        is_press = event.type() == QEvent.Type.KeyPress
        if is_press and isinstance(event, QKeyEvent) and event.key() in {Qt.Key.Key_Return, Qt.Key.Key_Enter}:
            return True
        return super().eventFilter(watched, event)


def ignore_enter(button: QPushButton) -> None:
    """Keep Enter from pressing the button, even on GNOME, where Qt would: it may end a line that is being typed."""
    button.installEventFilter(_EnterFilter(button))


class ShortcutButton(QPushButton):
    """A push button that shows its shortcut beside its text. Enter never presses it."""

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
        ignore_enter(self)
        self.setAccessibleName(text)
        self.setAccessibleDescription(self._key)
        self.setProperty("kind", kind)
        self.setProperty("keyed", "true")

    def set_shortcut(self, scope: QWidget, key: str, command: Callable[[], None]) -> None:
        """Run the command on the shortcut, within the window of `scope`, and on a click."""
        # The button's own shortcut would press it 100 ms later, when another call may be on the screen.
        self._shortcut = QShortcut(QKeySequence(), scope, autoRepeat=False)
        self._shortcut.setKeys(_key_sequences(key))
        self._shortcut.activated.connect(command)
        self.clicked.connect(command)

    def set_command(self, text: str, key: str) -> None:
        """Change text and shortcut of the same command. The accessible name stays; the text is described."""
        self._key = native_shortcut(key)
        self._command_text = text if text != self.accessibleName() else ""
        if self._shortcut is not None:
            self._shortcut.setKeys(_key_sequences(key))
        self.setText(text)
        self._update_tooltip()

    def set_kind(self, kind: ButtonKind) -> None:
        """Show it as another kind of button."""
        self._kind = kind
        set_style_property(self, "kind", kind)

    def show_key(self, shown: bool) -> None:  # noqa: FBT001  # a setter, like Qt's own
        """Set whether there is room for the shortcut; otherwise it is in the tooltip."""
        if shown != self._shows_key:
            self._shows_key = shown
            self._update_tooltip()
            self.updateGeometry()
            self.update()

    def set_disabled_reason(self, why: str) -> None:
        """Set why the button is disabled; an empty string if it is not."""
        self._disabled_reason = why
        self._update_tooltip()

    def _update_tooltip(self) -> None:
        self.setToolTip(plain_tooltip(self._disabled_reason) or ("" if self._shows_key else self._key))
        self.setAccessibleDescription(". ".join(filter(None, (self._key, self._command_text, self._disabled_reason))))

    def setText(self, text: str) -> None:
        self._label_text = text
        super().setText(escape_mnemonics(text))

    def wrap_text(self, width: int) -> None:
        """Wrap the text to this width, so that no words of a button are cut."""
        super().setText(escape_mnemonics(self._label_text))
        padding = QPushButton.sizeHint(self).width() - self.fontMetrics().horizontalAdvance(self._label_text)
        lines = [""]
        for word in self._label_text.split(" "):
            longer = f"{lines[-1]} {word}".strip()
            if lines[-1] and self.fontMetrics().horizontalAdvance(longer) + padding > width:
                lines.append(word)
            else:
                lines[-1] = longer
        if len(lines) > 1:
            super().setText(escape_mnemonics("\n".join(lines)))

    def sizeHint(self) -> QSize:
        if not self._shows_key:
            return super().sizeHint()
        return super().sizeHint() + QSize(self._key_width() + SPACE_S, 0)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:
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
    """Buttons that show their shortcuts while that takes few rows; otherwise the tooltips have them."""

    max_rows_with_keys = 3

    def minimumSizeHint(self) -> QSize:
        return QSize(MIN_ROWS_WIDTH, super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.update_keys()

    def update_keys(self) -> None:
        """Show or hide the shortcuts and wrap the texts, after a text or the width changed."""
        buttons = self.findChildren(ShortcutButton)
        for button in buttons:
            button.show_key(True)
        fits = self.rows_for(self.width()) <= self.max_rows_with_keys
        for button in buttons:
            button.show_key(fits)
            button.wrap_text(self.width())


def _key_sequences(key: str) -> list[QKeySequence]:
    """Return the key sequences of a shortcut; for Enter, those of both keys with this name."""
    return [QKeySequence(name) for name in dict.fromkeys((key, key.replace("Enter", "Return")))]


# A click or a word that was begun before a request appeared must not answer it.
INPUT_DELAY_MS = 400


class ShortcutBar(QWidget):
    """Buttons with shortcuts that ignore input for a moment whenever something new appears.

    A letter may have been meant for a message, so a command that allows several calls has a shortcut without letters.
    """

    input_delay_ended = Signal()

    def __init__(self, themes: ThemeSource, input_delay_ms: int) -> None:
        super().__init__()
        self._themes = themes
        self._delay_timer = QTimer(self, singleShot=True, interval=input_delay_ms)
        self._delay_timer.timeout.connect(self._refresh)
        self._delay_timer.timeout.connect(self.input_delay_ended)
        words = self.tr("You were typing when this opened. Press Tab or click here to use the keys.")
        self._typing_hint = label(words, wrap=True)
        self._typing_hint.hide()

    @property
    def is_input_delayed(self) -> bool:
        return self._delay_timer.isActive()

    def start_input_delay(self) -> None:
        """Ignore input for a moment: something new has just appeared."""
        self._delay_timer.start()
        self._refresh()

    def extend_input_delay(self) -> None:
        """Start the delay again: input came during it, and more may follow."""
        if self.is_input_delayed:
            self._delay_timer.start()

    def show_typing_hint(self, writing: bool) -> None:  # noqa: FBT001  # a setter, like Qt's own
        """Show why shortcuts do not work yet: the person was typing."""
        if writing and self._typing_hint.isHidden():
            announce(self, self._typing_hint.text())
        self._typing_hint.setVisible(writing)

    def _create_button(self, text: str, key: str, kind: ButtonKind, command: Callable[[], None]) -> ShortcutButton:
        shortcut_button = ShortcutButton(self._themes, text, key, kind)
        shortcut_button.set_shortcut(self, key, command)
        return shortcut_button

    def _refresh(self) -> None:
        raise NotImplementedError


class GuardedDialog(QDialog):
    """Takes the focus itself and ignores shortcuts until a person who was typing presses Tab or clicks in it.

    Text that they type meanwhile still goes to the field where they were typing.
    """

    _outer_field: QWidget | None = None

    @property
    def bar(self) -> ShortcutBar | None:
        """The buttons of the shown content."""
        raise NotImplementedError

    @property
    def initial_focus(self) -> QWidget:
        """The widget that gets the focus when something appears: no field and no button."""
        raise NotImplementedError

    @property
    def is_blocking_keys(self) -> bool:
        """Whether shortcuts do nothing. True also before a new window has the focus."""
        return self.focusWidget() is self

    def set_initial_focus(self, *, was_writing: bool = False) -> None:
        """Set the focus for new content; `was_writing`: the person was typing in the old."""
        if was_writing:
            self._outer_field = None
            self.setFocus()
        elif not self.is_blocking_keys:
            self.initial_focus.setFocus()
        if self.bar is not None:
            self.bar.show_typing_hint(self.is_blocking_keys)

    def setVisible(self, visible: bool) -> None:  # noqa: FBT001  # Qt's signature
        """Take the focus if the person is typing in another window."""
        if visible and not self.isVisible():
            field = QApplication.focusWidget()
            if is_typing_in(field):
                self._outer_field = field
                self.setFocus()
            elif self.is_blocking_keys:
                self.initial_focus.setFocus()
        super().setVisible(visible)

    def event(self, event: QEvent) -> bool:
        """Extend the delay for a key that no field takes: the person is still typing for another place."""
        if event.type() is QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent):
            if self.bar is not None:
                self.bar.extend_input_delay()
            if self.is_blocking_keys:
                # An accepted event triggers no shortcut. Ctrl+Enter, too, may be meant for the message.
                event.accept()
                return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Pass the key to the field of the window below, for which it was meant. Enter is not passed on."""
        field = self._outer_field
        continues_text = writes_text(event) or event.key() in {Qt.Key.Key_Space, Qt.Key.Key_Backspace}
        if self.is_blocking_keys and field is not None and continues_text and shiboken6.isValid(field):
            QCoreApplication.sendEvent(field, event)
        else:
            super().keyPressEvent(event)

    def changeEvent(self, event: QEvent) -> None:
        """Delay input also when the window comes to the front long after it appeared."""
        super().changeEvent(event)
        if event.type() is QEvent.Type.ActivationChange and self.isActiveWindow() and self.bar is not None:
            self.bar.start_input_delay()

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        if self.bar is not None:
            self.bar.show_typing_hint(True)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        if self.bar is not None:
            self.bar.show_typing_hint(self.is_blocking_keys)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Extend the delay: a click on a disabled button arrives here."""
        if self.bar is not None:
            self.bar.extend_input_delay()
        if self.is_blocking_keys:
            self.initial_focus.setFocus()
        super().mousePressEvent(event)


def is_typing_in(widget: QWidget | None) -> bool:
    """Return whether this is a field with unfinished text."""
    match widget:
        case QPlainTextEdit():
            return not widget.isReadOnly() and bool(widget.toPlainText())
        case QLineEdit():
            return not widget.isReadOnly() and bool(widget.text())
        case _:
            return False
