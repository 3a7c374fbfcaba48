"""The fifteen invariants of the runtime, in a random world."""

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.frame.examples import examples
from tests.invariants.machine import Machine

# Small and fixed; `make invariants` runs the large one.
EXAMPLES, STEPS = 70, 30


@pytest.mark.timeout(900)
def test_they_hold_in_random_worlds() -> None:
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=examples(EXAMPLES),
            stateful_step_count=STEPS,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
