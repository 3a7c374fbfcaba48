"""MCP servers as the person set them up."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from desktop_agent.vocabulary.tool_calls import Effect, ToolClass

CLIENT_SECRET = "client secret"  # noqa: S105 - its name
"""No variable and no header can have this name."""


class _SavedModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class StdioConnection(_SavedModel):
    """A program of this machine. `secret_env` names variables whose values lie in the keyring."""

    type: Literal["stdio"] = "stdio"
    command: str = Field(min_length=1)
    args: tuple[str, ...] = ()
    env: dict[str, str] = Field(default_factory=dict)
    secret_env: tuple[str, ...] = ()


class HttpConnection(_SavedModel):
    """A server somewhere else. `headers` are names; their values lie in the keyring.

    `sign_in`: the person signs in there with the browser (OAuth), and what comes of it lies in the keyring. `client_id`
    is as whom this program is known there, where it was made known beforehand; its secret, if it has one, lies in the
    keyring as CLIENT_SECRET.
    """

    type: Literal["http"] = "http"
    url: str = Field(pattern=r"^https?://")
    headers: tuple[str, ...] = ()
    sign_in: bool = False
    client_id: str = Field(default="", max_length=500)


class McpServer(_SavedModel):
    """One server. Its tools are named after `id`.

    `trusted`: what it says about its tools is believed, so that one that only reads is not asked about. `effects` are
    those of all its tools. `timeout` is for one call, in seconds. `classes` is the person's own word about tools, by
    the server's names of them; `chosen_for` are their digests when it was said. It counts before all that the server
    says. `off_tools` are never offered, whatever becomes of them.
    """

    id: str = Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,22}[a-z0-9])?$")
    title: str = Field(min_length=1, max_length=100)
    on: bool = True
    trusted: bool = False
    effects: frozenset[Effect] = frozenset({Effect.NETWORK, Effect.EXECUTE})
    timeout: float = Field(default=600.0, gt=0, le=3600)
    classes: dict[str, ToolClass] = Field(default_factory=dict[str, ToolClass])
    chosen_for: dict[str, str] = Field(default_factory=dict[str, str])
    off_tools: frozenset[str] = frozenset()
    connection: Annotated[StdioConnection | HttpConnection, Field(discriminator="type")]

    def tool_class_override(self, tool: str, digest: str) -> ToolClass | None:
        """What the person said of the tool that this is. A restriction holds whatever becomes of the tool."""
        said = self.classes.get(tool)
        return None if said is ToolClass.READ_ONLY and self.chosen_for.get(tool) != digest else said

    def with_tool_class_override(self, tool: str, digest: str, said: ToolClass | None) -> "McpServer":
        """The same with this word about the tool that has this digest now; None: the server's counts."""
        classes = {name: each for name, each in self.classes.items() if name != tool}
        chosen_for = {name: each for name, each in self.chosen_for.items() if name != tool}
        if said is not None:
            classes[tool], chosen_for[tool] = said, digest
        return self.model_copy(update={"classes": classes, "chosen_for": chosen_for})

    @property
    def secret_names(self) -> tuple[str, ...]:
        """Of variables or headers, whose values lie in the keyring and are given to the server."""
        connection = self.connection
        return connection.secret_env if isinstance(connection, StdioConnection) else connection.headers

    @property
    def all_secret_names(self) -> tuple[str, ...]:
        """Of all that lies in the keyring, but for the sign-in."""
        connection = self.connection
        is_known = isinstance(connection, HttpConnection) and connection.client_id
        return (*self.secret_names, CLIENT_SECRET) if is_known else self.secret_names

    def keyring_name(self, name: str) -> str:
        """Under what the value of this variable or header lies there."""
        return f"mcp/{self.id}/{name}"

    @property
    def sign_in_keyring_name(self) -> str:
        """Under what the tokens of a sign-in lie there: no variable and no header has such a name."""
        return f"mcp/{self.id}/ sign-in"
