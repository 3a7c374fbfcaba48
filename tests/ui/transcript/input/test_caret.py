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


class Stand:
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
        for each in keys:
            *modifiers, key = each.split("+")
            held = Qt.KeyboardModifier.NoModifier
            for name in modifiers:
                held |= MODIFIERS[name]
            QTest.keyClick(self.view, KEYS[key], held)
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
    stand = Stand(qtbot, [Message.user("a👨‍👩‍👧e\u0301x")])
    stand.begin()
    assert [stand.press("right")[2] for _ in range(4)] == [1, 9, 11, 12]
    assert [stand.press("left")[2] for _ in range(4)] == [11, 9, 1, 0]
    assert stand.press("left") == (0, 0, 0)


def test_words_lines_and_ends(qtbot):
    words = "One two. " + "three four " * 30
    stand = Stand(qtbot, [Message.assistant(words + "\n\nThe second paragraph.")])
    stand.begin()
    assert stand.press("ctrl+right")[2] == 4
    assert stand.press("ctrl+right")[2] == 7
    assert stand.press("ctrl+left")[2] == 4
    end = stand.press("end")[2]
    assert 40 < end < 120
    assert stand.press("home")[2] == 0
    below = stand.press("down")
    assert below[:2] == (0, 0)
    assert end < below[2] <= end + 2
    assert stand.press("up")[2] == 0
    assert stand.press("ctrl+end") == (0, 1, len("The second paragraph."))
    assert stand.press("ctrl+home") == (0, 0, 0)


def test_lines_keep_the_column_over_blocks_and_short_lines(qtbot):
    text = "A first paragraph here.\n\nab\n\n```\nx = 1\nanother_line = 2\n```\n\nThe last paragraph."
    stand = Stand(qtbot, [Message.assistant(text), Message.assistant("Another message here.")])
    stand.begin()
    stand.press(*["right"] * 14)
    x = stand.caret.box().left()
    places = [stand.press("down") for _ in range(6)]
    assert [each[:2] for each in places] == [(0, 1), (0, 2), (0, 2), (0, 3), (1, 0), (1, 0)]
    assert places[0][2] == 2
    assert places[2][2] > len("x = 1\n")
    assert abs(stand.caret.box().left() - x) < 12
    assert [stand.press("up")[:2] for _ in range(5)] == [(0, 3), (0, 2), (0, 2), (0, 1), (0, 0)]
    assert stand.at[2] == 14


def test_cells_are_walked_through_line_by_line(qtbot):
    stand = Stand(qtbot, [Message.assistant("Before\n\n| a | b |\n|---|---|\n| c | d |\n\nAfter")])
    stand.begin()
    offsets = [stand.press("down") for _ in range(3)]
    assert offsets == [(0, 1, 0), (0, 1, 4), (0, 2, 0)]


def test_the_menu_is_about_what_the_caret_is_in(qtbot, qt_messages):
    qt_messages.expect("grabbing the keyboard")
    stand = Stand(qtbot, [Message.assistant("Before\n\n| a | b |\n|---|---|\n| c | d |\n\nAfter")])
    stand.begin()
    names = []
    for _ in range(2):
        menu = stand.view.context_menu.popup_by_key(stand.view)
        names.append(menu.accessibleName())
        menu.close()
        stand.press("down")
    assert names == ["Menu: Assistant said", "Menu: Table"]


def test_shift_selects_and_what_is_selected_is_copied(qtbot):
    stand = Stand(qtbot, [Message.assistant("One two three\n\nFour five")])
    stand.begin()
    stand.press("ctrl+right", "ctrl+shift+right")
    assert stand.copied() == "two "
    stand.press("shift+end", "shift+down")
    assert stand.copied().startswith("two three\n\nFour")
    stand.press("left")
    assert stand.view.row_viewport.selection.is_empty


def test_enter_opens_the_link_that_the_caret_is_in(qtbot):
    stand = Stand(qtbot, [Message.assistant("See [the page](https://x.org/a) now")])
    stand.begin()
    with qtbot.assertNotEmitted(stand.view.link_activated):
        stand.press("enter")
    stand.press("ctrl+right", "right")
    with qtbot.waitSignal(stand.view.link_activated) as opened:
        stand.press("enter")
    assert opened.args == ["https://x.org/a"]


def test_right_to_left_text_is_walked_in_its_own_direction(qtbot):
    stand = Stand(qtbot, [Message.assistant("שלום word עולם")])
    stand.begin()
    assert stand.press("left")[2] == 1
    assert stand.press("right")[2] == 0
    assert stand.press("end")[2] == 14
    assert stand.press("home")[2] == 0


