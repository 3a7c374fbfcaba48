"""Caret browsing: where the keys take the caret, what they select and open, and that it stays where it is."""

from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest

from desktop_agent.conversation.transcript import Transcript
from desktop_agent.types.engine_events import RunEnd, RunFinished, TurnStarted
from desktop_agent.types.messages import Message
from desktop_agent.types.provider_events import ContentDelta
from tests.fakes.transcript_feed import Feed, NoPictures
from ui.style.theme import LIGHT, ThemeSource
from ui.transcript.view import TranscriptView
from ui.transcript.viewport.selection import TextPosition

KEYS = {
    "left": Qt.Key.Key_Left,
    "right": Qt.Key.Key_Right,
    "up": Qt.Key.Key_Up,
    "down": Qt.Key.Key_Down,
    "home": Qt.Key.Key_Home,
    "end": Qt.Key.Key_End,
    "pageup": Qt.Key.Key_PageUp,
    "pagedown": Qt.Key.Key_PageDown,
    "enter": Qt.Key.Key_Return,
    "esc": Qt.Key.Key_Escape,
    "copy": Qt.Key.Key_C,
}
MODIFIERS = {"ctrl": Qt.KeyboardModifier.ControlModifier, "shift": Qt.KeyboardModifier.ShiftModifier}


class CaretHarness:
    def __init__(self, qtbot, messages):
        self.qtbot = qtbot
        self.transcript = Transcript(messages)
        self.feed = Feed(self.transcript)
        self.view = TranscriptView(ThemeSource(), NoPictures(Path()))
        qtbot.addWidget(self.view, before_close_func=lambda view: view.close_workers())
        self.view.resize(700, 500)
        self.view.set_transcript(self.transcript)
        with qtbot.waitExposed(self.view):
            self.view.show()
        self.view.setFocus()
        self.caret = self.view.caret

    @property
    def rows(self):
        return self.view.row_viewport.rows

    def send(self, *events):
        self.view.apply([change for event in events for change in self.feed(event)])

    def begin(self):
        self.view.scroller.scroll_to_start()
        self.caret.toggle()
        self.press("ctrl+home")

    def press(self, *keys):
        for combination in keys:
            *names, key = combination.split("+")
            modifier_keys = Qt.KeyboardModifier.NoModifier
            for name in names:
                modifier_keys |= MODIFIERS[name]
            QTest.keyClick(self.view, KEYS[key], modifier_keys)
        return self.at

    @property
    def at(self):
        position = self.caret.position
        return (position.row, position.block, position.offset) if position else None

    def copied(self):
        clipboard = QGuiApplication.clipboard()
        clipboard.setText("")
        self.press("ctrl+copy")
        self.qtbot.waitUntil(lambda: clipboard.text() != "")
        return clipboard.text()

    def is_seen(self):
        box = self.caret.box()
        return box.top() >= 0 and box.bottom() <= self.view.viewport().height()


def test_characters_are_those_that_people_see(qtbot):
    harness = CaretHarness(qtbot, [Message.user("a👨‍👩‍👧e\u0301x")])
    harness.begin()
    assert [harness.press("right")[2] for _ in range(4)] == [1, 9, 11, 12]
    assert [harness.press("left")[2] for _ in range(4)] == [11, 9, 1, 0]
    assert harness.press("left") == (0, 0, 0)


def test_words_lines_and_ends(qtbot):
    words = "One two. " + "three four " * 30
    harness = CaretHarness(qtbot, [Message.assistant(words + "\n\nThe second paragraph.")])
    harness.begin()
    assert harness.press("ctrl+right")[2] == 4
    assert harness.press("ctrl+right")[2] == 7
    assert harness.press("ctrl+left")[2] == 4
    end = harness.press("end")[2]
    assert 40 < end < 120
    assert harness.press("home")[2] == 0
    position = harness.press("down")
    assert position[:2] == (0, 0)
    assert end < position[2] <= end + 2
    assert harness.press("up")[2] == 0
    assert harness.press("ctrl+end") == (0, 1, len("The second paragraph."))
    assert harness.press("ctrl+home") == (0, 0, 0)


