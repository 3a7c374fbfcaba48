"""The engine's McpServers in a test, with settings from a tuple instead of preferences."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from pydantic import SecretStr

from desktop_agent.engine.mcp_servers import McpServers
from desktop_agent.storage.secrets import SecretStore
from desktop_agent.types.mcp import HttpConnection, McpServer, ServerRequestHandlers, StdioConnection
from tests.fakes.mcp_client import own_server


class Memory(SecretStore):
    """Keeps secrets for the session only, as a person without a keyring may choose."""

    async def set(self, name: str, value: SecretStr) -> None:
        self.remember_for_session(name, value)

    async def get(self, name: str) -> SecretStr | None:
        return self._session.get(name)

    async def delete(self, name: str) -> None:
        self._session.pop(name, None)

    @property
    def kept(self) -> dict[str, str]:
        return {name: value.get_secret_value() for name, value in self._session.items()}


class Stand:
    """The servers, their states so far, and changes of the settings."""

    def __init__(
        self,
        folder: Path,
        *servers: McpServer,
        people: ServerRequestHandlers | None = None,
        document: str | None = None,
    ) -> None:
        self.configured = servers
        self.secrets = Memory()
        self.people = people or ServerRequestHandlers()
        self.servers = McpServers(
            lambda: self.configured, self.secrets, folder, lambda: self.people, client_document=document
        )
        self.states: list[str] = []
        self.servers.on_state(lambda server_id: self.states.append(self.servers.state(server_id, None).state))

    async def keep(self, servers: tuple[McpServer, ...]) -> None:
        self.configured = servers
        self.servers.apply_settings()

    async def change(self, **fields: object) -> McpServer:
        """Change fields of the first server's settings."""
        changed = self.configured[0].model_copy(update=fields)
        await self.keep((changed, *self.configured[1:]))
        return changed


@asynccontextmanager
async def stand(
    folder: Path, *servers: McpServer, people: ServerRequestHandlers | None = None, document: str | None = None
) -> AsyncIterator[Stand]:
    opened = Stand(folder, *servers, people=people, document=document)
    try:
        yield opened
    finally:
        await opened.servers.close()


def own(*words: str, server_id: str = "own", **fields: object) -> McpServer:
    """The settings of our own server, which misbehaves on request."""
    command, *args = own_server(*words)
    connection = StdioConnection(command=command, args=tuple(args))
    return McpServer(id=server_id, title=server_id.title(), connection=connection).model_copy(update=fields)


def at(url: str, **fields: object) -> McpServer:
    """The settings of a server at an address."""
    return McpServer(id="web", title="Web", connection=HttpConnection(url=url, **fields))
