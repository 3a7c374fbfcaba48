"""One MCP server: started when it is first needed, started again when it has ended, put away at the end."""

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from desktop_agent.tools.mcp.connection import ConnectionLost
from desktop_agent.tools.mcp.faults import describe_error, is_connection_lost
from desktop_agent.tools.mcp.questions import ServerQueries
from desktop_agent.tools.mcp.server_log import ServerLog
from desktop_agent.tools.mcp.upkeep import ServerContext, ServerLifecycle, ServerStatus
from desktop_agent.tools.mcp.wire.listings import MAX_TOOLS, UNUSABLE_TOOLS_KEY
from desktop_agent.vocabulary.errors import AgentError, Sentence, ToolFailed
from desktop_agent.vocabulary.mcp.asking import UsageListener
from desktop_agent.vocabulary.mcp.servers import McpServer

if TYPE_CHECKING:
    from mcp.client.client import Client
    from mcp_types import CallToolResult, ListToolsResult, Tool

Result = TypeVar("Result")


class McpClient(ServerQueries):
    """A server as it runs, or will. Its methods start it where needed, and raise ToolFailed where that fails."""

    def __init__(self, server: McpServer, setting: ServerContext) -> None:
        self.log = ServerLog(setting.on_log_line)
        self.is_stale = True
        self.call_count = 0
        self.unusable_tools: tuple[tuple[str, str], ...] = ()
        self.on_tools_changed: Callable[[], object] = lambda: None
        self.on_state: Callable[[], None] = lambda: None
        self.on_catalog_changed: Callable[[], None] = lambda: None
        self._lifecycle = ServerLifecycle(
            server, setting, self.log, self._on_tools_changed, self._on_status_changed, self._on_catalog_changed
        )

    @property
    def server(self) -> McpServer:
        """As the person set it up."""
        return self._lifecycle.server

    @server.setter
    def server(self, server: McpServer) -> None:
        """Set up otherwise, with the same connection: it goes on running."""
        self._lifecycle.server = server

    @property
    def status(self) -> ServerStatus:
        """How it is now."""
        return self._lifecycle.status

    @property
    def is_running(self) -> bool:
        """Whether it is there now."""
        return self._lifecycle.connection is not None

    @property
    def protocol(self) -> str:
        """The version that was agreed on; empty where it is not there."""
        connection = self._lifecycle.connection
        return connection.protocol if connection is not None else ""

    @property
    def start_count(self) -> int:
        """How often it was started."""
        return self._lifecycle.start_count

    async def tools(self) -> "tuple[Tool, ...]":
        """What it offers, as far as MOST_TOOLS. `omitted_parts_note`: the names of others that cannot be taken, and
        why.
        """
        left_out: list[tuple[str, str]] = []

        async def page(client: "Client", cursor: str | None) -> "ListToolsResult":
            found = await client.list_tools(cursor=cursor)
            notes: Any = found.meta or {}
            left_out.extend((name, why) for name, why in notes.get(UNUSABLE_TOOLS_KEY, ()))
            return found

        # Before the asking: what changes meanwhile is asked for again.
        self.is_stale = False
        try:
            listed = await self._list_all(page, "tools", MAX_TOOLS)
        except BaseException:
            self.is_stale = True
            raise
        self.unusable_tools = tuple(left_out[:MAX_TOOLS])
        return listed

    async def call(
        self,
        name: str,
        arguments: dict[str, Any],
        progress: Callable[[str], None] = lambda _: None,
        spent: UsageListener | None = None,
    ) -> "CallToolResult":
        """Call a tool. Never repeated by itself: it may have taken effect. `spent`: see Connection.ask."""

        async def told(done: float, total: float | None, message: str | None) -> None:
            of = f"{done:g}" + (f" of {total:g}" if total is not None else "")
            progress(f"{of}{': ' + self.log.redact(message, 2_000) if message else ''}\n")

        return await self._ask(lambda client: _call_tool(client, name, arguments, told), spent)

    def reset_backoff(self) -> None:
        """Forget that starts failed, so that the next one is tried at once: the person wants it so."""
        self._lifecycle.reset_backoff()

    async def close(self) -> None:
        """End it and all that it started. It does not start again."""
        await self._lifecycle.close()

    async def _ask(
        self, question: "Callable[[Client], Coroutine[Any, Any, Result]]", spent: UsageListener | None = None
    ) -> Result:
        connection = await self._lifecycle.connected()
        self.call_count += 1
        refusals = self._lifecycle.sign_in_demands
        try:
            return await connection.ask(question, spent)
        except AgentError:
            raise
        except Exception as error:
            if self._lifecycle.sign_in_reason is not None and self._lifecycle.sign_in_demands > refusals:
                raise ToolFailed(
                    self._lifecycle.sign_in_reason, "Sign in again in the settings of the server."
                ) from None
            if isinstance(error, ConnectionLost) or is_connection_lost(error) or not connection.is_live:
                await connection.close()
                if connection.failure is not None:
                    raise ToolFailed(connection.failure.sentence, connection.failure.remedy) from None
                raise self._error(
                    "The server “{server}” ended while it was asked; what it was doing may have taken effect.",
                    "Ask again if that does no harm: the server is started anew then.",
                ) from error
            values = {"server": self.server.title, "why": describe_error(error, self.log)}
            what = Sentence("The server “{server}” refused: {why}", values)
            raise ToolFailed(what, "Correct the call, or look at the server's log.") from error

    def _on_status_changed(self) -> None:
        self.on_state()

    def _on_catalog_changed(self) -> None:
        self.on_catalog_changed()

    def _on_tools_changed(self) -> None:
        self.is_stale = True
        self.on_tools_changed()


async def _call_tool(client: "Client", name: str, arguments: dict[str, Any], told: Any) -> "CallToolResult":
    # Its own checking of structured content uses patterns of the server's that may take for ever.
    client.session.validate_tool_result = _skip_validation
    return await client.call_tool(name, arguments, progress_callback=told)


async def _skip_validation(name: str, result: object) -> None:
    """What the model reads is looked at in any case."""
