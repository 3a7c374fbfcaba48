"""Which servers of tools run, for which folder, and what they offer there."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from desktop_agent.engine.mcp.opening import Opening
from desktop_agent.engine.mcp.place import Running, is_same
from desktop_agent.engine.mcp.seen_tools import SeenTools
from desktop_agent.engine.mcp.told import Told
from desktop_agent.engine.mcp.trials import Trials
from desktop_agent.storage.ending import all_ended
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
# How long one waits to be asked again that changes its tools without end: twice as long each time; in seconds.
_ASK_AGAIN = 1.0
_ASK_AT_LAST = 60.0

Configured = Callable[[], tuple[McpServer, ...]]


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
        self._ending: set[asyncio.Task[Any]] = set()
        self._trials = Trials(self._made, self._refreshed, self._tell_state)

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
            if folder == workspace and is_same(on.get(server_id), running.live.server)
            for tool in running.offer.tools
        )

    def state(self, server_id: str, workspace: Path | None) -> ServerState:
        """How a server is for this folder. Nothing is started for it."""
        config, running = self._on().get(server_id), self._running.get((server_id, workspace))
        if config is None:
            known = self._known(server_id)
            return self._trials.state(known, workspace) if known is not None else ServerState(server_id, "off")
        if running is None or not is_same(config, running.live.server):
            return ServerState(server_id, "idle")
        live, offer, standing = running.live, running.offer, running.live.standing
        state, why, remedy = standing.state, standing.why, standing.remedy
        if running.trouble is not None and state in ("idle", "running"):
            state, why, remedy = "failed", running.trouble.sentence, running.trouble.remedy
        return ServerState(server_id, state, live.protocol, why, offer.listed, offer.left_out, remedy)

    def log(self, server_id: str, workspace: Path | None) -> tuple[LogLine, ...]:
        """What the server said beside its answers, oldest first."""
        running = self._running.get((server_id, workspace))
        return self._trials.log(server_id, workspace) if running is None else running.live.log.lines

    async def ready(self, workspace: Path | None, seconds: float = WAIT) -> None:
        """Wait until all servers that are on have said what they offer for this folder, but not for ever."""
        self.follow_settings()
        places = [self._place(config, workspace) for config in self._on().values()]
        tasks = {self._refreshed(running): running.live.server for running in places if _is_awaited(running)}
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=seconds)
            template = "The server “{server}” is still starting; its tools come when it is there."
            for task in late:
                self._tell(Sentence(template, {"server": tasks[task].title}))

    async def test(self, server_id: str, workspace: Path | None) -> ServerState:
        """Start it now, even if that failed just before, and ask it for its tools. What fails is in the state.

        One that is off is ended again, and nobody is offered its tools.
        """
        self.follow_settings()
        config, known = self._on().get(server_id), self._known(server_id)
        if config is None and known is not None:
            await self._trials.run(known, workspace)
        if config is not None:
            running = self._place(config, workspace)
            running.live.forgive()
            running.live.is_stale = True
            await asyncio.wait([self._refreshed(running)])
        return self.state(server_id, workspace)

    def follow_settings(self) -> None:
        """Put away what the person turned off, removed or connected otherwise; what else changed holds at once."""
        on = self._on()
        self._trials.forget(frozenset(on), frozenset(each.id for each in self._configured()))
        for (server_id, _), running in tuple(self._running.items()):
            config = on.get(server_id)
            if config is None or not is_same(config, running.live.server):
                self._put_away(server_id)
            elif config != running.live.server:
                running.live.server = config
                running.offer = running.offer.under(config)
                self._tell_state(server_id)

    async def close(self) -> None:
        """End all servers and all that they started."""
        running = list(self._running.values())
        self._running.clear()
        await all_ended(self._trials.close(), *(each.end() for each in running), *self._ending)

    def _on(self) -> dict[str, McpServer]:
        return {each.id: each for each in reversed(self._configured()) if each.on}

    def _known(self, server_id: str) -> McpServer | None:
        return next((each for each in self._configured() if each.id == server_id), None)

    def _place(self, config: McpServer, workspace: Path | None) -> Running:
        running = self._running.get((config.id, workspace))
        if running is None or not is_same(running.live.server, config):
            running = self._running[(config.id, workspace)] = self._made(config, workspace)
            running.live.on_change = partial(self._again, running)
        return running

    def _made(self, config: McpServer, workspace: Path | None) -> Running:
        opening = partial(self._opening.transport, config, workspace)
        setting = Setting(
            opening,
            workspace,
            self._people,
            partial(self._tell_log, config.id),
            self._tell_failure,
            self._opening.private_hosts,
        )
        running = Running(LiveServer(config, setting))
        running.live.on_state = partial(self._tell_state, config.id)
        running.live.on_contents = partial(self._tell_contents, config.id)
        return running

    def _refreshed(self, running: Running) -> asyncio.Task[None]:
        """The task that asks for what the server offers now; one at a time."""
        if running.is_resting and running.refreshing is not None:
            running.refreshing.cancel()
            running.is_resting = False
            running.refreshing = None
        if running.refreshing is None or running.refreshing.done():
            running.refreshing = asyncio.create_task(self._refresh(running))
        return running.refreshing

    def _again(self, running: Running) -> None:
        """It says that it offers something else: it is asked at once, and while it goes on, ever later."""
        if running.refreshing is not None and not running.refreshing.done():
            return
        if asyncio.get_running_loop().time() - running.asked > _ASK_AT_LAST:
            running.pause = 0.0
        wait, running.pause = running.pause, min(max(_ASK_AGAIN, 2 * running.pause), _ASK_AT_LAST)
        running.is_resting = wait > 0
        running.refreshing = asyncio.create_task(self._refresh(running, wait))

    async def _refresh(self, running: Running, after: float = 0.0) -> None:
        live = running.live
        if after:
            await asyncio.sleep(after)
        running.is_resting = False
        running.asked = asyncio.get_running_loop().time()
        try:
            offer = await offer_of(live)
        except AgentError as error:
            running.offer, running.trouble = Offer(), error
            self._tell_state(live.server.id)
            self._tell(error.sentence)
            return
        await self._notice(live.server, offer, running.offer)
        # What the person says may be another by now.
        running.offer, running.trouble = offer.under(live.server), None
        self._tell_state(live.server.id)
        if live.is_stale:
            # Whoever waits for this answer has it; a server may say without end that there is another one.
            running.refreshing = None
            running.pause = max(running.pause, _ASK_AGAIN)
            self._again(running)

    async def _notice(self, server: McpServer, offer: Offer, known: Offer) -> None:
        try:
            before = await self._seen.swap(server.id, dict(offer.digests))
        except StorageFailed as error:
            self._tell(error.sentence)
            before = dict(known.digests)
        for sentence, digest in changed_tools(server.title, before, offer):
            self._tell(sentence, digest)
        for sentence in (each for each in offer.left_out if each not in known.left_out):
            self._tell(sentence)

    def _folders_of(self, server_id: str) -> tuple[Path | None, ...]:
        """For which it is there; at least for none."""
        return tuple(folder for each, folder in self._running if each == server_id) or (None,)

    def _put_away(self, server_id: str) -> None:
        """In all folders; it is started anew when it is needed again."""
        for place in [each for each in self._running if each[0] == server_id]:
            self._later(self._running.pop(place).end())
        self._tell_state(server_id)

    def _later(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)


def _is_awaited(running: Running) -> bool:
    """Whether what it offers is not known yet; of one that changes on and on, what it said last is enough."""
    return running.live.is_stale and not running.is_resting
