"""`Provider`: one model, asked directly."""

import asyncio
import base64
from io import BytesIO
from typing import Any

import pytest
from PIL import Image as Pictures

from desktop_agent.api.provider import Provider
from desktop_agent.api.responses import collect_text
from desktop_agent.tools.calculator import calculate
from desktop_agent.types.blocks import Base64Source, Image, Text
from desktop_agent.types.errors import (
    AuthenticationFailed,
    CachingNotSupported,
    ImagesNotSupported,
    ToolCallingNotSupported,
    Truncated,
    WrongUse,
)
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.provider_events import ContentDelta, Usage, UsageUpdate
from desktop_agent.types.providers import Capabilities, Dialect, ImageLimits, ModelInfo, ModelRequest, ProviderConfig
from tests.fakes.demo_server import DIALECTS, KEY, demo
from tests.fakes.http_server import Loopback, Reply, chunk, sse
from tests.fakes.library import LIMIT, Gate, call, says, sent
from tests.fakes.scripted_provider import ScriptedProvider, Turn


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_every_dialect_over_real_sockets(dialect: Dialect) -> None:
    async with demo() as served:
        address = served.options(dialect).base_url
        async with await Provider.create("demo", KEY, dialect=dialect, base_url=address) as provider:
            assert [model.id for model in await provider.list_models()] == ["demo"]
            response = await provider.chat("hello")
            assert response.is_complete
            assert "demo model" in response.text
            text = await collect_text(provider.stream([Message.user("hi"), Message.assistant("a"), Message.user("?")]))
            assert text
            calls = (await provider.complete("calculate 6 * 7", [calculate()])).tool_uses
            assert [call.input for call in calls] == [{"expression": "6 * 7"}]
            assert (await provider.count_tokens("hello")).tokens > 0
            assert provider.state().request_count >= 3
            assert provider.state().output_tokens > 0


async def test_a_question_is_asked_with_the_configuration() -> None:
    script = ScriptedProvider(Turn(says("ok")), Turn(says("ok")))
    config = ProviderConfig(temperature=0.5)
    provider = await Provider.create("m", provider=script, config=config, system_prompt="Rhyme.")
    await provider.chat("hi")
    assert script.requests[0].model == provider.model == "m"
    assert script.requests[0].config == provider.config == config.model_copy(update={"system_prompt": "Rhyme."})
    request = ModelRequest("other", (Message.user("x"),))
    await provider.complete(request)
    assert script.requests[1] is request
    assert sent(script) == [("user", "x")]


async def test_pictures_of_answers_go_with_the_next_prompt_unless_the_server_takes_them_back() -> None:
    source = Base64Source(media_type="image/png", data=base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(40)).decode())
    own, other = Image(source=source, provider="p", metadata={"s": 1}), Image(source=source)
    history = [
        Message.user("Draw."),
        Message(role=Role.ASSISTANT, blocks=(own, other)),
        Message.user("Red."),
    ]
    script = ScriptedProvider(Turn(says("ok")), pictures=ImageLimits(in_answers_of="p"))
    await (await Provider.create("m", provider=script)).complete(history)
    answer, prompt = script.requests[0].messages[1:]
    assert answer.blocks == (own,)
    assert prompt.blocks == (Text(text="[From your answer above:]"), other, Text(text="Red."))


async def test_errors_are_raised_with_what_they_know() -> None:
    script = ScriptedProvider(Turn(AuthenticationFailed("no", status=401)), Turn(says("a"), Truncated("gone")))
    provider = await Provider.create("m", provider=script)
    with pytest.raises(AuthenticationFailed) as caught:
        await provider.chat("hi")
    assert caught.value.status == 401
    with pytest.raises(Truncated):
        await provider.complete("hi")


async def test_the_state_can_be_read_while_it_streams() -> None:
    gate = Gate()
    script = ScriptedProvider(Turn(says("a"), UsageUpdate(Usage(output_tokens=3)), gate.step, says("b")))
    provider = await Provider.create("m", provider=script)
    texts: list[str] = []

    async def read() -> None:
        texts.extend([event.text async for event in provider.stream("hi") if isinstance(event, ContentDelta)])

    reading = asyncio.create_task(read())
    await gate.until_arrived()
    assert (provider.state().request_count, provider.state().output_tokens) == (1, 3)
    gate.opened.set()
    async with asyncio.timeout(LIMIT):
        await reading
    assert texts == ["a", "b"]


async def test_leaving_a_stream_closes_the_connection() -> None:
    async with demo(speed=2) as served, await Provider.create("demo", base_url=served.base_url) as provider:
        events = provider.stream("tell me a long story")
        async for _ in events:
            break
        await events.aclose()
        await served.until_disconnected()


def picture() -> Message:
    data = BytesIO()
    Pictures.new("RGB", (3, 2), "red").save(data, "PNG")
    return Message.user_with_base64_image("?", base64.b64encode(data.getvalue()).decode(), "image/png")


async def test_what_a_model_lacks_is_a_typed_error_before_the_network() -> None:
    script = ScriptedProvider(models=(ModelInfo("m", capabilities=Capabilities(images=False, tools=False)),))
    provider = await Provider.create("m", provider=script)
    assert (provider.capabilities.images, provider.capabilities.tools) == (False, False)
    with pytest.raises(CachingNotSupported):
        await provider.prompt_cache("hi")
    async with demo() as served, await Provider.create("demo", base_url=served.base_url) as chat:
        with pytest.raises(CachingNotSupported):
            await chat.prompt_cache("hi")
        assert served.states == []


