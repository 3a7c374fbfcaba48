"""The response stream that all dialects share, with a minimal dialect, over real sockets."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

import pytest
from pydantic import SecretStr

from desktop_agent.providers.catalogue.catalogue import Pricing
from desktop_agent.providers.dialects import response_stream
from desktop_agent.providers.dialects.response_stream import (
    BaseFrameReader,
    OpenedStream,
    key_header,
    send_request,
    stream_events,
)
from desktop_agent.providers.part_builder import PartBuilder
from desktop_agent.providers.transport.http_client import HttpClient, HttpRequest, HttpResponse, SecretHeader
from desktop_agent.providers.transport.sse import DONE, Frame, SseDecoder
from desktop_agent.types.errors import (
    InvalidRequest,
    Overloaded,
    ProviderError,
    RateLimited,
    Sentence,
    TimedOut,
    Truncated,
    UnreadableAnswer,
)
from desktop_agent.types.provider_events import (
    AnswerNamed,
    AnswerStarted,
    ContentDelta,
    Done,
    MessageDelta,
    Origin,
    ProviderEvent,
    RequestAdjusted,
    StopReason,
    ThinkingBlock,
    ThinkingDelta,
    Usage,
    UsageUpdate,
)
from desktop_agent.types.providers import Price, ProviderState, Timeouts
from tests.fakes.http_server import Loopback, Reply, sse
from tests.frame.patience import PATIENCE

KEY = "sk-very-secret-0123456789"
ADJUSTMENT = Sentence("Something was left out.")


class Plain(BaseFrameReader):
    """A minimal dialect whose frames have the fields text, think, usage, name, error, finish and end."""

    end_mark = "an end"
    has_ended = False
    has_finished = False

    def read(self, frame: Frame) -> bool:
        data: Any = frame[1]
        if data is DONE:
            self.done = self.has_ended = self.has_finished = True
            return False
        if not isinstance(data, dict):
            return False
        self.recognised = self.recognised or "text" in data or "think" in data
        self._builder.main.text(data.get("text", ""))
        if "think" in data:
            self._builder.main.thinking(data["think"])
        if "usage" in data:
            self._builder.usage = Usage(**data["usage"])
        self._builder.set_response_id(data.get("name"))
        if "error" in data:
            self.failure = Overloaded(data["error"])
        self.has_ended = self.has_ended or "end" in data
        self.has_finished = self.has_ended or self.has_finished or "finish" in data
        return False

    def end(self) -> None:
        self._builder.end(StopReason.END_TURN, "end")


class Asking:
    """A client of one server that keeps the totals."""

    def __init__(self, http: HttpClient, server: Loopback, secret: SecretHeader | None = None, **opened: Any) -> None:
        self.state = ProviderState()
        self._secret = secret
        self._http, self._server, self._opened = http, server, opened

    def stream(self, **timeouts: float) -> AsyncGenerator[ProviderEvent, None]:
        async def opening() -> OpenedStream:
            call = HttpRequest(f"{self._server.url}/x", Timeouts(**timeouts), b"{}", self._secret)
            answer = await send_request(self._http, call, self.state)
            builder = PartBuilder("plain")
            return OpenedStream(answer, builder, Plain(builder, {}), Origin(provider="plain"), **self._opened)

        return stream_events(opening, self.state)


async def collected(stream: AsyncGenerator[ProviderEvent, None]) -> tuple[list[ProviderEvent], ProviderError | None]:
    events: list[ProviderEvent] = []
    try:
        async for event in stream:
            events.append(event)  # noqa: PERF401 - what came before the error matters
    except ProviderError as error:
        return events, error
    return events, None


@pytest.fixture
async def http() -> AsyncIterator[HttpClient]:
    client = HttpClient()
    yield client
    await client.aclose()


END = [MessageDelta(StopReason.END_TURN, "end"), Done()]


async def test_the_start_comes_before_everything_with_what_was_adjusted(http: HttpClient) -> None:
    release = asyncio.Event()
    reply = Reply(b"", hold=release, headers={"x-request-id": "q1", "content-type": "text/event-stream"})
    async with Loopback(reply) as server:
        stream = Asking(http, server, adjustments=(ADJUSTMENT,)).stream()
        started = await asyncio.wait_for(anext(stream), PATIENCE)
        assert started == AnswerStarted(Origin(provider="plain"), (ADJUSTMENT,))
        release.set()
        with pytest.raises(Truncated, match="it was empty"):
            await anext(stream)


async def test_totals_and_costs(http: HttpClient) -> None:
    body = sse({"text": "hi"}, {"usage": {"input_tokens": 1_000_000, "output_tokens": 0, "cache_read_tokens": 3}})
    priced = Pricing(Price(input=2.0, output=8.0, cache_read=2.0))
    async with Loopback(Reply(body)) as server:
        asking = Asking(http, server, pricing=priced)
        for _ in range(2):
            events, error = await collected(asking.stream())
            assert error is None
        (usage,) = [event.usage for event in events if isinstance(event, UsageUpdate)]
    assert usage.cost == pytest.approx(2.0)
    state = asking.state
    assert (state.input_tokens, state.output_tokens, state.cached_tokens) == (2_000_000, 0, 6)
    assert (state.request_count, state.conversation_turns) == (2, 2)


async def test_a_cost_of_the_servers_own_is_believed(http: HttpClient) -> None:
    usage = {"input_tokens": 9, "output_tokens": 9, "cost": 0.5}
    async with Loopback(Reply(sse({"text": "hi"}, {"usage": usage}))) as server:
        events, _ = await collected(Asking(http, server, pricing=Pricing(Price(input=2.0, output=8.0))).stream())
    assert [event.usage.cost for event in events if isinstance(event, UsageUpdate)] == [0.5]


@pytest.mark.parametrize(
    ("body", "ends"),
    [
        (sse({"text": "hi"}), True),
        (sse({"text": "hi"}, {"end": 1}, done=False), True),
        (sse({"text": "hi"}, done=False), False),
    ],
)
@pytest.mark.parametrize("cut", [False, True])
async def test_an_end_mark_makes_an_answer_whole_and_nothing_else_does(
    http: HttpClient, body: bytes, ends: bool, cut: bool
) -> None:
    async with Loopback(Reply(body, cut=cut)) as server:
        asking = Asking(http, server)
        events, error = await collected(asking.stream())
    assert events[1] == ContentDelta("hi")
    assert (events[2:] == END) is ends
    assert isinstance(error, Truncated) is not ends
    assert asking.state.conversation_turns == ends


UNENDED = [MessageDelta(StopReason.END_TURN, "end", {"unended": True}), Done()]


@pytest.mark.parametrize("mark", ["end", "finish"])
async def test_an_answer_kept_open_after_its_finish_is_closed_and_marked(
    http: HttpClient, monkeypatch: pytest.MonkeyPatch, mark: str
) -> None:
    monkeypatch.setattr(response_stream, "END_TIMEOUT", 0.05)
    reply = Reply(sse({"text": "hi"}, {mark: 1}, done=False), hold=asyncio.Event())
    async with Loopback(reply) as server:
        async with asyncio.timeout(PATIENCE):
            events, error = await collected(Asking(http, server).stream())
        assert events[2:] == UNENDED
        assert error is None
        await asyncio.wait_for(server.disconnected.wait(), PATIENCE)


async def test_an_idle_limit_below_the_patience_marks_it_too(http: HttpClient) -> None:
    reply = Reply(sse({"text": "hi"}, {"finish": 1}, done=False), hold=asyncio.Event())
    async with Loopback(reply) as server:
        events, error = await collected(Asking(http, server).stream(idle=0.1))
    assert (events[2:], error) == (UNENDED, None)


class Waiting:
    """Chunks with pauses between them, on a simulated clock."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *steps: tuple[float, Any]) -> None:
        self.now = 0.0
        self._steps = list(steps)
        monkeypatch.setattr(response_stream, "monotonic", lambda: self.now)

    def __aiter__(self) -> "Waiting":
        return self

    async def __anext__(self) -> bytes:
        if not self._steps:
            raise StopAsyncIteration
        wait, data = self._steps.pop(0)
        self.now += wait
        return data if isinstance(data, bytes) else sse(data, done=False)


