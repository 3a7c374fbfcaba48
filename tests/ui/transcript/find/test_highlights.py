"""A painting looks at the text around what is seen, and finds there what is found in the whole."""

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from PySide6.QtCore import QRect

from desktop_agent.conversation.transcript import Transcript
from desktop_agent.types.engine_events import TurnStarted
from desktop_agent.types.messages import Message
from desktop_agent.types.provider_events import ContentDelta
from tests.frame.examples import examples
from tests.ui.transcript.find.test_finder import FindHarness
from ui.transcript.blocks import text_layout
from ui.transcript.blocks.code.code_block import CodeBlock
from ui.transcript.blocks.text_block import TextBlock
from ui.transcript.find import highlights, searchable_text
from ui.transcript.find.highlights import MatchHighlights
from ui.transcript.find.matches import Query
from ui.transcript.find.searchable_text import SearchableTexts, first_lazy_section, iter_text_runs

PARAGRAPH = "漢字 " * 40_000
CODE = "```\n" + "漢字 😀 line\n" * 20_000 + "```"


@pytest.fixture
def harness(qtbot):
    return FindHarness(qtbot, [Message.user("Hi")])


def show_answer(harness, text):
    """Show an answer, read it to its end, and return its row."""
    harness.view.set_transcript(Transcript([Message.assistant(text)]))
    harness.qtbot.waitUntil(lambda: not harness.rows.has_lazy_sections())
    row = harness.rows.row(0)
    while (unread := first_lazy_section(row)) is not None:
        row.stack.read(unread)
    return row


@pytest.fixture
def searched_lengths(monkeypatch):
    """Record the lengths of the texts that are searched."""
    lengths, original = [], Query.find_all
    monkeypatch.setattr(Query, "find_all", lambda self, text: lengths.append(len(text)) or original(self, text))
    return lengths


def seen_by(highlights, row, top):
    return [
        position for part in highlights.matches_in_row(row, QRect(0, top, row.stack.width, 300)) for position in part
    ]


