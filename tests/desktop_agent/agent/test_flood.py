"""A model that streams faster than its events can be handled."""

import asyncio

from desktop_agent.types.engine_events import RunEnd
from desktop_agent.types.provider_events import ContentDelta
from tests.fakes.agent_run import Desk
from tests.fakes.scripted_provider import Turn


async def test_others_have_their_turn_while_a_flood_comes() -> None:
    desk = Desk(Turn(*[ContentDelta("x")] * 50_000))
    running = desk.start()
    counts: set[int] = set()
    while not running.done():
        counts.add(len(desk.memory.events))
        await asyncio.sleep(0)
    assert await running is RunEnd.COMPLETED
    assert len([count for count in counts if 10 < count < 50_000]) > 2
