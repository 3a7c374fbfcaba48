"""What finalisers do."""

import asyncio

import pytest

from desktop_agent.api.conversation import ConversationRunner
from desktop_agent.api.responses import _CLOSING_TASKS, abandon_soon, close_soon
from desktop_agent.providers.transport.http_client import HttpClient
from desktop_agent.types.engine_events import RunEnd
from desktop_agent.types.messages import Message
from tests.fakes.demo_server import demo
from tests.fakes.library import LIMIT, Gate, acting, says
from tests.fakes.scripted_provider import Turn


async def test_a_loop_that_ends_and_cancels_everything_does_not_keep_it_open(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[HttpClient] = []
    close = HttpClient.aclose

    async def noted(http: HttpClient) -> None:
        await close(http)
        closed.append(http)

    monkeypatch.setattr(HttpClient, "aclose", noted)
    async with demo(speed=2) as served:
        conversation = ConversationRunner(served.options())
        await (await conversation.start_run(Message.user("tell me a long story"))).wait_for_start()
        close_soon(conversation)
        await asyncio.sleep(0)
        (task,) = _CLOSING_TASKS
        task.cancel()
        async with asyncio.timeout(LIMIT):
            await task
        assert len(closed) == 1


async def test_a_reader_that_is_forgotten_in_another_thread_stops_its_run_and_no_other() -> None:
    gate = Gate()
    options, provider = acting(Turn(says("a"), gate.step), Turn(says("b")))
    conversation = ConversationRunner(options)
    run = await conversation.start_run(Message.user("one"))
    await run.wait_for_start()
    await asyncio.to_thread(abandon_soon, conversation, run)
    again = await conversation.start_run(Message.user("two"))
    abandon_soon(conversation, run)
    async with asyncio.timeout(LIMIT):
        assert (await run.wait_for_end(), await again.wait_for_end()) == (RunEnd.CANCELLED, RunEnd.COMPLETED)
    await conversation.aclose()
    provider.assert_finished()
