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
from tests.ui.transcript.find.test_finder import Stand
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
def stand(qtbot):
    return Stand(qtbot, [Message.user("Hi")])


def shown(stand, text):
    """The row of an answer, read to its end."""
    stand.view.set_transcript(Transcript([Message.assistant(text)]))
    stand.qtbot.waitUntil(lambda: not stand.rows.has_lazy_sections())
    row = stand.rows.row(0)
    while (unread := first_lazy_section(row)) is not None:
        row.stack.read(unread)
    return row


@pytest.fixture
def looked(monkeypatch):
    """The lengths of the texts that were looked through."""
    lengths, real = [], Query.find_all
    monkeypatch.setattr(Query, "find_all", lambda self, text: lengths.append(len(text)) or real(self, text))
    return lengths


def seen_by(highlights, row, top):
    return [
        position for part in highlights.matches_in_row(row, QRect(0, top, row.stack.width, 300)) for position in part
    ]


@pytest.mark.parametrize("text", [PARAGRAPH, CODE])
def test_only_what_is_around_the_screen_is_looked_through_and_once(stand, looked, text):
    row, highlights = shown(stand, text), MatchHighlights(Query("漢"))
    first = seen_by(highlights, row, row.stack.height // 2)
    assert first
    assert 0 < sum(looked) < 25_000
    looked.clear()
    assert seen_by(highlights, row, row.stack.height // 2) == first
    assert looked == []


def test_the_lines_of_long_code_are_joined_once(stand, monkeypatch):
    row, highlights, joined = shown(stand, CODE), MatchHighlights(Query("漢")), []
    real = CodeBlock.plain
    monkeypatch.setattr(CodeBlock, "plain", lambda block: joined.append(block) or real(block))
    for top in (0, 3000, 9000):
        assert seen_by(highlights, row, top)
    assert len(joined) == 1
    highlights.forget(row.item.id)
    seen_by(highlights, row, 0)
    assert len(joined) == 2


def test_code_that_grew_is_looked_through_again(stand):
    row, highlights = shown(stand, CODE), MatchHighlights(Query("needle"))
    block = next(each for each in row.blocks if isinstance(each, CodeBlock))
    row.stack.settle_block(row.blocks.index(block))
    assert not seen_by(highlights, row, row.stack.height - 200)
    block.append("\nneedle")
    row.stack.settle_block(row.blocks.index(block))
    assert seen_by(highlights, row, row.stack.height - 200)


def test_of_a_long_paragraph_only_pieces_near_the_screen_are_asked_for_their_text(stand, monkeypatch):
    row, highlights, asked = shown(stand, PARAGRAPH), MatchHighlights(Query("漢字")), []
    assert len(row.blocks) > 25
    top = row.stack.height // 2
    real = TextBlock.plain
    monkeypatch.setattr(TextBlock, "plain", lambda block: asked.append(block) or real(block))
    assert seen_by(highlights, row, top)
    assert 0 < len(set(map(id, asked))) <= 6


WORDS = st.lists(st.sampled_from(["aa", "a", "ab", "ß", "ss", "😀", " ", "漢", "\n", "b a"]), max_size=60)
QUERIES = st.sampled_from(["a", "aa", "aba", "ss", "ß", "😀", "b a", "漢", "aab"])


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(WORDS, QUERIES, st.booleans(), st.integers(1, 9))
@example(["aa"] * 20 + ["b"], "aa", False, 3)
@example(["aa", "b"] * 9, "aab", False, 1)
def test_a_part_of_code_has_the_matches_of_the_whole(stand, words, query, whole_words, size):
    row = shown(stand, "```\nx" + "".join(words) + "x\n```")
    sought = Query(query, whole_words=whole_words)
    index = next(at for at, each in enumerate(row.blocks) if isinstance(each, CodeBlock))
    row.stack.settle_block(index)
    (whole,) = [each for each in iter_text_runs(row) if each.first == index]
    expected = {whole.selection(*span) for span in sought.find_all(whole.text)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(highlights, "_PART_LENGTH", size)
        patch.setattr(highlights, "_SHORT_TEXT", 1)
        patch.setattr(highlights, "_LOOKBACK", 1000)
        long, finder = highlights._LongText(row.blocks[index]), highlights.VisibleText(sought)
        for start in range(0, len(whole.text), 3):
            seen = [(start, start + 5)]
            parts = finder._parts_of(long, index, seen)
            found = {part.selection(*span) for part in parts for span in sought.find_all(part.text)}
            assert inside(found, seen) == inside(expected, seen)


def inside(places, spans):
    """The places of a block of which something lies in one of some parts of its text."""
    return {
        position for position in places if any(first < position[1][1] and position[0][1] < end for first, end in spans)
    }


def test_the_pieces_of_a_long_paragraph_are_read_in_steps(stand, monkeypatch):
    row = shown(stand, PARAGRAPH)
    monkeypatch.setattr(searchable_text, "_STEP_SECONDS", -1)
    asked, real = [], TextBlock.plain
    monkeypatch.setattr(TextBlock, "plain", lambda block: asked.append(block) or real(block))
    steps = SearchableTexts(stand.rows).text_runs_of(0)
    for at in range(len(row.blocks)):
        assert next(steps) is None
        assert len(asked) == at
    assert next(steps).text == PARAGRAPH.strip()


def test_matches_over_the_seams_of_pieces_are_those_of_the_whole(stand):
    row, sought = shown(stand, "漢" * 20_000), Query("漢漢漢")
    expected = {each.selection(*span) for each in iter_text_runs(row) for span in sought.find_all(each.text)}
    assert len(row.blocks) > 3
    for index in range(len(row.blocks)):
        row.stack.settle_block(index)
    for top in range(0, row.stack.height - 300, 400):
        found = seen_by(MatchHighlights(sought), row, top)
        assert found
        assert set(found) <= expected


def test_an_update_drops_the_long_texts_of_its_row(stand):
    stand.send(TurnStarted("t", "m", "model"), ContentDelta(CODE.removesuffix("```")))
    stand.find("漢")
    stand.view.scroller.scroll_to_end()
    stand.view.viewport().grab()
    kept = stand.finder._highlights._visible_text._long
    assert kept
    stand.send(ContentDelta("漢"))
    assert not kept


def test_marks_in_a_paragraph_ask_its_text_once_in_each_layout(stand, monkeypatch):
    row = shown(stand, "漢字 " * 1000)
    row.stack.settle_block(0)
    block, asked = row.blocks[0], []
    real = TextBlock.plain
    monkeypatch.setattr(TextBlock, "plain", lambda block: asked.append(block) or real(block))
    boxes = [block.boxes(start, start + 1) for start in range(0, 900, 3)]
    assert all(boxes)
    assert len(asked) == 1


class Turns:
    """Counts how often a text was looked through for what runs from right to left."""

    def __init__(self, pattern):
        self.pattern, self.count = pattern, 0

    def search(self, text):
        self.count += 1
        return self.pattern.search(text)


@pytest.mark.parametrize("text", ["漢字 " * 300, "a\u2028é" * 300, "שלום " * 300])
def test_a_text_is_looked_through_once_for_turns(stand, monkeypatch, text):
    turns = Turns(text_layout._RIGHT_TO_LEFT)
    monkeypatch.setattr(text_layout, "_RIGHT_TO_LEFT", turns)
    row = shown(stand, text)
    row.stack.settle_block(0)
    turns.count = 0
    made = text_layout.TextLayout(
        row.blocks[0].line(), row.render_context.style.body, row.render_context.style, 300, 20
    )
    assert sum(bool(made.boxes(start, 1)) for start in range(0, 900, 3)) > 200
    assert turns.count == 1
