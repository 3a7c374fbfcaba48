"""Makes a world the same whenever and wherever it runs.

Nothing in it may depend on the machine's clock and load, on chance outside of the world, or on where in memory
objects lie. The loop takes care of the order of tasks in a set.
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
    """Inside the block, `clock` gives the time in seconds, plus a millisecond at each reading.

    So work in slices of time is interrupted now and then, and always in the same places.
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
        # The garbage collector would end abandoned generators at another step each time.
        gc.disable()
        stack.enter_context(mock.patch.object(worker_threads, "run_in_own_thread", _in_no_thread))
        stack.enter_context(mock.patch.object(messages, "uuid", Numbered))
        for module in [module for name, module in sys.modules.items() if name.startswith("desktop_agent.")]:
            if getattr(module, "monotonic", None) is time.monotonic:
                stack.enter_context(mock.patch.object(module, "monotonic", monotonic))
        yield


async def _in_no_thread(work: Callable[[worker_threads.CancelToken], T], *, grace: float = 0) -> T:
    """Do the work one step later. A thread would end at any time."""
    await asyncio.sleep(0)
    return work(worker_threads.CancelToken())
