"""Lifecycle of one MCP server: load the library late, start, restart with backoff, status, close."""

import asyncio
import importlib
import threading
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from desktop_agent.mcp.client_features import ServerRequestHandler
from desktop_agent.mcp.connection import ConnectionEvents, ServerConnection
from desktop_agent.mcp.diagnostics import ServerLog, start_failure
from desktop_agent.mcp.host_policy import allowed_private_hosts, host_of_url, may_open_url
from desktop_agent.types.errors import AgentError, ExtraMissing, Sentence, ToolFailed
from desktop_agent.types.mcp import McpLogLine, McpServer, ServerRequestHandlers, StdioConnection
from desktop_agent.types.providers import is_loopback

_LIBRARY_MODULES = (
    "mcp.client.client",
    "mcp.client.streamable_http",
    "mcp.client.subscriptions",
    "desktop_agent.mcp.http_transport",
    "desktop_agent.mcp.oauth_login",
)
# Its modules import each other: two threads that begin at different ends would wait for one another.
_load_lock = threading.Lock()


async def load_library() -> None:
    """Import all that is used of it, in a thread; whoever comes later waits. Then importing parts of it is quick.

    Raises ExtraMissing where it is not installed.
    """
    await asyncio.to_thread(_load_modules)


def _load_modules() -> None:
    if not all(find_spec(name) for name in ("mcp", "mcp_types", "httpx2", "anyio")):
        raise ExtraMissing.of("A server of tools (MCP)", "mcp")
    with _load_lock:
        for name in _LIBRARY_MODULES:
            importlib.import_module(name)


Transport = Callable[[], AbstractAsyncContextManager[Any]]
OnSignInRequired = Callable[[Sentence], None]
"""Called when the server wants the person to sign in, or to correct a key."""
OpenTransport = Callable[[ServerLog, OnSignInRequired], Coroutine[Any, Any, Transport]]

_State = Literal["idle", "starting", "running", "failed", "signed_out"]

_SIGN_IN_REMEDY = "Sign in again in the settings of the server."

START_TIMEOUT = 60.0
"""Seconds that a server has to start: some are fetched first."""
# Seconds to wait before the next start when several in a row failed.
_FIRST_BACKOFF = 1.0
_MAX_BACKOFF = 60.0
# One that ran for so long and then ended may be started again at once.
_STABLE_AFTER = 10.0


@dataclass
class ServerContext:
    """In what a server lives. `open_transport` is called for each start and may read secrets.

    `people` is asked for at each question. `told` hears what the person should read.
    """

    open_transport: OpenTransport
    workspace: Path | None = None
    handlers: Callable[[], ServerRequestHandlers] = ServerRequestHandlers
    on_log_line: Callable[[McpLogLine], None] = lambda _: None
    on_failure: Callable[[Sentence], None] = lambda _: None
    private_hosts: Callable[[], frozenset[str]] = frozenset
    clock: Callable[[], float] | None = None
    start_timeout: float = START_TIMEOUT


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """How a server is, why, and what helps."""

    state: _State
    reason: Sentence | None = None
    remedy: Sentence | None = None


class ServerClosed(ToolFailed):
    """The person turned it off, or removed it, before it was there."""

    kind = "put_away"
    default_remedy = "Turn it on in the settings."


