"""How many calls may run at once: of all that share a pool, and of one tool."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager

from desktop_agent.tools.tool import AnyTool

MAX_PARALLEL_READS = 20
# Of one answer; each asks a model, and may hand on as many in its turn.
MAX_PARALLEL_DELEGATES = 8


class ToolSlots:
    """Of one kind of call. Those for reading are shared by a run and the runs below it. Lives on the event loop.

    Whoever holds a slot must not wait for a call that needs one: for calls that hand work on, each answer has its own.
    """

    def __init__(self, pool: int = MAX_PARALLEL_READS) -> None:
        self._pool = asyncio.Semaphore(pool)
        self._by_tool: dict[str, asyncio.Semaphore] = {}

    @asynccontextmanager
    async def acquire(self, tool: AnyTool, *, pooled: bool) -> AsyncGenerator[None]:
        """Wait for a slot of the tool, and if `pooled` for one of the pool; both are free again at the end."""
        async with AsyncExitStack() as held:
            if tool.concurrency is not None:
                await held.enter_async_context(self._semaphore_of(tool, tool.concurrency))
            if pooled:
                await held.enter_async_context(self._pool)
            yield

    def _semaphore_of(self, tool: AnyTool, most: int) -> asyncio.Semaphore:
        slots = self._by_tool.get(tool.identity)
        if slots is None:
            slots = self._by_tool[tool.identity] = asyncio.Semaphore(max(1, most))
        return slots
