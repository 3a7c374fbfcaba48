"""What is finished was laid out once, and looks like the same message opened later."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from desktop_agent.conversation.transcript import Transcript
from desktop_agent.vocabulary.engine_events import RunEnd, RunFinished, TurnStarted
from desktop_agent.vocabulary.messages import Message
from desktop_agent.vocabulary.provider_events import ContentDelta
from tests.ui.transcript.feeding import Feed, NoPictures, read_all
from tests.ui.transcript.random_markdown import cut_up, markdown
from ui.look.theme import ThemeSource
from ui.transcript.markdown import sections
from ui.transcript.rows import markdown_body
from ui.transcript.rows.body.column import Column
from ui.transcript.view import TranscriptView

cuts = st.lists(st.integers(1, 40), min_size=1, max_size=5)


@pytest.fixture
def view(qtbot, monkeypatch):
    view = TranscriptView(ThemeSource(), NoPictures(Path()))
    qtbot.addWidget(view, before_close_func=lambda view: view.close_workers())
    # Formulas come later and are laid out again then.
    view._stage.formulas = None
    view.resize(800, 4000)
    view.show()
    qtbot.waitExposed(view)
    return view


def streamed(view, pieces):
    """The row of an answer that came in these pieces; what was closed stayed the same block."""
    transcript = Transcript()
    feed = Feed(transcript)
    view.set_transcript(transcript)
    view.apply(feed(TurnStarted("t", "m", "model")))
    kept = []
    with pytest.MonkeyPatch.context() as patch:
        lays = Counter()
        lay = Column.lay
        patch.setattr(Column, "lay", lambda row, index: lays.update([id(row.blocks[index])]) or lay(row, index))
        for piece in pieces:
            view.apply(feed(ContentDelta(piece)))
            row = view.surface.rows.row(0)
            kept += [(block, lays[id(block)]) for block in row.blocks[len(kept) : row.closed]]
        view.apply(feed(RunFinished(RunEnd.COMPLETED)))
    row = view.surface.rows.row(0)
    assert len(kept) <= len(row.blocks)
    assert all(mine is theirs for (mine, _), theirs in zip(kept, row.blocks, strict=False))
    # A definition that comes late is the only reason to lay out again what is finished.
    assert all(lays[id(block)] == before for block, before in kept if "]" not in written(block))
    return row


def written(block):
    leaf = getattr(block, "leaf", None)
    return repr((leaf.text, leaf.cells)) if leaf else ""


def opened(view, text):
    view.set_transcript(Transcript([Message.assistant(text)]))
    row = view.surface.rows.row(0)
    read_all(row)
    view.scroller.row_arrived(0)
    return row


def shape(row):
    """Kind, text, height and place of each block."""
    for index in range(len(row.blocks)):
        row.settle_block(index)
    return [(type(block), block.plain(), row.block_box(index)) for index, block in enumerate(row.blocks)]


@given(markdown, cuts)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_finished_was_laid_out_once_and_is_the_same_when_it_is_opened(view, text, sizes):
    row = streamed(view, cut_up(text, sizes))
    assert {block.layouts for block in row.blocks} <= {1}
    mine = shape(row)
    whole = opened(view, text)
    assert {block.layouts for block in whole.blocks} <= {1}
    assert mine == shape(whole)


@given(st.lists(markdown, min_size=1, max_size=6).map("\n\nword\n\n".join))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_message_read_section_by_section_is_the_same(view, text):
    whole = opened(view, text)
    mine, said = shape(whole), whole.plain()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(markdown_body, "LONG", 40)
        patch.setattr(sections, "SECTION", 30)
        view.set_transcript(Transcript([Message.assistant(text)]))
        row = view.surface.rows.row(0)
        assert row.plain() == said
        read_all(row)
        view.scroller.row_arrived(0)
        assert mine == shape(row)
        assert row.plain() == said


@given(st.lists(markdown, min_size=1, max_size=4).map("\n\nword\n\n".join), st.floats(0.2, 1), cuts)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_an_answer_that_is_opened_while_it_comes_goes_on_the_same(view, text, part, sizes):
    mine = shape(opened(view, text))
    known = int(len(text) * part)
    transcript = Transcript()
    feed = Feed(transcript)
    feed(TurnStarted("t", "m", "model"))
    feed(ContentDelta(text[:known]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(markdown_body, "LONG", 40)
        patch.setattr(sections, "SECTION", 30)
        view.set_transcript(transcript)
        for number, piece in enumerate(cut_up(text[known:], sizes)):
            view.apply(feed(ContentDelta(piece)))
            row = view.surface.rows.row(0)
            if number % 2 and (at := row.last_unread()) is not None:
                row.read(at)
        view.apply(feed(RunFinished(RunEnd.COMPLETED)))
        row = view.surface.rows.row(0)
        read_all(row)
        view.scroller.row_arrived(0)
        assert mine == shape(row)


def test_an_item_written_from_right_to_left_has_its_indent_at_the_right(view):
    row = opened(view, "- שלום\n- hello\n")
    right, left = row.block_box(0), row.block_box(1)
    assert right.left() == 0
    assert left.left() > 0
    assert right.width() == left.width()


def test_what_hides_something_in_a_prompt_is_written_out(view):
    said = "rm \u202exyz\r\nnext\u200b line\tend 👩\u200d🚀"
    view.set_transcript(Transcript([Message.user(said)]))
    row = view.surface.rows.row(0)
    assert row.plain() == "rm ⟨U+202E⟩xyz\nnext⟨U+200B⟩ line\tend 👩\u200d🚀"
    assert row.source() == said
