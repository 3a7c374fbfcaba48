"""Reading the window's actions: the command palette and the list of shortcuts show the same ones."""

from PySide6.QtGui import QAction
from PySide6.QtWidgets import QWidget

from ui.look.sentences import native_shortcut

_NUMBERED = "isNumbered"
_SYNONYMS = "otherWords"
_SHOWN_SHORTCUT = "shownKeys"


def mark_numbered(action: QAction) -> None:
    """Mark one of a series such as Ctrl+1 to Ctrl+9, which is no use in a list of commands."""
    action.setProperty(_NUMBERED, True)


def listed_actions(window: QWidget) -> list[QAction]:
    """The actions of a window, without those of a series."""
    return [each for each in window.actions() if each.property(_NUMBERED) is not True]


def numbered_actions(window: QWidget) -> list[QAction]:
    """The actions of the series."""
    return [each for each in window.actions() if each.property(_NUMBERED) is True]


def set_synonyms(action: QAction, words: str) -> None:
    """Say under which other words, with spaces between them, people look for it."""
    action.setProperty(_SYNONYMS, words)


def synonyms(action: QAction) -> str:
    """Return them; empty where its text says all."""
    return str(action.property(_SYNONYMS) or "")


def set_shown_shortcut(action: QAction, keys: str) -> None:
    """Say which keys do it where they are pressed in one part of the window, which takes them itself."""
    action.setProperty(_SHOWN_SHORTCUT, keys)


def shortcut_text(action: QAction) -> str:
    """The keys as people here know them; empty where there are none."""
    return native_shortcut(str(action.property(_SHOWN_SHORTCUT) or "") or action.shortcut().toString())
