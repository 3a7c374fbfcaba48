"""The client of one MCP server: calls tools, lists and reads resources and prompts; started when first needed."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from desktop_agent.mcp.diagnostics import ServerLog, describe_error, is_answer_too_large, is_connection_lost
from desktop_agent.mcp.lifecycle import SIGN_IN_REMEDY, ServerContext, ServerLifecycle
from desktop_agent.mcp.limits import MAX_LISTED, MAX_TOOLS, UNUSABLE_TOOLS_KEY
from desktop_agent.types.errors import AgentError, Sentence, ToolFailed
from desktop_agent.types.mcp import McpServer, ServerCall

if TYPE_CHECKING:
    import mcp_types
    from mcp.client.client import Client


Result = TypeVar("Result")
_MAX_PAGES = 50
# The first protocol version in which completions know the other arguments.
_CONTEXT_SINCE = "2025-06-18"
# Seconds.
_LIST_TIMEOUT = 30.0


class McpClient:
    """A server, started by the first request. Methods that send one raise ToolFailed, also where a start fails."""

    def __init__(self, server: McpServer, context: ServerContext) -> None:
        self.log = ServerLog(context.on_log_line)
        self.lifecycle = ServerLifecycle(server, context, self.log)
        self.call_count = 0
        self.unusable_tools: tuple[tuple[str, Sentence], ...] = ()
        """Names of the tools that the last listing left out, with reasons."""

    async def tools(self) -> "tuple[mcp_types.Tool, ...]":
        """Return at most MAX_TOOLS tools, and set `unusable_tools`."""
        unusable: list[tuple[str, Sentence]] = []

        async def list_page(client: "Client", cursor: str | None) -> "mcp_types.ListToolsResult":
            page = await client.list_tools(cursor=cursor)
            meta: Any = page.meta or {}
            unusable.extend((name, Sentence(template)) for name, template in meta.get(UNUSABLE_TOOLS_KEY, ()))
            return page

        # Before the request: what changes meanwhile is listed again.
        self.lifecycle.is_stale = False
        try:
            tools = await self._list_all(list_page, "tools", MAX_TOOLS)
        except BaseException:
            self.lifecycle.is_stale = True
            raise
        self.unusable_tools = tuple(unusable[:MAX_TOOLS])
        return tools

    async def resources(self) -> "tuple[mcp_types.Resource, ...]":
        """Return the resources that may be read."""
        return await self._list_all(lambda client, cursor: client.list_resources(cursor=cursor), "resources")

    async def resource_templates(self) -> "tuple[mcp_types.ResourceTemplate, ...]":
        """Return the URI templates of resources."""
        return await self._list_all(
            lambda client, cursor: client.list_resource_templates(cursor=cursor),
            "resource_templates",
            capability="resources",
        )

    async def read_resource(self, uri: str) -> "mcp_types.ReadResourceResult":
        """Return the contents of a resource."""
        return await self._with_timeout(lambda client: client.read_resource(uri))

    async def prompts(self) -> "tuple[mcp_types.Prompt, ...]":
        """Return the prompts."""
        return await self._list_all(lambda client, cursor: client.list_prompts(cursor=cursor), "prompts")

    async def get_prompt(self, name: str, arguments: dict[str, str] | None = None) -> "mcp_types.GetPromptResult":
        """Return a prompt with its arguments filled in."""
        return await self._with_timeout(lambda client: client.get_prompt(name, arguments))

    async def complete(
        self, prompt_or_template: str, argument: str, value: str, others: Mapping[str, str] = {}
    ) -> tuple[str, ...]:
        """Return completions of an argument that begins with `value`; `others` are arguments filled in already."""
        from mcp_types import PromptReference, ResourceTemplateReference

        is_template = "{" in prompt_or_template and ":" in prompt_or_template
        reference = (
            ResourceTemplateReference(uri=prompt_or_template)
            if is_template
            else PromptReference(name=prompt_or_template)
        )

        async def request_completions(client: "Client") -> tuple[str, ...]:
            if client.server_capabilities.completions is None:
                return ()
            filled = {name: text for name, text in others.items() if text and name != argument}
            context = filled if filled and client.protocol_version >= _CONTEXT_SINCE else None
            result = await client.complete(reference, {"name": argument, "value": value}, context)
            return tuple(result.completion.values)

        return await self._with_timeout(request_completions)

    async def call(
        self,
        name: str,
        arguments: dict[str, Any],
        on_progress: Callable[[str], None] = lambda _: None,
        server_call: ServerCall | None = None,
    ) -> "mcp_types.CallToolResult":
        """Call a tool. Never repeated automatically: it may have taken effect."""

        async def report_progress(progress: float, total: float | None, message: str | None) -> None:
            count = f"{progress:g}" + (f" of {total:g}" if total is not None else "")
            on_progress(f"{count}{': ' + self.log.redact(message, 2_000) if message else ''}\n")

        async def call_tool(client: "Client") -> "mcp_types.CallToolResult":
            # The library's check of structured content uses the server's patterns, which may take for ever.
            client.session.validate_tool_result = _skip_validation
            return await client.call_tool(name, arguments, progress_callback=report_progress)

        return await self._ask(call_tool, server_call)

    async def _with_timeout(self, question: "Callable[[Client], Coroutine[Any, Any, Result]]") -> Result:
        try:
            async with asyncio.timeout(_LIST_TIMEOUT):
                return await self._ask(question)
        except TimeoutError:
            raise self._error("The server “{server}” does not answer.") from None

    async def _list_all(
        self,
        list_page: "Callable[[Client, str | None], Coroutine[Any, Any, Any]]",
        name: str,
        limit: int = MAX_LISTED,
        capability: str = "",
    ) -> tuple[Any, ...]:
        async def list_pages(client: "Client") -> tuple[Any, ...]:
            if getattr(client.server_capabilities, capability or name) is None:
                return ()
            items: list[Any] = []
            cursor: str | None = None
            for _ in range(_MAX_PAGES):
                page = await list_page(client, cursor)
                items.extend(getattr(page, name))
                cursor = page.next_cursor
                if cursor is None or len(items) >= limit:
                    break
            if cursor is not None or len(items) > limit:
                count = min(len(items), limit)
                self.log.add(f"The list of {name} is too long; the first {count} are used.", "warning")
            return tuple(items[:limit])

        return await self._with_timeout(list_pages)

    async def _ask(
        self, question: "Callable[[Client], Coroutine[Any, Any, Result]]", server_call: ServerCall | None = None
    ) -> Result:
        connection = await self.lifecycle.connected()
        self.call_count += 1
        sign_in_demands = self.lifecycle.sign_in_demands
        try:
            return await connection.ask(question, server_call)
        except AgentError:
            raise
        except Exception as error:
            reason = self.lifecycle.sign_in_reason
            if reason is not None and self.lifecycle.sign_in_demands > sign_in_demands:
                raise ToolFailed(reason, SIGN_IN_REMEDY) from None
            if is_connection_lost(error) or not connection.is_live:
                await connection.close()
                if connection.failure is not None:
                    raise ToolFailed(connection.failure.sentence, connection.failure.remedy) from None
                raise self._error(
                    "The server “{server}” ended while it was asked; what it was doing may have taken effect.",
                    "Ask again if that does no harm: the server is then started again.",
                ) from error
            if is_answer_too_large(error):
                raise self._error(
                    "The answer of the server “{server}” is too large to be read; its work may have taken effect.",
                    "Ask for less at once, or let the server offer less: it may have an option for that.",
                ) from error
            values = {"server": self.lifecycle.server.title, "why": describe_error(error, self.log)}
            sentence = Sentence("The server “{server}” refused: {why}", values).with_full_stop()
            is_call = server_call is not None
            remedy = "Correct the call, or look at the server's log." if is_call else "Look at the server's log."
            raise ToolFailed(sentence, remedy) from error

    def _error(self, template: str, remedy: str = "Look at the server's log.") -> ToolFailed:
        return ToolFailed(Sentence(template, {"server": self.lifecycle.server.title}), remedy)


async def _skip_validation(name: str, result: object) -> None:
    pass
