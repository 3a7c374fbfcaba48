"""From a footnote back to where its reader came from, which is not remembered for ever."""

import pytest

from desktop_agent.conversation.transcript import Transcript
from desktop_agent.types.messages import Message
from tests.fakes.transcript_view import Standing
from ui.transcript.input import links
from ui.transcript.markdown.inline import FOOTNOTE_TARGET
from ui.transcript.rows import block_factory
from ui.transcript.rows.block_factory import LazySection, SplittingSection
from ui.transcript.rows.row_factory import make_row

NOTES = "\n\n".join([*(f"Word[^{letter}]." for letter in "abc"), *(f"[^{letter}]: Note {letter}." for letter in "abc")])


@pytest.fixture
def ways(qtbot, monkeypatch):
    monkeypatch.setattr(links, "_MAX_BACK_POSITIONS", 2)
    harness = Standing(qtbot, [Message.assistant(NOTES)])
    harness.rows.settle()
    return harness.view._links


def labels(ways):
    return [label for _, label in ways._back_positions]


def test_only_the_last_ones_are_remembered(ways):
    for label in "abc":
        ways.follow(f"{FOOTNOTE_TARGET}{label}", 0)
    assert labels(ways) == ["b", "c"]


def test_one_that_is_used_again_is_the_last(ways):
    for label in "aba":
        ways.follow(f"{FOOTNOTE_TARGET}{label}", 0)
    assert labels(ways) == ["b", "a"]
    ways.follow(f"{FOOTNOTE_TARGET}c", 0)
    assert labels(ways) == ["a", "c"]


def test_a_footnote_in_the_first_section_of_a_very_long_text_is_found(qtbot, monkeypatch):
    monkeypatch.setattr(block_factory, "_FIRST_SLICE", 0)
    text = "[^n]: The note.\n\n" + "Some words of a paragraph.\n\n" * 12_000 + "The word[^n]."
    harness = Standing(qtbot)
    row = make_row(Transcript([Message.assistant(text)])[0], harness.rows.render_context, 600)
    assert [type(block) for block in row.blocks] == [SplittingSection]
    links._read_until(row, "[^n]:")
    (index,) = links._footnote_blocks(row, "n")
    assert row.blocks[index].plain() == "The note."
    assert sum(isinstance(block, LazySection) for block in row.blocks) > 50
