"""A menu about what is under the pointer or the keyboard."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QMenu, QWidget

from ui.look.sentences import escape_mnemonics

_MAX_TITLE_LENGTH = 60
"""Characters of what a menu is about."""


@dataclass(frozen=True, slots=True)
class MenuEntry:
    """`words` have their mnemonic. What cannot be done now has no act. The key does it without the menu too."""

    label: str
    callback: Callable[[], object] | None
    key: QKeySequence.StandardKey | None = None


@dataclass(frozen=True, slots=True)
class MenuSection:
    """Entries that are about one thing. `about` names it; the name of the first topic is the menu's."""

    title: str
    entries: Sequence[MenuEntry]


def make_menu(parent: QWidget, topics: Sequence[MenuSection]) -> QMenu:
    """It deletes itself when it closes."""
    menu = QMenu(parent)
    menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    menu.setToolTipsVisible(True)
    about = next((topic.title for topic in topics if topic.title), "")
    menu.setTitle(about)
    menu.setAccessibleName(QCoreApplication.translate("Transcript", "Menu: {0}").format(about))
    for topic in topics:
        if not menu.isEmpty():
            menu.addSeparator()
        if topic.title:
            _add_title(menu, topic.title)
        for entry in topic.entries:
            _add_entry(menu, entry)
    return menu


def _add_title(menu: QMenu, about: str) -> None:
    shown = about if len(about) <= _MAX_TITLE_LENGTH else f"{about[: _MAX_TITLE_LENGTH - 1]}…"
    head = menu.addAction(escape_mnemonics(shown))
    head.setEnabled(False)


def _run(callback: Callable[[], object], checked: bool = False) -> None:  # noqa: FBT001, FBT002  what the signal carries
    del checked
    callback()


def _add_entry(menu: QMenu, entry: MenuEntry) -> None:
    action = menu.addAction(entry.label)
    action.setEnabled(entry.callback is not None)
    if entry.key is not None:
        # The key is shown; it works through the transcript, also while there is no menu.
        action.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
        action.setShortcut(QKeySequence(entry.key))
        action.setShortcutVisibleInContextMenu(True)
    if entry.callback is not None:
        action.triggered.connect(partial(_run, entry.callback))
