"""A field in which keys are chosen by pressing them."""

import re

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFocusEvent, QHideEvent, QKeyEvent, QKeySequence
from PySide6.QtWidgets import QKeySequenceEdit, QLineEdit

from ui.forms.controls import Control

_FIELD_WIDTH = 160
_FUNCTION_KEY = re.compile(r"(Shift\+)?F\d+")


class KeyField(QKeySequenceEdit):
    """A field that takes the next keys that are pressed. Escape is left to the dialog, and Tab goes on.

    With `clears`, Escape and Backspace empty a field that has keys.
    """

    pressed = Signal(str)
    """The keys in Qt's portable form; "" when the field was cleared."""
    edited = Signal(str)
    """As `pressed`, but only if the keys changed; also emitted when the field is hidden."""

    _shown = ""

    def __init__(self, name: str, placeholder: str, *, clears: bool = False) -> None:
        super().__init__()
        self._placeholder = placeholder
        self._clears = clears
        self.setMaximumSequenceLength(1)
        self.setMinimumWidth(_FIELD_WIDTH)
        self.setAccessibleName(name)
        self.show_keys("")
        self.editingFinished.connect(self._on_finished)

    def setAccessibleName(self, name: str) -> None:
        """Name the line inside too: it is what has the keyboard."""
        super().setAccessibleName(name)
        for line in self.findChildren(QLineEdit):
            line.setAccessibleName(name)

    @property
    def keys(self) -> str:
        return self.keySequence().toString()

    def show_keys(self, keys: str) -> None:
        """Show keys without a signal."""
        self._set_keys(keys)
        self._shown = self.keys

    def _set_keys(self, keys: str) -> None:
        self.setKeySequence(QKeySequence(keys))
        self._show_placeholder()

    def _show_placeholder(self) -> None:
        """Show our placeholder: Qt's own comes back with each change, and whenever the keyboard leaves."""
        for line in self.findChildren(QLineEdit):
            line.setPlaceholderText(self._placeholder)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._show_placeholder()

    def hideEvent(self, event: QHideEvent) -> None:
        """Report keys that are still held down: the dialog may be closed for good."""
        super().hideEvent(event)
        self._emit_edited()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        is_plain = not event.modifiers()
        if self._clears and self.keys and is_plain and event.key() in {Qt.Key.Key_Escape, Qt.Key.Key_Backspace}:
            self._set_keys("")
            self._emit_edited()
        elif event.key() == Qt.Key.Key_Escape and is_plain:
            event.ignore()
        else:
            super().keyPressEvent(event)

    def _on_finished(self) -> None:
        self._show_placeholder()
        self.pressed.emit(self.keys)
        self._emit_edited()

    def _emit_edited(self) -> None:
        if self.keys != self._shown:
            self._shown = self.keys
            self.edited.emit(self.keys)


def key_field(placeholder: str) -> Control[KeyField]:
    """Create a field for keys that may be empty."""
    field = KeyField("", placeholder, clears=True)

    return Control(
        widget=field,
        read=lambda: field.keys,
        show=field.show_keys,
        changed=field.edited,
        parts=(field, *field.findChildren(QLineEdit)),
        fit="itself",
    )


def is_bare(keys: str) -> bool:
    """Return whether the keys are pressed without Ctrl, Alt or Meta, and are no function key."""
    return not keys.startswith(("Ctrl+", "Alt+", "Meta+")) and _FUNCTION_KEY.fullmatch(keys) is None
