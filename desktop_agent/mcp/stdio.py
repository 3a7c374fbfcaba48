"""Stdio transport of an MCP server: lines of JSON to the input and from the output of a program. Loaded late.

That of the `mcp` package reads lines without a bound, gives the error stream to a file, starts the program without
inherited descriptors, and ends only its process group. This one bounds what a server may send, logs its error stream,
and ends all that the program started, in any session or group. On Linux a supervisor process is its parent for that
(`desktop_agent.sandbox.launcher`), so nothing escapes by leaving parent, session and environment behind.
"""

import asyncio
import contextlib
import errno
import json
import os
import socket
import sys
from asyncio.subprocess import SubprocessStreamProtocol
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client._transport import TransportStreams
from mcp.shared.message import SessionMessage

from desktop_agent.mcp.diagnostics import ServerLog
from desktop_agent.mcp.limits import ReadPacer, parse_messages_by_size
from desktop_agent.processes.run_process import ProcessTree, new_mark, terminate_tree, wait_at_most
from desktop_agent.processes.worker_threads import finish
from desktop_agent.sandbox.backends import supervised_command_from_socket
from desktop_agent.sandbox.child_command import minimal_environment
from desktop_agent.types.errors import Sentence, ToolFailed

MAX_MESSAGE_BYTES = 32_000_000
_MAX_STRAY_BYTES = 50_000
# After so many lines of the error stream, reading pauses for so many seconds: a flood must not keep the loop busy.
_LINES_BEFORE_PAUSE = 50
_PAUSE_SECONDS = 0.01
# Seconds that a program gets to end by itself once its input is closed, and to flush before.
_EXIT_GRACE = 1.0
_KILL_TIMEOUT = 5.0


@dataclass(frozen=True, slots=True)
class ServerCommand:
    """The program to start, its folder, and its whole environment: nothing is added to it."""

    argv: Sequence[str]
    folder: Path
    environment: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class _RunningProgram:
    tree: ProcessTree
    transport: asyncio.SubprocessTransport
    stdin: asyncio.StreamWriter
    stdout: asyncio.StreamReader
    stderr: asyncio.StreamReader
    exited: asyncio.Event


@asynccontextmanager
async def stdio_streams(command: ServerCommand, log: ServerLog) -> AsyncGenerator[TransportStreams]:
    """Start a program, and end it and all that it started. Raises ToolFailed where it cannot be started."""
    program = await _start(command)
    incoming_in, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, outgoing_out = anyio.create_memory_object_stream[SessionMessage](0)
    tasks = [
        asyncio.create_task(_read_messages(program.stdout, incoming_in, log)),
        asyncio.create_task(_log_stderr(program.stderr, log)),
        asyncio.create_task(_write_messages(program.stdin, outgoing_out)),
        asyncio.create_task(_close_after_exit(program.exited, incoming_in)),
    ]
    try:
        yield incoming, outgoing
    finally:
        try:
            await finish(_end(program, tasks, log))
        finally:
            for stream in (incoming_in, incoming, outgoing, outgoing_out):
                stream.close()


class _Protocol(SubprocessStreamProtocol):
    """Reports the end of the program itself, whatever process still has its pipes."""

    def __init__(self, exited: asyncio.Event) -> None:
        super().__init__(limit=MAX_MESSAGE_BYTES, loop=asyncio.get_running_loop())
        self._exited = exited

    def process_exited(self) -> None:
        super().process_exited()
        self._exited.set()


async def _start(command: ServerCommand) -> _RunningProgram:
    try:
        if sys.platform == "linux":
            return await _start_supervised(command)
        return await _spawn(command.argv, command.folder, command.environment, new_mark())
    except (OSError, ValueError) as error:
        raise _start_error(error, command) from error


async def _start_supervised(command: ServerCommand) -> _RunningProgram:
    """Start the program under a supervisor process. Raises OSError."""
    mark = new_mark()
    own_end, child_end = socket.socketpair()
    with own_end:
        with child_end:
            argv = supervised_command_from_socket(child_end.fileno())
            program = await _spawn(argv, command.folder, minimal_environment(), mark, (child_end.fileno(),))
        request = {"argv": list(command.argv), "environment": {**command.environment, mark: "1"}}
        try:
            await _send_start_request(own_end, request)
        except BaseException:
            await finish(_abort(program))
            raise
    return program


async def _send_start_request(channel: socket.socket, request: Mapping[str, object]) -> None:
    """Return when the program has been started. Raises OSError where it was not."""
    loop = asyncio.get_running_loop()
    channel.settimeout(0)
    await loop.sock_sendall(channel, json.dumps(request).encode())
    channel.shutdown(socket.SHUT_WR)
    if answer := await loop.sock_recv(channel, 100):
        number = int(answer)
        raise OSError(number, os.strerror(number)) if number else ValueError("the arguments were not passed on")


async def _abort(program: _RunningProgram) -> None:
    await terminate_tree(program.tree, _EXIT_GRACE)
    await wait_at_most(program.exited, _KILL_TIMEOUT)
    program.transport.close()


