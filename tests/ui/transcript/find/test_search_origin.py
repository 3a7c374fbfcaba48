"""From where on something is looked for, in rows of which only a part was read."""

import pytest

from desktop_agent.types.messages import Message
from tests.fakes.transcript_feed import read_all
from tests.ui.transcript.find.test_finder import FindHarness
from ui.transcript.find.matches import SearchOrigin
from ui.transcript.rows.block_factory import LazySection

COUNT = 600
TEXT = "\n\n".join(f"Paragraph {at} with an apple in it, and with more words, so that it wraps." for at in range(COUNT))


def on_screen(harness):
    """Return the number of the paragraph at the upper edge."""
    row = harness.rows.row(0)
    return int(row.blocks[row.stack.block_at(harness.rows.top - harness.rows.row_top(0))].plain().split()[1])


def unread(harness):
    return sum(isinstance(block, LazySection) for block in harness.rows.row(0).blocks)


@pytest.mark.parametrize("share", [0.3, 0.6, 1.0])
def test_the_first_match_is_the_one_on_the_screen_while_the_row_is_not_read(qtbot, share):
    harness = FindHarness(qtbot, [Message.assistant(TEXT)])
    harness.rows.scroll_to(int(harness.rows.bottom * share))
    harness.rows.settle()
    paragraph = on_screen(harness)
    assert unread(harness) > 3
    current, total = harness.find("apple")
    assert total == COUNT
    assert paragraph + 1 <= current <= paragraph + 3
    # At most a third of the screen, where what stands at its edge is brought away from that.
    assert abs(on_screen(harness) - paragraph) <= 10
    assert harness.words() == "apple"
    assert harness.is_seen()


def test_above_the_first_match_is_the_last_one(qtbot):
    harness = FindHarness(qtbot, [Message.assistant(TEXT)])
    harness.rows.settle()
    assert on_screen(harness) > 20
    assert harness.find("Paragraph 12 ") == (1, 1)
    assert harness.words() == "Paragraph 12 "
    assert harness.is_seen()


def test_it_does_not_matter_who_reads_the_row_meanwhile(qtbot, monkeypatch):
    harness = FindHarness(qtbot, [Message.assistant(TEXT)])
    harness.rows.settle()
    paragraph = on_screen(harness)
    original = SearchOrigin.read_step
    monkeypatch.setattr(
        SearchOrigin, "read_step", lambda search_origin: read_all(harness.rows.row(0)) or original(search_origin)
    )
    current, _ = harness.find("apple")
    assert paragraph + 1 <= current <= paragraph + 3
