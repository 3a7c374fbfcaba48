"""Notices while the model has not answered yet; they end with its first word."""

import asyncio
from collections.abc import Callable

import pytest

from desktop_agent.agent import provider_stream
from desktop_agent.types.engine_events import AnswerAwaited, RetryScheduled, RunEnd, RunFinished
from desktop_agent.types.errors import Overloaded
from desktop_agent.types.provider_events import AnswerStarted, ContentDelta, Origin
from tests.fakes.agent_run import Desk
from tests.fakes.scripted_provider import Turn, Wait
from tests.frame.patience import PATIENCE

STARTED = AnswerStarted(Origin(provider="p"))


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider_stream, "FIRST_NOTICE_AFTER", 0.02)
    monkeypatch.setattr(provider_stream, "NOTICE_INTERVAL", 0.01)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not holds():
            await asyncio.sleep(0.001)


async def test_it_counts_on_until_the_first_word() -> None:
    headers, words, end = (Wait(asyncio.Event()) for _ in range(3))
    desk = Desk(Turn(headers, STARTED, words, ContentDelta("Hi"), end))
    running = desk.start()

    def wait_notices() -> list[AnswerAwaited]:
        return desk.memory.of(AnswerAwaited)

    await until(lambda: len(wait_notices()) >= 2)
    headers.until.set()
    # That the server took the request is no word of the answer.
    await until(lambda: bool(desk.memory.of(AnswerStarted)))
    so_far = len(wait_notices())
    await until(lambda: len(wait_notices()) > so_far)
    words.until.set()
    await until(lambda: bool(desk.memory.of(ContentDelta)))
    notices = wait_notices()
    await asyncio.sleep(0.05)
    assert wait_notices() == notices
    assert [notice.seconds for notice in notices] == sorted(notice.seconds for notice in notices)
    end.until.set()
    assert await running is RunEnd.COMPLETED


async def test_each_attempt_counts_from_its_own_beginning() -> None:
    first, second = (Wait(asyncio.Event()) for _ in range(2))
    desk = Desk(Turn(first, Overloaded("busy")), Turn(second, ContentDelta("Hi")))
    running = desk.start()
    await until(lambda: len(desk.memory.of(AnswerAwaited)) >= 5)
    first.until.set()
    await until(lambda: desk.memory.of(RetryScheduled) != [] and isinstance(desk.memory.events[-1], AnswerAwaited))
    (retry,) = desk.memory.of(RetryScheduled)
    index = desk.memory.events.index(retry)
    last = [event for event in desk.memory.events[:index] if isinstance(event, AnswerAwaited)][-1]
    first_again = next(event for event in desk.memory.events[index:] if isinstance(event, AnswerAwaited))
    assert first_again.seconds < last.seconds
    second.until.set()
    assert await running is RunEnd.COMPLETED


async def test_nothing_is_said_behind_stop() -> None:
    desk = Desk(Turn(Wait(asyncio.Event())))
    running = desk.start()
    await until(lambda: bool(desk.memory.of(AnswerAwaited)))
    desk.run.interrupt()
    assert await running is RunEnd.CANCELLED
    await asyncio.sleep(0.05)
    assert isinstance(desk.memory.events[-1], RunFinished)
