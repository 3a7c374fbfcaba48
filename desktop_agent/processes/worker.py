"""Call a task in a worker process: start it, wait for its answers, and end it when it is late, idle or not wanted.

What comes from strangers and may take for ever, or break what reads it (pages, formulas, diagrams, code, regular
expressions), is read in such a process: see `worker_process` for what it may do.
"""

import asyncio
import dataclasses
import json
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from enum import StrEnum
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Annotated, Any, Generic, TypeVar, cast

from pydantic import FailFast, Field, TypeAdapter

from desktop_agent.processes.worker_process import WorkerLimits, encode_frame, read_frame
from desktop_agent.processes.worker_threads import wait_to_end
from desktop_agent.sandbox.environment import child_command, minimal_environment

Answer = TypeVar("Answer")
Result = TypeVar("Result")

# Without a call, after which the process is ended.
IDLE_SECONDS = 30.0

# How the clock of the process ends it.
_OUT_OF_TIME = frozenset(-getattr(signal, name) for name in ("SIGPROF", "SIGALRM") if hasattr(signal, name))


class WorkerFailure(StrEnum):
    """Why there is no answer."""

    NOT_STARTED = "not started"
    CRASHED = "crashed"
    SLOW = "slow"
    STOPPED = "stopped"


class WorkerFailed(Exception):
    """There is no answer, or no further one: the exit code of the process, and which bound of time it exceeded."""

    def __init__(self, failure: WorkerFailure, code: int | None = None, seconds: float = 0.0) -> None:
        super().__init__(failure)
        self.failure = failure
        self.code = code
        self.seconds = seconds


