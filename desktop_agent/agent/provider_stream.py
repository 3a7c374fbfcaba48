"""The event stream of a provider, validated and measured; it is closed in time, whatever the provider does."""

import asyncio
import logging
import math
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, suppress
from time import monotonic
from typing import Any, cast, get_args

from desktop_agent.conversation.answer_builder import AnswerBuilder
from desktop_agent.processes.foreign_code import Fault
from desktop_agent.providers.event_batches import EventBatches, ready_events
from desktop_agent.types.blocks import Base64Source, Citation, Image, ServerStep, ToolUse, Unknown
from desktop_agent.types.engine_events import AnswerAwaited, Event
from desktop_agent.types.errors import AgentError, Sentence
from desktop_agent.types.pieces import Piece, joined, text_of
from desktop_agent.types.provider_events import (
    AnswerNamed,
    AnswerStarted,
    ContentDelta,
    Done,
    MessageDelta,
    ProviderEvent,
    RequestAdjusted,
    TextClosed,
    ThinkingBlock,
    ThinkingDelta,
    ToolArgsDelta,
    UsageUpdate,
)

# In characters, for each object beside its text: even the smallest answer counts.
_VALUE_COST = 8
# A block is an object in the message, in the transcript and in the journal's queue; a call has a result besides.
_BLOCK_COST = 32
_CALL_COST = 128


# Levels that every reader and writer down to the disk can handle; what comes over the wire is refused at half.
MAX_JSON_DEPTH = 200


class AnswerTooLong(AgentError):
    """The answer passed the limit, by `excess` characters; what was received before stays."""

    kind = "answer_too_long"
    default_remedy = "Ask for less at once."
    excess = 0


class NotJson(ValueError):
    """A value that cannot be stored as JSON."""


class AnswerSize:
    """Counts the characters of one answer, up to a limit."""

    def __init__(self, limit: int) -> None:
        self.characters = 0
        self._limit = limit
        self._arguments: dict[str, int] = {}
        self._thinking_characters = 0
        self._is_thinking: bool | None = None

    def add(self, event: Event, pieces: Sequence[Event] = ()) -> None:
        """Count one event; `pieces` are the events that were joined into it.

        Raises AnswerTooLong, and NotJson for opaque state that is no JSON.
        """
        is_in_text = self._is_thinking is False
        count = len(pieces) or 1
        size = len(event.text) + count if is_in_text and type(event) is ContentDelta else self._size(event, pieces)
        excess = self.characters + size - self._limit
        if excess > 0:
            error = AnswerTooLong("The answer is longer than what is taken in.")
            error.excess = excess
            raise error
        self.characters += size

    def _size(self, event: Event, pieces: Sequence[Event]) -> int:
        count = len(pieces) or 1
        match event:
            case ContentDelta():
                return self._text_size(event.text, count, is_thinking=False)
            case ThinkingDelta():
                self._thinking_characters += len(event.text)
                return self._text_size(event.text, count, is_thinking=True)
            case ToolArgsDelta():
                return self._fragment_size(event, pieces or (event,))
            case ToolUse():
                # Its pieces were counted as they came.
                whole = _json_size(event.input) + len(event.malformed or "") + len(event.name) + len(event.id)
                known = self._arguments.pop(event.id, None)
                size = whole + _CALL_COST if known is None else whole - known
                return max(_BLOCK_COST, size) + _json_size(event.metadata)
            case ThinkingBlock():
                size, self._thinking_characters = len(event.text) - self._thinking_characters, 0
                return _BLOCK_COST + max(0, size) + _json_size(event.metadata)
            case ServerStep() | Image() | Unknown():
                return _BLOCK_COST + _block_size(event)
            case _:
                return self._metadata_size(event)

    def _text_size(self, text: str, count: int, *, is_thinking: bool) -> int:
        """Where text follows thinking, or the other way round, a block begins."""
        begins, self._is_thinking = self._is_thinking is (not is_thinking), is_thinking
        return len(text) + count + (_BLOCK_COST - 1 if begins else 0)

    def _fragment_size(self, event: ToolArgsDelta, pieces: Sequence[Event]) -> int:
        """Count the cost of the whole call with its first piece."""
        known = self._arguments.get(event.id)
        self._arguments[event.id] = (known or 0) + len(event.fragment)
        opened = _CALL_COST + len(event.id) if known is None else 0
        names = sum(len(piece.name or "") for piece in pieces if isinstance(piece, ToolArgsDelta))
        return opened + len(event.fragment) + names + len(pieces)

    def _metadata_size(self, event: Event) -> int:
        """Return the size of what is about the answer and not in it."""
        match event:
            case TextClosed():
                return _BLOCK_COST + _json_size(event.metadata) + sum(map(_citation_size, event.citations))
            case MessageDelta():
                return _BLOCK_COST + len(event.raw or "") + _json_size(event.details)
            case AnswerStarted() | RequestAdjusted():
                return _BLOCK_COST + sum(_BLOCK_COST + len(str(adjustment)) for adjustment in event.adjustments)
            case AnswerNamed():
                return _BLOCK_COST + len(event.response_id)
            case Done():
                return 0
            case _:
                return _BLOCK_COST


