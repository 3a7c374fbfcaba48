"""Convert Qt's names of keys into those of X11 and of the XDG Shortcuts Specification."""

import tomllib
from functools import cache
from typing import Any, NamedTuple

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence

from desktop_agent.types.errors import AgentError, Sentence
from resources import resource_path

_MODIFIERS = {
    Qt.KeyboardModifier.ControlModifier: "CTRL",
    Qt.KeyboardModifier.AltModifier: "ALT",
    Qt.KeyboardModifier.ShiftModifier: "SHIFT",
    Qt.KeyboardModifier.MetaModifier: "LOGO",
}
_F1 = 0xFFBE
_UNICODE = 0x0100_0000
"""Added to the code of a character for its keysym, from the second page of Unicode on; Qt's own keys begin here."""


@cache
def _keysyms() -> dict[Qt.Key, tuple[int, str]]:
    table = tomllib.loads(resource_path("keysyms.toml").read_text(encoding="utf-8"))
    return {Qt.Key[f"Key_{key}"]: (keysym, name) for key, (keysym, name) in table.items()}


class KeysUnavailable(AgentError):
    """These keys cannot be used as global keys."""

    kind = "keys"
    default_remedy = "Choose other keys."


class KeyCombination(NamedTuple):
    """Global keys: the names of the modifiers, the keysym of the key, and its name, "" if not known."""

    modifiers: tuple[str, ...]
    keysym: int
    name: str
    title: str

    @property
    def trigger(self) -> str:
        """The keys as the XDG Shortcuts Specification writes them; "" if the name of the key is not known."""
        return "+".join((*self.modifiers, self.name)) if self.name else ""


def parse_keys(keys: str) -> KeyCombination:
    """Parse keys in Qt's portable form. Raises KeysUnavailable."""
    # The stubs of PySide6 do not know that it is a sequence.
    sequence: Any = QKeySequence(keys)
    title: str = sequence.toString(QKeySequence.SequenceFormat.NativeText) or keys
    if sequence.count() != 1 or sequence[0].key() in {Qt.Key.Key_unknown, Qt.Key(0)}:
        raise KeysUnavailable(Sentence("“{keys}” is not a keyboard shortcut.", {"keys": title}))
    keysym, name = _keysym(sequence[0].key())
    if not keysym:
        raise KeysUnavailable(Sentence("{keys} cannot be used everywhere.", {"keys": title}))
    modifiers: Qt.KeyboardModifier = sequence[0].keyboardModifiers()
    return KeyCombination(tuple(word for flag, word in _MODIFIERS.items() if flag & modifiers), keysym, name, title)


def _keysym(key: Qt.Key) -> tuple[int, str]:
    if key in (keysyms := _keysyms()):
        return keysyms[key]
    if Qt.Key.Key_F1 <= key <= Qt.Key.Key_F35:
        number = key - Qt.Key.Key_F1
        return _F1 + number, f"F{number + 1}"
    if key >= _UNICODE:
        return 0, ""
    character = chr(key).lower()
    code = ord(character[0])
    is_plain = character.isascii() and character.isalnum()
    return (code if code < 0x100 else _UNICODE | code), character if is_plain else ""
