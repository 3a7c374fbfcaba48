"""Whole requests over a real connection."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic import SecretStr

from desktop_agent.conversation.answer_builder import AnswerBuilder
from desktop_agent.providers.catalogue.catalogue import Catalogue
from desktop_agent.providers.dialects.openai_responses.adapter import OpenAIResponses
from desktop_agent.providers.dialects.request_building import account_digest
from desktop_agent.providers.dialects.server_families import FAMILIES
from desktop_agent.providers.provider import make_provider
from desktop_agent.providers.transport.http_client import HttpClient
from desktop_agent.types.blocks import Thinking, ToolUse
from desktop_agent.types.errors import (
    AuthenticationFailed,
    CachingNotSupported,
    ContextLengthExceeded,
    InvalidRequest,
    ProviderError,
    RateLimited,
    Truncated,
    UnreadableAnswer,
    WrongUse,
)
from desktop_agent.types.messages import Message, MessageState, now
from desktop_agent.types.provider_events import AnswerStarted, ContentDelta, Done, ProviderEvent
from desktop_agent.types.providers import ModelRequest, ProviderConfig, TokenCount
from tests.desktop_agent.providers.dialects.openai_responses.events import (
    completed,
    done,
    function_call,
    message,
    reasoning,
    stream,
)
from tests.fakes.http_server import Loopback, Reply, Request
from tests.fakes.recordings import ask, simple_request
from tests.frame.patience import PATIENCE

KEY = "sk-very-secret-0123456789"
JSON = {"content-type": "application/json"}
USAGE = {"input_tokens": 7, "input_tokens_details": {"cached_tokens": 2}, "output_tokens": 3, "total_tokens": 10}
HELLO = stream(done(0, **message("m1", "hi")), completed(message("m1", "hi"), usage=USAGE))
REASONED = (reasoning("rs_1", "Hm."), message("m1", "hi"))
THOUGHT = stream(*(done(place, **item) for place, item in enumerate(REASONED)), completed(*REASONED))


@pytest.fixture
async def http() -> AsyncIterator[HttpClient]:
    client = HttpClient()
    yield client
    await client.aclose()


def provider(server: Loopback, http: HttpClient, family: str = "stranger", **more: Any) -> OpenAIResponses:
    adapter = OpenAIResponses(**{"base_url": server.url, "api_key": SecretStr(KEY), "http": http, **more})
    # OpenAI's server is recognised by its host name, which a loopback server does not have.
    adapter._quirks = FAMILIES[family]  # pyright: ignore[reportPrivateUsage]
    return adapter


def refused(message: str, status: int = 400, **more: Any) -> Reply:
    body = {"error": {"message": message, "type": "invalid_request_error", **more}}
    return Reply(json.dumps(body).encode(), status, JSON)


def answers(value: Any) -> Reply:
    return Reply(json.dumps(value).encode(), 200, JSON)


async def events_of(adapter: OpenAIResponses, request: ModelRequest) -> list[ProviderEvent]:
    return [event async for event in adapter.stream(request)]


def started(events: list[ProviderEvent]) -> AnswerStarted:
    assert isinstance(events[0], AnswerStarted)
    return events[0]


def adjustments_in(events: list[ProviderEvent]) -> str:
    return " ".join(map(str, started(events).adjustments))


async def answer_of(adapter: OpenAIResponses, *messages: Message, model: str = "m") -> Message:
    builder = AnswerBuilder("a", model)
    async for event in adapter.stream(ModelRequest(model, messages)):
        builder.feed(event, now())
    return builder.message(MessageState.COMPLETE, now())


def input_types(server: Loopback) -> list[list[str]]:
    return [[item["type"] for item in request.json["input"]] for request in server.requests]


async def test_one_answer(http: HttpClient) -> None:
    reply = Reply(HELLO, headers={"content-type": "text/event-stream", "x-request-id": "req_1"})
    async with Loopback(reply) as server:
        adapter = provider(server, http)
        events = await events_of(adapter, simple_request())
        first = server.requests[0]
        account = account_digest(server.url, "m")
    origin = started(events).origin
    assert (origin.provider, origin.request_id, origin.account) == ("openai-responses", "req_1", account)
    assert len(origin.prefix) == 32
    assert [event.text for event in events if isinstance(event, ContentDelta)] == ["hi"]
    assert isinstance(events[-1], Done)
    assert (first.method, first.path) == ("POST", "/v1/responses")
    assert first.headers["authorization"] == f"Bearer {KEY}"
    assert first.json["store"] is False
    state = adapter.state
    assert (state.input_tokens, state.output_tokens, state.cached_tokens) == (7, 3, 2)
    assert (state.request_count, state.conversation_turns) == (1, 1)


async def test_made_by_its_name(http: HttpClient) -> None:
    async with Loopback(Reply(HELLO)) as server:
        adapter = make_provider("openai-responses", server.url, None, http)
        assert adapter.dialect == "openai-responses"
        await ask(adapter)
        assert "authorization" not in server.requests[0].headers
        await adapter.aclose()


async def test_a_conversation_with_reasoning_and_a_call(http: HttpClient) -> None:
    call = function_call("fc1", "call_1", "f", '{ "a": 1 }')
    items = (reasoning("rs_1", "Hm."), call)
    first = stream(*(done(place, **item) for place, item in enumerate(items)), completed(*items))
    async with Loopback(Reply(first), Reply(HELLO)) as server:
        adapter = provider(server, http)
        question = Message.user("hi")
        answer = await answer_of(adapter, question)
        assert [type(block) for block in answer.blocks] == [Thinking, ToolUse]
        again = await answer_of(adapter, question, answer)
        assert server.requests[1].json["input"][1:3] == list(items)
        # What the model of the second answer had read includes the first one's reasoning.
        assert answer.origin is not None
        assert again.origin is not None
        assert again.origin.prefix != answer.origin.prefix
        await answer_of(adapter, question, answer, Message.user("more"))
        await answer_of(adapter, Message.user("edited"), answer, Message.user("more"))
    assert ["reasoning" in types for types in input_types(server)] == [False, True, True, False]


async def test_another_model_gets_no_reasoning(http: HttpClient) -> None:
    async with Loopback(Reply(THOUGHT)) as server:
        adapter = provider(server, http)
        answer = await answer_of(adapter, Message.user("hi"))
        await answer_of(adapter, Message.user("hi"), answer, Message.user("?"))
        await answer_of(adapter, Message.user("hi"), answer, Message.user("?"), model="n")
    assert ["reasoning" in types for types in input_types(server)] == [False, True, False]


async def test_a_field_that_is_refused_is_dropped_once_and_for_all(http: HttpClient) -> None:
    async with Loopback(refused("unknown field: store"), Reply(HELLO)) as server:
        adapter = provider(server, http)
        events = await events_of(adapter, simple_request())
        await ask(adapter)
    assert "may store the conversation" in adjustments_in(events)
    assert ["store" in request.json for request in server.requests] == [True, False, False]


async def test_a_summary_that_needs_a_verified_organization(http: HttpClient) -> None:
    error = refused("must be verified", param="reasoning.summary", code="unsupported_value")
    async with Loopback(error, Reply(HELLO)) as server:
        events = await events_of(provider(server, http, "openai"), simple_request(model="gpt-6-sol"))
    assert "reasoning.summary" in adjustments_in(events)
    assert [request.json.get("reasoning") for request in server.requests] == [{"summary": "auto"}, None]


async def test_only_one_attempt_without_fields(http: HttpClient) -> None:
    async with Loopback(refused("unknown: store"), refused("unknown: stream_options")) as server:
        with pytest.raises(InvalidRequest):
            await events_of(provider(server, http, "openai"), simple_request())
    assert len(server.requests) == 2


async def test_reasoning_that_is_refused_is_left_out_from_then_on(http: HttpClient) -> None:
    refusing = True

    def choose(request: Request) -> Reply:
        types = [item["type"] for item in request.json["input"]]
        return refused("Invalid encrypted content") if refusing and "reasoning" in types else Reply(THOUGHT)

    async with Loopback(choose=choose) as server:
        adapter = provider(server, http)
        question, more = Message.user("hi"), Message.user("?")
        answer = await answer_of(adapter, question)
        events = await events_of(adapter, ModelRequest("m", (question, answer, more)))
        assert "earlier reasoning" in adjustments_in(events)
        refusing = False
        await answer_of(adapter, question, answer, more)
    assert ["reasoning" in types for types in input_types(server)] == [False, True, False, False]


async def test_a_request_that_is_refused_without_reasoning_too(http: HttpClient) -> None:
    async with Loopback(Reply(THOUGHT), refused("no"), refused("still no")) as server:
        adapter = provider(server, http)
        answer = await answer_of(adapter, Message.user("hi"))
        with pytest.raises(InvalidRequest, match="still no"):
            await answer_of(adapter, Message.user("hi"), answer, Message.user("?"))
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("reply", "error_type"),
    [
        (refused("no", 401), AuthenticationFailed),
        (refused("no", 429, code="rate_limit_exceeded"), RateLimited),
        (refused("no", code="context_length_exceeded"), ContextLengthExceeded),
        (refused("no"), InvalidRequest),
        (Reply(b"<html>", headers={"content-type": "text/html"}), UnreadableAnswer),
        (Reply(b"hello"), UnreadableAnswer),
        (Reply(HELLO[:80]), ProviderError),
        (Reply(stream(done(0, **message("m1", "hi")))), Truncated),
    ],
)
async def test_what_goes_wrong(reply: Reply, error_type: type[ProviderError], http: HttpClient) -> None:
    async with Loopback(reply) as server:
        with pytest.raises(error_type):
            await events_of(provider(server, http), simple_request())
        assert len(server.requests) == 1


async def test_the_key_is_taken_out_of_an_error_in_the_stream(http: HttpClient) -> None:
    error = {"type": "error", "error": {"message": f"bad key {KEY}", "code": "invalid_api_key"}}
    async with Loopback(Reply(stream(error))) as server:
        with pytest.raises(AuthenticationFailed) as caught:
            await events_of(provider(server, http), simple_request())
    assert KEY not in str(caught.value) + caught.value.detail


async def test_leaving_closes_the_connection(http: HttpClient) -> None:
    hold = asyncio.Event()
    begin = stream(done(0, **message("m1", "hi")))
    async with Loopback(Reply(begin, hold=hold)) as server:
        events = provider(server, http).stream(simple_request())
        await anext(events)
        await anext(events)
        await events.aclose()
        async with asyncio.timeout(PATIENCE):
            await server.disconnected.wait()


async def test_a_whole_answer_in_place_of_a_stream(http: HttpClient) -> None:
    response = {"id": "r", "object": "response", "status": "completed", "output": [message("m1", "hi")], "error": None}
    async with Loopback(answers(response)) as server:
        events = await events_of(provider(server, http), simple_request())
    assert [event.text for event in events if isinstance(event, ContentDelta)] == ["hi"]


async def test_tags_of_local_models_are_thinking(http: HttpClient) -> None:
    item = message("m1", "<think>hm</think>hi")
    async with Loopback(Reply(stream(done(0, **item), completed(item)))) as server:
        events = await ask(provider(server, http, "vllm"))
    assert [event["type"] for event in events] == [
        "thinking_delta",
        "thinking_block",
        "content_delta",
        "message_delta",
        "done",
    ]


async def test_models_are_listed(http: HttpClient) -> None:
    listing = {"object": "list", "data": [{"id": "gpt-6-sol", "object": "model", "owned_by": "system"}]}
    async with Loopback(answers(listing)) as server:
        adapter = provider(server, http, "openai", catalogue=Catalogue())
        (model,) = await adapter.list_models()
        assert server.requests[0].path == "/v1/models"
    assert model.id == "gpt-6-sol"
    assert adapter.model_info("gpt-6-sol") is model
    assert adapter.model_info("other").id == "other"


async def test_tokens_are_counted_by_openai(http: HttpClient) -> None:
    async with Loopback(answers({"object": "response.input_tokens", "input_tokens": 11})) as server:
        adapter = provider(server, http, "openai")
        assert await adapter.count_tokens(simple_request()) == TokenCount(11)
        request = server.requests[0]
    assert request.path == "/v1/responses/input_tokens"
    assert not {"stream", "store"} & request.json.keys()


@pytest.mark.parametrize(
    "reply", [refused("no such thing", 404), refused("no"), answers({}), answers({"input_tokens": "x"}), answers([])]
)
async def test_tokens_are_estimated_where_they_are_not_counted(reply: Reply, http: HttpClient) -> None:
    async with Loopback(reply) as server:
        assert (await provider(server, http, "openai").count_tokens(simple_request())).margin > 0


async def test_strangers_are_not_asked_to_count(http: HttpClient) -> None:
    async with Loopback(refused("no", 401)) as server:
        assert (await provider(server, http).count_tokens(simple_request())).margin > 0
        assert server.requests == []
        with pytest.raises(AuthenticationFailed):
            await provider(server, http, "openai").count_tokens(simple_request())


async def test_prompts_cannot_be_cached_ahead(http: HttpClient) -> None:
    async with Loopback(Reply(HELLO)) as server:
        with pytest.raises(CachingNotSupported):
            await provider(server, http).prompt_cache(simple_request())


async def test_pictures(http: HttpClient) -> None:
    async with Loopback(Reply(HELLO)) as server:
        limits = provider(server, http, "openai").picture_limits("gpt-6-sol")
        assert (limits.max_bytes, limits.max_count, limits.accepts_animated) == (20_000_000, 500, False)
        assert "image/gif" in limits.media_types
        local = provider(server, http, "ollama").picture_limits("m")
        assert (local.max_bytes, local.accepts_urls) == (None, False)
        assert "image/gif" not in local.media_types


async def test_addresses_and_keys_that_cannot_be(http: HttpClient) -> None:
    for wrong in ({"base_url": "nowhere"}, {"api_key": SecretStr("ключ")}):
        with pytest.raises(WrongUse):
            OpenAIResponses(**{"base_url": "http://127.0.0.1:1/v1", "http": http, **wrong})  # type: ignore[arg-type]
    assert OpenAIResponses(base_url="http://127.0.0.1:1/v1", api_key=SecretStr(" "), http=http).state.request_count == 0


async def test_azure_wants_its_key_elsewhere(http: HttpClient) -> None:
    adapter = OpenAIResponses(base_url="https://x.openai.azure.com/openai/v1", api_key=SecretStr(KEY), http=http)
    secret = adapter._secret  # pyright: ignore[reportPrivateUsage]
    assert secret is not None
    assert secret.name == "api-key"


async def test_the_wishes_of_a_conversation_reach_openai(http: HttpClient) -> None:
    config = ProviderConfig(system_prompt="Be kind.", temperature=0.5)
    async with Loopback(Reply(HELLO)) as server:
        adapter = provider(server, http, "openai")
        events = await events_of(adapter, simple_request(model="gpt-6-sol", config=config, conversation_id="conv"))
        body = server.requests[0].json
    assert (body["instructions"], body["prompt_cache_key"]) == ("Be kind.", "conv")
    assert "temperature" in adjustments_in(events)
