"""MCP servers: configuration, state, catalog, log lines, and requests for elicitation and sampling."""

import json
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from desktop_agent.types.blocks import JsonObject, Text, ToolResult, ToolUse
from desktop_agent.types.errors import Sentence
from desktop_agent.types.provider_events import Usage
from desktop_agent.types.providers import Price
from desktop_agent.types.tool_calls import Effect, ToolClass

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


@dataclass(frozen=True, slots=True)
class McpToolInfo:
    """One tool. `name` is the server's own, `full_name` ours. `tool_class` is what counts now.

    `said` is what the server says of it; None: nothing. `on`: it may be called at all. `digest` is what it is;
    `has_changed`: the person's word was not about what it is now, and does not count. `schema` is that of its
    arguments, as a model reads it.
    """

    name: str
    full_name: str
    description: str
    tool_class: ToolClass
    declared_class: ToolClass | None
    is_enabled: bool
    digest: str = ""
    has_changed: bool = False
    # The digest tells apart what is another schema.
    schema: JsonObject = field(default_factory=dict[str, object], compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class McpServerState:
    """`off`: the person turned it off, or there is none of this id. `idle`: it starts when it is needed.

    `why` says what went wrong, and `remedy` what is to be done about it. `tools` are those that it named last;
    `omitted_parts_note` says of each that cannot be used why. One that is off has these too, once it was tried.
    `is_signed_in`: a sign-in is kept for it; None: nobody looked yet.
    """

    server_id: str
    state: Literal["off", "idle", "starting", "running", "failed", "signed_out"]
    protocol: str = ""
    reason: Sentence | None = None
    tools: tuple[McpToolInfo, ...] = ()
    unusable_tools: tuple[Sentence, ...] = ()
    remedy: Sentence | None = None
    is_signed_in: bool | None = None


@dataclass(frozen=True, slots=True)
class McpResource:
    """Something that can be read. `size` is in bytes; None: the server does not say."""

    uri: str
    name: str
    title: str
    description: str
    media_type: str
    size: int | None


@dataclass(frozen=True, slots=True)
class McpResourceTemplate:
    """An address with gaps to fill in (RFC 6570)."""

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
    """A prompt that the server has ready."""

    name: str
    title: str
    description: str
    arguments: tuple[McpPromptArgument, ...]


@dataclass(frozen=True, slots=True)
class McpServerCatalog:
    """All of one server."""

    server_id: str
    title: str
    resources: tuple[McpResource, ...] = ()
    templates: tuple[McpResourceTemplate, ...] = ()
    prompts: tuple[McpPrompt, ...] = ()


@dataclass(frozen=True, slots=True)
class ElicitationRequest:
    """Words for the person, and a form to fill in or an address to open.

    `form` is a JSON Schema of type object whose properties are texts, numbers, yes or no, or choices. `url`: the
    person is to open this page, and accepts to say so; nothing else than that goes back. `may_open_url`: it leads into
    no private network of which the server has no part, and nobody can listen.
    """

    server: str
    message: str
    form: JsonObject = field(default_factory=dict[str, object])
    url: str | None = None
    may_open_url: bool = True


@dataclass(frozen=True, slots=True)
class ElicitationAnswer:
    """`decline`: the person said no. `cancel`: the person did not answer."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, str | int | float | bool | list[str] | None] | None = None


@dataclass(frozen=True, slots=True)
class SamplingModel:
    """Who would answer a server: the server of models by its title, and the model's id and title."""

    endpoint: str
    model: str
    title: str
    price: Price | None = None


@dataclass(frozen=True, slots=True)
class SamplingTool:
    """A tool of the server that a model may ask for: the server runs it, nothing of it happens here."""

    name: str
    description: str
    schema: JsonObject


SamplingContent = str | ToolUse | ToolResult
"""A text, a call that a model asked for, or what the server says came of it."""


@dataclass(frozen=True, slots=True)
class SamplingRequest:
    """An MCP server wants a model to answer something. `messages` are who said it, and what, in order.

    `answering_model` is None as long as nobody looked, and where no model is chosen. `choice` says whether the model
    has to ask for one of the `tools`, or must not.
    """

    server: str
    messages: tuple[tuple[Literal["user", "assistant"], SamplingContent], ...]
    system_prompt: str | None
    max_tokens: int
    answering_model: SamplingModel | None = None
    tools: tuple[SamplingTool, ...] = ()
    tool_choice: Literal["auto", "required", "none"] = "auto"

    @property
    def characters(self) -> int:
        """Of all that the model would read."""
        tools = sum(len(each.name) + len(each.description) + len(json.dumps(each.schema)) for each in self.tools)
        return len(self.system_prompt or "") + tools + sum(_content_length(said) for _, said in self.messages)


@dataclass(frozen=True, slots=True)
class SamplingAnswer:
    """What the model said, and of which tools it wants calls. `is_cut`: it was not at its end."""

    text: str
    model: str
    usage: Usage | None = None
    is_truncated: bool = False
    calls: tuple[ToolUse, ...] = ()


ElicitHandler = Callable[[ElicitationRequest], Awaitable[ElicitationAnswer]]
UsageListener = Callable[[Usage], None]
"""Told what a model used, also for an answer that never came to its end."""
SampleHandler = Callable[[SamplingRequest, UsageListener], Awaitable[SamplingAnswer | None]]
ApproveSamplingRequest = Callable[[SamplingRequest], Awaitable[bool]]
ApproveSamplingAnswer = Callable[[SamplingRequest, SamplingAnswer], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class ConsentHandlers:
    """Who is asked. None: nobody is there, so that forms are declined, and no model answers for a server.

    A model answers only where a person sees both what it is asked and what it said.
    """

    elicit: ElicitHandler | None = None
    approve_sampling: ApproveSamplingRequest | None = None
    approve_answer: ApproveSamplingAnswer | None = None


@dataclass(frozen=True, slots=True)
class ServerRequestHandlers:
    """Who answers a server. `sample` has a person agree before and after the model answers; None: it did not."""

    elicit: ElicitHandler | None = None
    sample: SampleHandler | None = None


def tool_result_text(result: ToolResult) -> str:
    """What came of a call that a model asked a server for."""
    return "\n".join(part.text for part in result.content if isinstance(part, Text))


def _content_length(said: SamplingContent) -> int:
    match said:
        case str():
            return len(said)
        case ToolUse():
            return len(said.name) + len(json.dumps(said.input))
        case ToolResult():
            return len(tool_result_text(said))


@dataclass(frozen=True, slots=True)
class McpLogLine:
    """One line, when it came, and how grave the server says it is; what comes from the error stream says nothing."""

    at: datetime
    level: str
    text: str


@dataclass(frozen=True, slots=True)
class SignInPageTexts:
    """Each is a page of its own, in `language` (BCP 47)."""

    done: str = "You can close this page and go back to Desktop Agent."
    refused: str = "The sign-in was refused. You can close this page and go back to Desktop Agent."
    finished: str = "This sign-in is over."
    invalid_response: str = "This is no answer to a sign-in."
    not_found: str = "There is nothing here."
    language: str = "en"


ENGLISH_PAGE_TEXTS = SignInPageTexts()


KNOWN_KEY_PREFIXES = r"sk-|gh[a-z]_|github_pat_|glpat-|xox[a-z]-|AKIA|AIza|eyJ|hf_"
"""Part of a regular expression."""

_SECRET_OPTION = re.compile(r"--?[\w-]*(?:key|token|secret|password|passwd|auth(?!or))[\w-]*", re.IGNORECASE)


def find_option_with_secret(arguments: Sequence[str]) -> str | None:
    """The first option of a program that is given a secret in clear; a variable of a shell is none."""
    before = ""
    for each in arguments:
        option, _, value = each.partition("=")
        if _SECRET_OPTION.fullmatch(option) and value and not value.startswith("$"):
            return option
        if _SECRET_OPTION.fullmatch(before) and each and not each.startswith(("-", "$")):
            return before
        before = each
    return None
