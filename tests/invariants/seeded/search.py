"""Puts a fault into the engine and looks for it in random worlds, until the first broken invariant."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.invariants import world
from tests.invariants.checks import Broken
from tests.invariants.machine import Machine
from tests.invariants.seeded.calls import OF_CALLS
from tests.invariants.seeded.fault import Fault
from tests.invariants.seeded.histories import OF_HISTORIES
from tests.invariants.seeded.runs import OF_RUNS

SEEDS = Path(__file__).with_name("seeds.json")
"""The seed with which each fault is found soon, by its name: `python -m tests.invariants --record` writes it."""

RECORDED = 80
"""How many worlds are lived through at most with a recorded seed: with another number hypothesis makes other worlds."""

FAULTS: tuple[Fault, ...] = (*OF_CALLS, *OF_RUNS, *OF_HISTORIES)

# Steps: enough for runs that end, and soon over for those that do not.
_PATIENCE = 6_000


class _Ended(BaseException):
    """The search is over; the cause is what broke. No `Exception`, which hypothesis would catch."""


@dataclass(frozen=True)
class SearchResult:
    """The result of a search after so many worlds. `error` is None if nothing broke."""

    worlds: int
    error: BaseException | None = None

    @property
    def broken(self) -> Broken | None:
        """The invariant that broke, if that is what ended the search."""
        return next((error for error in _chain(self.error) if isinstance(error, Broken)), None)

    def is_as_stated(self, fault: Fault) -> bool:
        """Whether it is an invariant that this fault breaks."""
        return self.broken is not None and self.broken.number in fault.breaks

    def __str__(self) -> str:
        return str(self.broken or (self.error and repr(self.error)) or "not found")


def search(fault: Fault, worlds: int, begin: int) -> SearchResult:
    """Live through at most about so many worlds; another `begin` is another search."""
    lived = 0

    class Counted(Machine):
        def __init__(self) -> None:
            nonlocal lived
            lived += 1
            super().__init__()

        def teardown(self) -> None:
            """Leave at the first error: hypothesis would live through the same world again, for its report."""
            try:
                super().teardown()
            finally:
                # The error that this world ends with, at its end or before.
                if isinstance(error := sys.exc_info()[1], Exception):
                    raise _Ended from error

    with _quiet(), fault.patch():
        try:
            run_state_machine_as_test(seed(begin)(Counted), settings=_settings(worlds))
        except _Ended as ended:
            return SearchResult(lived, ended.__cause__)
        except Exception as error:
            return SearchResult(lived, error)
    return SearchResult(lived)


def _settings(worlds: int) -> settings:
    return settings(
        max_examples=worlds,
        stateful_step_count=30,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )


@contextmanager
def _quiet() -> Iterator[None]:
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with mock.patch.object(world, "PATIENCE", _PATIENCE):
            yield
    finally:
        logging.disable(before)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the error, and those in its group, its causes and its contexts."""
    waiting, visited = [error], set[int]()
    while waiting:
        current = waiting.pop()
        if current is None or id(current) in visited:
            continue
        visited.add(id(current))
        yield current
        if isinstance(current, BaseExceptionGroup):
            waiting += current.exceptions
        waiting += [current.__cause__, current.__context__]
