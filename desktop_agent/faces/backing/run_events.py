"""The events of one run, for one reader."""

import asyncio
from collections import deque
from collections.abc import Callable
from functools import reduce

from desktop_agent.faces.backing.failures import error_from_event
from desktop_agent.faces.backing.finished_blocks import BlockCollector, add_usage
from desktop_agent.vocabulary.engine_events import EngineEvent, Envelope, ErrorOccurred, Event, RunEnd, RunFinished
from desktop_agent.vocabulary.errors import AgentError
from desktop_agent.vocabulary.provider_events import ContentDelta
from desktop_agent.vocabulary.usage import Usage


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