class Worker(Generic[Answer]):
    """Calls one task in a process that starts with the first call and is there for the next ones.

    The task is `module:function`; `answers` is a list of what it returns or yields. `patience` is in seconds of wall
    time, from the call to the first answer and from each to the next. A process that crashes is replaced, up to
    `attempts` in one call; the answers then begin anew. `call` and `start` block: they are for threads, `call` for one
    at a time. Every other method is for any thread.
    """

    def __init__(
        self,
        task: str,
        answers: type[list[Answer]],
        limits: WorkerLimits,
        *,
        patience: float,
        attempts: int = 1,
        command: Sequence[str] | None = None,
    ) -> None:
        self.started = 0
        """How many processes were started."""
        self._command = [*(command or worker_command()), _folder_of(task), task, json.dumps(dataclasses.asdict(limits))]
        self._limits = limits
        # One answer a frame, and no list of all that is wrong: a process that was taken over may write anything.
        frames: Any = cast("Any", Annotated)[answers, Field(max_length=1), FailFast()]
        self._frames: TypeAdapter[list[Answer]] = TypeAdapter(frames)
        self._patience = patience
        self._attempts = attempts
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Condition()
        self._deadline = 0.0
        self._is_calling = self._is_late = self._is_closed = False

    def start(self) -> None:
        """Start the process ahead of a call that is likely to come."""
        with self._lock, suppress(WorkerFailed):
            if not self._is_closed and self._process is None:
                self._deadline = time.monotonic() + IDLE_SECONDS
                self._start()

    def call(self, *arguments: object) -> Generator[Answer]:
        """Yield the answers. Raises WorkerFailed."""
        request = encode_frame(arguments)
        for further_attempts in reversed(range(self._attempts)):
            try:
                yield from self._exchange(request)
            except WorkerFailed as error:
                if error.failure is not WorkerFailure.CRASHED or not further_attempts:
                    raise
            else:
                return

    def ask(self, *arguments: object) -> Answer:
        """Return the one answer. Raises WorkerFailed."""
        answers: list[Answer] = []
        with closing(self.call(*arguments)) as coming:
            for answer in coming:
                answers.append(answer)
                if len(answers) > 1:
                    break
        if len(answers) != 1:
            raise WorkerFailed(WorkerFailure.CRASHED)
        return answers[0]

    async def run(self, work: Callable[[], Result]) -> Result:
        """Do work that calls, in a thread of its own, and close. A cancel ends the process, and is passed on then."""

        def work_and_close() -> Result:
            try:
                return work()
            finally:
                self.close()

        # Not the loop's own threads: there are few, and names of hosts are looked up in them.
        thread = ThreadPoolExecutor(1, "worker call")
        try:
            return await wait_to_end(asyncio.wrap_future(thread.submit(work_and_close)), self.close)
        finally:
            thread.shutdown(wait=False)

    def close(self) -> None:
        """End the process; whoever waits for an answer gets none, nor does any later call."""
        with self._lock:
            self._is_closed = True
            if self._is_calling and self._process:
                # Its memory may take a while to be freed; the thread that calls waits for that.
                self._process.kill()
            else:
                self._end()

    @property
    def pid(self) -> int | None:
        """The process, if there is one."""
        process = self._process
        return process.pid if process else None

    def _exchange(self, request: bytes) -> Generator[Answer]:
        process = self._begin_call()
        calls, frames = cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stdout)
        is_complete = False
        try:
            calls.write(request)
            calls.flush()
            while answers := self._frames.validate_python(read_frame(frames)):
                yield from answers
                self._deadline = time.monotonic() + self._patience
            is_complete = True
        # A process that was taken over may write anything.
        except (OSError, EOFError, ValueError, RecursionError):
            with self._lock:
                self._end()
            raise self._failed(process.returncode) from None
        finally:
            with self._lock:
                self._is_calling = False
                self._deadline = time.monotonic() + IDLE_SECONDS
                self._lock.notify_all()
                if not is_complete:
                    self._end()

    def _begin_call(self) -> "subprocess.Popen[bytes]":
        with self._lock:
            if self._is_closed:
                raise WorkerFailed(WorkerFailure.STOPPED)
            if self._process is not None and self._process.poll() is not None:
                self._end()
            process = self._process or self._start()
            self._is_calling, self._is_late = True, False
            self._deadline = time.monotonic() + self._patience
            self._lock.notify_all()
            return process

    def _start(self) -> "subprocess.Popen[bytes]":
        self.started += 1
        try:
            process = subprocess.Popen(  # noqa: S603  our own program, without a shell
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=minimal_environment(),
                # A folder that always exists and reveals nothing.
                cwd=Path(__file__).anchor,
            )
        except OSError:
            raise WorkerFailed(WorkerFailure.NOT_STARTED) from None
        self._process = process
        threading.Thread(target=self._watch, args=(process,), name="worker watch", daemon=True).start()
        return process

    def _watch(self, process: "subprocess.Popen[bytes]") -> None:
        """End the process at its deadline."""
        with self._lock:
            while self._process is process:
                seconds = self._deadline - time.monotonic()
                if seconds > 0:
                    self._lock.wait(seconds)
                else:
                    self._is_late = self._is_calling
                    self._end()

    def _end(self) -> None:
        """End the process; the lock is held."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            with suppress(OSError):
                cast("IO[bytes]", pipe).close()
        self._lock.notify_all()

    def _failed(self, code: int | None) -> WorkerFailed:
        if self._is_closed:
            return WorkerFailed(WorkerFailure.STOPPED, code)
        if self._is_late:
            return WorkerFailed(WorkerFailure.SLOW, code, self._patience)
        if code in _OUT_OF_TIME:
            return WorkerFailed(WorkerFailure.SLOW, code, self._limits.seconds)
        return WorkerFailed(WorkerFailure.CRASHED, code)


def worker_command() -> list[str]:
    """Return the words that start a worker process, without those that say what it does."""
    return child_command("worker", "desktop_agent.processes.worker_process")


@cache
def _folder_of(task: str) -> str:
    """Return the folder that the task's package lies in."""
    spec = find_spec(task.partition(".")[0])
    return str(Path(spec.origin).parents[1]) if spec and spec.origin else ""
