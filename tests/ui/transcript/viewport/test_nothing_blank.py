"""Whatever is painted is laid out, also of a block that is many screens high."""

import pytest
from PySide6.QtCore import Qt

from desktop_agent.types.engine_events import TurnStarted
from desktop_agent.types.messages import Message
from desktop_agent.types.provider_events import ContentDelta
from tests.fakes.transcript_view import Standing

LINES = [f"value_{number} = call({number})\n" for number in range(2_000)]


def watched(stand):
    """What was painted without a layout, as it happens."""
    blank, rows, paint = [], stand.rows, stand.view.row_viewport.paint

    def style(region):
        for index in range(rows.row_at(rows.top), rows.row_at(rows.top + rows.view - 1) + 1):
            row, y = rows.row(index), rows.row_top(index)
            for at, block in enumerate(row.blocks):
                top = y + row.stack.block_top(at)
                if not block.is_laid_out and top < rows.top + rows.view and top + row.stack.heights[at] > rows.top:
                    blank.append((index, at))
        paint(region)

    stand.view.row_viewport.paint = style
    return blank


@pytest.mark.parametrize("key", [Qt.Key.Key_PageDown, Qt.Key.Key_Down])
def test_paging_through_a_code_block_of_many_screens(qtbot, key):
    code = f"Intro\n\n```py\n{''.join(LINES)}```\n\nThe end."
    stand = Standing(qtbot, [Message.user("Go on."), Message.assistant(code)])
    qtbot.waitUntil(lambda: not stand.rows.has_lazy_sections())
    stand.view.scroller.scroll_to_start()
    blank = watched(stand)
    for _ in range(60):
        qtbot.keyClick(stand.view, key)
        stand.view.viewport().repaint()
    assert stand.rows.top > 0
    assert blank == []


def test_a_code_block_that_grows_past_the_screen(qtbot):
    stand = Standing(qtbot, [Message.user("Go on.")])
    stand.send(TurnStarted("t", "m", "model"), ContentDelta("```py\n"))
    blank = watched(stand)
    for line in LINES[:600]:
        stand.send(ContentDelta(line))
        stand.view.viewport().repaint()
    assert stand.rows.following
    assert blank == []
