"""Signs of life keep an answer open beyond the idle limit; without them it ends at the limit."""

import asyncio

import pytest

from desktop_agent.types.errors import TimedOut
from tests.fakes.silent_server import SIGNS_OF_LIFE, Pause, heard, quiet_server
from tests.fakes.vendor_streams import DIALECTS
from tests.frame.selection import few

IDLE = 0.5
LONG = 2.0


@pytest.mark.parametrize(
    "sign", few(SIGNS_OF_LIFE.values(), 1, "test_sse.py: what counts as one"), ids=SIGNS_OF_LIFE.keys()
)
async def test_signs_of_life_between_events_count(sign: bytes) -> None:
    async with quiet_server(Pause(LONG, every=0.1, sign=sign)) as port:
        outcomes = await asyncio.gather(*(heard(dialect, port, IDLE) for dialect in DIALECTS))
    assert dict(zip(DIALECTS, outcomes, strict=True)) == dict.fromkeys(DIALECTS, "done")


async def test_silence_without_them_ends_at_the_limit() -> None:
    async with quiet_server(Pause(60)) as port:
        outcomes = await asyncio.gather(*(heard(dialect, port, IDLE) for dialect in DIALECTS))
    assert dict(zip(DIALECTS, outcomes, strict=True)) == dict.fromkeys(DIALECTS, TimedOut.kind)


async def test_shorter_silence_does_not_end_an_answer() -> None:
    async with quiet_server(Pause(IDLE)) as port:
        outcomes = await asyncio.gather(*(heard(dialect, port, 10 * IDLE) for dialect in DIALECTS))
    assert dict(zip(DIALECTS, outcomes, strict=True)) == dict.fromkeys(DIALECTS, "done")
