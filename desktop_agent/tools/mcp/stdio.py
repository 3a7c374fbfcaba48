"""A server that is a program of this machine: lines of JSON to its input and from its output.

The client of the `mcp` package would do; this one bounds what a server may say, keeps its error stream, and ends all
that the program started, whatever session or group that is in. On Linux a process stays around it for that
(`desktop_agent.tools.confining.staying`), so nobody gets away by leaving parent, session and environment behind.
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

from desktop_agent.tools.commands.landlock import stayed_with_what_comes_over
from desktop_agent.tools.mcp.server_log import ServerLog
from desktop_agent.tools.mcp.wire.messages import read
from desktop_agent.tools.mcp.wire.pace import OpenQuestions, Pace
from desktop_agent.tools.processes.own_part import part_environment
from desktop_agent.tools.processes.process_tree import ProcessTree, new_mark
from desktop_agent.vocabulary.errors import Sentence, ToolFailed

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.shared.message import SessionMessage

    Incoming = SessionMessage | Exception
    Streams = tuple[MemoryObjectReceiveStream[Incoming], MemoryObjectSendStream[SessionMessage]]

_log = logging.getLogger(__name__)

LONGEST_LINE = 32_000_000
"""Bytes of one message."""
_LARGE = 4_000
_LONGEST_STRAY = 50_000
# After so many lines the loop gets a breath, so that a flood does not keep it busy; in seconds.
_BATCH = 50
_BREATH = 0.01
# How long a program gets to end by itself once its input is closed, and to flush before; in seconds.
_GRACE = 1.0
_AFTER_KILL = 5.0
_LOOK_EVERY = 0.02


@dataclass(frozen=True, slots=True)
class Command:
    """What to start, where, and with which environment: nothing of this program's own is added."""

    argv: Sequence[str]
    folder: Path
    environment: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class _Program:
    """One that runs, and its pipes."""

    transport: asyncio.SubprocessTransport
    stdin: asyncio.StreamWriter
    stdout: asyncio.StreamReader
    stderr: asyncio.StreamReader
    exited: asyncio.Event


@asynccontextmanager
async def stdio_streams(command: Command, log: ServerLog) -> "AsyncGenerator[Streams]":
    """Start it, and end it and all that it started. Raises ToolFailed where it cannot be started."""
    import anyio

    mark = new_mark()
    program = await _started(command, mark)
    tree = _tree_of(program, mark)
    incoming_in, incoming = anyio.create_memory_object_stream["Incoming"](0)
    outgoing, outgoing_out = anyio.create_memory_object_stream["SessionMessage"](0)
    questions = OpenQuestions()
    tasks = [
        asyncio.create_task(_read(program.stdout, incoming_in, log, questions)),
        asyncio.create_task(_write(program.stdin, outgoing_out, questions)),
        asyncio.create_task(_keep_errors(program.stderr, log)),
        asyncio.create_task(_hang_up(program.exited, incoming_in)),
    ]
    try:
        yield incoming, outgoing
    finally:
        ending = asyncio.ensure_future(_end(program, tree, tasks, log))
        cancelled = await _seen_through(ending)
        for stream in (incoming_in, incoming, outgoing, outgoing_out):
            stream.close()
        if cancelled:
            raise asyncio.CancelledError


async def _seen_through(ending: "asyncio.Future[None]") -> bool:
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
        super().__init__(limit=LONGEST_LINE, loop=asyncio.get_running_loop())
        self._told = exited

    def process_exited(self) -> None:
        """Named by asyncio."""
        super().process_exited()
        self._told.set()


async def _started(command: Command, mark: str) -> _Program:
    environment = {**command.environment, mark: "1"}
    try:
        if sys.platform != "linux":
            return await _spawned(command.argv, command.folder, environment)
        return await _stayed_with(command, environment, mark)
    except (OSError, ValueError) as error:
        raise _refused(error, command) from error


async def _stayed_with(command: Command, environment: Mapping[str, str], mark: str) -> _Program:
    """With a process around it. Raises OSError."""
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            argv, own = stayed_with_what_comes_over(theirs.fileno()), {**part_environment(), mark: "1"}
            program = await _spawned(argv, command.folder, own, (theirs.fileno(),))
        try:
            await _hand_over(ours, {"argv": list(command.argv), "environment": dict(environment)})
        except BaseException:
            await _seen_through(asyncio.ensure_future(_given_up(program, mark)))
            raise
    return program


async def _hand_over(channel: socket.socket, what: Mapping[str, object]) -> None:
    """Comes back when it has been started. Raises OSError where it was not."""
    loop = asyncio.get_running_loop()
    channel.settimeout(0)
    await loop.sock_sendall(channel, json.dumps(what).encode())
    channel.shutdown(socket.SHUT_WR)
    if answer := await loop.sock_recv(channel, 100):
        number = int(answer)
        raise OSError(number, os.strerror(number)) if number else ValueError("its arguments cannot be passed on")


async def _given_up(program: _Program, mark: str) -> None:
    await _end_tree(_tree_of(program, mark))
    await _within(program.exited.wait(), _AFTER_KILL)
    program.transport.close()


def _tree_of(program: _Program, mark: str) -> ProcessTree:
    return ProcessTree(program.transport.get_pid(), mark, stays=sys.platform == "linux")


