"""A hostile model: it says what it likes, for as long as it likes, to a real session over a real store."""

import asyncio
import gc
import tracemalloc
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count, pairwise
from pathlib import Path
from typing import Any

from desktop_agent.engine.session import Session
from desktop_agent.engine.session_controls import SessionSetup
from desktop_agent.engine.session_writer import SessionWriter
from desktop_agent.storage.journal_queue import JournalQueue
from desktop_agent.storage.store import Store
from desktop_agent.tools.tool import AnyTool, ToolRegistry
from desktop_agent.types.blocks import ToolResult
from desktop_agent.types.engine_events import Envelope, ErrorOccurred, LimitReached, RunEnd, RunFinished, RunStarted
from desktop_agent.types.messages import Message
from desktop_agent.types.policies import Limits
from desktop_agent.types.provider_events import ContentDelta, Done, MessageDelta, ProviderEvent, StopReason
from desktop_agent.types.providers import (
    Capabilities,
    ImageLimits,
    ModelInfo,
    ModelRequest,
    ProviderConfig,
    ProviderState,
    TokenCount,
)
from tests.fakes.session import record
from tests.frame.leaks import AS_IN_PROGRAM

PATIENCE = 60
"""Seconds until a run that does not end fails its test."""

FINE = "Here I am again."
END = (MessageDelta(StopReason.END_TURN), Done())

BYTES_PER_CHARACTER = 48
"""Of memory, for each character that the limits let a run pile up.

It may be a wide one, and is held as what the model said, in the message, in the transcript, in the queue of the journal
and as JSON on its way to the disk. The smallest pieces cost an object each; they are counted as more than they say.
"""
FREE_BYTES = 2_000_000
"""What any run takes: modules that are loaded late, caches, statements of the database."""

SMALL = Limits(
    turns=12,
    tool_iterations=6,
    answer_characters=20_000,
    characters=120_000,
    result_characters=4_000,
    calls_per_turn=20,
)

Answer = Callable[[ModelRequest, int], Any]
"""Makes the stream for a request and its number, from 0. It may return anything at all."""


class Enemy:
    """A provider that answers each request with whatever `answer` makes of it, until it `is_tame`."""

    def __init__(self, answer: Answer, *, window: int | None = None) -> None:
        self.answer = answer
        self.window = window
        self.requests = 0
        self.is_tame = False
        self.state = ProviderState()
        self.dialect = "enemy"

    def stream(self, request: ModelRequest) -> Any:
        if self.is_tame:
            return stream_of(ContentDelta(FINE), *END)
        self.requests += 1
        return self.answer(request, self.requests - 1)

    def model_info(self, model: str) -> ModelInfo:
        return ModelInfo(model, capabilities=Capabilities(context_window=self.window))

    def picture_limits(self, model: str) -> ImageLimits:
        return ImageLimits()

    async def count_tokens(self, request: ModelRequest) -> TokenCount:
        return TokenCount(0)

    async def list_models(self) -> tuple[ModelInfo, ...]:
        return ()

    async def prompt_cache(self, request: ModelRequest, *, seconds: int = 300) -> Any:
        raise NotImplementedError

    async def aclose(self) -> None:
        pass


async def stream_of(*events: Any) -> Any:
    """Yield these, one after the other; raise what is an exception."""
    for event in events:
        if isinstance(event, BaseException):
            raise event
        yield event


async def without_end(make: Callable[[int], Any]) -> Any:
    """Yield an event for every number, for ever."""
    for number in count():
        yield make(number)


@dataclass
class Outcome:
    """How a run ended, and the limits and errors that it reported."""

    end: RunEnd
    limits: list[str]
    errors: list[str]


