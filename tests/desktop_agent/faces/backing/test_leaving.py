"""What finalisers do."""

import asyncio

import pytest

from desktop_agent.faces.backing.conversing import Conversing
from desktop_agent.faces.backing.leaving import _CLOSING, abandon, close_soon
from desktop_agent.providers.scripted import Turn
from desktop_agent.providers.transport.http_client import HttpClient
from desktop_agent.vocabulary.engine_events import RunEnd
from desktop_agent.vocabulary.messages import Message
from tests.desktop_agent.faces.acting import LIMIT, Gate, acting, says
from tests.desktop_agent.faces.serving import demo


async def test_a_loop_that_ends_and_cancels_everything_does_not_keep_it_open(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[HttpClient] = []
    close = HttpClient.aclose

    async def noted(http: HttpClient) -> None:
        await close(http)
        closed.append(http)

    monkeypatch.setattr(HttpClient, "aclose", noted)
    async with demo(speed=2) as served:
        conversing = Conversing(served.options())
        await (await conversing.begin(Message.user("tell me a long story"))).started()
        close_soon(conversing)
        await asyncio.sleep(0)
        (task,) = _CLOSING
        task.cancel()
        async with asyncio.timeout(LIMIT):
            await task
        assert len(closed) == 1


async def test_a_reader_that_is_forgotten_in_another_thread_stops_its_run_and_no_other() -> None:
    gate = Gate()
    options, provider = acting(Turn(says("a"), gate.step), Turn(says("b")))
    conversing = Conversing(options)
    run = await conversing.begin(Message.user("one"))
    await run.started()
    await asyncio.to_thread(abandon, conversing, run)
    again = await conversing.begin(Message.user("two"))
    abandon(conversing, run)
    async with asyncio.timeout(LIMIT):
        assert (await run.ended(), await again.ended()) == (RunEnd.CANCELLED, RunEnd.COMPLETED)
    await conversing.aclose()
    provider.assert_finished()
