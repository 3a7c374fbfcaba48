"""What stands beside the screen is made and laid out before somebody goes there, and nobody sees it."""

from pathlib import Path

import pytest

from desktop_agent.conversation.transcript import Transcript
from desktop_agent.types.messages import Message
from tests.fakes.transcript_feed import NoPictures
from ui.style.theme import ThemeSource
from ui.transcript.blocks.table_block import TableBlock
from ui.transcript.rows.block_stack import BlockStack
from ui.transcript.view import TranscriptView
from ui.transcript.viewport import prefetch

ANSWER = "Words of answer {0}, **bold** and so many that they go on to a second line.\n\n- first\n- second\n\n" * 2
TABLE = "| a | b |\n|---|---|\n" + "".join(f"| {'wide ' * (n // 100)} | {n} |\n" for n in range(400))


@pytest.fixture
def view(qtbot):
    view = TranscriptView(ThemeSource(), NoPictures(Path()))
    qtbot.addWidget(view, before_close_func=lambda view: view.close_workers())
    view.resize(800, 600)
    with qtbot.waitExposed(view):
        view.show()
    return view


def show(view, *answers):
    messages = [message for text in answers for message in (Message.user("Go on."), Message.assistant(text))]
    view.set_transcript(Transcript(messages))


def rest(view, qtbot):
    qtbot.waitUntil(lambda: not view.scroller._prefetcher._timer.isActive())


def unlaid(rows, top, bottom):
    """Return the blocks between two y that are not laid out, and the rows that are not built."""
    missing = []
    for index in range(rows.row_at(top), rows.row_at(bottom - 1) + 1):
        row, y = rows.existing_row(index), rows.row_top(index)
        if row is None:
            missing.append(index)
            continue
        for block_index, block in enumerate(row.blocks):
            position = y + row.stack.block_top(block_index)
            if not block.is_laid_out and position < bottom and position + row.stack.heights[block_index] > top:
                missing.append((index, block_index))
    return missing


@pytest.mark.parametrize("position", [0.0, 0.5, 1.0])
def test_one_screen_above_and_below_is_ready_and_no_more(view, qtbot, position):
    show(view, *map(ANSWER.format, range(300)))
    rest(view, qtbot)
    rows = view.row_viewport.rows
    if position < 1:
        rows.scroll_to(int(rows.bottom * position))
        view.scroller.scroll_by(-5)
    picture = view.viewport().grab().toImage()
    rest(view, qtbot)
    assert view.viewport().grab().toImage() == picture
    assert view.verticalScrollBar().value() == rows.top
    top = rows.top
    assert not unlaid(rows, max(0, top - rows.view), min(rows.total - 1, top + 2 * rows.view))
    far = [y for y in (top - 4 * rows.view, top + 4 * rows.view) if 0 < y < rows.total]
    assert far
    assert all(rows.existing_row(rows.row_at(y)) is None for y in far)


def test_a_page_is_turned_without_laying_anything_out(view, qtbot, monkeypatch):
    show(view, *map(ANSWER.format, range(300)))
    rest(view, qtbot)
    laid = []
    lay = BlockStack.layout
    monkeypatch.setattr(BlockStack, "layout", lambda row, index: laid.append(index) or lay(row, index))
    view.scroller.scroll_by(-view.row_viewport.rows.view + 40)
    assert laid == []
    rest(view, qtbot)
    assert laid


def test_the_picture_comes_before_what_is_beside_it(view, qtbot, monkeypatch):
    show(view, *map(ANSWER.format, range(300)))
    rest(view, qtbot)
    done = []
    paint, prepare = view.row_viewport.paint, prefetch.prefetch_rows
    view.row_viewport.paint = lambda region: done.append("paint") or paint(region)
    monkeypatch.setattr(prefetch, "prefetch_rows", lambda *rest: done.append("prepare") or prepare(*rest))
    for _ in range(5):
        done.clear()
        view.scroller.scroll_by(40 - view.row_viewport.rows.view)
        # Its turn may come before the painting.
        view.scroller._prefetcher._on_timer()
        rest(view, qtbot)
        assert done[:2] == ["paint", "prepare"]


def test_a_view_that_is_not_shown_is_prepared_too(view, qtbot):
    view.hide()
    show(view, *map(ANSWER.format, range(300)))
    rest(view, qtbot)
    rows = view.row_viewport.rows
    assert not unlaid(rows, rows.top - rows.view, rows.total - 1)


def test_a_table_on_the_screen_keeps_its_columns(view, qtbot):
    show(view, TABLE, "The end.")
    rows = view.row_viewport.rows
    row = rows.row(1)
    view.scroller.scroll_to_start()
    rows._layout_between(0, rows.view)
    # The next piece begins below the lower edge.
    view.scroller.scroll_by(rows.row_top(1) + row.stack.block_top(1) - rows.view - 100)
    rest(view, qtbot)
    tables = [block for block in row.blocks if isinstance(block, TableBlock)]
    assert len(tables) > 2
    assert 0 < rows.row_top(1) + row.stack.block_top(1) - rows.top - rows.view < rows.view
    assert [block.is_laid_out for block in tables[:3]] == [True, False, False]
