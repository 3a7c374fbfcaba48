"""A session in a test, with a scripted model and a real store that refuses or waits on request."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from desktop_agent.engine.recovery import OpenCalls
from desktop_agent.engine.session import Session
from desktop_agent.engine.session_controls import SessionSetup
from desktop_agent.engine.session_writer import SessionWriter
from desktop_agent.storage.journal_queue import JournalQueue
from desktop_agent.storage.records import ConversationRecord
from desktop_agent.storage.store import Store
from desktop_agent.tools.tool import Tool, ToolRegistry
from desktop_agent.types.blocks import StoredSource, ToolResult, ToolUse
from desktop_agent.types.engine_events import Envelope, Event, RunFinished
from desktop_agent.types.errors import StorageFailed
from desktop_agent.types.messages import Message, Role, new_id, now
from desktop_agent.types.policies import Limits
from desktop_agent.types.providers import ProviderConfig
from tests.fakes.scripted_provider import ScriptedProvider, Turn
from tests.frame.patience import PATIENCE

LIMIT = PATIENCE
"""Seconds until a test that waits in vain fails."""


class Shaky:
    """A store that records the calls. With `refuse` it raises; it waits for `gate` before a call, `late_gate` after."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.folders = store.folders
        self.read_only = None
        self.refuse: Exception | None = None
        self.gate: asyncio.Event | None = None
        self.late_gate: asyncio.Event | None = None
        self.reached = asyncio.Event()
        self.asked: list[str] = []
        self.after: Callable[[], Awaitable[None]] | None = None
        """Called after each call of the store."""

    def pinned(self) -> "Shaky":
        """Return this store: its file is never replaced."""
        return self

    def __getattr__(self, name: str) -> Any:
        real = getattr(self.store, name)
        return _Rows(self, name, real) if name in {"rules", "branches", "branch_parts"} else self.watched(name, real)

    def watched(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            self.asked.append(name)
            if self.gate is not None:
                self.reached.set()
                await self.gate.wait()
            if self.refuse is not None:
                raise self.refuse
            answer = await real(*args, **kwargs)
            if self.late_gate is not None:
                self.reached.set()
                await self.late_gate.wait()
            if self.after is not None:
                await self.after()
            return answer

        return call


class _Rows:
    """The rules or branches of a shaky store, or the parts of its branches."""

    def __init__(self, shaky: Shaky, kind: str, rows: Any) -> None:
        self._shaky = shaky
        self._kind = kind
        self._rows = rows

    def __getattr__(self, name: str) -> Any:
        return self._shaky.watched(f"{self._kind}.{name}", getattr(self._rows, name))


@asynccontextmanager
async def shaky_store(folder: Path) -> AsyncIterator[Shaky]:
    store = await Store.open(folder)
    try:
        yield Shaky(store)
    finally:
        await store.close()


def record(**changes: Any) -> ConversationRecord:
    plain = ConversationRecord(
        id=new_id(), title="New conversation", created_at=now(), updated_at=now(), endpoint_id="e", model="m"
    )
    return replace(plain, **changes)


def envelope(seq: int, event: Event, run_id: str = "run", turn_id: str | None = "turn") -> Envelope:
    return Envelope(seq, run_id, None, turn_id, now(), event)


class Stage:
    """A new session over a shaky store. `setup` are further fields of its SessionSetup."""

    def __init__(
        self,
        shaky: Shaky,
        *turns: Turn,
        tools: tuple[Tool[Any], ...] = (),
        iterations: int = 50,
        setup: dict[str, Any] | None = None,
        **changes: Any,
    ) -> None:
        self.shaky = shaky
        self.provider = ScriptedProvider(*turns)
        self.tools_for: Callable[[ConversationRecord], ToolRegistry] = lambda _: ToolRegistry(tools)
        self.guard_iterations = iterations
        self.load_more = setup or {}
        self.busy: set[Session] = set()
        self.events: list[Envelope] = []
        self.session = self.over(record(**changes), (), is_new=True)

    def over(
        self,
        about: ConversationRecord,
        messages: tuple[Message, ...],
        *,
        is_new: bool,
        open_calls: OpenCalls | None = None,
    ) -> Session:
        setup = SessionSetup(
            open_provider=self._open,
            read_picture=self._picture,
            tools_for=self._tools,
            config_for=lambda _: ProviderConfig(),
            limits=lambda: Limits(tool_iterations=self.guard_iterations),
            **self.load_more,
        )
        writer = SessionWriter(JournalQueue(self.shaky, about, is_new=is_new), messages)  # type: ignore[arg-type]
        session = Session(writer, setup, open_calls=open_calls, busy=self.busy)
        session.subscribe(on_event=self.events.append)
        return session

    def _tools(self, about: ConversationRecord) -> ToolRegistry:
        return self.tools_for(about)

    async def _open(self, _: ConversationRecord, __: str) -> ScriptedProvider:
        return self.provider

    async def _picture(self, source: StoredSource) -> bytes:
        raise AssertionError(source)

    async def say(self, text: str = "go") -> None:
        self.session.send(Message.user(text))
        await self.idle()

    async def idle(self) -> None:
        async with asyncio.timeout(LIMIT):
            await self.session.wait_idle()

    async def until(self, true: Callable[[], object]) -> None:
        async with asyncio.timeout(LIMIT):
            while not true():
                await asyncio.sleep(0.001)

    def of(self, kind: type) -> list[Any]:
        return [wrapped.event for wrapped in self.events if isinstance(wrapped.event, kind)]

    async def stored(self) -> tuple[Message, ...]:
        return (await self.shaky.store.load(self.session.record.id)).messages


DISK = StorageFailed("the disk refuses")


def check_invariants(history: tuple[Message, ...], events: list[Envelope]) -> None:
    """Check rules 1 (calls and results) and 6 (runs and numbers) of section 6 of the contract."""
    for position, message in enumerate(history):
        if message.tool_uses:
            answer = history[position + 1]
            assert answer.role is Role.TOOL
            results = [block.tool_use_id for block in answer.blocks if isinstance(block, ToolResult)]
            assert results == [call.id for call in message.tool_uses]
        elif message.role is Role.TOOL:
            assert history[position - 1].tool_uses
    by_run: dict[str, list[Envelope]] = {}
    for wrapped in events:
        if not wrapped.run_id:
            assert wrapped.seq == 0  # between runs
            continue
        by_run.setdefault(wrapped.run_id, []).append(wrapped)
    for run in by_run.values():
        assert [wrapped.seq for wrapped in run] == list(range(1, len(run) + 1))
        assert [isinstance(wrapped.event, RunFinished) for wrapped in run] == [False] * (len(run) - 1) + [True]


def results_of(messages: tuple[Message, ...]) -> dict[str, ToolResult]:
    return {
        block.tool_use_id: block for message in messages for block in message.blocks if isinstance(block, ToolResult)
    }


def calls_of(messages: tuple[Message, ...]) -> list[ToolUse]:
    return [call for message in messages for call in message.tool_uses]
