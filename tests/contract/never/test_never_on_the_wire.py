"""Section What never happens: between this program and the servers, over real sockets."""

import asyncio
import base64
import json
import logging
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import BytesIO
from typing import Any

import pytest
from PIL import Image as Pictures

from desktop_agent.api.client import Client
from desktop_agent.api.provider import Provider
from desktop_agent.types.blocks import Text, ToolResult, ToolUse
from desktop_agent.types.errors import AgentError, AuthenticationFailed, TimedOut
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.options import AgentOptions
from desktop_agent.types.provider_events import ContentDelta
from desktop_agent.types.providers import Dialect, ProviderConfig, Timeouts
from tests.contract.vendors import MODELS, answers_like, history_of
from tests.fakes.demo_server import DIALECTS
from tests.fakes.http_server import Loopback, Reply, Request, chunk, sse
from tests.fakes.library import LIMIT, adder

KEY = "sk-planted-0123456789abcdef"
WHOLE = sse(chunk({"content": "Hello"}), chunk(finish="stop"))


def picture() -> str:
    data = BytesIO()
    Pictures.new("RGB", (3, 2), "red").save(data, "PNG")
    return base64.b64encode(data.getvalue()).decode()


def talk() -> tuple[Message, ...]:
    use = ToolUse(id="call_123", name="add", input={"a": 41, "b": 1})
    result = ToolResult(tool_use_id="call_123", content=(Text(text="the-sum-is-42"),))
    return (
        Message.user_with_base64_image("look-at-this", picture(), "image/png"),
        Message(role=Role.ASSISTANT, blocks=(Text(text="let-me-add"), use)),
        Message.tool_results([result]),
        Message.user("and-now"),
    )


def made(dialect: Dialect, server: Loopback, **values: Any) -> Any:
    root = server.url if dialect == "openai-chat" else server.root
    return Provider.create(MODELS[dialect], KEY, dialect=dialect, base_url=root, **values)


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_never_lost_on_the_wire__texts_calls_results_and_pictures(dialect: Dialect) -> None:
    async with Loopback(choose=answers_like(dialect, "text")) as server, await made(dialect, server) as provider:
        await provider.complete(talk())
    body = server.requests[-1].body.decode()
    for part in ("look-at-this", picture(), "let-me-add", "41", "the-sum-is-42", "and-now"):
        assert part in body, part
    assert body.index("look-at-this") < body.index("let-me-add") < body.index("the-sum-is-42") < body.index("and-now")


async def test_never_lost_on_the_wire__thinking_with_its_state() -> None:
    async with Loopback(choose=answers_like("anthropic", "thinking_text")) as server:
        history = await history_of("anthropic", "thinking_text", server)
        async with Client(model=MODELS["anthropic"], dialect="anthropic", base_url=server.root, api_key=KEY) as client:
            await client.edit_history(history)
            await client.complete("and now?")
    thoughts = [block for message in server.requests[-1].json["messages"] for block in message["content"]]
    assert any(block["type"] == "thinking" and block["signature"] for block in thoughts)


async def test_never_empty_arguments_refused__they_are_an_empty_object() -> None:
    for arguments in ("", "{}", None):
        function = {"name": "add"} | ({} if arguments is None else {"arguments": arguments})
        uses = sse(
            chunk({"tool_calls": [{"index": 0, "id": "c", "type": "function", "function": function}]}),
            chunk(finish="tool_calls"),
        )
        async with Loopback(Reply(uses)) as server, await Provider.create("m", base_url=server.url) as provider:
            (use,) = (await provider.complete("hi", [adder()])).tool_uses
        assert (use.input, use.malformed) == ({}, None)


async def test_never_a_batch_failed_by_one__on_the_wire() -> None:
    def function(index: int, arguments: str) -> dict[str, Any]:
        return {
            "index": index,
            "id": f"c{index}",
            "type": "function",
            "function": {"name": "add", "arguments": arguments},
        }

    uses = [function(0, '{"a": 1, "b": 2}'), function(1, '{"a": oops'), function(2, '{"a": 3, "b": 4}')]
    first = Reply(sse(chunk({"tool_calls": uses}), chunk(finish="tool_calls")))
    replies = iter([first, Reply(WHOLE)])
    async with Loopback(choose=lambda _: next(replies)) as server:
        options = AgentOptions(model="m", base_url=server.url, tools=(adder(),), auto_execute_tools=True)
        async with Client(options) as client:
            response = await client.complete("go")
    results = {block.tool_use_id: str(block.outcome) for block in response.blocks if isinstance(block, ToolResult)}
    assert results == {"c0": "succeeded", "c1": "failed", "c2": "succeeded"}
    assert response.text == "Hello"


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


@asynccontextmanager
async def slow_server(pieces: int, every: float) -> AsyncIterator[str]:
    """It answers one word every so many seconds."""

    tasks: set[asyncio.Task[Any]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.current_task())  # type: ignore[arg-type]
        await reader.readuntil(b"\r\n\r\n")
        writer.write(HEAD)
        words = [sse(chunk({"content": "w"}), done=False) for _ in range(pieces)]
        try:
            for word in [*words, sse(chunk(finish="stop"))]:
                writer.write(b"%x\r\n%s\r\n" % (len(word), word))
                await writer.drain()
                await asyncio.sleep(every)
            writer.write(b"0\r\n\r\n")
            await writer.drain()
        except (ConnectionError, asyncio.CancelledError):
            pass
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks)


