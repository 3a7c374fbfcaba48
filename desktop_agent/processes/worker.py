"""Call a task in a worker process: start it, wait for its answers, and end it when it is late, idle or not needed.

Content from strangers that may take for ever, or break its reader (pages, formulas, diagrams, code, regular
expressions), is read in such a process: see `worker_process` for what it may do.
"""

import asyncio
import dataclasses
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from enum import StrEnum
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from secrets import token_hex
from typing import IO, Annotated, Any, Generic, TypeVar, cast

from pydantic import FailFast, Field, TypeAdapter

from desktop_agent.processes.worker_process import MAX_BYTES, WorkerLimits, encode_frame, read_frame
from desktop_agent.processes.worker_threads import wait_to_end
from desktop_agent.sandbox.child_command import child_command, minimal_environment

Answer = TypeVar("Answer")
Result = TypeVar("Result")

# Seconds without a call after which the process is ended.
IDLE_SECONDS = 30.0

# All answers to one call may take so much longer than one of them.
_CALL_FACTOR = 10

# How the clock of the process ends it.
_OUT_OF_TIME = frozenset(-getattr(signal, name) for name in ("SIGPROF", "SIGALRM") if hasattr(signal, name))


class WorkerFailure(StrEnum):
    """Why there is no answer."""

    NOT_STARTED = "not started"
    CRASHED = "crashed"
    SLOW = "slow"
    STOPPED = "stopped"


class WorkerFailed(Exception):
    """There is no answer, or no further one: the exit code of the process, and which time limit it exceeded."""

    def __init__(self, failure: WorkerFailure, code: int | None = None, seconds: float = 0.0) -> None:
        super().__init__(failure)
        self.failure = failure
        self.code = code
        self.seconds = seconds


class Worker(Generic[Answer]):
    """Calls one task in a process that starts with the first call and stays for the next ones.

    The task is `module:function`; `answers` is a list of what it returns or yields. `timeout` is in seconds of wall
    time, from the call to the first answer and from each to the next; all of them together get ten times that. A
    process that crashes is replaced, up to `attempts` in one call; the answers then begin anew. `call` and `start`
    block: they are for threads, `call` for one at a time. Every other method is for any thread.
    """

    def __init__(
        self,
        task: str,
        answers: type[list[Answer]],
        limits: WorkerLimits,
        *,
        timeout: float,
        attempts: int = 1,
        command: Sequence[str] | None = None,
    ) -> None:
        self.started = 0
        """How many processes were started."""
        self._command = [*(command or worker_command()), _folder_of(task), task, json.dumps(dataclasses.asdict(limits))]
        self._limits = limits
        self._answers = answers
        self._timeout = timeout
        self._attempts = attempts
        self._process: _Process | None = None
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
        # Unpredictable, so that what an earlier call left behind is no answer to this one.
        call_id = token_hex(8)
        request = encode_frame((call_id, arguments))
        for further_attempts in reversed(range(self._attempts)):
            try:
                yield from self._exchange(call_id, request)
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
        """Do work that makes calls, in a thread of its own, and close. A cancel ends the process, then is passed on."""

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
        """End the process; a waiting call gets no answer, nor does any later call."""
        with self._lock:
            self._is_closed = True
            if self._is_calling and self._process:
                # Its memory may take a while to be freed; the calling thread waits for that.
                self._process.interrupt()
            else:
                self._end()

    @property
    def pid(self) -> int | None:
        """The process, if there is one."""
        process = self._process
        return process.pid if process else None

    def _exchange(self, call_id: str, request: bytes) -> Generator[Answer]:
        process = self._begin_call()
        is_complete = False
        try:
            process.calls.write(request)
            process.calls.flush()
            yield from self._read_answers(process, call_id)
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
                # A close after the last answer was read has killed the process without making a read fail.
                if not is_complete or self._is_closed:
                    self._end()

    def _read_answers(self, process: "_Process", call_id: str) -> Generator[Answer]:
        last_deadline = time.monotonic() + _CALL_FACTOR * self._timeout
        remaining_bytes = MAX_BYTES
        while True:
            frame = read_frame(process.frames, remaining_bytes)
            remaining_bytes -= len(frame)
            answered_id, answers = _frame_adapter(self._answers).validate_python(json.loads(frame))
            if answered_id != call_id:
                raise ValueError("it answers another call")
            if not answers:
                return
            yield from answers
            self._deadline = min(time.monotonic() + self._timeout, last_deadline)

    def _begin_call(self) -> "_Process":
        with self._lock:
            if self._is_closed:
                raise WorkerFailed(WorkerFailure.STOPPED)
            if self._process is not None and self._process.has_ended:
                self._end()
            process = self._process or self._start()
            self._is_calling, self._is_late = True, False
            self._deadline = time.monotonic() + self._timeout
            self._lock.notify_all()
            return process

    def _start(self) -> "_Process":
        self.started += 1
        try:
            process = _Process(self._command)
        except OSError:
            raise WorkerFailed(WorkerFailure.NOT_STARTED) from None
        self._process = process
        threading.Thread(target=self._watch, args=(process,), name="worker watch", daemon=True).start()
        return process

    def _watch(self, process: "_Process") -> None:
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
        if process is not None:
            process.end()
            self._lock.notify_all()

    def _failed(self, code: int | None) -> WorkerFailed:
        if self._is_closed:
            return WorkerFailed(WorkerFailure.STOPPED, code)
        if self._is_late:
            return WorkerFailed(WorkerFailure.SLOW, code, self._timeout)
        if code in _OUT_OF_TIME:
            return WorkerFailed(WorkerFailure.SLOW, code, self._limits.seconds)
        return WorkerFailed(WorkerFailure.CRASHED, code)


