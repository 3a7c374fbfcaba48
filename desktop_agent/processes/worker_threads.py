"""Run work in threads with a cancel token, and write large JSON in pieces so that other threads go on."""

import asyncio
import contextlib
import contextvars
import json
import threading
from collections.abc import Awaitable, Callable, Collection, Coroutine, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import wraps
from typing import Any, Generic, ParamSpec, TypeVar, cast

from pydantic import BaseModel

from desktop_agent.types.errors import ToolFailed

T = TypeVar("T")
P = ParamSpec("P")


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
        """Queue a job and wait for its result. A queued job is done even when the waiter is cancelled."""
        result = asyncio.wrap_future(self.submit(job))
        result.add_done_callback(_retrieve_error)
        return await asyncio.shield(result)

    def stop(self) -> None:
        """End the thread after the jobs already queued, and join it unless that would block. Harmless when repeated."""
        self._executor.shutdown(wait=self._last is None or self._last.done())


def _retrieve_error(result: "asyncio.Future[Any]") -> None:
    """Keep the loop from reporting an error that nobody retrieved: here nobody waits for the job any more."""
    if not result.cancelled():
        result.exception()


async def wait_for_all(*work: Awaitable[object]) -> None:
    """Return when all of them are done; only then raise what the first one raised."""
    for outcome in await asyncio.gather(*work, return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome


Result = TypeVar("Result")

# How long a cancel waits for work that cannot be stopped, in seconds.
GRACE = 1.0

# So many values take about a millisecond to go through; so many characters of a text count as one.
_MAX_QUICK_VALUES = 1_000
_CHARACTERS_PER_VALUE = 64


class Stopped(ToolFailed):
    """The work ended because it was cancelled, before it had an effect."""

    kind = "stopped"


class CancelToken:
    """Set by the event loop's side, checked by the thread before each step that matters."""

    def __init__(self) -> None:
        self._is_set = threading.Event()

    def cancel(self) -> None:
        """Ask the work to end."""
        self._is_set.set()

    @property
    def is_cancelled(self) -> bool:
        return self._is_set.is_set()

    def raise_if_cancelled(self) -> None:
        """Raise Stopped when the work should end."""
        if self._is_set.is_set():
            raise Stopped("The call was stopped before it did anything.")


async def wait_to_end(running: "asyncio.Future[Result]", on_cancel: Callable[[], None]) -> Result:
    """Wait until `running` has ended, whatever happens.

    A cancel calls `on_cancel`, which should make it end, and is passed on when it has.
    """
    cancelled: asyncio.CancelledError | None = None
    while not running.done():
        try:
            await asyncio.wait([running])
        except asyncio.CancelledError as error:
            on_cancel()
            cancelled = error
    if cancelled is not None:
        # Retrieving the exception keeps asyncio from reporting it as never retrieved.
        if not running.cancelled():
            running.exception()
        raise cancelled
    return running.result()


async def finish(work: Coroutine[Any, Any, Result]) -> Result:
    """Return when the work has ended, also when this is cancelled; the cancel is passed on then."""
    return await wait_to_end(asyncio.ensure_future(work), lambda: None)


def runs_to_its_end(method: Callable[P, Coroutine[Any, Any, Result]]) -> Callable[P, Coroutine[Any, Any, Result]]:
    """Make the method run to its end also when its caller is cancelled: nobody would close what was left half closed.

    The cancel is passed on then.
    """

    @wraps(method)
    async def run(*args: P.args, **kwargs: P.kwargs) -> Result:
        return await finish(method(*args, **kwargs))

    return run


async def run_in_thread(work: Callable[[CancelToken], Result]) -> Result:
    """Run `work` in a worker thread.

    A cancel sets the token, waits for the thread's end, and only then is passed on.
    """
    token = CancelToken()
    return await wait_to_end(asyncio.ensure_future(asyncio.to_thread(work, token)), token.cancel)


@dataclass(slots=True)
class _Outcome(Generic[Result]):
    """How foreign work ended. Not a future's own exception: a future refuses StopIteration."""

    error: BaseException | None = None
    value: Result | None = None


async def run_in_own_thread(work: Callable[[CancelToken], Result], *, grace: float = GRACE) -> Result:
    """Run `work` that may ignore the token, such as a function of the library's user, in a thread of its own.

    No thread can be killed: after a cancel the work gets `grace` seconds, and is then abandoned. The thread is its own,
    so that such work does not block a pool, and a daemon, so that it does not delay the exit.
    """
    loop, token, context = asyncio.get_running_loop(), CancelToken(), contextvars.copy_context()
    outcome_future: asyncio.Future[_Outcome[Result]] = loop.create_future()

    def set_outcome(outcome: _Outcome[Result]) -> None:
        if not outcome_future.done():
            outcome_future.set_result(outcome)

    def body() -> None:
        try:
            outcome = _Outcome(value=context.run(work, token))
        except BaseException as error:  # noqa: BLE001 - nobody else gets what a thread raises
            outcome = _Outcome[Result](error=error)
        # The loop may be gone when abandoned work ends at last.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(set_outcome, outcome)

    threading.Thread(target=body, name="tool", daemon=True).start()
    try:
        outcome = await asyncio.shield(outcome_future)
    except asyncio.CancelledError:
        token.cancel()
        await asyncio.wait([outcome_future], timeout=grace)
        raise
    if outcome.error is not None:
        raise outcome.error
    return outcome.value  # pyright: ignore[reportReturnType]  # without an error there is a value


def is_large(*values: object) -> bool:
    """Return whether going through these values takes longer than about a millisecond."""
    remaining, stack = _MAX_QUICK_VALUES, list(values)
    while stack and remaining > 0:
        item = stack.pop()
        remaining -= 1
        if isinstance(item, str | bytes):
            # Not `len`, which a foreign class may override.
            remaining -= (str.__len__(item) if isinstance(item, str) else bytes.__len__(item)) // _CHARACTERS_PER_VALUE
            continue
        inner = inner_values(item)
        if len(inner) > remaining:
            return True
        stack.extend(inner)
    return remaining <= 0


async def run_by_size(work: Callable[[], Result], *about: object) -> Result:
    """Do this work on these values: at once where that is quick, else in a thread, so that the event loop goes on."""
    if not is_large(*about):
        return work()
    return await run_in_own_thread(lambda _token: work(), grace=0)


def inner_values(value: object) -> Collection[object]:
    """Return the elements of a value, if it is a container of JSON or a message or block."""
    if isinstance(value, dict):
        return cast("dict[object, object]", value).values()
    if isinstance(value, list | tuple):
        return cast("list[object] | tuple[object, ...]", value)
    return vars(value).values() if isinstance(value, BaseModel) else ()


# Characters of a long text that are written at once.
_CHUNK = 65_536


def iter_json(value: Any, *, sort_keys: bool = False) -> Generator[str]:
    """Yield compact JSON in pieces, without escapes. Raises TypeError, ValueError, RecursionError."""
    if not is_large(value):
        yield _dump(value, sort_keys=sort_keys)
    elif isinstance(value, str):
        yield '"'
        for start in range(0, str.__len__(value), _CHUNK):
            yield _dump(str.__getitem__(value, slice(start, start + _CHUNK)), sort_keys=sort_keys)[1:-1]
        yield '"'
    elif isinstance(value, list | tuple):
        yield "["
        for position, item in enumerate(cast("list[Any]", value)):
            yield "," if position else ""
            yield from iter_json(item, sort_keys=sort_keys)
        yield "]"
    elif isinstance(value, dict) and all(isinstance(key, str) for key in cast("dict[Any, Any]", value)):
        members = cast("dict[str, Any]", value)
        yield "{"
        for position, key in enumerate(sorted(members) if sort_keys else members):
            yield f"{',' if position else ''}{_dump(key, sort_keys=sort_keys)}:"
            yield from iter_json(members[key], sort_keys=sort_keys)
        yield "}"
    else:
        yield _dump(value, sort_keys=sort_keys)


def is_nested_deeper(value: object, levels: int) -> bool:
    """Return whether the nesting exceeds a depth. Goes level by level: how deep Python recurses differs by version."""
    level = [value]
    for _ in range(levels):
        level = [inner for item in level for inner in inner_values(item)]
        if not level:
            return False
    return True


def _dump(value: Any, *, sort_keys: bool) -> str:
    return json.dumps(value, sort_keys=sort_keys, ensure_ascii=False, separators=(",", ":"))
