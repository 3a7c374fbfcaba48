"""A queue of jobs for one worker thread."""

import logging
import threading
import traceback
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from PySide6.QtCore import QObject, Qt, Signal

Result = TypeVar("Result")
_log = logging.getLogger(__name__)
# The oldest of more waiting jobs is dropped first: what was requested last is what is being looked at.
_MAX_WAITING = 200

# Seconds that the thread waits for another job before it ends: starting a thread blocks the window until it runs.
_IDLE_SECONDS = 0.3


class JobQueue(QObject):
    """Runs jobs in a thread and delivers their results in the thread of this object.

    Jobs submitted under one key before its result is delivered run once.
    """

    closing = Signal()
    """Emitted when no further jobs are accepted."""

    _arrived = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._has_jobs = threading.Condition(self._lock)
        self._jobs: OrderedDict[Hashable, Callable[[], Any]] = OrderedDict()
        self._callbacks: dict[Hashable, list[Callable[[Any], None]]] = {}
        self._results: deque[tuple[Hashable, Any]] = deque()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._arrived.connect(self._deliver_results, Qt.ConnectionType.QueuedConnection)

    def submit(self, key: Hashable, job: Callable[[], Result], on_done: Callable[[Result], None]) -> None:
        """Run a job in the worker thread and pass its result to `on_done`. The job must not touch widgets.

        Nothing is called for a job that raises.
        """
        with self._lock:
            if self._closed:
                return
            callbacks = self._callbacks.setdefault(key, [])
            callbacks.append(on_done)
            if len(callbacks) > 1:
                return
            self._jobs[key] = job
            while len(self._jobs) > _MAX_WAITING:
                dropped, _ = self._jobs.popitem(last=False)
                del self._callbacks[dropped]
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="transcript jobs", daemon=True)
                self._thread.start()
            else:
                self._has_jobs.notify()

    def cancel(self, key: Hashable) -> bool:
        """Cancel a job. Return False if it is running or done: then its result is still delivered."""
        with self._lock:
            if key not in self._jobs:
                return False
            del self._jobs[key], self._callbacks[key]
            return True

    def has(self, key: Hashable) -> bool:
        """Return whether a result of this job is still to come."""
        with self._lock:
            return key in self._callbacks

    @property
    def is_busy(self) -> bool:
        """Return whether any result is still to come."""
        with self._lock:
            return bool(self._callbacks)

    def close(self) -> None:
        """Drop all waiting jobs and wait for the running one, whose result is not delivered."""
        self.closing.emit()
        with self._lock:
            self._closed = True
            self._jobs.clear()
            self._callbacks.clear()
            thread = self._thread
            self._has_jobs.notify()
        if thread is not None:
            thread.join()

    def _work(self) -> None:
        while True:
            with self._lock:
                self._has_jobs.wait_for(lambda: self._jobs or self._closed, _IDLE_SECONDS)
                if not self._jobs:
                    self._thread = None
                    return
                key, job = self._jobs.popitem(last=False)
            try:
                result = job()
            except Exception as error:  # noqa: BLE001  the jobs behind it must still run
                _log.error("A job of the transcript failed: %s", _error_location(error))
                with self._lock:
                    self._callbacks.pop(key, None)
                continue
            with self._lock:
                if self._closed:
                    self._thread = None
                    return
                self._results.append((key, result))
            self._arrived.emit()

    def _deliver_results(self) -> None:
        while self._results:
            key, result = self._results.popleft()
            with self._lock:
                callbacks = self._callbacks.pop(key, [])
            for on_done in callbacks:
                on_done(result)


def _error_location(error: Exception) -> str:
    """Return the type and the traceback lines. The message may quote the conversation, which must not be logged."""
    frames = traceback.extract_tb(error.__traceback__)
    return " ".join([type(error).__name__, *(f"{frame.filename}:{frame.lineno}" for frame in frames)])
