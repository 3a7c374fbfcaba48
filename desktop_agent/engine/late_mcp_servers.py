"""The MCP servers of an engine, made late: a prompt without any loads nothing of them."""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from desktop_agent.engine.connections import Connections
from desktop_agent.storage.secrets import SecretStore
from desktop_agent.tools.tool import AnyTool
from desktop_agent.types.mcp import ConsentHandlers
from desktop_agent.types.preferences import Preferences
from desktop_agent.types.tool_calls import ToolClass

if TYPE_CHECKING:
    from desktop_agent.engine.mcp_servers import McpServers
    from desktop_agent.tools.builtin_tools import ToolSelection


class LateMcpServers:
    """Makes the MCP servers when the preferences have one, or when somebody asks for `servers`.

    `chosen_model`: as in SamplingHandler. `on_state` is called when a server starts, ends or changes.
    """

    def __init__(
        self,
        preferences: Callable[[], Preferences],
        connections: Connections,
        secrets: SecretStore,
        folder: Path,
        people: Callable[[], ConsentHandlers],
        chosen_model: Callable[[], tuple[str | None, str | None]],
        on_state: Callable[[], None],
    ) -> None:
        self._preferences = preferences
        self._connections = connections
        self._secrets = secrets
        self._folder = folder
        self._people = people
        self._chosen_model = chosen_model
        self._on_state = on_state

    @cached_property
    def servers(self) -> "McpServers":
        """The servers of the preferences."""
        from desktop_agent.engine.mcp_servers import McpServers, SamplingHandler

        preferences = self._preferences
        sampling = SamplingHandler(self._people, self._chosen_model, self._connections)
        servers = McpServers(
            lambda: preferences().mcp.servers,
            self._secrets,
            self._folder,
            sampling.handlers,
            lambda: preferences().network.private_host_names,
        )
        servers.on_state(lambda _: self._on_state())
        return servers

    @property
    def _in_use(self) -> "McpServers | None":
        return self.servers if self._preferences().mcp.servers or "servers" in vars(self) else None

    def apply_settings(self) -> None:
        """Close what was turned off, removed or connected otherwise."""
        if self._in_use is not None:
            self._in_use.apply_settings()

    async def ready(self, workspace: Path | None) -> None:
        """Wait until all enabled servers have listed their tools for a folder, or too long."""
        if self._in_use is not None:
            await self._in_use.ready(workspace)

    def tools(self, workspace: Path | None, which: "ToolSelection") -> tuple[AnyTool, ...]:
        """Return what they offer for a folder, as far as it belongs to this selection."""
        offered = () if self._in_use is None else self._in_use.tools(workspace)
        if which == "all":
            return offered
        return tuple(tool for tool in offered if which == "read" and tool.tool_class is ToolClass.READ_ONLY)

    async def close(self) -> None:
        """End all servers."""
        if self._in_use is not None:
            await self._in_use.close()
