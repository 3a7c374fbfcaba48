"""Each invariant bites: a fault that is put into the engine on purpose is found by the random worlds."""

import logging

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.invariants import world
from tests.invariants.checks import Broken
from tests.invariants.faults import FAULTS, Fault
from tests.invariants.machine import Machine

# A fault is found after some dozen worlds; this many are a fault of the search.
WORLDS = 1_500


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name.replace(" ", "-"))
def test_a_fault_is_found(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world, "PATIENCE", 6_000)
    logging.disable(logging.CRITICAL)
    try:
        with fault.patch(), pytest.raises(Exception) as caught:  # noqa: PT011  which one is looked at below
            run_state_machine_as_test(
                Machine,
                settings=settings(
                    max_examples=WORLDS,
                    stateful_step_count=30,
                    deadline=None,
                    derandomize=True,
                    database=None,
                    phases=[Phase.generate],
                    report_multiple_bugs=False,
                    suppress_health_check=list(HealthCheck),
                ),
            )
    finally:
        logging.disable(logging.NOTSET)
    broken = _broken(caught.value)
    assert broken is not None, f"it ended with {caught.value!r}"
    assert broken.number in fault.breaks, str(broken)


def test_every_invariant_has_a_fault_that_breaks_it() -> None:
    # 15 has its own random world, over real files: tests/desktop_agent/engine/test_checkpoints_property.py
    assert {number for fault in FAULTS for number in fault.breaks} == set(range(1, 15))


def _broken(error: BaseException | None) -> Broken | None:
    """The broken invariant that the test framework wrapped or followed up."""
    waiting, seen = [error], set[int]()
    while waiting:
        each = waiting.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, Broken):
            return each
        if isinstance(each, BaseExceptionGroup):
            waiting += each.exceptions
        waiting += [each.__cause__, each.__context__]
    return None
