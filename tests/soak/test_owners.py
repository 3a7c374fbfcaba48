"""A small part of `python -m tests.soak owners`: a few pairs of processes with a fixed seed."""

import asyncio

import pytest

from tests.soak.owners import live


@pytest.mark.exhaustive("tests/contract/semantics/test_one_owner.py")
@pytest.mark.timeout(600)
def test_pairs_of_processes_keep_one_owner() -> None:
    report = asyncio.run(live(2, 3, at_once=3))
    assert report.faults == []
    assert report.pairs == 2
    assert report.answered > 0
    assert report.effects > 0
