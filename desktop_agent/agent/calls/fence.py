"""Code of tools and hooks, behind a fence: whatever it does, what comes back is a value or a fault."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from desktop_agent.tools.foreign_code import trace_of
from desktop_agent.vocabulary.errors import AgentError

_log = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Fault:
    """It raised, or took too long (TimeoutError), or cancelled itself (CancelledError)."""

    error: BaseException

    @property
    def trace(self) -> str:
        """For the log: what it was and where, but not what it says, which may be anybody's secret."""
        return trace_of(self.error)

    @property
    def words(self) -> str:
        """For the model: what a tool says itself, else only the kind of error; its text may hold anything."""
        if isinstance(self.error, AgentError):
            try:
                return f"{self.error} {self.error.remedy}"
            except Exception:  # noqa: BLE001 - even the words of a foreign error may fail
                _log.warning("an error of kind %s cannot say what happened", type(self.error).__name__)
        return f"The tool failed inside ({type(self.error).__name__})."


class Fence:
    """Starts foreign code in tasks of its own, so that what does not heed a cancel can be left behind."""

    def __init__(self) -> None:
        self._inside: set[asyncio.Task[Any]] = set()

    def start(self, work: Callable[[], Awaitable[T]]) -> "asyncio.Task[T | Fault]":
        """Begin; the task raises nothing, and ends as cancelled only when it was asked to."""
        task = asyncio.create_task(_contained(work))
        self._inside.add(task)
        task.add_done_callback(self._inside.discard)
        return task

    async def value(self, work: Callable[[], Awaitable[T]], seconds: float | None = None) -> T | Fault:
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

    async def here(self, work: Callable[[], Awaitable[T]]) -> T | Fault:
        """The same for what has nothing to wait for, without a task of its own. A cancel is passed on."""
        return await _contained(work)

    def forget(self, task: "asyncio.Task[Any]") -> None:
        """It had its grace, and is left behind."""
        self._inside.discard(task)

    @property
    def inside(self) -> frozenset["asyncio.Task[Any]"]:
        """What has not ended yet."""
        return frozenset(self._inside)


async def _contained(work: Callable[[], Awaitable[T]]) -> T | Fault:
    """SystemExit and KeyboardInterrupt too: out of a task they would end the event loop."""
    try:
        return await work()
    except GeneratorExit:
        raise
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return Fault(error)
    except BaseException as error:  # noqa: BLE001 - that is what a fence is for
        return Fault(error)