@pytest.mark.parametrize(
    ("timeouts", "every", "ends"),
    [
        (Timeouts(connect=0.2, idle=0.5), 0.06, True),  # longer than to connect, never silent for long
        (Timeouts(connect=5, idle=0.05), 0.5, False),
        (Timeouts(connect=5, idle=5, total=0.2), 0.06, False),
    ],
)
async def test_never_one_timeout_for_all__connecting_silence_and_the_whole(
    timeouts: Timeouts, every: float, ends: bool
) -> None:
    config = ProviderConfig(timeouts=timeouts)
    async with slow_server(8, every) as url, await Provider.create("m", base_url=url, config=config) as provider:
        if ends:
            assert (await provider.chat("hi")).text == "w" * 8
        else:
            with pytest.raises(TimedOut):
                await provider.chat("hi")


SAID = "Zürich 😀 señor — Ελλάδα"


@pytest.mark.parametrize("size", [1, 2, 3, 5, 64, 100_000])
async def test_never_one_line_for_one_chunk__nor_one_chunk_for_one_line(size: int) -> None:
    body = sse(*(chunk({"content": letter}) for letter in SAID), chunk(finish="stop"))
    pieces = [body[index : index + size] for index in range(0, len(body), size)]
    async with Loopback(Reply(pieces)) as server, await Provider.create("m", base_url=server.url) as provider:
        events = [event async for event in provider.stream("hi")]
    assert [event.text for event in events if isinstance(event, ContentDelta)] == list(SAID)


async def test_never_characters_cut_in_two__whatever_the_network_cuts() -> None:
    plain = json.dumps(
        {"choices": [{"index": 0, "delta": {"content": SAID}, "finish_reason": None}]}, ensure_ascii=False
    )
    body = f"data: {plain}\n\n".encode() + sse(chunk(finish="stop"))
    for index in range(1, len(body) - 1, 7):
        cut = Reply([body[:index], body[index : index + 1], body[index + 1 :]])
        async with Loopback(cut) as server, await Provider.create("m", base_url=server.url) as provider:
            assert (await provider.chat("hi")).text == SAID


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_never_temperature_unasked__in_any_dialect(dialect: Dialect) -> None:
    async with Loopback(choose=answers_like(dialect, "text")) as server, await made(dialect, server) as provider:
        await provider.chat("hi")
    body = server.requests[-1].body.decode().lower()
    assert not [name for name in ("temperature", "top_p", "topp", "top_k", "topk") if f'"{name}"' in body]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_never_credentials_to_another_host__over_a_redirect(dialect: Dialect, status: int) -> None:
    async with Loopback(choose=answers_like(dialect, "text"), judged=False) as other:
        elsewhere = f"http://localhost:{other.port}"

        def choose(request: Request) -> Reply:
            return Reply(b"", status, {"location": elsewhere + request.path}, "length")

        async with Loopback(choose=choose, judged=False) as server, await made(dialect, server) as provider:
            with pytest.raises(AgentError) as caught:
                await provider.chat("hi")
            assert KEY in str(server.requests[0].headers) + server.requests[0].path
        assert KEY not in str(caught.value) + caught.value.detail
    for request in other.requests:
        assert KEY not in str(request.headers) + request.path + request.body.decode()


async def test_never_an_unbounded_error_body__neither_in_memory_nor_in_the_message() -> None:
    endless = [b"x" * 65_536] * 2_000  # 130 MB, if anybody reads them
    reply = Reply(endless, 500, {"content-type": "text/plain"})
    async with (
        Loopback(reply, judged=False) as server,
        await Provider.create("m", base_url=server.url) as provider,
    ):
        with pytest.raises(AgentError) as caught:
            await provider.chat("hi")
        assert len(str(caught.value)) + len(caught.value.detail) < 10_000
        async with asyncio.timeout(LIMIT):
            await server.disconnected.wait()  # it was not read to its end


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("request_id", ["r-1", f"r-{KEY}"], ids=["body", "header"])
async def test_never_keys_in_words__not_in_logs_tracebacks_and_repr_though_a_server_echoes_them(
    dialect: Dialect, request_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    echo = json.dumps({"error": {"message": f"wrong key {KEY} in header Bearer {KEY}", "code": 401, "type": "auth"}})
    refusal = Reply(echo.encode(), 401, {"content-type": "application/json", "x-request-id": request_id}, "length")
    async with Loopback(refusal) as server, await made(dialect, server) as provider:
        with pytest.raises(AuthenticationFailed) as caught:
            await provider.chat("hi")
        error = caught.value
        shown = [repr(provider), repr(vars(provider)), repr(provider._options), provider._options.model_dump_json()]
    texts = [str(error), repr(error), error.detail, str(error.remedy), repr(vars(error))]
    trace = "".join(traceback.format_exception(error))
    for words in (*shown, *texts, trace, caplog.text):
        assert KEY not in words


async def test_never_keys_in_words__not_what_a_server_echoes_in_the_middle_of_an_answer() -> None:
    error = {"error": {"message": f"the key {KEY} has expired", "code": "auth", "type": "auth"}}
    body = sse(chunk({"content": f"Your key is {KEY}. "}), error, done=False)
    async with Loopback(Reply(body)) as server, Client(model="m", base_url=server.url, api_key=KEY) as client:
        with pytest.raises(AgentError) as caught:
            await client.complete("hi")
        # What the model says is its own: rewriting it would change texts and arguments that hold the same characters.
        words = [str(caught.value), caught.value.detail, repr(vars(caught.value)), repr(client)]
        words.append("".join(traceback.format_exception(caught.value)))
    assert [word for word in words if KEY in word] == []
