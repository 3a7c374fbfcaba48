"""One stream through one dialect, in memory, and everything that must hold of what comes out.

Only the network is left out: the adapter, the decoder, the reader and the builder are the program's own.
"""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any, cast

from pydantic import SecretStr

from desktop_agent.conversation.answer_builder import AnswerBuilder
from desktop_agent.providers.dialects import response_stream
from desktop_agent.providers.provider import Provider, make_provider
from desktop_agent.providers.transport.http_client import HttpClient, HttpRequest, HttpResponse
from desktop_agent.providers.transport.sse import MAX_EVENT_SIZE, SseDecoder
from desktop_agent.storage.records import event_to_json, message_to_json, read_event, read_message
from desktop_agent.types.blocks import Text, ToolUse
from desktop_agent.types.errors import ProviderError
from desktop_agent.types.messages import Message, MessageState, now
from desktop_agent.types.provider_events import (
    AnswerStarted,
    ContentDelta,
    Done,
    ProviderEvent,
    ThinkingBlock,
    ThinkingDelta,
    ToolArgsDelta,
    Usage,
)
from desktop_agent.types.providers import ModelRequest
from tests.fakes.vendor_streams import ROOTS

SMALL_LIMIT = 64 * 1024
"""The size limit of one event for nearly all streams: so that endless lines are cheap."""

_REQUEST = ModelRequest("m", (Message.user("hi"),))
_MAX_EVENTS_PER_BYTE = 2


class Fault(Exception):
    """A stream that did what no stream may do."""


@dataclass
class Outcome:
    """What a stream came to: its events, and the error that ended it."""

    events: list[ProviderEvent] = field(default_factory=list[ProviderEvent])
    error: ProviderError | None = None


class _Answer(HttpResponse):
    """An answer whose body is in memory."""

    def __init__(self, chunks: Sequence[bytes], call: HttpRequest) -> None:
        self.status = 200
        self._call = call
        self.headers = {"content-type": "text/event-stream", "x-request-id": "req_1"}
        self._chunks = chunks

    @asynccontextmanager
    async def body(self) -> AsyncGenerator[AsyncIterator[bytes], None]:
        yield _Chunks(self._chunks)

    def wait_for_first_event(self) -> None: ...

    def on_event(self) -> None: ...

    def on_keepalive(self) -> None: ...

    async def aclose(self) -> None:
        pass


class _Chunks:
    """Not a generator: one that is left half-way would be closed by the loop, in a task of its own."""

    def __init__(self, chunks: Sequence[bytes]) -> None:
        self._chunks = iter(chunks)

    def __aiter__(self) -> "_Chunks":
        return self

    async def __anext__(self) -> bytes:
        for chunk in self._chunks:
            return chunk
        raise StopAsyncIteration


class _Http(HttpClient):
    """Answers every question with the same chunks."""

    def __init__(self) -> None:
        super().__init__()
        self.chunks: Sequence[bytes] = ()

    async def open(self, call: HttpRequest) -> HttpResponse:
        return _Answer(self.chunks, call)


class Judge:
    """One dialect's adapter, asked again and again."""

    def __init__(self, dialect: str) -> None:
        self._http = _Http()
        self._provider: Provider = make_provider(
            dialect, f"http://localhost:1234/{ROOTS[dialect]}", SecretStr("key"), self._http
        )

    async def judged(self, chunks: Sequence[bytes], *, limit: int = SMALL_LIMIT) -> Outcome:
        """The outcome. Raises Fault, or whatever the program lets escape."""
        return checked(await self._outcome(chunks, limit))

    async def judged_again(self, chunks: Sequence[bytes], before: Outcome, *, limit: int = SMALL_LIMIT) -> None:
        """The same bytes, cut in another way: the outcome must be the same. Raises Fault."""
        outcome = await self._outcome(chunks, limit)
        first, second = comparable(before), comparable(outcome)
        for one, other in zip(first, second, strict=False):
            if one != other:
                raise Fault(f"cut otherwise, {one!r:.500} became {other!r:.500}")
        if len(first) != len(second):
            raise Fault(f"cut otherwise, {len(first)} events became {len(second)}")

    async def _outcome(self, chunks: Sequence[bytes], limit: int) -> Outcome:
        response_stream.SseDecoder = partial(SseDecoder, limit)  # type: ignore[assignment,misc]
        self._http.chunks = chunks
        outcome = Outcome()
        most = 100 + _MAX_EVENTS_PER_BYTE * sum(map(len, chunks))
        try:
            async for event in self._provider.stream(_REQUEST):
                outcome.events.append(event)
                if len(outcome.events) > most:
                    raise Fault(f"more than {most} events")
        except ProviderError as error:
            outcome.error = error
            _check_error(error)
        return outcome


def checked(outcome: Outcome) -> Outcome:
    """The same. Raises Fault for what no outcome may be."""
    _check_order(outcome)
    _check_calls(outcome)
    _check_stored(outcome.events)
    _check_message(outcome)
    return outcome


