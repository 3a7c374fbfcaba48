"""Thousands of matches in one block: a paint or a step asks for the boxes of what is seen, the rest is numbers."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from desktop_agent.conversation.items import Added
from desktop_agent.conversation.transcript import Transcript
from desktop_agent.types.messages import Message
from tests.frame.examples import examples
from tests.ui.transcript.find.test_finder import Stand, thinking
from ui.transcript.blocks.code.code_block import CodeBlock
from ui.transcript.blocks.math.math_block import MathBlock
from ui.transcript.find import matches
from ui.transcript.find.matches import MatchCounts, Query

COUNT = 20_000
CODE = "```\n" + "ab cde fgh1234567890" * COUNT + "\n```"


class Asked:
    """How many boxes a kind of block was asked for."""

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
    stand = Stand(qtbot, [Message.assistant(CODE)])
    qtbot.waitUntil(lambda: not stand.rows.has_lazy_sections())
    stand.rows.settle()
    assert stand.find("cde")[1] == COUNT
    assert len(asked.taken()) <= 60
    if wraps:
        next(each for each in stand.rows.row(0).blocks if isinstance(each, CodeBlock))._toggle_wrap()
    seen = 36 * 6 if wraps else 8
    for by in (1, 1, -1, 1):
        stand.step(by)
        assert len(asked.taken()) <= 8
        stand.view.viewport().grab()
        assert 0 < len(asked.taken()) <= seen
        assert stand.is_seen()
        assert stand.words() == "cde"


def test_a_step_around_the_end_goes_to_the_last_match(qtbot):
    stand = Stand(qtbot, [Message.assistant(CODE)])
    stand.view.scroller.scroll_to_start()
    stand.find("cde")
    assert stand.finder._current == (0, 0)
    assert stand.step(-1) == COUNT
    assert stand.is_seen()
    (box,) = stand.run_inline()
    assert 0 <= box.left() < box.right() <= stand.view.viewport().width()


def test_a_formula_is_asked_once_and_not_for_each_match(qtbot, monkeypatch):
    stand = Stand(qtbot, [Message.assistant("$$\n" + "+".join(["x"] * 300) + "\n$$")])
    asked = Asked(monkeypatch, MathBlock)
    assert stand.find("x")[1] == 300
    block = next(each for each in stand.rows.row(0).blocks if isinstance(each, MathBlock))
    qtbot.waitUntil(lambda: block._formula is not None)
    stand.view.viewport().grab()
    asked.taken()
    stand.view.viewport().grab()
    assert 0 < len(asked.taken()) <= 4
    stand.step()
    assert len(asked.taken()) <= 8


def test_a_long_text_is_looked_through_in_parts(qtbot, monkeypatch):
    looked = []
    real = Query._find
    monkeypatch.setattr(Query, "_find", lambda self, text: looked.append(len(text)) or real(self, text))
    stand = Stand(qtbot, [Message.assistant(CODE)])
    counts = MatchCounts(Query("cde"), stand.rows, stand.finder._texts)
    steps = sum(1 for _ in counts.count([0]))
    assert max(looked) <= 25_000
    assert steps >= len(CODE) // 25_000
    looked.clear()
    assert len(counts.matches_in_row(0)) == COUNT
    assert counts.matches_in_row(0)[-1] == counts.matches_in_row(0)[COUNT - 1]
    assert looked == []


TEXTS = st.lists(st.sampled_from(["ab", "A", "ss", "ß", "😀", "b a", " ", "\n", "σα", "x"]), max_size=30).map("".join)
QUERIES = st.sampled_from(["a", "ab", "aa", "ss", "ß", "😀", "b a", "ΣΑ"])


@settings(max_examples=examples(200))
@given(QUERIES, TEXTS, st.booleans(), st.integers(1, 7))
@example(query="ab", text="xabx", whole_words=False, size=2)
def test_parts_find_what_the_whole_finds(query, text, whole_words, size):
    sought = Query(query, whole_words=whole_words)
    whole = sought.find_all(text)
    assert len(list(sought.find_in_steps(text))) <= 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matches, "_SEARCH_PART", size)
        assert sought.find_all(text) == whole


def test_what_was_opened_for_a_match_is_folded_again_when_rows_came_above_it(qtbot):
    stand = Stand(qtbot, [Message.user("A needle?")])
    thinking(stand)
    stand.find("needle")
    stand.step()
    assert len(stand.rows.row(1).blocks) == 2
    above = Transcript([Message.user("Before all of it.")])._items
    stand.transcript._items[:0] = above
    stand.view.apply([Added(0)])
    stand.rest()
    assert len(stand.rows.row(2).blocks) == 2
    stand.step()
    assert stand.finder._current[0] == 3
    assert len(stand.rows.row(2).blocks) == 1
