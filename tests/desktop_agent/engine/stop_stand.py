"""Bring a run into one of the states, stop it, and check everything that must be gone afterwards."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, Literal, Protocol

import psutil

from desktop_agent.api.client import Client
from desktop_agent.engine.session import Session
from desktop_agent.engine.session_controls import SessionSetup
from desktop_agent.engine.session_writer import SessionWriter
from desktop_agent.providers.provider import Provider, make_provider
from desktop_agent.providers.transport.http_client import HttpClient
from desktop_agent.storage.journal_queue import JournalQueue
from desktop_agent.storage.records import ConversationRecord
from desktop_agent.storage.store import Store
from desktop_agent.tools.tool import AnyTool, ToolRegistry
from desktop_agent.types.engine_events import Envelope, RunEnd, RunFinished
from desktop_agent.types.messages import Message
from desktop_agent.types.options import AgentOptions
from desktop_agent.types.permissions import Rule, RuleEffect
from desktop_agent.types.providers import ProviderConfig
from tests.desktop_agent.engine.stop_states import DEAF, INNER, OUTER, PROCESSES, State, begun, connections_to, pids_of
from tests.fakes.session import LIMIT, check_invariants, record
from tests.fakes.stopping_server import Server

Way = Literal["loop", "thread"]
WAYS: tuple[Way, ...] = ("loop", "thread")


async def until(true: Callable[[], object]) -> None:
    async with asyncio.timeout(LIMIT):
        while not true():
            await asyncio.sleep(0.001)


class Face(Protocol):
    """An API through which a run is started and stopped."""

    @property
    def history(self) -> tuple[Message, ...]: ...
    def begin(self, prompt: str) -> None: ...
    async def until_idle(self) -> None: ...
    def interrupt(self) -> None: ...


class BySession:
    """The engine's session, over a store on disk; Stop comes from the event loop."""

    def __init__(self, session: Session) -> None:
        self.session = session

    @property
    def history(self) -> tuple[Message, ...]:
        return self.session.history

    def begin(self, prompt: str) -> None:
        self.session.send(Message.user(prompt))

    async def until_idle(self) -> None:
        await self.session.wait_idle()

    def interrupt(self) -> None:
        self.session.interrupt()


