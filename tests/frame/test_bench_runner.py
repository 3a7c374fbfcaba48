"""The runner of benchmarks says which goals were missed and which were reached."""

import json
import subprocess
import sys

import pytest

from tests.bench.__main__ import Outcome, measure_here, names, parse_words, table


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


def test_every_benchmark_still_finds_what_it_measures() -> None:
    """In a process of its own: a benchmark may change its process for good."""
    imports = f"import importlib; [importlib.import_module('tests.bench.' + name) for name in {names()}]"
    done = subprocess.run([sys.executable, "-c", imports], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_words_after_a_benchmark_are_parts_of_it() -> None:
    assert parse_words(["imports", "bench_engine", "flood", "growth"]) == [
        ("imports", []),
        ("bench_engine", ["flood", "growth"]),
    ]
    assert [name for name, _ in parse_words([])] == names()
    with pytest.raises(ValueError, match="no such benchmark: flood"):
        parse_words(["flood"])


def test_only_the_goals_of_the_parts_that_were_asked_for_count(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.bench import bench_engine

    monkeypatch.setattr(bench_engine, "PARTS", {"growth": lambda: {"exponent": 1.0}, "flood": dict})
    measure_here("bench_engine", ["flood"], tmp_path / "flood")
    measure_here("bench_engine", ["growth"], tmp_path / "growth")
    assert json.loads((tmp_path / "flood").read_text()) == {"figures": {"flood": {}}, "goals": {}}
    assert set(json.loads((tmp_path / "growth").read_text())["goals"]) == {
        "growth.exponent",
        "growth.exponent_of_the_longest",
    }
    with pytest.raises(SystemExit, match="has no part hostile"):
        measure_here("bench_engine", ["hostile"], tmp_path / "none")


def test_what_is_said_in_words_stands_behind_the_figures() -> None:
    outcome = Outcome("view", {"longest_ms": 40.0, "longest_in": "row.py:paint"}, {})
    assert list(outcome.rows())[1] == ("view.longest_in", "", "row.py:paint")
