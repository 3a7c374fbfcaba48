"""The client of one MCP server: calls tools, lists and reads resources and prompts; started when first needed."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from desktop_agent.mcp.connection import ConnectionLost
from desktop_agent.mcp.diagnostics import ServerLog, describe_error, is_connection_lost
from desktop_agent.mcp.lifecycle import ServerContext, ServerLifecycle, ServerStatus
from desktop_agent.mcp.limits import MAX_LISTED, MAX_TOOLS, UNUSABLE_TOOLS_KEY
from desktop_agent.types.errors import AgentError, Sentence, ToolFailed
from desktop_agent.types.mcp import McpServer, UsageListener

if TYPE_CHECKING:
    from mcp.client.client import Client
    from mcp_types import (
        CallToolResult,
        GetPromptResult,
        ListToolsResult,
        Prompt,
        ReadResourceResult,
        Resource,
        ResourceTemplate,
        Tool,
    )


Result = TypeVar("Result")
_MAX_PAGES = 50
# The first version in which completions know of the other arguments.
_CONTEXT_SINCE = "2025-06-18"
# In seconds.
_LIST_TIMEOUT = 30.0


class ServerQueries(ABC):
    """All of them raise ToolFailed."""

    log: ServerLog

    @property
    @abstractmethod
    def server(self) -> McpServer:
        """As the person set it up."""

    @abstractmethod
    async def _ask(self, question: "Callable[[Client], Coroutine[Any, Any, Result]]") -> Result:
        """Ask it of the server."""

    async def resources(self) -> "tuple[Resource, ...]":
        """What may be read of it."""
        return await self._list_all(lambda client, cursor: client.list_resources(cursor=cursor), "resources")

    async def resource_templates(self) -> "tuple[ResourceTemplate, ...]":
        """Addresses with gaps to fill in."""
        return await self._list_all(
            lambda client, cursor: client.list_resource_templates(cursor=cursor), "resource_templates", of="resources"
        )

    async def read_resource(self, uri: str) -> "ReadResourceResult":
        """One of them."""
        return await self._with_timeout(lambda client: client.read_resource(uri))

    async def prompts(self) -> "tuple[Prompt, ...]":
        """Its ready prompts."""
        return await self._list_all(lambda client, cursor: client.list_prompts(cursor=cursor), "prompts")

    async def get_prompt(self, name: str, arguments: dict[str, str] | None = None) -> "GetPromptResult":
        """One of them, filled in."""
        return await self._with_timeout(lambda client: client.get_prompt(name, arguments))

    async def complete(self, of: str, argument: str, value: str, others: Mapping[str, str] = {}) -> tuple[str, ...]:
        """What it would fill in for an argument of the prompt of this name, or of this template of addresses.

        `value` is what is written of it; `others` are those that are filled in already.
        """
        from mcp_types import PromptReference, ResourceTemplateReference

        is_template = "{" in of and ":" in of
        ref = ResourceTemplateReference(uri=of) if is_template else PromptReference(name=of)

        async def completed(client: "Client") -> tuple[str, ...]:
            if client.server_capabilities.completions is None:
                return ()
            known = {name: text for name, text in others.items() if text and name != argument}
            has_context = client.protocol_version >= _CONTEXT_SINCE and bool(known)
            found = await client.complete(ref, {"name": argument, "value": value}, known if has_context else None)
            return tuple(found.completion.values)

        return await self._with_timeout(completed)

    async def _with_timeout(self, question: "Callable[[Client], Coroutine[Any, Any, Result]]") -> Result:
        try:
            async with asyncio.timeout(_LIST_TIMEOUT):
                return await self._ask(question)
        except TimeoutError:
            raise self._error("The server “{server}” does not answer.") from None

    async def _list_all(
        self,
        page_of: "Callable[[Client, str | None], Coroutine[Any, Any, Any]]",
        name: str,
        most: int = MAX_LISTED,
        of: str = "",
    ) -> tuple[Any, ...]:
        async def pages(client: "Client") -> tuple[Any, ...]:
            if getattr(client.server_capabilities, of or name) is None:
                return ()
            found: list[Any] = []
            cursor: str | None = None
            for _ in range(_MAX_PAGES):
                page = await page_of(client, cursor)
                found.extend(getattr(page, name))
                cursor = page.next_cursor
                if cursor is None or len(found) >= most:
                    break
            if cursor is not None or len(found) > most:
                self.log.add(f"The list of {name} is too long; the first {min(len(found), most)} are used.", "warning")
            return tuple(found[:most])

        return await self._with_timeout(pages)

    def _error(self, template: str, remedy: str = "Look at the server's log.") -> ToolFailed:
        return ToolFailed(Sentence(template, {"server": self.server.title}), remedy)


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
