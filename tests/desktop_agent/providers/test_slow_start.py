"""Slow servers: separate limits before the first event, and no second bill for one request."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Literal, Self

import httpx
import pytest
from pydantic import SecretStr

from desktop_agent.agent.retry import RetryPolicy
from desktop_agent.providers.dialects.server_adapter import request_timeouts
from desktop_agent.providers.provider import Failover, Provider, make_provider
from desktop_agent.providers.transport import http_client
from desktop_agent.providers.transport.connection_errors import error_from_read
from desktop_agent.providers.transport.http_client import HttpClient
from desktop_agent.providers.transport.httpx_transport import ReadLimits
from desktop_agent.types.errors import ConnectionFailed, ProviderError, RemedyAction, TimedOut
from desktop_agent.types.messages import Message
from desktop_agent.types.provider_events import ContentDelta
from desktop_agent.types.providers import (
    Capabilities,
    ModelRequest,
    ProviderConfig,
    Reasoning,
    ReasoningDisabled,
    ReasoningEffort,
    Timeouts,
)
from tests.fakes.http_server import Loopback, Reply, chunk, sse
from tests.fakes.silent_server import SIGNS_OF_LIFE, Pause, heard, quiet_server
from tests.fakes.vendor_streams import DIALECTS, ROOTS
from tests.frame.patience import PATIENCE
from tests.frame.selection import few

FAR = "https://models.example.com/v1"
SOON = 0.3


@pytest.fixture
async def http() -> AsyncIterator[HttpClient]:
    client = HttpClient()
    yield client
    await client.aclose()


def question(timeouts: Timeouts, reasoning: Reasoning | None = None) -> ModelRequest:
    return ModelRequest("m", (Message.user("hi"),), config=ProviderConfig(timeouts=timeouts, reasoning=reasoning))


async def text_of(provider: Provider, timeouts: Timeouts) -> str:
    stream = provider.stream(question(timeouts))
    try:
        return "".join([event.text async for event in stream if isinstance(event, ContentDelta)])
    finally:
        await stream.aclose()


async def failure_of(provider: Provider, timeouts: Timeouts) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await text_of(provider, timeouts)
    return caught.value


class Silent:
    """Reads whole requests and never answers them."""

    def __init__(self) -> None:
        self.requests = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            self.requests += 1
            while await reader.read(65536):
                pass
        finally:
            writer.close()


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_no_headers_end_it_once_and_leave_the_next_attempt_to_the_person(http: HttpClient, dialect: str) -> None:
    async with Silent() as server:
        address = f"http://127.0.0.1:{server.port}/{ROOTS[dialect]}"
        provider = make_provider(dialect, address, SecretStr("key"), http)
        error = await failure_of(provider, Timeouts(headers=SOON))
        assert isinstance(error, TimedOut)
        assert f"did not begin to answer within {SOON:g} seconds" in error.message
        assert RetryPolicy().delay(error, 1) is None
        assert (error.action, server.requests) == (RemedyAction.RETRY, 1)
        assert "may be billed" in str(error.remedy)


async def test_silence_behind_the_headers_has_its_own_limit(http: HttpClient) -> None:
    async with Loopback(Reply(b"", hold=asyncio.Event())) as server:
        provider = make_provider("openai-chat", server.url, None, http)
        error = await failure_of(provider, Timeouts(headers=60, first_event=SOON, idle=60))
        assert isinstance(error, TimedOut)
        assert error.message.endswith(f"said nothing for {SOON:g} seconds")
        assert RetryPolicy().delay(error, 1) is None


async def test_the_limit_of_silence_in_an_answer_holds_from_its_first_event_on(http: HttpClient) -> None:
    body = sse(chunk({"content": "hi"}), done=False)
    async with Loopback(Reply([body], hold=asyncio.Event())) as server:
        provider = make_provider("openai-chat", server.url, None, http)
        error = await failure_of(provider, Timeouts(first_event=60, idle=SOON))
        assert error.message.endswith(f"said nothing for {SOON:g} seconds")


@pytest.mark.parametrize("framing", ["chunked", "length", "close"])
async def test_a_short_limit_of_silence_does_not_cut_off_a_slow_start(
    http: HttpClient, framing: Literal["chunked", "length", "close"]
) -> None:
    release = asyncio.Event()
    body = sse(chunk({"content": "hi"}), chunk(finish="stop"))
    async with Loopback(Reply(b"", framing=framing, hold=release, late=body)) as server:
        provider = make_provider("openai-chat", server.url, None, http)
        asking = asyncio.create_task(text_of(provider, Timeouts(first_event=60, idle=SOON)))
        finished, _ = await asyncio.wait({asking}, timeout=3 * SOON)
        assert not finished
        release.set()
        assert await asyncio.wait_for(asking, PATIENCE) == "hi"


@pytest.mark.parametrize(
    "sign", few(SIGNS_OF_LIFE.values(), 1, "test_sse.py: what counts as one"), ids=SIGNS_OF_LIFE.keys()
)
async def test_signs_of_life_before_the_first_event_count(sign: bytes) -> None:
    async with quiet_server(Pause(1.5, every=0.1, sign=sign, at_start=True)) as port:
        assert await heard("openai-chat", port, first_event=0.5) == "done"


@pytest.mark.parametrize("at_start", [True, False])
@pytest.mark.parametrize("sign", few([SIGNS_OF_LIFE["comment"], SIGNS_OF_LIFE["ping"], b"x"], 1, "the same limit"))
async def test_signs_of_life_alone_are_not_waited_for_without_end(
    http: HttpClient, sign: bytes, at_start: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_client, "MAX_QUIET_SECONDS", SOON)
    async with quiet_server(Pause(PATIENCE, every=SOON / 10, sign=sign, at_start=at_start)) as port:
        provider = make_provider("openai-chat", f"http://127.0.0.1:{port}/v1", None, http)
        error = await failure_of(provider, Timeouts(first_event=1, idle=1))
        assert isinstance(error, TimedOut)
        assert RetryPolicy().delay(error, 1) is None
        assert "may be billed" in str(error.remedy)


async def test_what_is_said_of_a_server_that_only_showed_signs_of_life() -> None:
    now = asyncio.get_running_loop().time()
    late, silent = (
        error_from_read(httpx.ReadTimeout(""), "host:1", ReadLimits(7, now + seconds)) for seconds in (-1, 60)
    )
    assert "kept the connection open" in late.message
    assert "may be billed" in str(late.remedy)
    assert "said nothing for 7 seconds" in silent.message


async def test_a_limit_of_more_than_an_hour_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "MAX_QUIET_SECONDS", SOON)
    async with quiet_server(Pause(3 * SOON, every=SOON / 10, sign=SIGNS_OF_LIFE["comment"], at_start=True)) as port:
        assert await heard("openai-chat", port, first_event=60) == "done"


async def test_an_answer_that_has_begun_may_take_as_long_as_it_likes(
    http: HttpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    release, loop = asyncio.Event(), asyncio.get_running_loop()
    first, rest = sse(chunk({"content": "Hel"}), done=False), sse(chunk({"content": "lo"}), chunk(finish="stop"))
    async with Loopback(Reply([first], framing="chunked", hold=release, late=rest)) as server:
        provider = make_provider("openai-chat", server.url, None, http)
        stream = provider.stream(question(Timeouts(idle=10 * http_client.MAX_QUIET_SECONDS)))
        text = ""
        async for event in stream:
            if isinstance(event, ContentDelta):
                text += event.text
                if not release.is_set():
                    later = loop.time() + 2 * http_client.MAX_QUIET_SECONDS
                    monkeypatch.setattr(loop, "time", lambda now=loop.time: now() + 2 * http_client.MAX_QUIET_SECONDS)
                    assert loop.time() >= later
                    release.set()
        assert text == "Hello"


async def test_a_request_that_may_be_billed_goes_to_no_other_address(http: HttpClient) -> None:
    reply = Reply(sse(chunk({"content": "hi"}), chunk(finish="stop")))
    async with Silent() as silent, Loopback(reply) as other:
        addresses = (f"http://127.0.0.1:{silent.port}/v1", other.url)
        combined = Failover(tuple(make_provider("openai-chat", url, None, http) for url in addresses), addresses)
        error = await failure_of(combined, Timeouts(headers=SOON))
        assert isinstance(error, TimedOut)
        assert "addresses were tried" not in error.message
        assert (silent.requests, other.requests) == (1, [])
        # The silent address is in backoff, so the person's next attempt goes to the other one.
        assert await text_of(combined, Timeouts(headers=SOON)) == "hi"


async def test_what_never_reached_a_server_is_sent_again_and_elsewhere(http: HttpClient) -> None:
    reply = Reply(sse(chunk({"content": "hi"}), chunk(finish="stop")))
    async with Loopback(reply) as other:
        addresses = ("http://127.0.0.1:9/v1", other.url)
        first, second = (make_provider("openai-chat", url, None, http) for url in addresses)
        error = await failure_of(first, Timeouts())
        assert isinstance(error, ConnectionFailed)
        assert RetryPolicy().delay(error, 1) is not None
        assert await text_of(Failover((first, second), addresses), Timeouts()) == "hi"


@pytest.mark.parametrize(
    ("address", "config", "capabilities", "expected"),
    [
        (FAR, {}, {}, (120, 300)),
        (FAR, {"reasoning": ReasoningEffort(level="low")}, {}, (900, 900)),
        (FAR, {"reasoning": ReasoningDisabled()}, {"reasons_by_default": True}, (120, 300)),
        (FAR, {}, {"reasons_by_default": True}, (900, 900)),
        (FAR, {}, {"reasoning": True}, (900, 900)),
        (FAR, {}, {"reasoning": True, "reasons_by_default": False}, (120, 300)),
        ("http://127.0.0.1:8080/v1", {}, {}, (900, 900)),
        ("http://[::1]:8080/v1", {}, {}, (900, 900)),
        ("http://192.168.1.20:8080/v1", {}, {}, (900, 900)),
        ("http://[fd00::7]:8080/v1", {}, {}, (900, 900)),
        ("http://tower.local:11434/v1", {}, {}, (900, 900)),
        ("http://tower:11434/v1", {}, {}, (900, 900)),
        ("http://8.8.8.8/v1", {}, {}, (120, 300)),
        ("http://127.0.0.1:8080/v1", {"timeouts": Timeouts(headers=5, first_event=6)}, {}, (5, 6)),
        (FAR, {"timeouts": Timeouts(first_event=6)}, {}, (120, 6)),
    ],
)
def test_timeouts_depend_on_address_and_reasoning(
    address: str, config: dict[str, Any], capabilities: dict[str, Any], expected: tuple[float, float]
) -> None:
    request = ModelRequest("m", (), config=ProviderConfig(**config))
    timeouts = request_timeouts(request, address, Capabilities(**capabilities))
    assert (timeouts.headers, timeouts.first_event) == expected
