"""One MCP server: started when it is first needed, started again when it has ended, put away at the end."""

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from desktop_agent.tools.mcp.connection import ConnectionLost
from desktop_agent.tools.mcp.faults import reason_of, was_lost
from desktop_agent.tools.mcp.questions import Questions
from desktop_agent.tools.mcp.server_log import ServerLog
from desktop_agent.tools.mcp.upkeep import Setting, Standing, Upkeep
from desktop_agent.tools.mcp.wire.listings import LEFT_OUT, MOST_TOOLS
from desktop_agent.vocabulary.errors import AgentError, Sentence, ToolFailed
from desktop_agent.vocabulary.mcp.asking import Spent
from desktop_agent.vocabulary.mcp.servers import McpServer

if TYPE_CHECKING:
    from mcp.client.client import Client
    from mcp_types import CallToolResult, ListToolsResult, Tool

Result = TypeVar("Result")


class LiveServer(Questions):
    """A server as it runs, or will. Its methods start it where needed, and raise ToolFailed where that fails."""

    def __init__(self, server: McpServer, setting: Setting) -> None:
        self.log = ServerLog(setting.logged)
        self.is_stale = True
        self.calls = 0
        self.left_out: tuple[tuple[str, str], ...] = ()
        self.on_change: Callable[[], object] = lambda: None
        self.on_state: Callable[[], None] = lambda: None
        self.on_contents: Callable[[], None] = lambda: None
        self._upkeep = Upkeep(server, setting, self.log, self._changed, self._moved, self._renewed)

    @property
    def server(self) -> McpServer:
        """As the person set it up."""
        return self._upkeep.server

    @server.setter
    def server(self, server: McpServer) -> None:
        """Set up otherwise, with the same connection: it goes on running."""
        self._upkeep.server = server

    @property
    def standing(self) -> Standing:
        """How it is now."""
        return self._upkeep.standing

    @property
    def is_running(self) -> bool:
        """Whether it is there now."""
        return self._upkeep.connection is not None

    @property
    def protocol(self) -> str:
        """The version that was agreed on; empty where it is not there."""
        connection = self._upkeep.connection
        return connection.protocol if connection is not None else ""

    @property
    def starts(self) -> int:
        """How often it was started."""
        return self._upkeep.starts

    async def tools(self) -> "tuple[Tool, ...]":
        """What it offers, as far as MOST_TOOLS. `left_out`: the names of others that cannot be taken, and why."""
        left_out: list[tuple[str, str]] = []

        async def page(client: "Client", cursor: str | None) -> "ListToolsResult":
            found = await client.list_tools(cursor=cursor)
            notes: Any = found.meta or {}
            left_out.extend((name, why) for name, why in notes.get(LEFT_OUT, ()))
            return found

        # Before the asking: what changes meanwhile is asked for again.
        self.is_stale = False
        try:
            listed = await self._all(page, "tools", MOST_TOOLS)
        except BaseException:
            self.is_stale = True
            raise
        self.left_out = tuple(left_out[:MOST_TOOLS])
        return listed

    async def call(
        self,
        name: str,
        arguments: dict[str, Any],
        progress: Callable[[str], None] = lambda _: None,
        spent: Spent | None = None,
    ) -> "CallToolResult":
        """Call a tool. Never repeated by itself: it may have taken effect. `spent`: see Connection.ask."""

        async def told(done: float, total: float | None, message: str | None) -> None:
            of = f"{done:g}" + (f" of {total:g}" if total is not None else "")
            progress(f"{of}{': ' + self.log.hidden(message, 2_000) if message else ''}\n")

        return await self._ask(lambda client: _called(client, name, arguments, told), spent)

    def forgive(self) -> None:
        """Forget that starts failed, so that the next one is tried at once: the person wants it so."""
        self._upkeep.forgive()

    async def close(self) -> None:
        """End it and all that it started. It does not start again."""
        await self._upkeep.close()

    async def _ask(
        self, question: "Callable[[Client], Coroutine[Any, Any, Result]]", spent: Spent | None = None
    ) -> Result:
        connection = await self._upkeep.connected()
        self.calls += 1
        refusals = self._upkeep.refusals
        try:
            return await connection.ask(question, spent)
        except AgentError:
            raise
        except Exception as error:
            if self._upkeep.refusal is not None and self._upkeep.refusals > refusals:
                raise ToolFailed(self._upkeep.refusal, "Sign in again in the settings of the server.") from None
            if isinstance(error, ConnectionLost) or was_lost(error) or not connection.is_live:
                await connection.close()
                if connection.why is not None:
                    raise ToolFailed(connection.why.sentence, connection.why.remedy) from None
                raise self._failed(
                    "The server “{server}” ended while it was asked; what it was doing may have taken effect.",
                    "Ask again if that does no harm: the server is started anew then.",
                ) from error
            values = {"server": self.server.title, "why": reason_of(error, self.log)}
            what = Sentence("The server “{server}” refused: {why}", values)
            raise ToolFailed(what, "Correct the call, or look at the server's log.") from error

    def _moved(self) -> None:
        self.on_state()

    def _renewed(self) -> None:
        self.on_contents()

    def _changed(self) -> None:
        self.is_stale = True
        self.on_change()


async def _called(client: "Client", name: str, arguments: dict[str, Any], told: Any) -> "CallToolResult":
    # Its own checking of structured content uses patterns of the server's that may take for ever.
    client.session.validate_tool_result = _unchecked
    return await client.call_tool(name, arguments, progress_callback=told)


async def _unchecked(name: str, result: object) -> None:
    """What the model reads is looked at in any case."""
