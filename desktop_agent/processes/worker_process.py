"""The worker process: imports one task by name, gives up what it does not need, and answers calls until its input ends.

A task is a function of values of JSON, named `module:function`. It returns its answer, or yields several; dataclasses
become objects. If its module has a function `prepare`, that is called before the process is confined, to import what
comes late. Calls and answers are frames: a length, and JSON. Only the standard library and the task are loaded.
"""

import dataclasses
import importlib
import json
import os
import signal
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any, cast

# Of one call, or of all its answers. The longest are pictures, and pages with every character escaped.
MAX_BYTES = 50_000_000
_LENGTH = struct.Struct(">I")

# The first parts of names in Python's table of audit events.
_REFUSED = ("open", "socket.", "subprocess.", "pty.", "os.", "shutil.", "ctypes.")
_HARMLESS = frozenset({"os.putenv", "os.unsetenv"})
_READING = frozenset({"os.listdir", "os.scandir", "os.walk", "os.fwalk"})
_WRITE_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

# The process that started this may be gone, and could not end a worker that sleeps.
_ORPHAN_FACTOR = 10


@dataclass(frozen=True, slots=True)
class WorkerLimits:
    """Bytes of address space; processor seconds until the next answer, and for all answers to one call (0: any).

    With `reads_files` it can read every file; it can never write one, connect, or start a program. With
    `calls_libraries` it can call what it loaded before through ctypes.
    """

    memory: int
    seconds: float
    call_seconds: float = 0.0
    reads_files: bool = True
    niceness: int = 0
    calls_libraries: bool = False


def encode_frame(value: object) -> bytes:
    """Return JSON after its length. Raises what `json` raises."""
    # Not in ASCII: names of files in other scripts would take three times the room. `json` reads lone surrogates too.
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_fields)
    data = text.encode("utf-8", "surrogatepass")
    return _LENGTH.pack(len(data)) + data


def read_frame(stream: IO[bytes], max_bytes: int = MAX_BYTES) -> bytes:
    """Read the next JSON. Raises EOFError at the end of the stream, and ValueError for what is no frame."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError
    (length,) = _LENGTH.unpack(head)
    if length > max_bytes:
        raise ValueError("a frame is too long")
    return stream.read(length)


def _fields(value: Any) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}


def main() -> int:
    """Answer calls. The last words of the command line are the task's folder, its name and its limits."""
    folder, task, limits = sys.argv[-3:]
    # Another version may be installed.
    sys.path.insert(0, folder)
    _serve(task, WorkerLimits(**json.loads(limits)))
    return 0


def _serve(task: str, limits: WorkerLimits) -> None:
    # Processes that start workers import this module too, and do not need that one.
    from desktop_agent.sandbox.kernel_limits import confine_worker

    _limit_resources(limits)
    module_name, _, name = task.partition(":")
    module = importlib.import_module(module_name)
    if prepare := getattr(module, "prepare", None):
        prepare()
    confine_worker(reads_files=limits.reads_files)
    sys.addaudithook(_AuditHook(reads_files=limits.reads_files, calls_libraries=limits.calls_libraries))
    function, clock = getattr(module, name), _Clock(limits)
    # The input also ends when the process that started this is gone.
    with suppress(EOFError):
        while True:
            call_id, arguments = json.loads(read_frame(sys.stdin.buffer))
            clock.begin_call()
            result: object = function(*arguments)
            for answer in cast("Iterator[object]", result) if isinstance(result, Iterator) else (result,):
                _write(call_id, [answer])
                clock.begin_answer()
            clock.end_call()
            _write(call_id, [])


def _write(call_id: str, answers: list[object]) -> None:
    sys.stdout.buffer.write(encode_frame((call_id, answers)))
    sys.stdout.buffer.flush()


def _limit_resources(limits: WorkerLimits) -> None:
    from desktop_agent.sandbox.kernel_limits import limit_process

    # Ctrl-C in a terminal is for the process that started this, which then closes the input.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(OSError, AttributeError):
        os.nice(limits.niceness)
    with suppress(OSError, ValueError):
        # Memory last: macOS refuses that one.
        limit_process(for_good=True, FSIZE=0, CORE=0, AS=limits.memory)


class _AuditHook:
    """Refuses in Python what the kernel refuses, for systems whose kernel cannot."""

    def __init__(self, *, reads_files: bool, calls_libraries: bool = False) -> None:
        self._reads_files = reads_files
        self._allowed = _HARMLESS | _READING if reads_files else _HARMLESS
        if calls_libraries:
            # From Python 3.14 on, each call is an event.
            self._allowed |= {"ctypes.call_function"}

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not event.startswith(_REFUSED) or event in self._allowed:
            return
        if event == "open" and self._reads_files:
            _, mode, flags = arguments
            # `os.open` has no mode, only flags.
            if not (isinstance(mode, str) and set(mode) & set("wax+")) and not (flags or 0) & _WRITE_FLAGS:
                return
        raise PermissionError(event)


class _Clock:
    """Ends the process by a signal that it does not handle. On systems without it, only the caller's timeout counts."""

    def __init__(self, limits: WorkerLimits) -> None:
        self._limits = limits
        self._end = 0.0

    def begin_call(self) -> None:
        self._end = time.process_time() + (self._limits.call_seconds or float("inf"))
        _set_timer("REAL", _ORPHAN_FACTOR * (self._limits.call_seconds or self._limits.seconds))
        self.begin_answer()

    def begin_answer(self) -> None:
        remaining = self._end - time.process_time()
        if remaining <= 0 and sys.platform != "win32":
            # A timer would be set anew with each quick answer, and never go off.
            signal.raise_signal(signal.SIGPROF)
        _set_timer("PROF", min(remaining, self._limits.seconds))

    def end_call(self) -> None:
        _set_timer("PROF", 0.0)
        _set_timer("REAL", 0.0)


def _set_timer(name: str, seconds: float) -> None:
    if sys.platform != "win32":
        signal.setitimer(getattr(signal, f"ITIMER_{name}"), seconds)
