import asyncio
import json
from collections.abc import AsyncGenerator
from datetime import timedelta
from typing import Any

import pytest
from pydantic import SecretStr

from desktop_agent.conversation.answer_builder import AnswerBuilder
from desktop_agent.providers.catalogue.catalogue import ESTIMATE_MARGIN
from desktop_agent.providers.dialects.anthropic.adapter import Anthropic
from desktop_agent.providers.dialects.request_building import account_digest
from desktop_agent.providers.transport.http_client import HttpClient
from desktop_agent.types.errors import (
    AuthenticationFailed,
    CachingNotSupported,
    InvalidRequest,
    NotFound,
    ProviderError,
    TooLarge,
    UnreadableAnswer,
    WrongUse,
)
from desktop_agent.types.messages import Message, MessageState, now
from desktop_agent.types.provider_events import AnswerStarted, UsageUpdate
from desktop_agent.types.providers import ModelRequest, PromptCaching, ReasoningEffort
from tests.desktop_agent.providers.dialects.anthropic.bodies import (
    TABLE,
    answer,
    call,
    make_request,
    refusals,
    result,
    results,
    thought,
)
from tests.fakes.http_server import Loopback, Reply, Request
from tests.fakes.recordings import ask
from tests.frame.patience import PATIENCE

KEY = "sk-ant-0123456789abcdef"
JSON = {"content-type": "application/json"}
MODEL = "claude-opus-5"
USAGE = {"input_tokens": 10, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 1000, "output_tokens": 1}
STREAM = [
    {"type": "message_start", "message": {"id": "msg_1", "content": [], "usage": USAGE}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hi"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}},
    {"type": "message_stop"},
]


def sse(*events: dict[str, Any]) -> bytes:
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)


HELLO = sse(*STREAM)


def refused(message: str = "no", status: int = 400, error_type: str = "invalid_request_error") -> Reply:
    body = {"type": "error", "error": {"type": error_type, "message": message}, "request_id": "req_1"}
    return Reply(json.dumps(body).encode(), status, JSON)


@pytest.fixture
async def http() -> AsyncGenerator[HttpClient, None]:
    client = HttpClient()
    yield client
    await client.aclose()


def provider(server: Loopback, http: HttpClient, key: str | None = None, **more: Any) -> Anthropic:
    secret = SecretStr(key) if key is not None else None
    return Anthropic(**{"base_url": server.url, "api_key": secret, "http": http, "catalogue": TABLE, **more})


async def test_where_and_how_it_asks(http: HttpClient) -> None:
    async with Loopback(Reply(HELLO)) as server:
        for base in (server.root, f"{server.root}/", server.url, f"{server.url}/", f"{server.url}/messages"):
            await ask(provider(server, http, f" {KEY}\n", base_url=base))
        await ask(provider(server, http, "", base_url=f"{server.root}/anthropic/v1"))
    assert [request.path for request in server.requests] == [*["/v1/messages"] * 5, "/anthropic/v1/messages"]
    first, *_, last = (request.headers for request in server.requests)
    assert first["x-api-key"] == KEY
    assert "authorization" not in first
    assert first["anthropic-version"] == "2026-10-21"
    assert first["content-type"] == "application/json"
    assert "anthropic-beta" not in first
    assert "x-api-key" not in last


def with_bearer_only(request: Request) -> Reply:
    """Accept the key only as a bearer token, as vLLM, OpenRouter and Ollama's cloud do in this dialect."""
    if request.headers.get("authorization") != f"Bearer {KEY}":
        return refused("Unauthorized", 401, "authentication_error")
    if request.path.endswith("count_tokens"):
        return Reply(b'{"input_tokens": 7}', headers=JSON)
    if request.method == "GET":
        return Reply(b'{"data": [{"id": "m"}], "has_more": false}', headers=JSON)
    return Reply(HELLO)


async def test_a_key_that_is_refused_in_one_header_goes_in_the_other(http: HttpClient) -> None:
    async with Loopback(choose=with_bearer_only) as server:
        adapter = provider(server, http, KEY)
        assert (await ask(adapter))[-1] == {"type": "done"}
        assert (await adapter.count_tokens(make_request())).tokens == 7
        headers = [request.headers for request in server.requests]
        # Once the header is known, the other is not tried again; never are both sent.
        assert [("x-api-key" in header, "authorization" in header) for header in headers] == [
            (True, False),
            (False, True),
            (False, True),
        ]
        assert [model.id for model in await provider(server, http, KEY).list_models()] == ["m"]


