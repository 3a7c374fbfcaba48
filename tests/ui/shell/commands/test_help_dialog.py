"""The help: what a person finds in it, and that it names what the window can really do."""

import re
import sys

import pytest
from PySide6.QtCore import QObject, Qt, QUrl, Slot
from PySide6.QtGui import QDesktopServices
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QListView, QListWidget, QPushButton, QWidget

from desktop_agent.processes.program_version import program_version
from resources import resource_path
from tests.fakes.qt_loop import until
from tests.ui.bridge.fake_opener import fake_opener
from ui.bridge.desktop.opening import AddressOpener
from ui.shell.commands.action import WindowAction
from ui.shell.commands.help_dialog import AboutPage, HelpDialog, ShortcutsPage
from ui.style.list_rows import RowRole
from ui.style.theme import ThemeSource
from ui.transcript.view import TranscriptView


class Browser(QObject):
    """A fake of the system's file manager."""

    def __init__(self):
        super().__init__()
        self.opened = []

    @Slot(QUrl)
    def open(self, url):
        self.opened.append(url.toLocalFile())


def test_f1_opens_the_guide_and_esc_gives_the_keyboard_back(on_screen):
    async def work(screen):
        screen.editor.setFocus()
        QTest.keyClick(screen.editor, Qt.Key.Key_F1)
        dialog = screen.find(HelpDialog, "Help")
        guide = screen.find(TranscriptView, "Guide")
        await until(guide.hasFocus)
        assert guide.verticalScrollBar().value() == 0
        row = guide.row_viewport.rows.row(0)
        assert "Connect a model" in row.spoken_text()
        QTest.keyClick(guide, Qt.Key.Key_Escape)
        assert not dialog.isVisible()
        screen.action("Help").trigger()
        assert screen.find(HelpDialog, "Help") is dialog

    on_screen(work)


def test_about_says_version_licence_and_folder(on_screen):
    async def work(screen):
        screen.front.app.setApplicationVersion(program_version())
        screen.action("About Desktop Agent").trigger()
        words = screen.words(screen.find(HelpDialog, "Help"))
        assert f"Version {program_version()}" in words
        assert str(screen.engine.folder) in words
        assert any(text.startswith("MIT.") for text in words)

    on_screen(work)


def test_the_foot_of_the_settings_says_the_version_and_leads_to_about(on_screen):
    async def work(screen):
        screen.front.app.setApplicationVersion(program_version())
        screen.action("Settings").trigger()
        screen.press(f"About · version {program_version()}")
        assert f"Version {program_version()}" in screen.words(screen.find(HelpDialog, "Help"))

    on_screen(work)


def test_the_shortcuts_name_the_keys_that_the_message_takes_itself(on_screen):
    async def work(screen):
        def keys():
            model = screen.find(QListView, "Keyboard shortcuts").model()
            rows = [model.index(n, 0) for n in range(model.rowCount())]
            return {row.data(): row.data(RowRole.DETAIL) for row in rows}

        screen.action("Keyboard shortcuts").trigger()
        expected = {"Send the message": "Enter", "New line in the message": "Shift+Enter", "Stop the answer": "Esc"}
        assert expected.items() <= keys().items()
        preferences = screen.engine.preferences
        chat = preferences.chat.model_copy(update={"enter_sends": False})
        await screen.engine.change_preferences(preferences.model_copy(update={"chat": chat}))
        await screen.idle()
        screen.action("Keyboard shortcuts").trigger()
        expected |= {"Send the message": "Ctrl+Enter", "New line in the message": "Enter"}
        assert expected.items() <= keys().items()

    on_screen(work)


