"""Turn an open response into provider events: the one loop for every dialect, and the words for why a model stopped.

A dialect opens the response and supplies a reader of its frames. This module feeds the reader, distinguishes a clean
end from a broken one, adds up usage and cost, and closes the connection however it ends. The finish reasons are those
of servers of any dialect (OpenAI, Anthropic, Google, Mistral; LiteLLM's `_FINISH_REASON_MAP`; DeepSeek; vLLM's
FINISH_REASON_STRINGS).
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any

from pydantic import SecretStr

from desktop_agent.data_files import load_table
from desktop_agent.providers.catalogue.catalogue import Pricing
from desktop_agent.providers.event_batches import EventBatches
from desktop_agent.providers.part_builder import PartBuilder
from desktop_agent.providers.transport.error_responses import (
    error_from_stream,
    is_bare_error,
    may_start_event_stream,
    not_a_model_server_error,
    request_id,
    starts_event_stream,
)
from desktop_agent.providers.transport.http_client import (
    ERROR_BODY_LIMIT,
    HttpClient,
    HttpRequest,
    HttpResponse,
    SecretHeader,
    error_from_response,
)
from desktop_agent.providers.transport.json_codec import dumps, is_object, loads
from desktop_agent.providers.transport.sse import DONE, Frame, SseDecoder
from desktop_agent.types.errors import (
    Overloaded,
    ProviderError,
    Sentence,
    ServerFailed,
    TimedOut,
    Truncated,
    UnreadableAnswer,
)
from desktop_agent.types.messages import now
from desktop_agent.types.provider_events import (
    AnswerStarted,
    Done,
    Origin,
    ProviderEvent,
    StopReason,
    Usage,
    UsageUpdate,
)
from desktop_agent.types.providers import ProviderState

# In seconds after the last content: some servers write a finish reason on every chunk.
END_TIMEOUT = 30.0
_DRAIN_SECONDS = 0.1
EVENT_STREAM = "text/event-stream, application/json"


class BaseFrameReader(ABC):
    """Reads the frames of one answer into a PartBuilder.

    `done`: the stream's own end mark was read, nothing may follow. `failure`: an error in the stream; nothing after it
    counts. `recognised`: something looked like this dialect. `end_mark`: what a cut stream lacks, in words.
    """

    end_mark: str

    def __init__(self, builder: PartBuilder, headers: Mapping[str, str]) -> None:
        self.done = False
        self.failure: ProviderError | None = None
        self.recognised = False
        self._builder = builder
        self._headers = headers

    @property
    @abstractmethod
    def has_finished(self) -> bool:
        """Whether the server reported that the model is finished; more may still follow."""

    @property
    @abstractmethod
    def has_ended(self) -> bool:
        """Whether the answer is whole, if nothing more follows."""

    @property
    def usage_so_far(self) -> Usage | None:
        """The last report of usage, also of an answer that goes on."""
        return self._builder.usage

    @abstractmethod
    def read(self, frame: Frame) -> bool:
        """Read one frame. Return whether it is one more piece of a text, with nothing else in it."""

    @abstractmethod
    def end(self) -> None:
        """End the builder with the server's reason, corrected by the content."""

    def error_from(self, data: Any) -> ProviderError:
        """Return the error that the server wrote into the stream, without the key."""
        return error_from_stream(None if data is DONE else self._redact_key(data), self._headers)

    def _fail(self, data: Any) -> None:
        if self.failure is None:
            self.failure = self.error_from(data)

    def _redact_key(self, data: Any) -> Any:
        return loads(self._builder.redact_key(dumps(data).decode()).encode())


@dataclass(frozen=True, slots=True)
class OpenedStream:
    """A good response whose head has arrived, and how to read it."""

    answer: HttpResponse
    builder: PartBuilder
    reader: BaseFrameReader
    origin: Origin
    adjustments: tuple[Sentence, ...] = ()
    pricing: Pricing | None = None


def stream_events(opening: Callable[[], Awaitable[OpenedStream]], state: ProviderState) -> EventBatches:
    """Send a request, and yield canonical events as they arrive. Raises what `opening` raises, and ProviderError."""
    # Each read of a socket lets other tasks run.
    return EventBatches(_read_batches(opening, state), gives_way=True)


