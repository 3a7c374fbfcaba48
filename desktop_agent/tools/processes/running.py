"""Running one program and waiting for its end and that of all it started."""

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from desktop_agent.tools.in_thread import wait_to_end
from desktop_agent.tools.processes.output import OutputBuffer
from desktop_agent.tools.processes.process_tree import ProcessTree, new_mark
from desktop_agent.vocabulary.errors import Sentence, ToolFailed, WrongUse

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

    `output` is what it wrote to both of its streams. Where that was too much (`truncated`) it is the beginning and the
    end, with a line in between about what is missing. `left_running` is how many processes it had left behind.
    """

    exit_code: int
    output: str
    truncated: bool
    left_running: int = 0


@dataclass(frozen=True, slots=True)
class Termination:
    """How a program is ended: asked to, and killed after `grace` seconds. `is_supervised` as in ProcessTree.

    `told` hears how many processes were ended, also where a cancel is passed on.
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

    A cancel asks the whole tree to end, kills what is left after a while, and is passed on when nothing is.
    `env` replaces the environment; None passes on this program's own. `on_output` hears text as it comes, on the event
    loop, as much as is kept; what it raises ends the program and is raised here. `output_limit` is in characters.
    `pass_fds` are open in the program too, under the same numbers.
    Raises ToolFailed for a program that cannot be started, and WrongUse for no program at all.
    """
    if not argv or output_limit < 0:
        raise WrongUse("A program to run has a name, and its output a limit that is not negative.")
    data = stdin.encode("utf-8", "replace") if isinstance(stdin, str) else stdin
    program = _ProcessProtocol(OutputBuffer(output_limit, on_output), data, tuple(pass_fds))
    environment = dict(os.environ if env is None else env)
    running = asyncio.ensure_future(_run(program, [str(each) for each in argv], str(cwd), environment, ending))
    return await wait_to_end(running, program.over.set)


async def _run(
    program: "_ProcessProtocol", argv: list[str], cwd: str, environment: dict[str, str], ending: Termination
) -> ProcessResult:
    """Not cancelled by a stop, which sets `over` instead: what was started is always ended here."""
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
        )
    except (OSError, ValueError) as error:
        raise _not_started(argv[0], cwd, error) from error
    tree = ProcessTree(transport.get_pid(), mark, is_supervised=ending.is_supervised)
    try:
        await program.over.wait()
        if program.exited.is_set():
            await _wait_at_most(program.silent, _OUTPUT_GRACE)
        left = await _terminate(tree, ending.grace)
        ending.on_ended(left)
    except BaseException:
        await _terminate(tree, 0)
        raise
    finally:
        await _wait_at_most(program.silent, _OUTPUT_GRACE)
        # Closing looks for the end by itself, and would take it away from the watcher that waits for it.
        await _wait_at_most(program.exited, _AFTER_KILL)
        transport.close()
        await _wait_at_most(program.closed, _OUTPUT_GRACE)
    return _build_result(program.output, transport.get_returncode(), left)


def _build_result(output: OutputBuffer, code: int | None, left: int) -> ProcessResult:
    if output.failure is not None:
        raise output.failure
    if code is None:
        raise ToolFailed("The program could not be ended.", "Look for it in the system's list of processes.")
    text, truncated = output.excerpt()
    return ProcessResult(code, text, truncated, left)


def _not_started(name: str, cwd: str, error: OSError | ValueError) -> ToolFailed:
    if isinstance(error, OSError) and error.filename == cwd and not Path(cwd).is_dir():
        return ToolFailed(Sentence("There is no folder “{path}” to run a program in.", {"path": cwd}))
    if isinstance(error, FileNotFoundError):
        return ToolFailed(Sentence("There is no program “{name}”.", {"name": name}))
    why = error.strerror or type(error).__name__ if isinstance(error, OSError) else "its arguments cannot be passed on"
    return ToolFailed(Sentence("The program “{name}” could not be started: {why}.", {"name": name, "why": why}))


async def _terminate(tree: ProcessTree, grace: float) -> int:
    """Ask, wait, kill, until nothing of the tree is there; how many were asked."""
    asked = await asyncio.to_thread(tree.terminate)
    if not asked:
        return 0
    await _until_gone(tree, grace)
    until = asyncio.get_running_loop().time() + _AFTER_KILL
    while await asyncio.to_thread(tree.kill):
        if asyncio.get_running_loop().time() > until:
            _log.warning("processes of a tool could not be killed: %s", tree.ids)
            break
        await asyncio.sleep(_POLL_SECONDS)
    return asked


async def _until_gone(tree: ProcessTree, seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            # Nobody tells when a process ends that is not one's own child.
            while await asyncio.to_thread(tree.is_alive):  # noqa: ASYNC110
                await asyncio.sleep(_POLL_SECONDS)


class _ProcessProtocol(asyncio.SubprocessProtocol):
    """What the loop calls about the program."""

    def __init__(self, output: OutputBuffer, stdin: bytes | None, passed: tuple[int, ...]) -> None:
        self.over = asyncio.Event()
        self.output = output
        self.input = stdin
        self.passed = passed
        self.exited = asyncio.Event()
        self.silent = asyncio.Event()
        self.closed = asyncio.Event()
        self._transport: asyncio.SubprocessTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Give it its input."""
        if not isinstance(transport, asyncio.SubprocessTransport):
            return
        self._transport = transport
        pipe = transport.get_pipe_transport(0)
        if self.input is not None and isinstance(pipe, asyncio.WriteTransport):
            pipe.write(self.input)
            pipe.close()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Take output; more of it than is kept only bit by bit."""
        self.output.add(data)
        if self.output.failure is not None:
            self.over.set()
        pipe = self._transport.get_pipe_transport(fd) if self._transport else None
        if self.output.is_full and isinstance(pipe, asyncio.ReadTransport) and not self.over.is_set():
            pipe.pause_reading()
            asyncio.get_running_loop().call_later(_READ_PAUSE, pipe.resume_reading)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002 - named by asyncio
        """The last one that could write has closed its end; input that nobody reads is no fault."""
        if fd == 1:
            self.output.add(b"", final=True)
            self.silent.set()

    def process_exited(self) -> None:
        """The program itself is done; others of its tree may go on."""
        self.exited.set()
        self.over.set()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - named by asyncio
        """Nothing is open any more."""
        self.closed.set()


async def _wait_at_most(event: asyncio.Event, seconds: float) -> None:
    """Whoever holds on to a pipe, or cannot be killed, is not waited for for ever."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
