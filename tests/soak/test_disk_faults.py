"""A small part of `python -m tests.soak disk-faults`: a few runs with a fixed seed, one for each of these faults."""

import asyncio

import pytest

from tests.soak.disk_faults import live


@pytest.mark.exhaustive(
    "tests/whole_app/test_kill_between_records.py::test_between_any_two_records",
    "tests/desktop_agent/storage/test_rescue.py",
)
@pytest.mark.timeout(600)
def test_kills_and_faults_of_the_disk_lose_nothing_in_silence() -> None:
    report = asyncio.run(live(3, 1, faults=("killed", "replaced", "truncated")))
    assert report.faults == []
    assert report.runs == 3