async def _read_batches(
    opening: Callable[[], Awaitable[OpenedStream]], state: ProviderState
) -> AsyncGenerator[Sequence[ProviderEvent], None]:
    """Yield all events of each chunk of bytes together."""
    opened = await opening()
    answer, builder, reader, decoder = opened.answer, opened.builder, opened.reader, SseDecoder()
    builder.redact_key = answer.redact_key
    chunks: _StreamChunks | None = None
    failure: ProviderError | None = None
    try:
        answer.wait_for_first_event()
        async with answer.body() as body:
            yield (AnswerStarted(opened.origin, opened.adjustments),)
            progress = -1
            chunks = _StreamChunks(body, reader, builder)
            async for chunk in chunks:
                yield _read_events(decoder.feed(chunk), opened)
                progress = _note_progress(opened, progress)
                # A web page came instead of an answer: do not wait for its rest.
                if reader.failure is not None or decoder.is_web_page:
                    break
            else:
                yield _read_events(decoder.finish(), opened)
    except asyncio.CancelledError:
        # After a stop, what was received is still shown: some of it may be pending.
        _read_rest(decoder, opened)
        yield _broken_off_events(opened, state)
        raise
    except (Truncated, TimedOut, UnreadableAnswer) as error:
        failure = error
    failure = _stream_end_error(opened, decoder, failure, was_silent=chunks is not None and chunks.was_silent)
    if failure is not None:
        yield _broken_off_events(opened, state)
        # Not chained, and without the last bytes: an echoed key must not appear in a traceback.
        chunk = b""
        failure.__context__ = None
        failure.request_id = failure.request_id and answer.redact_key(failure.request_id)
        raise failure
    yield _whole_answer_events(opened, state, decoder.bad_events)
    yield (Done(),)


def _stream_end_error(
    opened: OpenedStream, decoder: SseDecoder, failure: ProviderError | None, *, was_silent: bool
) -> ProviderError | None:
    """Return the error that the end of the bytes means, given the connection's `failure`; None: the answer is whole."""
    reader = opened.reader
    if failure is not None:
        _read_rest(decoder, opened)
    if (was_silent or isinstance(failure, TimedOut)) and reader.has_finished and not reader.done:
        opened.builder.end_details["unended"] = True
        failure = None
    elif reader.has_ended or (reader.has_finished and failure is None and not decoder.ended_mid_event):
        # After its end mark an answer is whole; after a finish reason only if the connection ended well.
        failure = None
    else:
        failure = failure or _truncated_stream_error(reader, decoder, opened.answer)
    return reader.failure or failure


async def send_request(http: HttpClient, call: HttpRequest, state: ProviderState) -> HttpResponse:
    """Send a request. Raises the server's error, and UnreadableAnswer for a web page."""
    state.request_count += 1
    state.last_request_time = now()
    answer = await http.open(call)
    if answer.status >= 400 and not await _is_event_stream(answer):
        raise await error_from_response(answer, call)
    return answer


async def _is_event_stream(answer: HttpResponse) -> bool:
    """Whether the body of an error status is an event stream all the same, whose first event is no error."""
    decoder, size, start = SseDecoder(), 0, b""
    while size < ERROR_BODY_LIMIT and (chunk := await answer.peek()):
        if not starts_event_stream(start):
            start = (start + chunk).lstrip()
            if not (starts_event_stream(start) or may_start_event_stream(start)):
                return False
        size += len(chunk)
        for name, data in decoder.feed(chunk):
            return name != "error" and is_object(data) and not data.get("error") and data.get("type") != "error"
    return False


def key_header(api_key: SecretStr | None, name: str = "Authorization") -> SecretHeader | None:
    """Return the header that carries the key, stripped of white space; None for an empty key."""
    key = SecretStr(api_key.get_secret_value().strip()) if api_key is not None else None
    if not key:
        return None
    return SecretHeader.bearer(key) if name == "Authorization" else SecretHeader(name, key)


def _whole_answer_events(opened: OpenedStream, state: ProviderState, damaged: int) -> list[ProviderEvent]:
    if damaged:
        opened.builder.note_adjustment(_damaged_sentence(damaged))
    opened.reader.end()
    state.conversation_turns += 1
    return [_add_usage(event, opened.pricing, state) for event in opened.builder.take_events()]


def _add_usage(event: ProviderEvent, pricing: Pricing | None, state: ProviderState) -> ProviderEvent:
    """Add usage to the totals, and its cost unless the server named one."""
    if not isinstance(event, UsageUpdate):
        return event
    usage = event.usage
    state.input_tokens += usage.input_tokens or 0
    state.output_tokens += usage.output_tokens or 0
    state.cached_tokens += usage.cache_read_tokens or 0
    if usage.cost is None and pricing is not None:
        return replace(event, usage=usage.model_copy(update={"cost": pricing.cost(usage)}))
    return event


class _StreamChunks:
    """Yields all chunks, with a time limit after the end. If a server reported a finish and keeps the response open, it
    gets END_TIMEOUT after its last content; after its end mark only the rest that is on its way is read.
    Not a generator: an unfinished one is closed by the loop's hooks, and not every loop has them.
    """

    def __init__(self, chunks: AsyncIterator[bytes], reader: BaseFrameReader, builder: PartBuilder) -> None:
        self.was_silent = False
        self._chunks = chunks
        self._reader = reader
        self._builder = builder
        self._progress = -1
        self._deadline = 0.0
        self._is_done = False

    def __aiter__(self) -> "_StreamChunks":
        return self

    async def __anext__(self) -> bytes:
        if not self._reader.has_finished:
            return await anext(self._chunks)
        if self._reader.done:
            if not self._is_done:
                self._is_done, self._deadline = True, monotonic() + _DRAIN_SECONDS
        elif self._progress != self._builder.progress:
            self._progress, self._deadline = self._builder.progress, monotonic() + END_TIMEOUT
        try:
            async with asyncio.timeout(self._deadline - monotonic()):
                return await anext(self._chunks)
        except TimeoutError:
            self.was_silent = not self._is_done
            raise StopAsyncIteration from None


