"""One server of tools: started when it is first needed, started again when it has ended, put away at the end."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from desktop_agent.tools.mcp.connection import ConnectionLost
from desktop_agent.tools.mcp.faults import reason_of, was_lost
from desktop_agent.tools.mcp.server_log import ServerLog
from desktop_agent.tools.mcp.upkeep import Setting, Upkeep
from desktop_agent.vocabulary.errors import AgentError, Sentence, ToolFailed
from desktop_agent.vocabulary.mcp.servers import McpServer

if TYPE_CHECKING:
    from mcp.client.client import Client
    from mcp_types import (
        CallToolResult,
        GetPromptResult,
        Prompt,
        ReadResourceResult,
        Resource,
        ResourceTemplate,
        Tool,
    )

Result = TypeVar("Result")
MOST_TOOLS = 200
MOST_LISTED = 1_000
"""Of resources, templates or prompts."""
_MOST_PAGES = 50
# In seconds.
_LIST = 30.0


class LiveServer:
    """A server as it runs, or will. Its methods start it where needed, and raise ToolFailed where that fails."""

    def __init__(self, server: McpServer, setting: Setting) -> None:
        self.server = server
        self.log = ServerLog()
        self.is_stale = True
        self.calls = 0
        self.on_change: Callable[[], object] = lambda: None
        self._upkeep = Upkeep(server, setting, self.log, self._changed)

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
        """What it offers, as far as MOST_TOOLS."""
        # Before the asking: what changes meanwhile is asked for again.
        self.is_stale = False
        try:
            return await self._all(lambda client, cursor: client.list_tools(cursor=cursor), "tools", MOST_TOOLS)
        except BaseException:
            self.is_stale = True
            raise

    async def resources(self) -> "tuple[Resource, ...]":
        """What may be read of it."""
        return await self._all(lambda client, cursor: client.list_resources(cursor=cursor), "resources")

    async def resource_templates(self) -> "tuple[ResourceTemplate, ...]":
        """Addresses with gaps to fill in."""
        return await self._all(
            lambda client, cursor: client.list_resource_templates(cursor=cursor), "resource_templates", of="resources"
        )

    async def read_resource(self, uri: str) -> "ReadResourceResult":
        """One of them."""
        return await self._limited(lambda client: client.read_resource(uri))

    async def prompts(self) -> "tuple[Prompt, ...]":
        """Its ready prompts."""
        return await self._all(lambda client, cursor: client.list_prompts(cursor=cursor), "prompts")

    async def get_prompt(self, name: str, arguments: dict[str, str] | None = None) -> "GetPromptResult":
        """One of them, filled in."""
        return await self._limited(lambda client: client.get_prompt(name, arguments))

    async def call(
        self, name: str, arguments: dict[str, Any], progress: Callable[[str], None] = lambda _: None
    ) -> "CallToolResult":
        """Call a tool. Never repeated by itself: it may have taken effect."""

        async def told(done: float, total: float | None, message: str | None) -> None:
            of = f"{done:g}" + (f" of {total:g}" if total is not None else "")
            progress(f"{of}{': ' + message[:2_000] if message else ''}\n")

        return await self._ask(lambda client: _called(client, name, arguments, told))

    def forgive(self) -> None:
        """Forget that starts failed, so that the next one is tried at once: the person wants it so."""
        self._upkeep.forgive()

    async def close(self) -> None:
        """End it and all that it started. It does not start again."""
        await self._upkeep.close()

    async def _limited(self, question: "Callable[[Client], Coroutine[Any, Any, Result]]") -> Result:
        try:
            async with asyncio.timeout(_LIST):
                return await self._ask(question)
        except TimeoutError:
            raise self._failed("The server “{server}” does not answer.") from None

    async def _all(
        self,
        page_of: "Callable[[Client, str | None], Coroutine[Any, Any, Any]]",
        name: str,
        most: int = MOST_LISTED,
        of: str = "",
    ) -> tuple[Any, ...]:
        async def pages(client: "Client") -> tuple[Any, ...]:
            if getattr(client.server_capabilities, of or name) is None:
                return ()
            found: list[Any] = []
            cursor: str | None = None
            for _ in range(_MOST_PAGES):
                page = await page_of(client, cursor)
                found.extend(getattr(page, name))
                cursor = page.next_cursor
                if cursor is None or len(found) >= most:
                    break
            if cursor is not None or len(found) > most:
                self.log.add(f"The list of {name} is too long; the first {min(len(found), most)} are used.", "warning")
            return tuple(found[:most])

        return await self._limited(pages)

    async def _ask(self, question: "Callable[[Client], Coroutine[Any, Any, Result]]") -> Result:
        connection = await self._upkeep.connected()
        self.calls += 1
        try:
            return await connection.ask(question)
        except AgentError:
            raise
        except Exception as error:
            if isinstance(error, ConnectionLost) or was_lost(error) or not connection.is_live:
                await connection.close()
                raise self._failed(
                    "The server “{server}” ended while it was asked; what it was doing may have taken effect.",
                    "Ask again if that does no harm: the server is started anew then.",
                ) from error
            values = {"server": self.server.title, "why": self.log.hidden(reason_of(error))}
            what = Sentence("The server “{server}” refused: {why}", values)
            raise ToolFailed(what, "Correct the call, or look at the server's log.") from error

    def _failed(self, template: str, remedy: str = "Look at the server's log.") -> ToolFailed:
        return ToolFailed(Sentence(template, {"server": self.server.title}), remedy)

    def _changed(self) -> None:
        self.is_stale = True
        self.on_change()


async def _called(client: "Client", name: str, arguments: dict[str, Any], told: Any) -> "CallToolResult":
    # Its own checking of structured content uses patterns of the server's that may take for ever.
    client.session.validate_tool_result = _unchecked
    return await client.call_tool(name, arguments, progress_callback=told)


async def _unchecked(name: str, result: object) -> None:
    """What the model reads is looked at in any case."""
