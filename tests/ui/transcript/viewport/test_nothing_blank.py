"""Whatever is painted is laid out, also of a block that is many screens high."""

import pytest
from PySide6.QtCore import Qt

from desktop_agent.types.engine_events import TurnStarted
from desktop_agent.types.messages import Message
from desktop_agent.types.provider_events import ContentDelta
from tests.fakes.transcript_view import Standing

LINES = [f"value_{number} = call({number})\n" for number in range(2_000)]


def watched(harness):
    """Return a list that collects the blocks which are painted without a layout."""
    blank, rows, paint = [], harness.rows, harness.view.row_viewport.paint

    def style(region):
        for index in range(rows.row_at(rows.top), rows.row_at(rows.top + rows.view - 1) + 1):
            row, y = rows.row(index), rows.row_top(index)
            for number, block in enumerate(row.blocks):
                top = y + row.stack.block_top(number)
                if not block.is_laid_out and top < rows.top + rows.view and top + row.stack.heights[number] > rows.top:
                    blank.append((index, number))
        paint(region)

    harness.view.row_viewport.paint = style
    return blank


@pytest.mark.parametrize("key", [Qt.Key.Key_PageDown, Qt.Key.Key_Down])
def test_paging_through_a_code_block_of_many_screens(qtbot, key):
    code = f"Intro\n\n```py\n{''.join(LINES)}```\n\nThe end."
    harness = Standing(qtbot, [Message.user("Go on."), Message.assistant(code)])
    qtbot.waitUntil(lambda: not harness.rows.has_lazy_sections())
    harness.view.scroller.scroll_to_start()
    blank = watched(harness)
    for _ in range(60):
        qtbot.keyClick(harness.view, key)
        harness.view.viewport().repaint()
    assert harness.rows.top > 0
    assert blank == []


def test_a_code_block_that_grows_past_the_screen(qtbot):
    harness = Standing(qtbot, [Message.user("Go on.")])
    harness.send(TurnStarted("t", "m", "model"), ContentDelta("```py\n"))
    blank = watched(harness)
    for line in LINES[:600]:
        harness.send(ContentDelta(line))
        harness.view.viewport().repaint()
    assert harness.rows.following
    assert blank == []
