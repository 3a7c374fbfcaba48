"""The menus of the rows of the sidebar: for conversations, for folders, and for the list itself."""

from collections.abc import Callable
from typing import Literal

from PySide6.QtCore import QCoreApplication, Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QMenu

translate = QCoreApplication.translate

RowAction = Literal[
    "pin",
    "unpin",
    "archive",
    "unarchive",
    "move",
    "tag",
    "branches",
    "duplicate",
    "merge",
    "export",
    "link",
    "window",
    "delete",
]
"""What can be done with one conversation or several."""
FolderAction = Literal["create", "edit", "move", "delete"]
"""What can be done with a folder; `create` makes another one in it."""


def fill_conversation_menu(
    menu: QMenu,
    *,
    count: int,
    is_pinned: bool,
    is_archived: bool,
    is_marked: bool,
    toggle_mark: Callable[[], object],
    rename: Callable[[], object],
    act: Callable[[RowAction], object],
) -> None:
    """Fill the menu for `count` conversations; `toggle_mark` marks or unmarks the one of the row."""
    context = "ConversationMenu"

    def add(words: str, action: RowAction) -> QAction:
        return menu.addAction(words, lambda: act(action))

    menu.clear()
    if count == 1:
        menu.addAction(translate(context, "Rename…"), rename).setShortcut(QKeySequence(Qt.Key.Key_F2))
        add(translate(context, "Open in new window"), "window")
        add(translate(context, "Branches…"), "branches")
    else:
        menu.addAction(translate(context, "Conversations: {0}").format(count)).setEnabled(False)
    if is_archived:
        add(translate(context, "Bring back from the archive"), "unarchive")
    elif is_pinned:
        add(translate(context, "Unpin"), "unpin")
    else:
        add(translate(context, "Pin"), "pin")
    add(translate(context, "Move to a folder…"), "move")
    add(translate(context, "Tags…"), "tag")
    if not is_archived:
        add(translate(context, "Archive"), "archive")
    menu.addSeparator()
    if count == 1:
        add(translate(context, "Duplicate"), "duplicate")
    else:
        add(translate(context, "Merge into one"), "merge")
    add(translate(context, "Export…"), "export")
    if count == 1:
        add(translate(context, "Copy link"), "link")
    menu.addSeparator()
    words = translate(context, "Deselect") if is_marked else translate(context, "Select several")
    menu.addAction(words, toggle_mark).setShortcut(QKeySequence(Qt.Modifier.CTRL | Qt.Key.Key_Space))
    menu.addSeparator()
    add(translate(context, "Delete"), "delete").setShortcut(QKeySequence(QKeySequence.StandardKey.Delete))


def fill_folder_menu(menu: QMenu, act: Callable[[FolderAction], object]) -> None:
    """Fill the menu for a folder."""
    context = "FolderMenu"
    menu.clear()
    edit = menu.addAction(translate(context, "Name, colour and instructions…"), lambda: act("edit"))
    edit.setShortcut(QKeySequence(Qt.Key.Key_F2))
    menu.addAction(translate(context, "New folder in it…"), lambda: act("create"))
    menu.addAction(translate(context, "Move to a folder…"), lambda: act("move"))
    menu.addSeparator()
    delete = menu.addAction(translate(context, "Delete folder…"), lambda: act("delete"))
    delete.setShortcut(QKeySequence(QKeySequence.StandardKey.Delete))


def fill_list_menu(menu: QMenu, create_folder: Callable[[], object]) -> None:
    """Fill the menu for the room beside the rows."""
    menu.clear()
    menu.addAction(translate("FolderMenu", "New folder…"), create_folder)
