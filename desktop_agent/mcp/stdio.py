"""A server that is a program of this machine: lines of JSON to its input and from its output.

The client of the `mcp` package would do; this one bounds what a server may say, keeps its error stream, and ends all
that the program started, whatever session or group that is in. On Linux a process stays around it for that
(`desktop_agent.sandbox.launcher`), so nobody gets away by leaving parent, session and environment behind.
"""

import asyncio
import contextlib
import errno
import json
import logging
import os
import socket
import sys
from asyncio.subprocess import SubprocessStreamProtocol
from collections.abc import AsyncGenerator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from desktop_agent.mcp.diagnostics import ServerLog
from desktop_agent.mcp.limits import OpenRequests, ReadPacer, parse_messages
from desktop_agent.processes.run_process import ProcessTree, new_mark
from desktop_agent.sandbox.backends import supervised_command_from_socket
from desktop_agent.sandbox.environment import minimal_environment
from desktop_agent.types.errors import Sentence, ToolFailed

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.shared.message import SessionMessage

    Incoming = SessionMessage | Exception
    Streams = tuple[MemoryObjectReceiveStream[Incoming], MemoryObjectSendStream[SessionMessage]]

_log = logging.getLogger(__name__)

MAX_MESSAGE_BYTES = 32_000_000
"""Bytes of one message."""
_PARSE_IN_THREAD_BYTES = 4_000
_MAX_STRAY_BYTES = 50_000
# After so many lines the loop gets a breath, so that a flood does not keep it busy; in seconds.
_LINES_BEFORE_PAUSE = 50
_PAUSE_SECONDS = 0.01
# How long a program gets to end by itself once its input is closed, and to flush before; in seconds.
_EXIT_GRACE = 1.0
_KILL_TIMEOUT = 5.0
_POLL_INTERVAL = 0.02


@dataclass(frozen=True, slots=True)
class ServerCommand:
    """What to start, where, and with which environment: nothing of this program's own is added."""

    argv: Sequence[str]
    folder: Path
    environment: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class _RunningProgram:
    """One that runs, and its pipes."""

    transport: asyncio.SubprocessTransport
    stdin: asyncio.StreamWriter
    stdout: asyncio.StreamReader
    stderr: asyncio.StreamReader
    exited: asyncio.Event


@asynccontextmanager
async def stdio_streams(command: ServerCommand, log: ServerLog) -> "AsyncGenerator[Streams]":
    """Start it, and end it and all that it started. Raises ToolFailed where it cannot be started."""
    import anyio

    mark = new_mark()
    program = await _start(command, mark)
    tree = _process_tree(program, mark)
    incoming_in, incoming = anyio.create_memory_object_stream["Incoming"](0)
    outgoing, outgoing_out = anyio.create_memory_object_stream["SessionMessage"](0)
    questions = OpenRequests()
    tasks = [
        asyncio.create_task(_read_messages(program.stdout, incoming_in, log, questions)),
        asyncio.create_task(_write_messages(program.stdin, outgoing_out, questions)),
        asyncio.create_task(_log_stderr(program.stderr, log)),
        asyncio.create_task(_close_after_exit(program.exited, incoming_in)),
    ]
    try:
        yield incoming, outgoing
    finally:
        ending = asyncio.ensure_future(_end(program, tree, tasks, log))
        cancelled = await _finish_despite_cancel(ending)
        for stream in (incoming_in, incoming, outgoing, outgoing_out):
            stream.close()
        if cancelled:
            raise asyncio.CancelledError


async def _finish_despite_cancel(ending: "asyncio.Future[None]") -> bool:
    """Wait for the end, whatever happens; whether a cancel came meanwhile."""
    cancelled = False
    while not ending.done():
        try:
            await asyncio.wait([ending])
        except asyncio.CancelledError:
            cancelled = True
    ending.result()
    return cancelled


class _Protocol(SubprocessStreamProtocol):
    """Tells when the program itself has ended, whoever still holds its pipes."""

    def __init__(self, exited: asyncio.Event) -> None:
        super().__init__(limit=MAX_MESSAGE_BYTES, loop=asyncio.get_running_loop())
        self._exited = exited

    def process_exited(self) -> None:
        """Named by asyncio."""
        super().process_exited()
        self._exited.set()


