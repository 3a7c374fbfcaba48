"""Dialogs that come up by themselves, and whose keys answer: none may that was on its way elsewhere."""

from collections.abc import Callable

from PySide6.QtCore import QEvent, QTimer, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QApplication, QDialog, QLineEdit, QPlainTextEdit, QWidget

from ui.approval.parts.key_button import ShortcutButton
from ui.look.controls import ButtonKind, announce, label
from ui.look.theme import ThemeSource

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