async def test_a_wrong_key_is_refused_in_either_header(http: HttpClient) -> None:
    async with Loopback(choose=with_bearer_only) as server:
        adapter = provider(server, http, "sk-ant-wrong-0123456789")
        for _ in range(2):
            with pytest.raises(AuthenticationFailed):
                await anext(adapter.stream(make_request()))
        assert ["x-api-key" in request.headers for request in server.requests] == [True, False, True, False]
        with pytest.raises(AuthenticationFailed):
            await anext(provider(server, http).stream(make_request()))
        assert len(server.requests) == 5


@pytest.mark.parametrize("state", [MessageState.COMPLETE, MessageState.INTERRUPTED])
async def test_thinking_without_a_signature_goes_back_to_the_server_that_gives_none(
    http: HttpClient, state: MessageState
) -> None:
    """llama.cpp signs nothing, and lets its model read its thinking again between calls.

    Not that of an answer that was cut: another server may have been about to sign it, and refuses it unsigned.
    """
    thinking = {"type": "thinking", "thinking": "", "signature": ""}
    calling = sse(
        STREAM[0],
        {"type": "content_block_start", "index": 0, "content_block": thinking},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Add."}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": ""}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "t1", "name": "now"}},
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
    )

    async with Loopback(Reply(calling), Reply(HELLO)) as server:
        adapter = provider(server, http)
        builder = AnswerBuilder("m", "qwen")
        async for event in adapter.stream(make_request(Message.user("When?"), model="qwen")):
            builder.feed(event, now())
        message = builder.message(state, now())
        await ask(adapter, make_request(Message.user("When?"), message, results(result("t1")), model="qwen"))
        messages = server.requests[-1].json["messages"]
    thinking_sent = (
        [{"type": "thinking", "thinking": "Add.", "signature": ""}] if state is MessageState.COMPLETE else []
    )
    assert messages[1]["content"] == [
        *thinking_sent,
        {"type": "tool_use", "id": "t1", "name": "now", "input": {}},
    ]


async def test_betas_travel_in_their_header(http: HttpClient) -> None:
    async with Loopback(Reply(HELLO)) as server:
        await ask(provider(server, http), make_request(extra_options={"betas": ["a", "b"]}))
    assert server.requests[0].headers["anthropic-beta"] == "a,b"


async def test_where_an_answer_came_from_and_what_it_cost(http: HttpClient) -> None:
    headers = {"content-type": "text/event-stream", "request-id": "req_1"}
    async with Loopback(Reply(HELLO, headers=headers)) as server:
        adapter, root = provider(server, http), server.root
        events = [event async for event in adapter.stream(make_request(temperature=0.5))]
        long = [event async for event in adapter.stream(make_request(caching=PromptCaching(lifetime="long")))]
    started = events[0]
    assert isinstance(started, AnswerStarted)
    assert (started.origin.provider, started.origin.account) == ("anthropic", account_digest(root, MODEL))
    assert (started.origin.request_id, len(started.origin.prefix)) == ("req_1", 32)
    assert len(started.adjustments) == 1
    costs = [event.usage.cost for event in (*events, *long) if isinstance(event, UsageUpdate)]
    assert costs == [pytest.approx((10 * 5 + 100 * 0.5 + 1000 * rate + 5 * 25) / 1e6) for rate in (6.25, 10)]
    assert (adapter.state.input_tokens, adapter.state.cached_tokens, adapter.state.conversation_turns) == (2220, 200, 2)


async def test_the_account_is_the_same_with_and_without_v1(http: HttpClient) -> None:
    async with Loopback(Reply(HELLO)) as server:
        accounts: set[str] = set()
        for base in (server.root, server.url):
            event = await anext(stream := provider(server, http, base_url=base).stream(make_request()))
            assert isinstance(event, AnswerStarted)
            accounts.add(event.origin.account)
            await stream.aclose()
    assert len(accounts) == 1


def history(*tail: Message, root: str) -> tuple[Message, ...]:
    mine = answer(thought(), "x").model_copy()
    assert mine.origin is not None
    origin = mine.origin.model_copy(update={"account": account_digest(root, MODEL)})
    turns = (Message.user("a"), mine, Message.user("b"), answer(thought(), call()), results(result()))
    owned = [
        message.model_copy(update={"origin": origin}) if message.origin is not None else message for message in turns
    ]
    return (*owned, *tail)


def thoughts(body: Any) -> list[bool]:
    return [any(block["type"] == "thinking" for block in message["content"]) for message in body["messages"]]


async def test_a_refusal_of_older_thinking_is_asked_once_more_without_it(http: HttpClient) -> None:
    async with Loopback(refused("bound"), Reply(HELLO)) as server:
        events = [event async for event in provider(server, http).stream(make_request(*history(root=server.root)))]
    first, second = (request.json for request in server.requests)
    assert thoughts(first) == [False, True, False, True, False]
    assert thoughts(second) == [False, False, False, True, False]
    assert isinstance(events[0], AnswerStarted)
    assert len(events[0].adjustments) == 1
    assert refusals(second) == []


