import asyncio
import json
import logging
import traceback
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import pytest
from pydantic import SecretStr

from desktop_agent.providers.dialects.openai_chat.adapter import OpenAIChat
from desktop_agent.providers.dialects.request_building import account_digest
from desktop_agent.providers.dialects.server_families import FAMILIES
from desktop_agent.providers.transport.http_client import HttpClient
from desktop_agent.types.blocks import ToolUse
from desktop_agent.types.errors import (
    AuthenticationFailed,
    InvalidRequest,
    ProviderError,
    RateLimited,
    TimedOut,
    Truncated,
    UnreadableAnswer,
    WrongUse,
)
from desktop_agent.types.provider_events import (
    AnswerStarted,
    ContentDelta,
    Done,
    ProviderEvent,
    ThinkingBlock,
    ToolArgsDelta,
)
from desktop_agent.types.providers import JsonFormat, ProviderConfig, Timeouts
from tests.fakes.http_server import Loopback, Reply, chunk, sse
from tests.fakes.recordings import ask, simple_request
from tests.frame.patience import PATIENCE

KEY = "sk-very-secret-0123456789"
HELLO = sse(chunk({"content": "hi"}), chunk({}, "stop"))
HELLO_EVENTS = [
    {"type": "content_delta", "text": "hi"},
    {"type": "message_delta", "stop_reason": "end_turn", "raw": "stop"},
    {"type": "done"},
]
JSON = {"content-type": "application/json"}


@pytest.fixture
async def http() -> AsyncIterator[HttpClient]:
    client = HttpClient()
    yield client
    await client.aclose()


def provider(server: Loopback, http: HttpClient, **more: Any) -> OpenAIChat:
    return OpenAIChat(**{"base_url": server.url, "api_key": SecretStr(KEY), "http": http, **more})


def refused(message: str, status: int = 400, **more: Any) -> Reply:
    return Reply(
        json.dumps({"error": {"message": message, "type": "invalid_request_error", **more}}).encode(), status, JSON
    )


async def start_of(stream: AsyncGenerator[ProviderEvent, None]) -> AnswerStarted:
    """Return the first event of the answer."""
    event = await anext(stream)
    assert isinstance(event, AnswerStarted)
    return event


async def test_one_answer(http: HttpClient) -> None:
    usage = {"prompt_tokens": 7, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 2}}
    async with Loopback(
        Reply(sse(chunk({"content": "hi"}), chunk({}, "stop"), {"choices": [], "usage": usage}))
    ) as server:
        adapter = provider(server, http)
        await ask(adapter)
        await ask(adapter)
        (first, _) = server.requests
    assert (first.method, first.path) == ("POST", "/v1/chat/completions")
    assert first.headers["authorization"] == f"Bearer {KEY}"
    assert first.json["stream"] is True
    state = adapter.state
    assert (state.input_tokens, state.output_tokens, state.cached_tokens) == (14, 6, 4)
    assert (state.request_count, state.conversation_turns) == (2, 2)
    assert state.last_request_time is not None
    assert adapter.dialect == "openai-chat"
    assert server.connections == 1


async def test_no_key_is_possible(http: HttpClient) -> None:
    async with Loopback(Reply(HELLO)) as server:
        for key in (None, SecretStr(""), SecretStr("  \n")):
            assert await ask(provider(server, http, api_key=key)) == HELLO_EVENTS
        assert all("authorization" not in request.headers for request in server.requests)
        await ask(provider(server, http, api_key=SecretStr(f" {KEY}\n")))
        assert server.requests[-1].headers["authorization"] == f"Bearer {KEY}"


async def test_azure_names_its_key_otherwise_and_keeps_its_query(http: HttpClient) -> None:
    async with Loopback(Reply(HELLO)) as server:
        adapter = provider(server, http, base_url=server.url + "/?api-version=1", quirks=FAMILIES["azure"])
        assert await ask(adapter) == HELLO_EVENTS
    assert server.requests[0].path == "/v1/chat/completions?api-version=1"
    assert server.requests[0].headers["api-key"] == KEY


@pytest.mark.parametrize(("status", "error_type"), [(401, AuthenticationFailed), (429, RateLimited)])
async def test_errors_before_the_stream_come_from_the_first_step(
    http: HttpClient, status: int, error_type: type[ProviderError]
) -> None:
    async with Loopback(refused("no", status)) as server:
        with pytest.raises(error_type):
            await anext(provider(server, http).stream(simple_request()))
        assert len(server.requests) == 1


