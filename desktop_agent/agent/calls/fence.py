"""Code of tools and hooks, behind a fence: whatever it does, what comes back is a value or a fault."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from desktop_agent.tools.foreign_code import Fault, call_foreign

T = TypeVar("T")


class TaskSupervisor:
    """Starts foreign code in tasks of its own, so that what does not heed a cancel can be left behind."""

    def __init__(self) -> None:
        self._unfinished: set[asyncio.Task[Any]] = set()

    def start(self, work: Callable[[], Awaitable[T]]) -> "asyncio.Task[T | Fault]":
        """Begin; the task raises nothing, and ends as cancelled only when it was asked to."""
        task = asyncio.create_task(call_foreign(work))
        self._unfinished.add(task)
        task.add_done_callback(self._unfinished.discard)
        return task

    async def run(self, work: Callable[[], Awaitable[T]], seconds: float | None = None) -> T | Fault:
        """What comes of it, at most after `seconds`. A cancel is passed on and not waited for."""
        task = self.start(work)
        try:
            await asyncio.wait({task}, timeout=seconds)
        finally:
            ended = task.done()
            if not ended:
                task.cancel()
        if not ended:
            return Fault(TimeoutError())
        return Fault(asyncio.CancelledError()) if task.cancelled() else task.result()

    async def run_inline(self, work: Callable[[], Awaitable[T]]) -> T | Fault:
        """The same for what has nothing to wait for, without a task of its own. A cancel is passed on."""
        return await call_foreign(work)

    def abandon(self, task: "asyncio.Task[Any]") -> None:
        """It had its grace, and is left behind."""
        self._unfinished.discard(task)

    @property
    def unfinished(self) -> frozenset["asyncio.Task[Any]"]:
        """What has not ended yet."""
        return frozenset(self._unfinished)
