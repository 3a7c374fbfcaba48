"""Deeply nested arguments and results, through every API of a caller: one error, and the conversation goes on."""

from typing import Any

import pytest

from desktop_agent.api.chat_loop import (
    ChatLoopHandle,
    NeedsToolExecution,
    StreamingResponse,
    ToolCallsRequested,
    TwoPhaseAgent,
)
from desktop_agent.api.client import Client
from desktop_agent.types.blocks import Json, Outcome, Text, ToolResult, ToolUse
from desktop_agent.types.engine_events import RunEnd, ToolFinished
from desktop_agent.types.errors import AgentError, WrongUse
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.policies import HookEdit, Hooks, PreToolUse
from tests.fakes.library import acting, adder, call, listed, says
from tests.fakes.scripted_provider import Turn


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels - 1):
        value = {"a": value}
    return value


def asking(levels: int) -> Message:
    use = ToolUse(id="c1", name="add", input=nested(levels))
    return Message(role=Role.ASSISTANT, blocks=(use,))


def result(content: Any = None, call_id: str = "c1") -> ToolResult:
    return ToolResult(tool_use_id=call_id, content=(Text(text="3") if content is None else Json(value=content),))


LEVELS = pytest.mark.parametrize("levels", [300, 5_000])
TOO_DEEP = pytest.raises(WrongUse, match="nested too deep")


@LEVELS
async def test_a_model_that_says_it(levels: int) -> None:
    options, provider = acting(Turn(*asking(levels).blocks), Turn(says("ok")), tools=(adder(),))
    async with Client(options) as client:
        with pytest.raises(AgentError, match="not JSON"):
            await client.send("add")
        assert client.ended is RunEnd.FAILED
        assert (await client.complete("again")).text == "ok"
    provider.assert_finished()


@LEVELS
async def test_a_history_of_the_callers_own(levels: int) -> None:
    options, provider = acting(Turn(says("ok")), tools=(adder(),))
    with TOO_DEEP:
        ChatLoopHandle(options, (Message.user("go"), asking(levels), Message.tool_results([result()])))
    async with Client(options) as client:
        with TOO_DEEP:
            await client.edit_history([Message.user("go"), asking(levels), Message.tool_results([result()])])
        assert client.history == ()
        assert (await client.complete("again")).text == "ok"
        with TOO_DEEP:
            await client.edit_history(lambda history: (*history, asking(levels)))
        assert len(client.history) == 2
    provider.assert_finished()


@LEVELS
async def test_messages_that_come_with_the_results(levels: int) -> None:
    options, provider = acting(Turn(call()), Turn(says("ok")), tools=(adder(),))
    async with TwoPhaseAgent(options) as agent:
        needs = await agent.process("add")
        assert isinstance(needs, NeedsToolExecution)
        before = needs.messages[:-1]
        with TOO_DEEP:
            await agent.process_with_results([*before, asking(levels), Message.tool_results([result()])])
        with TOO_DEEP:
            await agent.process_with_results([Message.tool_results([result(nested(levels))])])
        with TOO_DEEP:
            await agent.process("more", context=[asking(levels)])
        response = await agent.process_with_results([*needs.messages, Message.tool_results([result()])])
        assert isinstance(response, StreamingResponse)
        await listed(response.events)
        assert agent.history[-1].text == "ok"
    provider.assert_finished()


@pytest.mark.parametrize(
    "bad",
    [
        nested(300),
        nested(5_000),
        float("nan"),
        {"a": object()},
        "rubbish",
    ],
    ids=["300 deep", "5,000 deep", "NaN", "object", "no result"],
)
async def test_results_of_the_callers_own(bad: Any) -> None:
    options, provider = acting(Turn(call()), Turn(says("ok")), tools=(adder(),))
    content: Any = bad if bad == "rubbish" else result(bad)
    async with ChatLoopHandle(options, [Message.user("add")]) as handle:
        async for step in handle:
            if isinstance(step, ToolCallsRequested):
                with pytest.raises(WrongUse):
                    handle.submit_tool_results([content])
                # What the caller does with the calls is the caller's own.
                step.tool_calls[0].input.clear()
                handle.submit_tool_results([result()])
        assert handle.history[-1].text == "ok"
        assert handle.history[1].tool_uses[0].input == {"a": 1, "b": 2}
    provider.assert_finished()


@LEVELS
async def test_a_result_that_is_given_as_json(levels: int) -> None:
    options, _ = acting(Turn(call()), Turn(says("ok")), tools=(adder(),))
    async with Client(options) as client:
        await listed(client.stream("add"))
        with TOO_DEEP:
            client.add_tool_result("c1", nested(levels))
        client.add_tool_result("c1", {"sum": 3})
        assert (await client.complete()).text == "ok"


@LEVELS
async def test_what_a_hook_makes_of_the_arguments(levels: int) -> None:
    async def edit(_: PreToolUse) -> HookEdit:
        return HookEdit(input=nested(levels))

    hooks = Hooks().add_pre_tool_use(edit)
    options, provider = acting(Turn(call()), Turn(says("ok")), tools=(adder(),), auto_execute_tools=True, hooks=hooks)
    async with Client(options) as client:
        events = await listed(client.stream("add"))
        assert client.history[-1].text == "ok"
    (finished,) = [event for event in events if isinstance(event, ToolFinished)]
    assert finished.outcome is Outcome.DENIED
    assert "nested too deep" in str(finished.result.content)
    provider.assert_finished()


async def test_what_the_caller_does_later_to_what_it_gave_reaches_nothing() -> None:
    options, provider = acting(Turn(says("ok")), tools=(adder(),))
    message = Message(role=Role.ASSISTANT, blocks=(call(),))
    content = {"sum": [3]}
    async with Client(options) as client:
        await client.edit_history([Message.user("add"), message, Message.tool_results([result(content)])])
        message.tool_uses[0].input.clear()
        content["sum"].append(4)
        await client.complete("and now?")
    messages = provider.requests[0].messages
    assert messages[1].tool_uses[0].input == {"a": 1, "b": 2}
    assert messages[2].blocks[0].content == (Json(value={"sum": [3]}),)  # type: ignore[union-attr]


async def test_what_the_caller_does_to_what_it_is_told_reaches_nothing() -> None:
    options, provider = acting(Turn(call()), Turn(says("ok")), tools=(adder(),), auto_execute_tools=True)
    async with Client(options) as client:
        async for event in client.stream("add"):
            for name in ("input", "metadata"):
                getattr(event, name, {}).clear()
    assert provider.requests[1].messages[1].tool_uses[0].input == {"a": 1, "b": 2}
