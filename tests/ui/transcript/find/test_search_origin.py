"""From where on something is looked for, in rows of which only a part was read."""

import pytest

from desktop_agent.types.messages import Message
from tests.fakes.transcript_feed import read_all
from tests.ui.transcript.find.test_finder import Stand
from ui.transcript.find.matches import SearchOrigin
from ui.transcript.rows.block_factory import LazySection

COUNT = 600
TEXT = "\n\n".join(f"Paragraph {at} with an apple in it, and with more words, so that it wraps." for at in range(COUNT))


def on_screen(stand):
    """The number of the paragraph at the upper edge."""
    row = stand.rows.row(0)
    return int(row.blocks[row.stack.block_at(stand.rows.top - stand.rows.row_top(0))].plain().split()[1])


def unread(stand):
    return sum(isinstance(block, LazySection) for block in stand.rows.row(0).blocks)


@pytest.mark.parametrize("share", [0.3, 0.6, 1.0])
def test_the_first_match_is_the_one_on_the_screen_while_the_row_is_not_read(qtbot, share):
    stand = Stand(qtbot, [Message.assistant(TEXT)])
    stand.rows.scroll_to(int(stand.rows.bottom * share))
    stand.rows.settle()
    before = on_screen(stand)
    assert unread(stand) > 3
    current, total = stand.find("apple")
    assert total == COUNT
    assert before + 1 <= current <= before + 3
    # At most a third of the screen, where what stands at its edge is brought away from that.
    assert abs(on_screen(stand) - before) <= 10
    assert stand.words() == "apple"
    assert stand.is_seen()


def test_above_the_first_match_is_the_last_one(qtbot):
    stand = Stand(qtbot, [Message.assistant(TEXT)])
    stand.rows.settle()
    assert on_screen(stand) > 20
    assert stand.find("Paragraph 12 ") == (1, 1)
    assert stand.words() == "Paragraph 12 "
    assert stand.is_seen()


def test_it_does_not_matter_who_reads_the_row_meanwhile(qtbot, monkeypatch):
    stand = Stand(qtbot, [Message.assistant(TEXT)])
    stand.rows.settle()
    before = on_screen(stand)
    real = SearchOrigin.read_step
    monkeypatch.setattr(
        SearchOrigin, "read_step", lambda search_origin: read_all(stand.rows.row(0)) or real(search_origin)
    )
    current, _ = stand.find("apple")
    assert before + 1 <= current <= before + 3