async def _start(command: ServerCommand, mark: str) -> _RunningProgram:
    environment = {**command.environment, mark: "1"}
    try:
        if sys.platform != "linux":
            return await _spawn(command.argv, command.folder, environment)
        return await _start_supervised(command, environment, mark)
    except (OSError, ValueError) as error:
        raise _start_error(error, command) from error


async def _start_supervised(command: ServerCommand, environment: Mapping[str, str], mark: str) -> _RunningProgram:
    """With a process around it. Raises OSError."""
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            argv, own = supervised_command_from_socket(theirs.fileno()), {**minimal_environment(), mark: "1"}
            program = await _spawn(argv, command.folder, own, (theirs.fileno(),))
        try:
            await _send_start_request(ours, {"argv": list(command.argv), "environment": dict(environment)})
        except BaseException:
            await _finish_despite_cancel(asyncio.ensure_future(_abort(program, mark)))
            raise
    return program


async def _send_start_request(channel: socket.socket, what: Mapping[str, object]) -> None:
    """Comes back when it has been started. Raises OSError where it was not."""
    loop = asyncio.get_running_loop()
    channel.settimeout(0)
    await loop.sock_sendall(channel, json.dumps(what).encode())
    channel.shutdown(socket.SHUT_WR)
    if answer := await loop.sock_recv(channel, 100):
        number = int(answer)
        raise OSError(number, os.strerror(number)) if number else ValueError("its arguments cannot be passed on")


async def _abort(program: _RunningProgram, mark: str) -> None:
    await _end_tree(_process_tree(program, mark))
    await _wait_up_to(program.exited.wait(), _KILL_TIMEOUT)
    program.transport.close()


def _process_tree(program: _RunningProgram, mark: str) -> ProcessTree:
    return ProcessTree(program.transport.get_pid(), mark, is_supervised=sys.platform == "linux")


async def _spawn(
    argv: Sequence[str], folder: Path, environment: Mapping[str, str], passed: tuple[int, ...] = ()
) -> _RunningProgram:
    """Raises OSError, ValueError."""
    exited = asyncio.Event()
    transport, protocol = await asyncio.get_running_loop().subprocess_exec(
        lambda: _Protocol(exited),
        *argv,
        cwd=str(folder),
        env=environment,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
        pass_fds=passed,
    )
    stdin, stdout, stderr = protocol.stdin, protocol.stdout, protocol.stderr
    if stdin is None or stdout is None or stderr is None:
        raise RuntimeError("asyncio made no pipes")
    return _RunningProgram(transport, stdin, stdout, stderr, exited)


def _start_error(error: OSError | ValueError, command: ServerCommand) -> ToolFailed:
    """Why the system did not start it, and what helps."""
    name = command.argv[0]
    values = {"name": name, "path": str(command.folder), "why": getattr(error, "strerror", None) or str(error)}
    if not command.folder.is_dir():
        what = Sentence("There is no folder “{path}”.", values)
        return ToolFailed(what, "Choose another folder for the conversation, or make this one again.")
    if isinstance(error, FileNotFoundError):
        return _missing_program_error(name, values)
    if Path(name).is_dir():
        what = Sentence("“{name}” is a folder, and no program.", values)
        return ToolFailed(what, "Give the whole path of a program with Edit.")
    if isinstance(error, PermissionError):
        what = Sentence("The program “{name}” may not be run.", values)
        remedy = "Make it executable, or name the program that runs it, such as python or sh, as the command."
        return ToolFailed(what, remedy)
    if isinstance(error, OSError) and error.errno == errno.ENOEXEC:
        what = Sentence("“{name}” is no program that this machine can run.", values)
        return ToolFailed(what, "Name the program that runs it, such as python or sh, as the command.")
    what = Sentence("The program “{name}” could not be started: {why}.", values)
    return ToolFailed(what, "Correct the server's command and its arguments with Edit.")


def _missing_program_error(name: str, values: Mapping[str, str]) -> ToolFailed:
    if Path(name).is_file():
        what = Sentence("What shall run “{name}”, by its first line (#!), is not there.", values)
        return ToolFailed(what, "Install that, or correct the first line.")
    what = Sentence("There is no program “{name}”.", values)
    if " " in name.strip():
        return ToolFailed(what, "Write the program alone as the command, and all that follows as its arguments.")
    return ToolFailed(what, "Install it, or give its whole path with Edit.")


