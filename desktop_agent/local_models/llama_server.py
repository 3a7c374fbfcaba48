"""One process of llama.cpp's server, on a loopback port, with a key that nobody else knows.

Its command line, its key in `LLAMA_API_KEY` and `/health` are documented in tools/server/README.md of llama.cpp.
"""

import asyncio
import contextlib
import secrets
import socket
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
from pydantic import SecretStr

from desktop_agent.processes.lifeline import MODULE, PART
from desktop_agent.processes.run_process import ProcessTree, new_mark, terminate_tree, wait_at_most
from desktop_agent.sandbox.child_command import child_command, original_environment
from desktop_agent.types.errors import AgentError, Sentence
from desktop_agent.types.providers import LocalModel

LOOPBACK = "127.0.0.1"
_PORT_ATTEMPTS = 3
_POLL_SECONDS = 0.1
_PROBE_TIMEOUT = 5.0
# Large models on slow disks take long; requests wait as long for a server that loads a model itself.
_START_TIMEOUT = 900.0
_END_GRACE = 5.0
_LOG_LINES = 200
_LOG_LINE_LENGTH = 500


class LocalModelFailed(AgentError):
    """A model file could not be run. `detail` has the last lines of the server."""

    kind = "local_model"
    default_remedy = "Copy the details to see what the server said, or choose another model."


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """The program, the context in tokens, and how long a model may load, in seconds."""

    program: str
    context: int
    start_timeout: float = _START_TIMEOUT


class LlamaServer:
    """A server that runs. Make it with `start`, end it with `stop`."""

    def __init__(self, process: asyncio.subprocess.Process, tree: ProcessTree, port: int, key: SecretStr) -> None:
        self.base_url = f"http://{LOOPBACK}:{port}/v1"
        self.key = key
        self.exited = asyncio.Event()
        self._process = process
        self._tree = tree
        self._port = port
        self._lines: deque[str] = deque(maxlen=_LOG_LINES)
        self._tasks = [asyncio.create_task(self._read_log()), asyncio.create_task(self._wait_for_exit())]

    @classmethod
    async def start(
        cls, model: LocalModel, options: ServerOptions, on_memory: Callable[[int], None] = lambda _: None
    ) -> "LlamaServer":
        """Start a server and wait until its model is loaded; `on_memory` gets the bytes that it takes meanwhile.

        A cancel ends it again. Raises LocalModelFailed.
        """
        log = ""
        for _ in range(_PORT_ATTEMPTS):
            port = _free_port()
            server = await cls._spawn(model, options, port)
            try:
                async with asyncio.timeout(options.start_timeout):
                    if await server.wait_until_loaded(on_memory):
                        return server
            except TimeoutError:
                await server.stop()
                sentence = Sentence("“{model}” was not loaded in time.", {"model": model.id})
                raise LocalModelFailed(sentence, detail=server.log) from None
            except BaseException:
                await server.stop()
                raise
            await server.stop()
            log = server.log
            if not _is_taken(port):
                sentence = Sentence("llama.cpp could not load “{model}”.", {"model": model.id})
                raise LocalModelFailed(sentence, detail=log)
        raise LocalModelFailed(Sentence("No free port was found for the model."), "Try again.", detail=log)

    @classmethod
    async def _spawn(cls, model: LocalModel, options: ServerOptions, port: int) -> "LlamaServer":
        key, mark = secrets.token_urlsafe(32), new_mark()
        argv = _command_line(model, options, port)
        # The command line can be read by everybody on this computer, the environment cannot.
        environment = {**original_environment(), "LLAMA_API_KEY": key, mark: "1"}
        try:
            process = await asyncio.create_subprocess_exec(
                *child_command(PART, MODULE, *argv),
                cwd=str(Path(options.program).parent),
                env=environment,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            values = {"name": options.program, "why": getattr(error, "strerror", None) or type(error).__name__}
            raise LocalModelFailed(Sentence("“{name}” could not be started: {why}.", values)) from error
        return cls(process, ProcessTree(process.pid, mark), port, SecretStr(key))

    @property
    def log(self) -> str:
        return "\n".join(self._lines)

    async def memory(self) -> int:
        """Return the bytes of memory that the server takes."""
        return await asyncio.to_thread(_memory_below, self._process.pid)

    async def stop(self) -> None:
        """End the server and wait for its end."""
        await asyncio.shield(self._stop())

    async def _stop(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        await wait_at_most(self.exited, _END_GRACE)
        await terminate_tree(self._tree, _END_GRACE)
        await wait_at_most(self.exited, _END_GRACE)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def wait_until_loaded(self, on_memory: Callable[[int], None]) -> bool:
        """Wait for the model; return False where the process ended, or somebody else answers on its port."""
        while not self.exited.is_set():
            status = await _health(self._port)
            if status == 200:  # anybody may have taken the port: prompts must go to our own process alone
                return await asyncio.to_thread(_listens, self._process.pid, self._port)
            on_memory(await self.memory())
            await wait_at_most(self.exited, _POLL_SECONDS)
        return False

    async def _read_log(self) -> None:
        source = self._process.stdout
        rest = b""
        while source is not None and (data := await source.read(8192)):
            *lines, rest = (rest + data).split(b"\n")
            self._lines.extend(line.decode("utf-8", "replace").rstrip()[:_LOG_LINE_LENGTH] for line in lines)
            rest = rest[-8192:]
        if rest:
            self._lines.append(rest.decode("utf-8", "replace")[:_LOG_LINE_LENGTH])

    async def _wait_for_exit(self) -> None:
        await self._process.wait()
        self.exited.set()


def _command_line(model: LocalModel, options: ServerOptions, port: int) -> Sequence[str]:
    settings = {
        "--model": model.path,
        "--alias": model.id,
        "--host": LOOPBACK,
        "--port": str(port),
        "--ctx-size": str(options.context),
        "--parallel": "1",  # several share the context
    }
    words = [word for pair in settings.items() for word in pair]
    return [options.program, *words, "--jinja", "--no-webui"]


def _free_port() -> int:
    with socket.create_server((LOOPBACK, 0)) as listening:
        return listening.getsockname()[1]


def _is_taken(port: int) -> bool:
    try:
        with socket.create_server((LOOPBACK, port)):
            return False
    except OSError:
        return True


async def _health(port: int) -> int | None:
    """Return the status of `/health`: 503 while the model is loading, 200 after that; None without an answer."""
    writer = None
    try:
        async with asyncio.timeout(_PROBE_TIMEOUT):
            reader, writer = await asyncio.open_connection(LOOPBACK, port, limit=4096)
            writer.write(f"GET /health HTTP/1.1\r\nHost: {LOOPBACK}:{port}\r\nConnection: close\r\n\r\n".encode())
            words = (await reader.readline()).split()
        return int(words[1])
    except (OSError, TimeoutError, ValueError, IndexError):
        return None
    finally:
        if writer is not None:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()


def _descendants(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []


def _memory_below(pid: int) -> int:
    total = 0
    for process in _descendants(pid):
        with contextlib.suppress(psutil.Error):
            total += process.memory_info().rss
    return total


def _listens(pid: int, port: int) -> bool:
    for process in _descendants(pid):
        with contextlib.suppress(psutil.Error):
            if any(
                connection.status == psutil.CONN_LISTEN and connection.laddr and connection.laddr.port == port
                for connection in process.net_connections("tcp4")
            ):
                return True
    return False
