"""Which tests run, and in which order: `make test` runs what finds faults fast, `make test-all` everything.

A test that is marked `exhaustive` runs only in the long form, because a cheaper one checks the same on each push. The
mark names that one: a test of the same file, FILE or FILE::TEST, and behind a comma or colon what differs. Tests that
are named one by one, as `FILE::TEST`, run in either form. Files that take long run first, so that no worker is left
alone with one at the end.
"""

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.frame.examples import ALL, PUSH

OPTION = "--exhaustive"
SLOW = Path(__file__).with_name("slow_tests.toml")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(OPTION, action="store_true", help="the long form: also what is marked exhaustive")


def pytest_configure(config: pytest.Config) -> None:
    """Load the profile of hypothesis, unless one was named. Modules of tests read it when they are imported, later."""
    config.addinivalue_line("markers", "exhaustive(*instead): runs in `make test-all` only; names what runs on a push")
    config.addinivalue_line("markers", "end_to_end: an attack that goes through a whole session on a push too")
    if not config.getoption("--hypothesis-profile", None):
        settings.load_profile(ALL if config.getoption(OPTION) else PUSH)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what only the long form runs, and put slow files first."""
    are_named = all("::" in argument for argument in config.args)
    if not (config.getoption(OPTION) or are_named):
        left_out = [item for item in items if item.get_closest_marker("exhaustive")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("exhaustive")]
    seconds = slow_files()
    items.sort(key=lambda item: -seconds.get(item.nodeid.partition("::")[0], 0))


def slow_files() -> dict[str, float]:
    """Return the seconds that each slow file of tests takes."""
    return tomllib.loads(SLOW.read_text(encoding="utf-8"))["seconds"]


def few(cases: Iterable[Any], most: int, instead: str) -> list[Any]:
    """Mark these parameters as exhaustive except `most` of them, at equal distances. A tuple is several arguments."""
    every = list(cases)
    kept = {number * len(every) // most for number in range(most)}
    mark = pytest.mark.exhaustive(instead)
    return [
        pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=() if number in kept else mark)
        for number, case in enumerate(every)
    ]
