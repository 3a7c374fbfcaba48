"""Somebody at work in one of the states, Stop, and a look at everything that must be gone afterwards."""

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
    """A way in."""

    @property
    def history(self) -> tuple[Message, ...]: ...
    def begin(self, prompt: str) -> None: ...
    async def until_idle(self) -> None: ...
    def interrupt(self) -> None: ...


class BySession:
    """The engine's own, over a store on the disk; Stop comes from the loop."""

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
    """The library's, which keeps nothing; Stop comes from another thread."""

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


class Stand:
    """Hears every event, and when the end came."""

    def __init__(self) -> None:
        self.events: list[Envelope] = []
        self.ended_at = 0.0

    def hear(self, envelope: Envelope) -> None:
        self.events.append(envelope)
        if isinstance(envelope.event, RunFinished) and envelope.parent_run_id is None:
            self.ended_at = perf_counter()

    def told(self, depth: int) -> list[Any]:
        """What runs so deep below the first said."""
        above = {each.run_id: each.parent_run_id for each in self.events}

        def depth_of(run_id: str | None) -> int:
            return -1 if run_id is None else 1 + depth_of(above[run_id])

        return [each.event for each in self.events if each.run_id and depth_of(each.run_id) == depth]


@asynccontextmanager
async def by_session(
    state: State, url: str, folder: Path, stand: Stand, tools: tuple[AnyTool, ...] = (DEAF,), **more: Any
) -> AsyncGenerator[BySession]:
    http = HttpClient()
    provider = make_provider("openai-chat", url, None, http)

    async def open_provider(_: ConversationRecord, __: str) -> Provider:
        return provider

    async def no_picture(_: object) -> bytes:
        raise AssertionError

    store = await Store.open(folder / "data")
    given: dict[str, Any] = {"specialists": lambda: (OUTER, INNER), **more}
    setup = SessionSetup(
        open_provider=open_provider,
        read_picture=no_picture,
        tools_for=lambda _: ToolRegistry(tools),
        config_for=lambda _: ProviderConfig(),
        store=store,
        rules=() if state.asks else tuple(Rule(effect=RuleEffect.ALLOW, tool=each.identity) for each in tools),
        hooks=state.hooks,
        **given,
    )
    session = Session(SessionWriter(JournalQueue(store, record(), is_new=True)), setup)
    session.subscribe(on_event=stand.hear)
    try:
        yield BySession(session)
    finally:
        await session.close()
        await http.aclose()
        await store.close()


@asynccontextmanager
async def by_client(state: State, url: str, stand: Stand) -> AsyncGenerator[ByClient]:
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
    async with Client(options, listener=stand.hear) as client:
        yield ByClient(client)


def by(way: Way, state: State, url: str, folder: Path, stand: Stand) -> AbstractAsyncContextManager[Face]:
    return by_session(state, url, folder, stand) if way == "loop" else by_client(state, url, stand)


@dataclass(frozen=True)
class Stopped:
    """What was measured: seconds from Stop to RunFinished, and until nothing was left of it."""

    to_the_end: float
    to_nothing_left: float


async def stopped(state: State, way: Way, folder: Path, *, times: int = 1) -> Stopped:
    """Bring somebody into this state, stop, look, and ask again. Raises AssertionError for whatever is wrong."""
    stand = Stand()
    async with (
        begun(state.place(), state.answers, folder) as (place, url),
        by(way, state, url, folder, stand) as face,
    ):
        if state.first:
            await _asked(face, "before")
            stand.events.clear()
        before = Before(port_of(url))
        face.begin("go")
        await until(lambda: place.is_reached() and state.reached(stand.told))
        pids = _pids(state, stand)
        pressed_at = perf_counter()
        await _press(face, times)
        await until(lambda: stand.ended_at > pressed_at)
        async with asyncio.timeout(LIMIT):
            await face.until_idle()
        await before.until_gone(place.server)
        nothing_left = perf_counter() - pressed_at
        assert not [pid for pid in pids if _lives(pid)]
        _check(stand, face)
        measured = Stopped(stand.ended_at - pressed_at, nothing_left)
        await place.recover()
        await _asked(face, "and now?")
        assert face.history[-1].text == "fine"
        # Whatever the run before still had to say would have come by now.
        check_invariants(face.history, stand.events)
        return measured


async def _press(face: Face, times: int) -> None:
    """The second time when the first has begun to take effect: a tool is in its grace then."""
    face.interrupt()
    for _ in range(times - 1):
        for _ in range(50):
            await asyncio.sleep(0)
        face.interrupt()


async def _asked(face: Face, prompt: str) -> None:
    async with asyncio.timeout(LIMIT):
        face.begin(prompt)
        await face.until_idle()


def _check(stand: Stand, face: Face) -> None:
    run = [each for each in stand.events if each.run_id]
    (root,) = {each.run_id for each in run if each.parent_run_id is None}
    ends = [each for each in run if each.run_id == root and isinstance(each.event, RunFinished)]
    assert [each.event for each in ends] == [RunFinished(RunEnd.CANCELLED)]
    assert run[-1] is ends[0]
    check_invariants(face.history, stand.events)


def _pids(state: State, stand: Stand) -> list[int]:
    pids = [pid for depth in range(3) for pid in pids_of(stand.told(depth))]
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
    """What was there before the prompt; the loop's pool of threads stays, and so does a lookup that hangs in it.

    `may_stay` are processes that no call started.
    """

    def __init__(self, port: int, may_stay: Callable[[], set[int]] = set) -> None:
        self._may_stay = may_stay
        self._port = port
        self._connections = {each.laddr for each in connections_to(port)}
        self._tasks = asyncio.all_tasks()
        self._threads = _threads()
        self._children = {each.pid for each in psutil.Process().children(recursive=True)}

    async def until_gone(self, server: Server) -> None:
        """Raises AssertionError with what does not go."""
        try:
            await until(lambda: not self._left(server))
        except TimeoutError:
            raise AssertionError(self._left(server)) from None

    def _left(self, server: Server) -> list[Any]:
        tasks = asyncio.all_tasks() - self._tasks - server.tasks
        connections = [each for each in connections_to(self._port) if each.laddr not in self._connections]
        threads = _threads() - self._threads
        children = {each.pid for each in psutil.Process().children(recursive=True)} - self._children
        children -= self._may_stay()
        return [*tasks, *connections, *threads, *children, *(["a connection of the server's"] * server.open)]


def _threads() -> set[threading.Thread]:
    return {each for each in threading.enumerate() if not each.name.startswith("asyncio_")}