class _Process:
    """A process that was started, with the streams to and from it. Raises OSError."""

    def __init__(self, command: Sequence[str]) -> None:
        # Reading from a socket can be ended, whatever process has its other end. Windows starts no process on one.
        own_end, child_end = (None, None) if sys.platform == "win32" else socket.socketpair()
        try:
            self._popen = subprocess.Popen(  # noqa: S603  our own program, without a shell
                command,
                stdin=child_end.fileno() if child_end else subprocess.PIPE,
                stdout=child_end.fileno() if child_end else subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=minimal_environment(),
                # A folder that always exists and reveals nothing.
                cwd=Path(__file__).anchor,
            )
        except OSError:
            if own_end:
                own_end.close()
            raise
        finally:
            if child_end:
                child_end.close()
        self._socket = own_end
        self.calls: IO[bytes] = own_end.makefile("wb") if own_end else cast("IO[bytes]", self._popen.stdin)
        self.frames: IO[bytes] = own_end.makefile("rb") if own_end else cast("IO[bytes]", self._popen.stdout)
        self.pid = self._popen.pid

    @property
    def has_ended(self) -> bool:
        return self._popen.poll() is not None

    @property
    def returncode(self) -> int | None:
        return self._popen.returncode

    def interrupt(self) -> None:
        """Kill it, and end what reads or writes its streams in any thread."""
        self._popen.kill()
        if self._socket:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def end(self) -> None:
        self.interrupt()
        self._popen.wait()
        for stream in (self.calls, self.frames, self._socket):
            with suppress(OSError):
                if stream:
                    stream.close()


def worker_command() -> list[str]:
    """Return the words that start a worker process, without those that say what it does."""
    return child_command("worker", "desktop_agent.processes.worker_process")


@cache
def _frame_adapter(answers: type[list[Any]]) -> TypeAdapter[tuple[str, list[Any]]]:
    """Return what reads frames of these answers. Making it takes 5 ms, so it is made once, by the first call."""
    # One answer a frame, and only the first error: a process that was taken over may write anything.
    one_answer: Any = cast("Any", Annotated)[answers, Field(max_length=1), FailFast()]
    return TypeAdapter(cast("Any", tuple)[str, one_answer])


@cache
def _folder_of(task: str) -> str:
    """Return the folder that contains the task's package."""
    spec = find_spec(task.partition(".")[0])
    return str(Path(spec.origin).parents[1]) if spec and spec.origin else ""
