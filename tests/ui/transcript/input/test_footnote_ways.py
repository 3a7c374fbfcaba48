"""From a footnote back to where its reader came from, which is not remembered for ever."""

import pytest

from desktop_agent.vocabulary.messages import Message
from tests.ui.transcript.standing import Standing
from ui.transcript.input import links
from ui.transcript.markdown.inline.lines import FOOTNOTE_TARGET

NOTES = "\n\n".join([*(f"Word[^{each}]." for each in "abc"), *(f"[^{each}]: Note {each}." for each in "abc")])


@pytest.fixture
def ways(qtbot, monkeypatch):
    monkeypatch.setattr(links, "_REMEMBERED", 2)
    standing = Standing(qtbot, [Message.assistant(NOTES)])
    standing.rows.settle()
    return standing.view._links


def labels(ways):
    return [label for _, label in ways._came_from]


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
