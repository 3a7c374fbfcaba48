"""Yield the interpreter lock to the window while a formula is typeset in the worker thread."""

import sys
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from types import FrameType, ModuleType

# Seconds that the worker runs without a pause.
_HOLD_SECONDS = 0.0005

# Seconds of a pause: while the window is idle, while it works, and on platforms that cannot tell.
_SHORT, _LONG, _UNKNOWN = 0.0001, 0.002, 0.001

# The window works if its thread is busy for at least this part of the time.
_WORK_SECONDS = 0.1

_CALLS = 0x1F


class GilYielder:
    """Pauses the calling worker thread when a pause is due. In the main thread it does nothing."""

    def __init__(self) -> None:
        self._main = threading.main_thread().ident or 0
        # Some platforms have no clock for the processor time of another thread.
        find_clock = getattr(time, "pthread_getcpuclockid", None)
        self._clock: int | None = find_clock(self._main) if find_clock else None
        self._until = self._checked_at = self._work_seconds = 0.0
        # Never released: waiting for it in vain pauses this thread only.
        self._never_released = threading.Lock()
        self._never_released.acquire()

    def __call__(self) -> None:
        """Pause if the last pause is long enough ago."""
        if time.perf_counter() < self._until or threading.get_ident() == self._main:
            return
        self._never_released.acquire(timeout=self._pause())
        self._until = time.perf_counter() + _HOLD_SECONDS

    def _pause(self) -> float:
        if self._clock is None:
            return _UNKNOWN
        now, worked = time.perf_counter(), time.clock_gettime(self._clock)
        part = (worked - self._work_seconds) / max(1e-6, now - self._checked_at)
        self._checked_at, self._work_seconds = now, worked
        return _LONG if part > _WORK_SECONDS else _SHORT

    @contextmanager
    def during_calls(self) -> Generator[None]:
        """Yield every few function calls of code that cannot do it itself. It makes that code about twice as slow."""
        if threading.get_ident() == self._main:
            yield
            return
        before, calls = sys.gettrace(), 0

        def count(frame: FrameType, event: str, argument: object) -> None:
            nonlocal calls
            del frame, event, argument
            calls += 1
            if not calls & _CALLS:
                self()

        sys.settrace(count)
        try:
            yield
        finally:
            sys.settrace(before)

    @contextmanager
    def during_imports(self) -> Generator[None]:
        """Yield before each module that is imported."""
        finder = _YieldingFinder(self)
        sys.meta_path.insert(0, finder)
        try:
            yield
        finally:
            sys.meta_path.remove(finder)


class _YieldingFinder(MetaPathFinder):
    """Finds nothing."""

    def __init__(self, yielder: GilYielder) -> None:
        self._yielder = yielder

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        del fullname, path, target
        self._yielder()


yield_gil = GilYielder()
"""The one for this process."""
