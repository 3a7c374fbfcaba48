"""`make invariants`: many random worlds, 20,000 unless ARGS says otherwise; another seed each time."""

import argparse
import logging
import random
import sys
import time

import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.invariants.machine import Machine


def main() -> int:
    parser = argparse.ArgumentParser(prog="make invariants")
    parser.add_argument("--worlds", type=int, default=20_000)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("--faults", action="store_true", help="put each fault into the engine, and look for it")
    arguments = parser.parse_args()
    if arguments.faults:
        return int(pytest.main(["-q", "-p", "no:cacheprovider", "--timeout=600", "tests/invariants/faults_found.py"]))
    logging.disable(logging.CRITICAL)
    print(f"seed {arguments.seed}, {arguments.worlds:,} worlds of at most {arguments.steps} steps", flush=True)
    begin = time.monotonic()
    run_state_machine_as_test(
        seed(arguments.seed)(Machine),
        settings=settings(
            max_examples=arguments.worlds,
            stateful_step_count=arguments.steps,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
    print(f"no invariant was broken, in {time.monotonic() - begin:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
