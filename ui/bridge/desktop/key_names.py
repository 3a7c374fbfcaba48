"""Names of keys: Qt's into those of X11, and into those of the XDG Shortcuts Specification."""

from typing import Any, NamedTuple

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence

from desktop_agent.types.errors import AgentError, Sentence

_MODIFIERS = {
    Qt.KeyboardModifier.ControlModifier: "CTRL",
    Qt.KeyboardModifier.AltModifier: "ALT",
    Qt.KeyboardModifier.ShiftModifier: "SHIFT",
    Qt.KeyboardModifier.MetaModifier: "LOGO",
}
# Of keysymdef.h: key, keysym and its name. Letters, digits and other characters are their own.
_KEYSYMS = {
    Qt.Key.Key_Backspace: (0xFF08, "BackSpace"),
    Qt.Key.Key_Tab: (0xFF09, "Tab"),
    Qt.Key.Key_Return: (0xFF0D, "Return"),
    Qt.Key.Key_Pause: (0xFF13, "Pause"),
    Qt.Key.Key_Escape: (0xFF1B, "Escape"),
    Qt.Key.Key_Home: (0xFF50, "Home"),
    Qt.Key.Key_Left: (0xFF51, "Left"),
    Qt.Key.Key_Up: (0xFF52, "Up"),
    Qt.Key.Key_Right: (0xFF53, "Right"),
    Qt.Key.Key_Down: (0xFF54, "Down"),
    Qt.Key.Key_PageUp: (0xFF55, "Prior"),
    Qt.Key.Key_PageDown: (0xFF56, "Next"),
    Qt.Key.Key_End: (0xFF57, "End"),
    Qt.Key.Key_Print: (0xFF61, "Print"),
    Qt.Key.Key_Insert: (0xFF63, "Insert"),
    Qt.Key.Key_Menu: (0xFF67, "Menu"),
    Qt.Key.Key_Enter: (0xFF8D, "KP_Enter"),
    Qt.Key.Key_Delete: (0xFFFF, "Delete"),
    Qt.Key.Key_Space: (0x20, "space"),
    Qt.Key.Key_Comma: (0x2C, "comma"),
    Qt.Key.Key_Minus: (0x2D, "minus"),
    Qt.Key.Key_Period: (0x2E, "period"),
    Qt.Key.Key_Slash: (0x2F, "slash"),
}
_F1 = 0xFFBE
_UNICODE = 0x0100_0000
"""Added to the code of a character for its keysym, from the second page of Unicode on; Qt's own keys begin here."""


class KeysUnavailable(AgentError):
    """These keys cannot be had everywhere."""

    kind = "keys"
    default_remedy = "Choose other keys."


class KeyCombination(NamedTuple):
    """Keys that work everywhere: the names of the modifiers, the keysym of the key, and its name, "" if not known."""

    modifiers: tuple[str, ...]
    keysym: int
    name: str
    title: str

    @property
    def trigger(self) -> str:
        """The keys as the XDG Shortcuts Specification writes them; "" where the name of the key is not known."""
        return "+".join((*self.modifiers, self.name)) if self.name else ""


def parse_keys(keys: str) -> KeyCombination:
    """Parse keys in Qt's portable form. Raises KeysUnavailable."""
    # The stubs of PySide6 do not know that it is a sequence.
    sequence: Any = QKeySequence(keys)
    title: str = sequence.toString(QKeySequence.SequenceFormat.NativeText) or keys
    if sequence.count() != 1 or sequence[0].key() in {Qt.Key.Key_unknown, Qt.Key(0)}:
        raise KeysUnavailable(Sentence("“{keys}” are no keys.", {"keys": title}))
    keysym, name = _keysym(sequence[0].key())
    if not keysym:
        raise KeysUnavailable(Sentence("{keys} cannot be used everywhere.", {"keys": title}))
    modifiers: Qt.KeyboardModifier = sequence[0].keyboardModifiers()
    return KeyCombination(tuple(word for flag, word in _MODIFIERS.items() if flag & modifiers), keysym, name, title)


def _keysym(key: Qt.Key) -> tuple[int, str]:
    if key in _KEYSYMS:
        return _KEYSYMS[key]
    if Qt.Key.Key_F1 <= key <= Qt.Key.Key_F35:
        number = key - Qt.Key.Key_F1
        return _F1 + number, f"F{number + 1}"
    if key >= _UNICODE:
        return 0, ""
    character = chr(key).lower()
    code = ord(character[0])
    is_plain = character.isascii() and character.isalnum()
    return (code if code < 0x100 else _UNICODE | code), character if is_plain else ""
