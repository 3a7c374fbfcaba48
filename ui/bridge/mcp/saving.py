"""Keeps MCP servers as the person wants them, one wish after the other."""

import asyncio
from collections.abc import Callable, Mapping

from pydantic import SecretStr

from desktop_agent.engine.engine import Engine
from desktop_agent.vocabulary.mcp.servers import McpServer
from ui.bridge.mcp.imports import McpImports

ServerChange = Callable[[McpServer], McpServer]


class McpServerSaver:
    """A change is made to what is kept by the time when all that was wanted before it is kept."""

    def __init__(self, engine: Engine, imports: McpImports) -> None:
        self._engine = engine
        self._save_servers = imports.keep
        self._lock = asyncio.Lock()

    async def save(self, server: McpServer, secrets: Mapping[str, SecretStr]) -> None:
        """A new server, or one that is changed. Raises AgentError."""
        async with self._lock:
            await self._engine.mcp.save(server, secrets, self._save_servers)

    async def remove(self, server_id: str) -> None:
        """With its secrets. Raises AgentError."""
        async with self._lock:
            await self._engine.mcp.remove(server_id, self._save_servers)

    async def change(self, server_id: str, change: ServerChange) -> None:
        """Nothing happens if it is gone by then. Raises AgentError."""
        async with self._lock:
            for server in self._engine.preferences.mcp.servers:
                if server.id == server_id:
                    await self._engine.mcp.save(change(server), {}, self._save_servers)
