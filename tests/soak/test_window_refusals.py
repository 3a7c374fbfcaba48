"""A small part of `python -m tests.soak window-refusals`."""

import pytest

from tests.soak.refusals import DONE, FULL, can_mount
from tests.soak.window_refusals import ACTIONS, CONDITIONS, run_in_namespace


@pytest.fixture(autouse=True)
def may_mount() -> None:
    if not can_mount():
        pytest.skip("a file system of one's own needs a namespace of mounts")


@pytest.mark.exhaustive(
    "tests/soak/test_refusals.py::test_a_disk_that_refuses_is_told_and_loses_nothing",
    "tests/ui/shell/test_disk_notices.py::test_a_read_only_folder_is_shown_and_used_as_soon_as_it_can_be",
)
@pytest.mark.timeout(300)
def test_the_window_says_that_a_title_cannot_be_stored() -> None:
    report = run_in_namespace("--action", "rename", "--condition", FULL)
    assert report.faults == []
    assert report.outcomes[f"rename, {FULL}"] != DONE


@pytest.mark.exhaustive(
    "tests/soak/test_refusals.py::test_a_disk_that_refuses_is_told_and_loses_nothing",
    "tests/ui/shell/test_disk_notices.py::test_a_read_only_folder_is_shown_and_used_as_soon_as_it_can_be",
)
@pytest.mark.timeout(1800)
def test_every_action_in_the_window_is_told_of_a_disk_that_refuses() -> None:
    report = run_in_namespace()
    assert report.faults == []
    assert len(report.outcomes) == len(ACTIONS) * len(CONDITIONS)