@dataclass
class Arena:
    """A session, its store and its enemy. `events` are those of the engine, without a flood from the model."""

    session: Session
    store: Store
    enemy: Any
    events: list[Envelope] = field(default_factory=list[Envelope])
    _last: dict[str, int] = field(default_factory=dict[str, int])

    def add(self, envelope: Envelope) -> None:
        """Record an envelope; check that numbers have no gaps and that nothing comes after the end."""
        if envelope.run_id:
            assert envelope.seq == self._last.get(envelope.run_id, 0) + 1
            self._last[envelope.run_id] = envelope.seq
        if isinstance(envelope.event, RunFinished):
            self._last[envelope.run_id] = -1
        if not isinstance(envelope.event, ProviderEvent):
            self.events.append(envelope)

    def of(self, kind: type) -> list[Any]:
        return [envelope.event for envelope in self.events if isinstance(envelope.event, kind)]

    async def fight(self, text: str = "go") -> Outcome:
        """Send a prompt and see its run to the end."""
        before = len(self.events)
        self.session.send(Message.user(text))
        async with asyncio.timeout(PATIENCE):
            await self.session.wait_idle()
        return self.outcome(before)

    async def until(self, true: Callable[[], object]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not true():
                await asyncio.sleep(0.001)

    def outcome(self, since: int = 0) -> Outcome:
        events = [envelope.event for envelope in self.events[since:] if envelope.parent_run_id is None]
        ends = [event.reason for event in events if isinstance(event, RunFinished)]
        assert len(ends) == 1, f"{len(ends)} ends of one run"
        limits = [event.which for event in events if isinstance(event, LimitReached)]
        return Outcome(ends[0], limits, [event.kind for event in events if isinstance(event, ErrorOccurred)])

    async def check_still_works(self) -> None:
        """Check that the next prompt is answered, the history is whole, here and on disk, and each run has ended."""
        self.enemy.is_tame = True
        assert await self.fight("Are you there?") == Outcome(RunEnd.COMPLETED, [], [])
        assert self.session.history[-1].text == FINE
        check_history(self.session.history)
        assert (await self.store.load(self.session.record.id)).messages == self.session.history
        begun = [envelope.run_id for envelope in self.events if isinstance(envelope.event, RunStarted)]
        ended = [envelope.run_id for envelope in self.events if isinstance(envelope.event, RunFinished)]
        assert sorted(begun) == sorted(ended)


def check_history(history: tuple[Message, ...]) -> None:
    """Check that results follow answers with calls, one for each call, and stand nowhere else."""
    for before, message in pairwise((*history, None)):
        call_ids = [call.id for call in before.tool_uses] if before else []
        blocks = message.blocks if message else ()
        assert [block.tool_use_id for block in blocks if isinstance(block, ToolResult)] == call_ids


@asynccontextmanager
async def arena(
    folder: Path,
    provider: Any,
    limits: Limits = SMALL,
    *,
    tools: tuple[AnyTool, ...] = (),
    enemy: Any = None,
    **setup: Any,
) -> AsyncIterator[Arena]:
    """Open a new session over a store in this folder. `enemy`: what is behind the provider, if another object is."""

    async def opened(*_: Any) -> Any:
        return provider

    async def no_picture(source: Any) -> bytes:
        raise AssertionError(source)

    usual = {
        "open_provider": opened,
        "read_picture": no_picture,
        "tools_for": lambda _: ToolRegistry(tools),
        "config_for": lambda _: ProviderConfig(),
        "limits": lambda: limits,
    }
    store = await Store.open(folder)
    try:
        session = Session(SessionWriter(JournalQueue(store, record(), is_new=True)), SessionSetup(**{**usual, **setup}))
        fought = Arena(session, store, enemy or provider)
        session.subscribe(on_event=fought.add)
        yield fought
        async with asyncio.timeout(PATIENCE):
            await session.close()
    finally:
        await store.close()


class Peak:
    """Fails if Python's objects took more memory inside the block than the limits allow.

    `uncounted`: characters that one event held before anybody could count them.
    """

    def __init__(self, limits: Limits, uncounted: int = 0) -> None:
        self._most = FREE_BYTES + BYTES_PER_CHARACTER * (limits.characters + limits.answer_characters) + 4 * uncounted

    def __enter__(self) -> None:
        self._threshold = gc.get_threshold()
        gc.set_threshold(*AS_IN_PROGRAM)
        gc.collect()
        tracemalloc.start(1)
        self._before, _ = tracemalloc.get_traced_memory()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        used = tracemalloc.get_traced_memory()[1] - self._before
        tracemalloc.stop()
        gc.set_threshold(*self._threshold)
        assert kind is not None or used <= self._most, f"{used:,} bytes; the limits allow {self._most:,}"
