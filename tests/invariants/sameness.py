"""Makes a world the same whenever and wherever it is lived through.

Nothing in it may depend on the machine's clock and load, on chance that is not the world's, or on where in memory
things lie; the order of tasks in a set is the loop's affair.
"""

import asyncio
import gc
import itertools
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TypeVar
from unittest import mock

from desktop_agent.processes import worker_threads
from desktop_agent.types import messages

T = TypeVar("T")


@contextmanager
def sameness(clock: Callable[[], float]) -> Iterator[None]:
    """While it lasts, `clock` says the time, in seconds, and a millisecond more at each look.

    So what works in slices of time is interrupted now and then, and always in the same places.
    """
    looks, numbers = itertools.count(1), itertools.count(1)

    def monotonic() -> float:
        return clock() + next(looks) / 1000

    class Numbered:
        @staticmethod
        def uuid4() -> uuid.UUID:
            return uuid.UUID(int=next(numbers))

    with ExitStack() as stack:
        stack.callback(gc.enable)
        # What an abandoned generator does at its end, it would do at another step each time.
        gc.disable()
        stack.enter_context(mock.patch.object(worker_threads, "run_in_own_thread", _in_no_thread))
        stack.enter_context(mock.patch.object(messages, "uuid", Numbered))
        for module in [each for name, each in sys.modules.items() if name.startswith("desktop_agent.")]:
            if getattr(module, "monotonic", None) is time.monotonic:
                stack.enter_context(mock.patch.object(module, "monotonic", monotonic))
        yield


async def _in_no_thread(work: Callable[[worker_threads.CancelToken], T], *, grace: float = 0) -> T:
    """A thread ends when it likes; this ends one step later."""
    await asyncio.sleep(0)
    return work(worker_threads.CancelToken())