@pytest.mark.parametrize("text", [PARAGRAPH, CODE])
def test_only_what_is_around_the_screen_is_looked_through_and_once(harness, searched_lengths, text):
    row, highlights = show_answer(harness, text), MatchHighlights(Query("漢"))
    first = seen_by(highlights, row, row.stack.height // 2)
    assert first
    assert 0 < sum(searched_lengths) < 25_000
    searched_lengths.clear()
    assert seen_by(highlights, row, row.stack.height // 2) == first
    assert searched_lengths == []


def test_the_lines_of_long_code_are_joined_once(harness, monkeypatch):
    row, highlights, blocks = show_answer(harness, CODE), MatchHighlights(Query("漢")), []
    original = CodeBlock.plain
    monkeypatch.setattr(CodeBlock, "plain", lambda block: blocks.append(block) or original(block))
    for top in (0, 3000, 9000):
        assert seen_by(highlights, row, top)
    assert len(blocks) == 1
    highlights.forget(row.item.id)
    seen_by(highlights, row, 0)
    assert len(blocks) == 2


def test_code_that_grew_is_looked_through_again(harness):
    row, highlights = show_answer(harness, CODE), MatchHighlights(Query("needle"))
    block = next(block for block in row.blocks if isinstance(block, CodeBlock))
    row.stack.settle_block(row.blocks.index(block))
    assert not seen_by(highlights, row, row.stack.height - 200)
    block.append("\nneedle")
    row.stack.settle_block(row.blocks.index(block))
    assert seen_by(highlights, row, row.stack.height - 200)


def test_of_a_long_paragraph_only_pieces_near_the_screen_are_asked_for_their_text(harness, monkeypatch):
    row, highlights, blocks = show_answer(harness, PARAGRAPH), MatchHighlights(Query("漢字")), []
    assert len(row.blocks) > 25
    top = row.stack.height // 2
    original = TextBlock.plain
    monkeypatch.setattr(TextBlock, "plain", lambda block: blocks.append(block) or original(block))
    assert seen_by(highlights, row, top)
    assert 0 < len(set(map(id, blocks))) <= 6


WORDS = st.lists(st.sampled_from(["aa", "a", "ab", "ß", "ss", "😀", " ", "漢", "\n", "b a"]), max_size=60)
QUERIES = st.sampled_from(["a", "aa", "aba", "ss", "ß", "😀", "b a", "漢", "aab"])


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(WORDS, QUERIES, st.booleans(), st.integers(1, 9))
@example(["aa"] * 20 + ["b"], "aa", False, 3)
@example(["aa", "b"] * 9, "aab", False, 1)
def test_a_part_of_code_has_the_matches_of_the_whole(harness, words, query, whole_words, size):
    row = show_answer(harness, "```\nx" + "".join(words) + "x\n```")
    search = Query(query, whole_words=whole_words)
    index = next(block_index for block_index, block in enumerate(row.blocks) if isinstance(block, CodeBlock))
    row.stack.settle_block(index)
    (whole,) = [run for run in iter_text_runs(row) if run.first == index]
    expected = {whole.selection(*span) for span in search.find_all(whole.text)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(highlights, "_PART_LENGTH", size)
        patch.setattr(highlights, "_SHORT_TEXT", 1)
        patch.setattr(highlights, "_LOOKBACK", 1000)
        long_text, finder = highlights._LongText(row.blocks[index]), highlights.VisibleText(search)
        for start in range(0, len(whole.text), 3):
            visible = [(start, start + 5)]
            parts = finder._parts_of(long_text, index, visible)
            matches_found = {part.selection(*span) for part in parts for span in search.find_all(part.text)}
            assert inside(matches_found, visible) == inside(expected, visible)


def inside(places, spans):
    """Return the positions in a block that overlap one of these spans of its text."""
    return {
        position for position in places if any(first < position[1][1] and position[0][1] < end for first, end in spans)
    }


def test_the_pieces_of_a_long_paragraph_are_read_in_steps(harness, monkeypatch):
    row = show_answer(harness, PARAGRAPH)
    monkeypatch.setattr(searchable_text, "_STEP_SECONDS", -1)
    blocks, original = [], TextBlock.plain
    monkeypatch.setattr(TextBlock, "plain", lambda block: blocks.append(block) or original(block))
    steps = SearchableTexts(harness.rows).text_runs_of(0)
    for count in range(len(row.blocks)):
        assert next(steps) is None
        assert len(blocks) == count
    assert next(steps).text == PARAGRAPH.strip()


def test_matches_over_the_seams_of_pieces_are_those_of_the_whole(harness):
    row, query = show_answer(harness, "漢" * 20_000), Query("漢漢漢")
    expected = {run.selection(*span) for run in iter_text_runs(row) for span in query.find_all(run.text)}
    assert len(row.blocks) > 3
    for index in range(len(row.blocks)):
        row.stack.settle_block(index)
    for top in range(0, row.stack.height - 300, 400):
        highlighted = seen_by(MatchHighlights(query), row, top)
        assert highlighted
        assert set(highlighted) <= expected


def test_an_update_drops_the_long_texts_of_its_row(harness):
    harness.send(TurnStarted("t", "m", "model"), ContentDelta(CODE.removesuffix("```")))
    harness.find("漢")
    harness.view.scroller.scroll_to_end()
    harness.view.viewport().grab()
    long_texts = harness.finder._highlights._visible_text._long
    assert long_texts
    harness.send(ContentDelta("漢"))
    assert not long_texts


def test_marks_in_a_paragraph_ask_its_text_once_in_each_layout(harness, monkeypatch):
    row = show_answer(harness, "漢字 " * 1000)
    row.stack.settle_block(0)
    block, blocks = row.blocks[0], []
    original = TextBlock.plain
    monkeypatch.setattr(TextBlock, "plain", lambda block: blocks.append(block) or original(block))
    boxes = [block.boxes(start, start + 1) for start in range(0, 900, 3)]
    assert all(boxes)
    assert len(blocks) == 1


class Turns:
    """A pattern that counts how often a text is searched for right-to-left characters."""

    def __init__(self, pattern):
        self.pattern, self.count = pattern, 0

    def search(self, text):
        self.count += 1
        return self.pattern.search(text)


@pytest.mark.parametrize("text", ["漢字 " * 300, "a\u2028é" * 300, "שלום " * 300])
def test_a_text_is_looked_through_once_for_turns(harness, monkeypatch, text):
    turns = Turns(text_layout._RIGHT_TO_LEFT)
    monkeypatch.setattr(text_layout, "_RIGHT_TO_LEFT", turns)
    row = show_answer(harness, text)
    row.stack.settle_block(0)
    turns.count = 0
    layout = text_layout.TextLayout(
        row.blocks[0].line(), row.render_context.style.body, row.render_context.style, 300, 20
    )
    assert sum(bool(layout.boxes(start, 1)) for start in range(0, 900, 3)) > 200
    assert turns.count == 1
