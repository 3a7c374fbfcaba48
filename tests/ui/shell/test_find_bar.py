"""The bar that finds in the conversation: its words, its keys, and where the keyboard is afterwards."""

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QLineEdit, QToolButton, QVBoxLayout, QWidget
from shiboken6 import delete

from desktop_agent.conversation.transcript import Transcript
from desktop_agent.types.messages import Message
from desktop_agent.types.provider_events import ContentDelta
from tests.fakes.qt_loop import until
from tests.fakes.scripted_provider import Turn
from tests.fakes.transcript_feed import NoPictures
from ui.shell import find_and_caret
from ui.shell.find_and_caret import FindBar
from ui.style.theme import ThemeSource
from ui.transcript.view import TranscriptView

SHIFT = Qt.KeyboardModifier.ShiftModifier


class FindBarHarness(QWidget):
    def __init__(self, qtbot, messages):
        super().__init__()
        self.qtbot = qtbot
        self.view = TranscriptView(ThemeSource(), NoPictures(Path()))
        self.bar = FindBar(ThemeSource(), self.view.finder, self.view)
        self.editor = QLineEdit()
        column = QVBoxLayout(self)
        for widget in (self.bar, self.view, self.editor):
            column.addWidget(widget)
        qtbot.addWidget(self, before_close_func=lambda harness: harness.view.close_workers())
        self.resize(700, 500)
        self.view.set_transcript(Transcript(messages))
        with qtbot.waitExposed(self):
            self.show()
        self.activateWindow()
        self.editor.setFocus()

    @property
    def field(self):
        return self.bar.findChild(QLineEdit)

    def type(self, text):
        QTest.keyClicks(self.field, text)
        return self.count()

    def count(self):
        finding = self.view.finder
        self.qtbot.waitUntil(lambda: finding._work is None and not finding._rest.isActive())
        return self.field.accessibleDescription()

    def key(self, key, modifier=Qt.KeyboardModifier.NoModifier):
        QTest.keyClick(QApplication.focusWidget(), key, modifier)
        return self.count()

    def button(self, name):
        return next(button for button in self.bar.findChildren(QToolButton) if button.accessibleName() == name)


@pytest.fixture
def harness(qtbot):
    messages = [Message.user(f"Number {number}. Cat cat concat") for number in range(4)]
    harness = FindBarHarness(qtbot, messages)
    qtbot.waitUntil(harness.editor.hasFocus)
    harness.bar.open()
    return harness


def test_it_counts_while_somebody_types_and_says_when_there_is_nothing(harness):
    assert harness.field.hasFocus()
    assert harness.field.accessibleName() == "Find in conversation"
    assert harness.type("cat") == "1 of 12"
    assert harness.type("x") == "No matches"
    assert not harness.button("Next match").isEnabled()
    harness.field.clear()
    assert harness.count() == ""


def test_keys_step_and_go_around(harness):
    harness.type("cat")
    assert harness.key(Qt.Key.Key_Return) == "2 of 12"
    assert harness.key(Qt.Key.Key_Return, SHIFT) == "1 of 12"
    assert harness.key(Qt.Key.Key_Return, SHIFT) == "12 of 12"
    harness.bar.step(1)
    assert harness.count() == "1 of 12"
    QTest.mouseClick(harness.button("Next match"), Qt.MouseButton.LeftButton)
    assert harness.count() == "2 of 12"
    QTest.mouseClick(harness.button("Previous match"), Qt.MouseButton.LeftButton)
    assert harness.count() == "1 of 12"


def test_case_and_whole_words_are_asked_for_by_buttons(harness):
    harness.type("cat")
    harness.button("Whole words").click()
    assert harness.count() == "1 of 8"
    harness.button("Match case").click()
    assert harness.count() == "1 of 4"


def test_escape_closes_it_gives_the_keyboard_back_and_takes_the_marks_away(harness):
    harness.type("cat")
    harness.key(Qt.Key.Key_Escape)
    assert harness.bar.isHidden()
    assert harness.editor.hasFocus()
    assert not harness.view.finder.is_on
    harness.bar.open()
    assert harness.count() == "1 of 12"
    assert harness.field.selectedText() == "cat"


def test_escape_leaves_the_message_of_the_match_to_keys_and_commands(harness):
    harness.type("cat")
    harness.bar.step(-1)
    row = harness.view.finder._current[0]
    assert row > 1
    harness.key(Qt.Key.Key_Escape)
    assert harness.view.row_viewport.focused == (row, "")
    harness.bar.open()
    harness.type("no such word")
    harness.key(Qt.Key.Key_Escape)
    assert harness.view.row_viewport.focused == (row, "")


