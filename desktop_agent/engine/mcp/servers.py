"""Which servers of tools there are, for which folder they run, and what they offer there."""

import asyncio
import logging
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from desktop_agent.engine.mcp.seen_tools import SeenTools
from desktop_agent.storage.secrets import SecretStore
from desktop_agent.tools.mcp.importing import Imported
from desktop_agent.tools.mcp.server import LiveServer
from desktop_agent.tools.mcp.server_log import ServerLog
from desktop_agent.tools.mcp.stdio import Command, stdio_streams
from desktop_agent.tools.mcp.tools import Offer, changed_tools, offer_of
from desktop_agent.tools.mcp.upkeep import Setting, Transport
from desktop_agent.tools.mcp.web import http_streams
from desktop_agent.tools.tool import AnyTool
from desktop_agent.vocabulary.errors import AgentError, Sentence, StorageFailed, ToolFailed
from desktop_agent.vocabulary.mcp.asking import People
from desktop_agent.vocabulary.mcp.servers import McpServer, StdioConnection

_log = logging.getLogger(__name__)

# How long a run waits for servers that start, in seconds; those that take longer come a turn later.
WAIT = 15.0
MOST_NOTICES = 100
# One that says without end that its tools are others is asked this often, in seconds.
_ASK_EVERY = 1.0
_PASSED = frozenset(
    {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR"}
    | {"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "APPDATA", "LOCALAPPDATA", "HOMEDRIVE", "HOMEPATH"}
    | {"PATHEXT", "PROGRAMDATA", "PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "USERNAME", "USERPROFILE"}
)

_Place = tuple[str, Path | None]


@dataclass
class _Running:
    live: LiveServer
    offer: Offer = field(default_factory=Offer)
    refreshing: asyncio.Task[None] | None = None


class McpServers:
    """The servers of one engine: one of each kind for each workspace in which it is needed."""

    def __init__(
        self,
        configured: Callable[[], tuple[McpServer, ...]],
        secrets: SecretStore,
        folder: Path,
        people: Callable[[], People] = People,
    ) -> None:
        self._configured = configured
        self._secrets = secrets
        self._seen = SeenTools(folder)
        self._people = people
        self._running: dict[_Place, _Running] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._listeners: list[Callable[[Sentence], None]] = []
        self.notices: list[Sentence] = []

    def on_notice(self, listener: Callable[[Sentence], None]) -> None:
        """Be told what the person should know: a tool that changed, a server that cannot be started."""
        self._listeners.append(listener)

    def server(self, server_id: str, workspace: Path | None) -> LiveServer | None:
        """The server for this folder, started when it is first asked; None for an unknown one, or one that is off."""
        config = self._on().get(server_id)
        return None if config is None else self._place(config, workspace).live

    def tools(self, workspace: Path | None) -> tuple[AnyTool, ...]:
        """What the servers that are on offer for this folder, as far as is known by now."""
        on = self._on()
        return tuple(
            tool
            for (server_id, folder), running in self._running.items()
            if folder == workspace and on.get(server_id) == running.live.server
            for tool in running.offer.tools
        )

    async def ready(self, workspace: Path | None, seconds: float = WAIT) -> None:
        """Wait until all servers that are on have said what they offer for this folder, but not for ever."""
        self.follow_settings()
        places = [self._place(config, workspace) for config in self._on().values()]
        tasks = [self._refreshed(running) for running in places if running.live.is_stale]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)

    def follow_settings(self) -> None:
        """Put away what the person turned off, removed or changed."""
        on = self._on()
        for place, running in tuple(self._running.items()):
            if on.get(place[0]) != running.live.server:
                del self._running[place]
                self._later(self._put_away(running))

    async def take(self, found: Imported, keep: Callable[[tuple[McpServer, ...]], Any]) -> None:
        """Take over what was imported: secrets first, so that no server is there without its own.

        `keep` adds the servers to the preferences. Raises SecretsUnavailable.
        """
        for name, value in found.secrets.items():
            await self._secrets.set(name, value)
        await keep((*self._configured(), *found.servers))

    async def forget_secrets(self, server: McpServer) -> None:
        """Of a server that was removed. Raises SecretsUnavailable."""
        for name in server.secret_names:
            await self._secrets.delete(server.keyring_name(name))

    async def close(self) -> None:
        """End all servers and all that they started."""
        running = list(self._running.values())
        self._running.clear()
        await asyncio.gather(*(self._put_away(each) for each in running), *self._ending)

    def _on(self) -> dict[str, McpServer]:
        return {each.id: each for each in reversed(self._configured()) if each.on}

    def _place(self, config: McpServer, workspace: Path | None) -> _Running:
        running = self._running.get((config.id, workspace))
        if running is None or running.live.server != config:
            opening = partial(self._transport, config, workspace)
            setting = Setting(opening, workspace, self._people())
            running = _Running(LiveServer(config, setting))
            running.live.on_change = partial(self._refreshed, running)
            self._running[(config.id, workspace)] = running
        return running

    def _refreshed(self, running: _Running) -> asyncio.Task[None]:
        """The task that asks for what the server offers now; one at a time."""
        if running.refreshing is None or running.refreshing.done():
            running.refreshing = asyncio.create_task(self._refresh(running))
        return running.refreshing

    async def _refresh(self, running: _Running) -> None:
        live = running.live
        while True:
            try:
                offer = await offer_of(live)
            except AgentError as error:
                running.offer = Offer()
                self._tell(error.sentence)
                return
            await self._notice(live.server, offer, running.offer)
            running.offer = offer
            if not live.is_stale:
                return
            await asyncio.sleep(_ASK_EVERY)

    async def _notice(self, server: McpServer, offer: Offer, known: Offer) -> None:
        try:
            before = await self._seen.swap(server.id, dict(offer.digests))
        except StorageFailed as error:
            self._tell(error.sentence)
            before = dict(known.digests)
        told = changed_tools(server.title, before, offer.digests)
        for sentence in (*told, *(each for each in offer.left_out if each not in known.left_out)):
            self._tell(sentence)

    def _tell(self, sentence: Sentence) -> None:
        if sentence in self.notices[-10:]:
            return
        self.notices = [*self.notices, sentence][-MOST_NOTICES:]
        for listener in tuple(self._listeners):
            listener(sentence)

    async def _put_away(self, running: _Running) -> None:
        await running.live.close()
        if running.refreshing is not None:
            await asyncio.wait([running.refreshing])

    def _later(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def _transport(self, config: McpServer, workspace: Path | None, log: ServerLog) -> Transport:
        values = {name: await self._secret(config, name) for name in config.secret_names}
        plain = {name: value.get_secret_value() for name, value in values.items()}
        log.hide(tuple(plain.values()))
        connection = config.connection
        if not isinstance(connection, StdioConnection):
            return partial(http_streams, connection.url, plain, log)
        environment = {name: os.environ[name] for name in _PASSED if name in os.environ}
        command = Command(
            (connection.command, *connection.args),
            workspace or Path(tempfile.gettempdir()),
            {**environment, **connection.env, **plain},
        )
        return partial(stdio_streams, command, log)

    async def _secret(self, config: McpServer, name: str) -> SecretStr:
        value = await self._secrets.get(config.keyring_name(name))
        if value is None:
            what = Sentence("The value of “{name}” is not in the keyring.", {"name": name})
            raise ToolFailed(what, "Enter it again in the settings of the server.")
        return value
