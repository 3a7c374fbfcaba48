"""Section Faces: thin ways into the one engine, as the library's users import them."""

import asyncio
import inspect
import subprocess
import sys
import threading
from typing import Any

import pytest

import desktop_agent
from desktop_agent import (
    Client,
    LoopDone,
    Message,
    NeedsToolExecution,
    Provider,
    StreamingResponse,
    ToolCallAssembler,
    ToolCallsRequested,
    ToolResultsReceived,
    TwoPhaseAgent,
    collect_response,
    collect_text,
    query,
)
from desktop_agent.tools.calculator import calculate
from desktop_agent.types.blocks import Json, Outcome, Text, Thinking, ToolResult, ToolUse
from desktop_agent.types.engine_events import RunEnd, ToolFinished, ToolStarted
from desktop_agent.types.errors import (
    CachingNotSupported,
    ImagesNotSupported,
    SpecialistHasNoTools,
    ToolCallingNotSupported,
    WrongUse,
)
from desktop_agent.types.messages import Role
from desktop_agent.types.policies import Specialist
from desktop_agent.types.provider_events import (
    ContentDelta,
    StopReason,
    ThinkingDelta,
    ToolArgsDelta,
    Usage,
    UsageUpdate,
)
from desktop_agent.types.providers import Capabilities, Dialect, ModelInfo
from tests.contract.scenes import one, only
from tests.fakes.demo_server import DIALECTS, KEY, demo
from tests.fakes.http_server import Loopback, Reply, chunk, sse
from tests.fakes.library import LIMIT, Gate, acting, adder, blocks_of, call, listed, says, sent
from tests.fakes.scripted_provider import Turn


def result(call_id: str, text: str = "3") -> ToolResult:
    return ToolResult(tool_use_id=call_id, content=(Text(text=text),))


async def test_query__is_an_iterator_of_blocks() -> None:
    options, provider = acting(Turn(ThinkingDelta("hm"), says("Hel"), says("lo")))
    assert [type(block) for block in await listed(query("hi", options))] == [Thinking, Text]
    assert sent(provider) == [("user", "hi")]


async def test_query__knows_nothing_of_an_earlier_one() -> None:
    options, provider = acting(Turn(says("a")), Turn(says("b")))
    for prompt in ("one", "two"):
        await listed(query(prompt, options))
    assert [len(request.messages) for request in provider.requests] == [1, 1]


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_query__of_every_dialect_over_real_sockets(dialect: Dialect) -> None:
    async with demo() as served:
        blocks = await listed(
            query("calculate 6 * 7", served.options(dialect, tools=(calculate(),), auto_execute_tools=True))
        )
    assert "42" in "".join(block.text for block in only(blocks, Text))
    assert one(only(blocks, ToolResult)).outcome is Outcome.SUCCEEDED


async def test_client__asks_by_words_and_by_prepared_messages_and_gives_blocks_until_none() -> None:
    options, provider = acting(Turn(says("one")), Turn(says("two")))
    async with Client(options) as client:
        await client.send("typed")
        assert [block.text for block in await blocks_of(client.receive)] == ["one"]
        assert await client.receive() is None
        prepared = Message.user_with_blocks([Text(text="a"), Text(text="b")])
        await client.send_message(prepared)
        assert (await client.receive()).text == "two"  # type: ignore[union-attr]
        assert client.history[2] == prepared
    assert sent(provider) == [("user", "typed"), ("assistant", "one"), ("user", "ab")]


async def test_client__streams_events_and_completes_whole_answers() -> None:
    options, _ = acting(Turn(says("Hel"), says("lo")), Turn(says("there")))
    async with Client(options) as client:
        events = await listed(client.stream("hi"))
        assert [event.text for event in only(events, ContentDelta)] == ["Hel", "lo"]
        response = await client.complete("and?")
        assert (response.text, response.is_complete) == ("there", True)


@pytest.mark.parametrize("how", ["continue_", "send"])
async def test_client__goes_on_without_a_prompt_and_send_of_nothing_is_the_same(how: str) -> None:
    options, provider = acting(Turn(call("c1")), Turn(says("3")), tools=(adder(),))
    async with Client(options) as client:
        assert (await client.complete("1 + 2")).tool_uses == (call("c1"),)
        client.add_tool_result("c1", {"sum": 3})
        await (client.continue_() if how == "continue_" else client.send(""))
        assert [block.text for block in await blocks_of(client.receive)] == ["3"]
    assert provider.requests[1].messages[-1].blocks == (
        ToolResult(tool_use_id="c1", content=(Json(value={"sum": 3}),)),
    )