async def _spawned(
    argv: Sequence[str], folder: Path, environment: Mapping[str, str], passed: tuple[int, ...] = ()
) -> _Program:
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
    return _Program(transport, stdin, stdout, stderr, exited)


def _refused(error: OSError | ValueError, command: Command) -> ToolFailed:
    """Why the system did not start it, and what helps."""
    name = command.argv[0]
    values = {"name": name, "path": str(command.folder), "why": getattr(error, "strerror", None) or str(error)}
    if not command.folder.is_dir():
        what = Sentence("There is no folder “{path}”.", values)
        return ToolFailed(what, "Choose another folder for the conversation, or make this one again.")
    if isinstance(error, FileNotFoundError):
        return _missing(name, values)
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


def _missing(name: str, values: Mapping[str, str]) -> ToolFailed:
    if Path(name).is_file():
        what = Sentence("What shall run “{name}”, by its first line (#!), is not there.", values)
        return ToolFailed(what, "Install that, or correct the first line.")
    what = Sentence("There is no program “{name}”.", values)
    if " " in name.strip():
        return ToolFailed(what, "Write the program alone as the command, and all that follows as its arguments.")
    return ToolFailed(what, "Install it, or give its whole path with Edit.")


async def _read(
    source: asyncio.StreamReader, to: "MemoryObjectSendStream[Incoming]", log: ServerLog, questions: OpenQuestions
) -> None:
    """Line by line. What is no message is a line of the log: some programs greet people there."""
    import anyio

    pace = Pace()
    with to, contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, ConnectionError):
        while True:
            try:
                line = await source.readline()
            except ValueError:
                log.add(f"A message is longer than {LONGEST_LINE:,} bytes; the connection was closed.", "error")
                return
            if not line:
                return
            pace.begin()
            try:
                await _take(line, to, log, questions)
            except TimeoutError:
                log.add(f"It asked {len(questions)} questions and took no answer; the connection was closed.", "error")
                return
            await pace.done()


async def _take(line: bytes, to: "MemoryObjectSendStream[Incoming]", log: ServerLog, questions: OpenQuestions) -> None:
    from mcp.shared.message import SessionMessage

    found = read(line) if len(line) < _LARGE else await asyncio.to_thread(read, line)
    if not found.messages:
        log.add_stray(line[:_LONGEST_STRAY].decode("utf-8", "replace").rstrip())
    for message in found.messages:
        if await questions.may_come(message):
            await to.send(SessionMessage(message))


async def _write(
    to: asyncio.StreamWriter, source: "MemoryObjectReceiveStream[SessionMessage]", questions: OpenQuestions
) -> None:
    import anyio

    with source, contextlib.suppress(anyio.ClosedResourceError, OSError):
        async for item in source:
            text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
            to.write(text.encode("utf-8", "replace") + b"\n")
            await to.drain()
            questions.answered(item.message)


async def _keep_errors(source: asyncio.StreamReader, log: ServerLog) -> None:
    count = 0
    rest = b""
    while data := await source.read(8192):
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            log.add(line.decode("utf-8", "replace").rstrip())
        rest = rest[-8192:]
        count += len(lines)
        # Those who write without end are read slowly.
        if count > _BATCH:
            count = 0
            await asyncio.sleep(_BREATH)
    if rest:
        log.add(rest.decode("utf-8", "replace").rstrip())


async def _hang_up(exited: asyncio.Event, to: "MemoryObjectSendStream[Incoming]") -> None:
    """When the program has ended, whoever still holds its output says nothing for it."""
    await exited.wait()
    await asyncio.sleep(_GRACE)
    to.close()


async def _end(program: _Program, tree: ProcessTree, tasks: "list[asyncio.Task[None]]", log: ServerLog) -> None:
    """First by closing its input, as the protocol says; then everything of the tree."""
    reading, writing, errors, hanging_up = tasks
    program.stdin.close()
    # Who is stuck in writing would never see that its input is closed.
    reading.cancel()
    await _within(program.exited.wait(), _GRACE)
    log.exit_code = program.transport.get_returncode()
    await _end_tree(tree)
    await _within(program.exited.wait(), _AFTER_KILL)
    await asyncio.wait({errors}, timeout=_GRACE)
    for task in (reading, writing, errors, hanging_up):
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    program.transport.close()
    with contextlib.suppress(OSError):
        await _within(program.stdin.wait_closed(), _GRACE)


async def _end_tree(tree: ProcessTree) -> None:
    if not await asyncio.to_thread(tree.ask_to_end):
        return
    loop = asyncio.get_running_loop()
    until = loop.time() + _GRACE
    # Nobody tells when a process ends that is not one's own child.
    while await asyncio.to_thread(tree.is_alive) and loop.time() < until:  # noqa: ASYNC110
        await asyncio.sleep(_LOOK_EVERY)
    until = loop.time() + _AFTER_KILL
    while await asyncio.to_thread(tree.kill):
        if loop.time() > until:
            _log.warning("processes of an MCP server could not be killed: %s", tree.ids)
            return
        await asyncio.sleep(_LOOK_EVERY)


async def _within(waiting: Awaitable[object], seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await waiting
