"""Manual mode: the caller gets the calls, runs them, gives the results, goes on."""

import pytest

from desktop_agent.api.client import Client
from desktop_agent.types.blocks import Json, Outcome, Text, ToolResult, ToolUse
from desktop_agent.types.engine_events import RunEnd
from desktop_agent.types.errors import DuplicateToolResult, StaleToolCall, UnknownToolCall, WrongUse
from desktop_agent.types.messages import Role
from tests.fakes.library import acting, adder, blocks_of, call, says, sent
from tests.fakes.scripted_provider import Turn


def results_in(message_blocks: object) -> list[tuple[str, Outcome]]:
    assert isinstance(message_blocks, tuple)
    return [(block.tool_use_id, block.outcome) for block in message_blocks if isinstance(block, ToolResult)]


async def test_the_caller_runs_the_calls_and_the_model_goes_on() -> None:
    options, provider = acting(Turn(says("see"), call("a"), call("b", 3, 4)), Turn(says("3 and 7")), tools=(adder(),))
    async with Client(options) as client:
        await client.send("add")
        assert [type(block) for block in await blocks_of(client.receive)] == [Text, ToolUse, ToolUse]
        assert client.ended is RunEnd.AWAITING_RESULTS
        assert client.history[-1].role is Role.ASSISTANT
        # In any order; the model gets them in the order of its calls.
        client.add_tool_result("b", {"sum": 7})
        client.add_tool_result("a", "three", is_error=True)
        await client.continue_()
        assert [block.text for block in await blocks_of(client.receive)] == ["3 and 7"]
    answer = provider.requests[-1].messages[-1]
    assert answer.blocks == (
        ToolResult(tool_use_id="a", content=(Text(text="three"),), outcome=Outcome.FAILED),
        ToolResult(tool_use_id="b", content=(Json(value={"sum": 7}),)),
    )
    assert [message.role for message in provider.requests[-1].messages] == [Role.USER, Role.ASSISTANT, Role.TOOL]
    assert [spec.name for spec in provider.requests[-1].tools] == ["add"]
    provider.assert_finished()


async def test_only_calls_that_wait_get_a_result_and_each_only_one() -> None:
    options, _ = acting(Turn(call("a"), call("b")), Turn(says("ok")), tools=(adder(),))
    async with Client(options) as client:
        with pytest.raises(UnknownToolCall, match="waits"):
            client.add_tool_result("a", 1)
        await client.send("add")
        await blocks_of(client.receive)
        with pytest.raises(UnknownToolCall, match="“z”"):
            client.add_tool_result("z", 1)
        client.add_tool_result("a", 1)
        with pytest.raises(DuplicateToolResult, match="already"):
            client.add_tool_result("a", 2)
        with pytest.raises(WrongUse, match="no result yet: b"):
            await client.continue_()
        client.add_tool_result("b", 3)
        await client.send("")
        await blocks_of(client.receive)
        with pytest.raises(StaleToolCall, match="older turn"):
            client.add_tool_result("a", 1)
        assert client.history[2].blocks[0] == ToolResult(tool_use_id="a", content=(Json(value=1),))


def nested(levels: int) -> list[object]:
    value: list[object] = []
    for _ in range(levels):
        value = [value]
    return value


async def test_a_result_is_a_copy() -> None:
    options, provider = acting(Turn(call("a")), Turn(says("ok")), tools=(adder(),))
    async with Client(options) as client:
        await client.send("add")
        await blocks_of(client.receive)
        mine: dict[str, object] = {"a": [1]}
        client.add_tool_result("a", mine)
        mine["a"] = {1}
        await client.continue_()
        await blocks_of(client.receive)
    assert provider.requests[1].messages[2].blocks == (ToolResult(tool_use_id="a", content=(Json(value={"a": [1]}),)),)


@pytest.mark.parametrize(
    "value", [{1, 2}, object(), {"a": b"bytes"}, float("nan"), [float("-inf")], nested(100_000)], ids=lambda _: ""
)
async def test_a_result_is_json(value: object) -> None:
    options, _ = acting(Turn(call("a")), tools=(adder(),))
    async with Client(options) as client:
        await client.send("add")
        await blocks_of(client.receive)
        with pytest.raises(WrongUse, match="no JSON"):
            client.add_tool_result("a", value)


async def test_a_new_prompt_closes_the_calls_that_nobody_ran() -> None:
    options, provider = acting(Turn(call("a"), call("b")), Turn(says("ok")), tools=(adder(),))
    async with Client(options) as client:
        await client.send("add")
        await blocks_of(client.receive)
        client.add_tool_result("b", 3)
        await client.send("never mind")
        await blocks_of(client.receive)
    roles = [message.role for message in provider.requests[-1].messages]
    assert roles == [Role.USER, Role.ASSISTANT, Role.TOOL, Role.USER]
    assert results_in(provider.requests[-1].messages[2].blocks) == [
        ("a", Outcome.CANCELLED),
        ("b", Outcome.SUCCEEDED),
    ]


async def test_stopping_while_calls_wait_is_not_lost_and_not_an_error() -> None:
    options, provider = acting(Turn(call("a"), call("b")), Turn(says("ok")), tools=(adder(),))
    async with Client(options) as client:
        await client.send("add")
        await blocks_of(client.receive)
        client.add_tool_result("a", 3)
        client.interrupt()
        client.interrupt()
        client.add_tool_result("b", 4)
        await client.continue_()
        assert await blocks_of(client.receive) == []
        assert client.ended is RunEnd.CANCELLED
        assert len(provider.requests) == 1
        # What ran is told truly, and the next prompt is asked as ever.
        assert (await client.complete("go on")).text == "ok"
    assert results_in(provider.requests[-1].messages[2].blocks) == [("a", Outcome.SUCCEEDED), ("b", Outcome.SUCCEEDED)]


async def test_automatic_results_are_not_the_callers() -> None:
    options, _ = acting(Turn(says("ok")), tools=(adder(),), auto_execute_tools=True)
    async with Client(options) as client:
        await client.complete("hi")
        with pytest.raises(WrongUse, match="runs these tools itself"):
            client.add_tool_result("a", 1)


async def test_sixty_rounds_by_hand() -> None:
    rounds = 60
    options, provider = acting(*(Turn(call(f"c{n}")) for n in range(rounds)), Turn(says("done")), tools=(adder(),))
    async with Client(options) as client:
        await client.send("go")
        for _ in range(rounds):
            for block in await blocks_of(client.receive):
                assert isinstance(block, ToolUse)
                client.add_tool_result(block.id, 3)
            await client.continue_()
        assert [block.text for block in await blocks_of(client.receive)] == ["done"]
    assert len(sent(provider)) == 2 * rounds + 1