def test_lines_keep_the_column_over_blocks_and_short_lines(qtbot):
    text = "A first paragraph here.\n\nab\n\n```\nx = 1\nanother_line = 2\n```\n\nThe last paragraph."
    harness = CaretHarness(qtbot, [Message.assistant(text), Message.assistant("Another message here.")])
    harness.begin()
    harness.press(*["right"] * 14)
    x = harness.caret.box().left()
    places = [harness.press("down") for _ in range(6)]
    assert [place[:2] for place in places] == [(0, 1), (0, 2), (0, 2), (0, 3), (1, 0), (1, 0)]
    assert places[0][2] == 2
    assert places[2][2] > len("x = 1\n")
    assert abs(harness.caret.box().left() - x) < 12
    assert [harness.press("up")[:2] for _ in range(5)] == [(0, 3), (0, 2), (0, 2), (0, 1), (0, 0)]
    assert harness.at[2] == 14


def test_cells_are_walked_through_line_by_line(qtbot):
    harness = CaretHarness(qtbot, [Message.assistant("Before\n\n| a | b |\n|---|---|\n| c | d |\n\nAfter")])
    harness.begin()
    offsets = [harness.press("down") for _ in range(3)]
    assert offsets == [(0, 1, 0), (0, 1, 4), (0, 2, 0)]


def test_the_menu_is_about_what_the_caret_is_in(qtbot, qt_messages):
    qt_messages.expect("grabbing the keyboard")
    harness = CaretHarness(qtbot, [Message.assistant("Before\n\n| a | b |\n|---|---|\n| c | d |\n\nAfter")])
    harness.begin()
    names = []
    for _ in range(2):
        menu = harness.view.context_menu.popup_by_key(harness.view)
        names.append(menu.accessibleName())
        menu.close()
        harness.press("down")
    assert names == ["Menu: Assistant said", "Menu: Table"]


def test_shift_selects_and_what_is_selected_is_copied(qtbot):
    harness = CaretHarness(qtbot, [Message.assistant("One two three\n\nFour five")])
    harness.begin()
    harness.press("ctrl+right", "ctrl+shift+right")
    assert harness.copied() == "two "
    harness.press("shift+end", "shift+down")
    assert harness.copied().startswith("two three\n\nFour")
    harness.press("left")
    assert harness.view.row_viewport.selection.is_empty


def test_enter_opens_the_link_that_the_caret_is_in(qtbot):
    harness = CaretHarness(qtbot, [Message.assistant("See [the page](https://x.org/a) now")])
    harness.begin()
    with qtbot.assertNotEmitted(harness.view.link_activated):
        harness.press("enter")
    harness.press("ctrl+right", "right")
    with qtbot.waitSignal(harness.view.link_activated) as opened:
        harness.press("enter")
    assert opened.args == ["https://x.org/a"]


def test_right_to_left_text_is_walked_in_its_own_direction(qtbot):
    harness = CaretHarness(qtbot, [Message.assistant("שלום word עולם")])
    harness.begin()
    assert harness.press("left")[2] == 1
    assert harness.press("right")[2] == 0
    assert harness.press("end")[2] == 14
    assert harness.press("home")[2] == 0


def test_a_formula_is_one_step(qtbot):
    harness = CaretHarness(qtbot, [Message.assistant("a $x^2$ b")])
    harness.begin()
    assert [harness.press("right")[2] for _ in range(4)] == [1, 2, 7, 8]
    assert [harness.press("left")[2] for _ in range(3)] == [7, 2, 1]
    harness.press("shift+right", "shift+right")
    assert harness.copied() == " $x^2$"


def test_the_caret_is_brought_into_sight(qtbot):
    harness = CaretHarness(qtbot, [Message.assistant(f"Message {number}, with some words.") for number in range(300)])
    harness.begin()
    assert harness.press("ctrl+end")[0] == 299
    assert harness.is_seen()
    assert harness.press("ctrl+home")[0] == 0
    assert harness.is_seen()
    for _ in range(40):
        harness.press("down")
        assert harness.is_seen()
    row = harness.at[0]
    harness.press("pagedown")
    assert harness.at[0] > row + 3
    assert harness.is_seen()
    harness.press(*["pageup"] * 15)
    assert harness.at == (0, 0, 0)


