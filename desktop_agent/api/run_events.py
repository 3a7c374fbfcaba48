"""Events of one run for one reader, the blocks finished by them, and the errors behind error events."""

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import reduce
from typing import Self

from desktop_agent.conversation.answer_builder import AnswerBuilder, add_usage
from desktop_agent.types.blocks import Block
from desktop_agent.types.engine_events import (
    ContextCompacted,
    EngineEvent,
    Envelope,
    ErrorOccurred,
    Event,
    RunEnd,
    RunFinished,
    ToolCallPending,
    ToolFinished,
    TurnStarted,
)
from desktop_agent.types.errors import AgentError, ProviderError, Sentence
from desktop_agent.types.messages import new_id, now
from desktop_agent.types.provider_events import ContentDelta, Done, StopReason, Usage


class AsyncCloseable(ABC):
    """Closed by `aclose`, or at the end of `async with`."""

    @abstractmethod
    async def aclose(self) -> None:
        """Close it, and wait until that is done."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class _BlockBuilder(AnswerBuilder):
    """One answer whose finished blocks are taken one after the other."""

    def __init__(self) -> None:
        super().__init__(new_id(), "")
        self._returned_count = 0

    def take(self) -> tuple[Block, ...]:
        blocks = tuple(self._blocks[self._returned_count :])
        self._returned_count += len(blocks)
        return blocks

    def finish(self) -> tuple[Block, ...]:
        self.close_parts(now())
        return self.take()


class BlockCollector:
    """Collects blocks from the events of a run or a provider.

    `usage` is of all answers and summaries, `stop_reason` of the last answer.
    """

    def __init__(self) -> None:
        self._answer = _BlockBuilder()
        self._earlier_usage: Usage | None = None
        self._stop_reason: StopReason | None = None

    @property
    def usage(self) -> Usage | None:
        return add_usage(self._earlier_usage, self._answer.total_usage)

    @property
    def stop_reason(self) -> StopReason | None:
        return self._answer.stop_reason or self._stop_reason

    def feed(self, event: Event, at: datetime | None = None) -> tuple[Block, ...]:
        """Take one event; return the blocks that it finished, results of calls among them."""
        if isinstance(event, ToolFinished):
            return (*self._answer.finish(), event.result)
        if isinstance(event, ContextCompacted):
            self._earlier_usage = add_usage(self._earlier_usage, event.usage)
        if isinstance(event, TurnStarted):
            rest = self._answer.finish()
            self._earlier_usage, self._stop_reason = self.usage, self.stop_reason
            self._answer = _BlockBuilder()
            return rest
        self._answer.feed(event, at)
        if isinstance(event, Done | ToolCallPending | RunFinished):
            return self._answer.finish()
        return self._answer.take()

    def finish(self) -> tuple[Block, ...]:
        """Return the open blocks as they are: nothing more comes."""
        return self._answer.finish()


def error_from_event(event: ErrorOccurred, failure: AgentError | None = None) -> AgentError:
    """Return the error behind the event: `failure` where it is that one, else one of the same kind and sentence."""
    if failure is not None and (failure.kind, failure.sentence) == (event.kind, event.sentence):
        return failure.with_traceback(None)
    kind = _error_class(event.kind)
    if issubclass(kind, ProviderError):
        # A message without a full stop is the value of a sentence that adds one.
        inner = event.sentence.values.get("what")
        values = (inner if isinstance(inner, Sentence) else event.sentence).values
        return kind(values.get("message", event.message), detail=event.detail, remedy=event.remedy)
    return kind(event.sentence, event.remedy, detail=event.detail)


def _error_class(kind: str) -> type[AgentError]:
    """Return the class of this kind nearest to the root: its subclasses may say more than is known."""
    queue = deque[type[AgentError]]([AgentError])
    while queue:
        candidate = queue.popleft()
        if candidate.kind == kind:
            return candidate
        queue.extend(candidate.__subclasses__())
    return AgentError


class RunEvents:
    """The events of one run, kept until they are read, without those of specialists.

    `has_begun`: the model began to answer; an error before that is raised, a later one is an event. `end` and `error`
    say how the run ended. `is_stopped_at_once`: Stop came before it could ask anything.
    """

    def __init__(self, failure: Callable[[], AgentError | None], *, is_stopped_at_once: bool = False) -> None:
        self.is_stopped_at_once = is_stopped_at_once
        self.has_begun = False
        self.end: RunEnd | None = None
        self.error: AgentError | None = None
        self._failure = failure
        self._has_text = False
        self._specialist_runs: dict[str, BlockCollector] = {}
        self._unread = deque[Event]()
        self._changed = asyncio.Event()

    def handle(self, envelope: Envelope, pieces: Sequence[Event] = ()) -> None:
        """Take one event, or the pieces that were joined in it."""
        event = envelope.event
        if not envelope.run_id or self.end is not None:
            return
        if envelope.parent_run_id is not None:
            self._specialist_runs.setdefault(envelope.run_id, BlockCollector()).feed(event)
            return
        self._unread.extend(pieces or (event,))
        if isinstance(event, ErrorOccurred):
            self.error = error_from_event(event, self._failure())
        elif isinstance(event, RunFinished):
            self.end = event.reason
            if event.reason is RunEnd.COMPLETED:
                # The error was about something else, such as a queued message that a hook refused.
                self.error = None
        elif not self._has_text:
            self._has_text = isinstance(event, ContentDelta)
            self.has_begun = self.has_begun or not isinstance(event, EngineEvent)
        self._changed.set()

    @property
    def usage_below(self) -> Usage | None:
        return reduce(add_usage, (run.usage for run in self._specialist_runs.values()), None)

    def take_unread(self) -> tuple[Event, ...]:
        """Return all events that nobody has read."""
        unread = tuple(self._unread)
        self._unread.clear()
        return unread

    def ended_copy(self) -> "RunEvents":
        """Return an empty run that ended as this one did."""
        empty = RunEvents(lambda: None)
        empty.end = self.end
        return empty

    def take_unread_error(self) -> AgentError | None:
        """Take the error that broke the answer off, if nobody has read it."""
        event = next((event for event in self._unread if isinstance(event, ErrorOccurred)), None)
        if event is None:
            return None
        self._unread.remove(event)
        error, self.error = self.error, None
        return error

    async def wait_for_start(self) -> None:
        """Return when the model began to answer or the run ended. Raises what ended it before that."""
        while not self.has_begun and self.end is None:
            await self._wait()
        self._raise_start_error()

    async def wait_for_text(self) -> None:
        """Return when the first text came or the run ended. Raises as `wait_for_start` does."""
        while not self._has_text and self.end is None:
            await self._wait()
        self._raise_start_error()

    async def next(self) -> Event | None:
        """Return the next event; None after the last. Raises what ended the run before the model began to answer."""
        while not self._unread:
            if self.end is not None:
                return None
            await self._wait()
        event = self._unread.popleft()
        if isinstance(event, ErrorOccurred) and not self.has_begun and self.error is not None:
            await self.wait_for_end()
            self._raise_start_error()
        return event

    def take_next(self) -> Event | None:
        """Return the next event as `next` does; None where that may wait."""
        return self._unread.popleft() if self.has_begun and self._unread else None

    async def wait_for_end(self) -> RunEnd:
        """Wait for the end, whatever is unread."""
        while self.end is None:
            await self._wait()
        return self.end

    def _raise_start_error(self) -> None:
        if not self.has_begun and self.error is not None:
            self._unread.clear()
            raise self.error

    async def _wait(self) -> None:
        self._changed.clear()
        await self._changed.wait()
