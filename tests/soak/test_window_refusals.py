"""A small part of `python -m tests.soak window-refusals`."""

import pytest

from tests.soak.refusals import DONE, FULL, can_mount
from tests.soak.window_refusals import ACTIONS, CONDITIONS, run_in_namespace


@pytest.fixture(autouse=True)
def may_mount() -> None:
    if not can_mount():
        pytest.skip("a file system of one's own needs a namespace of mounts")


@pytest.mark.timeout(300)
def test_the_window_says_that_a_title_cannot_be_stored() -> None:
    told = run_in_namespace("--action", "rename", "--condition", FULL)
    assert told.faults == []
    assert told.outcomes[f"rename, {FULL}"] != DONE


@pytest.mark.exhaustive("test_the_window_says_that_a_title_cannot_be_stored, for one action")
@pytest.mark.timeout(1800)
def test_every_action_in_the_window_is_told_of_a_disk_that_refuses() -> None:
    told = run_in_namespace()
    assert told.faults == []
    assert len(told.outcomes) == len(ACTIONS) * len(CONDITIONS)