def test_it_stays_while_text_streams_in_and_rows_come(qtbot):
    harness = CaretHarness(qtbot, [Message.user("Hi"), Message.assistant("A finished answer.\n\nMore.")])
    harness.send(TurnStarted("t", "m", "model"), ContentDelta("Some text "))
    harness.begin()
    harness.press("down", "right", "right")
    position = harness.at
    harness.press("shift+right")
    for _ in range(20):
        harness.send(ContentDelta("and more words.\n\n"))
    harness.send(RunFinished(RunEnd.COMPLETED))
    assert harness.at == (position[0], position[1], position[2] + 1)
    assert harness.copied() == harness.rows.row(position[0]).blocks[position[1]].plain()[position[2] : position[2] + 1]


def test_it_stands_in_text_that_grows(qtbot):
    harness = CaretHarness(qtbot, [Message.user("Hi")])
    harness.send(TurnStarted("t", "m", "model"), ContentDelta("Some **text"))
    harness.begin()
    harness.press("ctrl+end")
    assert harness.at == (1, 0, 9)
    harness.send(ContentDelta("** here"))
    assert harness.at == (1, 0, 9)
    assert harness.press("right") == (1, 0, 10)


def test_escape_leaves_and_the_arrows_scroll_again(qtbot):
    harness = CaretHarness(qtbot, [Message.user(f"Message {number}") for number in range(50)])
    harness.begin()
    states = []
    harness.caret.toggled.connect(states.append)
    harness.press("esc")
    assert states == [False]
    assert not harness.caret.is_on
    harness.press("down")
    assert harness.rows.top > 0


def test_the_pointer_moves_the_caret(qtbot):
    harness = CaretHarness(qtbot, [Message.assistant("One two three")])
    harness.begin()
    box = harness.rows.row(0).stack.block_box(0).translated(harness.view.row_viewport.row_box(0).topLeft())
    QTest.mouseClick(harness.view.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(box.left() + 60, box.center().y()))
    assert 4 < harness.at[2] < 13


def test_walking_messages_takes_the_caret_along(qtbot):
    harness = CaretHarness(qtbot, [Message.user("One"), Message.user("Two"), Message.user("Three")])
    harness.begin()
    harness.press("ctrl+down", "ctrl+down")
    assert harness.view.row_viewport.focused[0] == harness.at[0]


@pytest.mark.parametrize("flash", [0, 1000])
def test_it_blinks_only_where_carets_blink(qtbot, flash):
    hints = QGuiApplication.styleHints()
    flash_time = hints.cursorFlashTime()
    hints.setCursorFlashTime(flash)
    try:
        harness = CaretHarness(qtbot, [Message.user("Some words")])
        harness.begin()
        assert harness.caret._blink.isActive() == bool(flash)
        box = harness.caret.box().toRect()
        image = harness.view.viewport().grab().toImage()
        assert image.pixelColor(box.left(), box.center().y()).name() == LIGHT.text
    finally:
        hints.setCursorFlashTime(flash_time)


def test_a_long_message_that_is_read_later_keeps_the_caret_in_its_words(qtbot):
    text = "\n\n".join(f"Paragraph {number}, with a few words in it." for number in range(2000))
    harness = CaretHarness(qtbot, [Message.assistant(text)])
    harness.caret.toggle()
    harness.press("ctrl+end", "ctrl+left", "ctrl+left")
    position = harness.caret.position
    words = harness.rows.row(0).blocks[position.block].plain()
    qtbot.waitUntil(lambda: not harness.view.scroller._prefetcher._timer.isActive())
    assert harness.rows.row(0).blocks[harness.caret.position.block].plain() == words
    assert harness.caret.position.offset == position.offset
    harness.press("ctrl+home")
    assert harness.at == (0, 0, 0)
    assert harness.is_seen()
    assert harness.caret.position == TextPosition(0, 0, 0)
