"""Which servers of tools run, for which folder, and what they offer there."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from desktop_agent.engine.mcp.opening import Opening
from desktop_agent.engine.mcp.seen_tools import SeenTools
from desktop_agent.engine.mcp.told import Told
from desktop_agent.tools.mcp.offering.tools import Offer, changed_tools, offer_of
from desktop_agent.tools.mcp.server import LiveServer
from desktop_agent.tools.mcp.upkeep import Setting
from desktop_agent.tools.tool import AnyTool
from desktop_agent.vocabulary.errors import AgentError, Sentence, StorageFailed
from desktop_agent.vocabulary.mcp.asking import Answerers
from desktop_agent.vocabulary.mcp.log import LogLine
from desktop_agent.vocabulary.mcp.servers import McpServer
from desktop_agent.vocabulary.mcp.states import ServerState

# How long a run waits for servers that start, in seconds; those that take longer come a turn later.
WAIT = 15.0
# One that says without end that its tools are others is asked this often, in seconds.
_ASK_EVERY = 1.0

Configured = Callable[[], tuple[McpServer, ...]]


@dataclass
class Running:
    """A server in one folder. `trouble`: why it did not say what it offers."""

    live: LiveServer
    offer: Offer = field(default_factory=Offer)
    refreshing: asyncio.Task[None] | None = None
    trouble: Sentence | None = None


class RunningServers(Told):
    """One of each server for each folder in which it is needed."""

    def __init__(
        self, configured: Configured, opening: Opening, seen: SeenTools, people: Callable[[], Answerers]
    ) -> None:
        super().__init__()
        self._configured = configured
        self._opening = opening
        self._seen = seen
        self._people = people
        self._running: dict[tuple[str, Path | None], Running] = {}
        self._ending: set[asyncio.Task[None]] = set()

    def server(self, server_id: str, workspace: Path | None) -> LiveServer | None:
        """The server for this folder, started when it is first asked; None for an unknown one, or one that is off."""
        config = self._on().get(server_id)
        return None if config is None else self._place(config, workspace).live

    def tools(self, workspace: Path | None) -> tuple[AnyTool, ...]:
        """What the servers that are on have on offer for this folder, as far as is known by now."""
        on = self._on()
        return tuple(
            tool
            for (server_id, folder), running in self._running.items()
            if folder == workspace and _is_same(on.get(server_id), running.live.server)
            for tool in running.offer.tools
        )

    def state(self, server_id: str, workspace: Path | None) -> ServerState:
        """How a server is for this folder. Nothing is started for it."""
        config, running = self._on().get(server_id), self._running.get((server_id, workspace))
        if config is None:
            return ServerState(server_id, "off")
        if running is None or not _is_same(config, running.live.server):
            return ServerState(server_id, "idle")
        live, offer, standing = running.live, running.offer, running.live.standing
        state, why = standing.state, standing.why
        if running.trouble is not None and state in ("idle", "running"):
            state, why = "failed", running.trouble
        return ServerState(server_id, state, live.protocol, why, offer.listed, offer.left_out)

    def log(self, server_id: str, workspace: Path | None) -> tuple[LogLine, ...]:
        """What the server said beside its answers, oldest first."""
        running = self._running.get((server_id, workspace))
        return () if running is None else running.live.log.lines

    async def ready(self, workspace: Path | None, seconds: float = WAIT) -> None:
        """Wait until all servers that are on have said what they offer for this folder, but not for ever."""
        self.follow_settings()
        places = [self._place(config, workspace) for config in self._on().values()]
        tasks = [self._refreshed(running) for running in places if running.live.is_stale]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)

    async def test(self, server_id: str, workspace: Path | None) -> ServerState:
        """Start it now, even if that failed just before, and ask it for its tools. What fails is in the state."""
        self.follow_settings()
        config = self._on().get(server_id)
        if config is not None:
            running = self._place(config, workspace)
            running.live.forgive()
            running.live.is_stale = True
            await asyncio.wait([self._refreshed(running)])
        return self.state(server_id, workspace)

    def follow_settings(self) -> None:
        """Put away what the person turned off, removed or connected otherwise; what else changed holds at once."""
        on = self._on()
        for (server_id, _), running in tuple(self._running.items()):
            config = on.get(server_id)
            if config is None or not _is_same(config, running.live.server):
                self._put_away(server_id)
            elif config != running.live.server:
                running.live.server = config
                running.offer = running.offer.under(config)
                self._tell_state(server_id)

    async def close(self) -> None:
        """End all servers and all that they started."""
        running = list(self._running.values())
        self._running.clear()
        await asyncio.gather(*(_ended(each) for each in running), *self._ending)

    def _on(self) -> dict[str, McpServer]:
        return {each.id: each for each in reversed(self._configured()) if each.on}

    def _place(self, config: McpServer, workspace: Path | None) -> Running:
        running = self._running.get((config.id, workspace))
        if running is None or not _is_same(running.live.server, config):
            opening = partial(self._opening.transport, config, workspace)
            setting = Setting(opening, workspace, self._people(), partial(self._tell_log, config.id))
            running = Running(LiveServer(config, setting))
            running.live.on_change = partial(self._refreshed, running)
            running.live.on_state = partial(self._tell_state, config.id)
            self._running[(config.id, workspace)] = running
        return running

    def _refreshed(self, running: Running) -> asyncio.Task[None]:
        """The task that asks for what the server offers now; one at a time."""
        if running.refreshing is None or running.refreshing.done():
            running.refreshing = asyncio.create_task(self._refresh(running))
        return running.refreshing

    async def _refresh(self, running: Running, after: float = 0.0) -> None:
        live = running.live
        await asyncio.sleep(after)
        try:
            offer = await offer_of(live)
        except AgentError as error:
            running.offer, running.trouble = Offer(), error.sentence
            self._tell_state(live.server.id)
            self._tell(error.sentence)
            return
        await self._notice(live.server, offer, running.offer)
        # What the person says may be another by now.
        running.offer, running.trouble = offer.under(live.server), None
        self._tell_state(live.server.id)
        if live.is_stale:
            # Whoever waits for this answer has it; a server may say without end that there is another one.
            running.refreshing = asyncio.create_task(self._refresh(running, _ASK_EVERY))

    async def _notice(self, server: McpServer, offer: Offer, known: Offer) -> None:
        try:
            before = await self._seen.swap(server.id, dict(offer.digests))
        except StorageFailed as error:
            self._tell(error.sentence)
            before = dict(known.digests)
        told = changed_tools(server.title, before, offer.digests)
        for sentence in (*told, *(each for each in offer.left_out if each not in known.left_out)):
            self._tell(sentence)

    def _folders_of(self, server_id: str) -> tuple[Path | None, ...]:
        """For which it is there; at least for none."""
        return tuple(folder for each, folder in self._running if each == server_id) or (None,)

    def _put_away(self, server_id: str) -> None:
        """In all folders; it is started anew when it is needed again."""
        for place in [each for each in self._running if each[0] == server_id]:
            self._later(_ended(self._running.pop(place)))
        self._tell_state(server_id)

    def _later(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)


async def _ended(running: Running) -> None:
    # Whoever listens asks for the server that took its place.
    running.live.on_state = running.live.on_change = lambda: None
    if running.refreshing is not None:
        running.refreshing.cancel()
    await running.live.close()
    if running.refreshing is not None:
        await asyncio.wait([running.refreshing])


def _is_same(one: McpServer | None, other: McpServer) -> bool:
    """Whether it can go on running: all else than the connection may change meanwhile."""
    return one is not None and one.connection == other.connection