async def test_client__takes_results_by_their_exact_id_once_and_as_errors_too() -> None:
    options, provider = acting(Turn(call("c1"), call("c2")), Turn(says("3")), tools=(adder(),))
    async with Client(options) as client:
        await client.complete("go")
        client.add_tool_result("c2", "no such thing", is_error=True)
        for wrong in ("c2", "unknown", ""):
            with pytest.raises(WrongUse):
                client.add_tool_result(wrong, 1)
        with pytest.raises(WrongUse, match="c1"):
            await client.continue_()
        client.add_tool_result("c1", 3)
        await client.continue_()
        await blocks_of(client.receive)
    first, second = provider.requests[1].messages[-1].blocks
    assert (first.tool_use_id, first.is_error) == ("c1", False)  # type: ignore[union-attr]
    assert (second.tool_use_id, second.is_error) == ("c2", True)  # type: ignore[union-attr]


async def test_client__stops_at_once_and_stopping_when_idle_is_nothing() -> None:
    gate = Gate()
    options, provider = acting(Turn(says("a"), gate.step), Turn(says("b")))
    async with Client(options) as client:
        client.interrupt()
        await client.send("hi")
        client.interrupt()
        client.interrupt()
        assert [block.text for block in await blocks_of(client.receive)] == ["a"]
        assert (client.ended, provider.closed_early) == (RunEnd.CANCELLED, 1)
        client.interrupt()
        assert (await client.complete("again")).text == "b"


async def test_client__the_handle_stops_it_from_any_thread_any_number_of_times() -> None:
    gate = Gate()
    options, _ = acting(Turn(says("a"), gate.step), Turn(says("b")))
    async with Client(options) as client:
        handle = client.interrupt_handle()
        handle.interrupt()  # idle: nothing
        await client.send("hi")
        threads = [threading.Thread(target=handle.interrupt) for _ in range(4)]
        for thread in threads:
            thread.start()
        await blocks_of(client.receive)
        for thread in threads:
            thread.join()
        assert client.ended is RunEnd.CANCELLED
        assert (await client.complete("again")).text == "b"
        handle.interrupt()
    handle.interrupt()


async def test_client__history_can_be_read_edited_and_cleared_which_cancels_first() -> None:
    gate = Gate()
    options, provider = acting(Turn(says("one")), Turn(says("half"), gate.step), Turn(says("new")), system_prompt="S")
    async with Client(options) as client:
        await client.complete("a")
        await client.edit_history(lambda history: [*history[:1], Message.assistant("edited")])
        await client.send("b")
        assert sent(provider) == [("user", "a"), ("assistant", "edited"), ("user", "b")]
        before = provider.closed_early
        await client.clear_history()
        assert (client.history, provider.closed_early - before, client.ended) == ((), 1, RunEnd.CANCELLED)
        assert client.options is options
        await client.complete("c")
    assert sent(provider) == [("user", "c")]
    assert provider.requests[-1].config.system_prompt == "S"


def test_client__finds_a_tool_by_its_exact_name() -> None:
    add = adder()
    client = Client(acting(tools=(add,))[0])
    assert client.get_tool("add") is add
    assert client.get_tool("Add") is client.get_tool("ad") is None


async def test_manual_mode__the_caller_runs_the_calls_and_the_answer_with_them_is_in_the_history() -> None:
    ran: list[str] = []

    async def note() -> None:
        ran.append("by the runtime")

    options, provider = acting(Turn(says("see"), call("c1")), Turn(says("3")), tools=(adder(note),))
    async with Client(options) as client:
        await client.send("1 + 2")
        text, use = await blocks_of(client.receive)
        assert (text.text, use, ran) == ("see", call("c1"), [])
        assert client.ended is RunEnd.AWAITING_RESULTS
        assert client.history[-1].role is Role.ASSISTANT
        assert client.history[-1].tool_uses == (call("c1"),)
        client.add_tool_result(use.id, "3")
        await client.continue_()
        await blocks_of(client.receive)
    assert [message.role for message in provider.requests[1].messages] == [Role.USER, Role.ASSISTANT, Role.TOOL]
    assert [spec.name for spec in provider.requests[1].tools] == ["add"]


async def test_manual_mode__receive_add_send_works_for_a_tool_that_is_faster_than_the_answer() -> None:
    gate = Gate()
    options, _ = acting(Turn(call("c1"), gate.step, says("see")), Turn(says("3")), tools=(adder(),))
    async with Client(options) as client:
        await client.send("1 + 2")
        while block := await client.receive():
            if isinstance(block, ToolUse):
                client.add_tool_result(block.id, "3")
                with pytest.raises(WrongUse):
                    client.add_tool_result(block.id, "3")
                gate.opened.set()
        await client.send("")
        assert [block.text for block in await blocks_of(client.receive)] == ["3"]


