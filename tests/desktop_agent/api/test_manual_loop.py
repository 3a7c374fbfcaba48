"""The central program of manual mode: receive, run the call, add its result, send; however fast the tool is."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from desktop_agent.api.client import Client
from desktop_agent.tools.calculator import calculate
from desktop_agent.types.blocks import Block, Outcome, Text, ToolResult, ToolUse
from desktop_agent.types.engine_events import Envelope, RunEnd, RunFinished
from desktop_agent.types.errors import DuplicateToolResult, StaleToolCall, Truncated, UnknownToolCall, WrongUse
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.policies import StopTurn
from desktop_agent.types.provider_events import Done, MessageDelta, StopReason
from desktop_agent.types.providers import Dialect
from tests.fakes.demo_server import DIALECTS, demo
from tests.fakes.library import LIMIT, Gate, acting, adder, blocks_of, call, says
from tests.fakes.scripted_provider import Turn


async def conversation(client: Client, prompt: str, run: Callable[[ToolUse], Any]) -> list[Block]:
    """The central program, until the model asks for no more calls."""
    blocks: list[Block] = []
    async with asyncio.timeout(LIMIT):
        await client.send(prompt)
        while True:
            calls = 0
            while block := await client.receive():
                blocks.append(block)
                if isinstance(block, ToolUse):
                    calls += 1
                    client.add_tool_result(block.id, await run(block))
            if not calls:
                return blocks
            await client.send("")


@pytest.mark.parametrize("milliseconds", [0, 1, 10, 300])
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_tool_of_any_speed_in_every_dialect(dialect: Dialect, milliseconds: int) -> None:
    async def multiply(use: ToolUse) -> str:
        await asyncio.sleep(milliseconds / 1000)
        return str(use.input)

    # At this speed the answer goes on for a while behind its call.
    async with (
        demo(speed=50) as served,
        Client(served.options(dialect, tools=(calculate(),))) as client,
    ):
        blocks = await conversation(client, "calculate 6 * 7", multiply)
        assert [block.name for block in blocks if isinstance(block, ToolUse)] == ["calculate"]
        assert client.ended is RunEnd.COMPLETED
        assert [message.role for message in client.history] == [Role.USER, Role.ASSISTANT, Role.TOOL, Role.ASSISTANT]
        assert served.states == ["finished", "finished"]


@pytest.mark.parametrize("order", [["a", "b"], ["b", "a"]])
async def test_results_come_before_the_rest_of_the_turn_has_streamed(order: list[str]) -> None:
    gate = Gate()
    options, provider = acting(Turn(call("a"), call("b"), gate.step, says("see")), Turn(says("3")), tools=(adder(),))
    async with Client(options) as client:
        await client.send("add")
        received = [await client.receive(), await client.receive()]
        assert [type(block) for block in received] == [ToolUse, ToolUse]
        for call_id in order:
            client.add_tool_result(call_id, call_id)
        going_on = asyncio.create_task(client.send(""))
        await gate.until_arrived()
        assert not going_on.done()
        gate.opened.set()
        await going_on
        # What was said behind the calls is not lost.
        assert [block.text for block in await blocks_of(client.receive)] == ["see", "3"]
    assert [block.tool_use_id for block in provider.requests[-1].messages[-1].blocks] == ["a", "b"]  # type: ignore[union-attr]
    provider.assert_finished()


async def test_one_result_from_within_the_loop_and_one_behind_it() -> None:
    gate = Gate()
    options, provider = acting(Turn(call("a"), gate.step, call("b")), Turn(says("ok")), tools=(adder(),))
    async with Client(options) as client:
        await client.send("add")
        await client.receive()
        client.add_tool_result("a", 1)
        with pytest.raises(UnknownToolCall, match="“b”"):
            client.add_tool_result("b", 2)
        gate.opened.set()
        (last,) = await blocks_of(client.receive)
        with pytest.raises(WrongUse, match="no result yet: b"):
            await client.continue_()
        client.add_tool_result(last.id, 2)
        await client.continue_()
        assert [block.text for block in await blocks_of(client.receive)] == ["ok"]
    provider.assert_finished()


async def test_wrong_second_and_old_results_are_errors_of_their_own_while_the_answer_streams() -> None:
    gate = Gate()
    options, _ = acting(Turn(call("a")), Turn(call("b"), gate.step), Turn(says("ok")), tools=(adder(),))
    async with Client(options) as client:
        await client.send("add")
        await client.receive()
        client.add_tool_result("a", 1)
        await client.send("")
        await client.receive()
        with pytest.raises(StaleToolCall):
            client.add_tool_result("a", 1)
        with pytest.raises(UnknownToolCall):
            client.add_tool_result("nobody's", 1)
        client.add_tool_result("b", 1)
        with pytest.raises(DuplicateToolResult):
            client.add_tool_result("b", 2)
        gate.opened.set()
        await client.send("")
        assert [block.text for block in await blocks_of(client.receive)] == ["ok"]


async def test_going_on_without_a_result_is_refused_while_the_answer_streams_and_after_it() -> None:
    gate = Gate()
    options, _ = acting(Turn(call("a"), gate.step), tools=(adder(),))
    async with Client(options) as client:
        await client.send("add")
        await client.receive()
        with pytest.raises(WrongUse):
            await client.send("")
        gate.opened.set()
        await blocks_of(client.receive)
        with pytest.raises(WrongUse):
            await client.send("")


@pytest.mark.parametrize("moment", ["streaming", "waiting"])
@pytest.mark.parametrize("result", ["before", "after"])
async def test_the_same_stop_has_the_same_end_whenever_it_comes(moment: str, result: str) -> None:
    gate = Gate()
    options, provider = acting(Turn(call("a"), gate.step), Turn(says("ok")), tools=(adder(),))
    async with Client(options) as client:
        await client.send("add")
        assert isinstance(await client.receive(), ToolUse)
        if moment == "waiting":
            gate.opened.set()
            assert await client.receive() is None
        if result == "before":
            client.add_tool_result("a", 3)
        client.interrupt()
        if moment == "streaming":
            assert await client.receive() is None
        if result == "after":
            client.add_tool_result("a", 3)
        # Whoever has run the call goes on as ever; the model is not asked again.
        await client.send("")
        assert await client.receive() is None
        assert (client.ended, len(provider.requests)) == (RunEnd.CANCELLED, 1)
        # What ran is told truly, and the next prompt is asked.
        assert [block.outcome for block in results_of(client)] == [Outcome.SUCCEEDED]
        assert (await client.complete("go on")).text == "ok"


def results_of(client: Client) -> list[ToolResult]:
    return [block for message in client.history for block in message.blocks if isinstance(block, ToolResult)]


async def test_what_is_queued_waits_until_the_calls_of_a_stopped_turn_have_their_results() -> None:
    gate = Gate()
    options, provider = acting(Turn(call("a"), gate.step), Turn(says("fine")), tools=(adder(),))
    async with asyncio.timeout(LIMIT), Client(options) as client:
        await client.send("add")
        await client.receive()
        await gate.until_arrived()
        client.queue.add("more", "idle")
        assert client.interrupt(StopTurn())
        assert await client.receive() is None
        client.add_tool_result("a", 1)
        await client.send("")
        # Stop counts for this turn: the model is asked no more in it, and what waited is sent behind the result.
        assert await blocks_of(client.receive) == []
        await client.send("")
        assert [block.text for block in await blocks_of(client.receive)] == ["fine"]
        roles = [message.role for message in client.history]
        assert roles == [Role.USER, Role.ASSISTANT, Role.TOOL, Role.USER, Role.ASSISTANT]
        assert [result.outcome for result in results_of(client)] == [Outcome.SUCCEEDED]
    provider.assert_finished()


async def test_stop_while_going_on_waits_for_the_end_of_the_answer() -> None:
    gate = Gate()
    options, provider = acting(Turn(call("a"), gate.step), Turn(says("ok")), tools=(adder(),))
    async with Client(options) as client:
        await client.send("add")
        await client.receive()
        client.add_tool_result("a", 3)
        going_on = asyncio.create_task(client.send(""))
        await gate.until_arrived()
        client.interrupt()
        async with asyncio.timeout(LIMIT):
            await going_on
        assert (client.ended, len(provider.requests)) == (RunEnd.CANCELLED, 1)
        assert (await client.complete("go on")).text == "ok"


async def test_an_answer_that_breaks_off_behind_its_call_is_an_error_once_and_goes_on_with_the_result() -> None:
    gate = Gate()
    options, provider = acting(Turn(call("a"), gate.step, Truncated("oops")), Turn(says("ok")), tools=(adder(),))
    async with Client(options) as client:
        await client.send("add")
        await client.receive()
        client.add_tool_result("a", 3)
        gate.opened.set()
        with pytest.raises(Truncated):
            await client.send("")
        await client.send("")
        assert [block.text for block in await blocks_of(client.receive) if isinstance(block, Text)] == ["ok"]
    assert [block.outcome for block in provider.requests[-1].messages[-1].blocks] == [Outcome.SUCCEEDED]  # type: ignore[union-attr]


async def test_a_result_of_a_call_that_was_refused_with_its_answer_is_told_truly() -> None:
    refused = Turn(call("a"), MessageDelta(StopReason.REFUSAL), Done())
    options, provider = acting(refused, Turn(says("ok")), tools=(adder(),))
    async with Client(options) as client:
        await client.send("add")
        for block in await blocks_of(client.receive):
            if isinstance(block, ToolUse):
                client.add_tool_result(block.id, 3)
        await client.send("")
        await blocks_of(client.receive)
    assert provider.requests[-1].messages[-1].blocks[0].outcome is Outcome.SUCCEEDED  # type: ignore[union-attr]


async def test_from_within_a_stream_of_events_too() -> None:
    gate = Gate()
    options, provider = acting(Turn(call("a"), gate.step), Turn(says("3")), tools=(adder(),))
    async with Client(options) as client:
        async for event in client.stream("add"):
            if isinstance(event, ToolUse):
                client.add_tool_result(event.id, 3)
                gate.opened.set()
        assert (await client.complete()).text == "3"
    provider.assert_finished()


async def test_clearing_leaves_no_old_block_to_be_received() -> None:
    gate = Gate()
    options, _ = acting(Turn(says("old"), call("a"), call("b"), gate.step), Turn(says("new")), tools=(adder(),))
    async with Client(options) as client:
        await client.send("add")
        await client.receive()
        await gate.until_arrived()
        await client.clear_history()
        assert await client.receive() is None
        with pytest.raises(UnknownToolCall):
            client.add_tool_result("a", 1)
        assert (await client.complete("hi")).text == "new"


@pytest.mark.parametrize("turns_of_the_loop", range(12))
async def test_a_prompt_that_was_sent_is_in_the_history_and_its_end_is_heard_whenever_stop_comes(
    turns_of_the_loop: int,
) -> None:
    envelopes: list[Envelope] = []
    options, _ = acting(Turn(says("a"), says("b")))
    async with Client(options, listener=envelopes.append) as client:
        sending = asyncio.create_task(client.send_message(Message.user("hi")))
        for _ in range(turns_of_the_loop + 1):
            await asyncio.sleep(0)
        client.interrupt()
        await sending
        await blocks_of(client.receive)
        assert client.history[0].text == "hi"
        ends = [envelope.event.reason for envelope in envelopes if isinstance(envelope.event, RunFinished)]
        assert len(ends) == 1
        assert ends[0] is client.ended