async def test_the_answer_is_shown_as_it_comes(http: HttpClient) -> None:
    release = asyncio.Event()
    async with Loopback(Reply([sse(chunk({"content": "one"}), done=False)], hold=release)) as server:
        stream = provider(server, http).stream(simple_request())
        await start_of(stream)
        assert await asyncio.wait_for(anext(stream), PATIENCE) == ContentDelta("one")
        release.set()
        with pytest.raises(Truncated):
            await anext(stream)


async def test_closing_the_generator_closes_the_connection(http: HttpClient) -> None:
    async with Loopback(Reply([HELLO.replace(b"data: [DONE]", b":")], hold=asyncio.Event())) as server:
        stream = provider(server, http).stream(simple_request())
        await anext(stream)
        await stream.aclose()
        await asyncio.wait_for(server.disconnected.wait(), PATIENCE)


@pytest.mark.parametrize("body", [b"", sse(chunk({"content": "hi"}), done=False)])
async def test_cancelling_the_task_closes_the_connection(http: HttpClient, body: bytes) -> None:
    async with Loopback(Reply([body], hold=asyncio.Event())) as server:
        adapter = provider(server, http)
        task = asyncio.create_task(ask(adapter))
        await asyncio.wait_for(server.asked.wait(), PATIENCE)
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(server.disconnected.wait(), PATIENCE)


async def test_done_ends_an_answer_that_the_server_keeps_open(http: HttpClient) -> None:
    async with Loopback(Reply([HELLO], hold=asyncio.Event())) as server:
        assert await asyncio.wait_for(ask(provider(server, http)), PATIENCE) == HELLO_EVENTS
        await asyncio.wait_for(server.disconnected.wait(), PATIENCE)


@pytest.mark.parametrize("reply", [{"cut": True}, {"hold": asyncio.Event()}], ids=["cut", "silent"])
async def test_after_its_finish_reason_an_answer_is_whole(http: HttpClient, reply: dict[str, Any]) -> None:
    body = sse(chunk({"content": "hi"}), chunk({}, "stop"), done=False)
    async with Loopback(Reply([body], **reply)) as server:
        request = simple_request(config=ProviderConfig(timeouts=Timeouts(idle=0.2)))
        assert await ask(provider(server, http), request) == HELLO_EVENTS


async def test_silence_and_cuts_in_the_middle(http: HttpClient) -> None:
    thinking = sse(chunk({"reasoning": "Hm"}), done=False)
    async with Loopback(Reply([thinking], cut=True), Reply([thinking], hold=asyncio.Event())) as server:
        adapter = provider(server, http)
        events = await ask(adapter)
        assert [event["type"] for event in events] == ["thinking_delta", "thinking_block", "error"]
        assert events[-1]["kind"] == "truncated"
        events = await ask(adapter, simple_request(config=ProviderConfig(timeouts=Timeouts(idle=0.1))))
        assert events[-1]["kind"] == "timeout"
        assert adapter.state.conversation_turns == 0


async def test_pages_and_other_things_are_not_models(http: HttpClient) -> None:
    page, json_type = {"content-type": "text/html; charset=utf-8"}, JSON
    replies = [
        Reply(b"<html>Sign in</html>", headers=page),
        Reply(b"<html>{}</html>", headers={"content-type": "text/plain"}),
        Reply(b"Ollama is running", headers={"content-type": "text/plain"}),
        Reply(b'{"status":"ok"}', headers=json_type),
        Reply(b"", headers=json_type),
    ]
    async with Loopback(*replies) as server:
        adapter = provider(server, http)
        kinds = [(await ask(adapter))[-1]["kind"] for _ in replies]
    assert kinds == ["unreadable"] * 4 + ["truncated"]


async def test_a_success_that_is_an_error(http: HttpClient) -> None:
    body = b'{"error":{"code":429,"message":"slow down"}}'
    async with Loopback(Reply(body, headers={**JSON, "X-Generation-Id": "gen-1"})) as server:
        stream = provider(server, http).stream(simple_request())
        assert (await start_of(stream)).origin.request_id == "gen-1"
        with pytest.raises(RateLimited) as caught:
            await anext(stream)
    assert caught.value.request_id == "gen-1"


