"""Each invariant bites: a fault that is put into the engine on purpose is found by the random worlds."""

import json
from contextlib import nullcontext

import pytest

from tests.invariants.seeded.fault import Fault
from tests.invariants.seeded.search import FAULTS, RECORDED, SEEDS, search

# Worlds that are lived through with another seed, where the engine has changed since the seed was recorded.
# `make invariants ARGS=--faults` looks without recorded seeds.
THEN = 600
ANOTHER_SEED = 1


@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name.replace(" ", "-"))
def test_a_fault_is_found(fault: Fault) -> None:
    recorded = json.loads(SEEDS.read_text(encoding="utf-8"))
    result = search(fault, RECORDED, recorded.get(fault.name, 0))
    if not result.is_as_stated(fault):
        result = search(fault, THEN, ANOTHER_SEED)
    assert result.is_as_stated(fault), str(result)


def test_where_there_is_no_fault_none_is_found() -> None:
    nothing = Fault("nothing", (1,), nullcontext)

    result = search(nothing, 5, 0)

    assert result.error is None
    assert result.worlds >= 5
    assert not result.is_as_stated(nothing)


def test_every_invariant_has_two_faults_that_break_it() -> None:
    # 15 has its own random world, over real files, and faults: tests/desktop_agent/engine/test_checkpoints_faults.py
    broken = [number for fault in FAULTS for number in fault.breaks]
    assert {number for number in broken if broken.count(number) > 1} == set(range(1, 15))
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
