"""What `python -m tests.soak window-kills` compares, and a small part of it."""

from collections import Counter

import pytest

from tests.soak.window_kills import Stored, compare, live

TITLES = {"c": "Tea"}
BEFORE = Stored(Counter({"a": 1}), frozenset("b"), TITLES)


def test_what_was_committed_and_more_is_no_fault() -> None:
    assert list(compare(BEFORE, BEFORE, "search")) == []
    assert list(compare(BEFORE, Stored(Counter("abc"), titles=TITLES), "stream")) == []
    assert list(compare(BEFORE, Stored(titles={"c": ""}), "delete message")) == []


@pytest.mark.parametrize(
    "after",
    [
        Stored(Counter("a"), titles=TITLES),
        Stored(Counter("abb"), titles=TITLES),
        Stored(Counter("ab")),
        Stored(Counter("ab"), titles={"c": "Coffee"}),
    ],
)
def test_what_is_lost_changed_or_twice_is_noticed(after: Stored) -> None:
    assert list(compare(BEFORE, after, "search"))


@pytest.mark.exhaustive("tests/soak/test_kills.py, without a window")
@pytest.mark.timeout(300)
def test_kills_of_the_window_lose_nothing_that_was_committed() -> None:
    report = live(1, 7, ["stream"], print)
    assert report.faults == []
    assert report.kills.total() == 1
