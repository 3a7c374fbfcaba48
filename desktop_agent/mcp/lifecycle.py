"""Lifecycle of one MCP server: load the library late, start, restart with backoff, status, close."""

import asyncio
import importlib
import threading
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from desktop_agent.mcp.diagnostics import ServerLog, start_failure
from desktop_agent.mcp.host_policy import allowed_private_hosts, host_of_url, may_open_url
from desktop_agent.types.errors import AgentError, ExtraMissing, Sentence, ToolFailed
from desktop_agent.types.mcp import (
    McpLogLine,
    McpServer,
    McpServerState,
    McpStateName,
    ServerRequestHandlers,
    StdioConnection,
)
from desktop_agent.types.providers import is_loopback

if TYPE_CHECKING:
    from desktop_agent.mcp.connection import ServerConnection

_LIBRARY_MODULES = (
    "desktop_agent.mcp.connection",
    "desktop_agent.mcp.stdio",
    "desktop_agent.mcp.oauth_login",
)
# The library's modules import each other: two threads that begin at different ends would wait for one another.
_load_lock = threading.Lock()


async def load_library() -> None:
    """Import all parts of the library that are used, in a thread, so that later imports are quick.

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
"""Called when the server requires the person to sign in, or to correct a key."""
OpenTransport = Callable[[ServerLog, OnSignInRequired], Coroutine[Any, Any, Transport]]

SIGN_IN_REMEDY = "Sign in again in the settings of the server."

START_TIMEOUT = 60.0
"""Seconds that a server has to start: some are downloaded first."""
# Seconds to wait before the next start after several failures in a row.
_FIRST_BACKOFF = 1.0
_MAX_BACKOFF = 60.0
# A server that ran for so many seconds before it ended is started again at once.
_STABLE_AFTER = 10.0


@dataclass
class ServerContext:
    """What a server is started with. `open_transport` is called for each start and may read secrets.

    `handlers` returns what answers the server's requests now; `on_failure` is called with what the person should read.
    """

    open_transport: OpenTransport
    workspace: Path | None = None
    handlers: Callable[[], ServerRequestHandlers] = ServerRequestHandlers
    on_log_line: Callable[[McpLogLine], None] = lambda _: None
    on_failure: Callable[[Sentence], None] = lambda _: None
    private_hosts: Callable[[], frozenset[str]] = frozenset
    clock: Callable[[], float] | None = None
    start_timeout: float = START_TIMEOUT


class ServerClosed(ToolFailed):
    """The server was turned off, removed or changed before it had started."""

    kind = "server_closed"
    default_remedy = "Check it in the settings, and try again."


class ServerLifecycle:
    """Starts, restarts and closes the connection of one server.

    `server` may be replaced by settings with the same connection. `is_stale`: the tools must be listed again.
    """

    def __init__(self, server: McpServer, context: ServerContext, log: ServerLog) -> None:
        self.start_count = 0
        self.server = server
        self._state = McpServerState(server.id, "idle")
        self.is_stale = True
        self.on_state: Callable[[], None] = lambda: None
        self.on_tools_changed: Callable[[], object] = lambda: None
        self.on_catalog_changed: Callable[[], None] = lambda: None
        self.sign_in_reason: Sentence | None = None
        self.sign_in_demands = 0
        self._context = context
        self._log = log
        self._clock = context.clock or asyncio.get_running_loop().time
        self._connection: ServerConnection | None = None
        self._start_lock = asyncio.Lock()
        self._failures = 0
        self._retry_at = 0.0
        self._started_at = 0.0
        self._is_closed = False
        self._failure: AgentError | None = None

    @property
    def is_running(self) -> bool:
        return self._connection is not None and self._connection.is_live

    @property
    def state(self) -> McpServerState:
        """The state, without what the server offers. `protocol` is the negotiated version."""
        protocol = self._connection.protocol if self._connection is not None else ""
        return replace(self._state, protocol=protocol)

    def reset_backoff(self) -> None:
        """Forget that starts failed."""
        self._failures, self._retry_at = 0, 0.0

    async def close(self) -> None:
        """Close the connection for good, also while it is being opened."""
        self._is_closed = True
        if self._connection is not None:
            await self._connection.close()

    async def connected(self) -> "ServerConnection":
        """Return the live connection; start the server where needed. Raises ToolFailed."""
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
        """Whether the person may be sent to a page; a program of this machine may have one here."""
        connection = self.server.connection
        if isinstance(connection, StdioConnection):
            host = host_of_url(url)
            return may_open_url(url, frozenset({host}) if is_loopback(host) else frozenset())
        return may_open_url(url, allowed_private_hosts(connection.url, self._context.private_hosts()))

    def _require_open(self) -> None:
        if self._is_closed:
            words = "The server “{server}” was turned off, removed or changed before it answered."
            raise ServerClosed(Sentence(words, {"server": self.server.title}))

    async def _close_ended(self, connection: "ServerConnection") -> None:
        await connection.close()
        self._connection = None
        if self._clock() - self._started_at < _STABLE_AFTER:
            self._increase_backoff()
        else:
            self._failures = 0

    async def _start(self) -> "ServerConnection":
        context, log = self._context, self._log
        self.start_count += 1
        self.sign_in_reason = None
        log.start()
        self._set_state("starting")
        try:
            await load_library()
            transport = await context.open_transport(log, self._on_sign_in_required)
            # The keyring may have waited for the person, who may have changed their mind.
            self._require_open()
            connection = self._connection = self._make_connection(transport)
            await connection.open(context.start_timeout)
            if self._is_closed:
                await connection.close()
                self._require_open()
        except BaseException as error:
            self._connection = None
            if isinstance(error, Exception) and not isinstance(error, ServerClosed):
                self._increase_backoff()
                raise self._record_failure(error) from error
            self._set_state("idle")
            raise
        self._started_at, self._failure = self._clock(), None
        # The library tries several ways, of which the server accepted one.
        self.sign_in_reason = None
        self._set_state("running")
        return connection

    def _make_connection(self, transport: Transport) -> "ServerConnection":
        from desktop_agent.mcp.connection import ServerConnection
        from desktop_agent.mcp.elicitation_and_sampling import ServerRequestHandler

        context, log = self._context, self._log
        request_handler = ServerRequestHandler(
            lambda: self.server.title, context.handlers, context.workspace, log, context.on_failure, self._may_open
        )
        return ServerConnection(
            transport, request_handler, log, self._on_tools_changed, self._on_catalog_changed, self._on_ended
        )

    def _on_tools_changed(self) -> None:
        self.is_stale = True
        self.on_tools_changed()

    def _on_catalog_changed(self) -> None:
        self.on_catalog_changed()

    def _on_ended(self, by_itself: bool, failure: AgentError | None) -> None:  # noqa: FBT001 - called by position
        template = "The server “{server}” ended by itself; it is started again when it is needed."
        if self._state.state == "signed_out":
            return
        if by_itself:
            sentence = Sentence(template, {"server": self.server.title})
            failure = failure or ToolFailed(sentence, "If it happens again, look at its log.")
            self._set_state("failed", failure.sentence, failure.remedy)
        else:
            self._set_state("idle")

    def _set_state(self, state: McpStateName, reason: Sentence | None = None, remedy: Sentence | None = None) -> None:
        self._state = McpServerState(self.server.id, state, reason=reason, remedy=remedy)
        self.on_state()

    def _record_failure(self, error: Exception) -> ToolFailed:
        if self.sign_in_reason is not None:
            self._failure = refusal = ToolFailed(self.sign_in_reason, SIGN_IN_REMEDY)
            self._set_state("signed_out", self.sign_in_reason)
            return refusal
        self._failure = start_failure(error, self.server, self._log, self._context.start_timeout)
        failure = self._start_error(f"{self._retry_at - self._clock():.0f}")
        self._set_state("failed", failure.sentence, self._failure.remedy)
        return failure

    def _on_sign_in_required(self, reason: Sentence) -> None:
        self.sign_in_reason, self.sign_in_demands = reason, self.sign_in_demands + 1
        self._set_state("signed_out", reason)

    def _increase_backoff(self) -> None:
        """The first failure costs no wait: a server that ended is restarted at once."""
        wait = min(_FIRST_BACKOFF * 2 ** (self._failures - 1), _MAX_BACKOFF) if self._failures else 0.0
        self._failures += 1
        self._retry_at = self._clock() + wait

    def _start_error(self, seconds: str) -> ToolFailed:
        failure = self._failure or ToolFailed(Sentence("it ended again"), "Look at its log.")
        values: dict[str, str | Sentence] = {"server": self.server.title, "why": failure.sentence}
        is_program = isinstance(self.server.connection, StdioConnection)
        template = "The server “{server}” could not be started: {why}"
        sentence = Sentence(template if is_program else "The server “{server}” could not be reached: {why}", values)
        remedy = Sentence("{remedy} It can be tried again in {n} s.", {"remedy": failure.remedy, "n": seconds})
        return ToolFailed(sentence, remedy)
