"""A small part of `python -m tests.soak schedules`: a few kills with a fixed seed."""

import asyncio

import pytest

from tests.soak.schedules import live


@pytest.mark.timeout(300)
@pytest.mark.exhaustive
def test_kills_while_scheduled_prompts_run_repeat_nothing_and_forget_nothing() -> None:
    report = asyncio.run(live(4, 7))
    assert report.faults == []
    assert report.kills >= 4
