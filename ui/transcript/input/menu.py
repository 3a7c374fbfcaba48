"""A menu about what is under the pointer or the keyboard."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QMenu, QWidget

from ui.look.sentences import literal

_WIDEST = 60
"""Characters of what a menu is about."""


@dataclass(frozen=True, slots=True)
class Entry:
    """`words` have their mnemonic. What cannot be done now has no act. The key does it without the menu too."""

    words: str
    act: Callable[[], object] | None
    key: QKeySequence.StandardKey | None = None


@dataclass(frozen=True, slots=True)
class Topic:
    """Entries that are about one thing. `about` names it; the name of the first topic is the menu's."""

    about: str
    entries: Sequence[Entry]


def make_menu(parent: QWidget, topics: Sequence[Topic]) -> QMenu:
    """It deletes itself when it closes."""
    menu = QMenu(parent)
    menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    menu.setToolTipsVisible(True)
    about = next((topic.about for topic in topics if topic.about), "")
    menu.setTitle(about)
    menu.setAccessibleName(QCoreApplication.translate("Transcript", "Menu: {0}").format(about))
    for topic in topics:
        if not menu.isEmpty():
            menu.addSeparator()
        if topic.about:
            _add_head(menu, topic.about)
        for entry in topic.entries:
            _add(menu, entry)
    return menu


def _add_head(menu: QMenu, about: str) -> None:
    shown = about if len(about) <= _WIDEST else f"{about[: _WIDEST - 1]}…"
    head = menu.addAction(literal(shown))
    head.setEnabled(False)


def _press(act: Callable[[], object], checked: bool = False) -> None:  # noqa: FBT001, FBT002  what the signal carries
    del checked
    act()


def _add(menu: QMenu, entry: Entry) -> None:
    action = menu.addAction(entry.words)
    action.setEnabled(entry.act is not None)
    if entry.key is not None:
        # The key is shown; it works through the transcript, also while there is no menu.
        action.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
        action.setShortcut(QKeySequence(entry.key))
        action.setShortcutVisibleInContextMenu(True)
    if entry.act is not None:
        action.triggered.connect(partial(_press, entry.act))