async def _read_messages(
    source: asyncio.StreamReader, to: "MemoryObjectSendStream[Incoming]", log: ServerLog, questions: OpenRequests
) -> None:
    """Line by line. What is no message is a line of the log: some programs greet people there."""
    import anyio

    pace = ReadPacer()
    with to, contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, ConnectionError):
        while True:
            try:
                line = await source.readline()
            except ValueError:
                log.add(f"A message is longer than {MAX_MESSAGE_BYTES:,} bytes; the connection was closed.", "error")
                return
            if not line:
                return
            pace.begin()
            try:
                await _forward_line(line, to, log, questions)
            except TimeoutError:
                log.add(f"It asked {len(questions)} questions and took no answer; the connection was closed.", "error")
                return
            await pace.pause_if_busy()


async def _forward_line(
    line: bytes, to: "MemoryObjectSendStream[Incoming]", log: ServerLog, questions: OpenRequests
) -> None:
    from mcp.shared.message import SessionMessage

    found = (
        parse_messages(line) if len(line) < _PARSE_IN_THREAD_BYTES else await asyncio.to_thread(parse_messages, line)
    )
    if not found.messages:
        log.add_stray_output(line[:_MAX_STRAY_BYTES].decode("utf-8", "replace").rstrip())
    for message in found.messages:
        if await questions.admit(message):
            await to.send(SessionMessage(message))


async def _write_messages(
    to: asyncio.StreamWriter, source: "MemoryObjectReceiveStream[SessionMessage]", questions: OpenRequests
) -> None:
    import anyio

    with source, contextlib.suppress(anyio.ClosedResourceError, OSError):
        async for item in source:
            text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
            to.write(text.encode("utf-8", "replace") + b"\n")
            await to.drain()
            questions.mark_answered(item.message)


async def _log_stderr(source: asyncio.StreamReader, log: ServerLog) -> None:
    count = 0
    rest = b""
    while data := await source.read(8192):
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            log.add(line.decode("utf-8", "replace").rstrip())
        rest = rest[-8192:]
        count += len(lines)
        # Those who write without end are read slowly.
        if count > _LINES_BEFORE_PAUSE:
            count = 0
            await asyncio.sleep(_PAUSE_SECONDS)
    if rest:
        log.add(rest.decode("utf-8", "replace").rstrip())


async def _close_after_exit(exited: asyncio.Event, to: "MemoryObjectSendStream[Incoming]") -> None:
    """When the program has ended, whoever still holds its output says nothing for it."""
    await exited.wait()
    await asyncio.sleep(_EXIT_GRACE)
    to.close()


async def _end(program: _RunningProgram, tree: ProcessTree, tasks: "list[asyncio.Task[None]]", log: ServerLog) -> None:
    """First by closing its input, as the protocol says; then everything of the tree."""
    reading, writing, errors, hanging_up = tasks
    program.stdin.close()
    # Who is stuck in writing would never see that its input is closed.
    reading.cancel()
    await _wait_up_to(program.exited.wait(), _EXIT_GRACE)
    log.exit_code = program.transport.get_returncode()
    await _end_tree(tree)
    await _wait_up_to(program.exited.wait(), _KILL_TIMEOUT)
    await asyncio.wait({errors}, timeout=_EXIT_GRACE)
    for task in (reading, writing, errors, hanging_up):
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    program.transport.close()
    with contextlib.suppress(OSError):
        await _wait_up_to(program.stdin.wait_closed(), _EXIT_GRACE)


async def _end_tree(tree: ProcessTree) -> None:
    if not await asyncio.to_thread(tree.terminate):
        return
    loop = asyncio.get_running_loop()
    until = loop.time() + _EXIT_GRACE
    # Nobody tells when a process ends that is not one's own child.
    while await asyncio.to_thread(tree.is_alive) and loop.time() < until:  # noqa: ASYNC110
        await asyncio.sleep(_POLL_INTERVAL)
    until = loop.time() + _KILL_TIMEOUT
    while await asyncio.to_thread(tree.kill):
        if loop.time() > until:
            _log.warning("processes of an MCP server could not be killed: %s", tree.ids)
            return
        await asyncio.sleep(_POLL_INTERVAL)


async def _wait_up_to(waiting: Awaitable[object], seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await waiting
