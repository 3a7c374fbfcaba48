"""Notices take less room where the person wants it compact."""

from desktop_agent.conversation.items import NoticeItem
from desktop_agent.types.errors import RemedyAction, Sentence
from ui.style.theme import LIGHT, ReadingStyle
from ui.transcript.blocks.buttons import ButtonRowBlock
from ui.transcript.rows.notice_rows import NoticeRow
from ui.transcript.style import RenderStyle


def room_in(render_context, reading):
    """Return the height of a notice without its text and buttons."""
    render_context.style = RenderStyle(LIGHT, 100, reading)
    notice = NoticeItem("n", "error", Sentence("It broke."), Sentence("Mend it."), RemedyAction.RETRY)
    row = NoticeRow(notice, render_context)
    row.build()
    row.set_width(600)
    row.stack.settle(0, 400)
    return row.stack.height - sum(row.stack.block_box(index).height() for index in range(len(row.blocks)))


def test_a_compact_notice_is_lower(render_context):
    assert room_in(render_context, ReadingStyle()) == 2 * (6 + 12) + 2 + 10
    assert room_in(render_context, ReadingStyle(is_compact=True)) == 2 * (3 + 7) + 1 + 6


def test_a_notice_whose_remedy_is_taken_away_has_no_button(render_context):
    broke = NoticeItem("n", "error", Sentence("It broke."), Sentence("Mend it."), RemedyAction.RETRY)
    row = NoticeRow(broke, render_context)
    row.build()
    row.set_width(600)
    assert any(isinstance(block, ButtonRowBlock) for block in row.blocks)
    broke.action = RemedyAction.NONE
    row.refresh("state")
    assert not any(isinstance(block, ButtonRowBlock) for block in row.blocks)