async def test_automatic_mode__text_and_thinking_come_while_tools_run_and_the_last_text_piece_by_piece() -> None:
    at_work, last = Gate(), Gate()

    async def wait() -> None:
        at_work.arrived.set()
        await at_work.opened.wait()

    options, _ = acting(
        Turn(ThinkingDelta("hm"), says("see"), call()), Turn(says("It is "), last.step, says("3.")),
        tools=(adder(wait),), auto_execute_tools=True,
    )  # fmt: skip
    streamed: list[Any] = []
    async with Client(options) as client, asyncio.timeout(LIMIT):
        async for event in client.stream("1 + 2"):
            streamed.append(event)
            if isinstance(event, ToolStarted):
                await at_work.until_arrived()
                assert only(streamed, ThinkingDelta, ContentDelta) == [ThinkingDelta("hm"), ContentDelta("see")]
                at_work.opened.set()
            if event == ContentDelta("It is "):
                assert client.ended is None
                last.opened.set()
    assert [event.text for event in only(streamed, ContentDelta)] == ["see", "It is ", "3."]
    assert one(only(streamed, ToolFinished)).outcome is Outcome.SUCCEEDED


async def test_automatic_mode__whole_blocks_are_given_while_tools_run() -> None:
    gate = Gate()

    async def wait() -> None:
        gate.arrived.set()
        await gate.opened.wait()

    options, _ = acting(Turn(says("see"), call()), Turn(says("3")), tools=(adder(wait),), auto_execute_tools=True)
    async with Client(options) as client, asyncio.timeout(LIMIT):
        await client.send("1 + 2")
        await gate.until_arrived()
        assert await client.receive() == Text(text="see")
        assert await client.receive() == call()
        gate.opened.set()
        assert [type(block) for block in await blocks_of(client.receive)] == [ToolResult, Text]


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_provider__does_all_of_it_in_every_dialect(dialect: Dialect) -> None:
    async with demo() as served:
        address = served.options(dialect).base_url
        async with await Provider.create("demo", KEY, dialect=dialect, base_url=address) as provider:
            assert (await provider.chat("hello")).is_complete
            assert await collect_text(provider.stream(provider.request("hello")))
            uses = (await provider.complete("calculate 1 + 1", [calculate()])).tool_uses
            assert one(uses).input == {"expression": "1 + 1"}
            assert [model.id for model in await provider.list_models()] == ["demo"]
            assert (await provider.count_tokens("hello")).tokens > 0
            assert provider.state().request_count >= 3
            assert provider.config.temperature is None
            assert isinstance(provider.capabilities, Capabilities)
            steps = await listed(provider.chat_loop([Message.user("hello")]))
            assert isinstance(steps[-1], LoopDone)


async def test_provider__what_is_missing_is_a_typed_error_before_the_network() -> None:
    lacks = ModelInfo("m", capabilities=Capabilities(images=False, tools=False))
    plain = Reply(sse(chunk({"content": "a"}), chunk(finish="stop")))
    async with Loopback(plain) as server, await Provider.create("m", base_url=server.url) as provider:
        provider._provider._listed["m"] = lacks  # type: ignore[attr-defined]
        with pytest.raises(ToolCallingNotSupported):
            await provider.complete("hi", [calculate()])
        with pytest.raises(ImagesNotSupported):
            await provider.chat(Message.user_with_image("?", "https://example.org/a.png"))
        with pytest.raises(CachingNotSupported):
            await provider.prompt_cache("hi")
        assert server.requests == []
        assert (await provider.chat("hi")).text == "a"


async def looping(*turns: Turn) -> tuple[Any, Any]:
    _, script = acting(*turns)
    provider = await Provider.create("m", provider=script)
    return provider.chat_loop([Message.user("go")], [adder()]), script


async def test_chat_loop_handle__steps_and_the_total_at_the_end() -> None:
    handle, script = await looping(
        Turn(ThinkingDelta("hm"), says("see"), call("a"), UsageUpdate(Usage(output_tokens=5))),
        Turn(says("done"), UsageUpdate(Usage(output_tokens=2))),
    )
    steps: list[Any] = []
    async for step in handle:
        steps.append(step)
        if isinstance(step, ToolCallsRequested):
            assert handle.is_active
            handle.submit_tool_results([result("a")])
    assert steps == [
        ThinkingDelta("hm"), ContentDelta("see"), ToolCallsRequested((call("a"),), "see"),
        ToolResultsReceived(1), ContentDelta("done"),
        LoopDone("done", StopReason.END_TURN, Usage(output_tokens=7), (call("a"),), RunEnd.COMPLETED),
    ]  # fmt: skip
    assert not handle.is_active
    assert [spec.name for spec in script.requests[1].tools] == ["add"]


