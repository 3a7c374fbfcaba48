"""One server in one folder."""

import asyncio
from dataclasses import dataclass, field

from desktop_agent.tools.mcp.offering.tools import ToolOffer
from desktop_agent.tools.mcp.server import McpClient
from desktop_agent.vocabulary.errors import AgentError
from desktop_agent.vocabulary.mcp.servers import McpServer


@dataclass(eq=False)
class ServerInstance:
    """`trouble`: why it did not say what it offers. `refreshing` asks it, or rests before it does.

    `pause`: how long it rests next, in seconds; `asked`: when it was last asked, by the loop's clock.
    """

    client: McpClient
    offer: ToolOffer = field(default_factory=ToolOffer)
    refresh_task: asyncio.Task[None] | None = None
    failure: AgentError | None = None
    is_paused: bool = False
    next_pause: float = 0.0
    refreshed_at: float = 0.0

    async def close(self) -> None:
        """End it and all that it started."""
        # Whoever listens asks for the server that took its place.
        self.client.on_state = self.client.on_tools_changed = self.client.on_catalog_changed = lambda: None
        if self.refresh_task is not None:
            self.refresh_task.cancel()
        await self.client.close()
        if self.refresh_task is not None:
            await asyncio.wait([self.refresh_task])


def has_same_connection(one: McpServer | None, other: McpServer) -> bool:
    """Whether it can go on running: all else than the connection may change meanwhile."""
    return one is not None and one.connection == other.connection
