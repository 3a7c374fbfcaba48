"""Failover between addresses: real adapters and sockets, and scripted providers where timing matters."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
from pydantic import SecretStr

from desktop_agent.providers.dialects.openai_chat.adapter import OpenAIChat
from desktop_agent.providers.provider import INITIAL_BACKOFF, AddressHealth, Failover, Provider
from desktop_agent.providers.transport.http_client import HttpClient
from desktop_agent.types.errors import (
    AgentError,
    AuthenticationFailed,
    CachingNotSupported,
    ConnectionFailed,
    InvalidRequest,
    NotFound,
    Overloaded,
    ProviderError,
    QuotaExhausted,
    RateLimited,
    ServerFailed,
    TimedOut,
    Truncated,
)
from desktop_agent.types.messages import Message, now
from desktop_agent.types.provider_events import (
    AnswerNamed,
    AnswerStarted,
    ContentDelta,
    Done,
    Origin,
    ProviderEvent,
    ThinkingDelta,
    Usage,
    UsageUpdate,
)
from desktop_agent.types.providers import ModelInfo, ModelRequest
from tests.fakes.http_server import Loopback, Reply, chunk, sse
from tests.fakes.scripted_provider import ScriptedProvider, Turn, Wait

STARTED = AnswerStarted(Origin(provider="p"))
HELLO = Turn(STARTED, ContentDelta("Hello"))
JSON = {"content-type": "application/json"}


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def request(conversation: str | None = "c") -> ModelRequest:
    return ModelRequest("m", (Message.user("hi"),), conversation_id=conversation)


def failover(*providers: Provider, clock: Clock | None = None) -> Failover:
    addresses = tuple(f"http://host{number}:80/v1" for number in range(1, len(providers) + 1))
    return Failover(providers, addresses, AddressHealth(len(providers), clock or Clock()))


async def events(provider: Provider, question: ModelRequest) -> list[ProviderEvent]:
    stream = provider.stream(question)
    try:
        return [event async for event in stream]
    finally:
        await stream.aclose()


async def text(provider: Provider, question: ModelRequest | None = None) -> str:
    received = await events(provider, question or request())
    return "".join(event.text for event in received if isinstance(event, ContentDelta))


@pytest.mark.parametrize("error", [ConnectionFailed("x"), TimedOut("x"), Overloaded("x"), ServerFailed("x")])
async def test_the_next_one_is_asked_when_one_is_down(error: AgentError) -> None:
    first, second = ScriptedProvider(Turn(error)), ScriptedProvider(HELLO)
    assert await text(failover(first, second)) == "Hello"
    assert first.requests == second.requests


@pytest.mark.parametrize(
    "error",
    [
        AuthenticationFailed("x"),
        QuotaExhausted("x"),
        RateLimited("x"),
        InvalidRequest("x"),
        NotFound("x"),
        Truncated("x"),
        CachingNotSupported("x"),
    ],
)
async def test_a_refusal_is_final(error: AgentError) -> None:
    second = ScriptedProvider(HELLO)
    with pytest.raises(type(error)) as caught:
        await text(failover(ScriptedProvider(Turn(error)), second))
    assert caught.value is error
    assert second.requests == []


@pytest.mark.parametrize("before", [STARTED, AnswerNamed("id"), UsageUpdate(Usage(input_tokens=1))])
async def test_before_anything_was_said_it_goes_on(before: ProviderEvent) -> None:
    broken = ScriptedProvider(Turn(before, Overloaded("x")))
    assert await text(failover(broken, ScriptedProvider(HELLO))) == "Hello"


@pytest.mark.parametrize("first_event", [ContentDelta("He"), ThinkingDelta("Hm")])
async def test_an_answer_that_has_begun_is_never_asked_for_again(first_event: ProviderEvent) -> None:
    second = ScriptedProvider(HELLO)
    combined = failover(ScriptedProvider(Turn(STARTED, first_event, ConnectionFailed("gone"))), second)
    with pytest.raises(ConnectionFailed, match="gone"):
        await text(combined)
    assert second.requests == []
    assert await text(combined) == "Hello"  # the person's own retry goes to the healthy one


async def test_a_conversation_stays_where_it_was_answered() -> None:
    clock = Clock()
    first = ScriptedProvider(Turn(ConnectionFailed("x")), HELLO, HELLO)
    second = ScriptedProvider(HELLO, HELLO)
    combined = failover(first, second, clock=clock)
    await text(combined, request("moved"))
    clock.now += INITIAL_BACKOFF
    await text(combined, request("new"))
    await text(combined, request("moved"))
    await text(combined, request(None))
    assert [received.conversation_id for received in first.requests] == ["moved", "new", None]
    assert [received.conversation_id for received in second.requests] == ["moved", "moved"]


async def test_an_address_that_is_down_is_not_tried_again_at_once() -> None:
    first, second = ScriptedProvider(Turn(ConnectionFailed("x"))), ScriptedProvider(HELLO, HELLO)
    combined = failover(first, second)
    await text(combined, request("a"))
    await text(combined, request("b"))
    assert len(first.requests) == 1


async def test_one_request_probes_whether_an_address_works_again() -> None:
    clock = Clock()
    reached, going_on = asyncio.Event(), asyncio.Event()
    first = ScriptedProvider(Turn(ConnectionFailed("x")), Turn(Wait(going_on, reached), ContentDelta("back")))
    second = ScriptedProvider(HELLO, HELLO)
    combined = failover(first, second, clock=clock)
    await text(combined, request("a"))
    clock.now += INITIAL_BACKOFF
    probe = asyncio.create_task(text(combined, request("b")))
    await reached.wait()
    assert await text(combined, request("d")) == "Hello"
    going_on.set()
    assert await probe == "back"


async def test_a_probe_that_is_stopped_leaves_the_way_open() -> None:
    clock = Clock()
    reached = asyncio.Event()
    first = ScriptedProvider(Turn(ConnectionFailed("x")), Turn(Wait(asyncio.Event(), reached)), HELLO)
    combined = failover(first, ScriptedProvider(HELLO), clock=clock)
    await text(combined, request("a"))
    clock.now += INITIAL_BACKOFF
    probe = asyncio.create_task(text(combined, request("b")))
    await reached.wait()
    probe.cancel()
    with pytest.raises(asyncio.CancelledError):
        await probe
    assert await text(combined, request("d")) == "Hello"
    assert len(first.requests) == 3


async def test_when_all_are_down_the_last_error_says_how_many() -> None:
    last = ServerFailed("broken", status=502, retry_after=3.0, request_id="r", detail="details")
    with pytest.raises(ServerFailed) as caught:
        await text(failover(ScriptedProvider(Turn(ConnectionFailed("nobody"))), ScriptedProvider(Turn(last))))
    error = caught.value
    assert error.message == "broken (all 2 addresses were tried)"
    assert (error.status, error.retry_after, error.request_id, error.retryable) == (502, 3.0, "r", True)
    assert error.detail == "details\nconnection: nobody"
    assert error.remedy == last.remedy


async def test_with_one_address_the_error_is_its_own() -> None:
    error = ConnectionFailed("nobody")
    with pytest.raises(ConnectionFailed) as caught:
        await text(failover(ScriptedProvider(Turn(error))))
    assert caught.value is error


async def test_it_says_when_another_address_answers() -> None:
    combined = failover(ScriptedProvider(Turn(ConnectionFailed("x")), HELLO), ScriptedProvider(HELLO))
    first, *_ = await events(combined, request())
    assert isinstance(first, AnswerStarted)
    assert [str(adjustment) for adjustment in first.adjustments] == ["host2:80/v1 answers instead of host1:80/v1."]
    plain, *_ = await events(failover(ScriptedProvider(HELLO)), request())
    assert plain == STARTED


async def test_leaving_half_way_closes_the_answer() -> None:
    first = ScriptedProvider(Turn(STARTED, ContentDelta("a"), ContentDelta("b")))
    stream = failover(first, ScriptedProvider()).stream(request())
    async for event in stream:
        if isinstance(event, ContentDelta):
            break
    await stream.aclose()
    assert first.closed_early == 1


async def test_totals_are_summed() -> None:
    usage = UsageUpdate(Usage(input_tokens=5, output_tokens=2, cache_read_tokens=1))
    first = ScriptedProvider(Turn(ContentDelta("a"), usage), Turn(ConnectionFailed("x")))
    second = ScriptedProvider(Turn(ContentDelta("b"), usage))
    combined = failover(first, second)
    assert combined.state.last_request_time is None
    before = now()
    await text(combined, request("a"))
    await text(combined, request("b"))
    state = combined.state
    assert (state.input_tokens, state.output_tokens, state.cached_tokens) == (10, 4, 2)
    assert (state.request_count, state.conversation_turns) == (3, 2)
    assert state.last_request_time is not None
    assert state.last_request_time >= before


async def test_counting_and_caching_go_where_the_conversation_is() -> None:
    class Counting(ScriptedProvider):
        asked = 0

        async def count_tokens(self, request: ModelRequest):
            self.asked += 1
            return await super().count_tokens(request)

        async def prompt_cache(self, request: ModelRequest, *, seconds: int = 300):
            self.asked += 1
            return await super().prompt_cache(request, seconds=seconds)

    first, second = Counting(Turn(ConnectionFailed("x"))), Counting(HELLO)
    combined = failover(first, second)
    await text(combined)
    await combined.count_tokens(request())
    with pytest.raises(CachingNotSupported):
        await combined.prompt_cache(request())
    assert (first.asked, second.asked) == (0, 2)


# With real adapters over real sockets


@pytest.fixture
async def http() -> AsyncIterator[HttpClient]:
    client = HttpClient()
    yield client
    await client.aclose()


def refusal(status: int) -> Reply:
    return Reply(json.dumps({"error": {"message": "no"}}).encode(), status, JSON, "length")


ANSWER = Reply(sse(chunk({"content": "Hello"}), chunk(finish="stop")))
LISTING = Reply(json.dumps({"data": [{"id": "a"}]}).encode(), 200, JSON, "length")


async def over(stack: AsyncExitStack, http: HttpClient, *replies: Reply) -> tuple[Failover, list[Loopback]]:
    servers = [await stack.enter_async_context(Loopback(reply)) for reply in replies]
    adapters = tuple(OpenAIChat(base_url=server.url, api_key=SecretStr("sk-key"), http=http) for server in servers)
    return Failover(adapters, tuple(server.url for server in servers)), servers


async def test_servers_that_fail_and_one_that_answers(http: HttpClient) -> None:
    async with AsyncExitStack() as stack:
        unused = await stack.enter_async_context(Loopback(ANSWER))
        combined, servers = await over(stack, http, refusal(503), refusal(500), ANSWER)
        received = await events(combined, request())
        assert isinstance(received[-1], Done)
        assert [len(server.requests) for server in servers] == [1, 1, 1]
        assert {server.requests[0].headers["authorization"] for server in servers} == {"Bearer sk-key"}
        assert unused.requests == []


async def test_a_wrong_key_is_not_tried_elsewhere(http: HttpClient) -> None:
    async with AsyncExitStack() as stack:
        combined, servers = await over(stack, http, refusal(401), ANSWER)
        with pytest.raises(AuthenticationFailed):
            await events(combined, request())
        assert servers[1].requests == []


async def test_an_error_in_the_stream_before_any_text(http: HttpClient) -> None:
    broken = Reply(sse({"error": {"message": "overloaded", "code": 503}}, done=False))
    async with AsyncExitStack() as stack:
        combined, servers = await over(stack, http, broken, ANSWER)
        assert await text(combined) == "Hello"
        assert len(servers[0].requests) == 1


async def test_the_listing_of_the_first_that_answers(http: HttpClient) -> None:
    async with AsyncExitStack() as stack:
        combined, servers = await over(stack, http, refusal(500), LISTING)
        assert [model.id for model in await combined.list_models()] == ["a"]
        assert combined.model_info("a") == ModelInfo("a")
        assert combined.picture_limits("a").accepts_urls
        assert combined.dialect == "openai-chat"
        await combined.list_models()
        assert len(servers[0].requests) == 1  # it rests
        await combined.aclose()


async def test_no_listing_at_all(http: HttpClient) -> None:
    async with AsyncExitStack() as stack:
        combined, _ = await over(stack, http, refusal(500), refusal(503))
        with pytest.raises(ProviderError, match="2 addresses"):
            await combined.list_models()
