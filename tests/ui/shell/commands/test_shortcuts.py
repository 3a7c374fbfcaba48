"""Keys that the person changed: they count at once and everywhere, and in the next window too."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton, QWidget

from tests.fakes.qt_loop import until
from ui.settings.settings_dialog import SettingsDialog
from ui.settings.shortcuts_form import KeyField
from ui.shell.commands.action import WindowAction, apply_shortcuts

CONTROL = Qt.KeyboardModifier.ControlModifier


async def give(screen, title, key, modifiers=CONTROL):
    """Press new keys for an action on the page."""
    page = screen.desk._settings_presenter.show("shortcuts").shortcuts
    page._search.setText(title)
    field = await screen.wait_for(KeyField, f"Keys of “{title}”")
    QTest.keyClick(field, key, modifiers)
    await screen.idle()


def test_new_keys_count_at_once_and_everywhere_and_after_a_restart(on_screen):
    async def work(screen):
        await give(screen, "New conversation", Qt.Key.Key_F4, Qt.KeyboardModifier.NoModifier)
        assert screen.action("New conversation").keys == "F4"
        assert screen.find(QPushButton, "New conversation").toolTip() == "New conversation (F4)"
        screen.find(SettingsDialog, "Settings").close()
        screen.window.activateWindow()
        screen.editor.setFocus()
        await until(screen.editor.hasFocus)
        requests = []
        screen.window.sidebar.new_requested.connect(lambda: requests.append(1))
        QTest.keyClick(screen.editor, Qt.Key.Key_N, CONTROL)
        assert requests == []
        QTest.keyClick(screen.editor, Qt.Key.Key_F4)
        assert requests == [1]

    async def check(screen):
        assert screen.action("New conversation").keys == "F4"

    on_screen(work)
    on_screen(check, saved=True)


def test_the_keys_that_send_are_chosen_on_the_page(on_screen):
    async def work(screen):
        page = screen.desk._settings_presenter.show("shortcuts").shortcuts
        page.choice_changed.emit("send", 1)
        await screen.idle()
        assert not screen.engine.preferences.chat.enter_sends
        assert screen.action("Send the message").keys == "Ctrl+Enter"
        assert screen.action("New line in the message").keys == "Enter"

    on_screen(work)


@pytest.mark.parametrize(
    ("changed", "keys"),
    [
        ({}, {"first": "Ctrl+N", "second": "Ctrl+M"}),
        ({"first": "Ctrl+M"}, {"first": "Ctrl+M", "second": ""}),
        ({"first": "Ctrl+D", "second": "Ctrl+D"}, {"first": "Ctrl+D", "second": "Ctrl+M"}),
        ({"first": ""}, {"first": "", "second": "Ctrl+M"}),
        ({"gone": "Ctrl+M", "first": "no keys at all"}, {"first": "", "second": "Ctrl+M"}),
    ],
)
def test_two_actions_never_share_keys(qtbot, changed, keys):
    window = QWidget()
    qtbot.addWidget(window)
    actions = [
        WindowAction(window, "view/any", "first", "First", "Ctrl+N"),
        WindowAction(window, "view/any", "second", "Second", "Ctrl+M"),
    ]
    apply_shortcuts(actions, changed)
    assert {action.name: action.keys for action in actions} == keys