async def _spawn(
    argv: Sequence[str], folder: Path, environment: Mapping[str, str], mark: str, inherited_fds: tuple[int, ...] = ()
) -> _RunningProgram:
    """Raises OSError, ValueError."""
    exited = asyncio.Event()
    transport, protocol = await asyncio.get_running_loop().subprocess_exec(
        lambda: _Protocol(exited),
        *argv,
        cwd=str(folder),
        env={**environment, mark: "1"},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
        pass_fds=inherited_fds,
    )
    stdin, stdout, stderr = protocol.stdin, protocol.stdout, protocol.stderr
    if stdin is None or stdout is None or stderr is None:
        raise RuntimeError("asyncio made no pipes")
    tree = ProcessTree(transport.get_pid(), mark, is_supervised=sys.platform == "linux")
    return _RunningProgram(tree, transport, stdin, stdout, stderr, exited)


def _start_error(error: OSError | ValueError, command: ServerCommand) -> ToolFailed:
    name = command.argv[0]
    why = error.strerror or str(error) if isinstance(error, OSError) else Sentence("its arguments cannot be passed on")
    values: dict[str, str | Sentence] = {"name": name, "path": str(command.folder), "why": why}
    if not command.folder.is_dir():
        sentence = Sentence("There is no folder “{path}”.", values)
        return ToolFailed(sentence, "Choose another folder for the conversation, or make this one again.")
    if isinstance(error, FileNotFoundError):
        return _missing_program_error(name, values)
    if Path(name).is_dir():
        sentence = Sentence("“{name}” is a folder, not a program.", values)
        return ToolFailed(sentence, "Give the whole path of a program with Edit.")
    if isinstance(error, PermissionError):
        sentence = Sentence("The program “{name}” may not be run.", values)
        remedy = "Make it executable, or name the program that runs it, such as python or sh, as the command."
        return ToolFailed(sentence, remedy)
    if isinstance(error, OSError) and error.errno == errno.ENOEXEC:
        sentence = Sentence("“{name}” is not a program that this computer can run.", values)
        return ToolFailed(sentence, "Name the program that runs it, such as python or sh, as the command.")
    sentence = Sentence("The program “{name}” could not be started: {why}.", values)
    return ToolFailed(sentence, "Correct the server's command and its arguments with Edit.")


def _missing_program_error(name: str, values: Mapping[str, str | Sentence]) -> ToolFailed:
    if Path(name).is_file():
        sentence = Sentence("The program that runs “{name}”, by its first line (#!), is not installed.", values)
        return ToolFailed(sentence, "Install that program, or correct the first line.")
    sentence = Sentence("There is no program “{name}”.", values)
    if " " in name.strip():
        return ToolFailed(sentence, "Write the program alone as the command, and all that follows as its arguments.")
    return ToolFailed(sentence, "Install it, or give its whole path with Edit.")


async def _read_messages(
    source: asyncio.StreamReader, stream: MemoryObjectSendStream[SessionMessage | Exception], log: ServerLog
) -> None:
    """Read line by line. A line that is no message goes to the log: some programs print a greeting."""
    pacer = ReadPacer()
    with stream, contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, ConnectionError):
        try:
            while line := await source.readline():
                pacer.begin()
                parsed = await parse_messages_by_size(line)
                if not parsed.messages:
                    log.add_stray_output(line[:_MAX_STRAY_BYTES].decode("utf-8", "replace").rstrip())
                for message in parsed.messages:
                    await stream.send(SessionMessage(message))
                await pacer.pause_if_busy()
        except ValueError:
            log.add(f"A message is longer than {MAX_MESSAGE_BYTES:,} bytes; the connection was closed.", "error")


async def _write_messages(stdin: asyncio.StreamWriter, source: MemoryObjectReceiveStream[SessionMessage]) -> None:
    with source, contextlib.suppress(anyio.ClosedResourceError, OSError):
        async for item in source:
            text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
            stdin.write(text.encode("utf-8", "replace") + b"\n")
            await stdin.drain()


async def _log_stderr(source: asyncio.StreamReader, log: ServerLog) -> None:
    count = 0
    rest = b""
    while data := await source.read(8192):
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            log.add(line.decode("utf-8", "replace").rstrip())
        rest = rest[-8192:]
        count += len(lines)
        # A program that writes endlessly is read slowly.
        if count > _LINES_BEFORE_PAUSE:
            count = 0
            await asyncio.sleep(_PAUSE_SECONDS)
    if rest:
        log.add(rest.decode("utf-8", "replace").rstrip())


async def _close_after_exit(exited: asyncio.Event, stream: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
    """Close the stream some time after the program has ended: other processes with its output do not speak for it."""
    await exited.wait()
    await asyncio.sleep(_EXIT_GRACE)
    stream.close()


async def _end(program: _RunningProgram, tasks: list[asyncio.Task[None]], log: ServerLog) -> None:
    """Close the input first, as the protocol says; then end everything of the tree."""
    reader, stderr_reader, *_ = tasks
    program.stdin.close()
    # A program that is blocked in writing would never notice that its input is closed.
    reader.cancel()
    await wait_at_most(program.exited, _EXIT_GRACE)
    log.exit_code = program.transport.get_returncode()
    await terminate_tree(program.tree, _EXIT_GRACE)
    await wait_at_most(program.exited, _KILL_TIMEOUT)
    await asyncio.wait({stderr_reader}, timeout=_EXIT_GRACE)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    program.transport.close()
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(_EXIT_GRACE):
            await program.stdin.wait_closed()
