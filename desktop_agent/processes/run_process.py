"""Run a program to its end, limit its output, and end every process that it started."""

import asyncio
import codecs
import contextlib
import logging
import os
import secrets
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from desktop_agent.processes.worker_threads import wait_to_end
from desktop_agent.types.errors import Sentence, ToolFailed, WrongUse

if TYPE_CHECKING:
    from desktop_agent.processes.job_object import JobObject


class OutputBuffer:
    """Text decoded from UTF-8 bytes; invalid bytes become a replacement character.

    `limit` is how many characters are reported and how many are kept: half of them from the beginning, half from the
    end.
    """

    def __init__(self, limit: int, send: Callable[[str], None]) -> None:
        self.failure: Exception | None = None
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._on_text = send
        self._limit = self._unreported = limit
        self._head_room = limit - limit // 2
        self._head: list[str] = []
        self._tail: deque[str] = deque()
        self._length = self._tail_length = 0

    @property
    def is_full(self) -> bool:
        return self._length > self._limit

    def add(self, data: bytes, *, final: bool = False) -> None:
        """Add a chunk. What the listener raises is in `failure`, and it is not called again."""
        text = self._decode(data, final)
        if not text:
            return
        self._append(text)
        reported, self._unreported = text[: self._unreported], max(self._unreported - len(text), 0)
        if reported and self.failure is None:
            try:
                self._on_text(reported)
            except Exception as error:  # noqa: BLE001 - raised again by whoever waits for the program
                self.failure = error

    def excerpt(self) -> tuple[str, bool]:
        """Return the text, and whether something is missing from its middle."""
        head, tail = "".join(self._head), "".join(self._tail)
        if not self.is_full:
            return head + tail, False
        tail_room = self._limit // 2
        tail = tail[len(tail) - tail_room :]
        missing = self._length - len(head) - len(tail)
        return f"{head}\n[{missing:,} characters are left out here.]\n{tail}", True

    def _append(self, text: str) -> None:
        room = max(self._head_room - self._length, 0)
        self._length += len(text)
        if room:
            self._head.append(text[:room])
        if text[room:]:
            self._tail.append(text[room:])
            self._tail_length += len(text) - room
        # Whole pieces only: cutting each time would copy the tail for every byte of a slow program.
        while self._tail and self._tail_length - len(self._tail[0]) >= self._limit // 2:
            self._tail_length -= len(self._tail.popleft())


# One name for each program, so that what a program starts through us is still found by the outer program's name.
_MARK = "DESKTOP_AGENT_CALL_"
# A process that does nothing but fork and die lives a millisecond or two; most scans see it.
_QUICK_SCANS = 100
_MAX_EMPTY_SCANS = 4


def new_mark() -> str:
    """Return a new name of an environment variable by which the descendants of one program are known."""
    return _MARK + secrets.token_hex(16)