async def test_only_once_only_for_400_and_only_with_older_thinking(http: HttpClient) -> None:
    async with Loopback(refused("bound"), refused("other")) as server:
        with pytest.raises(InvalidRequest, match="other"):
            await anext(provider(server, http).stream(make_request(*history(root=server.root))))
        assert len(server.requests) == 2
    async with Loopback(refused(status=422)) as server:
        with pytest.raises(InvalidRequest):
            await anext(provider(server, http).stream(make_request(*history(root=server.root))))
        assert len(server.requests) == 1
    async with Loopback(refused()) as server:
        with pytest.raises(InvalidRequest):
            await anext(provider(server, http).stream(make_request(*history(root=server.root)[2:])))
        assert len(server.requests) == 1


async def test_a_conversation_keeps_what_binds(http: HttpClient) -> None:
    """To a model that binds its thinking to the prefix, thinking is sent back while nothing before it changed."""
    thinking = [
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "thinking", "thinking": "", "signature": ""},
        },
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "c2ln"}},
        {"type": "content_block_stop", "index": 0},
    ]
    stream = sse(STREAM[0], *thinking, *({**item, "index": 1} if "index" in item else item for item in STREAM[1:]))
    model = "claude-fable-5-2"
    async with Loopback(Reply(stream)) as server:
        adapter = provider(server, http)
        conversation: list[Message] = []
        for prompt in ("a", "b", "c"):
            conversation.append(Message.user(prompt))
            builder = AnswerBuilder("m", model)
            async for event in adapter.stream(make_request(*conversation, model=model, system_prompt="S")):
                builder.feed(event, now())
            conversation.append(builder.message(MessageState.COMPLETE, now()))
    assert [thoughts(item.json).count(True) for item in server.requests] == [0, 1, 2]


async def test_the_key_is_taken_out_of_what_servers_echo(http: HttpClient) -> None:
    echo = {"type": "error", "error": {"type": "api_error", "message": f"bad {KEY}"}}
    async with Loopback(refused(KEY, 401, "authentication_error"), Reply(sse(STREAM[0], echo))) as server:
        adapter = provider(server, http, KEY)
        for _ in range(2):
            with pytest.raises(ProviderError) as caught:
                async for _event in adapter.stream(make_request()):
                    pass
            assert KEY not in f"{caught.value!r} {caught.value.detail} {caught.value.message}"
    assert KEY not in f"{adapter!r} {vars(adapter)!r}"


@pytest.mark.parametrize("base", ["", "anthropic", "ftp://x", "https://u:p@x"])
def test_addresses_that_are_none(base: str) -> None:
    with pytest.raises(WrongUse):
        Anthropic(base_url=base, http=HttpClient())


async def test_closing_closes_the_connection(http: HttpClient) -> None:
    async with Loopback(Reply([HELLO[:500]], hold=asyncio.Event())) as server:
        stream = provider(server, http).stream(make_request())
        await anext(stream)
        await stream.aclose()
        await asyncio.wait_for(server.disconnected.wait(), PATIENCE)


async def test_other_things_are_no_answers(http: HttpClient) -> None:
    page = Reply(b"<html>", headers={"content-type": "text/html"})
    strange = Reply(b'data: {"choices": []}\n\n')
    async with Loopback(page, strange) as server:
        kinds = [(await ask(provider(server, http)))[-1]["kind"] for _ in range(2)]
    assert kinds == ["unreadable", "unreadable"]


async def test_a_whole_message_in_place_of_a_stream(http: HttpClient) -> None:
    message = {"type": "message", "id": "m", "content": [{"type": "text", "text": "hi"}], "stop_reason": "end_turn"}
    async with Loopback(Reply(json.dumps(message).encode(), headers=JSON)) as server:
        assert [event["type"] for event in await ask(provider(server, http))] == [
            "content_delta",
            "message_delta",
            "done",
        ]


async def test_listing(http: HttpClient) -> None:
    pages = {
        "/v1/models?limit=1000": {"data": [{"id": MODEL, "max_tokens": 5000}], "has_more": True, "last_id": MODEL},
        f"/v1/models?limit=1000&after_id={MODEL}": {"data": [{"id": "new"}], "has_more": False},
    }

    async with Loopback(choose=lambda request: Reply(json.dumps(pages[request.path]).encode(), headers=JSON)) as server:
        adapter = provider(server, http, KEY)
        assert adapter.model_info(MODEL).capabilities.max_output_tokens == 128_000
        models = await adapter.list_models()
    assert [model_or_request.id for model_or_request in models] == [MODEL, "new"]
    info = adapter.model_info(MODEL)
    assert (info.title, info.capabilities.max_output_tokens, info.capabilities.binds_prefix) == (
        "Claude Opus 5",
        5000,
        False,
    )
    assert all(model_or_request.headers["anthropic-version"] == "2026-10-21" for model_or_request in server.requests)
    assert all(model_or_request.headers["x-api-key"] == KEY for model_or_request in server.requests)


