"""Stop: from the loop and from any thread, at any moment, once or often."""

import asyncio
import threading

import pytest

from desktop_agent.api.client import Client
from desktop_agent.api.conversation import InterruptHandle
from desktop_agent.types.blocks import Outcome, ToolResult
from desktop_agent.types.engine_events import Envelope, RunEnd, RunFinished, ToolStarted
from desktop_agent.types.errors import WrongUse
from desktop_agent.types.messages import MessageState, Role
from desktop_agent.types.policies import HookAllow, HookDeny, Hooks, UserPromptSubmit
from desktop_agent.types.provider_events import ContentDelta
from desktop_agent.types.providers import Dialect
from tests.fakes.demo_server import DIALECTS, demo
from tests.fakes.library import LIMIT, Gate, acting, adder, blocks_of, call, listed, says
from tests.fakes.scripted_provider import Turn


def in_thread(handle: InterruptHandle, times: int = 1) -> None:
    def press() -> None:
        for _ in range(times):
            handle.interrupt()

    thread = threading.Thread(target=press)
    thread.start()
    thread.join()


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_stop_from_another_thread_closes_the_connection(dialect: Dialect) -> None:
    async with demo(speed=2) as served, Client(served.options(dialect)) as client:
        handle = client.interrupt_handle()
        text = ""
        async for event in client.stream("tell me a long story"):
            if isinstance(event, ContentDelta):
                text += event.text
                if len(text) > 40:
                    in_thread(handle, times=3)
        assert event == RunFinished(RunEnd.CANCELLED)
        assert client.history[-1].state is MessageState.INTERRUPTED
        assert client.history[-1].text == text
        await served.until_disconnected()
        # The same client, the same handle, as if nothing had been.
        assert (await client.complete("hello")).is_complete


async def test_stop_is_no_error_whenever_it_comes() -> None:
    gate = Gate()
    options, _ = acting(Turn(says("a"), gate.step), Turn(gate.step))
    async with Client(options) as client:
        await client.send("hi")
        client.interrupt()
        assert [block.text for block in await blocks_of(client.receive)] == ["a"]
        assert client.ended is RunEnd.CANCELLED
        gate.arrived.clear()
        sending = asyncio.create_task(client.send("again"))
        await gate.until_arrived()
        client.interrupt()
        await sending
        assert await client.receive() is None
        assert client.ended is RunEnd.CANCELLED


async def test_stop_while_the_run_is_being_started_is_not_lost() -> None:
    options, provider = acting(Turn(says("a")), Turn(says("b")))
    async with Client(options) as client:
        for moments in (1, 2):
            # The first time it is being opened, the second time it is not.
            sending = asyncio.create_task(client.send("hi"))
            await asyncio.sleep(0)
            client.interrupt()
            await sending
            assert await client.receive() is None
            assert client.ended is RunEnd.CANCELLED
            # What was sent is in the history, whenever Stop comes.
            assert [message.text for message in client.history] == ["hi"] * moments
            assert provider.requests == []
        assert (await client.complete("again")).text == "a"


async def test_a_prompt_that_a_hook_still_judges_is_in_the_history_and_its_run_ends() -> None:
    reached, stopped, ends = asyncio.Event(), asyncio.Event(), []

    async def ponder(_: UserPromptSubmit) -> None:
        reached.set()
        await stopped.wait()

    def on_event(envelope: Envelope) -> None:
        ends.extend([envelope.event] if isinstance(envelope.event, RunFinished) else [])

    options, provider = acting(Turn(says("a")), hooks=Hooks(user_prompt_submit=(ponder,)))
    async with Client(options, listener=on_event) as client:
        sending = asyncio.create_task(client.send("hi"))
        await reached.wait()
        client.interrupt()
        stopped.set()
        await sending
        assert await client.receive() is None
        assert ([message.text for message in client.history], provider.requests) == (["hi"], [])
        assert ends == [RunFinished(RunEnd.CANCELLED)]


async def test_stop_when_idle_does_nothing() -> None:
    options, provider = acting(Turn(says("a")), Turn(says("b")))
    client = Client(options)
    handle = client.interrupt_handle()
    handle()
    client.interrupt()
    assert (await client.complete("one")).text == "a"
    in_thread(handle)
    client.interrupt()
    await asyncio.sleep(0)
    assert (await client.complete("two")).text == "b"
    await client.aclose()
    handle()
    provider.assert_finished()


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_a_stop_when_idle_does_not_hit_the_next_question(elsewhere: bool) -> None:
    options, _ = acting(Turn(says("a")), Turn(says("b")))
    async with Client(options) as client:
        await client.complete("one")
        # The loop has no time to do it before the next question begins.
        in_thread(client.interrupt_handle()) if elsewhere else client.interrupt_handle()()
        assert (await client.complete("two")).text == "b"
        assert client.ended is RunEnd.COMPLETED


