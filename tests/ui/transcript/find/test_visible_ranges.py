"""What is seen of many matches is marked, whatever the direction of the text."""

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from PySide6.QtCore import QRect

from desktop_agent.conversation.transcript import Transcript
from desktop_agent.types.messages import Message
from tests.ui.transcript.find.test_finder import FindHarness
from ui.transcript.find.highlights import MatchHighlights
from ui.transcript.find.matches import Query
from ui.transcript.find.searchable_text import iter_text_runs
from ui.transcript.viewport.positions import text_boxes

LEFT, RIGHT, BOTH = "word needle", "שלום needle", "word שלום needle מرحبا"
CELLS = st.builds(lambda kind, count: " ".join([kind] * count), st.sampled_from([LEFT, RIGHT, BOTH]), st.integers(0, 9))
ROWS = st.lists(st.tuples(CELLS, CELLS), min_size=12, max_size=25)


def table(rows):
    return "| a | b |\n|---|---|\n" + "\n".join(f"| {first} | {second} |" for first, second in rows)


def unmarked(row, query, height):
    """Return the matches that are visible in some part of the row of this height, but are not highlighted there."""
    highlights, missing = MatchHighlights(query), []
    places = [run.selection(*span) for run in iter_text_runs(row) for span in query.find_all(run.text)]
    boxes = {position: [box.toRect() for box in text_boxes(row, position)] for position in places}
    for top in range(0, row.stack.height, max(7, row.stack.height // 40)):
        clip = QRect(0, top, row.stack.width, height)
        marked = {position for part in highlights.matches_in_row(row, clip) for position in part}
        inside = clip.adjusted(0, 2, 0, -2)
        missing += [
            place for place in places if place not in marked and any(box.intersects(inside) for box in boxes[place])
        ]
    return missing


@pytest.fixture
def harness(qtbot):
    return FindHarness(qtbot, [Message.user("Hi")])


def show_answer(harness, text):
    harness.view.set_transcript(Transcript([Message.assistant(text)]))
    row = harness.rows.row(0)
    index = 0
    while index < len(row.blocks):
        row.stack.settle_block(index)
        index += 1
    return row


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ROWS, st.integers(20, 300))
@example([(" ".join([RIGHT] * 3), "x")] * 40, 100)
@example([("x", " ".join([RIGHT] * 3))] * 40, 100)
def test_visible_matches_in_cells_are_highlighted(harness, rows, height):
    assert not unmarked(show_answer(harness, table(rows)), Query("needle"), height)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(["word", "needle", "שלום", "needle needle", "مرحبا"]), min_size=80, max_size=300))
@example([RIGHT] * 120)
@example(["word", *["needle"] * 9, *["שלום"] * 200])
@example(["word", *["needle", "שלום", "שלום", "שלום"] * 60])
def test_visible_matches_in_paragraphs_are_highlighted(harness, words):
    row = show_answer(harness, " ".join(words))
    for query in ("needle", "שלום"):
        assert not unmarked(row, Query(query), 12)


def test_where_all_goes_from_left_to_right_only_the_lines_that_are_seen_count(harness):
    row, highlights = show_answer(harness, " ".join(["needle"] * 400)), MatchHighlights(Query("needle"))
    (places,) = highlights.matches_in_row(row, QRect(0, row.stack.height // 2, row.stack.width, 10))
    assert 0 < len(places) < 60
