"""Notices take less room where the person wants it compact."""

from desktop_agent.conversation.items import NoticeItem
from desktop_agent.vocabulary.errors import RemedyAction, Sentence
from ui.look.theme import LIGHT, Reading
from ui.transcript.look import Look
from ui.transcript.rows.notice_row import NoticeRow


def room_in(stage, reading):
    """What of a notice's height is no text and no button."""
    stage.look = Look(LIGHT, 100, reading)
    broke = NoticeItem("n", "error", Sentence("It broke."), Sentence("Mend it."), RemedyAction.RETRY)
    row = NoticeRow(broke, stage)
    row.build()
    row.place(600)
    row.settle(0, 400)
    return row.height - sum(row.block_box(at).height() for at in range(len(row.blocks)))


def test_a_compact_notice_is_lower(stage):
    assert room_in(stage, Reading()) == 2 * (6 + 12) + 2 + 10
    assert room_in(stage, Reading(is_compact=True)) == 2 * (3 + 7) + 1 + 6
