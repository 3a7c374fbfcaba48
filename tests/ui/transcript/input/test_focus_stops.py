"""Everything that the mouse can press is reached with Tab, also what is far down in a long message."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit

from desktop_agent.types.messages import Message
from tests.ui.pixels import colors_of
from tests.ui.transcript.input.test_caret import Stand
from ui.style.theme import LIGHT

CONTROL = Qt.KeyboardModifier.ControlModifier
FILLER = "\n\n".join(f"Paragraph {number}, with a few words in it." for number in range(60))


def opened(qtbot, *messages):
    stand = Stand(qtbot, messages)
    stand.view.scroller.scroll_to_start()
    QTest.keyClick(stand.view, Qt.Key.Key_Down, CONTROL)
    QTest.keyClick(stand.view, Qt.Key.Key_Up, CONTROL)
    assert stand.view.row_viewport.focused == (0, "")
    return stand


def tab(stand, key=Qt.Key.Key_Tab):
    QTest.keyClick(stand.view, key)
    return stand.view.row_viewport.focused[1]


def test_links_and_buttons_are_stops_in_their_order(qtbot):
    text = "See [one](https://x.org/1) and *[two](https://x.org/2)*.\n\n| a |\n|---|\n| [three](https://x.org/3) |"
    stand = opened(qtbot, Message.assistant(f"{text}\n\n```py\nx = 1\n```"))
    keys = [tab(stand) for _ in range(6)]
    assert [key.partition("/")[2].partition(" ")[0] for key in keys[:3]] == ["#link"] * 3
    assert [key.partition("/")[2] for key in keys[3:5]] == ["Copy code", "Wrap lines"]
    assert [tab(stand, Qt.Key.Key_Backtab) for _ in range(2)] == [keys[4], keys[3]]
    tab(stand, Qt.Key.Key_Backtab)
    with qtbot.waitSignal(stand.view.link_activated) as activated:
        QTest.keyClick(stand.view, Qt.Key.Key_Return)
    assert activated.args == ["https://x.org/3"]


def test_a_link_with_the_keyboard_has_a_ring(qtbot):
    stand = opened(qtbot, Message.assistant("See [one](https://x.org/1)."))
    tab(stand)
    image = stand.view.viewport().grab().toImage()
    assert LIGHT.accent in colors_of(image)


@pytest.mark.parametrize("text", ["See [one](https://x.org/1).", "```py\nx = 1\n```"])
def test_only_what_has_the_keyboard_has_a_ring(qtbot, text):
    stand = opened(qtbot, Message.assistant(text))
    qtbot.waitUntil(stand.view.isActiveWindow)
    key = tab(stand)
    assert rings(stand)
    stand.view.clearFocus()
    assert not rings(stand)
    quiet = stand.view.viewport().grab().toImage()
    stand.view.row_viewport.focus((0, ""))
    assert stand.view.viewport().grab().toImage() == quiet, "the message has a ring, quietly"
    stand.view.row_viewport.focus((0, key))
    come_from(stand, Qt.FocusReason.TabFocusReason)
    assert rings(stand)


def test_what_is_far_down_is_reached_and_brought_into_sight(qtbot):
    stand = opened(qtbot, Message.assistant(f"{FILLER}\n\n```py\nx = 1\n```\n\n{FILLER}\n\n[end](https://x.org)"))
    assert tab(stand).endswith("/Copy code")
    block = int(stand.view.row_viewport.focused[1].partition("/")[0])
    top = stand.rows.row(0).stack.block_box(block).top() + stand.view.row_viewport.row_box(0).top()
    assert 0 <= top <= stand.view.viewport().height()
    while "#link" not in tab(stand):
        assert stand.view.row_viewport.focused[1]
    assert stand.rows.top > top
    QTest.keyClick(stand.view, Qt.Key.Key_Tab)
    assert stand.view.row_viewport.focused == (0, "")


def test_shift_tab_comes_back_to_the_last_stop_and_takes_no_caret_away(qtbot):
    stand = opened(qtbot, Message.assistant("See [one](https://x.org/1) and [two](https://x.org/2)."))
    other = QLineEdit()
    qtbot.addWidget(other)
    other.setParent(stand.view)
    other.show()
    qtbot.waitUntil(stand.view.hasFocus)
    forth = ["", *iter(lambda: tab(stand), "")]
    assert len(forth) > 2

    def come_back():
        other.setFocus()
        stand.view.setFocus(Qt.FocusReason.BacktabFocusReason)
        return stand.view.row_viewport.focused[1]

    back = [come_back(), *(tab(stand, Qt.Key.Key_Backtab) for _ in forth[1:])]
    assert back == forth[::-1]
    stand.begin()
    place = stand.press("right", "right")
    assert (come_back(), stand.at) == ("", place)


def rings(stand):
    """How many pixels have the colour of the focus."""
    return colors_of(stand.view.viewport().grab().toImage())[LIGHT.accent]


def come_from(stand, reason, other=None):
    """Give the focus to the view as this key or the mouse does, from another field."""
    (other or stand.view.verticalScrollBar()).setFocus()
    stand.view.clearFocus()
    stand.view.setFocus(reason)
    return stand.view.row_viewport.focused


def test_tab_shows_where_it_comes_to_and_a_click_does_not(qtbot):
    stand = Stand(qtbot, [Message.user("One."), Message.assistant(FILLER), Message.user("Two.")])
    qtbot.waitUntil(stand.view.isActiveWindow)
    assert come_from(stand, Qt.FocusReason.MouseFocusReason) == (-1, "")
    assert not rings(stand)
    assert come_from(stand, Qt.FocusReason.BacktabFocusReason) == (2, "")
    assert rings(stand) > 100
    stand.view.row_viewport.focus((-1, ""))
    stand.view.scroller.scroll_by(-200)
    top = stand.rows.top
    assert come_from(stand, Qt.FocusReason.TabFocusReason) == (1, "")
    assert stand.rows.top == top
    assert rings(stand) > 100


def test_tab_brings_what_had_the_focus_back_into_sight(qtbot):
    stand = Stand(qtbot, [Message.user("One."), Message.assistant(f"[link](https://x.org)\n\n{FILLER}")])
    qtbot.waitUntil(stand.view.isActiveWindow)
    stand.view.scroller.scroll_to_start()
    stand.view.focus_part(1, "")
    tab(stand)
    link = stand.view.row_viewport.focused
    assert "#link" in link[1]
    for part in ((0, ""), link):
        stand.view.row_viewport.focus(part)
        stand.view.scroller.scroll_to_end()
        assert not rings(stand)
        assert come_from(stand, Qt.FocusReason.TabFocusReason) == part
        assert rings(stand) > 50


def test_where_there_is_no_message_the_view_has_the_ring(qtbot):
    stand = Stand(qtbot, [])
    qtbot.waitUntil(stand.view.isActiveWindow)
    come_from(stand, Qt.FocusReason.MouseFocusReason)
    assert not rings(stand)
    come_from(stand, Qt.FocusReason.BacktabFocusReason)
    assert rings(stand) > 100


def test_arrows_move_what_is_too_wide(qtbot):
    stand = opened(qtbot, Message.assistant("```\n" + "wide " * 100 + "\n```"))
    before = stand.view.viewport().grab().toImage()
    QTest.keyClick(stand.view, Qt.Key.Key_Right)
    assert stand.view.viewport().grab().toImage() != before
    QTest.keyClick(stand.view, Qt.Key.Key_Left)
    assert stand.view.viewport().grab().toImage() == before
