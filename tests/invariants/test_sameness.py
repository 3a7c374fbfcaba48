"""A world is the same each time: in another process, with other hashes, at other places in memory."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WORLDS = 6


def _lived(hash_seed: str) -> list[str]:
    command = [sys.executable, "-m", "tests.invariants", "--worlds", str(WORLDS), "--seed", "1", "--digests"]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.exhaustive("tests/invariants/test_faults.py::test_a_fault_is_found, with its recorded seeds")
@pytest.mark.timeout(900)
def test_worlds_are_the_same_in_another_process() -> None:
    first, second = _lived("1"), _lived("2")

    assert len(first) > WORLDS
    assert first == second
