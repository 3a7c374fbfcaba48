"""Selecting with the mouse and the keys, in text that stands and in text that is still being written."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest

from desktop_agent.types.engine_events import RunEnd, RunFinished, TurnStarted
from desktop_agent.types.messages import Message
from desktop_agent.types.provider_events import ContentDelta, ThinkingBlock, ThinkingDelta
from tests.fakes.transcript_view import LEFT, Standing
from tests.frame.examples import examples
from ui.transcript.viewport.selection import TextPosition

TEXT = (
    "First *words* of a paragraph with [a link](https://x.org/very/long/target) and `code` in it.\n"
    "Second line, **bold and *both* of it**.\n\n- item one\n- item **two** with words\n\n"
    "| head | other |\n|---|---|\n| cell one | cell $x^2$ |\n| three | four |\n\n> quoted words here\n\n"
    "```py\nline = 1\nother = 2\n```\n\nLast paragraph 漢字 😀 of all.\n"
)


@settings(max_examples=examples(60), derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_what_is_selected_while_text_arrives_stays_selected_to_the_character(qtbot, data):
    harness = Standing(qtbot, [Message.user("Go")])
    harness.send(TurnStarted("t", "m", "model"))
    size = data.draw(st.integers(1, 9))
    chosen_after = data.draw(st.integers(2, len(TEXT) // size))
    view, expected = harness.view, None
    for number, at in enumerate(range(0, len(TEXT), size)):
        harness.send(ContentDelta(TEXT[at : at + size]))
        if number == chosen_after:
            blocks = harness.rows.row(1).blocks
            last = blocks[-1].plain().rstrip()
            start = data.draw(st.integers(0, max(0, len(last) - 1)))
            end = data.draw(st.integers(start, len(last)))
            words = last[start:end]
            # Spaces at an edge may be the end of a line, and signs may be of the Markdown that is not read yet.
            if words.strip() == words and words.replace(" ", "").isalnum() and words.isascii():
                view.row_viewport.select(TextPosition(1, len(blocks) - 1, start), TextPosition(1, len(blocks) - 1, end))
                expected = words
        if expected is not None:
            assert harness.selected() == expected
    harness.send(RunFinished(RunEnd.COMPLETED))
    if expected is not None:
        assert harness.selected() == expected
    view.close()
    view.close_workers()


def test_dragging_to_below_the_end_of_growing_text_takes_what_is_there_and_no_more(qtbot):
    harness = Standing(qtbot, [Message.user("Go")])
    harness.send(TurnStarted("t", "m", "model"), ContentDelta("One two"))
    harness.drag(harness.point(1, "One", 4), QPoint(400, 590))
    assert harness.selected() == "two"
    harness.send(ContentDelta(" three\n\nfour"), RunFinished(RunEnd.COMPLETED))
    assert harness.selected() == "two"


def test_all_that_was_selected_by_key_while_it_was_written_is_what_was_there(qtbot):
    harness = Standing(qtbot, [Message.user("Go")])
    harness.send(TurnStarted("t", "m", "model"), ContentDelta("One two"))
    QTest.keyClick(harness.view, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    harness.send(ContentDelta(" three"), RunFinished(RunEnd.COMPLETED))
    assert harness.selected() == "Go\n\nOne two"


def test_a_selection_above_stays_when_reasoning_folds_and_rows_come(qtbot):
    harness = Standing(qtbot, [Message.user("Go on")])
    harness.send(TurnStarted("t", "m", "model"), ThinkingDelta("some **thoughts**"))
    harness.select(0, "Go", 0, 2)
    harness.send(ThinkingBlock("x", "p"), ContentDelta("Answer"), RunFinished(RunEnd.COMPLETED))
    assert harness.selected() == "Go"


def test_what_is_selected_in_reasoning_that_folds_is_not_something_else_afterwards(qtbot):
    harness = Standing(qtbot, [Message.user("Go")])
    harness.send(TurnStarted("t", "m", "model"), ThinkingDelta("some thoughts"))
    harness.select(1, "some", 5, 13)
    harness.send(ThinkingBlock("x", "p"), ContentDelta("Answer"))
    assert harness.selected() == ""


def test_across_folded_reasoning_only_what_was_said_is_selected(qtbot):
    harness = Standing(qtbot, [Message.user("Question")])
    harness.send(TurnStarted("t", "m", "model"), ThinkingDelta("thoughts"), ThinkingBlock("x", "p"))
    harness.send(ContentDelta("Answer"), RunFinished(RunEnd.COMPLETED))
    harness.drag(harness.point(0, "Question", 3), harness.point(2, "Answer", 3))
    harness.view.copy()
    assert QGuiApplication.clipboard().text() == "stion\n\nAns"


def test_cells_are_selected_one_by_one(qtbot):
    harness = Standing(qtbot, [Message.assistant(TEXT)])
    view = harness.view
    start, end = harness.point(0, "head", 11), harness.point(0, "head", 23)
    harness.drag(start, end)
    assert harness.selected() == "cell one\tcel"
    # The formula is one character of its line and five of what is copied.
    harness.drag(harness.point(0, "head", 20), harness.point(0, "head", 30))
    assert harness.selected() == "cell $x^2$"
    view.copy()
    assert QGuiApplication.clipboard().mimeData().data("text/markdown").data() == b"cell $x^2$"
    QTest.mouseDClick(view.viewport(), LEFT, pos=harness.point(0, "head", 33))
    assert harness.selected() == "three"


def test_three_clicks_take_the_paragraph_and_shift_extends(qtbot):
    harness = Standing(qtbot, [Message.assistant("First words here.\n\nSecond words.")])
    viewport, point = harness.view.viewport(), harness.point(0, "First", 8)
    QTest.mouseDClick(viewport, LEFT, pos=point)
    assert harness.selected() == "words"
    QTest.mouseClick(viewport, LEFT, pos=point)
    assert harness.selected() == "First words here."
    qtbot.wait(QGuiApplication.styleHints().mouseDoubleClickInterval() + 50)
    QTest.mouseClick(viewport, LEFT, pos=harness.point(0, "First", 6))
    QTest.mouseClick(viewport, LEFT, Qt.KeyboardModifier.ShiftModifier, harness.point(0, "Second", 6))
    assert harness.selected() == "words here.\n\nSecond"
    QTest.mouseClick(viewport, LEFT, Qt.KeyboardModifier.ShiftModifier, harness.point(0, "First", 2))
    assert harness.selected() == "rst "


def test_dragging_beyond_an_edge_scrolls_on_until_it_ends(qtbot):
    text = "\n\n".join(f"Paragraph {number}." for number in range(100))
    harness = Standing(qtbot, [Message.assistant(text)])
    view = harness.view
    top = harness.rows.top
    QTest.mousePress(view.viewport(), LEFT, pos=QPoint(400, 300))
    QTest.mouseMove(view.viewport(), QPoint(400, -60))
    qtbot.waitUntil(lambda: harness.rows.top < top - 200)
    QTest.mouseRelease(view.viewport(), LEFT, pos=QPoint(400, -60))
    assert harness.selected().count("Paragraph") > 10
    stopped = harness.rows.top
    qtbot.wait(120)
    assert harness.rows.top == stopped


@pytest.mark.parametrize("words", ["cafe\u0301", "it's", "snake_case", "漢字", "שלום"])
def test_a_double_click_takes_a_whole_word(qtbot, words):
    harness = Standing(qtbot, [Message.assistant(f"{words} and more")])
    QTest.mouseDClick(harness.view.viewport(), LEFT, pos=harness.point(0, words[:2], 1))
    assert harness.selected() == words
