"""Running MCP servers: an instance with its tools, kept up to date; trials for the settings; listeners."""

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path

from desktop_agent.engine.mcp_tools import ToolDigestStore, ToolOffer, describe_changes, load_tool_offer
from desktop_agent.mcp.client import McpClient
from desktop_agent.mcp.lifecycle import ServerContext
from desktop_agent.processes.listeners import Listeners
from desktop_agent.types.errors import AgentError, Sentence
from desktop_agent.types.mcp import McpLogLine, McpServer, McpServerState

MAX_NOTICES = 100
# Seconds between two notifications where a server says without end that its catalog changed.
_NOTIFY_INTERVAL = 1.0
# Seconds before a server that changes its tools without end is asked again: twice as long each time.
_FIRST_REFRESH_PAUSE = 1.0
_MAX_REFRESH_PAUSE = 60.0
_TURN_ON_REMEDY = Sentence("Turn it on, then sign in.")


class McpNotifier:
    """Listeners for events of MCP servers, and the newest notices, oldest first.

    Listeners of `state` and `catalog` get the id of a server, in any folder; those of `log` the id and a line.
    """

    def __init__(self) -> None:
        self.notices: list[Sentence] = []
        self.notice = Listeners[[Sentence]]()
        self.failure = Listeners[[Sentence]]()
        self.outdated = Listeners[[Sentence]]()
        self.state = Listeners[[str]]()
        self.catalog = Listeners[[str]]()
        self.log = Listeners[[str, McpLogLine]]()
        self._recent: deque[tuple[Sentence, str]] = deque(maxlen=MAX_NOTICES)
        self._pending_catalogs: dict[str, bool] = {}

    def notify(self, sentence: Sentence, digest: str = "") -> None:
        """Pass on a notice, once. `digest` tells apart equal sentences about a tool that changes again."""
        if (sentence, digest) not in self._recent:
            self._recent.append((sentence, digest))
            self._add_notice(sentence, self.notice)

    def notify_failure(self, sentence: Sentence) -> None:
        """Pass on a failure, also one that was passed on before."""
        self._add_notice(sentence, self.failure)

    def withdraw(self, sentence: Sentence) -> None:
        """Pass on that a notice is not true any more. The same notice may come again."""
        self._recent = deque((recent for recent in self._recent if recent[0] != sentence), MAX_NOTICES)
        self.notices = [notice for notice in self.notices if notice != sentence]
        self.outdated.notify(sentence)

    def notify_catalog(self, server_id: str) -> None:
        """Pass on that a server's catalog changed, at most once in each interval."""
        if server_id in self._pending_catalogs:
            self._pending_catalogs[server_id] = True
            return
        self._pending_catalogs[server_id] = False
        asyncio.get_running_loop().call_later(_NOTIFY_INTERVAL, self._on_interval_over, server_id)
        self.catalog.notify(server_id)

    def _on_interval_over(self, server_id: str) -> None:
        if self._pending_catalogs.pop(server_id):
            self.notify_catalog(server_id)

    def _add_notice(self, sentence: Sentence, listeners: Listeners[[Sentence]]) -> None:
        self.notices = [*self.notices, sentence][-MAX_NOTICES:]
        listeners.notify(sentence)