def test_a_formula_is_one_step(qtbot):
    stand = Stand(qtbot, [Message.assistant("a $x^2$ b")])
    stand.begin()
    assert [stand.press("right")[2] for _ in range(4)] == [1, 2, 7, 8]
    assert [stand.press("left")[2] for _ in range(3)] == [7, 2, 1]
    stand.press("shift+right", "shift+right")
    assert stand.copied() == " $x^2$"


def test_the_caret_is_brought_into_sight(qtbot):
    stand = Stand(qtbot, [Message.assistant(f"Message {number}, with some words.") for number in range(300)])
    stand.begin()
    assert stand.press("ctrl+end")[0] == 299
    assert stand.is_seen()
    assert stand.press("ctrl+home")[0] == 0
    assert stand.is_seen()
    for _ in range(40):
        stand.press("down")
        assert stand.is_seen()
    before = stand.at[0]
    stand.press("pagedown")
    assert stand.at[0] > before + 3
    assert stand.is_seen()
    stand.press(*["pageup"] * 15)
    assert stand.at == (0, 0, 0)


def test_it_stays_while_text_streams_in_and_rows_come(qtbot):
    stand = Stand(qtbot, [Message.user("Hi"), Message.assistant("A finished answer.\n\nMore.")])
    stand.send(TurnStarted("t", "m", "model"), ContentDelta("Some text "))
    stand.begin()
    stand.press("down", "right", "right")
    at = stand.at
    stand.press("shift+right")
    for _ in range(20):
        stand.send(ContentDelta("and more words.\n\n"))
    stand.send(RunFinished(RunEnd.COMPLETED))
    assert stand.at == (at[0], at[1], at[2] + 1)
    assert stand.copied() == stand.rows.row(at[0]).blocks[at[1]].plain()[at[2] : at[2] + 1]


def test_it_stands_in_text_that_grows(qtbot):
    stand = Stand(qtbot, [Message.user("Hi")])
    stand.send(TurnStarted("t", "m", "model"), ContentDelta("Some **text"))
    stand.begin()
    stand.press("ctrl+end")
    assert stand.at == (1, 0, 9)
    stand.send(ContentDelta("** here"))
    assert stand.at == (1, 0, 9)
    assert stand.press("right") == (1, 0, 10)


def test_escape_leaves_and_the_arrows_scroll_again(qtbot):
    stand = Stand(qtbot, [Message.user(f"Message {number}") for number in range(50)])
    stand.begin()
    turned = []
    stand.caret.toggled.connect(turned.append)
    stand.press("esc")
    assert turned == [False]
    assert not stand.caret.is_on
    stand.press("down")
    assert stand.rows.top > 0


def test_the_pointer_moves_the_caret(qtbot):
    stand = Stand(qtbot, [Message.assistant("One two three")])
    stand.begin()
    box = stand.rows.row(0).stack.block_box(0).translated(stand.view.row_viewport.row_box(0).topLeft())
    QTest.mouseClick(stand.view.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(box.left() + 60, box.center().y()))
    assert 4 < stand.at[2] < 13


def test_walking_messages_takes_the_caret_along(qtbot):
    stand = Stand(qtbot, [Message.user("One"), Message.user("Two"), Message.user("Three")])
    stand.begin()
    stand.press("ctrl+down", "ctrl+down")
    assert stand.view.row_viewport.focused[0] == stand.at[0]


@pytest.mark.parametrize("flash", [0, 1000])
def test_it_blinks_only_where_carets_blink(qtbot, flash):
    hints = QGuiApplication.styleHints()
    before = hints.cursorFlashTime()
    hints.setCursorFlashTime(flash)
    try:
        stand = Stand(qtbot, [Message.user("Some words")])
        stand.begin()
        assert stand.caret._blink.isActive() == bool(flash)
        box = stand.caret.box().toRect()
        image = stand.view.viewport().grab().toImage()
        assert image.pixelColor(box.left(), box.center().y()).name() == LIGHT.text
    finally:
        hints.setCursorFlashTime(before)


def test_a_long_message_that_is_read_later_keeps_the_caret_in_its_words(qtbot):
    text = "\n\n".join(f"Paragraph {number}, with a few words in it." for number in range(2000))
    stand = Stand(qtbot, [Message.assistant(text)])
    stand.caret.toggle()
    stand.press("ctrl+end", "ctrl+left", "ctrl+left")
    position = stand.caret.position
    words = stand.rows.row(0).blocks[position.block].plain()
    qtbot.waitUntil(lambda: not stand.view.scroller._prefetcher._timer.isActive())
    assert stand.rows.row(0).blocks[stand.caret.position.block].plain() == words
    assert stand.caret.position.offset == position.offset
    stand.press("ctrl+home")
    assert stand.at == (0, 0, 0)
    assert stand.is_seen()
    assert stand.caret.position == TextPosition(0, 0, 0)
