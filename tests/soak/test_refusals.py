"""A small part of `python -m tests.soak refusals`: an action of each kind at each disk."""

import pytest

from tests.soak.history_actions import ACTIONS
from tests.soak.refusals import CONDITIONS, DONE, FROM_THE_START, FULL, READ_ONLY, can_mount, run_in_namespace

MUST_BE_REFUSED = ("go on", "import", "export", "back up")
"""Actions that write more than a full log has room for."""


@pytest.fixture(autouse=True)
def may_mount() -> None:
    if not can_mount():
        pytest.skip("a file system of one's own needs a namespace of mounts")


@pytest.mark.timeout(300)
def test_a_disk_that_refuses_is_told_and_loses_nothing() -> None:
    report = run_in_namespace("--action", "go on", "--action", "import")
    assert report.faults == []
    for action in ("go on", "import"):
        assert "There is no room left" in report.outcomes[f"{action}, {FULL}"]
        for condition in (READ_ONLY, FROM_THE_START):
            assert "cannot be written to" in report.outcomes[f"{action}, {condition}"]


@pytest.mark.exhaustive("test_a_disk_that_refuses_is_told_and_loses_nothing, for two actions")
@pytest.mark.timeout(600)
def test_every_action_is_told_of_a_disk_that_refuses() -> None:
    report = run_in_namespace()
    assert report.faults == []
    assert len(report.outcomes) == len(ACTIONS) * len(CONDITIONS)
    assert not [action for action in MUST_BE_REFUSED if report.outcomes[f"{action}, {FULL}"] == DONE]
