"""Two days of an ordinary user: at most twenty questions, then none; and what is dangerous never passes."""

import json

import pytest

from tests.fatigue.first_day import calls
from tests.frame.unprivileged import run_unprivileged

BEFORE = 56
"""How often the same person was asked on the first day before read-only commands were let through."""


@pytest.fixture(scope="module")
def lived() -> dict[str, dict[str, list[int]]]:
    told = run_unprivileged("tests.fatigue.first_day", timeout=900)
    assert told.returncode == 0, told.stderr
    return json.loads(told.stdout)


def test_it_is_the_day_that_was_written_down() -> None:
    dangerous = sum(each.dangerous for each in calls())
    assert (len(calls()) - dangerous, dangerous) == (70, 40)


def test_few_questions_on_the_first_day_and_none_on_the_second(lived: dict[str, dict[str, list[int]]]) -> None:
    everything = calls()
    first, second = (
        [everything[at].about for at in lived[day]["asked"] if not everything[at].dangerous] for day in lived
    )
    assert len(first) <= 20, first
    assert len(first) <= 0.4 * BEFORE
    assert second == []


@pytest.mark.parametrize("day", ["first", "second"])
def test_everything_common_runs_and_nothing_dangerous(lived: dict[str, dict[str, list[int]]], day: str) -> None:
    everything = calls()
    started, asked = set(lived[day]["started"]), set(lived[day]["asked"])
    # Each is asked about, or refused: one that only reads is started for that, as it lies outside of the workspace.
    refused = {each.number for each in everything if each.input == {"path": "../.env"}}
    for each in everything:
        if each.dangerous:
            assert each.number not in started or each.number in refused, each
            assert each.number in asked or each.number in lived[day]["ended"], each
        else:
            assert each.number in started, each
