"""The two-way loop: steps, results, cancelling."""

import asyncio
from typing import Any

import pytest

from desktop_agent.api.chat_loop import ChatLoopHandle, LoopDone, LoopStep, ToolCallsRequested
from desktop_agent.api.provider import Provider
from desktop_agent.tools.calculator import calculate
from desktop_agent.types.blocks import Outcome, Text, ToolResult, ToolUse
from desktop_agent.types.engine_events import ErrorOccurred, RunEnd, ToolResultsReceived
from desktop_agent.types.errors import AuthenticationFailed, Truncated, WrongUse
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.policies import PromptPolicy, When
from desktop_agent.types.provider_events import ContentDelta, StopReason, ThinkingDelta, Usage, UsageUpdate
from desktop_agent.types.providers import Dialect
from desktop_agent.types.tool_calls import ToolSpec
from tests.fakes.demo_server import DIALECTS, KEY, demo
from tests.fakes.library import LIMIT, Gate, adder, call, listed, says
from tests.fakes.scripted_provider import ScriptedProvider, Turn

ADD = ToolSpec("add", "Adds.", {"type": "object", "properties": {"a": {"type": "integer"}}})


async def start_loop(*turns: Turn, tools: Any = (ADD,)) -> tuple[ChatLoopHandle, ScriptedProvider]:
    script = ScriptedProvider(*turns)
    provider = await Provider.create("m", provider=script)
    return provider.chat_loop([Message.user("go")], tools), script


def result(call_id: str, text: str = "3") -> ToolResult:
    return ToolResult(tool_use_id=call_id, content=(Text(text=text),))


async def test_it_is_controlled_while_it_works() -> None:
    handle, script = await start_loop(Turn(says("see"), call("a")), Turn(says("done")))
    async with asyncio.timeout(LIMIT):
        async for step in handle:
            if isinstance(step, ContentDelta) and step.text == "see":
                handle.controls.queue.add("and more")
            elif isinstance(step, ToolCallsRequested):
                handle.controls.policies.install(PromptPolicy(id="brief", text="Be brief."))
                handle.controls.set_mode("plan")
                handle.submit_tool_results([result("a")])
    texts = [message.text for message in script.requests[-1].messages]
    assert (texts[0], "and more" in texts) == ("go", True)
    assert "Be brief." in str(script.requests[-1].config.system_prompt)
    assert handle.controls.mode.name == "plan"


async def test_all_steps_of_two_rounds() -> None:
    handle, script = await start_loop(
        Turn(ThinkingDelta("hm"), says("see"), call("a"), call("b"), UsageUpdate(Usage(output_tokens=5))),
        Turn(call("c"), UsageUpdate(Usage(output_tokens=7))),
        Turn(says("do"), says("ne"), UsageUpdate(Usage(output_tokens=1))),
    )
    assert handle.is_active
    steps: list[LoopStep] = []
    async for step in handle:
        steps.append(step)
        if isinstance(step, ToolCallsRequested):
            handle.submit_tool_results([result(call.id) for call in reversed(step.tool_calls)])
    assert steps == [
        ThinkingDelta("hm"),
        ContentDelta("see"),
        ToolCallsRequested((call("a"), call("b")), "see"),
        ToolResultsReceived(2),
        ToolCallsRequested((call("c"),)),
        ToolResultsReceived(1),
        ContentDelta("do"),
        ContentDelta("ne"),
        LoopDone(
            "done", StopReason.END_TURN, Usage(output_tokens=13), (call("a"), call("b"), call("c")), RunEnd.COMPLETED
        ),
    ]
    assert not handle.is_active
    assert not handle._conversation.is_open
    results_message = script.requests[1].messages[-1]
    assert [block.tool_use_id for block in results_message.blocks if isinstance(block, ToolResult)] == ["a", "b"]
    assert [[spec.name for spec in request.tools] for request in script.requests] == [["add"]] * 3
    script.assert_finished()


async def test_another_task_may_submit() -> None:
    handle, _ = await start_loop(Turn(call("a")), Turn(says("done")))
    reading = asyncio.create_task(listed(handle))
    async with asyncio.timeout(LIMIT):
        while True:
            await asyncio.sleep(0)
            try:
                handle.submit_tool_results([result("a")])
                break
            except WrongUse:
                continue
    assert isinstance((await reading)[-1], LoopDone)


async def test_who_waits_with_a_time_limit_may_still_submit() -> None:
    handle, _ = await start_loop(Turn(call("a")), Turn(says("done")))
    async with asyncio.timeout(LIMIT):
        while not isinstance(await anext(handle), ToolCallsRequested):
            pass
        for _ in range(2):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(handle), 0.01)
        handle.submit_tool_results([result("a")])
        steps = [step async for step in handle]
    assert [type(step) for step in steps] == [ToolResultsReceived, ContentDelta, LoopDone]


