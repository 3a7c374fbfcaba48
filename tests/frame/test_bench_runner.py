"""The runner of benchmarks tells goals that were missed from goals that were reached."""

from tests.bench.__main__ import Outcome, names, table


def test_a_reached_goal_passes() -> None:
    outcome = Outcome("parse", {"ratio": {"openai": 1.2}, "events": 50_000}, {"ratio.openai": 1.3})
    assert outcome.succeeded
    assert list(outcome.rows()) == [("parse.ratio.openai", "1.2", "ok, goal 1.3"), ("parse.events", "50000", "")]


def test_a_missed_goal_fails() -> None:
    outcome = Outcome("parse", {"ratio": 1.4}, {"ratio": 1.3})
    assert not outcome.succeeded
    assert "MISSED" in table([outcome])


def test_a_goal_that_nobody_measured_fails() -> None:
    assert not Outcome("parse", {}, {"ratio": 1.3}).succeeded


def test_a_benchmark_that_broke_fails_and_says_why() -> None:
    outcome = Outcome("parse", error="Traceback …\nValueError: no stream\n")
    assert not outcome.succeeded
    assert "ValueError: no stream" in table([outcome])


def test_benchmarks_are_found() -> None:
    assert "imports" in names()
    assert "__main__" not in names()
