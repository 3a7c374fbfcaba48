"""The states that Stop is tried in: what the server does, where the address leads, and how one knows it is reached."""

import asyncio
import os
import socket
import sys
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

import psutil
from pydantic import BaseModel

from desktop_agent.processes.run_process import run_process
from desktop_agent.tools.tool import AnyTool, ModelSchema, RunningCall, Tool
from desktop_agent.types.blocks import Text
from desktop_agent.types.engine_events import ApprovalRequested, RetryScheduled, ToolCallPending, ToolProgress
from desktop_agent.types.policies import Hooks, PreToolUse, Specialist
from desktop_agent.types.provider_events import ContentDelta, ToolArgsDelta
from desktop_agent.types.tool_calls import Effect, ToolClass
from tests.fakes.stopping_server import (
    SILENCE,
    Answer,
    FullListener,
    Server,
    breaks_off,
    calls,
    certificate,
    half_a_call,
    refuses,
    says,
    server_side,
)

NAME = "model.invalid"

# Three processes that ignore SIGTERM, two of them in a session of their own. Should they survive, then
# not for long.
_DEAF = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    os.fork()
os.write(1, b'%d\\n' % os.getpid())
time.sleep(100)
"""
PROCESSES = 3


class Word(BaseModel):
    word: str = "x"


async def _run_deaf(_: Word, call: RunningCall) -> tuple[Text, ...]:
    end = await run_process([sys.executable, "-c", _DEAF], cwd="/", on_output=call.progress)
    return (Text(text=str(end.exit_code)),)


DEAF = Tool("deaf", "Starts programs.", ModelSchema(Word), _run_deaf, effects=frozenset({Effect.EXECUTE}))
INNER = Specialist(name="inner", description="Works.", system_prompt="You work.", tools=("deaf",))
OUTER = Specialist(
    name="outer", description="Hands on.", system_prompt="You hand on.", tools=("deaf",), specialists=("inner",)
)


def waiting_tool(name: str, opened: asyncio.Event) -> AnyTool:
    """Return a tool that reports progress when it has begun, and waits until `opened` is set."""

    async def run(arguments: Word, call: RunningCall) -> tuple[Text, ...]:
        call.progress("there")
        await opened.wait()
        return (Text(text=arguments.word),)

    return Tool(name, "Waits.", ModelSchema(Word), run, tool_class=ToolClass.READ_ONLY)


class Place(Protocol):
    """Where the address of the model leads. `recover` makes it a server that answers."""

    server: Server

    async def begin(self, answers: tuple[Answer, ...], folder: Path) -> str: ...
    def is_reached(self) -> object: ...
    async def recover(self) -> None: ...
    async def end(self) -> None: ...


AnyPlace = TypeVar("AnyPlace", bound=Place)


class Plain:
    """A server without tricks."""

    def __init__(self) -> None:
        self.server = Server()
        self._answers: tuple[Answer, ...] = ()

    async def begin(self, answers: tuple[Answer, ...], folder: Path) -> str:
        self._answers = answers
        self.server.answers = list(answers)
        await self.server.start()
        return f"http://127.0.0.1:{self.server.port}/v1"

    def is_reached(self) -> object:
        """Whether it waits in the answer that holds, if one of its answers does."""
        return self.server.is_holding or not any(answer.holds for answer in self._answers)

    async def recover(self) -> None:
        self.server.answers.clear()

    async def end(self) -> None:
        await self.server.aclose()


class Lookup(Plain):
    """A name whose lookup hangs."""

    def __init__(self) -> None:
        super().__init__()
        self._asked = threading.Event()
        self._may_answer = threading.Event()
        self._real = socket.getaddrinfo

    async def begin(self, answers: tuple[Answer, ...], folder: Path) -> str:
        await super().begin(answers, folder)
        socket.getaddrinfo = self._look_up
        return f"http://{NAME}:{self.server.port}/v1"

    def is_reached(self) -> object:
        return self._asked.is_set()

    async def recover(self) -> None:
        self._may_answer.set()

    async def end(self) -> None:
        self._may_answer.set()
        socket.getaddrinfo = self._real
        await super().end()

    def _look_up(self, host: Any, *args: Any, **options: Any) -> Any:
        if host in (NAME, NAME.encode()):
            self._asked.set()
            self._may_answer.wait()
            host = "127.0.0.1"
        return self._real(host, *args, **options)


class NoRoom(Plain):
    """A listener whose queue is full: a connection to it is neither accepted nor refused."""

    async def begin(self, answers: tuple[Answer, ...], folder: Path) -> str:
        self._listener = await asyncio.to_thread(FullListener)
        self._listens = False
        return f"http://127.0.0.1:{self._listener.port}/v1"

    def is_reached(self) -> object:
        return any(connection.status == psutil.CONN_SYN_SENT for connection in connections_to(self._listener.port))

    async def recover(self) -> None:
        self._listener.make_room()
        self._listens = True
        await self.server.start(listener=self._listener.socket)

    async def end(self) -> None:
        self._listener.make_room()
        if not self._listens:
            self._listener.socket.close()
        await super().end()


class NoTls:
    """Connections are accepted, and what should be a handshake gets no answer."""

    def __init__(self) -> None:
        self.server = Server(mute=True)
        self._before = os.environ.get("SSL_CERT_FILE")

    async def begin(self, answers: tuple[Answer, ...], folder: Path) -> str:
        self._certificate = certificate(folder)
        os.environ["SSL_CERT_FILE"] = str(self._certificate)
        await self.server.start()
        return f"https://127.0.0.1:{self.server.port}/v1"

    def is_reached(self) -> object:
        return self.server.heard

    async def recover(self) -> None:
        port = self.server.port
        await self.server.aclose()
        self.server = Server()
        await self.server.start(port=port, tls=server_side(self._certificate))

    async def end(self) -> None:
        if self._before is None:
            os.environ.pop("SSL_CERT_FILE", None)
        else:
            os.environ["SSL_CERT_FILE"] = self._before
        await self.server.aclose()


@asynccontextmanager
async def begun(place: AnyPlace, answers: tuple[Answer, ...], folder: Path) -> AsyncGenerator[tuple[AnyPlace, str]]:
    """Begin the place and yield it with its address; end it after the block."""
    url = await place.begin(answers, folder)
    try:
        yield place, url
    finally:
        await place.end()


def connections_to(port: int) -> list[Any]:
    """Return the connections of this process to the port."""
    return [
        connection
        for connection in psutil.Process().net_connections("tcp")
        if connection.raddr and connection.raddr.port == port
    ]


def _at_once(_: Any) -> object:
    return True


def _has_event(kind: type, depth: int = 0) -> Callable[[Any], object]:
    return lambda events_at: any(isinstance(event, kind) for event in events_at(depth))


def _all_processes(depth: int) -> Callable[[Any], object]:
    return lambda events_at: len(pids_of(events_at(depth))) == PROCESSES


def pids_of(events: list[Any]) -> list[int]:
    """Return the process ids that the programs printed."""
    text = "".join(event.text for event in events if isinstance(event, ToolProgress))
    return [int(line) for line in text.split("\n")[:-1]]


async def _hook_that_hangs(_: PreToolUse) -> None:
    await asyncio.Event().wait()


@dataclass(frozen=True)
class State:
    """A state of a run. `reached` gets a function from a depth below the first run to the events of those runs.

    `works`: a tool is running and gets its grace. `asks`: calls need approval. `first`: a prompt was answered before.
    """

    name: str
    answers: tuple[Answer, ...] = ()
    reached: Callable[[Any], object] = _at_once
    place: Callable[[], Place] = Plain
    works: bool = False
    asks: bool = False
    first: bool = False
    hooks: Hooks = field(default_factory=Hooks)


_CALL = calls(("c1", "deaf", {}))
_HAND_ON = (calls(("c1", "outer", {"task": "t"})), calls(("c2", "inner", {"task": "t"})))
_TEXT = {"role": "assistant", "content": "Once upon a"}

STATES = (
    State("DNS lookup", place=Lookup),
    State("TCP connect", place=NoRoom),
    State("TLS handshake", place=NoTls),
    State("waiting for the first byte", (SILENCE,)),
    State("head without a body", (Answer(b": hi\n\n", holds=True),)),
    State("mid-text", (breaks_off(_TEXT),), _has_event(ContentDelta)),
    State("mid-arguments of a call", (breaks_off(half_a_call("c1", "deaf")),), _has_event(ToolArgsDelta)),
    State("waiting for approval", (_CALL,), _has_event(ApprovalRequested), asks=True),
    State("a hook that hangs", (_CALL,), _has_event(ToolCallPending), hooks=Hooks(pre_tool_use=(_hook_that_hangs,))),
    State("a tool whose processes ignore SIGTERM", (_CALL,), _all_processes(0), works=True),
    State("retry wait", (refuses(503, "", "retry-after: 60"),), _has_event(RetryScheduled)),
    State("compaction", (says("hello"), refuses(400, "context_length_exceeded"), SILENCE), first=True),
    State("a specialist's specialist: its tool runs", (*_HAND_ON, _CALL), _all_processes(2), works=True),
    State("a specialist's specialist: its model streams", (*_HAND_ON, breaks_off(_TEXT)), _has_event(ContentDelta, 2)),
)