def _read_events(frames: list[Frame], opened: OpenedStream) -> list[ProviderEvent]:
    if not frames:
        return []
    _read_frames(frames, opened)
    return opened.builder.take_events()


def _read_frames(frames: list[Frame], opened: OpenedStream) -> None:
    reader = opened.reader
    for frame in frames:
        was_done = reader.done
        if reader.read(frame):
            continue
        if was_done:
            reader.failure = None  # a whole answer cannot fail any more
        elif reader.failure is None and not reader.has_finished and is_bare_error(frame[1]):
            reader.failure = reader.error_from(frame[1])
        if reader.failure is not None:
            break


def _read_rest(decoder: SseDecoder, opened: OpenedStream) -> None:
    """Read what was complete when the body was cut, but was pending in case more would follow."""
    with suppress(UnreadableAnswer):  # one event is too large
        _read_frames(decoder.finish(is_cut=True), opened)


def _broken_off_events(opened: OpenedStream, state: ProviderState) -> list[ProviderEvent]:
    """Return the rest, and the usage so far: what the server read and wrote before it was broken off is billed."""
    opened.builder.close_parts()
    usage = opened.reader.usage_so_far
    events = [*opened.builder.take_events(), *([] if usage is None else [UsageUpdate(usage)])]
    return [_add_usage(event, opened.pricing, state) for event in events]


def _note_progress(opened: OpenedStream, before: int) -> int:
    """Return the answer's progress. After its first event, each piece restarts the limit; keepalives only extend it."""
    if not opened.reader.recognised:
        return before
    progress = opened.builder.progress
    if progress == before:
        opened.answer.on_keepalive()
    else:
        opened.answer.on_event()
    return progress


def _damaged_sentence(count: int) -> Sentence:
    if count == 1:
        return Sentence("One event of the answer was damaged and could not be read. Something may be missing.")
    return Sentence(
        "{count} events of the answer were damaged and could not be read. Something may be missing.",
        {"count": str(count)},
    )


def _truncated_stream_error(reader: BaseFrameReader, decoder: SseDecoder, answer: HttpResponse) -> ProviderError:
    """Return the error for an end without an end mark."""
    if not reader.recognised and (decoder.frames or decoder.unexpected_line):
        return not_a_model_server_error(answer.headers, answer.redact_key(decoder.unexpected_line))
    if not (decoder.frames or decoder.bad_events):
        return Truncated(Sentence("it was empty"), request_id=request_id(answer.headers))
    message = Sentence("the stream ended without {mark}", {"mark": reader.end_mark})
    if decoder.bad_events:
        values = {"what": message, "count": str(decoder.bad_events)}
        message = Sentence("{what} ({count} unreadable events)", values)
    return Truncated(message, request_id=request_id(answer.headers))


def load_stop_reasons(dialect: str) -> dict[str, StopReason]:
    """Return the stop reasons by the words of one table of finish_reasons.toml."""
    table = load_table(__name__, "finish_reasons.toml")[dialect]
    return {word: StopReason(reason) for reason, words in table.items() for word in words}


_REASONS: Mapping[str, StopReason] = load_stop_reasons("any")
_FAILURE_WORDS: Mapping[str, tuple[type[ProviderError], Sentence]] = {
    "error": (ServerFailed, Sentence("the server ended the answer with an error")),
    "network_error": (ServerFailed, Sentence("the server lost its connection to the model")),
    **dict.fromkeys(("abort", "aborted"), (ServerFailed, Sentence("the server broke the answer off"))),
    "insufficient_system_resource": (
        Overloaded,
        Sentence("the server stopped the answer because it ran out of resources"),
    ),
}
# The default values of Google's enumerations, which gateways print for an empty field.
_UNSPECIFIED_WORDS = (
    "unspecified",
    "finish_reason_unspecified",
    "block_reason_unspecified",
    "blocked_reason_unspecified",
)
_EMPTY_WORDS = frozenset({"", "null", "none", "nil", "undefined", *_UNSPECIFIED_WORDS})


def finish_word(value: Any) -> str | None:
    """Return the server's word for the end; None if it is empty in any form."""
    return value if isinstance(value, str) and _normalised(value) not in _EMPTY_WORDS else None


def sum_known(*counts: int | None) -> int | None:
    """Return the sum of the known counts; None where none is known."""
    numbers = [count for count in counts if count is not None]
    return sum(numbers) if numbers else None


def stop_reason_for(word: str) -> StopReason:
    """Return the meaning of the word; UNKNOWN for others."""
    return _REASONS.get(_normalised(word), StopReason.UNKNOWN)


def failure_for(word: str, request_id: str | None) -> ProviderError | None:
    """Return the error if the word means that the answer failed."""
    failure = _FAILURE_WORDS.get(_normalised(word))
    return None if failure is None else failure[0](failure[1], request_id=request_id)


def _normalised(word: str) -> str:
    return word.strip().lower().replace("-", "_")