def comparable(outcome: Outcome) -> list[Any]:
    """Neighbouring deltas joined, made-up ids numbered: what may not depend on how the bytes were cut."""
    joined: list[Any] = []
    ids: dict[str, str] = {}
    for event in outcome.events:
        last = joined[-1] if joined else None
        match event:
            case ContentDelta() if isinstance(last, ContentDelta) and last.phase == event.phase:
                joined[-1] = replace(last, text=last.text + event.text)
            case ThinkingDelta() if isinstance(last, ThinkingDelta):
                joined[-1] = replace(last, text=last.text + event.text)
            case ToolArgsDelta():
                pass  # for display only, and shown as soon as an id is known
            case ToolUse():
                joined.append(event.model_copy(update={"id": _numbered(event.id, ids)}))
            case ThinkingBlock() if "call_id" in event.metadata:
                named = _numbered(str(event.metadata["call_id"]), ids)
                joined.append(replace(event, metadata={**event.metadata, "call_id": named}))
            case _:
                joined.append(event)
    error = outcome.error
    return [*joined, None if error is None else (error.kind, error.message, error.detail)]


def _numbered(call_id: str, ids: dict[str, str]) -> str:
    return ids.setdefault(call_id, f"call {len(ids)}") if call_id.startswith("call_") else call_id


def _check_order(outcome: Outcome) -> None:
    events = outcome.events
    kinds = [event.type for event in events]
    if events and not isinstance(events[0], AnswerStarted):
        raise Fault(f"began with {kinds[0]}")
    for once in ("answer_started", "answer_named", "message_delta", "done"):
        if kinds.count(once) > 1:
            raise Fault(f"{once} came {kinds.count(once)} times")
    if isinstance(events[-1] if events else None, Done) is not (outcome.error is None):
        raise Fault(f"ended with {kinds[-1:]} and {outcome.error!r}")
    if "message_delta" in kinds:
        behind = kinds[kinds.index("message_delta") + 1 :]
        if not set(behind) <= {"usage", "done"}:
            raise Fault(f"after the end came {behind}")
    elif outcome.error is None:
        raise Fault("ended well without a message_delta")


def _check_calls(outcome: Outcome) -> None:
    calls = [event for event in outcome.events if isinstance(event, ToolUse)]
    ids = [call.id for call in calls]
    if len(ids) != len(set(ids)) or not all(ids) or not all(call.name for call in calls):
        raise Fault(f"calls without a name or an id of their own: {calls!r:.500}")
    if any(call.malformed is not None and call.input for call in calls):
        raise Fault("a malformed call with an input")
    if any(isinstance(event, ToolArgsDelta) and not event.id for event in outcome.events):
        raise Fault("a piece of a call that nobody can find")


def check_cut(whole: Outcome, part: Outcome) -> None:
    """`part` is `whole` cut off by the connection: it has no call that the whole has not. Raises Fault."""
    inputs = [(call.name, call.input, call.malformed) for call in whole.events if isinstance(call, ToolUse)]
    for call in part.events:
        if isinstance(call, ToolUse) and (call.name, call.input, call.malformed) not in inputs:
            raise Fault(f"a cut call was handed out: {call!r:.500}")


def _check_stored(events: list[ProviderEvent]) -> None:
    for event in events:
        text = event_to_json(event)
        if "\\ud" in text and not _is_encodable(json.loads(text)):
            raise Fault(f"half a pair: {event!r:.500}")
        again = read_event(text)
        if again != event:
            raise Fault(f"stored {event!r:.500}, read {again!r:.500}")


def _is_encodable(value: Any) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_message(outcome: Outcome) -> None:
    """What is folded from the events is storable, and its texts are the deltas."""
    builder = AnswerBuilder("id", "m")
    at = now()
    for event in outcome.events:
        builder.feed(cast("Any", event), at)
    state = MessageState.COMPLETE if outcome.error is None else MessageState.INTERRUPTED
    message = builder.message(state, at)
    text = "".join(block.text for block in message.blocks if isinstance(block, Text))
    deltas = [event for event in outcome.events if isinstance(event, ContentDelta)]
    said = "".join(event.text for event in deltas)
    # Parts that come mixed are put in order: then it is the same characters.
    is_mixed = any(later.part < earlier.part for earlier, later in pairwise(deltas))
    if (sorted(text) != sorted(said)) if is_mixed else (text != said):
        raise Fault(f"said {said!r:.300}, kept {text!r:.300}")
    again = read_message(message_to_json(message), id_=message.id, role=message.role, state=message.state)
    if again != message:
        raise Fault(f"stored {message!r:.500}, read {again!r:.500}")
    thought = [event for event in outcome.events if isinstance(event, (ThinkingDelta, ThinkingBlock))]
    open_thoughts: dict[int, str] = {}
    for event in thought:
        if isinstance(event, ThinkingDelta):
            open_thoughts[event.part] = open_thoughts.get(event.part, "") + event.text
        elif _letters(shown := open_thoughts.pop(event.part, "")) != _letters(event.text):
            raise Fault(f"thought {shown!r:.300}, closed with {event.text!r:.300}")
    usage = message.usage or Usage()
    if any(isinstance(value, int) and value < 0 for value in usage.model_dump().values()):
        raise Fault(f"negative usage: {usage!r}")


def _letters(text: str) -> list[str]:
    """All but the blank lines between paragraphs, which may have come in another order."""
    return sorted(text.replace("\n", ""))


def _check_error(error: ProviderError) -> None:
    text = f"{error} {error.detail} {error.remedy} {error.request_id}"
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Fault(f"an error that cannot be written: {text!r:.300}") from None
    if not str(error).strip() or len(text) > MAX_EVENT_SIZE // 1024:
        raise Fault(f"an error of {len(text)} characters")
