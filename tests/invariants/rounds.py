"""Many random worlds in a row, where `make invariants` shares them out to processes."""

import logging
import traceback

from hypothesis import HealthCheck, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.invariants.machine import Machine


def live(begin: int, worlds: int, steps: int) -> None:
    """Run so many worlds, one after the other. Raise the first error, reduced to a small example."""
    run_state_machine_as_test(
        seed(begin)(Machine),
        settings=settings(
            max_examples=worlds,
            stateful_step_count=steps,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def trouble_of(begin: int, worlds: int, steps: int) -> str | None:
    """Run worlds and return what broke as text: not every error can be pickled."""
    logging.disable(logging.CRITICAL)
    try:
        live(begin, worlds, steps)
    except Exception as error:
        return f"with --seed {begin} --worlds {worlds}:\n{''.join(traceback.format_exception(error))}"
    return None
