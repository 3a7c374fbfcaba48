"""MCP servers: configuration, state, catalog, log lines, and requests for elicitation and sampling."""

import json
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from desktop_agent.types.blocks import JsonObject, Text, ToolResult, ToolUse
from desktop_agent.types.errors import Sentence
from desktop_agent.types.frozen_model import FrozenModel
from desktop_agent.types.provider_events import Usage
from desktop_agent.types.providers import Price
from desktop_agent.types.tool_calls import Effect, ToolClass, ToolSpec

CLIENT_SECRET = "client secret"  # noqa: S105 - its name
"""The name of the secret; no variable and no header can have it."""


class StdioConnection(FrozenModel):
    """A program of this machine. `secret_env` are names of variables whose values are in the keyring."""

    type: Literal["stdio"] = "stdio"
    command: str = Field(min_length=1)
    args: tuple[str, ...] = ()
    env: dict[str, str] = Field(default_factory=dict)
    secret_env: tuple[str, ...] = ()


class HttpConnection(FrozenModel):
    """A remote server. `headers` are names; their values are in the keyring.

    `sign_in`: the person signs in there with the browser (OAuth); the tokens are in the keyring. `client_id` is the id
    of this program where it was registered beforehand; its secret, if there is one, is in the keyring as CLIENT_SECRET.
    """

    type: Literal["http"] = "http"
    url: str = Field(pattern=r"^https?://")
    headers: tuple[str, ...] = ()
    sign_in: bool = False
    client_id: str = Field(default="", max_length=500)


class McpServer(FrozenModel):
    """One server. Its tools are named after `id`.

    `trusted`: its annotations are believed, so that a tool that only reads is not asked about. `effects` are those of
    all its tools. `timeout` is for one call, in seconds. `classes` are the person's own choices of tool classes, by the
    server's names of the tools, and `chosen_for` the tools' digests at that time; they override what the server
    declares. `off_tools` are never offered, however they change.
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

    def has_same_connection(self, other: "McpServer | None") -> bool:
        """Return whether both have the same connection, so that a running server goes on with the settings of the
        other.
        """
        return other is not None and self.connection == other.connection

    def tool_class_override(self, tool: str, digest: str) -> ToolClass | None:
        """Return the person's choice for the tool with this digest. A restriction holds however the tool changes."""
        chosen = self.classes.get(tool)
        return None if chosen is ToolClass.READ_ONLY and self.chosen_for.get(tool) != digest else chosen

    def with_tool_class_override(self, tool: str, digest: str, tool_class: ToolClass | None) -> "McpServer":
        """Return the server with this choice for a tool and its digest; None: what the server declares counts."""
        classes = {name: value for name, value in self.classes.items() if name != tool}
        chosen_for = {name: value for name, value in self.chosen_for.items() if name != tool}
        if tool_class is not None:
            classes[tool], chosen_for[tool] = tool_class, digest
        return self.model_copy(update={"classes": classes, "chosen_for": chosen_for})

    @property
    def secret_names(self) -> tuple[str, ...]:
        """Names of variables or headers whose values are in the keyring and are given to the server."""
        connection = self.connection
        return connection.secret_env if isinstance(connection, StdioConnection) else connection.headers

    @property
    def all_secret_names(self) -> tuple[str, ...]:
        """Names of everything in the keyring but the tokens."""
        connection = self.connection
        has_client_id = isinstance(connection, HttpConnection) and connection.client_id
        return (*self.secret_names, CLIENT_SECRET) if has_client_id else self.secret_names

    def secret_name(self, name: str) -> str:
        """Return the keyring's name for the value of a variable or header."""
        return f"mcp/{self.id}/{name}"

    @property
    def sign_in_secret_name(self) -> str:
        """The keyring's name for the tokens; no variable and no header can have it."""
        return f"mcp/{self.id}/ sign-in"


