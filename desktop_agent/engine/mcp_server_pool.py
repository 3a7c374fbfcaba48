"""The pool of running MCP servers, one of each for each folder: start, refresh, test, status, listeners."""

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from desktop_agent.engine.mcp_connections import ServerInstance, TransportFactory, has_same_connection
from desktop_agent.engine.mcp_tools import ToolDigestStore, ToolOffer, describe_changes, load_tool_offer
from desktop_agent.mcp.client import McpClient
from desktop_agent.mcp.lifecycle import ServerContext
from desktop_agent.processes.worker_threads import wait_for_all
from desktop_agent.tools.tool import AnyTool
from desktop_agent.types.errors import AgentError, Sentence, StorageFailed
from desktop_agent.types.mcp import McpLogLine, McpServer, McpServerState, ServerRequestHandlers

_TURN_ON_REMEDY = Sentence("Turn it on, then sign in.")


class ServerTrials:
    """What came of the last trial of each, for the settings. Nobody else is offered its tools.

    `make` makes a server, `ask` asks it for its tools, and `tell` is called with the id of one that was tried.
    """

    def __init__(
        self,
        make: Callable[[McpServer, Path | None], ServerInstance],
        ask: Callable[[ServerInstance], asyncio.Task[None]],
        tell: Callable[[str], None],
    ) -> None:
        self._make_instance = make
        self._refresh = ask
        self._notify = tell
        self._instances: dict[tuple[str, Path | None], ServerInstance] = {}
        self._under_way: dict[tuple[str, Path | None], tuple[asyncio.Task[None], ServerInstance]] = {}
        self._ending: dict[tuple[str, Path | None], asyncio.Task[None]] = {}

    async def run(self, config: McpServer, workspace: Path | None) -> None:
        """Start it, ask it for its tools, end it. One that is being tried is waited for."""
        place = (config.id, workspace)
        if place not in self._under_way:
            running = self._instances[place] = self._make_instance(config, workspace)
            # A task of its own: it comes to its end also when nobody waits for it any more.
            self._under_way[place] = asyncio.create_task(self._try(place, running)), running
        await asyncio.wait([self._under_way[place][0]])

    async def _try(self, place: tuple[str, Path | None], running: ServerInstance) -> None:
        try:
            await asyncio.wait([self._refresh(running)])
        finally:
            await running.close()
            del self._under_way[place]
            self._ending.pop(place, None)
            self._notify(place[0])

    def state(self, config: McpServer, workspace: Path | None) -> McpServerState:
        """Off, and what was seen when it was tried, as long as it is reached in the same way."""
        running = self._instances.get((config.id, workspace))
        if running is None or not has_same_connection(config, running.client.server):
            return McpServerState(config.id, "off")
        if (config.id, workspace) in self._under_way:
            return McpServerState(config.id, "starting")
        offer, failure = running.offer.with_settings(config), running.failure
        remedy = failure.remedy if failure is not None else None
        if running.client.status.state == "signed_out":
            remedy = _TURN_ON_REMEDY
        why = failure.sentence if failure is not None else None
        return McpServerState(config.id, "off", "", why, offer.listed, offer.unusable, remedy)

    def log(self, server_id: str, workspace: Path | None) -> tuple[McpLogLine, ...]:
        """What it said when it was tried."""
        running = self._instances.get((server_id, workspace))
        return () if running is None else running.client.log.lines

    def forget(self, on: frozenset[str], known: frozenset[str]) -> None:
        """Those that are on now, or gone; what still runs of them is ended."""
        for place in [each for each in self._instances if each[0] in on or each[0] not in known]:
            del self._instances[place]
            if place in self._under_way and place not in self._ending:
                self._ending[place] = asyncio.create_task(self._under_way[place][1].close())

    async def close(self) -> None:
        """End those that run."""
        under_way = tuple(self._under_way.values())
        await wait_for_all(*(running.close() for _, running in under_way))
        if under_way:
            await asyncio.wait([task for task, _ in under_way])


