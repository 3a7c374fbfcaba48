"""The buttons of dialogs: what leaves everything as it is first, what is done last; and the headings above them.

And their pictures and sizes, which follow the theme while they are open.
"""

from unittest.mock import MagicMock

import pytest
from PySide6.QtWidgets import QLabel, QPushButton, QToolButton, QWidget

from desktop_agent.types.folders import Folder
from ui.settings.trash_dialog import TrashDialog
from ui.shell.branch_tree.branch_dialog import BranchDialog
from ui.shell.inbox import InboxDialog
from ui.sidebar.folder_dialogs import FolderDialog, FolderPicker, TagDialog
from ui.sidebar.title_dialog import TitleDialog
from ui.style.theme import DARK, LIGHT, ThemeSource
from ui.style.widgets import QuestionBox

DIALOGS = {
    "folder": lambda themes, over: FolderDialog(themes, Folder("", ""), over),
    "picker": lambda themes, over: FolderPicker(themes, (), over),
    "tags": lambda themes, over: TagDialog(themes, (), (), over),
    "title": lambda themes, over: TitleDialog(themes, "Pears", over),
    "inbox": InboxDialog,
    "branches": BranchDialog,
    "trash": lambda themes, over: TrashDialog(themes, MagicMock(), over),
}


@pytest.fixture
def window(qtbot):
    made = QWidget()
    qtbot.addWidget(made)
    return made


@pytest.fixture(params=DIALOGS)
def dialog(request, window):
    made = DIALOGS[request.param](ThemeSource(), window)
    made.show()
    return made


def test_what_is_done_is_the_last_button_and_filled(dialog):
    buttons = [each for each in dialog.findChildren(QPushButton) if each.isVisible()]
    row = sorted(buttons, key=lambda each: each.mapTo(dialog, each.rect().topLeft()).x())
    filled = [each for each in row if each.property("kind") == "primary"]
    assert filled in ([], row[-1:])
    assert [each.text() for each in row if each.text() in {"Cancel", "Close"}]


def test_a_heading_says_what_it_is(dialog):
    headings = [each.text() for each in dialog.findChildren(QLabel) if each.property("kind") == "heading"]
    assert headings == [dialog.windowTitle()]


@pytest.mark.parametrize("name", ["picker", "tags", "title"])
def test_large_text_makes_no_dialog_wider_than_the_screen(window, name):
    themes = ThemeSource()
    themes.use(themes.theme, 300)
    made = DIALOGS[name](themes, window)
    made.show()
    assert made.width() <= made.screen().availableSize().width()


def pictures_of(dialog):
    labels = [label.pixmap().toImage() for label in dialog.findChildren(QLabel) if not label.pixmap().isNull()]
    buttons = [button for button in dialog.findChildren(QToolButton) if not button.icon().isNull()]
    return [*labels, *(button.icon().pixmap(button.iconSize()).toImage() for button in buttons)]


def question(themes, over):
    box = QuestionBox(themes, "Delete", "Delete it?", "", over)
    box.add_answer("Keep", "")
    return box


@pytest.mark.parametrize("build", [DIALOGS["folder"], question])
def test_pictures_follow_the_theme_while_a_dialog_is_open(window, build):
    themes = ThemeSource(LIGHT)
    dialog, dark = build(themes, window), build(ThemeSource(DARK, 150), window)
    dialog.open()
    dark.open()
    expected = pictures_of(dark)
    assert pictures_of(dialog) != expected
    themes.use(DARK, 150)
    assert pictures_of(dialog) == expected


@pytest.mark.parametrize("build", [DIALOGS["folder"], question])
def test_a_dialog_has_room_for_larger_text_while_it_is_open(window, qtbot, build):
    window.resize(1200, 800)
    themes = ThemeSource(LIGHT)
    dialog, large = build(themes, window), build(ThemeSource(LIGHT, 150), window)
    dialog.open()
    large.open()
    assert dialog.width() < large.width()
    themes.use(LIGHT, 150)
    qtbot.waitUntil(lambda: dialog.width() == large.width())