async def test_counting(http: HttpClient) -> None:
    replies = [
        Reply(b'{"input_tokens": 42}', headers=JSON),
        refused("x", 404, "not_found_error"),
        Reply(b'{"n":1}', headers=JSON),
    ]
    async with Loopback(*replies, refused()) as server:
        adapter = provider(server, http)
        counts = [await adapter.count_tokens(make_request(reasoning=ReasoningEffort())) for _ in replies]
        with pytest.raises(InvalidRequest):
            await adapter.count_tokens(make_request())
    assert (counts[0].tokens, counts[0].margin) == (42, 0.0)
    assert [count.margin for count in counts[1:]] == [ESTIMATE_MARGIN, ESTIMATE_MARGIN]
    assert counts[1].tokens > 0
    assert server.requests[0].path == "/v1/messages/count_tokens"
    assert not {"max_tokens", "stream"} & server.requests[0].json.keys()


def warm(cache_written: int, cache_read: int = 0) -> Reply:
    usage = {"input_tokens": 3, "cache_creation_input_tokens": cache_written, "cache_read_input_tokens": cache_read}
    return Reply(json.dumps({"type": "message", "content": [], "usage": usage}).encode(), headers=JSON)


async def test_keeping_a_prompt(http: HttpClient) -> None:
    request: ModelRequest = make_request(system_prompt="S", caching=PromptCaching(enabled=False))
    async with Loopback(warm(2000, 100), warm(2000), warm(0)) as server:
        adapter = provider(server, http)
        before = now()
        short, long = await adapter.prompt_cache(request), await adapter.prompt_cache(request, seconds=301)
        nothing = await adapter.prompt_cache(request)
    bodies = [body.json for body in server.requests]
    assert [(body["max_tokens"], "stream" in body) for body in bodies] == [(0, False)] * 3
    assert [body["system"][0]["cache_control"].get("ttl") for body in bodies] == [None, "1h", None]
    assert short.expires_at is not None
    assert long.expires_at is not None
    assert short.tokens == 2100
    assert timedelta(minutes=4) < short.expires_at - before < timedelta(minutes=6)
    assert timedelta(minutes=59) < long.expires_at - before < timedelta(minutes=61)
    assert (nothing.tokens, nothing.expires_at) == (0, None)
    assert adapter.state.request_count == 3


async def test_servers_that_do_not_keep_prompts(http: HttpClient) -> None:
    async with Loopback(
        refused(), refused(status=404, error_type="not_found_error"), Reply(b"hm", headers=JSON)
    ) as server:
        adapter = provider(server, http)
        for _ in range(2):
            with pytest.raises(CachingNotSupported):
                await adapter.prompt_cache(make_request())
        with pytest.raises(UnreadableAnswer):
            await adapter.prompt_cache(make_request())


async def test_a_request_beyond_32_mb_is_refused_before_the_network(http: HttpClient) -> None:
    adapter = Anthropic(base_url="https://api.anthropic.com", http=http, catalogue=TABLE)
    with pytest.raises(TooLarge):
        await anext(adapter.stream(make_request(Message.user("x" * 34_000_000))))


async def test_errors_keep_their_kind(http: HttpClient) -> None:
    async with Loopback(refused("gone", 404, "not_found_error")) as server:
        with pytest.raises(NotFound) as caught:
            await anext(provider(server, http).stream(make_request()))
    assert caught.value.message == "gone"


def test_what_it_says_about_itself() -> None:
    adapter = Anthropic(base_url="https://api.anthropic.com/v1", http=HttpClient(), catalogue=TABLE)
    assert adapter.dialect == "anthropic"
    limits = {model: adapter.picture_limits(model) for model in (MODEL, "claude-sonnet-4-5", "claude-opus-4-6", "m")}
    assert [limit.downscale_edge for limit in limits.values()] == [2576, 1568, 1568, 2576]
    assert [limit.max_count for limit in limits.values()] == [600, 100, 600, 600]
    first = limits[MODEL]
    assert (first.max_bytes, first.max_edge, first.many_images, first.many_images_max_edge) == (
        7_864_320,
        8000,
        20,
        2000,
    )
    assert (first.accepts_animated, first.accepts_urls, len(first.media_types)) == (True, True, 4)