MAX_NOTICES = 100
# One that says without end that what it offers is another is passed on this often, in seconds.
_NOTIFY_INTERVAL = 1.0


class McpNotifier:
    """Listeners, and the notices that came so far."""

    def __init__(self) -> None:
        self.notices: list[Sentence] = []
        self._recent: deque[tuple[Sentence, str]] = deque(maxlen=MAX_NOTICES)
        self._notice_listeners: list[Callable[[Sentence], None]] = []
        self._failure_listeners: list[Callable[[Sentence], None]] = []
        self._state_listeners: list[Callable[[str], None]] = []
        self._catalog_listeners: list[Callable[[str], None]] = []
        self._pending_catalogs: dict[str, bool] = {}
        self._log_listeners: list[Callable[[str, McpLogLine], None]] = []

    def on_notice(self, listener: Callable[[Sentence], None]) -> None:
        """Be told what the person should know: a tool that changed, a server that cannot be started."""
        self._notice_listeners.append(listener)

    def on_failure(self, listener: Callable[[Sentence], None]) -> None:
        """Be told what failed that the person agreed to just now, each time."""
        self._failure_listeners.append(listener)

    def on_state(self, listener: Callable[[str], None]) -> None:
        """Be told the id of a server that is otherwise than before, in one folder or another."""
        self._state_listeners.append(listener)

    def on_catalog_changed(self, listener: Callable[[str], None]) -> None:
        """Be told the id of a server that says that its prompts or resources are others now."""
        self._catalog_listeners.append(listener)

    def on_log(self, listener: Callable[[str, McpLogLine], None]) -> None:
        """Be told each line of a server's log, with the server's id."""
        self._log_listeners.append(listener)

    def _notify(self, sentence: Sentence, about: str = "") -> None:
        """Once. `about` tells apart what reads alike: a tool that changes again is another one again."""
        if (sentence, about) in self._recent:
            return
        self._recent.append((sentence, about))
        self.notices = [*self.notices, sentence][-MAX_NOTICES:]
        for listener in tuple(self._notice_listeners):
            listener(sentence)

    def _notify_failure(self, sentence: Sentence) -> None:
        self.notices = [*self.notices, sentence][-MAX_NOTICES:]
        for listener in tuple(self._failure_listeners):
            listener(sentence)

    def _notify_state(self, server_id: str) -> None:
        for listener in tuple(self._state_listeners):
            listener(server_id)

    def _notify_catalog(self, server_id: str) -> None:
        if server_id in self._pending_catalogs:
            self._pending_catalogs[server_id] = True
            return
        self._pending_catalogs[server_id] = False
        asyncio.get_running_loop().call_later(_NOTIFY_INTERVAL, self._on_interval_over, server_id)
        for listener in tuple(self._catalog_listeners):
            listener(server_id)

    def _on_interval_over(self, server_id: str) -> None:
        if self._pending_catalogs.pop(server_id):
            self._notify_catalog(server_id)

    def _notify_log(self, server_id: str, line: McpLogLine) -> None:
        for listener in tuple(self._log_listeners):
            listener(server_id, line)


# How long a run waits for servers that start, in seconds; those that take longer come a turn later.
READY_TIMEOUT = 15.0
# How long one waits to be asked again that changes its tools without end: twice as long each time; in seconds.
_FIRST_REFRESH_PAUSE = 1.0
_MAX_REFRESH_PAUSE = 60.0

ConfiguredServers = Callable[[], tuple[McpServer, ...]]