def _block_size(block: ServerStep | Image | Unknown) -> int:
    match block:
        case ServerStep():
            return len(block.name) + len(block.text) + _json_size(block.raw)
        case Image(source=Base64Source(data=data)):
            return len(data) + _json_size(block.metadata)
        case Image():
            return _json_size(block.metadata)
        case Unknown():
            return _json_size(block.raw)


def _json_size(value: Any) -> int:
    """Return roughly the characters of a JSON value to be stored. Raises NotJson where it could not be read again."""
    count, depth = _size_and_depth(value)
    if depth > MAX_JSON_DEPTH:
        raise NotJson(f"nested {depth} deep")
    return count


def _size_and_depth(root: Any) -> tuple[int, int]:
    """Return characters and levels of nesting, without recursion, however deep it is. Raises NotJson."""
    count, depth, level = 0, 0, [root]
    while level:
        next_level: list[Any] = []
        for value in level:
            if isinstance(value, str):
                count += len(value)
            elif isinstance(value, dict):
                items = cast("dict[Any, Any]", value)
                count += sum(len(str(key)) for key in items)
                next_level.extend(items.values())
            elif isinstance(value, list):
                next_level.extend(cast("list[Any]", value))
            elif not (value is None or isinstance(value, int | float)) or not _is_finite(value):
                raise NotJson(f"{type(value).__name__} is no JSON")
            count += _VALUE_COST
        level = next_level
        depth += 1
    return count, depth


def _is_finite(value: float | None) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


def _citation_size(citation: Citation) -> int:
    return _BLOCK_COST + len(citation.title or "") + len(citation.url or "") + len(citation.quoted or "")


_log = logging.getLogger(__name__)

# A flood of events is taken in slices of this many seconds; longer ones where other tasks take long themselves.
SLICE_SECONDS = 0.008
MAX_SLICE_SECONDS = 0.05
# The timeout for closing a stream, in seconds: less than the grace of a run after Stop, at any depth.
CLOSE_TIMEOUT = 1.0
# At most so many events after Done are read, and dropped.
_MAX_LATE_EVENTS = 100

_EVENT_TYPES = frozenset(get_args(ProviderEvent))
_NO_EVENT = "The model's server sent something that is not part of an answer ({kind})."

# Seconds of silence until the first report, and between reports.
FIRST_NOTICE_AFTER = 10.0
NOTICE_INTERVAL = 1.0
_BEFORE_CONTENT = frozenset({AnswerStarted, AnswerNamed, UsageUpdate})


class InvalidProviderEvent(AgentError):
    """What came is none of the events that a provider may yield."""

    kind = "no_event"
    default_remedy = "Choose another model or server: the program has a fault in its connection to this one."


class _WaitTimer:
    """Reports repeatedly how long no event has come, once a person would wonder."""

    def __init__(self, emit: Callable[[AnswerAwaited], None]) -> None:
        self._emit = emit
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._timer = self._loop.call_later(FIRST_NOTICE_AFTER, self._report)

    def _report(self) -> None:
        self._timer = self._loop.call_later(NOTICE_INTERVAL, self._report)
        self._emit(AnswerAwaited(self._loop.time() - self._began))

    def stop(self) -> None:
        self._timer.cancel()