@pytest.mark.parametrize(
    ("reply", "dropped"),
    [
        (refused("Unknown parameter: 'stream_options'."), {"stream_options"}),
        (refused("Unsupported.", param="temperature"), {"temperature"}),
        (
            Reply(
                b'{"detail":[{"type":"extra_forbidden","loc":["body","top_p"],"msg":"no","input":{"stream":1}}]}',
                422,
                JSON,
            ),
            {"top_p"},
        ),
    ],
)
async def test_an_optional_field_is_dropped_once_and_remembered(
    http: HttpClient, reply: Reply, dropped: set[str]
) -> None:
    request = simple_request(config=ProviderConfig(temperature=0.5, top_p=0.5))
    async with Loopback(reply, Reply(HELLO)) as server:
        adapter = provider(server, http)
        assert await ask(adapter, request) == HELLO_EVENTS
        assert await ask(adapter, request) == HELLO_EVENTS
        first, second, third = [set(received.json) for received in server.requests]
    assert first - second == dropped
    assert third == second


async def test_caching_of_claude_is_asked_of_openrouter_and_counted(http: HttpClient) -> None:
    details = {"cached_tokens": 900, "cache_write_tokens": 50}
    usage = {"prompt_tokens": 1000, "completion_tokens": 5, "cost": 0.002, "prompt_tokens_details": details}
    replies = (
        Reply(sse(chunk({"content": "hi"}), {**chunk({}, "stop"), "usage": usage})),
        refused("cache_control: Extra inputs are not permitted"),
        Reply(HELLO),
    )
    async with Loopback(refused("No such model.", 404), *replies) as server:
        adapter = provider(server, http, quirks=FAMILIES["openrouter"])
        events = await ask(adapter, simple_request(model="anthropic/claude-opus-5"))
        assert server.requests[1].json["cache_control"] == {"type": "ephemeral"}
        assert (events[-2]["cache_read_tokens"], events[-2]["cache_write_tokens"]) == (900, 50)
        assert await ask(adapter, simple_request(model="anthropic/claude-opus-5")) == HELLO_EVENTS
        assert "cache_control" not in server.requests[3].json


async def test_a_model_at_openrouter_is_asked_for_pictures_though_no_models_were_listed(http: HttpClient) -> None:
    data = {"id": "g/painter:free", "architecture": {"output_modalities": ["image", "text"]}, "endpoints": []}
    facts = Reply(json.dumps({"data": data}).encode(), headers=JSON, framing="length")
    # OpenAI's own types know no pictures in answers.
    async with Loopback(facts, Reply(HELLO), Reply(HELLO), judged=False) as server:
        adapter = provider(server, http, quirks=FAMILIES["openrouter"])
        for _ in range(2):
            await ask(adapter, simple_request(model="g/painter:free"))
        first, *questions = server.requests
        assert (first.method, first.path) == ("GET", "/v1/models/g/painter:free/endpoints")
        assert first.headers["authorization"] == f"Bearer {KEY}"
        assert [question.json["modalities"] for question in questions] == [["image", "text"]] * 2


async def test_a_model_at_openrouter_is_asked_about_again_after_a_failure_that_passes(http: HttpClient) -> None:
    data = {"id": "g/painter", "architecture": {"output_modalities": ["image", "text"]}, "endpoints": []}
    facts = Reply(json.dumps({"data": data}).encode(), headers=JSON, framing="length")
    async with Loopback(refused("Overloaded.", 503), Reply(HELLO), facts, Reply(HELLO), judged=False) as server:
        adapter = provider(server, http, quirks=FAMILIES["openrouter"])
        for _ in range(2):
            await ask(adapter, simple_request(model="g/painter"))
        questions = [request.json for request in server.requests if request.method == "POST"]
        assert [question.get("modalities") for question in questions] == [None, ["image", "text"]]


async def test_the_other_name_of_max_tokens(http: HttpClient) -> None:
    message = (
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    )
    async with Loopback(refused(message, param="max_tokens"), Reply(HELLO)) as server:
        assert await ask(provider(server, http), simple_request(config=ProviderConfig(max_tokens=5))) == HELLO_EVENTS
        assert server.requests[1].json["max_completion_tokens"] == 5
        assert "max_tokens" not in server.requests[1].json