async def test_chat_loop_handle__results_are_exactly_those_of_the_calls_and_once() -> None:
    handle, script = await looping(Turn(call("a"), call("b")), Turn(says("done")))
    a, b, z = result("a"), result("b"), result("z")
    async for step in handle:
        if isinstance(step, ToolCallsRequested):
            for wrong in ([], [a], [a, z], [a, b, z], [a, b, a]):
                with pytest.raises(WrongUse):
                    handle.submit_tool_results(wrong)
            handle.submit_tool_results([b, a])
            with pytest.raises(WrongUse):
                handle.submit_tool_results([a, b])
    assert script.requests[1].messages[-1].blocks == (a, b)


async def test_chat_loop_handle__cancel_closes_the_connection() -> None:
    async with demo(speed=2) as served, await Provider.create("demo", base_url=served.base_url) as provider:
        handle = provider.chat_loop([Message.user("tell me a long story")])
        steps = []
        async for step in handle:
            steps.append(step)
            handle.cancel()
        assert steps[-1].end is RunEnd.CANCELLED
        assert not handle.is_active
        await served.until_disconnected()


@pytest.mark.parametrize("words", ["", "Let me look."])
async def test_agent_response__two_phases_with_tools_still_offered(words: str) -> None:
    first = Turn(*([says(words)] if words else []), call("a"))
    options, provider = acting(first, Turn(call("b")), Turn(says("It is 3.")), tools=(adder(),))
    async with TwoPhaseAgent(options) as agent:
        response = await agent.process("go")
        if words:
            assert isinstance(response, StreamingResponse)
            assert await collect_text(response.events) == words
            response = response.needs
        assert isinstance(response, NeedsToolExecution)
        assert response.tool_calls == (call("a"),)
        assert response.messages[-1].tool_uses == (call("a"),)
        second = await agent.process_with_results([*response.messages, Message.tool_results([result("a")])])
        assert isinstance(second, NeedsToolExecution)
        last = await agent.process_with_results([Message.tool_results([result("b")])])
        assert isinstance(last, StreamingResponse)
        assert await collect_text(last.events) == "It is 3."
    assert [[spec.name for spec in request.tools] for request in provider.requests] == [["add"]] * 3


async def test_agent_response__of_a_specialist_without_tools_that_asks_for_one() -> None:
    helper = Specialist(name="helper", description="Helps.", system_prompt="You help.")
    options, _ = acting(Turn(call("a")), tools=(adder(),), specialists=(helper,))
    async with TwoPhaseAgent(options, specialist="helper") as agent:
        with pytest.raises(SpecialistHasNoTools):
            await agent.process("go")


async def test_collecting__text_and_whole_responses() -> None:
    options, _ = acting(Turn(ThinkingDelta("hm"), says("Hel"), says("lo"), UsageUpdate(Usage(output_tokens=2))))
    async with Client(options) as client:
        response = await collect_response(client.stream("hi"))
    assert (response.text, response.thinking, response.usage) == ("Hello", "hm", Usage(output_tokens=2))
    assert (response.is_complete, response.end) == (True, RunEnd.COMPLETED)
    options, _ = acting(Turn(says("Hel"), says("lo")))
    assert await collect_text(query("hi", options)) == "Hello"


def test_collecting__calls_from_pieces_of_which_a_bad_one_spoils_no_other() -> None:
    assembler = ToolCallAssembler()
    assembler.add(ToolArgsDelta("c1", "add", '{"a"'))
    assembler.add(ToolArgsDelta("c2", "now", ""))
    assembler.add(ToolArgsDelta("c1", None, ": 1}"))
    assembler.add(ToolArgsDelta("c3", "add", '{"a": oops'))
    good, empty, bad = assembler.finish()
    assert (good, empty) == (ToolUse(id="c1", name="add", input={"a": 1}), ToolUse(id="c2", name="now", input={}))
    assert (bad.malformed, bad.input) == ('{"a": oops', {})


def test_client__and_the_others_are_loaded_late_and_without_a_screen() -> None:
    code = (
        "import sys, desktop_agent; desktop_agent.Client, desktop_agent.query; "
        "print([name for name in sys.modules if 'PySide' in name or name == 'ui'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert {"Client", "query", "tool", "AgentOptions", "Message", "Hooks"} <= set(desktop_agent.__all__)
    assert inspect.isclass(desktop_agent.ChatLoopHandle)
