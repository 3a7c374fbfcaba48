"""An event loop whose clock only moves when nothing else can: every run of it is the same, and no wait takes time.

One `step` is one iteration of the loop: what was ready runs until its next await. Between two steps the world is as
it would be at an await of the program, and that is where a test stops, decides, or lets the program die.
"""

import asyncio
import heapq
import io
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class NeverDone(AssertionError):
    """What was to be completed waits for something that never comes."""


class _NoWaiting(selectors.SelectSelector):
    """Asks the system, but never waits for it."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        return super().select(0)


class _Numbered(asyncio.Task[Any]):
    """A set goes through these in an order of the world's, not as they happen to lie in memory."""

    number = 0

    def __hash__(self) -> int:
        return self.number


class VirtualLoop(asyncio.SelectorEventLoop):
    """Deterministic as long as nothing in it uses threads or sockets."""

    def __init__(self) -> None:
        super().__init__(_NoWaiting())
        self._virtual = 0.0
        self.count = 0
        """How many steps were made."""
        self.order = 0
        """What is in a set of tasks comes in another order with another number, and in the same with the same."""
        self._tasks = 0
        self.set_task_factory(self._numbered)
        self.set_exception_handler(self._note)
        self.complaints: list[dict[str, Any]] = []

    def time(self) -> float:
        return self._virtual

    def _numbered(self, loop: asyncio.AbstractEventLoop, work: Any, **more: Any) -> "asyncio.Task[Any]":
        task = _Numbered(work, loop=loop, **more)
        self._tasks += 1
        task.number = self._tasks ^ self.order
        return task

    def run_in_executor(self, executor: Any, func: Callable[..., T], *args: Any) -> "asyncio.Future[T]":  # type: ignore[override]
        """No thread: one step later, so that every run is the same."""
        future: asyncio.Future[T] = self.create_future()

        def work() -> None:
            if future.cancelled():
                return
            try:
                future.set_result(func(*args))
            except Exception as error:
                future.set_exception(error)

        self.call_soon(work)
        return future

    @property
    def is_idle(self) -> bool:
        """Whether nothing is ready and no timer runs."""
        return not self._ready and not self._timers()

    def step(self) -> bool:
        """One iteration; when nothing is ready, the clock moves to the next timer first. False: nothing to do."""
        if not self._ready:
            timers = self._timers()
            if not timers:
                return False
            self._virtual = max(self._virtual, timers[0].when())
        self.count += 1
        self.call_soon(self.stop)
        self.run_forever()
        return True

    def steps(self, count: int) -> int:
        """At most so many; returns how many there were."""
        return next((done for done in range(count) if not self.step()), count)

    def steps_now(self, count: int) -> None:
        """At most so many, and none for which the clock would have to move."""
        while count and self._ready:
            self.step()
            count -= 1

    def forget_timers(self) -> None:
        """Nothing that waits for the clock comes any more: the process is dead."""
        for timer in list(self._timers()):
            timer.cancel()

    def complete(self, work: Coroutine[Any, Any, T], limit: int = 100_000) -> T:
        """Run until this is done. Raises NeverDone."""
        task = self.create_task(work)
        for _ in range(limit):
            if task.done():
                return task.result()
            if not self.step():
                break
        if not task.done():
            raise NeverDone(f"never done: {task!r}\n{self._stacks()}")
        return task.result()

    def _stacks(self) -> str:
        """What everybody waits for."""
        out = io.StringIO()
        for task in asyncio.all_tasks(self):
            task.print_stack(limit=3, file=out)
        return out.getvalue()

    def _timers(self) -> list[asyncio.TimerHandle]:
        scheduled: list[asyncio.TimerHandle] = self._scheduled  # type: ignore[attr-defined]
        while scheduled and scheduled[0].cancelled():
            heapq.heappop(scheduled)._scheduled = False  # type: ignore[attr-defined]
        return scheduled

    def _note(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.complaints.append(context)
