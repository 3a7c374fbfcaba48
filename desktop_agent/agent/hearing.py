"""What a provider says, looked at before anybody relies on it: whoever made the provider, its answer ends."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import cache
from time import monotonic
from typing import Any, cast, get_args, get_type_hints

from pydantic import TypeAdapter, ValidationError

from desktop_agent.agent.answer_size import AnswerSize, NotJson
from desktop_agent.agent.calls.fence import Fault
from desktop_agent.vocabulary.engine_events import AnswerAwaited
from desktop_agent.vocabulary.errors import AgentError
from desktop_agent.vocabulary.provider_events import (
    AnswerNamed,
    AnswerStarted,
    ContentDelta,
    Done,
    ProviderEvent,
    ThinkingDelta,
    UsageUpdate,
)

_log = logging.getLogger(__name__)

# A flood of events is taken in slices of this many seconds; longer ones where the others take long themselves.
SLICE_SECONDS = 0.008
MAX_SLICE_SECONDS = 0.05
# What an answer gets to be let go of, in seconds: less than a run waits after Stop, however deep it is.
CLOSE_TIMEOUT = 1.0
# So many words behind the last one are passed over.
_MAX_LATE_EVENTS = 100

_EVENT_TYPES = frozenset(get_args(ProviderEvent))

# How long nothing must have come until it is said, and until it is said again, in seconds.
FIRST_NOTICE_AFTER = 10.0
NOTICE_INTERVAL = 1.0
_BEFORE_CONTENT = frozenset({AnswerStarted, AnswerNamed, UsageUpdate})


class InvalidProviderEvent(AgentError):
    """What came is none of the events that a provider may yield."""

    kind = "no_event"
    default_remedy = "Choose another model or server; the program's connection to this one must be mended."


class _WaitTimer:
    """Says how long nothing has come, again and again, from the first moment that a person would wonder."""

    def __init__(self, emit: Callable[[AnswerAwaited], None]) -> None:
        self._emit = emit
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._timer = self._loop.call_later(FIRST_NOTICE_AFTER, self._report)

    def _report(self) -> None:
        self._timer = self._loop.call_later(NOTICE_INTERVAL, self._report)
        self._emit(AnswerAwaited(self._loop.time() - self._began))

    def stop(self) -> None:
        """Say no more."""
        self._timer.cancel()


async def validated_events(
    events: Any, size: AnswerSize, emit: Callable[[AnswerAwaited], None] = lambda _: None
) -> AsyncGenerator[ProviderEvent]:
    """The events up to Done, checked and counted. Whatever comes behind it was never said. `emit` is told while nothing
    has come yet.

    Raises AnswerTooLong, InvalidProviderEvent, and what the provider raises. However it ends, the provider is let go
    of.
    """
    pause_at, is_stopped = monotonic() + SLICE_SECONDS, False
    waiting: _WaitTimer | None = _WaitTimer(emit)
    try:
        async for event in events:
            if waiting is not None and type(event) not in _BEFORE_CONTENT:
                waiting.stop()
                waiting = None
            if type(event) is not ContentDelta or type(event.text) is not str:
                _validate_event(event)
            try:
                size.add(event)
            except NotJson as error:
                raise InvalidProviderEvent("The model's server sent something that is no JSON.") from error
            yield event
            if type(event) is Done:
                await _drain(events)
                return
            if monotonic() > pause_at:
                # What has piled up comes without any waiting; the screen and Stop must have their turn.
                paused_at = monotonic()
                try:
                    await asyncio.sleep(0)
                except asyncio.CancelledError:
                    if is_stopped:
                        raise
                    is_stopped = True
                    _cancel_at_next_wait()
                # After Stop there is no second turn: what was received by then is taken, as far as a slice may go.
                slice_ = (
                    MAX_SLICE_SECONDS
                    if is_stopped
                    else min(max(SLICE_SECONDS, monotonic() - paused_at), MAX_SLICE_SECONDS)
                )
                pause_at = monotonic() + slice_
    finally:
        if waiting is not None:
            waiting.stop()
        await _close_stream(events)


def _validate_event(event: object) -> None:
    """Raises InvalidProviderEvent."""
    kind = type(event)
    if kind is ThinkingDelta and type(cast("ThinkingDelta", event).text) is str:
        return
    if kind not in _EVENT_TYPES:
        raise InvalidProviderEvent(f"The model's server sent something that is no part of an answer ({kind.__name__}).")
    try:
        for name, adapter in _field_adapters(kind):
            adapter.validate_python(getattr(event, name), strict=True)
    except (ValidationError, AttributeError, RecursionError) as error:
        raise InvalidProviderEvent(f"The model's server sent a broken part of an answer ({kind.__name__}).") from error


@cache
def _field_adapters(kind: type) -> tuple[tuple[str, TypeAdapter[Any]], ...]:
    hints = get_type_hints(kind)
    if is_dataclass(kind):
        return tuple((each.name, TypeAdapter(hints[each.name])) for each in fields(kind))
    names = cast("Any", kind).model_fields
    return tuple((name, TypeAdapter(hints[name])) for name in names)


def _cancel_at_next_wait() -> None:
    """Let the provider hear of Stop at its next wait: it may hold back what it received before."""
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()
        task.cancel()


async def _drain(events: Any) -> None:
    """Behind its last word a provider puts its connection in order, so that the next question may use it."""
    with suppress(TimeoutError, StopAsyncIteration):
        async with asyncio.timeout(CLOSE_TIMEOUT):
            for _ in range(_MAX_LATE_EVENTS):
                await anext(events)


async def _close_stream(events: Any) -> None:
    """Close it; what cannot be closed is left behind."""
    closing = asyncio.create_task(_close_quietly(events))
    try:
        await asyncio.wait({closing}, timeout=CLOSE_TIMEOUT)
    finally:
        if not closing.done():
            _log.warning("an answer could not be closed within %s s and was left behind", CLOSE_TIMEOUT)
            closing.cancel()


async def _close_quietly(events: Any) -> None:
    try:
        await events.aclose()
    except (asyncio.CancelledError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # noqa: BLE001 - what it said is whole without that
        _log.warning("an answer could not be closed: %s", Fault(error).trace)
