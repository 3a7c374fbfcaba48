"""Reading the window's actions: the command palette and the list of shortcuts show the same ones."""

from PySide6.QtGui import QAction
from PySide6.QtWidgets import QWidget

from ui.look.sentences import shown_keys

_NUMBERED = "isNumbered"


def mark_numbered(action: QAction) -> None:
    """Mark one of a series such as Ctrl+1 to Ctrl+9, which is no use in a list of commands."""
    action.setProperty(_NUMBERED, True)


def commands(window: QWidget) -> list[QAction]:
    """The actions of a window, without those of a series."""
    return [each for each in window.actions() if each.property(_NUMBERED) is not True]


def numbered(window: QWidget) -> list[QAction]:
    """The actions of the series."""
    return [each for each in window.actions() if each.property(_NUMBERED) is True]


def keys_of(action: QAction) -> str:
    """The shortcut as people here know it; empty where there is none."""
    return shown_keys(action.shortcut().toString())