async def test_ollama_models_that_do_not_think(http: HttpClient) -> None:
    from desktop_agent.types.providers import ReasoningEffort

    async with Loopback(refused('"llama3" does not support thinking'), Reply(HELLO)) as server:
        adapter = provider(server, http, quirks=FAMILIES["ollama"])
        assert await ask(adapter, simple_request(config=ProviderConfig(reasoning=ReasoningEffort()))) == HELLO_EVENTS
        assert "reasoning_effort" not in server.requests[1].json


async def test_a_refusal_is_asked_again_only_once_and_only_for_a_named_field(http: HttpClient) -> None:
    async with Loopback(refused("stream_options"), refused("something else")) as server:
        with pytest.raises(InvalidRequest, match="something else"):
            await anext(provider(server, http).stream(simple_request()))
        assert len(server.requests) == 2
    async with Loopback(refused("max_tokens is too large")) as server:
        with pytest.raises(InvalidRequest):
            await anext(provider(server, http).stream(simple_request(config=ProviderConfig(max_tokens=9))))
        assert len(server.requests) == 1


async def test_of_several_answers_the_first_is_read(http: HttpClient) -> None:
    def piece(index: int, text: str = "", finish: str | None = None) -> dict[str, Any]:
        return {"choices": [{"index": index, "delta": {"content": text} if text else {}, "finish_reason": finish}]}

    body = sse(piece(1, "B"), piece(0, "h"), piece(1, "b"), piece(1, "", "length"), piece(0, "i"), piece(0, "", "stop"))
    several = simple_request(config=ProviderConfig(extra_options={"n": 2}))
    async with Loopback(Reply(body)) as server:
        assert await ask(provider(server, http), several) == [
            {"type": "content_delta", "text": "h"},
            {"type": "content_delta", "text": "i"},
            *HELLO_EVENTS[1:],
        ]
    # Nothing of a single answer is lost, however a gateway numbers it.
    async with Loopback(Reply(sse(piece(7, "hi"), piece(8, "", "stop")))) as server:
        assert await ask(provider(server, http)) == HELLO_EVENTS


async def test_arguments_are_shown_while_they_come(http: HttpClient) -> None:
    def piece(**fragment: Any) -> dict[str, Any]:
        return chunk({"tool_calls": [{"index": 0, **fragment}]})

    body = sse(
        piece(id="c1", function={"name": "f", "arguments": ""}),
        piece(function={"arguments": '{"a":'}),
        piece(function={"arguments": "1}"}),
        chunk({}, "tool_calls"),
    )
    async with Loopback(Reply(body)) as server:
        events = [event async for event in provider(server, http).stream(simple_request())]
    assert events[1:5] == [
        ToolArgsDelta("c1", "f", ""),
        ToolArgsDelta("c1", "f", '{"a":'),
        ToolArgsDelta("c1", "f", "1}"),
        ToolUse(id="c1", name="f", input={"a": 1}),
    ]
    assert sum(isinstance(event, Done) for event in events) == 1


async def test_thinking_carries_the_family(http: HttpClient) -> None:
    async with Loopback(Reply(sse(chunk({"reasoning": "Hm"}), chunk({}, "stop")))) as server:
        adapter = provider(server, http, quirks=FAMILIES["vllm"])
        blocks = [event async for event in adapter.stream(simple_request()) if isinstance(event, ThinkingBlock)]
    assert blocks == [ThinkingBlock("Hm", "openai-compat/vllm", {"field": "reasoning"})]


async def test_two_streams_at_once(http: HttpClient) -> None:
    async with Loopback(Reply([HELLO[:30], HELLO[30:]])) as server:
        adapter = provider(server, http)
        assert await asyncio.gather(*(ask(adapter) for _ in range(8))) == [HELLO_EVENTS] * 8