def test_the_data_folder_is_opened(qtbot, tmp_path, monkeypatch):
    monkeypatch.setattr("ui.bridge.desktop.opening.shutil.which", lambda _: None)
    browser = Browser()
    opener = AddressOpener()
    page = AboutPage(ThemeSource(), tmp_path, opener, QWidget(), lambda: None)
    qtbot.addWidget(page)
    QDesktopServices.setUrlHandler("file", browser, "open")
    try:
        open_button = next(button for button in page.findChildren(QPushButton) if "folder" in button.accessibleName())
        qtbot.mouseClick(open_button, Qt.MouseButton.LeftButton)
    finally:
        QDesktopServices.unsetUrlHandler("file")
    assert browser.opened == [str(tmp_path)]
    assert all(label.textFormat() == Qt.TextFormat.PlainText for label in page.findChildren(QLabel) if label.text())


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="xdg-open is Linux's")
def test_a_page_or_folder_that_nothing_opens_is_said_in_the_window_of_the_help(on_screen, monkeypatch, tmp_path):
    fake_opener(tmp_path, monkeypatch, 3)

    async def work(screen):
        screen.action("Help").trigger()
        dialog = screen.find(HelpDialog, "Help")
        dialog.guide.link_activated.emit("https://a.example/b")
        await until(lambda: any("“https://a.example/b” could not be opened." in text for text in screen.words(dialog)))
        screen.action("About Desktop Agent").trigger()
        assert not any("could not be opened" in text for text in screen.words(dialog))
        screen.press("Open the data folder")
        await until(lambda: any(f"“{screen.engine.folder}” could not" in text for text in screen.words(dialog)))

    on_screen(work)


def test_the_guide_has_no_button_that_jumps_to_its_end(on_screen):
    async def work(screen):
        screen.action("Help").trigger()
        guide = screen.find(HelpDialog, "Help").guide
        guide.scroller.scroll_by(50)
        assert not guide.row_viewport.rows.following
        assert guide.jump_button.isHidden()

    on_screen(work)


def test_every_action_with_keys_is_listed_once(qtbot):
    window = QWidget()
    qtbot.addWidget(window)
    for text, keys in (("Find", "Ctrl+F"), ("No keys", ""), ("First", "Ctrl+1"), ("Second", "Ctrl+2")):
        action = WindowAction(window, "view/any", text, text, keys)
        action.is_numbered = text in ("First", "Second")
    page = ShortcutsPage(ThemeSource())
    qtbot.addWidget(page)
    page.show_actions_of(window)
    model = page.findChild(QListView).model()
    rows = [(model.index(n, 0).data(), model.index(n, 0).data(RowRole.DETAIL)) for n in range(model.rowCount())]
    assert rows == [("Find", "Ctrl+F"), ("Conversation 1 to 2 of the list", "Ctrl+1 … Ctrl+2")]
    assert model.index(0, 0).data(Qt.ItemDataRole.AccessibleTextRole) == "Find, Ctrl+F"


def test_no_two_actions_share_keys_and_the_guide_names_real_ones(on_screen):
    async def work(screen):
        keys = [action.shortcut().toString() for action in screen.window.actions() if action.shortcut().toString()]
        assert sorted(keys) == sorted(set(keys))
        guide = resource_path("guide.md").read_text(encoding="utf-8")
        mentioned = set(re.findall(r"\b(?:Ctrl\+(?:Shift\+)?[A-Z0-9,](?!\w)|F\d)", guide))
        # In the list of conversations, and in the approval dialog.
        elsewhere = {"F2", "Ctrl+Shift+C"}
        assert {"Ctrl+F", "F1"} <= mentioned
        assert mentioned - elsewhere <= set(keys)

    on_screen(work)


def test_pages_are_turned_by_keyboard(on_screen):
    async def work(screen):
        screen.action("Keyboard shortcuts").trigger()
        pages = screen.find(QListWidget, "Pages")
        assert screen.find(QListView, "Keyboard shortcuts").model().rowCount() > 15
        QTest.keyClick(pages, Qt.Key.Key_Down)
        assert screen.find(QPushButton, "Open the data folder") is not None

    on_screen(work)