class ProcessTree:
    """The processes that descend from `pid`, which leads a session and whose environment holds `mark`.

    A process belongs to it as a descendant, as a member of the session, or by the mark, which is inherited. Only one
    that gave up all three before a scan saw it escapes, and not even that one if the root `is_supervised`: the root
    adopts every process that lost its parent, ends by itself after the last of them, and is killed only when it is
    alone. Every method but `ids` reads the system's whole list of processes: call them in a thread.
    """

    def __init__(self, pid: int, mark: str, *, is_supervised: bool = False) -> None:
        self._session = pid
        self._mark = mark
        self._root = _process(pid)
        self._spared = self._root if is_supervised else None
        self._empty_scans = 0
        # Processes stay known: one that lost its parent before the second scan may have lost its mark too.
        self._known: set[psutil.Process] = {self._root} if self._root else set()
        # A cancel does not end a thread that is still scanning.
        self._lock = threading.Lock()

    @property
    def ids(self) -> list[int]:
        """The processes that were alive at the last scan."""
        return sorted(process.pid for process in self._known)

    def terminate(self) -> int:
        """Ask all to end (SIGTERM; on Windows there is only killing); return how many there were."""
        with self._lock:
            return self._signal_all(psutil.Process.terminate)

    def is_alive(self) -> bool:
        """Return whether any known process still runs."""
        with self._lock:
            return any(_is_alive(process) for process in self._known)

    def kill(self) -> int:
        """Kill all; return how many there were. Until it returns 0, some may have been born meanwhile."""
        with self._lock:
            empty_scans = 0
            for _ in range(_QUICK_SCANS):
                empty_scans = 0 if self._kill_session() else empty_scans + 1
                if empty_scans == _MAX_EMPTY_SCANS:
                    break
            self._signal_all(self._kill)
            killed = sum(process != self._spared for process in self._known)
            if killed or self._spared is None or not _is_alive(self._spared):
                return killed
            # Without it, a process that is born between two scans would be lost.
            self._empty_scans += 1
            if self._empty_scans > _MAX_EMPTY_SCANS:
                self._spared = None
            return 1

    def _signal_all(self, send: Callable[[psutil.Process], None]) -> int:
        """Signal each process as soon as it is seen: one that restarts itself is gone a moment later."""
        signalled: set[psutil.Process] = set()
        for root in (*self._known, *self._find_strays()):
            family = (root, *_descendants(root)) if root not in signalled else ()
            # Listed before any is signalled: some end with the first of them, and still count.
            for process in [member for member in family if member not in signalled and _is_alive(member)]:
                if process not in signalled:
                    signalled.add(process)
                    with contextlib.suppress(psutil.Error):
                        send(process)
        self._known = signalled
        return len(signalled)

    def _kill(self, process: psutil.Process) -> None:
        if process == self._spared:
            return
        with contextlib.suppress(OSError):
            self._kill_group(process.pid)
        process.kill()

    def _kill_group(self, pid: int) -> None:
        """Kill all of a process group: none of it can fork meanwhile, so nobody in it outruns this."""
        if sys.platform == "win32" or os.getsid(pid) == os.getsid(0):
            return
        group = os.getpgid(pid)
        if self._spared is not None and group == self._spared.pid:
            os.kill(pid, signal.SIGKILL)
        else:
            os.killpg(group, signal.SIGKILL)

    def _find_strays(self) -> Iterator[psutil.Process]:
        """Find members of the session or with the mark, whoever their parent is by now; the youngest first."""
        session_is_ours = self._session_is_ours()
        for pid in reversed(psutil.pids()):
            with contextlib.suppress(psutil.Error, OSError):
                process = psutil.Process(pid)
                if (session_is_ours and _session_of(pid) == self._session) or self._mark in process.environ():
                    yield process

    def _kill_session(self) -> bool:
        """Kill the session and nothing else, which is quick; return whether anybody was there."""
        is_found = False
        for pid in reversed(psutil.pids()) if self._session_is_ours() else ():
            with contextlib.suppress(OSError):
                is_spared = self._spared is not None and pid == self._spared.pid
                if not is_spared and _session_of(pid) == self._session and not _is_zombie(pid):
                    is_found = True
                    self._kill_group(pid)
        return is_found

    def _session_is_ours(self) -> bool:
        """Check the session's number, which a stranger may get when all of ours have ended."""
        leader = _process(self._session)
        return leader is None or leader == self._root


def _process(pid: int) -> psutil.Process | None:
    try:
        return psutil.Process(pid)
    except psutil.Error:
        return None


