"""A small part of `python -m tests.soak kills`: a few kills with a fixed seed."""

import asyncio
from typing import Any

import pytest

from tests.soak.kills import Ledger, live


@pytest.mark.timeout(300)
def test_kills_while_history_is_changed_lose_nothing_that_was_acknowledged() -> None:
    report = asyncio.run(live(3, 7))
    assert report.faults == []
    assert sum(report.kills.values()) == 3


def judged(facts: dict[str, str | None], *lines: dict[str, Any]) -> list[str]:
    """Return the faults after these lines, with a conversation in the list, if the facts are these."""
    ledger = Ledger()
    ledger.note({"confirm": STORED})
    for line in lines:
        ledger.note(line)
    return list(ledger.judge(facts))


STORED: dict[str, str | None] = {
    "place/c": "list",
    "title/c": "Tea",
    "head/c": "m",
    "message/c/m": "abcdefghijklmn tea",
}


def test_what_may_be_there_after_a_kill_is_no_fault() -> None:
    assert judged(STORED) == []
    renamed = {"intend": {"title/c": "Coffee"}}
    assert judged(STORED, renamed) == []
    assert judged({**STORED, "title/c": "Coffee"}, renamed) == []
    assert judged({}, {"intend": {"place/c": None}}) == []
    folder = {"folder/f": "cup|grey|None"}
    assert judged({**STORED, **folder}, {"confirm": folder}, {"intend": {"folder/f": None}}) == []
    assert (
        judged({**STORED, "message/c/n": "abcdefghijklmo leaf1 lea"}, {"begun": ["c", "abcdefghijklmo leaf1 "]}) == []
    )


@pytest.mark.parametrize(
    ("facts", "line"),
    [
        ({}, {}),
        ({**STORED, "message/c/m": None}, {"intend": {"place/c": None}}),
        ({**STORED, "place/c": "trash"}, {}),
        ({**STORED, "title/c": "Coffee"}, {}),
        ({**STORED, "message/c/n": "again abcdefghijklmn"}, {}),
        ({**STORED, "place/d": "list", "message/d/m": "abcdefghijklmn tea"}, {}),
        (STORED, {"begun": ["c", "abcdefghijklmo leaf1 "]}),
        ({**STORED, "folder/f": "cup|grey|None"}, {"announced": ["tea"]}),
        ({**STORED, "export/x": "broken"}, {"intend": {"export/x": "?"}}),
        (STORED, {"confirm": {"backup/x": "all"}}),
    ],
)
def test_what_is_lost_changed_twice_or_broken_is_noticed(facts: dict[str, str | None], line: dict[str, Any]) -> None:
    assert judged(facts, line)


def test_what_the_search_misses_or_finds_though_it_is_gone_is_noticed() -> None:
    ledger, word = Ledger(), "abcdefghijklmn"
    assert list(ledger.judge_found({word: ["c"], "abcdefghijklmx": []}, STORED)) == []
    assert list(ledger.judge_found({word: []}, STORED))
    assert list(ledger.judge_found({word: ["c"]}, {**STORED, "place/c": "trash"}))
