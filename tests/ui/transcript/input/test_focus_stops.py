"""Everything that the mouse can press is reached with Tab, also what is far down in a long message."""

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit

from desktop_agent.types.messages import Message
from tests.ui.pixels import colors_of
from tests.ui.transcript.input.test_caret import CaretHarness
from ui.style.theme import LIGHT

CONTROL = Qt.KeyboardModifier.ControlModifier
FILLER = "\n\n".join(f"Paragraph {number}, with a few words in it." for number in range(60))


def open_messages(qtbot, *messages):
    harness = CaretHarness(qtbot, messages)
    harness.view.scroller.scroll_to_start()
    QTest.keyClick(harness.view, Qt.Key.Key_Down, CONTROL)
    QTest.keyClick(harness.view, Qt.Key.Key_Up, CONTROL)
    assert harness.view.row_viewport.focused == (0, "")
    return harness


def tab(harness, key=Qt.Key.Key_Tab):
    QTest.keyClick(harness.view, key)
    return harness.view.row_viewport.focused[1]


def test_links_and_buttons_are_stops_in_their_order(qtbot):
    text = "See [one](https://x.org/1) and *[two](https://x.org/2)*.\n\n| a |\n|---|\n| [three](https://x.org/3) |"
    harness = open_messages(qtbot, Message.assistant(f"{text}\n\n```py\nx = 1\n```"))
    keys = [tab(harness) for _ in range(6)]
    assert [key.partition("/")[2].partition(" ")[0] for key in keys[:3]] == ["#link"] * 3
    assert [key.partition("/")[2] for key in keys[3:5]] == ["Copy code", "Wrap lines"]
    assert [tab(harness, Qt.Key.Key_Backtab) for _ in range(2)] == [keys[4], keys[3]]
    tab(harness, Qt.Key.Key_Backtab)
    with qtbot.waitSignal(harness.view.link_activated) as activated:
        QTest.keyClick(harness.view, Qt.Key.Key_Return)
    assert activated.args == ["https://x.org/3"]


def test_a_link_with_the_keyboard_has_a_ring(qtbot):
    harness = open_messages(qtbot, Message.assistant("See [one](https://x.org/1)."))
    tab(harness)
    image = harness.view.viewport().grab().toImage()
    assert LIGHT.accent in colors_of(image)


@pytest.mark.parametrize("text", ["See [one](https://x.org/1).", "```py\nx = 1\n```"])
def test_only_what_has_the_keyboard_has_a_ring(qtbot, text):
    harness = open_messages(qtbot, Message.assistant(text))
    qtbot.waitUntil(harness.view.isActiveWindow)
    key = tab(harness)
    assert rings(harness)
    harness.view.clearFocus()
    assert not rings(harness)
    quiet = harness.view.viewport().grab().toImage()
    harness.view.row_viewport.focus((0, ""))
    assert harness.view.viewport().grab().toImage() == quiet, "the message has a ring, quietly"
    harness.view.row_viewport.focus((0, key))
    come_from(harness, Qt.FocusReason.TabFocusReason)
    assert rings(harness)


def test_what_is_far_down_is_reached_and_brought_into_sight(qtbot):
    harness = open_messages(
        qtbot, Message.assistant(f"{FILLER}\n\n```py\nx = 1\n```\n\n{FILLER}\n\n[end](https://x.org)")
    )
    assert tab(harness).endswith("/Copy code")
    block = int(harness.view.row_viewport.focused[1].partition("/")[0])
    top = harness.rows.row(0).stack.block_box(block).top() + harness.view.row_viewport.row_box(0).top()
    assert 0 <= top <= harness.view.viewport().height()
    while "#link" not in tab(harness):
        assert harness.view.row_viewport.focused[1]
    assert harness.rows.top > top
    QTest.keyClick(harness.view, Qt.Key.Key_Tab)
    assert harness.view.row_viewport.focused == (0, "")


def test_shift_tab_comes_back_to_the_last_stop_and_takes_no_caret_away(qtbot):
    harness = open_messages(qtbot, Message.assistant("See [one](https://x.org/1) and [two](https://x.org/2)."))
    field = QLineEdit()
    qtbot.addWidget(field)
    field.setParent(harness.view)
    field.show()
    qtbot.waitUntil(harness.view.hasFocus)
    forward = ["", *iter(lambda: tab(harness), "")]
    assert len(forward) > 2

    def return_by_backtab():
        field.setFocus()
        harness.view.setFocus(Qt.FocusReason.BacktabFocusReason)
        return harness.view.row_viewport.focused[1]

    backward = [return_by_backtab(), *(tab(harness, Qt.Key.Key_Backtab) for _ in forward[1:])]
    assert backward == forward[::-1]
    harness.begin()
    place = harness.press("right", "right")
    assert (return_by_backtab(), harness.at) == ("", place)


def rings(harness):
    """Return how many pixels have the colour of the focus ring."""
    return colors_of(harness.view.viewport().grab().toImage())[LIGHT.accent]


def come_from(harness, reason, other=None):
    """Give the focus to the view as this key or the mouse does, from another field."""
    (other or harness.view.verticalScrollBar()).setFocus()
    harness.view.clearFocus()
    harness.view.setFocus(reason)
    return harness.view.row_viewport.focused


def test_tab_shows_where_it_comes_to_and_a_click_does_not(qtbot):
    harness = CaretHarness(qtbot, [Message.user("One."), Message.assistant(FILLER), Message.user("Two.")])
    qtbot.waitUntil(harness.view.isActiveWindow)
    assert come_from(harness, Qt.FocusReason.MouseFocusReason) == (-1, "")
    assert not rings(harness)
    assert come_from(harness, Qt.FocusReason.BacktabFocusReason) == (2, "")
    assert rings(harness) > 100
    harness.view.row_viewport.focus((-1, ""))
    harness.view.scroller.scroll_by(-200)
    top = harness.rows.top
    assert come_from(harness, Qt.FocusReason.TabFocusReason) == (1, "")
    assert harness.rows.top == top
    assert rings(harness) > 100


def test_tab_brings_what_had_the_focus_back_into_sight(qtbot):
    harness = CaretHarness(qtbot, [Message.user("One."), Message.assistant(f"[link](https://x.org)\n\n{FILLER}")])
    qtbot.waitUntil(harness.view.isActiveWindow)
    harness.view.scroller.scroll_to_start()
    harness.view.focus_part(1, "")
    tab(harness)
    link = harness.view.row_viewport.focused
    assert "#link" in link[1]
    for part in ((0, ""), link):
        harness.view.row_viewport.focus(part)
        harness.view.scroller.scroll_to_end()
        assert not rings(harness)
        assert come_from(harness, Qt.FocusReason.TabFocusReason) == part
        assert rings(harness) > 50


def test_where_there_is_no_message_the_view_has_the_ring(qtbot):
    harness = CaretHarness(qtbot, [])
    qtbot.waitUntil(harness.view.isActiveWindow)
    come_from(harness, Qt.FocusReason.MouseFocusReason)
    assert not rings(harness)
    come_from(harness, Qt.FocusReason.BacktabFocusReason)
    assert rings(harness) > 100


def test_arrows_move_what_is_too_wide(qtbot):
    harness = open_messages(qtbot, Message.assistant("```\n" + "wide " * 100 + "\n```"))
    picture = harness.view.viewport().grab().toImage()
    QTest.keyClick(harness.view, Qt.Key.Key_Right)
    assert harness.view.viewport().grab().toImage() != picture
    QTest.keyClick(harness.view, Qt.Key.Key_Left)
    assert harness.view.viewport().grab().toImage() == picture