class McpServerPool(McpNotifier):
    """One of each server for each folder in which it is needed."""

    def __init__(
        self,
        configured: ConfiguredServers,
        opening: TransportFactory,
        seen: ToolDigestStore,
        people: Callable[[], ServerRequestHandlers],
    ) -> None:
        super().__init__()
        self._configured = configured
        self._transports = opening
        self._digests = seen
        self._handlers = people
        self._running: dict[tuple[str, Path | None], ServerInstance] = {}
        self._ending: set[asyncio.Task[Any]] = set()
        self._trials = ServerTrials(self._make_instance, self._refresh_task, self._notify_state)

    def server(self, server_id: str, workspace: Path | None) -> McpClient | None:
        """The server for this folder, started when it is first asked; None for an unknown one, or one that is off."""
        config = self._enabled().get(server_id)
        return None if config is None else self._instance(config, workspace).client

    def tools(self, workspace: Path | None) -> tuple[AnyTool, ...]:
        """What the servers that are on have on offer for this folder, as far as is known by now."""
        on = self._enabled()
        return tuple(
            tool
            for (server_id, folder), running in self._running.items()
            if folder == workspace and has_same_connection(on.get(server_id), running.client.server)
            for tool in running.offer.tools
        )

    def state(self, server_id: str, workspace: Path | None) -> McpServerState:
        """How a server is for this folder. Nothing is started for it."""
        config, running = self._enabled().get(server_id), self._running.get((server_id, workspace))
        if config is None:
            known = self._find(server_id)
            return self._trials.state(known, workspace) if known is not None else McpServerState(server_id, "off")
        if running is None or not has_same_connection(config, running.client.server):
            return McpServerState(server_id, "idle")
        live, offer, standing = running.client, running.offer, running.client.status
        state, why, remedy = standing.state, standing.reason, standing.remedy
        if running.failure is not None and state in ("idle", "running"):
            state, why, remedy = "failed", running.failure.sentence, running.failure.remedy
        return McpServerState(server_id, state, live.protocol, why, offer.listed, offer.unusable, remedy)

    def log(self, server_id: str, workspace: Path | None) -> tuple[McpLogLine, ...]:
        """What the server said beside its answers, oldest first."""
        running = self._running.get((server_id, workspace))
        return self._trials.log(server_id, workspace) if running is None else running.client.log.lines

    async def ready(self, workspace: Path | None, seconds: float = READY_TIMEOUT) -> None:
        """Wait until all servers that are on have said what they offer for this folder, but not for ever."""
        self.apply_settings()
        places = [self._instance(config, workspace) for config in self._enabled().values()]
        tasks = {self._refresh_task(running): running.client.server for running in places if _needs_refresh(running)}
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=seconds)
            template = "The server “{server}” is still starting; its tools come when it is there."
            for task in late:
                self._notify(Sentence(template, {"server": tasks[task].title}))

    async def test(self, server_id: str, workspace: Path | None) -> McpServerState:
        """Start it now, even if that failed just before, and ask it for its tools. What fails is in the state.

        One that is off is ended again, and nobody is offered its tools.
        """
        self.apply_settings()
        config, known = self._enabled().get(server_id), self._find(server_id)
        if config is None and known is not None:
            await self._trials.run(known, workspace)
        if config is not None:
            running = self._instance(config, workspace)
            running.client.reset_backoff()
            running.client.is_stale = True
            await asyncio.wait([self._refresh_task(running)])
        return self.state(server_id, workspace)

    def apply_settings(self) -> None:
        """Put away what the person turned off, removed or connected otherwise; what else changed holds at once."""
        on = self._enabled()
        self._trials.forget(frozenset(on), frozenset(each.id for each in self._configured()))
        for (server_id, _), running in tuple(self._running.items()):
            config = on.get(server_id)
            if config is None or not has_same_connection(config, running.client.server):
                self._close_instances(server_id)
            elif config != running.client.server:
                running.client.server = config
                running.offer = running.offer.with_settings(config)
                self._notify_state(server_id)

    async def close(self) -> None:
        """End all servers and all that they started."""
        running = list(self._running.values())
        self._running.clear()
        await wait_for_all(self._trials.close(), *(each.close() for each in running), *self._ending)

    def _enabled(self) -> dict[str, McpServer]:
        return {each.id: each for each in reversed(self._configured()) if each.on}

    def _find(self, server_id: str) -> McpServer | None:
        return next((each for each in self._configured() if each.id == server_id), None)

    def _instance(self, config: McpServer, workspace: Path | None) -> ServerInstance:
        running = self._running.get((config.id, workspace))
        if running is None or not has_same_connection(running.client.server, config):
            running = self._running[(config.id, workspace)] = self._make_instance(config, workspace)
            running.client.on_tools_changed = partial(self._schedule_refresh, running)
        return running

    def _make_instance(self, config: McpServer, workspace: Path | None) -> ServerInstance:
        opening = partial(self._transports.transport, config, workspace)
        setting = ServerContext(
            opening,
            workspace,
            self._handlers,
            partial(self._notify_log, config.id),
            self._notify_failure,
            self._transports.private_hosts,
        )
        running = ServerInstance(McpClient(config, setting))
        running.client.on_state = partial(self._notify_state, config.id)
        running.client.on_catalog_changed = partial(self._notify_catalog, config.id)
        return running

    def _refresh_task(self, running: ServerInstance) -> asyncio.Task[None]:
        """The task that asks for what the server offers now; one at a time."""
        if running.is_paused and running.refresh_task is not None:
            running.refresh_task.cancel()
            running.is_paused = False
            running.refresh_task = None
        if running.refresh_task is None or running.refresh_task.done():
            running.refresh_task = asyncio.create_task(self._refresh(running))
        return running.refresh_task

    def _schedule_refresh(self, running: ServerInstance) -> None:
        """It says that it offers something else: it is asked at once, and while it goes on, ever later."""
        if running.refresh_task is not None and not running.refresh_task.done():
            return
        if asyncio.get_running_loop().time() - running.refreshed_at > _MAX_REFRESH_PAUSE:
            running.next_pause = 0.0
        wait, running.next_pause = (
            running.next_pause,
            min(max(_FIRST_REFRESH_PAUSE, 2 * running.next_pause), _MAX_REFRESH_PAUSE),
        )
        running.is_paused = wait > 0
        running.refresh_task = asyncio.create_task(self._refresh(running, wait))

    async def _refresh(self, running: ServerInstance, after: float = 0.0) -> None:
        live = running.client
        if after:
            await asyncio.sleep(after)
        running.is_paused = False
        running.refreshed_at = asyncio.get_running_loop().time()
        try:
            offer = await load_tool_offer(live)
        except AgentError as error:
            running.offer, running.failure = ToolOffer(), error
            self._notify_state(live.server.id)
            self._notify(error.sentence)
            return
        await self._report_changes(live.server, offer, running.offer)
        # What the person says may be another by now.
        running.offer, running.failure = offer.with_settings(live.server), None
        self._notify_state(live.server.id)
        if live.is_stale:
            # Whoever waits for this answer has it; a server may say without end that there is another one.
            running.refresh_task = None
            running.next_pause = max(running.next_pause, _FIRST_REFRESH_PAUSE)
            self._schedule_refresh(running)

    async def _report_changes(self, server: McpServer, offer: ToolOffer, known: ToolOffer) -> None:
        try:
            before = await self._digests.exchange(server.id, dict(offer.digests))
        except StorageFailed as error:
            self._notify(error.sentence)
            before = dict(known.digests)
        for sentence, digest in describe_changes(server.title, before, offer):
            self._notify(sentence, digest)
        for sentence in (each for each in offer.unusable if each not in known.unusable):
            self._notify(sentence)

    def _folders_of(self, server_id: str) -> tuple[Path | None, ...]:
        """For which it is there; at least for none."""
        return tuple(folder for each, folder in self._running if each == server_id) or (None,)

    def _close_instances(self, server_id: str) -> None:
        """In all folders; it is started anew when it is needed again."""
        for place in [each for each in self._running if each[0] == server_id]:
            self._run_in_background(self._running.pop(place).close())
        self._notify_state(server_id)

    def _run_in_background(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)


def _needs_refresh(running: ServerInstance) -> bool:
    """Whether what it offers is not known yet; of one that changes on and on, what it said last is enough."""
    return running.client.is_stale and not running.is_paused
