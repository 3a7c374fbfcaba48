"""Thousands of matches in one block: a paint or a step asks for the boxes of what is seen, the rest is numbers."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from desktop_agent.conversation.items import Added
from desktop_agent.conversation.transcript import Transcript
from desktop_agent.types.messages import Message
from tests.frame.examples import examples
from tests.ui.transcript.find.test_finder import FindHarness, thinking
from ui.transcript.blocks.code.code_block import CodeBlock
from ui.transcript.blocks.math.math_block import MathBlock
from ui.transcript.find import matches
from ui.transcript.find.matches import MatchCounts, Query

COUNT = 20_000
CODE = "```\n" + "ab cde fgh1234567890" * COUNT + "\n```"


class Asked:
    """A record of the boxes that a kind of block is asked for."""

    def __init__(self, monkeypatch, kind):
        self.spans = []
        real = kind.boxes
        monkeypatch.setattr(kind, "boxes", lambda block, *span: self.spans.append(span) or real(block, *span))

    def taken(self):
        spans, self.spans[:] = list(self.spans), []
        return spans


@pytest.fixture
def asked(monkeypatch):
    return Asked(monkeypatch, CodeBlock)


@pytest.mark.parametrize("wraps", [False, True])
def test_a_paint_and_a_step_ask_for_the_boxes_of_what_is_seen(qtbot, asked, wraps):
    harness = FindHarness(qtbot, [Message.assistant(CODE)])
    qtbot.waitUntil(lambda: not harness.rows.has_lazy_sections())
    harness.rows.settle()
    assert harness.find("cde")[1] == COUNT
    assert len(asked.taken()) <= 60
    if wraps:
        next(block for block in harness.rows.row(0).blocks if isinstance(block, CodeBlock))._toggle_wrap()
    seen = 36 * 6 if wraps else 8
    for step in (1, 1, -1, 1):
        harness.step(step)
        assert len(asked.taken()) <= 8
        harness.view.viewport().grab()
        assert 0 < len(asked.taken()) <= seen
        assert harness.is_seen()
        assert harness.words() == "cde"


def test_a_step_around_the_end_goes_to_the_last_match(qtbot):
    harness = FindHarness(qtbot, [Message.assistant(CODE)])
    harness.view.scroller.scroll_to_start()
    harness.find("cde")
    assert harness.finder._current == (0, 0)
    assert harness.step(-1) == COUNT
    assert harness.is_seen()
    (box,) = harness.run_inline()
    assert 0 <= box.left() < box.right() <= harness.view.viewport().width()


def test_a_formula_is_asked_once_and_not_for_each_match(qtbot, monkeypatch):
    harness = FindHarness(qtbot, [Message.assistant("$$\n" + "+".join(["x"] * 300) + "\n$$")])
    asked = Asked(monkeypatch, MathBlock)
    assert harness.find("x")[1] == 300
    block = next(block for block in harness.rows.row(0).blocks if isinstance(block, MathBlock))
    qtbot.waitUntil(lambda: block._formula is not None)
    harness.view.viewport().grab()
    asked.taken()
    harness.view.viewport().grab()
    assert 0 < len(asked.taken()) <= 4
    harness.step()
    assert len(asked.taken()) <= 8


def test_a_long_text_is_looked_through_in_parts(qtbot, monkeypatch):
    lengths = []
    original = Query._find
    monkeypatch.setattr(Query, "_find", lambda self, text: lengths.append(len(text)) or original(self, text))
    harness = FindHarness(qtbot, [Message.assistant(CODE)])
    counts = MatchCounts(Query("cde"), harness.rows, harness.finder._texts)
    steps = sum(1 for _ in counts.count([0]))
    assert max(lengths) <= 25_000
    assert steps >= len(CODE) // 25_000
    lengths.clear()
    assert len(counts.matches_in_row(0)) == COUNT
    assert counts.matches_in_row(0)[-1] == counts.matches_in_row(0)[COUNT - 1]
    assert lengths == []


TEXTS = st.lists(st.sampled_from(["ab", "A", "ss", "ß", "😀", "b a", " ", "\n", "σα", "x"]), max_size=30).map("".join)
QUERIES = st.sampled_from(["a", "ab", "aa", "ss", "ß", "😀", "b a", "ΣΑ"])


@settings(max_examples=examples(200))
@given(QUERIES, TEXTS, st.booleans(), st.integers(1, 7))
@example(query="ab", text="xabx", whole_words=False, size=2)
def test_parts_find_what_the_whole_finds(query, text, whole_words, size):
    search = Query(query, whole_words=whole_words)
    expected = search.find_all(text)
    assert len(list(search.find_in_steps(text))) <= 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matches, "_SEARCH_PART", size)
        assert search.find_all(text) == expected


def test_what_was_opened_for_a_match_is_folded_again_when_rows_came_above_it(qtbot):
    harness = FindHarness(qtbot, [Message.user("A needle?")])
    thinking(harness)
    harness.find("needle")
    harness.step()
    assert len(harness.rows.row(1).blocks) == 2
    items = Transcript([Message.user("Before all of it.")])._items
    harness.transcript._items[:0] = items
    harness.view.apply([Added(0)])
    harness.rest()
    assert len(harness.rows.row(2).blocks) == 2
    harness.step()
    assert harness.finder._current[0] == 3
    assert len(harness.rows.row(2).blocks) == 1