@dataclass(frozen=True, slots=True)
class McpToolInfo:
    """One tool. `name` is the server's own, `full_name` ours. `tool_class` is the class that counts now.

    `declared_class` is what the server declares; None: nothing. `has_changed`: the person's choice was for another
    digest, and does not count. `schema` is that of its arguments, as a model reads it.
    """

    name: str
    full_name: str
    description: str
    tool_class: ToolClass
    declared_class: ToolClass | None
    is_enabled: bool
    digest: str = ""
    has_changed: bool = False
    # Not compared: another schema has another digest.
    schema: JsonObject = field(default_factory=dict[str, object], compare=False, repr=False)


McpStateName = Literal["off", "idle", "starting", "running", "failed", "signed_out"]


@dataclass(frozen=True, slots=True)
class McpServerState:
    """The state of a server. `off`: turned off, or unknown. `idle`: it starts when it is needed.

    `reason` and `remedy` explain a failure. `tools` are those of the last listing, `unusable_tools` says why others
    cannot be used; a server that is off has them too, once it was tested. `is_signed_in` None: not checked yet.
    """

    server_id: str
    state: McpStateName
    protocol: str = ""
    reason: Sentence | None = None
    tools: tuple[McpToolInfo, ...] = ()
    unusable_tools: tuple[Sentence, ...] = ()
    remedy: Sentence | None = None
    is_signed_in: bool | None = None


@dataclass(frozen=True, slots=True)
class McpResource:
    """Something that can be read. `size` is in bytes; None: unknown."""

    uri: str
    name: str
    title: str
    description: str
    media_type: str
    size: int | None


@dataclass(frozen=True, slots=True)
class McpResourceTemplate:
    """A URI with parts to fill in (RFC 6570)."""

    uri_template: str
    name: str
    title: str
    description: str


@dataclass(frozen=True, slots=True)
class McpPromptArgument:
    """A text that a prompt is filled with."""

    name: str
    description: str
    required: bool


@dataclass(frozen=True, slots=True)
class McpPrompt:
    """A prompt that the server offers."""

    name: str
    title: str
    description: str
    arguments: tuple[McpPromptArgument, ...]


@dataclass(frozen=True, slots=True)
class McpServerCatalog:
    """Everything that one server offers beside tools."""

    server_id: str
    title: str
    resources: tuple[McpResource, ...] = ()
    templates: tuple[McpResourceTemplate, ...] = ()
    prompts: tuple[McpPrompt, ...] = ()


@dataclass(frozen=True, slots=True)
class ElicitationRequest:
    """A server's question to the person: a form to fill in, or a page to open.

    `form` is a JSON Schema of type object whose properties are texts, numbers, booleans or choices. `url`: the person
    is to open this page, and accepts to say so; nothing else goes back. `may_open_url`: it leads into no private
    network but the server's own, and nobody can listen. `conversation_id`: that whose call the server asks for; None
    where it is not known.
    """

    server: str
    message: str
    form: JsonObject = field(default_factory=dict[str, object])
    url: str | None = None
    may_open_url: bool = True
    conversation_id: str | None = None


