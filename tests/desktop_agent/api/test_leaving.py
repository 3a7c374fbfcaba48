"""What finalisers do, and closings that are cancelled."""

import asyncio
from contextlib import suppress

import pytest

from desktop_agent.api.client import Client, query
from desktop_agent.api.conversation import ConversationRunner
from desktop_agent.api.provider import Provider
from desktop_agent.api.responses import _CLOSING_TASKS, abandon_soon, close_soon
from desktop_agent.permissions.approvals import Approval
from desktop_agent.providers.transport.http_client import HttpClient
from desktop_agent.types.engine_events import RunEnd
from desktop_agent.types.messages import Message
from desktop_agent.types.permissions import Rule, RuleEffect
from desktop_agent.types.tool_calls import AllowOnce, Decision
from tests.fakes.demo_server import Served, demo
from tests.fakes.library import LIMIT, Gate, acting, adder, call, says
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
        assert len({*closed}) == 1


async def test_a_reader_that_is_forgotten_in_another_thread_stops_its_run_and_no_other() -> None:
    gate = Gate()
    options, provider = acting(Turn(says("a"), gate.step), Turn(says("b")))
    conversation = ConversationRunner(options)
    run = await conversation.start_run(Message.user("one"))
    await run.wait_for_start()
    await asyncio.to_thread(abandon_soon, conversation, run)
    second = await conversation.start_run(Message.user("two"))
    abandon_soon(conversation, run)
    async with asyncio.timeout(LIMIT):
        assert (await run.wait_for_end(), await second.wait_for_end()) == (RunEnd.CANCELLED, RunEnd.COMPLETED)
    await conversation.aclose()
    provider.assert_finished()


@pytest.mark.parametrize("face", ["client", "query", "provider"])
async def test_who_is_cancelled_while_it_closes_leaves_no_connection_open(
    face: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached, go_on, closed = asyncio.Event(), asyncio.Event(), list[HttpClient]()
    close = HttpClient.aclose

    async def close_slowly(http: HttpClient) -> None:
        reached.set()
        await go_on.wait()
        await close(http)
        closed.append(http)

    monkeypatch.setattr(HttpClient, "aclose", close_slowly)

    async def work(served: Served) -> None:
        if face == "client":
            async with Client(served.options()) as client:
                await client.complete("hello")
        elif face == "query":
            async for _ in query("hello", served.options()):
                pass
        else:
            async with await Provider.create("m", base_url=served.options().base_url) as provider:
                await provider.complete("hello")

    async with asyncio.timeout(LIMIT), demo() as served:
        task = asyncio.create_task(work(served))
        await reached.wait()
        task.cancel()
        await asyncio.sleep(0)
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len(closed) == 1


async def test_an_approver_that_heeds_nothing_does_not_keep_it_from_closing() -> None:
    requested, may_end = asyncio.Event(), asyncio.Event()

    async def approve(_: Approval) -> Decision:
        requested.set()
        while not may_end.is_set():
            with suppress(asyncio.CancelledError):
                await may_end.wait()
        return AllowOnce()

    rule = Rule(effect=RuleEffect.ASK, tool="add")
    options, _ = acting(Turn(call()), tools=(adder(),), auto_execute_tools=True, approver=approve, rules=(rule,))
    try:
        async with asyncio.timeout(LIMIT), Client(options) as client:
            asking = asyncio.create_task(client.complete("add"))
            await requested.wait()
            client.interrupt()
            answer = await asking
        assert answer.end is RunEnd.CANCELLED
    finally:
        may_end.set()