async def test_results_are_exactly_those_that_were_asked_for() -> None:
    handle, script = await start_loop(Turn(call("a"), call("b")), Turn(says("done")))
    with pytest.raises(WrongUse, match="No call waits"):
        handle.submit_tool_results([result("a")])
    async for step in handle:
        if isinstance(step, ToolCallsRequested):
            for wrong, why in (
                ([], "missing: a, b"),
                ([result("a")], "missing: b"),
                ([result("a"), result("b"), result("z")], "“z”"),
                ([result("a"), result("b"), result("a")], "already"),
            ):
                with pytest.raises(WrongUse, match=why):
                    handle.submit_tool_results(wrong)
            handle.submit_tool_results([result("a", "1"), result("b", "2")])
            with pytest.raises(WrongUse, match="No call waits"):
                handle.submit_tool_results([result("a"), result("b")])
    with pytest.raises(WrongUse, match="No call waits"):
        handle.submit_tool_results([result("a"), result("b")])
    blocks = script.requests[1].messages[-1].blocks
    assert blocks == (result("a", "1"), result("b", "2"))


async def test_cancelling_while_it_streams_closes_the_connection() -> None:
    gate = Gate()
    handle, script = await start_loop(Turn(says("a"), gate.step))
    steps: list[LoopStep] = []
    async for step in handle:
        steps.append(step)
        handle.cancel()
        handle.cancel()
    assert steps == [ContentDelta("a"), LoopDone("a", None, None, (), RunEnd.CANCELLED)]
    assert script.closed_early == 1
    assert handle.history[-1].text == "a"


async def test_cancelling_before_the_first_step_asks_nothing() -> None:
    handle, script = await start_loop(Turn(call("a")))
    handle.cancel()
    handle.cancel()
    assert await listed(handle) == [LoopDone("", None, None, (), RunEnd.CANCELLED)]
    assert script.requests == []
    assert [message.text for message in handle.history] == ["go"]


async def test_cancelling_while_the_first_step_is_being_asked_for_ends_it() -> None:
    handle, script = await start_loop(Turn(call("a")))
    reading = asyncio.create_task(listed(handle))
    await asyncio.sleep(0)
    handle.cancel()
    assert await reading == [LoopDone("", None, None, (), RunEnd.CANCELLED)]
    assert script.requests == []


async def test_a_stop_that_comes_too_late_for_the_calls_ends_the_loop_all_the_same() -> None:
    handle, script = await start_loop(Turn(call("a")))
    stop = handle._conversation.interrupt
    # The run has told of its end, and nobody has read that yet.
    handle._conversation.interrupt = lambda: None
    reading = asyncio.create_task(anext(handle))
    while not script.requests:
        await asyncio.sleep(0)
    handle.cancel()
    handle._conversation.interrupt = stop
    assert await reading == ToolCallsRequested((call("a"),))
    assert await listed(handle) == [LoopDone("", StopReason.TOOL_USE, None, (call("a"),), RunEnd.CANCELLED)]


async def test_a_second_reader_is_refused_and_does_not_end_the_first_ones_loop() -> None:
    handle, script = await start_loop(Turn(*[says(letter) for letter in "abc"]))
    first, second = await asyncio.gather(listed(handle), listed(handle), return_exceptions=True)
    assert isinstance(second, WrongUse)
    assert first == [
        ContentDelta("a"),
        ContentDelta("b"),
        ContentDelta("c"),
        LoopDone("abc", StopReason.END_TURN, None, (), RunEnd.COMPLETED),
    ]
    script.assert_finished()


async def test_closing_before_the_first_step_is_the_end() -> None:
    handle, script = await start_loop(Turn(says("a")))
    await handle.aclose()
    assert await listed(handle) == []
    assert script.requests == []


async def test_a_history_that_is_none_is_refused() -> None:
    provider = await Provider.create("m", provider=ScriptedProvider())
    with pytest.raises(WrongUse, match="list of messages"):
        provider.chat_loop(["go"])  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("after_results", [False, True])
async def test_cancelling_while_results_are_waited_for_closes_the_calls(after_results: bool) -> None:
    handle, script = await start_loop(Turn(call("a")), Turn(says("no")))
    steps: list[LoopStep] = []
    async for step in handle:
        steps.append(step)
        if isinstance(step, ToolCallsRequested):
            if after_results:
                handle.submit_tool_results([result("a")])
            asyncio.get_running_loop().call_soon(handle.cancel)
            await asyncio.sleep(0)
    assert steps == [
        ToolCallsRequested((call("a"),)),
        LoopDone("", StopReason.TOOL_USE, None, (call("a"),), RunEnd.CANCELLED),
    ]
    assert len(script.requests) == 1
    (closed,) = handle.history[-1].blocks
    assert isinstance(closed, ToolResult)
    assert closed.outcome is (Outcome.SUCCEEDED if after_results else Outcome.CANCELLED)


async def test_closing_wakes_whoever_waits() -> None:
    handle, _ = await start_loop(Turn(call("a")))
    steps: list[LoopStep] = []

    async def read() -> None:
        async for step in handle:
            steps.append(step)  # noqa: PERF401 - seen from outside step by step

    reading = asyncio.create_task(read())
    async with asyncio.timeout(LIMIT):
        while not steps:
            await asyncio.sleep(0)
        await handle.aclose()
        await reading
    assert not handle.is_active
    assert steps == [ToolCallsRequested((call("a"),))]


