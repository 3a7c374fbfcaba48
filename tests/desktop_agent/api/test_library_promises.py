"""What library users may rely on, one by one."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field

from desktop_agent.api.client import Client, query, run
from desktop_agent.api.command_line import parse_ask_arguments
from desktop_agent.api.provider import ChatDone, Provider
from desktop_agent.api.responses import collect_response
from desktop_agent.tools.decorator import tool
from desktop_agent.tools.tool import AnyTool
from desktop_agent.types.blocks import Image, Json, Outcome, Text, ToolResult, ToolUse, UrlSource
from desktop_agent.types.engine_events import RunEnd
from desktop_agent.types.errors import (
    AgentError,
    AuthenticationFailed,
    CapabilityMissing,
    ImageRefused,
    NotFound,
    OutputInvalid,
    Overloaded,
    TimedOut,
    ToolFailed,
    ToolInputInvalid,
    Truncated,
    UnreadableAnswer,
    WrongUse,
)
from desktop_agent.types.messages import Message
from desktop_agent.types.options import AgentOptions
from desktop_agent.types.policies import Specialist
from desktop_agent.types.provider_events import ContentDelta, Done, MessageDelta, StopReason, Usage, UsageUpdate
from desktop_agent.types.providers import ProviderConfig
from tests.fakes.demo_server import demo
from tests.fakes.http_server import Loopback, Reply, chunk, sse
from tests.fakes.library import LIMIT, Gate, acting, adder, blocks_of, call, says
from tests.fakes.scripted_provider import ScriptedProvider, Turn

ROOT = Path(__file__).parents[3]
KEY = "sk-of-the-environment"


@pytest.mark.parametrize("reason", [StopReason.CONTENT_FILTER, StopReason.REFUSAL])
async def test_what_a_filter_or_a_refusal_ended_is_not_complete(reason: StopReason) -> None:
    options, _ = acting(Turn(says("I"), MessageDelta(reason), Done()))
    async with Client(options) as client:
        assert not (await client.complete("hi")).is_complete


async def test_the_state_is_as_it_was_when_it_was_read() -> None:
    gate = Gate()
    script = ScriptedProvider(Turn(UsageUpdate(Usage(output_tokens=3)), gate.step, says("a")), Turn(says("b")))
    provider = await Provider.create("m", provider=script)
    before = provider.state()
    asking = asyncio.create_task(provider.complete("hi"))
    await gate.until_arrived()
    within = provider.state()
    assert (before.request_count, within.request_count, within.output_tokens) == (0, 1, 3)
    gate.opened.set()
    await asking
    await provider.complete("hi")
    assert (within.request_count, provider.state().request_count) == (1, 2)


async def test_usage_is_also_of_specialists() -> None:
    task = ToolUse(id="s", name="clerk", input={"task": "count"})
    options, _ = acting(
        Turn(task, UsageUpdate(Usage(input_tokens=10, output_tokens=1))),
        Turn(says("two"), UsageUpdate(Usage(input_tokens=100, output_tokens=20))),
        Turn(says("ok"), UsageUpdate(Usage(input_tokens=1000, output_tokens=300))),
        specialists=(Specialist(name="clerk", description="Counts.", system_prompt="Count."),),
        auto_execute_tools=True,
    )
    async with Client(options) as client:
        response = await client.complete("go")
    assert response.usage is not None
    assert (response.usage.input_tokens, response.usage.output_tokens) == (1110, 321)


async def test_usage_is_also_of_attempts_that_came_to_nothing() -> None:
    miswritten = MessageDelta(StopReason.MALFORMED_TOOL_CALL)
    options, provider = acting(
        Turn(miswritten, UsageUpdate(Usage(input_tokens=1))),
        Turn(ToolUse(id="s", name="clerk", input={"task": "count"}), UsageUpdate(Usage(input_tokens=10))),
        Turn(UsageUpdate(Usage(input_tokens=100)), Overloaded("busy", retry_after=0.001)),
        Turn(says("two"), UsageUpdate(Usage(input_tokens=1_000))),
        Turn(says("o"), UsageUpdate(Usage(input_tokens=10_000)), Truncated("cut")),
        specialists=(Specialist(name="clerk", description="Counts.", system_prompt="Count."),),
        auto_execute_tools=True,
    )
    async with Client(options) as client:
        response = await collect_response(client.stream("go"))
    provider.assert_finished()
    assert response.end is RunEnd.FAILED
    assert response.usage == Usage(input_tokens=11_111)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Message.user_with_image("x", "ftp://example.org/a.png"),
        lambda: Message.user_with_image("x", ""),
        lambda: Message.user_with_base64_image("x", "not base64!", "image/png"),
        lambda: Message.user_with_base64_image("x", "aGVsbG8=", "image/png"),
        lambda: Message.user_with_base64_image("x", "aGVsbG8=", "image/bmp"),
        lambda: Message.user_with_file("x", b"hello", "a.png"),
    ],
)
def test_makers_of_images_refuse_with_their_own_error(make: Any) -> None:
    with pytest.raises(ImageRefused) as caught:
        make()
    assert "validation error" not in str(caught.value)


ANSWER = Reply(sse(chunk({"content": "ok"}), chunk(finish="stop")))


@pytest.mark.parametrize("named_by", ["caller", "environment", "dialect"])
async def test_the_key_of_the_environment_goes_to_a_server_that_was_named(
    named_by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DESKTOP_AGENT_API_KEY", KEY)
    async with Loopback(ANSWER, ANSWER) as server:
        values: dict[str, Any] = {"model": "m"}
        if named_by == "caller":
            values["base_url"] = server.root
        elif named_by == "environment":
            monkeypatch.setenv("DESKTOP_AGENT_BASE_URL", server.root)
        else:
            assert _key_of(AgentOptions(model="m", dialect="openai-chat")) == KEY
            return
        async with Client(**values) as client:
            await client.complete("hi")
        async with Client(**values, api_key="sk-of-the-caller") as client:
            await client.complete("hi")
        keys = [request.headers.get("authorization") for request in server.requests]
    assert keys == [f"Bearer {KEY}", "Bearer sk-of-the-caller"]


async def test_the_key_of_the_environment_goes_to_nobody_who_was_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DESKTOP_AGENT_API_KEY", KEY)
    monkeypatch.delenv("DESKTOP_AGENT_BASE_URL", raising=False)
    assert _key_of(AgentOptions(model="m")) is None
    assert KEY not in repr(AgentOptions(model="m", dialect="openai-chat"))
    async with await Provider.create("gpt-99") as provider:
        assert not _key_of(provider._options)
    async with await Provider.create("gpt-99", dialect="openai-responses") as provider:
        assert _key_of(provider._options) == KEY


def _key_of(options: AgentOptions) -> str | None:
    return None if options.key is None else options.key.get_secret_value()


@pytest.mark.parametrize(
    ("model", "dialect"),
    [("gpt-99-ultra", "openai-responses"), ("o4-future", "openai-responses"), ("claude-zebra-9", "anthropic"),
     ("gemini-12", "gemini")],
)  # fmt: skip
async def test_a_provider_of_any_model_knows_the_vendor_by_the_prefix(model: str, dialect: str) -> None:
    async with await Provider.create(model, "k") as provider:
        assert (provider.model, provider._options.dialect) == (model, dialect)


async def test_a_provider_of_a_name_that_no_vendor_has_says_so() -> None:
    with pytest.raises(WrongUse, match="house-model"):
        await Provider.create("house-model", "k")


def adder_tool() -> AnyTool:
    @tool
    async def add(a: int, b: int) -> int:
        """Add."""
        if a < 0:
            raise ToolFailed("Negative.")
        if a == 0:
            raise RuntimeError("a secret")
        return a + b

    return add


async def test_a_tool_is_called_like_its_function_and_executed_like_a_call() -> None:
    add = adder_tool()
    assert await add(a=1, b=2) == 3
    with pytest.raises(ToolInputInvalid):
        await add(a="x", b=2)
    with pytest.raises(ToolFailed):
        await add(a=-1, b=2)
    result = await add.execute({"a": 1, "b": 2}, tool_use_id="c1")
    assert result == ToolResult(tool_use_id="c1", content=(Json(value=3),), outcome=Outcome.SUCCEEDED)
    for wrong in ({"a": "x", "b": 2}, {"a": -1, "b": 2}, {"a": 0, "b": 2}, {}):
        failed = await add.execute(wrong)
        assert failed.outcome is Outcome.FAILED
        assert "secret" not in str(failed)


async def test_a_tool_that_takes_too_long_by_itself_is_a_result() -> None:
    @tool(timeout=0.01)
    async def hang() -> None:
        """Hang."""
        await asyncio.Event().wait()

    assert (await hang.execute({})).outcome is Outcome.TIMED_OUT


PICTURE = Image(source=UrlSource(url="https://example.org/a.png"))


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("text", (Text(text="text"),)),
        ({"a": [1]}, (Json(value={"a": [1]}),)),
        (None, (Json(value=None),)),
        ([1, "b"], (Json(value=[1, "b"]),)),
        (Text(text="t"), (Text(text="t"),)),
        (PICTURE, (PICTURE,)),
        ([Text(text="t"), PICTURE, {"a": 1}], (Text(text="t"), PICTURE, Json(value={"a": 1}))),
        (ToolResult(tool_use_id="c1", content=(Text(text="r"),)), (Text(text="r"),)),
    ],
    ids=lambda _: "",
)
async def test_a_result_is_text_json_blocks_or_a_tool_result(content: object, parts: tuple[object, ...]) -> None:
    options, provider = acting(Turn(call()), Turn(says("ok")), tools=(adder(),))
    async with Client(options) as client:
        await client.complete("add")
        client.add_tool_result("c1", content)
        await client.complete()
    (block,) = provider.requests[-1].messages[-1].blocks
    assert isinstance(block, ToolResult)
    assert block.content == parts


async def test_a_tool_result_by_itself_keeps_its_outcome_and_goes_to_its_own_call_only() -> None:
    options, provider = acting(Turn(call("a"), call("b")), Turn(says("ok")), tools=(adder(),))
    async with Client(options) as client:
        await client.complete("add")
        with pytest.raises(WrongUse):
            client.add_tool_result("a", ToolResult(tool_use_id="b"))
        client.add_tool_result(ToolResult(tool_use_id="a", outcome=Outcome.TIMED_OUT))
        client.add_tool_result(await adder().execute({"a": 1, "b": 2}, tool_use_id="b"))
        await client.complete()
    outcomes = [block.outcome for block in provider.requests[-1].messages[-1].blocks if isinstance(block, ToolResult)]
    assert outcomes == [Outcome.TIMED_OUT, Outcome.SUCCEEDED]


def test_the_builder_takes_what_the_ancestors_took() -> None:
    options = (
        AgentOptions.builder()
        .model("m").base_url("http://127.0.0.1:1/v1").temperature(0.2).max_tokens(9).top_p(0.5).timeout(30)
        .max_tool_iterations(3).tool(adder_tool()).build()
    )  # fmt: skip
    assert (options.base_url, options.run_limits.tool_iterations) == ("http://127.0.0.1:1/v1", 3)
    config = options.config
    assert (config.temperature, config.max_tokens, config.top_p, config.timeouts.total) == (0.2, 9, 0.5, 30)
    assert [tool.name for tool in options.tools] == ["add"]
    with pytest.raises(WrongUse, match="temperature"):
        AgentOptions.builder().temperature(7)


@pytest.mark.parametrize("how", ["with", "aclose"])
async def test_a_query_that_is_held_in_a_variable_is_closed(how: str) -> None:
    async with demo(speed=20) as served:
        options = served.options()
        if how == "with":
            async with query("hello", options) as blocks:
                async for _ in blocks:
                    break
        else:
            blocks = query("hello", options)
            async for _ in blocks:
                break
            await blocks.aclose()
        async with asyncio.timeout(LIMIT):
            while not set(served.states) <= {"disconnected", "finished"}:
                await asyncio.sleep(0.001)
        assert await blocks_of_stream(blocks) == []


async def blocks_of_stream(blocks: Any) -> list[Any]:
    return [block async for block in blocks]


@pytest.mark.parametrize("kind", [AuthenticationFailed, UnreadableAnswer, TimedOut, NotFound])
def test_no_remedy_sends_a_library_user_to_a_window(kind: type[AgentError]) -> None:
    assert "settings" not in kind.default_remedy


@pytest.mark.parametrize("form", [[], ["--jsonl"]])
async def test_ask_whose_reader_goes_away_ends_like_a_program_of_the_shell(form: list[str], tmp_path: Path) -> None:
    async with demo(speed=5) as served:
        line = [sys.executable, "-m", "desktop_agent", "ask", *form, "--data-dir", str(tmp_path / "data")]
        line += ["--base-url", served.base_url, "--model", "demo", "hello"]
        process = await asyncio.create_subprocess_exec(*line, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stderr is not None
        async with asyncio.timeout(LIMIT * 3):
            await process.stdout.read(1)
            process.stdout._transport.close()  # type: ignore[attr-defined]
            stderr = (await process.stderr.read()).decode()
            code = await process.wait()
    assert "Traceback" not in stderr
    assert "BrokenPipe" not in stderr
    assert code == 141


def test_the_help_of_ask_lists_every_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse_ask_arguments(["--help"])
    help_text = " ".join(capsys.readouterr().out.split())
    codes = ("0 done; 1 error", "2 wrong use", "130 interrupted", "141 whoever read the output left")
    assert [code for code in codes if code not in help_text] == []


@pytest.mark.parametrize("clears", [True, False])
async def test_another_history_leaves_no_answer_that_nobody_read(clears: bool) -> None:
    options, provider = acting(Turn(says("one")), Turn(says("SECRET two")), Turn(says("three")))
    async with Client(options) as client:
        await client.send("hi")
        client.queue.add("second", "idle")
        assert [block.text for block in await blocks_of(client.receive)] == ["one"]
        await client.controls._conversation.opened_session.wait_idle()
        if clears:
            await client.clear_history()
            await client.send("new start")
        else:
            await client.edit_history([Message.user("new start")])
            await client.send("")
        assert [block.text for block in await blocks_of(client.receive)] == ["three"]
    provider.assert_finished()


async def test_clearing_leaves_nothing_to_be_received() -> None:
    options, _ = acting(Turn(says("a"), call(), says("b")), tools=(adder(),))
    async with Client(options) as client:
        await client.send("hi")
        await client.receive()
        await client.clear_history()
        assert await blocks_of(client.receive) == []


class Town(BaseModel):
    name: str
    people: int = Field(ge=0)
    rivers: list[str] = []


GOOD = '{"name": "Bern", "people": 134000, "rivers": ["Aare"]}'


@pytest.mark.parametrize("text", [GOOD, f"```json\n{GOOD}\n```"])
async def test_an_answer_of_a_type_is_bound_to_its_schema_and_validated(text: str) -> None:
    options, provider = acting(Turn(says(text)), Turn(says("free")))
    async with Client(options) as client:
        response = await client.complete("Tell me of Bern", output_type=Town)
        assert response.output == Town(name="Bern", people=134000, rivers=["Aare"])
        assert (await client.complete("and now?")).text == "free"
    bound, free = (request.config.response_format for request in provider.requests)
    assert bound is not None
    assert (bound.name, bound.strict) == ("Town", True)
    assert bound.json_schema is not None
    assert (bound.json_schema["additionalProperties"], bound.json_schema["required"]) == (
        False,
        ["name", "people", "rivers"],
    )
    assert free is None


async def test_an_answer_that_does_not_fit_is_asked_for_again_with_what_is_wrong() -> None:
    options, provider = acting(Turn(says('{"name": "Bern", "people": -1}')), Turn(says("no JSON")), Turn(says(GOOD)))
    async with Client(options) as client:
        assert (await client.complete("Bern", output_type=Town)).output.name == "Bern"
    assert "people" in provider.requests[1].messages[-1].text
    provider.assert_finished()


async def test_an_answer_that_never_fits_is_an_error_of_its_own() -> None:
    options, provider = acting(*[Turn(says("no"))] * 2, Turn(says("free")))
    async with Client(options) as client:
        with pytest.raises(OutputInvalid) as caught:
            await client.complete("Bern", output_type=Town, output_retries=1)
        assert caught.value.detail == "no"
        assert (await client.complete("hi")).text == "free"
    provider.assert_finished()


async def test_a_model_that_cannot_be_bound_is_told_in_words() -> None:
    options, provider = acting(
        Turn(CapabilityMissing("m cannot be bound to JSON.")), Turn(says(GOOD)), system_prompt="Be kind."
    )
    async with Client(options) as client:
        assert (await client.complete("Bern", output_type=Town)).output.people == 134000
    config = provider.requests[-1].config
    assert config.response_format is None
    assert config.system_prompt is not None
    assert config.system_prompt.startswith("Be kind.")
    assert '"people"' in config.system_prompt
    assert [message.text for message in provider.requests[-1].messages] == ["Bern"]


def test_one_question_without_an_event_loop() -> None:
    options, _ = acting(Turn(call()), Turn(says("3")), tools=(adder(),), auto_execute_tools=True)
    assert run("add", options).text == "3"
    typed, _ = acting(Turn(says(GOOD)))
    assert run("Bern", typed, output_type=Town).output.rivers == ["Aare"]


async def test_a_blocking_question_inside_of_an_event_loop_is_refused() -> None:
    options, provider = acting(Turn(says("3")))
    with pytest.raises(WrongUse, match="event loop"):
        run("hi", options)
    assert provider.requests == []


async def test_chat_streams_and_ends_with_what_the_ancestors_said_last() -> None:
    script = ScriptedProvider(Turn(says("Hel"), says("lo"), UsageUpdate(Usage(output_tokens=2))), Turn(says("b")))
    provider = await Provider.create("m", provider=script)
    chunks = [chunk async for chunk in provider.chat("hi")]
    assert [event.text for event in chunks if isinstance(event, ContentDelta)] == ["Hel", "lo"]
    last = chunks[-1]
    assert isinstance(last, ChatDone)
    assert (last.finish_reason, last.full_content) == (StopReason.END_TURN, "Hello")
    assert last.usage is not None
    assert (last.usage.output_tokens, (await provider.chat("hi")).text) == (2, "b")
    assert provider.config == ProviderConfig()