async def test_the_key_is_nowhere_to_be_seen(http: HttpClient, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    echo = f'{{"error":{{"message":"Incorrect key {KEY}"}}}}'
    replies = [
        Reply(echo.encode(), 401, JSON),
        Reply(sse(chunk({"content": "hi"}), echo)),
        Reply(b"data: x", cut=True),
        Reply(b"", 302, {"location": "https://elsewhere.example/"}, "length"),
    ]
    texts: list[str] = []
    chained: list[BaseException | None] = []
    async with Loopback(*replies) as server:
        adapter = provider(server, http)
        for _ in replies:
            try:
                async for _event in adapter.stream(simple_request()):
                    pass
            except ProviderError as error:
                # This function's own frame holds the key; the code's frames must not.
                inner = error.with_traceback(error.__traceback__.tb_next if error.__traceback__ else None)
                texts += traceback.TracebackException.from_exception(inner, capture_locals=True).format()
                texts += [error.detail, repr(error), error.message, repr(adapter), repr(vars(adapter))]
                chained += [error.__cause__, error.__context__]
    assert sum("Incorrect key [key]" in text for text in texts) >= 2
    assert chained == [None] * 8
    assert "decoder = " in "".join(texts)
    assert KEY not in "".join(texts)
    assert KEY not in caplog.text


@pytest.mark.parametrize("key", ["sk-\nx", "ключ"])
def test_keys_that_cannot_be_keys(key: str) -> None:
    with pytest.raises(WrongUse):
        OpenAIChat(base_url="http://127.0.0.1:9/v1", api_key=SecretStr(key), http=HttpClient())


async def test_timeouts_are_those_of_the_request(http: HttpClient) -> None:
    async with Loopback(Reply([b": ping\n\n"] * 3, hold=asyncio.Event())) as server:
        request = simple_request(config=ProviderConfig(timeouts=Timeouts(total=0.2)))
        stream = provider(server, http).stream(request)
        await start_of(stream)
        with pytest.raises(TimedOut, match="not finished within"):
            await anext(stream)


async def test_too_large_events_are_refused(http: HttpClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("desktop_agent.providers.transport.sse.SseDecoder.__init__.__defaults__", (1000,))
    async with Loopback(Reply([b"data: " + b"x" * 2000])) as server:
        stream = provider(server, http).stream(simple_request())
        await start_of(stream)
        with pytest.raises(UnreadableAnswer, match="larger than"):
            await anext(stream)


async def test_a_server_that_holds_the_answer_open_after_its_end_is_not_waited_for(
    http: HttpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("desktop_agent.providers.dialects.response_stream.END_TIMEOUT", 0.05)
    reply = Reply(sse(chunk({"content": "hi"}), chunk({}, "stop"), done=False), hold=asyncio.Event())
    async with Loopback(reply) as server:
        async with asyncio.timeout(PATIENCE):
            assert await ask(provider(server, http), simple_request()) == HELLO_EVENTS


async def test_what_had_to_be_asked_differently_is_said_with_the_start(http: HttpClient) -> None:
    request = simple_request(config=ProviderConfig(temperature=0.5, top_k=3))
    async with Loopback(refused("Unsupported.", param="temperature"), Reply(HELLO)) as server:
        adapter = provider(server, http, quirks=FAMILIES["groq"])
        started = [await start_of(adapter.stream(request)) for _ in range(2)]
        account = account_digest(server.url, "m")
    assert [str(adjustment) for adjustment in started[0].adjustments] == [
        "This API has no top_k, so it was left out.",
        "This server does not accept temperature, so the question was sent without.",
    ]
    assert started[0].adjustments == started[1].adjustments
    assert started[0].origin.provider == "openai-compat/groq"
    assert started[0].origin.account == account


async def test_a_format_that_is_refused_is_told_in_words(http: HttpClient) -> None:
    request = simple_request(config=ProviderConfig(response_format=JsonFormat()))
    async with Loopback(refused("no", param="response_format"), Reply(HELLO)) as server:
        started = await start_of(provider(server, http, quirks=FAMILIES["groq"]).stream(request))
        first, second = [received.json for received in server.requests]
    assert first["response_format"] == {"type": "json_object"}
    assert "response_format" not in second
    assert "JSON object" in second["messages"][0]["content"]
    assert len(started.adjustments) == 1


@pytest.mark.parametrize("family", FAMILIES)
async def test_pictures_by_family(family: str, http: HttpClient) -> None:
    limits = OpenAIChat(base_url="http://127.0.0.1:9/v1", http=http, quirks=FAMILIES[family]).picture_limits("m")
    assert not limits.accepts_animated
    assert ("image/gif" in limits.media_types) == limits.accepts_urls == (family != "ollama")
    assert (limits.max_bytes, limits.max_count) == (
        (20_000_000, 500) if family in ("openai", "azure") else (None, None)
    )