async def test_a_stop_just_before_the_next_question_ends_the_one_under_way() -> None:
    gate = Gate()
    options, provider = acting(Turn(says("a"), gate.step), Turn(says("b")))
    async with Client(options) as client:
        await client.send("one")
        client.interrupt_handle()()
        assert (await client.complete("two")).text == "b"
    assert provider.closed_early == 1


def test_a_handle_outlives_its_loop() -> None:
    handles = []

    async def main() -> None:
        options, _ = acting(Turn(says("a")))
        async with Client(options) as client:
            await client.complete("hi")
            handles.append(client.interrupt_handle())

    asyncio.run(main())
    handles[0].interrupt()
    in_thread(handles[0], times=2)


async def test_stop_ends_a_tool_and_closes_its_call() -> None:
    gate = Gate()

    async def wait() -> None:
        gate.arrived.set()
        await gate.opened.wait()

    options, provider = acting(
        Turn(call("a"), call("b")), Turn(says("ok")), tools=(adder(wait),), auto_execute_tools=True
    )
    async with Client(options) as client:
        started = []
        async for event in client.stream("add"):
            if isinstance(event, ToolStarted):
                started.append(event.id)
                await gate.until_arrived()
                client.interrupt()
        assert started == ["a"]
        results = client.history[-1]
        assert results.role is Role.TOOL
        assert [block.outcome for block in results.blocks if isinstance(block, ToolResult)] == [Outcome.CANCELLED] * 2
        assert (await client.complete("go on")).text == "ok"
    provider.assert_finished()


async def test_leaving_a_stream_stops_the_run_and_the_next_question_waits_for_its_end() -> None:
    gate = Gate()
    options, provider = acting(Turn(says("a"), gate.step), Turn(says("b")))
    async with Client(options) as client:
        async for event in client.stream("one"):
            if isinstance(event, ContentDelta):
                break
        assert (await client.complete("two")).text == "b"
    assert provider.closed_early == 1
    assert [message.text for message in client.history] == ["one", "a", "two", "b"]


async def test_a_stream_that_takes_too_long_is_stopped_while_its_error_is_still_looked_at() -> None:
    gate = Gate()
    options, provider = acting(Turn(says("a"), gate.step), Turn(says("b")))
    async with Client(options) as client:

        async def read() -> None:
            async for _ in client.stream("one"):
                pass

        reading = asyncio.create_task(read())
        await gate.until_arrived()
        reading.cancel()
        try:
            await reading
        except asyncio.CancelledError:
            assert (await client.complete("two")).text == "b"
    assert provider.closed_early == 1


async def test_closing_a_stream_waits_for_the_end() -> None:
    gate = Gate()
    options, provider = acting(Turn(says("a"), gate.step))
    async with Client(options) as client:
        async with client.stream("one") as events:
            async for event in events:
                if isinstance(event, ContentDelta):
                    break
        assert client.ended is RunEnd.CANCELLED
        assert provider.closed_early == 1
        assert await listed(events) == []


async def test_closing_the_client_ends_whoever_reads() -> None:
    gate = Gate()
    options, _ = acting(Turn(says("a"), gate.step))
    client = Client(options)
    await client.send("hi")
    reading = asyncio.create_task(blocks_of(client.receive))
    await gate.until_arrived()
    await client.aclose()
    async with asyncio.timeout(LIMIT):
        assert [block.text for block in await reading] == ["a"]


async def test_after_a_stop_in_a_tool_that_the_runtime_runs_the_next_question_is_asked() -> None:
    gate = Gate()

    async def wait() -> None:
        gate.arrived.set()
        await gate.opened.wait()

    options, _ = acting(Turn(call("a")), Turn(says("the rest")), tools=(adder(wait),), auto_execute_tools=True)
    async with asyncio.timeout(LIMIT), Client(options) as client:
        await client.send("go")
        await gate.until_arrived()
        client.interrupt()
        await blocks_of(client.receive)
        assert (await client.complete()).text == "the rest"


async def test_a_queued_message_that_a_hook_refuses_breaks_no_answer_off() -> None:
    async def judge(moment: UserPromptSubmit) -> HookAllow | HookDeny:
        return HookDeny(reason="no") if moment.prompt.text == "bad" else HookAllow()

    gate = Gate()
    options, _ = acting(Turn(says("the whole "), gate.step, says("answer")), hooks=Hooks(user_prompt_submit=(judge,)))
    async with asyncio.timeout(LIMIT), Client(options) as client:
        asking = asyncio.create_task(client.complete("go"))
        await gate.until_arrived()
        client.queue.add("bad")
        gate.opened.set()
        assert (await asking).text == "the whole answer"


async def test_a_run_that_the_queue_began_after_a_stop_is_not_being_stopped() -> None:
    first, second = Gate(), Gate()
    options, _ = acting(Turn(says("a"), first.step), Turn(says("b"), second.step))
    async with asyncio.timeout(LIMIT), Client(options) as client:
        await client.send("go")
        client.interrupt()
        await blocks_of(client.receive)
        client.queue.add("second")
        await second.until_arrived()
        with pytest.raises(WrongUse):
            await client.send("third")
