"""Chat Completions: OpenAI's own and everybody else's."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import suppress
from time import monotonic
from typing import Any

from pydantic import SecretStr

from desktop_agent.providers.dialects import servers
from desktop_agent.providers.dialects.openai_chat.frames import FrameReader
from desktop_agent.providers.dialects.openai_chat.listing import listing
from desktop_agent.providers.dialects.openai_chat.request import Body, body_for, refused_fields
from desktop_agent.providers.part_builder import PartBuilder
from desktop_agent.providers.think_tags import ThinkTags
from desktop_agent.providers.transport.addresses import api_root, joined
from desktop_agent.providers.transport.failures import named_words, not_a_model_server, request_id
from desktop_agent.providers.transport.http_client import HttpAnswer, HttpCall, HttpClient, SecretHeader, refusal
from desktop_agent.providers.transport.json_text import dumps, loads
from desktop_agent.providers.transport.sse import Frame, SseDecoder
from desktop_agent.vocabulary.errors import InvalidRequest, ProviderError, TimedOut, Truncated, UnreadableAnswer
from desktop_agent.vocabulary.messages import now
from desktop_agent.vocabulary.provider_events import Done, ProviderEvent, UsageUpdate
from desktop_agent.vocabulary.requests import Capabilities, ModelInfo, ModelRequest, ProviderState, Timeouts
from desktop_agent.vocabulary.usage import Usage

_log = logging.getLogger(__name__)
# What may follow the finish reason is sent right behind it; in seconds.
ENDING_PATIENCE = 5.0
_DRAIN_SECONDS = 0.1


class OpenAIChat:
    """One server that speaks Chat Completions.

    `base_url` is what the vendor's own SDK takes, usually ending in /v1. `quirks` overrides what the address suggests.
    The client is shared and not closed here. Raises WrongUse for an address or a key that cannot be used.
    """

    def __init__(
        self,
        *,
        base_url: str,
        api_key: SecretStr | None = None,
        http: HttpClient,
        quirks: servers.Quirks | None = None,
        listing_timeouts: Timeouts | None = None,
    ) -> None:
        self._http = http
        self._is_guess = quirks is None
        self._quirks = quirks or servers.by_address(api_root(base_url))
        self._root = api_root(base_url, self._quirks.usual_path)
        self._secret = _secret(api_key, self._quirks)
        self._listing_timeouts = listing_timeouts or Timeouts(connect=10, idle=30, total=60)
        self._state = ProviderState()
        self._known: dict[str, Capabilities] = {}
        self._refused: dict[str, frozenset[str]] = {}

    @property
    def dialect(self) -> str:
        """Its name in an endpoint."""
        return "openai-chat"

    @property
    def state(self) -> ProviderState:
        """Totals."""
        return self._state

    @property
    def quirks(self) -> servers.Quirks:
        """What this server is taken for."""
        return self._quirks

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """Ask, and yield canonical events. A field that the server does not take is dropped and asked again once."""
        answer = await self._asked(request)
        builder, reader, decoder = self._folding(answer)
        failure: ProviderError | None = None
        try:
            async with answer.body() as chunks:
                async for chunk in _UntilSilent(chunks, reader):
                    for event in _events(decoder.feed(chunk), reader, builder):
                        yield event
                    if reader.done or reader.failure is not None:
                        break
                else:
                    for event in _events(decoder.finish(), reader, builder):
                        yield event
                if reader.done:
                    for event in self._last_events(reader, builder, failed=False):
                        yield event
                    await _drained(chunks)
        except (Truncated, TimedOut, UnreadableAnswer) as error:
            # After its end mark an answer is whole, however the connection ended.
            failure = None if reader.has_ended else error
        failure = reader.failure or failure or _broken_off(reader, decoder, answer)
        for event in self._last_events(reader, builder, failed=failure is not None):
            yield event
        if failure is not None:
            # Not chained, and without the last bytes: what a server echoed must not be shown with a traceback.
            chunk = b""
            failure.__context__ = None
            raise failure
        yield Done()

    async def list_models(self) -> tuple[ModelInfo, ...]:
        """The server's listing with what it tells about each model; also teaches this object who the server is."""
        found = await listing(self._root, self._quirks, self._exchange)
        if self._is_guess:
            self._quirks = found.quirks
        self._known = {model.id: model.capabilities for model in found.models}
        return found.models

    async def aclose(self) -> None:
        """Nothing of its own is open: the client is shared."""

    async def _exchange(self, url: str, body: bytes | None = None) -> bytes:
        call = HttpCall(url, self._listing_timeouts, body=body, secret=self._secret)
        return await self._http.exchange(call)

    async def _asked(self, request: ModelRequest) -> HttpAnswer:
        """The head of a good answer. Raises what the server refuses with."""
        without = self._refused.get(request.model, frozenset())
        body = self._body(request, without)
        try:
            return await self._sent(request, body)
        except InvalidRequest as error:
            named = refused_fields(named_words(error), body) if error.status in (400, 422) else frozenset[str]()
            if not named:
                raise
            without |= named
        _log.info("the server does not take %s; asking once more without", ", ".join(sorted(without)))
        answer = await self._sent(request, self._body(request, without))
        self._refused[request.model] = without
        return answer

    def _body(self, request: ModelRequest, without: frozenset[str]) -> Body:
        return body_for(request, self._quirks, self._known.get(request.model, Capabilities()), without)

    async def _sent(self, request: ModelRequest, body: Body) -> HttpAnswer:
        self._state.request_count += 1
        self._state.last_request_time = now()
        url = joined(self._root, "chat/completions")
        call = HttpCall(
            url, request.config.timeouts, dumps(body.fields), self._secret, accept="text/event-stream, application/json"
        )
        answer = await self._http.open(call)
        if answer.status >= 400:
            raise await refusal(answer, call)
        if "html" in answer.headers.get("content-type", ""):
            await answer.aclose()
            raise not_a_model_server(answer.headers, "")
        return answer

    def _folding(self, answer: HttpAnswer) -> tuple[PartBuilder, FrameReader, SseDecoder]:
        quirks = self._quirks
        tags = ThinkTags(opened_by_template=quirks.opened_by_template) if quirks.think_tags else None
        builder = PartBuilder(quirks.thinking_provider, tags=tags)
        return builder, FrameReader(builder, answer.headers, self._without_key), SseDecoder()

    def _without_key(self, data: Any) -> Any:
        return data if self._secret is None else loads(self._secret.removed_from(dumps(data)))

    def _last_events(self, reader: FrameReader, builder: PartBuilder, *, failed: bool) -> list[ProviderEvent]:
        if failed:
            builder.close_parts()
        elif reader.end():
            self._state.conversation_turns += 1
        events = builder.take()
        for event in events:
            if isinstance(event, UsageUpdate):
                self._count(event.usage)
        return events

    def _count(self, usage: Usage) -> None:
        self._state.input_tokens += usage.input_tokens or 0
        self._state.output_tokens += usage.output_tokens or 0
        self._state.cached_tokens += usage.cache_read_tokens or 0


