"""The whole provider over a real connection."""

import asyncio
import json
import traceback
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic import SecretStr

from desktop_agent.conversation.answer_builder import AnswerBuilder
from desktop_agent.providers.catalogue.catalogue import Catalogue
from desktop_agent.providers.dialects.gemini.adapter import Gemini
from desktop_agent.providers.dialects.request_building import account_digest
from desktop_agent.providers.provider import make_provider
from desktop_agent.providers.transport.http_client import HttpClient
from desktop_agent.types.blocks import MEDIA_TYPES_WITHOUT_GIF
from desktop_agent.types.errors import (
    AuthenticationFailed,
    NotFound,
    Overloaded,
    PermissionRefused,
    ProviderError,
    QuotaExhausted,
    RateLimited,
    ServerFailed,
    TimedOut,
    Truncated,
    WrongUse,
)
from desktop_agent.types.messages import Message, MessageState
from desktop_agent.types.provider_events import AnswerStarted, ContentDelta, StopReason, UsageUpdate
from desktop_agent.types.providers import ModelRequest, ProviderConfig, ReasoningDisabled, Timeouts
from desktop_agent.types.tool_calls import ToolSpec
from tests.desktop_agent.providers.dialects.gemini.stream import MODEL, NOON, USAGE, chunk, sse
from tests.desktop_agent.providers.dialects.gemini.test_request import TOOL
from tests.desktop_agent.providers.sdk_types import judge_bytes
from tests.fakes.http_server import Loopback, Reply
from tests.fakes.recordings import RECORDINGS, ask
from tests.frame.patience import PATIENCE

KEY = "AIza-very-secret-0123456789"
JSON = {"content-type": "application/json"}
HELLO = sse(chunk({"text": "hi"}, finish="STOP", top={"responseId": "r1"}))
DONE = [
    {"type": "content_delta", "text": "hi"},
    {"type": "message_delta", "stop_reason": "end_turn", "raw": "STOP"},
    {"type": "done"},
]


@pytest.fixture
async def http() -> AsyncIterator[HttpClient]:
    client = HttpClient()
    yield client
    await client.aclose()


def gemini(server: Loopback, http: HttpClient, **more: Any) -> Gemini:
    return Gemini(**{"base_url": server.root, "api_key": SecretStr(KEY), "http": http, **more})


def question(*messages: Message, model: str = MODEL, **more: Any) -> ModelRequest:
    return ModelRequest(model, messages or (Message.user("hi"),), **more)


def refused(status: int, status_name: str = "", *details: Any) -> Reply:
    error = {"code": status, "message": f"no {status}", "status": status_name, "details": list(details)}
    return Reply(json.dumps({"error": error}).encode(), status, JSON)


async def test_a_tool_is_called_by_its_own_name_although_the_api_knows_it_by_another(http: HttpClient) -> None:
    """Names of MCP servers may begin with a digit."""
    tool = ToolSpec("21st__look", "Looks.", {"type": "object"})
    body = sse(chunk({"functionCall": {"name": "_21st__look", "args": {}}}, finish="STOP"))
    async with Loopback(Reply(body), judged=True) as server:
        events = await ask(gemini(server, http), question(tools=(tool,)))
    (declared,) = server.requests[0].json["tools"][0]["functionDeclarations"]
    assert declared["name"] == "_21st__look"
    assert [event["name"] for event in events if event["type"] == "tool_use"] == ["21st__look"]


async def test_one_answer(http: HttpClient) -> None:
    body = sse(chunk({"text": "hi"}, finish="STOP", top={"usageMetadata": {**USAGE, "cachedContentTokenCount": 3}}))
    async with Loopback(Reply(body)) as server:
        adapter = gemini(server, http)
        await ask(adapter, question())
        await ask(adapter, question(model=f"models/{MODEL}"))
        first, second = server.requests
    assert (first.method, first.path) == ("POST", f"/v1beta/models/{MODEL}:streamGenerateContent?alt=sse")
    assert second.path == first.path
    assert first.headers["x-goog-api-key"] == KEY
    assert KEY not in first.path
    assert KEY.encode() not in first.body
    assert judge_bytes(first.path, first.body) == []
    state = adapter.state
    assert (state.input_tokens, state.output_tokens, state.cached_tokens) == (10, 4, 6)
    assert (state.request_count, state.conversation_turns) == (2, 2)
    assert adapter.dialect == "gemini"
    assert adapter.picture_limits(MODEL).media_types == MEDIA_TYPES_WITHOUT_GIF


