"""Invariant 15 bites: faults that are put into the restoring of files on purpose are found by its random folders."""

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from desktop_agent.tools.checkpoints import restore
from desktop_agent.tools.checkpoints.restore import CheckpointRestore
from tests.desktop_agent.engine.test_checkpoints_property import CheckpointMachine
from tests.invariants.seeded.fault import Fault, replaced


def _overwrites(real: Any) -> Any:
    return lambda file, now, may_replace: real(file, now, may_replace=True)


def _notes_nothing(_real: Any) -> Any:
    return lambda self, _sign: self._checkpoint


def _says_nothing(real: Any) -> Any:
    async def judged(self: CheckpointRestore) -> Any:
        steps = await real(self)
        self.skipped.clear()
        return steps

    return judged


FAULTS = (
    Fault("what the person changed is overwritten", (15,), replaced(restore, "plan_step", _overwrites)),
    Fault("what was restored is not noted", (15,), replaced(CheckpointRestore, "_updated_checkpoint", _notes_nothing)),
    Fault("what the person changed is not reported", (15,), replaced(CheckpointRestore, "_plan_steps", _says_nothing)),
)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name.replace(" ", "-"))
def test_a_fault_is_found(fault: Fault) -> None:
    with fault.patch(), pytest.raises(AssertionError):
        run_state_machine_as_test(
            CheckpointMachine,
            settings=settings(
                max_examples=300,
                stateful_step_count=25,
                deadline=None,
                derandomize=True,
                database=None,
                phases=[Phase.generate],
                report_multiple_bugs=False,
                suppress_health_check=list(HealthCheck),
            ),
        )