async def test_pictures_and_tools_that_a_model_does_not_take() -> None:
    async with await Provider.create("gpt-3.5-turbo-instruct", base_url="http://127.0.0.1:9/v1") as provider:
        known = ModelInfo(provider.model, capabilities=Capabilities(images=False, tools=False))
        provider._provider._listed[provider.model] = known  # type: ignore[attr-defined]
        with pytest.raises(ImagesNotSupported):
            await provider.chat(picture())
        with pytest.raises(ToolCallingNotSupported):
            await provider.complete("hi", [calculate()])


async def test_a_well_known_model_needs_no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    # What the environment names is not where a key that was given here goes.
    monkeypatch.setenv("DESKTOP_AGENT_BASE_URL", "http://127.0.0.1:9/v1")
    for model, dialect in (("claude-haiku-5-5", "anthropic"), ("gemini-4-argon", "gemini")):
        async with await Provider.create(model, KEY) as provider:
            assert provider._provider.dialect == dialect
            assert "127.0.0.1" not in provider._options.address
            assert provider.capabilities.context_window is not None


async def test_an_unknown_model_needs_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DESKTOP_AGENT_BASE_URL", "http://127.0.0.1:9/v1")
    with pytest.raises(WrongUse, match="not known"):
        await Provider.create("nobody-has-this", KEY)


async def test_a_key_that_is_none_is_not_repeated() -> None:
    with pytest.raises(WrongUse) as caught:
        await Provider.create("m", "sk-planted-é", base_url="http://127.0.0.1:9/v1")
    assert "planted" not in str(caught.value) + caught.value.detail


async def test_the_key_goes_along_and_shows_nowhere() -> None:
    async with Loopback(Reply(sse(chunk({"content": "ok"}), chunk(finish="stop")))) as server:
        async with await Provider.create("m", KEY, base_url=server.url) as provider:
            assert (await provider.chat("hi")).text == "ok"
            assert KEY not in repr(vars(provider)) + repr(provider._options)
        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


async def test_a_lent_provider_is_not_closed_by_its_loops() -> None:
    script = ScriptedProvider(Turn(says("a")), Turn(call()))
    provider = await Provider.create("m", provider=script)
    async for _ in provider.chat_loop([Message.user("hi")]):
        pass
    assert (await provider.complete("hi")).tool_uses


async def test_a_chat_is_awaited_twice_and_after_a_part_was_read() -> None:
    provider = await Provider.create("m", provider=ScriptedProvider(Turn(says("a"), says("b"), call(), says("c"))))
    chat = provider.chat("hi")
    assert await anext(chat) == ContentDelta("a")
    whole = await chat
    assert (whole.text, [use.name for use in whole.tool_uses]) == ("abc", ["add"])
    assert await chat == whole


@pytest.mark.parametrize("face", ["chat", "stream"])
@pytest.mark.parametrize("closers", [1, 3])
async def test_an_answer_is_closed_while_another_task_reads_it(face: str, closers: int) -> None:
    gate = Gate()
    provider = await Provider.create("m", provider=ScriptedProvider(Turn(says("a"), gate.step, says("b"))))
    answer = provider.chat("hi") if face == "chat" else provider.stream("hi")
    texts: list[str] = []

    async def read() -> str:
        texts.extend([event.text async for event in answer if isinstance(event, ContentDelta)])
        await asyncio.sleep(0)  # closing the answer cancels no more than the answer
        return "read"

    reader = asyncio.create_task(read())
    async with asyncio.timeout(LIMIT):
        await gate.until_arrived()
        with pytest.raises(WrongUse):
            await anext(answer)
        await asyncio.gather(*(answer.aclose() for _ in range(closers)))
        assert await reader == "read"
        await answer.aclose()
    assert texts == ["a"]
    assert reader.cancelling() == 0


async def test_who_is_cancelled_while_reading_is_cancelled() -> None:
    gate = Gate()
    provider = await Provider.create("m", provider=ScriptedProvider(Turn(says("a"), gate.step, says("b"))))
    answer = provider.stream("hi")

    async def read() -> None:
        async for _ in answer:
            pass

    reader = asyncio.create_task(read())
    async with asyncio.timeout(LIMIT):
        await gate.until_arrived()
        reader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reader
        await answer.aclose()


@pytest.mark.parametrize(
    ("question", "tools"),
    [
        (ModelRequest("m", (Message.user("x"),)), [calculate()]),
        ([], []),
        ("", []),
        (" \n", []),
        ("x", [print]),
        ([3], []),
        (3, []),
    ],
    ids=["tools beside a request", "no messages", "nothing", "blank", "no tool", "no message", "a number"],
)
async def test_what_is_no_question_is_refused_before_the_network(question: Any, tools: list[Any]) -> None:
    script = ScriptedProvider()
    provider = await Provider.create("m", provider=script)
    with pytest.raises(WrongUse):
        await provider.complete(question, tools)
    with pytest.raises(WrongUse):
        provider.stream(question, tools)
    assert script.requests == []


async def test_a_loop_with_what_is_no_tool_is_refused() -> None:
    provider = await Provider.create("m", provider=ScriptedProvider())
    with pytest.raises(WrongUse):
        provider.chat_loop([Message.user("hi")], [print])  # type: ignore[list-item]
