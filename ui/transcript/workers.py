"""Work outside the window's thread: a queue of jobs for one worker thread, and the command line of worker processes."""

import logging
import os
import sys
import threading
import traceback
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, TypeVar

from PySide6.QtCore import QObject, Qt, Signal

Result = TypeVar("Result")
_log = logging.getLogger(__name__)
_MAX_WAITING = 200
"""Jobs kept waiting. The oldest is dropped first: what was asked for last is what is being looked at."""

_IDLE_SECONDS = 0.3
"""Seconds that the thread waits for another job before it ends: to start one makes the window wait until it runs."""


class JobQueue(QObject):
    """Jobs in, results out in the thread of this object. A job asked for twice under one key is done once."""

    closing = Signal()
    """No job is taken any more."""

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
        """Do the job elsewhere and hand its result to `on_done`. The job must not touch widgets.

        Whoever waits for a job that raises hears nothing.
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
                self._thread = threading.Thread(target=self._work, name="transcript workshop", daemon=True)
                self._thread.start()
            else:
                self._has_jobs.notify()

    def cancel(self, key: Hashable) -> bool:
        """Do not do this job. Answers False when it is done already, or at hand: then its result is handed on."""
        with self._lock:
            if key not in self._jobs:
                return False
            del self._jobs[key], self._callbacks[key]
            return True

    def has(self, key: Hashable) -> bool:
        """Whether a result of this job is still to come."""
        with self._lock:
            return key in self._callbacks

    @property
    def is_busy(self) -> bool:
        """Whether somebody still waits for a result."""
        with self._lock:
            return bool(self._callbacks)

    def close(self) -> None:
        """Drop what waits; what is being done is not delivered. Waits for the job at hand."""
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
            except Exception as error:  # noqa: BLE001  whatever it is, the jobs behind it are done
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
    """Its kind and the places it came through. What it says may quote the conversation, which no log may hold."""
    places = traceback.extract_tb(error.__traceback__)
    return " ".join([type(error).__name__, *(f"{position.filename}:{position.lineno}" for position in places)])


WORKER_FLAG = "--child"
"""The first word of a command line that is none of a person's; the part follows."""

_PROGRAM = Path(__file__).parents[1] / "__main__.py"


def worker_command(part: str, python: str = sys.executable) -> list[str]:
    """The words that start a part. A frozen program is its own interpreter and has no other."""
    if getattr(sys, "frozen", False):
        return [sys.executable, WORKER_FLAG, part]
    return [python, "-I", "-B", "-X", "utf8", str(_PROGRAM), WORKER_FLAG, part]


def worker_environment() -> dict[str, str]:
    """Nothing of the person's but what the system needs to start a program."""
    return {name: os.environ[name] for name in ("SYSTEMROOT", "PATH") if name in os.environ}


def worker_folder() -> str:
    """A folder that stays and says nothing: the topmost."""
    return _PROGRAM.anchor