class ServerInstance:
    """One server for one folder, and the tools that it offers; a refresh asks it for them again."""

    def __init__(
        self, server: McpServer, context: ServerContext, digests: ToolDigestStore, notifier: McpNotifier
    ) -> None:
        self.client = McpClient(server, context)
        self.lifecycle = self.client.lifecycle
        self.lifecycle.on_state = partial(notifier.state.notify, server.id)
        self.lifecycle.on_catalog_changed = partial(notifier.notify_catalog, server.id)
        self.offer = ToolOffer()
        self.failure: AgentError | None = None
        """Why the last refresh failed."""
        self._digests = digests
        self._notifier = notifier
        self._task: asyncio.Task[None] | None = None
        self._is_paused = False
        self._next_pause = 0.0
        self._refreshed_at = 0.0

    @property
    def needs_refresh(self) -> bool:
        """Whether its tools are not known yet. Of a server that changes without end, the last answer is enough."""
        is_first = not self.offer.listed and self._task is not None and not self._task.done()
        return (self.lifecycle.is_stale or is_first) and not self._is_paused

    def apply_settings(self, server: McpServer) -> None:
        """Apply settings with the same connection."""
        self.lifecycle.server = server
        self.offer = self.offer.with_settings(server)

    def refresh(self) -> asyncio.Task[None]:
        """Return the task that asks the server for its tools; there is one at a time."""
        if self._is_paused and self._task is not None:
            self._task.cancel()
            self._is_paused = False
            self._task = None
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._refresh())
        return self._task

    def schedule_refresh(self) -> None:
        """Refresh because the server says that its tools changed: at once, and ever later while it goes on."""
        if self._task is not None and not self._task.done():
            return
        if asyncio.get_running_loop().time() - self._refreshed_at > _MAX_REFRESH_PAUSE:
            self._next_pause = 0.0
        pause = self._next_pause
        self._next_pause = min(max(_FIRST_REFRESH_PAUSE, 2 * pause), _MAX_REFRESH_PAUSE)
        self._is_paused = pause > 0
        self._task = asyncio.create_task(self._refresh(pause))

    async def close(self) -> None:
        """End the server and everything that it started."""
        # Listeners that ask for the state of this server would get that of its successor.
        self.lifecycle.on_state = self.lifecycle.on_tools_changed = self.lifecycle.on_catalog_changed = lambda: None
        if self._task is not None:
            self._task.cancel()
        await self.lifecycle.close()
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _refresh(self, pause: float = 0.0) -> None:
        client = self.client
        if pause:
            await asyncio.sleep(pause)
        self._is_paused = False
        self._refreshed_at = asyncio.get_running_loop().time()
        try:
            offer = await load_tool_offer(client)
        except AgentError as error:
            self.offer, self.failure = ToolOffer(), error
            self._notifier.state.notify(client.lifecycle.server.id)
            self._notifier.notify(error.sentence)
            return
        await self._report_changes(offer)
        # The settings may have changed meanwhile.
        self.offer, self.failure = offer.with_settings(client.lifecycle.server), None
        self._notifier.state.notify(client.lifecycle.server.id)
        if client.lifecycle.is_stale:
            # Callers that wait for this answer have it; a server may announce further changes without end.
            self._task = None
            self._next_pause = max(self._next_pause, _FIRST_REFRESH_PAUSE)
            self.schedule_refresh()

    async def _report_changes(self, offer: ToolOffer) -> None:
        server, known = self.lifecycle.server, self.offer
        before, refusal = await self._digests.exchange(server.id, dict(offer.digests))
        if refusal is not None:
            self._notifier.notify(refusal.sentence)
        for sentence, digest in describe_changes(server.title, before, offer):
            self._notifier.notify(sentence, digest)
        for sentence in offer.unusable:
            if sentence not in known.unusable:
                self._notifier.notify(sentence)


class ServerTrials:
    """The last trial of each server from the settings; its tools are offered to nobody.

    `make_instance` makes a server; `notify_state` is called with the id of a server whose trial ended.
    """

    def __init__(
        self, make_instance: Callable[[McpServer, Path | None], ServerInstance], notify_state: Callable[[str], None]
    ) -> None:
        self._make_instance = make_instance
        self._notify_state = notify_state
        self._trials: dict[tuple[str, Path | None], tuple[ServerInstance, asyncio.Task[None]]] = {}
        self._ending: set[asyncio.Task[None]] = set()

    async def run(self, server: McpServer, workspace: Path | None) -> None:
        """Start a server, ask for its tools, end it. Wait for a trial of it that goes on already."""
        key = (server.id, workspace)
        if key not in self._trials or self._trials[key][1].done():
            instance = self._make_instance(server, workspace)
            # A task of its own: it ends also when nobody waits for it any more.
            task = asyncio.create_task(self._run(instance))
            task.add_done_callback(lambda _: self._notify_state(server.id))
            self._trials[key] = instance, task
        await asyncio.wait([self._trials[key][1]])

    async def _run(self, instance: ServerInstance) -> None:
        try:
            await asyncio.wait([instance.refresh()])
        finally:
            await instance.close()

    def state(self, server: McpServer, workspace: Path | None) -> McpServerState:
        """Return the state "off", with what a trial over the same connection found."""
        instance, task = self._trials.get((server.id, workspace), (None, None))
        if instance is None or task is None or not instance.lifecycle.server.has_same_connection(server):
            return McpServerState(server.id, "off")
        if not task.done():
            return McpServerState(server.id, "starting")
        offer, failure = instance.offer.with_settings(server), instance.failure
        reason, remedy = (failure.sentence, failure.remedy) if failure is not None else (None, None)
        if instance.lifecycle.state.state == "signed_out":
            remedy = _TURN_ON_REMEDY
        return McpServerState(server.id, "off", "", reason, offer.listed, offer.unusable, remedy)

    def log(self, server_id: str, workspace: Path | None) -> tuple[McpLogLine, ...]:
        """Return the log of the last trial."""
        trial = self._trials.get((server_id, workspace))
        return () if trial is None else trial[0].client.log.lines

    def forget(self, enabled: frozenset[str], known: frozenset[str]) -> None:
        """Forget the trials of servers that are on now, or not known any more; end those that go on."""
        for key in [key for key in self._trials if key[0] in enabled or key[0] not in known]:
            instance, task = self._trials.pop(key)
            for ending in () if task.done() else (task, asyncio.create_task(instance.close())):
                self._ending.add(ending)
                ending.add_done_callback(self._ending.discard)

    async def close(self) -> None:
        """End the trials that go on."""
        self.forget(frozenset(), frozenset())
        if self._ending:
            await asyncio.wait(self._ending)
