"""Events of one run for one reader, the blocks finished by them, and the errors behind error events."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable
from datetime import datetime
from functools import reduce

from desktop_agent.conversation.answer_builder import AnswerBuilder
from desktop_agent.providers.provider import Provider
from desktop_agent.types.blocks import Block
from desktop_agent.types.engine_events import (
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
from desktop_agent.types.errors import AgentError, ProviderError
from desktop_agent.types.messages import new_id, now
from desktop_agent.types.provider_events import ContentDelta, Done, ProviderEvent, StopReason, Usage
from desktop_agent.types.providers import (
    CachedPrompt,
    ImageLimits,
    ModelInfo,
    ModelRequest,
    ProviderState,
    TokenCount,
)


class _BlockBuilder(AnswerBuilder):
    """One answer whose finished blocks are taken out one after the other."""

    def __init__(self) -> None:
        super().__init__(new_id(), "")
        self._taken_count = 0

    def take(self) -> tuple[Block, ...]:
        fresh = tuple(self._blocks[self._taken_count :])
        self._taken_count += len(fresh)
        return fresh

    def finish(self) -> tuple[Block, ...]:
        """Nothing more comes: what was open is finished as it is."""
        self.close_parts(now())
        return self.take()


class BlockCollector:
    """Feed it the events of a run, or of a provider. `usage` is of all its answers, `stop_reason` of the last one."""

    def __init__(self) -> None:
        self._answer = _BlockBuilder()
        self._earlier_usage: Usage | None = None
        self._stop_reason: StopReason | None = None

    @property
    def usage(self) -> Usage | None:
        """So far."""
        return add_usage(self._earlier_usage, self._answer.total_usage)

    @property
    def stop_reason(self) -> StopReason | None:
        """So far."""
        return self._answer.stop_reason or self._stop_reason

    def feed(self, event: Event, at: datetime | None = None) -> tuple[Block, ...]:
        """Take one event; the blocks that it finished, results of calls among them."""
        if isinstance(event, ToolFinished):
            return (*self._answer.finish(), event.result)
        if isinstance(event, TurnStarted):
            rest = self._answer.finish()
            self._earlier_usage, self._stop_reason = self.usage, self.stop_reason
            self._answer = _BlockBuilder()
            return rest
        self._answer.feed(event, at or now())
        if isinstance(event, Done | ToolCallPending | RunFinished):
            return self._answer.finish()
        return self._answer.take()

    def finish(self) -> tuple[Block, ...]:
        """Nothing more comes: what is open, as it is."""
        return self._answer.finish()


def add_usage(first: Usage | None, second: Usage | None) -> Usage | None:
    """Both together; one that is not known is no part of it."""
    if first is None or second is None:
        return first or second
    return first + second


class FailureRecordingProvider:
    """A provider that remembers what its last answer failed with: an event does not say all that the error knows."""

    def __init__(self, provider: Provider) -> None:
        self.failure: AgentError | None = None
        self._provider = provider

    @property
    def dialect(self) -> str:
        """Its own."""
        return self._provider.dialect

    @property
    def state(self) -> ProviderState:
        """Its own."""
        return self._provider.state

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """Ask. Raises what it raises."""
        self.failure = None
        events = self._provider.stream(request)
        try:
            async for event in events:
                yield event
        except AgentError as error:
            self.failure = error
            raise
        finally:
            await events.aclose()

    async def list_models(self) -> tuple[ModelInfo, ...]:
        """Its own."""
        return await self._provider.list_models()

    def model_info(self, model: str) -> ModelInfo:
        """Its own."""
        return self._provider.model_info(model)

    def picture_limits(self, model: str) -> ImageLimits:
        """Its own."""
        return self._provider.picture_limits(model)

    async def count_tokens(self, request: ModelRequest) -> TokenCount:
        """Its own."""
        return await self._provider.count_tokens(request)

    async def prompt_cache(self, request: ModelRequest, *, seconds: int = 300) -> CachedPrompt:
        """Its own."""
        return await self._provider.prompt_cache(request, seconds=seconds)

    async def aclose(self) -> None:
        """Close it."""
        await self._provider.aclose()


def error_from_event(event: ErrorOccurred, failure: AgentError | None = None) -> AgentError:
    """The error behind the event: `failure` where it is that one, else one of the same kind that says the same."""
    if failure is not None and (failure.kind, failure.sentence) == (event.kind, event.sentence):
        return failure.with_traceback(None)
    kind = _error_class(event.kind)
    if issubclass(kind, ProviderError):
        return kind(event.message, detail=event.detail, remedy=event.remedy)
    return kind(event.sentence, event.remedy, detail=event.detail)


def _error_class(kind: str) -> type[AgentError]:
    """The one nearest to the root: those below it may say more than is known."""
    waiting = deque[type[AgentError]]([AgentError])
    while waiting:
        candidate = waiting.popleft()
        if candidate.kind == kind:
            return candidate
        waiting.extend(candidate.__subclasses__())
    return AgentError


class RunEvents:
    """Kept until they are read. What specialists do is not among them: they are runs of their own.

    `begun`: the model began to answer; an error before that is raised, one after that is an event. `end` and `error`
    say how it ended, None before. `is_stopped_at_once`: Stop came before it could ask anything.
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

    def handle(self, envelope: Envelope) -> None:
        """One more."""
        event = envelope.event
        if not envelope.run_id or self.end is not None:
            return
        if envelope.parent_run_id is not None:
            self._specialist_runs.setdefault(envelope.run_id, BlockCollector()).feed(event)
            return
        self._unread.append(event)
        if isinstance(event, ErrorOccurred):
            self.error = error_from_event(event, self._failure())
        elif isinstance(event, RunFinished):
            self.end = event.reason
            if event.reason is RunEnd.COMPLETED:
                # It was about something else, such as a queued message that a hook refused.
                self.error = None
        elif not self._has_text:
            self._has_text = isinstance(event, ContentDelta)
            self.has_begun = self.has_begun or not isinstance(event, EngineEvent)
        self._changed.set()

    @property
    def usage_below(self) -> Usage | None:
        """What specialists used so far."""
        return reduce(add_usage, (each.usage for each in self._specialist_runs.values()), None)

    def take_unread(self) -> tuple[Event, ...]:
        """All that nobody has read."""
        unread = tuple(self._unread)
        self._unread.clear()
        return unread

    def ended_copy(self) -> "RunEvents":
        """A run that ended as this one did, of which nothing is left to be read."""
        empty = RunEvents(lambda: None)
        empty.end = self.end
        return empty

    def take_unread_error(self) -> AgentError | None:
        """What broke the answer off, if nobody has read that; nobody will then."""
        told = next((event for event in self._unread if isinstance(event, ErrorOccurred)), None)
        if told is None:
            return None
        self._unread.remove(told)
        error, self.error = self.error, None
        return error

    async def wait_for_start(self) -> None:
        """Return when the model began to answer or the run ended. Raises what ended it before that."""
        while not self.has_begun and self.end is None:
            await self._wait()
        self._raise_start_error()

    async def wait_for_text(self) -> None:
        """Return when the model said a word or the run ended. Raises like `started`."""
        while not self._has_text and self.end is None:
            await self._wait()
        self._raise_start_error()

    async def next(self) -> Event | None:
        """The next one; None after the last. Raises what ended the run before the model began to answer."""
        while not self._unread:
            if self.end is not None:
                return None
            await self._wait()
        event = self._unread.popleft()
        if isinstance(event, ErrorOccurred) and not self.has_begun and self.error is not None:
            await self.wait_for_end()
            self._raise_start_error()
        return event

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