@pytest.mark.parametrize(
    ("base", "model", "path"),
    [
        ("", MODEL, f"/v1beta/models/{MODEL}:streamGenerateContent?alt=sse"),
        ("/", MODEL, f"/v1beta/models/{MODEL}:streamGenerateContent?alt=sse"),
        ("/v1", MODEL, f"/v1/models/{MODEL}:streamGenerateContent?alt=sse"),
        ("/v1beta/", MODEL, f"/v1beta/models/{MODEL}:streamGenerateContent?alt=sse"),
        ("/v1alpha/models", MODEL, f"/v1alpha/models/{MODEL}:streamGenerateContent?alt=sse"),
        ("/gateway", MODEL, f"/gateway/v1beta/models/{MODEL}:streamGenerateContent?alt=sse"),
        ("/v1?team=a", MODEL, f"/v1/models/{MODEL}:streamGenerateContent?team=a&alt=sse"),
        ("", "tunedModels/mine", "/v1beta/tunedModels/mine:streamGenerateContent?alt=sse"),
        ("", "a b?c", "/v1beta/models/a%20b%3Fc:streamGenerateContent?alt=sse"),
    ],
)
async def test_addresses(http: HttpClient, base: str, model: str, path: str) -> None:
    async with Loopback(Reply(HELLO)) as server:
        adapter = make_provider("gemini", server.root + base, SecretStr(f" {KEY}\n"), http)
        assert await ask(adapter, question(model=model)) == DONE
        assert server.requests[0].path == path
        assert server.requests[0].headers["x-goog-api-key"] == KEY


async def test_no_key_is_possible(http: HttpClient) -> None:
    async with Loopback(Reply(HELLO)) as server:
        for key in (None, SecretStr(" ")):
            assert await ask(gemini(server, http, api_key=key), question()) == DONE
        assert all("x-goog-api-key" not in request.headers for request in server.requests)


@pytest.mark.parametrize("base", ["", "localhost:1", "http://u:p@x"])
def test_addresses_that_are_none(base: str) -> None:
    with pytest.raises(WrongUse):
        Gemini(base_url=base, api_key=None, http=HttpClient())


async def test_the_start_says_whose_answer_it_is_and_what_was_changed(http: HttpClient) -> None:
    async with Loopback(Reply(HELLO)) as server:
        adapter = gemini(server, http)
        config = ProviderConfig(reasoning=ReasoningDisabled())
        events = [event async for event in adapter.stream(question(model=f"models/{MODEL}", config=config))]
        started = events[0]
        assert isinstance(started, AnswerStarted)
        assert started.origin.provider == "gemini"
        assert started.origin.account == account_digest(f"{server.root}/v1beta", MODEL)
        assert len(started.adjustments) == 1