class ServerLifecycle:
    """One server's connection; `starts` is how many there were. `moved` is called when `standing` is another."""

    def __init__(
        self,
        server: McpServer,
        setting: ServerContext,
        log: ServerLog,
        changed: Callable[[], None],
        moved: Callable[[], None],
        renewed: Callable[[], None] = lambda: None,
    ) -> None:
        self.start_count = 0
        self.server = server
        self.status = ServerStatus("idle")
        self._context = setting
        self._log = log
        self._on_tools_changed = changed
        self._on_status_changed = moved
        self._on_catalog_changed = renewed
        self._clock = setting.clock or asyncio.get_running_loop().time
        self._connection: ServerConnection | None = None
        self._opening_connection: ServerConnection | None = None
        self._start_lock = asyncio.Lock()
        self._failures = 0
        self._retry_at = 0.0
        self._started_at = 0.0
        self._is_closed = False
        self._failure: AgentError | None = None
        self.sign_in_reason: Sentence | None = None
        self.sign_in_demands = 0

    @property
    def connection(self) -> ServerConnection | None:
        """The one that is live, or None."""
        connection = self._connection
        return connection if connection is not None and connection.is_live else None

    def reset_backoff(self) -> None:
        """Forget that starts failed."""
        self._failures, self._retry_at = 0, 0.0

    async def close(self) -> None:
        """End it for good, also one that is only being started."""
        self._is_closed = True
        for connection in (self._opening_connection, self._connection):
            if connection is not None:
                await connection.close()

    async def connected(self) -> ServerConnection:
        """The server, started where needed. Raises ToolFailed."""
        async with self._start_lock:
            connection = self._connection
            if connection is not None and connection.is_live:
                return connection
            if connection is not None:
                await self._close_ended(connection)
            self._require_open()
            wait = self._retry_at - self._clock()
            if wait > 0:
                raise self._start_error(f"{wait:.0f}")
            return await self._start()

    def _may_open(self, url: str) -> bool:
        """A page that the server wants opened: a program of this machine may have one here."""
        connection = self.server.connection
        if isinstance(connection, StdioConnection):
            host = host_of_url(url)
            return may_open_url(url, frozenset({host}) if is_loopback(host) else frozenset())
        return may_open_url(url, allowed_private_hosts(connection.url, self._context.private_hosts()))

    def _require_open(self) -> None:
        if self._is_closed:
            raise ServerClosed(Sentence("The server “{server}” was put away.", {"server": self.server.title}))

    async def _close_ended(self, connection: ServerConnection) -> None:
        await connection.close()
        self._connection = None
        if self._clock() - self._started_at < _STABLE_AFTER:
            self._increase_backoff()
        else:
            self._failures = 0

    async def _start(self) -> ServerConnection:
        setting, log = self._context, self._log
        self.start_count += 1
        self.sign_in_reason = None
        log.start()
        self._set_status("starting")
        try:
            await load_library()
            transport = await setting.open_transport(log, self._on_sign_in_required)
            # The keyring may have asked the person, who changed their mind meanwhile.
            self._require_open()
            answering = ServerRequestHandler(
                lambda: self.server.title, setting.handlers, setting.workspace, log, setting.on_failure, self._may_open
            )
            connection = self._opening_connection = ServerConnection(
                transport,
                ConnectionEvents(answering, log, self._on_tools_changed, self._on_ended, self._on_catalog_changed),
            )
            await connection.open(setting.start_timeout)
            if self._is_closed:
                await connection.close()
                self._require_open()
        except ServerClosed:
            self._set_status("idle")
            raise
        except Exception as error:
            self._increase_backoff()
            raise self._record_failure(error) from error
        except BaseException:
            self._set_status("idle")
            raise
        finally:
            self._opening_connection = None
        self._started_at, self._failure = self._clock(), None
        self._connection = connection
        # It was asked in several ways, of which it took one.
        self.sign_in_reason = None
        self._set_status("running")
        return connection

    def _on_ended(self, by_itself: bool, why: AgentError | None) -> None:  # noqa: FBT001 - told by position
        template = "The server “{server}” ended by itself; it is started again when it is needed."
        if self.status.state == "signed_out":
            return
        if by_itself:
            what = Sentence(template, {"server": self.server.title})
            self._set_failed(why or ToolFailed(what, "If it happens again, look at its log."))
        else:
            self._set_status("idle")

    def _set_failed(self, failure: AgentError) -> None:
        self._set_status("failed", failure.sentence, failure.remedy)

    def _set_status(self, state: _State, why: Sentence | None = None, remedy: Sentence | None = None) -> None:
        self.status = ServerStatus(state, why, remedy)
        self._on_status_changed()

    def _record_failure(self, error: Exception) -> ToolFailed:
        if self.sign_in_reason is not None:
            self._failure = ToolFailed(self.sign_in_reason, _SIGN_IN_REMEDY)
            self._set_status("signed_out", self.sign_in_reason)
            return ToolFailed(self.sign_in_reason, _SIGN_IN_REMEDY)
        self._failure = start_failure(error, self.server, self._log, self._context.start_timeout)
        failure = self._start_error(f"{self._retry_at - self._clock():.0f}")
        self._set_status("failed", failure.sentence, self._failure.remedy)
        return failure

    def _on_sign_in_required(self, why: Sentence) -> None:
        self.sign_in_reason, self.sign_in_demands = why, self.sign_in_demands + 1
        self._set_status("signed_out", why)

    def _increase_backoff(self) -> None:
        """The first time nothing is waited for: one that ended is back at once."""
        wait = min(_FIRST_BACKOFF * 2 ** (self._failures - 1), _MAX_BACKOFF) if self._failures else 0.0
        self._failures += 1
        self._retry_at = self._clock() + wait

    def _start_error(self, seconds: str) -> ToolFailed:
        failure = self._failure or ToolFailed(Sentence("it ended again"), "Look at its log.")
        values: dict[str, str | Sentence] = {"server": self.server.title, "why": failure.sentence}
        is_program = isinstance(self.server.connection, StdioConnection)
        template = "The server “{server}” could not be started: {why}"
        what = Sentence(template if is_program else "The server “{server}” could not be reached: {why}", values)
        remedy = Sentence("{remedy} It can be tried again in {n} s.", {"remedy": failure.remedy, "n": seconds})
        return ToolFailed(what, remedy)