class ByClient:
    """The library's client, which stores nothing; Stop comes from another thread."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._reading: asyncio.Task[Any] | None = None

    @property
    def history(self) -> tuple[Message, ...]:
        return self.client.history

    def begin(self, prompt: str) -> None:
        self._reading = asyncio.create_task(self.client.complete(prompt))

    async def until_idle(self) -> None:
        assert self._reading is not None
        await self._reading

    def interrupt(self) -> None:
        thread = threading.Thread(target=self.client.interrupt_handle().interrupt, name="presses Stop")
        thread.start()
        thread.join()


class RunRecording:
    """Records every event, and the moment at which the run ended."""

    def __init__(self) -> None:
        self.events: list[Envelope] = []
        self.ended_at = 0.0

    def add(self, envelope: Envelope) -> None:
        self.events.append(envelope)
        if isinstance(envelope.event, RunFinished) and envelope.parent_run_id is None:
            self.ended_at = perf_counter()

    def events_at(self, depth: int) -> list[Any]:
        """Return the events of the runs so deep below the first."""
        above = {envelope.run_id: envelope.parent_run_id for envelope in self.events}

        def depth_of(run_id: str | None) -> int:
            return -1 if run_id is None else 1 + depth_of(above[run_id])

        return [envelope.event for envelope in self.events if envelope.run_id and depth_of(envelope.run_id) == depth]


@asynccontextmanager
async def by_session(
    state: State, url: str, folder: Path, recording: RunRecording, tools: tuple[AnyTool, ...] = (DEAF,), **more: Any
) -> AsyncGenerator[BySession]:
    http = HttpClient()
    provider = make_provider("openai-chat", url, None, http)

    async def open_provider(_: ConversationRecord, __: str) -> Provider:
        return provider

    async def no_picture(_: object) -> bytes:
        raise AssertionError

    store = await Store.open(folder / "data")
    defaults: dict[str, Any] = {"specialists": lambda: (OUTER, INNER), **more}
    setup = SessionSetup(
        open_provider=open_provider,
        read_picture=no_picture,
        tools_for=lambda _: ToolRegistry(tools),
        config_for=lambda _: ProviderConfig(),
        store=store,
        rules=() if state.asks else tuple(Rule(effect=RuleEffect.ALLOW, tool=tool.identity) for tool in tools),
        hooks=state.hooks,
        **defaults,
    )
    session = Session(SessionWriter(JournalQueue(store, record(), is_new=True)), setup)
    session.subscribe(on_event=recording.add)
    try:
        yield BySession(session)
    finally:
        await session.close()
        await http.aclose()
        await store.close()


@asynccontextmanager
async def by_client(state: State, url: str, recording: RunRecording) -> AsyncGenerator[ByClient]:
    async def nobody(_: object) -> Any:
        await asyncio.Event().wait()

    options = AgentOptions(
        model="m",
        base_url=url,
        tools=(DEAF,),
        auto_execute_tools=True,
        rules=(Rule(effect=RuleEffect.ASK, tool=DEAF.identity),) if state.asks else (),
        approver=nobody,
        specialists=(OUTER, INNER),
        hooks=state.hooks,
    )
    async with Client(options, listener=recording.add) as client:
        yield ByClient(client)


def by(way: Way, state: State, url: str, folder: Path, recording: RunRecording) -> AbstractAsyncContextManager[Face]:
    return by_session(state, url, folder, recording) if way == "loop" else by_client(state, url, recording)


@dataclass(frozen=True)
class Stopped:
    """Seconds from Stop to RunFinished, and until nothing of the run was left."""

    to_the_end: float
    to_nothing_left: float


async def stopped(state: State, way: Way, folder: Path, *, times: int = 1) -> Stopped:
    """Bring a run into this state, stop it, check, and ask again. Raise AssertionError for whatever is wrong."""
    recording = RunRecording()
    async with (
        begun(state.place(), state.answers, folder) as (place, url),
        by(way, state, url, folder, recording) as face,
    ):
        if state.first:
            await _ask(face, "before")
            recording.events.clear()
        before = Before(port_of(url))
        face.begin("go")
        await until(lambda: place.is_reached() and state.reached(recording.events_at))
        pids = _pids(state, recording)
        pressed_at = perf_counter()
        await _press_stop(face, times)
        await until(lambda: recording.ended_at > pressed_at)
        async with asyncio.timeout(LIMIT):
            await face.until_idle()
        await before.until_gone(place.server)
        nothing_left = perf_counter() - pressed_at
        assert not [pid for pid in pids if _lives(pid)]
        _check(recording, face)
        measured = Stopped(recording.ended_at - pressed_at, nothing_left)
        await place.recover()
        await _ask(face, "and now?")
        assert face.history[-1].text == "fine"
        # Late events of the stopped run would have come by now.
        check_invariants(face.history, recording.events)
        return measured


async def _press_stop(face: Face, times: int) -> None:
    """Stop; the second time when the first has begun to take effect and a tool is in its grace period."""
    face.interrupt()
    for _ in range(times - 1):
        for _ in range(50):
            await asyncio.sleep(0)
        face.interrupt()


async def _ask(face: Face, prompt: str) -> None:
    async with asyncio.timeout(LIMIT):
        face.begin(prompt)
        await face.until_idle()


def _check(recording: RunRecording, face: Face) -> None:
    run = [envelope for envelope in recording.events if envelope.run_id]
    (root,) = {envelope.run_id for envelope in run if envelope.parent_run_id is None}
    ends = [envelope for envelope in run if envelope.run_id == root and isinstance(envelope.event, RunFinished)]
    assert [envelope.event for envelope in ends] == [RunFinished(RunEnd.CANCELLED)]
    assert run[-1] is ends[0]
    check_invariants(face.history, recording.events)


def _pids(state: State, recording: RunRecording) -> list[int]:
    pids = [pid for depth in range(3) for pid in pids_of(recording.events_at(depth))]
    assert len(pids) == (PROCESSES if state.works else 0)
    assert all(_lives(pid) for pid in pids)
    return pids


def _lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def port_of(url: str) -> int:
    return int(url.rsplit(":", 1)[1].partition("/")[0])


class Before:
    """The tasks, connections, threads and processes before the prompt; the loop's pool of threads may stay.

    `may_stay` are processes that no call started.
    """

    def __init__(self, port: int, may_stay: Callable[[], set[int]] = set) -> None:
        self._may_stay = may_stay
        self._port = port
        self._connections = {connection.laddr for connection in connections_to(port)}
        self._tasks = asyncio.all_tasks()
        self._threads = _threads()
        self._children = {process.pid for process in psutil.Process().children(recursive=True)}

    async def until_gone(self, server: Server) -> None:
        """Wait until nothing new is left. Raise AssertionError with what stays."""
        try:
            await until(lambda: not self._left(server))
        except TimeoutError:
            raise AssertionError(self._left(server)) from None

    def _left(self, server: Server) -> list[Any]:
        tasks = asyncio.all_tasks() - self._tasks - server.tasks
        connections = [
            connection for connection in connections_to(self._port) if connection.laddr not in self._connections
        ]
        threads = _threads() - self._threads
        children = {process.pid for process in psutil.Process().children(recursive=True)} - self._children
        children -= self._may_stay()
        return [*tasks, *connections, *threads, *children, *(["a connection of the server's"] * server.open)]


def _threads() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if not thread.name.startswith("asyncio_")}