QUOTA = {"@type": "type.googleapis.com/google.rpc.QuotaFailure"}
WAIT = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "38.5s"}
BY_DAY = {**QUOTA, "violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}
BY_MINUTE = {**QUOTA, "violations": [{"quotaId": "GenerateRequestsPerMinutePerProjectPerModel"}]}
REFUSALS: list[tuple[Reply, type[ProviderError], bool, float | None]] = [
    (refused(400, "INVALID_ARGUMENT", {"reason": "API_KEY_INVALID"}), AuthenticationFailed, False, None),
    (refused(401, "UNAUTHENTICATED"), AuthenticationFailed, False, None),
    (refused(403, "PERMISSION_DENIED"), PermissionRefused, False, None),
    (refused(404, "NOT_FOUND"), NotFound, False, None),
    (refused(429, "RESOURCE_EXHAUSTED", BY_MINUTE, WAIT), RateLimited, True, 38.5),
    (refused(429, "RESOURCE_EXHAUSTED", BY_DAY, WAIT), QuotaExhausted, False, 38.5),
    (refused(500, "INTERNAL"), ServerFailed, True, None),
    (refused(503, "UNAVAILABLE"), Overloaded, True, None),
    (refused(504, "DEADLINE_EXCEEDED"), TimedOut, True, None),
]


@pytest.mark.parametrize(("reply", "error_type", "again", "wait"), REFUSALS)
@pytest.mark.parametrize("in_array", [False, True])
async def test_refusals(
    http: HttpClient, reply: Reply, error_type: type[ProviderError], again: bool, wait: float | None, in_array: bool
) -> None:
    body = reply.pieces[0]
    async with Loopback(Reply(b"[%s]" % body if in_array else body, reply.status, JSON)) as server:
        with pytest.raises(error_type) as caught:
            await anext(gemini(server, http).stream(question()))
        assert len(server.requests) == 1
    assert type(caught.value) is error_type
    assert (caught.value.retryable, caught.value.retry_after) == (again, wait)
    assert caught.value.message == f"no {reply.status}"


async def test_recorded_refusals(http: HttpClient) -> None:
    recorded = json.loads((RECORDINGS / "http_errors.json").read_text("utf-8"))
    cases = [entry for entry in recorded if entry["protocol"] == "gemini"]
    assert len(cases) >= 4
    for case in cases:
        async with Loopback(Reply(case["body"].encode(), case["status"], case["headers"])) as server:
            with pytest.raises(ProviderError) as caught:
                await anext(gemini(server, http).stream(question()))
        assert (caught.value.kind, caught.value.message) == (case["expect"]["kind"], case["expect"]["message"])
        assert caught.value.retryable == case["expect"]["retry"], case["name"]


async def test_the_answer_is_shown_as_it_comes_and_closing_closes(http: HttpClient) -> None:
    async with Loopback(Reply([sse(chunk({"text": "one"}))], hold=asyncio.Event())) as server:
        stream = gemini(server, http).stream(question())
        assert isinstance(await anext(stream), AnswerStarted)
        assert await asyncio.wait_for(anext(stream), PATIENCE) == ContentDelta("one")
        await stream.aclose()
        await asyncio.wait_for(server.disconnected.wait(), PATIENCE)


@pytest.mark.parametrize("more", [{"cut": True}, {"hold": asyncio.Event()}], ids=["cut", "silent"])
async def test_after_its_finish_reason_an_answer_is_whole(http: HttpClient, more: dict[str, Any]) -> None:
    async with Loopback(Reply([HELLO], **more)) as server:
        config = ProviderConfig(timeouts=Timeouts(idle=0.2))
        assert await ask(gemini(server, http), question(config=config)) == DONE


async def test_cut_in_the_middle(http: HttpClient) -> None:
    async with Loopback(Reply([sse(chunk({"text": "hi"}))], cut=True), Reply(b"<html>", headers=JSON)) as server:
        adapter = gemini(server, http)
        events = await ask(adapter, question())
        assert [event["type"] for event in events] == ["content_delta", "error"]
        assert events[-1]["kind"] == Truncated.kind
        assert (await ask(adapter, question()))[-1]["kind"] == "unreadable"
        assert adapter.state.conversation_turns == 0


async def test_a_conversation_with_a_tool_goes_back_unchanged(http: HttpClient) -> None:
    first = (RECORDINGS / "gemini" / "tools_parallel.sse").read_bytes()
    async with Loopback(Reply(first), Reply(HELLO)) as server:
        adapter = gemini(server, http)
        request = question(tools=(TOOL,))
        builder = AnswerBuilder("a", MODEL)
        async for event in adapter.stream(request):
            builder.feed(event, NOON)
        message = builder.message(MessageState.COMPLETE, NOON)
        await ask(adapter, question(*request.messages, message, tools=(TOOL,)))
        body = server.requests[1].json
        assert judge_bytes(server.requests[1].path, server.requests[1].body) == []
    assert body["contents"][1]["parts"][0]["thoughtSignature"] == "EuIFCt8FAXLI2nxfTmlnaHQ="
    assert len(body["contents"][2]["parts"]) == 3


async def test_the_rest_of_a_long_answer(http: HttpClient) -> None:
    hops = [
        sse(chunk({"text": "1"}), chunk(finish="CONTINUATION", continuationToken="VDE=")),
        sse(chunk({"text": "2"}), chunk(finish="CONTINUATION", continuationToken="VDI=")),
        sse(chunk({"text": "3"}, finish="STOP")),
    ]
    messages = [Message.user("count")]
    async with Loopback(*map(Reply, hops)) as server:
        adapter = gemini(server, http)
        for number in range(3):
            builder = AnswerBuilder(f"a{number}", MODEL)
            async for event in adapter.stream(question(*messages)):
                builder.feed(event, NOON)
            messages.append(builder.message(MessageState.COMPLETE, NOON))
        bodies = [item.json for item in server.requests]
        assert all(judge_bytes(item.path, item.body) == [] for item in server.requests)
    assert [item.get("continuationToken") for item in bodies] == [None, "VDE=", "VDI="]
    assert all(item["contents"] == bodies[0]["contents"] for item in bodies)
    assert [item.stop_reason for item in messages[1:]] == [
        StopReason.CONTINUATION,
        StopReason.CONTINUATION,
        StopReason.END_TURN,
    ]


async def test_listing_fills_up_what_is_known(http: HttpClient) -> None:
    entry = {"name": f"models/{MODEL}", "inputTokenLimit": 5, "supportedGenerationMethods": ["generateContent"]}
    table = Catalogue(shipped=True)
    await table.warm_up()
    async with Loopback(Reply(json.dumps({"models": [entry]}).encode(), headers=JSON)) as server:
        adapter = gemini(server, http, catalogue=table)
        assert adapter.model_info(f"models/{MODEL}").capabilities.context_window == 1_048_576
        (model,) = await adapter.list_models()
        assert server.requests[0].path == "/v1beta/models?pageSize=1000"
        assert server.requests[0].headers["x-goog-api-key"] == KEY
    assert (model.id, model.capabilities.context_window, model.capabilities.tools) == (MODEL, 5, True)
    assert adapter.model_info(f"models/{MODEL}") == model
    assert adapter.model_info("other").capabilities.tools is None


async def test_what_an_answer_cost(http: HttpClient) -> None:
    table = Catalogue(shipped=True)
    await table.warm_up()
    body = sse(chunk({"text": "hi"}, finish="STOP", top={"usageMetadata": USAGE}))
    async with Loopback(Reply(body)) as server:
        adapter = gemini(server, http, catalogue=table)
        usages = [event.usage async for event in adapter.stream(question()) if isinstance(event, UsageUpdate)]
    assert usages[0].cost is not None
    assert usages[0].cost > 0


async def test_counting(http: HttpClient) -> None:
    counted = Reply(b'{"totalTokens": 31, "cachedContentTokenCount": 0}', headers=JSON)
    async with Loopback(counted, refused(400, "INVALID_ARGUMENT"), refused(404), Reply(b"<p>", headers=JSON)) as server:
        adapter = gemini(server, http)
        request = question(tools=(TOOL,), config=ProviderConfig(system_prompt="s"))
        count = await adapter.count_tokens(request)
        assert (count.tokens, count.margin) == (31, 0.0)
        counted_request = server.requests[0]
        assert counted_request.path == f"/v1beta/models/{MODEL}:countTokens"
        inner = counted_request.json["generateContentRequest"]
        assert inner["model"] == f"models/{MODEL}"
        assert inner.keys() >= {"contents", "systemInstruction", "tools"}
        cut = Message.assistant("1").model_copy(
            update={"stop_reason": StopReason.CONTINUATION, "stop_details": {"continuation_token": "VDE="}}
        )
        await adapter.count_tokens(question(Message.user("count"), cut))
        assert "continuationToken" not in server.requests[1].json["generateContentRequest"]
        for _ in range(2):
            guess = await adapter.count_tokens(request)
            assert guess.tokens > 0
            assert guess.margin > 0
    async with Loopback(refused(429, "RESOURCE_EXHAUSTED")) as server:
        with pytest.raises(RateLimited):
            await gemini(server, http).count_tokens(request)


async def test_two_streams_at_once(http: HttpClient) -> None:
    async with Loopback(Reply([HELLO[:30], HELLO[30:]])) as server:
        adapter = gemini(server, http)
        assert await asyncio.gather(*(ask(adapter, question()) for _ in range(8))) == [DONE] * 8


async def test_the_key_is_nowhere_to_be_seen(http: HttpClient, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    echo = json.dumps({"error": {"code": 400, "message": f"bad {KEY}"}})
    replies = [Reply(echo.encode(), 400, JSON), Reply(sse(chunk({"text": "hi"}), f"data: {echo}"))]
    texts: list[str] = []
    chained: list[BaseException | None] = []
    async with Loopback(*replies) as server:
        adapter = gemini(server, http)
        for _ in replies:
            try:
                async for _event in adapter.stream(question()):
                    pass
            except ProviderError as error:
                inner = error.with_traceback(error.__traceback__.tb_next if error.__traceback__ else None)
                texts += traceback.TracebackException.from_exception(inner, capture_locals=True).format()
                texts += [error.detail, repr(error), error.message, repr(vars(adapter))]
                chained += [error.__cause__, error.__context__]
    assert chained == [None] * 4
    assert sum("bad [key]" in text for text in texts) >= 2
    assert KEY not in "".join(texts)
    assert KEY not in caplog.text
