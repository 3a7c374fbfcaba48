"""What a server may be asked for besides the work of its tools: lists in pages, resources, prompts."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from desktop_agent.tools.mcp.server_log import ServerLog
from desktop_agent.tools.mcp.wire.listings import MAX_LISTED
from desktop_agent.vocabulary.errors import Sentence, ToolFailed
from desktop_agent.vocabulary.mcp.servers import McpServer

if TYPE_CHECKING:
    from mcp.client.client import Client
    from mcp_types import GetPromptResult, Prompt, ReadResourceResult, Resource, ResourceTemplate

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
