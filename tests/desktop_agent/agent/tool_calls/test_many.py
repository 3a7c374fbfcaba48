"""Ten thousand calls in one answer take time and memory in proportion."""

import asyncio
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from desktop_agent.types.blocks import Outcome
from desktop_agent.types.policies import Limits
from desktop_agent.types.tool_calls import AllowForConversation
from tests.fakes.tool_batch import Desk, call, tool, until

TOOLS = (tool("look", reads=True), tool("act"), tool("few", reads=True, concurrency=1))


def desk_of(count: int, name: str, most: int | None = None) -> Desk:
    limits = Limits(calls_per_turn=most or count)
    return Desk(*(call(str(number), name, str(number)) for number in range(count)), tools=TOOLS, limits=limits)


async def answered(desk: Desk) -> None:
    assert await desk.run()


async def allowed(desk: Desk) -> None:
    running = desk.start()
    await desk.asked(len(desk.uses))
    desk.decide(AllowForConversation())
    assert await running


async def stopped(desk: Desk) -> None:
    running = desk.start()
    await desk.asked(len(desk.uses))
    desk.round.stop()
    await running


async def changed(desk: Desk) -> None:
    running = desk.start()
    await desk.asked(len(desk.uses))
    desk.permission_policy.set_mode(desk.permission_policy.mode)
    await until(lambda: True)
    desk.round.stop()
    await running


def steps(work: Callable[[], Any]) -> int:
    """Count the functions, of Python and of C, that are called."""
    count = 0

    def note(_frame: object, kind: str, _argument: object) -> None:
        nonlocal count
        count += kind in ("call", "c_call")

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize(
    ("name", "most", "way"),
    [
        ("look", None, answered),
        ("few", None, answered),
        ("none", None, answered),
        ("look", 10, answered),
        ("act", None, allowed),
        ("act", None, stopped),
        ("act", None, changed),
    ],
)
def test_four_times_as_many_are_four_times_the_work(name: str, most: int | None, way: Callable[[Desk], Any]) -> None:
    def work(count: int) -> None:
        async def scenario() -> None:
            desk = desk_of(count, name, most)
            await way(desk)
            assert len(desk.results) == count

        asyncio.run(scenario())

    work(10)
    few = steps(lambda: work(60))
    many = steps(lambda: work(240))
    assert many < 5 * few


def test_four_times_as_many_take_four_times_the_memory() -> None:
    def peak(count: int) -> int:
        tracemalloc.start()
        try:
            asyncio.run(answered(desk_of(count, "look")))
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(10)
    few, many = peak(150), peak(600)
    assert many < 5 * few


async def test_ten_thousand_at_once_each_get_their_result() -> None:
    desk = desk_of(10_000, "look")
    assert await desk.round.run()
    assert desk.outcomes == [Outcome.SUCCEEDED] * 10_000