async def test_text_long_after_the_first_finish_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers that write a finish reason on every chunk: it is the last content that counts, however slow."""
    steps = [(0.0, {"text": "a", "finish": 1}), *((29.0, {"text": str(number), "finish": 1}) for number in range(9))]
    source = Waiting(monkeypatch, *steps)
    builder, decoder = PartBuilder("plain"), SseDecoder()
    reader = Plain(builder, {})
    chunks = response_stream._StreamChunks(source, reader, builder)
    limits: list[float | None] = []
    real = asyncio.timeout
    monkeypatch.setattr(asyncio, "timeout", lambda limit: limits.append(limit) or real(None))
    async for chunk in chunks:
        for frame in decoder.feed(chunk):
            reader.read(frame)
        builder.take_events()
    assert limits == [30.0] * 10


async def test_signs_of_life_are_no_content(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Waiting(monkeypatch, (0.0, {"text": "a", "finish": 1}), *((10.0, b": ping\n\n") for _ in range(3)))
    builder, decoder = PartBuilder("plain"), SseDecoder()
    reader = Plain(builder, {})
    limits: list[float | None] = []
    real = asyncio.timeout
    monkeypatch.setattr(asyncio, "timeout", lambda limit: limits.append(limit) or real(None))
    async for chunk in response_stream._StreamChunks(source, reader, builder):
        for frame in decoder.feed(chunk):
            reader.read(frame)
        builder.take_events()
    assert limits == [30.0, 20.0, 10.0, 0.0]


async def test_what_follows_the_end_mark_counts_but_no_error_does(http: HttpClient) -> None:
    body = [
        sse({"text": "hi"}),
        sse({"usage": {"input_tokens": 1}}, {"text": "!"}, {"error": "late"}, {"text": "?"}, done=False),
    ]
    async with Loopback(Reply(body)) as server:
        events, error = await collected(Asking(http, server).stream())
    assert error is None
    assert [event.text for event in events if isinstance(event, ContentDelta)] == ["hi", "!", "?"]
    assert [event.usage.input_tokens for event in events if isinstance(event, UsageUpdate)] == [1]


async def test_a_damaged_event_in_an_answer_that_ends_well_is_told(http: HttpClient) -> None:
    body = sse({"text": "a"}, '{"text": "lo', {"text": "b"})
    async with Loopback(Reply(body)) as server:
        events, error = await collected(Asking(http, server).stream())
    assert error is None
    (notice,) = [event for event in events if isinstance(event, RequestAdjusted)]
    assert "One event of the answer was damaged" in str(notice.adjustments[0])
    assert "".join(event.text for event in events if isinstance(event, ContentDelta)) == "ab"


async def test_silence_before_it_is_an_error_and_open_parts_are_closed(http: HttpClient) -> None:
    reply = Reply(sse({"think": "hm"}, done=False), hold=asyncio.Event())
    async with Loopback(reply) as server:
        events, error = await collected(Asking(http, server).stream(idle=0.1))
    assert events[1:] == [ThinkingDelta("hm"), ThinkingBlock("hm", "plain")]
    assert isinstance(error, TimedOut)
    # Chained errors hold what the server sent, which must not be shown.
    assert (error.__context__, error.__cause__) == (None, None)


async def test_nothing_counts_after_an_error_in_the_stream(http: HttpClient) -> None:
    body = sse({"text": "a"}, {"error": "busy"}, {"text": "b"})
    async with Loopback(Reply(body)) as server:
        events, error = await collected(Asking(http, server).stream())
    assert events[1:] == [ContentDelta("a")]
    assert isinstance(error, Overloaded)
    assert error.__context__ is None


async def test_what_is_no_answer_of_this_dialect_is_said_to_be_none(http: HttpClient) -> None:
    page = Reply(b"<html>Sign in</html>", headers={"content-type": "text/html"})
    unknown_frames = Reply(sse({"hello": 1}, done=False))
    async with Loopback(page, unknown_frames) as server:
        asking = Asking(http, server)
        for expected in ("web page", "no model server sends"):
            _, error = await collected(asking.stream())
            assert isinstance(error, UnreadableAnswer)
            assert expected in error.message


async def test_a_refusal_comes_from_the_first_step_and_is_counted(http: HttpClient) -> None:
    async with Loopback(Reply(b'{"error":{"message":"slow"}}', 429, {"content-type": "application/json"})) as server:
        asking = Asking(http, server)
        with pytest.raises(RateLimited):
            await anext(asking.stream())
    assert asking.state.request_count == 1
    assert asking.state.last_request_time is not None


async def test_closing_the_stream_closes_the_connection(http: HttpClient) -> None:
    async with Loopback(Reply(sse({"text": "a"}, done=False), hold=asyncio.Event())) as server:
        stream = Asking(http, server).stream()
        await anext(stream)
        await stream.aclose()
        await asyncio.wait_for(server.disconnected.wait(), PATIENCE)


async def test_the_connection_is_used_again_after_a_whole_answer(http: HttpClient) -> None:
    async with Loopback(Reply(sse({"text": "a"}))) as server:
        for _ in range(3):
            await collected(Asking(http, server).stream())
        assert server.connections == 1


def test_a_key_that_a_server_echoed_is_taken_out() -> None:
    call = HttpRequest("http://127.0.0.1", Timeouts(), secret=SecretHeader.bearer(SecretStr(KEY)))
    builder = PartBuilder("plain")
    builder.redact_key = call.redact_key
    assert KEY not in Plain(builder, {}).error_from({"message": f"bad key {KEY}!"}).detail
    assert HttpRequest("http://127.0.0.1", Timeouts()).redact_key(KEY) == KEY


async def _opened_with_key(http: HttpClient, server: Loopback) -> HttpResponse:
    call = HttpRequest(server.url, Timeouts(), b"{}", SecretHeader.bearer(SecretStr(KEY)))
    return await send_request(http, call, ProviderState())


async def test_a_key_echoed_in_escapes_is_not_told(http: HttpClient) -> None:
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in KEY)
    body = f'{{"error": {{"message": "bad key {escaped}", "type": "invalid_request_error"}}}}'
    async with Loopback(Reply(body.encode(), 400, {"content-type": "application/json"}), judged=False) as server:
        with pytest.raises(InvalidRequest) as raised:
            await _opened_with_key(http, server)
    error = raised.value
    assert error.message == "bad key [key]"
    assert "bad key [key]" in error.detail
    assert (error.status, error.retryable) == (400, False)
    assert KEY not in str(error)


@pytest.mark.parametrize("status", [200, 400])
async def test_a_key_echoed_in_a_header_names_no_request(http: HttpClient, status: int) -> None:
    headers = {"content-type": "text/event-stream", "request-id": f"req-{KEY}"}
    async with Loopback(Reply(sse({"error": "a"}), status, headers), judged=False) as server:
        if status == 200:
            answer = await _opened_with_key(http, server)
            named = answer.headers["request-id"]
            await answer.aclose()
        else:
            with pytest.raises(InvalidRequest) as raised:
                await _opened_with_key(http, server)
            named = raised.value.request_id
    assert named == "req-[key]"


@pytest.mark.parametrize(
    ("key", "name", "expected"),
    [
        (None, "Authorization", None),
        (SecretStr(" \n"), "Authorization", None),
        (SecretStr(f" {KEY}\n"), "Authorization", ("Authorization", "Bearer ", KEY)),
        (SecretStr(KEY), "api-key", ("api-key", "", KEY)),
    ],
)
def test_the_header_of_a_pasted_key(key: SecretStr | None, name: str, expected: tuple[str, str, str] | None) -> None:
    header = key_header(key, name)
    assert (header and (header.name, header.prefix, header.value.get_secret_value())) == expected


async def test_a_key_that_is_a_word_of_headers_changes_none(http: HttpClient) -> None:
    async with Loopback(Reply(b"{}", headers={"content-type": "application/json"}), judged=False) as server:
        call = HttpRequest(server.url, Timeouts(), b"{}", SecretHeader.bearer(SecretStr("json")))
        answer = await send_request(http, call, ProviderState())
        await answer.aclose()
    assert answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize("cut", [0, 1, 3])
async def test_a_good_answer_is_never_rewritten(http: HttpClient, cut: int) -> None:
    body = sse({"text": "this is not-needed here"}, {"end": True}, done=False)
    offset = body.index(b"not-needed") + cut
    secret = SecretHeader.bearer(SecretStr("not-needed"))
    async with Loopback(Reply([body[:offset], body[offset:]]), judged=False) as server:
        events, error = await collected(Asking(http, server, secret).stream())
    assert error is None
    assert "".join(event.text for event in events if isinstance(event, ContentDelta)) == "this is not-needed here"


@pytest.mark.parametrize("body", [f"Sorry, {KEY} is unknown.", f"<p>{KEY}</p>", "." * 190 + KEY, f'["{KEY}"'])
@pytest.mark.parametrize("size", [1, 7, 1000])
async def test_a_key_in_something_else_than_an_answer_is_not_told(http: HttpClient, body: str, size: int) -> None:
    pieces = [body.encode()[start : start + size] for start in range(0, len(body), size)]
    async with Loopback(Reply(pieces, headers={"content-type": "text/plain"}), judged=False) as server:
        _, error = await collected(Asking(http, server, SecretHeader.bearer(SecretStr(KEY))).stream())
    assert isinstance(error, UnreadableAnswer)
    assert error.detail
    assert KEY[:8] not in f"{error!r} {error.message} {error.detail}"


async def test_a_key_in_the_name_of_an_answer_is_not_stored(http: HttpClient) -> None:
    body = sse({"text": "a", "name": f"r-{KEY}"}, {"end": True}, done=False)
    async with Loopback(Reply(body), judged=False) as server:
        events, error = await collected(Asking(http, server, SecretHeader.bearer(SecretStr(KEY))).stream())
    assert error is None
    assert [event.response_id for event in events if isinstance(event, AnswerNamed)] == ["r-[key]"]


async def test_an_error_in_a_shape_of_its_own_is_told_and_ends_the_answer(http: HttpClient) -> None:
    failed = {"base_resp": {"status_code": 1002, "status_msg": f"too fast with {KEY}"}}
    for body in (sse({"text": "Hel"}, failed, {"text": "lo"}), sse(failed)):
        async with Loopback(Reply(body), judged=False) as server:
            _, error = await collected(Asking(http, server, SecretHeader.bearer(SecretStr(KEY))).stream())
        assert isinstance(error, RateLimited)
        assert error.message == "too fast with [key]"
        assert KEY not in error.detail


_HELD = (
    b'data: {"text": "lo"}\n',  # the blank line has not come
    b'data: {"text": "l"}\ndata: {"text": "o"}',
    b'{"text": "lo"}',
)


@pytest.mark.parametrize("unfinished", _HELD)
async def test_what_came_whole_is_kept_when_the_body_is_cut(http: HttpClient, unfinished: bytes) -> None:
    async with Loopback(Reply([sse({"text": "Hel"}, done=False), unfinished], cut=True)) as server:
        events, error = await collected(Asking(http, server).stream())
    assert isinstance(error, Truncated)
    assert "".join(event.text for event in events if isinstance(event, ContentDelta)) == "Hello"


async def test_an_end_that_came_whole_is_an_end_when_the_body_is_cut(http: HttpClient) -> None:
    body = sse({"text": "Hello"}, done=False) + b'data: {"end": true}\ndata: {"usage": {"inp'
    async with Loopback(Reply(body, cut=True)) as server:
        events, error = await collected(Asking(http, server).stream())
    assert error is None
    assert isinstance(events[-1], Done)
    assert not [event for event in events if isinstance(event, RequestAdjusted)]  # nothing was damaged


@pytest.mark.parametrize("unfinished", _HELD)
async def test_what_came_whole_is_kept_at_stop(http: HttpClient, unfinished: bytes) -> None:
    body = sse({"text": "Hel"}, done=False)
    texts: list[str] = []
    async with Loopback(Reply([body + unfinished], hold=asyncio.Event())) as server:

        async def listen() -> None:
            async for event in Asking(http, server).stream():
                if isinstance(event, ContentDelta):
                    texts.append(event.text)
                    has_text.set()

        has_text = asyncio.Event()
        listening = asyncio.create_task(listen())
        async with asyncio.timeout(PATIENCE):
            await has_text.wait()
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
    assert "".join(texts) == "Hello"