async def test_an_error_before_the_answer_is_raised_and_one_in_the_middle_is_a_step() -> None:
    handle, _ = await start_loop(Turn(AuthenticationFailed("no")))
    with pytest.raises(AuthenticationFailed):
        await listed(handle)
    assert not handle.is_active
    handle, _ = await start_loop(Turn(says("a"), Truncated("gone")))
    steps = await listed(handle)
    assert [type(step) for step in steps] == [ContentDelta, ErrorOccurred, LoopDone]
    assert steps[-1].end is RunEnd.FAILED
    assert handle.history[-1].text == "a"


async def test_a_history_without_a_question_is_refused() -> None:
    provider = await Provider.create("m", provider=ScriptedProvider())
    with pytest.raises(WrongUse, match="nothing"):
        await listed(provider.chat_loop([]))


async def test_a_malformed_call_wants_a_result_too() -> None:
    bad = ToolUse(id="a", name="add", malformed="{oops")
    handle, script = await start_loop(Turn(bad), Turn(says("done")))
    async for step in handle:
        if isinstance(step, ToolCallsRequested):
            assert step.tool_calls == (bad,)
            handle.submit_tool_results([ToolResult(tool_use_id="a", outcome=Outcome.FAILED)])
    script.assert_finished()


async def test_a_dropped_handle_stops() -> None:
    gate = Gate()
    handle, script = await start_loop(Turn(says("a"), gate.step), tools=(adder(),))
    assert await anext(handle) == ContentDelta("a")
    del handle
    async with asyncio.timeout(LIMIT):
        while len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(0)
    assert script.closed_early == 1


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_every_dialect_over_real_sockets(dialect: Dialect) -> None:
    async with demo() as served:
        options = served.options(dialect)
        async with await Provider.create("demo", dialect=dialect, base_url=options.base_url) as provider:
            handle = provider.chat_loop([Message.user("calculate 6 * 7")], [calculate()])
            text = ""
            async for step in handle:
                match step:
                    case ToolCallsRequested():
                        assert [call.input for call in step.tool_calls] == [{"expression": "6 * 7"}]
                        handle.submit_tool_results([result(call.id, "6 * 7 = 42") for call in step.tool_calls])
                    case ContentDelta():
                        text += step.text
                    case LoopDone():
                        assert step.end is RunEnd.COMPLETED
                        assert step.total_usage is not None
                    case _:
                        pass
        assert "`calculate` **succeeded**" in text
        assert [message.role for message in handle.history] == [Role.USER, Role.ASSISTANT, Role.TOOL, Role.ASSISTANT]


@pytest.mark.parametrize("when", ["soon", "idle"])
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_what_is_queued_while_results_are_awaited_is_answered(dialect: Dialect, when: When) -> None:
    """`soon` behind the results, `idle` behind the answer to them: nothing of it ends with the loop."""
    async with demo() as served:
        address = served.options(dialect).base_url
        async with await Provider.create("demo", KEY, dialect=dialect, base_url=address) as provider:
            handle = provider.chat_loop([Message.user("calculate 6 * 7")], [calculate()])
            async with asyncio.timeout(LIMIT):
                async for step in handle:
                    if isinstance(step, ToolCallsRequested) and len(handle.history) == 2:
                        handle.controls.queue.add("hello", when)
                        assert [entry.when for entry in handle.controls.queue.list()] == [when]
                        (pending_call,) = step.tool_calls
                        handle.submit_tool_results(
                            [ToolResult(tool_use_id=pending_call.id, content=(Text(text="42"),))]
                        )
    assert isinstance(step, LoopDone)
    assert step.end is RunEnd.COMPLETED
    roles = [message.role.value for message in handle.history]
    expected = ["user", "assistant", "tool", "user", "assistant"]
    assert roles == (expected if when == "soon" else [*expected[:3], "assistant", *expected[3:]])
    assert "demo model" in step.content
    assert handle.controls.queue.list() == ()


async def test_cancel_asks_nothing_of_what_is_queued() -> None:
    script = ScriptedProvider(Turn(says("x"), call("1")))
    provider = await Provider.create("m", provider=script)
    handle = provider.chat_loop([Message.user("hi")], [adder()])
    async with asyncio.timeout(LIMIT):
        async for step in handle:
            if isinstance(step, ToolCallsRequested):
                handle.controls.queue.add("more", "idle")
                handle.cancel()
    assert isinstance(step, LoopDone)
    assert step.end is RunEnd.CANCELLED
    assert len(script.requests) == 1


async def test_a_stop_by_the_controls_while_results_are_awaited_ends_the_loop() -> None:
    handle, script = await start_loop(Turn(call("a")), Turn(says("never")))
    steps: list[LoopStep] = []
    async with asyncio.timeout(LIMIT):
        async for step in handle:
            steps.append(step)
            if isinstance(step, ToolCallsRequested):
                assert handle.controls.interrupt()
    assert isinstance(steps[-1], LoopDone)
    assert steps[-1].end is RunEnd.CANCELLED
    assert len(script.requests) == 1