def test_the_keyboard_goes_to_the_transcript_where_it_cannot_go_back(harness):
    harness.editor.hide()
    harness.key(Qt.Key.Key_Escape)
    assert harness.view.hasFocus()


def test_the_keyboard_goes_to_the_transcript_where_what_had_it_has_gone(harness):
    harness.bar.open()
    delete(harness.editor)
    harness.button("Close find bar").click()
    assert harness.view.hasFocus()


def test_stepping_with_a_closed_bar_opens_it(harness):
    harness.type("cat")
    harness.key(Qt.Key.Key_Escape)
    harness.bar.step(1)
    assert harness.bar.isVisible()
    assert harness.count() == "1 of 12"


def test_the_count_is_read_out_when_typing_rests_and_at_each_step(harness, monkeypatch):
    announcements = []
    monkeypatch.setattr(find_and_caret, "announce", lambda widget, words: announcements.append(words))
    harness.bar._announce_timer.setInterval(30)
    harness.type("cat")
    harness.qtbot.waitUntil(lambda: announcements == ["1 of 12"])
    harness.key(Qt.Key.Key_Return)
    assert announcements == ["1 of 12", "2 of 12"]
    harness.type("nothing")
    harness.qtbot.waitUntil(lambda: announcements[-1] == "No matches")


def test_the_window_opens_it_by_its_keys(on_screen):
    async def work(screen):
        await screen.say("Say something")
        page = screen.window.page
        screen.action("Find in conversation").trigger()
        assert page.navigation.find_bar.isVisible()
        field = screen.find(QLineEdit, "Find in conversation")
        field.setText("needle")
        await until(lambda: page.navigation.find_bar._status.total == 2)
        screen.action("Find next").trigger()
        assert page.navigation.find_bar._status.current == 2
        screen.action("Find previous").trigger()
        assert page.navigation.find_bar._status.current == 1
        keys = {text: screen.action(text).shortcut().toString() for text in ("Find in conversation", "Find next")}
        assert keys == {"Find in conversation": "Ctrl+F", "Find next": "F3"}
        QTest.keyClick(field, Qt.Key.Key_Escape)
        assert page.navigation.find_bar.isHidden()

    on_screen(work, Turn(ContentDelta("A needle, a needle.")))


def test_what_is_selected_is_looked_for(on_screen):
    async def work(screen):
        await screen.say("Say something")
        from ui.transcript.viewport.selection import TextPosition

        screen.window.page.transcript.row_viewport.select(TextPosition(1, 0, 2), TextPosition(1, 0, 8))
        screen.action("Find in conversation").trigger()
        assert screen.find(QLineEdit, "Find in conversation").text() == "needle"

    on_screen(work, Turn(ContentDelta("A needle here.")))


def test_the_menu_of_the_transcript_opens_the_bar(on_screen, qt_messages):
    qt_messages.expect("grabbing the keyboard")

    async def work(screen):
        await screen.say("Say something")
        transcript = screen.window.page.transcript
        menu = transcript.context_menu.popup_by_key(transcript)
        entry = next(action for action in menu.actions() if action.text().replace("&", "") == "Find in conversation")
        assert entry.shortcut() == screen.action("Find in conversation").shortcut()
        entry.trigger()
        menu.close()
        assert screen.find(QLineEdit, "Find in conversation").isVisible()

    on_screen(work, Turn(ContentDelta("A needle here.")))


def test_the_conversation_is_copied_as_markdown(on_screen):
    async def work(screen):
        await screen.say("Say something")
        QGuiApplication.clipboard().clear()
        screen.action("Copy conversation as Markdown").trigger()
        await until(QGuiApplication.clipboard().text)
        text = QGuiApplication.clipboard().text()
        assert text == "## You said\n\nSay something\n\n## Assistant said\n\nA **needle** here."

    on_screen(work, Turn(ContentDelta("A **needle** here.")))


@pytest.mark.parametrize("direction", [Qt.LayoutDirection.LeftToRight, Qt.LayoutDirection.RightToLeft])
def test_the_count_has_its_room_at_the_end_of_the_field(qtbot, qapp, request, direction):
    request.addfinalizer(lambda: qapp.setLayoutDirection(Qt.LayoutDirection.LayoutDirectionAuto))
    qapp.setLayoutDirection(direction)
    harness = FindBarHarness(qtbot, [Message.user("Hello")])
    harness.bar.open()
    harness.type("unfindable words")
    margins, count = harness.field.textMargins(), harness.field.findChild(QLabel)
    is_mirrored = direction is Qt.LayoutDirection.RightToLeft
    assert (margins.left() if is_mirrored else margins.right()) > count.width()
    assert (margins.right() if is_mirrored else margins.left()) == 0
