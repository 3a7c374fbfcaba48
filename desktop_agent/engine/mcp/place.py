"""One server in one folder."""

import asyncio
from dataclasses import dataclass, field

from desktop_agent.tools.mcp.offering.tools import Offer
from desktop_agent.tools.mcp.server import LiveServer
from desktop_agent.vocabulary.errors import AgentError
from desktop_agent.vocabulary.mcp.servers import McpServer


@dataclass(eq=False)
class Running:
    """`trouble`: why it did not say what it offers. `refreshing` asks it, or rests before it does.

    `pause`: how long it rests next, in seconds; `asked`: when it was last asked, by the loop's clock.
    """

    live: LiveServer
    offer: Offer = field(default_factory=Offer)
    refreshing: asyncio.Task[None] | None = None
    trouble: AgentError | None = None
    is_resting: bool = False
    pause: float = 0.0
    asked: float = 0.0

    async def end(self) -> None:
        """End it and all that it started."""
        # Whoever listens asks for the server that took its place.
        self.live.on_state = self.live.on_change = self.live.on_contents = lambda: None
        if self.refreshing is not None:
            self.refreshing.cancel()
        await self.live.close()
        if self.refreshing is not None:
            await asyncio.wait([self.refreshing])


def is_same(one: McpServer | None, other: McpServer) -> bool:
    """Whether it can go on running: all else than the connection may change meanwhile."""
    return one is not None and one.connection == other.connection
