"""Reading the window's actions: the command palette and the list of shortcuts show the same ones."""

from PySide6.QtGui import QAction
from PySide6.QtWidgets import QWidget

from ui.look.sentences import shown_keys

_NUMBERED = "isNumbered"
_OTHER_WORDS = "otherWords"
_SHOWN_KEYS = "shownKeys"


def mark_numbered(action: QAction) -> None:
    """Mark one of a series such as Ctrl+1 to Ctrl+9, which is no use in a list of commands."""
    action.setProperty(_NUMBERED, True)


def commands(window: QWidget) -> list[QAction]:
    """The actions of a window, without those of a series."""
    return [each for each in window.actions() if each.property(_NUMBERED) is not True]


def numbered(window: QWidget) -> list[QAction]:
    """The actions of the series."""
    return [each for each in window.actions() if each.property(_NUMBERED) is True]


def set_other_words(action: QAction, words: str) -> None:
    """Say under which other words, with spaces between them, people look for it."""
    action.setProperty(_OTHER_WORDS, words)


def other_words(action: QAction) -> str:
    """Return them; empty where its text says all."""
    return str(action.property(_OTHER_WORDS) or "")


def set_shown_keys(action: QAction, keys: str) -> None:
    """Say which keys do it where they are pressed in one part of the window, which takes them itself."""
    action.setProperty(_SHOWN_KEYS, keys)


def keys_of(action: QAction) -> str:
    """The keys as people here know them; empty where there are none."""
    return shown_keys(str(action.property(_SHOWN_KEYS) or "") or action.shortcut().toString())