async def validated_events(
    events: Any, size: AnswerSize, emit: Callable[[AnswerAwaited], None] = lambda _: None
) -> AsyncGenerator[tuple[Event, tuple[Event, ...]]]:
    """Yield the events up to Done, validated and measured; events after Done are dropped.

    Pieces of one text that came together are one event, with the pieces beside it. `emit` is called while nothing has
    come yet. Raises AnswerTooLong, InvalidProviderEvent, and what the provider raises. The provider's stream is closed
    however this ends.
    """
    timer, is_waiting = _WaitTimer(emit), True
    slices = None if isinstance(events, EventBatches) and events.gives_way else _Slices()
    take_ready = ready_events(events)
    try:
        async for event in events:
            ready = take_ready()
            for whole, pieces in joined([event, *ready]) if ready else ((event, ()),):
                if is_waiting and type(whole) not in _BEFORE_CONTENT:
                    is_waiting = False
                    timer.stop()
                try:
                    _count(whole, pieces, size)
                except AnswerTooLong as error:
                    for piece in _within_limit(pieces, error.excess):
                        _count(piece, (), size)
                        yield piece, ()
                    raise
                yield whole, pieces
                if type(whole) is Done:
                    await _drain(events)
                    return
            if slices is not None and monotonic() > slices.until:
                await slices.pause()
    finally:
        timer.stop()
        await _close_stream(events)


async def collect_answer(
    events: Any, answer: AnswerBuilder, size: AnswerSize, emit: Callable[[AnswerAwaited], None] = lambda _: None
) -> None:
    """Fill the answer with the events, validated and measured. Raises as `validated_events` does."""
    async with aclosing(validated_events(events, size, emit)) as validated:
        async for event, _ in validated:
            answer.feed(event)


def _count(event: Event, pieces: Sequence[Event], size: AnswerSize) -> None:
    kind = cast("type[object]", type(event))
    if kind not in _EVENT_TYPES:
        raise InvalidProviderEvent(Sentence(_NO_EVENT, {"kind": kind.__name__}))
    try:
        size.add(event, pieces)
    except NotJson as error:
        raise InvalidProviderEvent("The model's server sent something that is not JSON.") from error


def _within_limit(pieces: Sequence[Event], excess: int) -> Sequence[Event]:
    """Return the pieces without the last ones, which make up the excess, as AnswerSize counts it."""
    count = len(pieces)
    while count and excess > 0:
        count -= 1
        piece = cast("Piece", pieces[count])
        name = piece.name if isinstance(piece, ToolArgsDelta) else None
        excess -= len(name or "") + len(text_of(piece)) + 1
    return pieces[:count]


class _Slices:
    """Yields to other tasks during a flood: events that have piled up come without any wait, and the screen and Stop
    need the event loop."""

    def __init__(self) -> None:
        self.until = monotonic() + SLICE_SECONDS
        self._is_stopped = False

    async def pause(self) -> None:
        """Let other tasks run, and begin the next slice."""
        paused_at = monotonic()
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            if self._is_stopped:
                raise
            self._is_stopped = True
            _cancel_at_next_wait()
        # After Stop there is no second pause: what was received by then is read, for one more slice.
        slice_ = MAX_SLICE_SECONDS if self._is_stopped else max(SLICE_SECONDS, monotonic() - paused_at)
        self.until = monotonic() + min(slice_, MAX_SLICE_SECONDS)


def _cancel_at_next_wait() -> None:
    """Cancel the provider at its next wait: it may still hold events that it received before."""
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()
        task.cancel()


async def _drain(events: Any) -> None:
    """Let a provider tidy its connection after Done, so that the next request may use it again."""
    with suppress(TimeoutError, StopAsyncIteration):
        async with asyncio.timeout(CLOSE_TIMEOUT):
            for _ in range(_MAX_LATE_EVENTS):
                await anext(events)


async def _close_stream(events: Any) -> None:
    """Close the stream; one that cannot be closed is abandoned."""
    closing = asyncio.create_task(_close_quietly(events))
    try:
        await asyncio.wait({closing}, timeout=CLOSE_TIMEOUT)
    finally:
        if not closing.done():
            _log.warning("the stream of an answer could not be closed within %s s and was abandoned", CLOSE_TIMEOUT)
            closing.cancel()


async def _close_quietly(events: Any) -> None:
    try:
        await events.aclose()
    except (asyncio.CancelledError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - the answer is complete without that
        _log.warning("the stream of an answer could not be closed: %s", Fault(error).trace)