def _secret(api_key: SecretStr | None, quirks: servers.Quirks) -> SecretHeader | None:
    """The key's header; white space around a pasted key is no part of it, and an empty key is none."""
    stripped = SecretStr(api_key.get_secret_value().strip()) if api_key is not None else None
    if not stripped:
        return None
    return SecretHeader("api-key", stripped) if quirks.key_header == "api-key" else SecretHeader.bearer(stripped)


class _UntilSilent:
    """All chunks. Once the model has finished only usage and the end mark can follow, so a server that then keeps the
    answer open, with or without signs of life, is waited for no longer than that takes.

    Not a generator: one that is left half-way is closed by the loop's hooks, and not every loop has them.
    """

    def __init__(self, chunks: AsyncIterator[bytes], reader: FrameReader) -> None:
        self._chunks = chunks
        self._reader = reader
        self._until: float | None = None

    def __aiter__(self) -> "_UntilSilent":
        return self

    async def __anext__(self) -> bytes:
        if not self._reader.has_ended:
            return await anext(self._chunks)
        if self._until is None:
            self._until = monotonic() + ENDING_PATIENCE
        try:
            async with asyncio.timeout(self._until - monotonic()):
                return await anext(self._chunks)
        except TimeoutError:
            raise StopAsyncIteration from None


def _events(frames: list[Frame], reader: FrameReader, builder: PartBuilder) -> list[ProviderEvent]:
    for frame in frames:
        reader.read(frame)
        if reader.done or reader.failure is not None:
            break
    return builder.take()


def _broken_off(reader: FrameReader, decoder: SseDecoder, answer: HttpAnswer) -> ProviderError | None:
    """What an end without an end mark means; None when the mark was there."""
    if reader.has_ended:
        return None
    if not reader.recognised and (decoder.frames or decoder.strange):
        return not_a_model_server(answer.headers, decoder.strange)
    unreadable = f" ({decoder.bad_events} unreadable events)" if decoder.bad_events else ""
    return Truncated(
        f"stream ended without finish_reason and [DONE]{unreadable}", request_id=request_id(answer.headers)
    )


async def _drained(chunks: AsyncIterator[bytes]) -> None:
    """Read what follows [DONE], normally nothing, so that the connection can be used again; wait no longer for it."""
    with suppress(TimeoutError):
        async with asyncio.timeout(_DRAIN_SECONDS):
            async for _ in chunks:
                pass
