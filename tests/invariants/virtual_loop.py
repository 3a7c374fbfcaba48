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
    """What was to be completed waits for something that never happens."""


class _NoWaiting(selectors.SelectSelector):
    """Asks the system, but never waits for it."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        return super().select(0)


class _Numbered(asyncio.Task[Any]):
    """A task whose hash is a number of the world, so that the order in sets does not depend on memory addresses."""

    number = 0

    def __hash__(self) -> int:
        return self.number


class VirtualLoop(asyncio.SelectorEventLoop):
    """Deterministic as long as nothing in it uses threads or sockets."""

    def __init__(self) -> None:
        super().__init__(_NoWaiting())
        self._virtual = 0.0
        self.count = 0
        """How many steps the loop has made."""
        self.order = 0
        """Decides the order of tasks in sets: the same number, the same order."""
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
        """Call the function one step later, without a thread, so that every run is the same."""
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
        """Make one iteration; if nothing is ready, move the clock to the next timer first. False: nothing is left."""
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
        """Make at most so many steps; return how many there were."""
        return next((done for done in range(count) if not self.step()), count)

    def steps_now(self, count: int) -> None:
        """Make at most so many steps, and none for which the clock would have to move."""
        while count and self._ready:
            self.step()
            count -= 1

    def forget_timers(self) -> None:
        """Cancel all timers, as when the process is dead."""
        for timer in list(self._timers()):
            timer.cancel()

    def complete(self, work: Coroutine[Any, Any, T], limit: int = 100_000) -> T:
        """Run until this is done. Raise NeverDone if nothing is left that could end it."""
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
        """Return the stacks of all tasks."""
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
