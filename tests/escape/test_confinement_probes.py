"""Several hundred probes try to disprove what the approval dialog claims of each confinement."""

import os
import shutil
import sys

import pytest

from desktop_agent.sandbox.backends import is_landlock_supported
from tests.escape.confinement_probes.table import ALL, WORDS, run, table

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has confinements"),
    pytest.mark.skipif(sys.platform == "linux" and os.geteuid() != 0, reason="only root may fill other home folders"),
]


@pytest.mark.exhaustive("tests/desktop_agent/tools/commands/test_confined.py: each claim, without the hundred variants")
@pytest.mark.parametrize("name", ALL)
def test_nothing_gets_out_that_is_claimed_to_be_held(name: str) -> None:
    if "Landlock" in name and not is_landlock_supported():
        pytest.skip("this kernel has no Landlock")
    if "Landlock" not in name and shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    outcome = run(name)
    assert len(outcome.tried) > 100
    assert {claim for claim, _ in outcome.tried} == set(WORDS)
    assert outcome.broken == [], table(outcome)