def _descendants(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.Error:
        return []


def _is_alive(process: psutil.Process) -> bool:
    """Return whether a process runs. A zombie has ended; only its parent has not noticed yet."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
    except psutil.Error:
        return True


def _is_zombie(pid: int) -> bool:
    process = _process(pid)
    return process is None or not _is_alive(process)


def _session_of(pid: int) -> int:
    return os.getsid(pid) if sys.platform != "win32" else 0


_log = logging.getLogger(__name__)

# How long the rest of the output is waited for when the program itself has ended, in seconds.
_OUTPUT_GRACE = 0.5
# How long processes get to disappear after they were killed, in seconds; only a hanging disk needs so long.
_AFTER_KILL = 5.0
_POLL_SECONDS = 0.02
# A program that says more than is kept is read slowly, so that it cannot keep the loop busy, in seconds.
_READ_PAUSE = 0.01


@dataclass(frozen=True, slots=True)
class ProcessResult:
    """How a program ended. `exit_code` is negative for the signal that ended it.

    `output` is what it wrote to both streams. If that was too much (`truncated`) it is the beginning and the end, with
    a line in between about what is missing. `left_running` is how many processes it had left behind.
    """

    exit_code: int
    output: str
    truncated: bool
    left_running: int = 0


@dataclass(frozen=True, slots=True)
class Termination:
    """How a program is ended: asked to, and killed after `grace` seconds. `is_supervised` as in ProcessTree.

    `on_ended` is called with how many processes were ended, also where a cancel is passed on.
    """

    grace: float = 1.0
    is_supervised: bool = False
    on_ended: Callable[[int], None] = lambda _: None


_TERMINATION = Termination()


async def run_process(
    argv: Sequence[str],
    *,
    cwd: Path | str,
    env: Mapping[str, str] | None = None,
    stdin: str | bytes | None = None,
    on_output: Callable[[str], None] = lambda _: None,
    output_limit: int = 200_000,
    ending: Termination = _TERMINATION,
    pass_fds: Sequence[int] = (),
) -> ProcessResult:
    """Run a program to its end, and end all that it started.

    A cancel asks the whole tree to end, kills what is left after a while, and is passed on when nothing is left. `env`
    replaces the environment; None passes on this program's own. `on_output` gets text as it comes, on the event loop,
    as much as is kept; what it raises ends the program and is raised here. `output_limit` is in characters. `pass_fds`
    are open in the program too, under the same numbers.
    Raises ToolFailed for a program that cannot be started, and WrongUse for no program at all.
    """
    if not argv or output_limit < 0:
        raise WrongUse("A program to run has a name, and its output a limit that is not negative.")
    data = stdin.encode("utf-8", "replace") if isinstance(stdin, str) else stdin
    program = _ProcessProtocol(OutputBuffer(output_limit, on_output), data, tuple(pass_fds))
    environment = dict(os.environ if env is None else env)
    running = asyncio.ensure_future(_run(program, [str(word) for word in argv], str(cwd), environment, ending))
    return await wait_to_end(running, program.over.set)


async def _run(
    program: "_ProcessProtocol", argv: list[str], cwd: str, environment: dict[str, str], ending: Termination
) -> ProcessResult:
    """Run it to the end. A stop does not cancel this but sets `over`: what was started is always ended here."""
    job = open_job()
    try:
        return await _run_in(job, program, argv, cwd, environment, ending)
    finally:
        if job is not None:
            job.close()


def open_job() -> "JobObject | None":
    """Open the job that holds a program and all that it starts; None but on Windows."""
    if sys.platform != "win32":
        return None
    from desktop_agent.processes.job_object import JobObject, load_kernel32

    return JobObject(load_kernel32())


async def _run_in(
    job: "JobObject | None",
    program: "_ProcessProtocol",
    argv: list[str],
    cwd: str,
    environment: dict[str, str],
    ending: Termination,
) -> ProcessResult:
    mark = new_mark()
    try:
        transport, _ = await asyncio.get_running_loop().subprocess_exec(
            lambda: program,
            *argv,
            cwd=cwd,
            env={**environment, mark: "1"},
            stdin=asyncio.subprocess.DEVNULL if program.input is None else asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
            pass_fds=program.passed,
            creationflags=0 if job is None else job.creation_flags,
        )
    except (OSError, ValueError) as error:
        raise _not_started(argv[0], cwd, error) from error
    pid = transport.get_pid()
    tree = job or ProcessTree(pid, mark, is_supervised=ending.is_supervised)
    try:
        if job is not None:
            job.adopt(pid)
        await program.over.wait()
        if program.exited.is_set():
            await wait_at_most(program.silent, _OUTPUT_GRACE)
        left_running = await terminate_tree(tree, ending.grace)
        ending.on_ended(left_running)
    except BaseException:
        await terminate_tree(tree, 0)
        raise
    finally:
        await wait_at_most(program.silent, _OUTPUT_GRACE)
        # Closing looks for the end by itself, and would take it away from the watcher that waits for it.
        await wait_at_most(program.exited, _AFTER_KILL)
        transport.close()
        await wait_at_most(program.closed, _OUTPUT_GRACE)
    return _build_result(program.output, transport.get_returncode(), left_running)


def _build_result(output: OutputBuffer, code: int | None, left_running: int) -> ProcessResult:
    if output.failure is not None:
        raise output.failure
    if code is None:
        raise ToolFailed("The program could not be ended.", "Look for it in the system's list of processes.")
    text, truncated = output.excerpt()
    return ProcessResult(code, text, truncated, left_running)


def _not_started(name: str, cwd: str, error: OSError | ValueError) -> ToolFailed:
    if isinstance(error, OSError) and error.filename == cwd and not Path(cwd).is_dir():
        return ToolFailed(Sentence("There is no folder “{path}” to run a program in.", {"path": cwd}))
    if isinstance(error, FileNotFoundError):
        return ToolFailed(Sentence("There is no program “{name}”.", {"name": name}))
    why: str | Sentence = Sentence("its arguments cannot be passed on")
    if isinstance(error, OSError):
        why = error.strerror or type(error).__name__
    return ToolFailed(Sentence("The program “{name}” could not be started: {why}.", {"name": name, "why": why}))


async def terminate_tree(tree: "ProcessTree | JobObject", grace: float) -> int:
    """Ask, wait, kill, until nothing of the tree is left; return how many were asked."""
    count = await asyncio.to_thread(tree.terminate)
    if not count:
        return 0
    await _wait_until_gone(tree, grace)
    deadline = asyncio.get_running_loop().time() + _AFTER_KILL
    while await asyncio.to_thread(tree.kill):
        if asyncio.get_running_loop().time() > deadline:
            _log.warning("processes of a tool could not be killed: %s", tree.ids)
            break
        await asyncio.sleep(_POLL_SECONDS)
    return count


async def _wait_until_gone(tree: "ProcessTree | JobObject", seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            # The system does not report the end of a process that is not our own child.
            while await asyncio.to_thread(tree.is_alive):  # noqa: ASYNC110
                await asyncio.sleep(_POLL_SECONDS)


class _ProcessProtocol(asyncio.SubprocessProtocol):
    def __init__(self, output: OutputBuffer, stdin: bytes | None, pass_fds: tuple[int, ...]) -> None:
        self.over = asyncio.Event()
        self.output = output
        self.input = stdin
        self.passed = pass_fds
        self.exited = asyncio.Event()
        self.silent = asyncio.Event()
        self.closed = asyncio.Event()
        self._transport: asyncio.SubprocessTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if not isinstance(transport, asyncio.SubprocessTransport):
            return
        self._transport = transport
        pipe = transport.get_pipe_transport(0)
        if self.input is not None and isinstance(pipe, asyncio.WriteTransport):
            pipe.write(self.input)
            pipe.close()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.output.add(data)
        if self.output.failure is not None:
            self.over.set()
        pipe = self._transport.get_pipe_transport(fd) if self._transport else None
        if self.output.is_full and isinstance(pipe, asyncio.ReadTransport) and not self.over.is_set():
            pipe.pause_reading()
            asyncio.get_running_loop().call_later(_READ_PAUSE, pipe.resume_reading)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002 - named by asyncio
        """Note that the last writer closed its end; input that nobody reads is no fault."""
        if fd == 1:
            self.output.add(b"", final=True)
            self.silent.set()

    def process_exited(self) -> None:
        self.exited.set()
        self.over.set()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - named by asyncio
        self.closed.set()


async def wait_at_most(event: asyncio.Event, seconds: float) -> None:
    """Wait, but not for ever: a process may keep a pipe open, or be impossible to kill."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
