"""Servers of tools as the person set them up."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from desktop_agent.vocabulary.tool_calls import Effect


class _Kept(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class StdioConnection(_Kept):
    """A program of this machine. `secret_env` names variables whose values lie in the keyring."""

    type: Literal["stdio"] = "stdio"
    command: str = Field(min_length=1)
    args: tuple[str, ...] = ()
    env: dict[str, str] = Field(default_factory=dict)
    secret_env: tuple[str, ...] = ()


class HttpConnection(_Kept):
    """A server somewhere else. `headers` are names; their values lie in the keyring."""

    type: Literal["http"] = "http"
    url: str = Field(pattern=r"^https?://")
    headers: tuple[str, ...] = ()


class McpServer(_Kept):
    """One server. Its tools are named after `id`.

    `trusted`: what it says about its tools is believed, so that one that only reads is not asked about. `effects` are
    those of all its tools. `timeout` is for one call, in seconds.
    """

    id: str = Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,22}[a-z0-9])?$")
    title: str = Field(min_length=1, max_length=100)
    on: bool = True
    trusted: bool = False
    effects: frozenset[Effect] = frozenset({Effect.NETWORK, Effect.EXECUTE})
    timeout: float = Field(default=600.0, gt=0, le=3600)
    connection: Annotated[StdioConnection | HttpConnection, Field(discriminator="type")]

    @property
    def secret_names(self) -> tuple[str, ...]:
        """Of variables or headers, whose values lie in the keyring."""
        connection = self.connection
        return connection.secret_env if isinstance(connection, StdioConnection) else connection.headers

    def keyring_name(self, name: str) -> str:
        """Under what the value of this variable or header lies there."""
        return f"mcp/{self.id}/{name}"
