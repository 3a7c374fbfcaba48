"""The one thread that touches the database."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


class WorkerThread:
    """Runs jobs one after the other in a thread of its own."""

    def __init__(self, name: str) -> None:
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._last: Future[Any] | None = None

    def submit(self, job: Callable[[], T]) -> "Future[T]":
        """Queue a job; raises RuntimeError after `stop`."""
        future = self._executor.submit(job)
        self._last = future
        return future

    async def run(self, job: Callable[[], T]) -> T:
        """Queue a job and wait for its result. A job once queued is done, even when the waiter is cancelled."""
        return await asyncio.shield(asyncio.wrap_future(self.submit(job)))

    def stop(self) -> None:
        """End the thread after the jobs already queued, and join it unless that would block. Harmless when repeated."""
        self._executor.shutdown(wait=self._last is None or self._last.done())