@dataclass(frozen=True, slots=True)
class ElicitationAnswer:
    """The answer. `decline`: the person refused. `cancel`: the person did not answer."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, str | int | float | bool | list[str] | None] | None = None


@dataclass(frozen=True, slots=True)
class SamplingModel:
    """The model that would answer a server: the title of its endpoint, its id and its title."""

    endpoint: str
    model: str
    title: str
    price: Price | None = None


SamplingContent = str | ToolUse | ToolResult
"""A text, a model's call of a tool, or the server's result of it."""


@dataclass(frozen=True, slots=True)
class SamplingRequest:
    """An MCP server wants a model to answer. `messages` are roles and contents, in order.

    `answering_model` is None until it is looked up, and where no model is chosen. `tool_choice` says whether the model
    has to call one of the `tools`, or must not; the server runs them, nothing happens here. `conversation_id`: as in
    ElicitationRequest.
    """

    server: str
    messages: tuple[tuple[Literal["user", "assistant"], SamplingContent], ...]
    system_prompt: str | None
    max_tokens: int
    answering_model: SamplingModel | None = None
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: Literal["auto", "required", "none"] = "auto"
    conversation_id: str | None = None

    @property
    def characters(self) -> int:
        """The length of everything that the model would read."""
        tools = sum(len(tool.name) + len(tool.description) + len(json.dumps(tool.input_schema)) for tool in self.tools)
        return len(self.system_prompt or "") + tools + sum(_content_length(content) for _, content in self.messages)


@dataclass(frozen=True, slots=True)
class SamplingAnswer:
    """The model's answer, with its calls of the server's tools."""

    text: str
    model: str
    usage: Usage | None = None
    is_truncated: bool = False
    calls: tuple[ToolUse, ...] = ()


ElicitHandler = Callable[[ElicitationRequest], Awaitable[ElicitationAnswer]]
UsageListener = Callable[[Usage], None]
"""Called with what a model used, also for an answer that broke off."""


@dataclass(frozen=True, eq=False, slots=True)
class ServerCall:
    """A request to a server, until it has answered; no two are equal.

    `conversation_id`: that for which the request is made. `on_usage` is called with the usage of models that answer
    the server meanwhile.
    """

    conversation_id: str | None = None
    on_usage: UsageListener | None = None


SampleHandler = Callable[[SamplingRequest, UsageListener], Awaitable[SamplingAnswer | None]]
ApproveSamplingRequest = Callable[[SamplingRequest], Awaitable[bool]]
ApproveSamplingAnswer = Callable[[SamplingRequest, SamplingAnswer], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class ConsentHandlers:
    """Functions that ask the person. None: nobody is there, so forms are declined, and no model answers a server.

    A model answers only where a person sees both the request and the answer.
    """

    elicit: ElicitHandler | None = None
    approve_sampling: ApproveSamplingRequest | None = None
    approve_answer: ApproveSamplingAnswer | None = None


@dataclass(frozen=True, slots=True)
class ServerRequestHandlers:
    """Functions that answer a server. `sample` asks the person before and after the model; it returns None without
    consent.
    """

    elicit: ElicitHandler | None = None
    sample: SampleHandler | None = None


def tool_result_text(result: ToolResult) -> str:
    """Return the text of a result."""
    return "\n".join(part.text for part in result.content if isinstance(part, Text))


def _content_length(content: SamplingContent) -> int:
    match content:
        case str():
            return len(content)
        case ToolUse():
            return len(content.name) + len(json.dumps(content.input))
        case ToolResult():
            return len(tool_result_text(content))


@dataclass(frozen=True, slots=True)
class McpLogLine:
    """One line, its time, and the server's level for it; empty for lines of the error stream."""

    at: datetime
    level: str
    text: str


@dataclass(frozen=True, slots=True)
class SignInPageTexts:
    """Texts of the pages that the browser shows, in `language` (BCP 47)."""

    done: str = "You can close this page and go back to Desktop Agent."
    refused: str = "The sign-in was refused. You can close this page and go back to Desktop Agent."
    finished: str = "This sign-in has ended."
    invalid_response: str = "This is not an answer to a sign-in."
    not_found: str = "There is nothing here."
    language: str = "en"


ENGLISH_PAGE_TEXTS = SignInPageTexts()


KNOWN_KEY_PREFIXES = r"sk-|gh[a-z]_|github_pat_|glpat-|xox[a-z]-|AKIA|AIza|eyJ|hf_"
"""Part of a regular expression."""

_SECRET_OPTION = re.compile(r"--?[\w-]*(?:key|token|secret|password|passwd|auth(?!or))[\w-]*", re.IGNORECASE)


def find_option_with_secret(arguments: Sequence[str]) -> str | None:
    """Return the first option of a command line with a secret in clear; a shell variable is none."""
    previous = ""
    for argument in arguments:
        option, _, value = argument.partition("=")
        if _SECRET_OPTION.fullmatch(option) and value and not value.startswith("$"):
            return option
        if _SECRET_OPTION.fullmatch(previous) and argument and not argument.startswith(("-", "$")):
            return previous
        previous = argument
    return None
