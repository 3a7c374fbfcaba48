"""Model providers: endpoints, requests and their configuration, capabilities, prices, limits, models, model files."""

import ipaddress
from dataclasses import dataclass, field, fields, replace
from datetime import date, datetime
from enum import StrEnum
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import Field

from desktop_agent.data_files import load_table
from desktop_agent.types.blocks import SUPPORTED_MEDIA_TYPES, JsonObject, MediaType
from desktop_agent.types.dialects import Dialect
from desktop_agent.types.errors import RemedyAction, Sentence, WrongUse
from desktop_agent.types.frozen_model import EMPTY, FrozenModel, ListOrTuple, OptionalNumber
from desktop_agent.types.messages import Message
from desktop_agent.types.tool_calls import ToolSpec

Effort = Literal["minimal", "low", "medium", "high", "xhigh", "max"]


class ReasoningDisabled(FrozenModel):
    """Ask the model not to reason, where it can be asked."""

    type: Literal["disabled"] = "disabled"


class ReasoningEffort(FrozenModel):
    """Reason with this effort."""

    type: Literal["effort"] = "effort"
    level: Effort = "medium"


class ReasoningAdaptive(FrozenModel):
    """Let the model decide how much to reason."""

    type: Literal["adaptive"] = "adaptive"


class ReasoningBetweenTools(FrozenModel):
    """Reason only between calls of tools, not before the answer."""

    type: Literal["between_tools"] = "between_tools"


class ReasoningBudget(FrozenModel):
    """Reason for at most so many tokens."""

    type: Literal["budget"] = "budget"
    tokens: int = Field(ge=1)


Reasoning = Annotated[
    ReasoningDisabled | ReasoningEffort | ReasoningAdaptive | ReasoningBetweenTools | ReasoningBudget,
    Field(discriminator="type"),
]
ReasoningMode = Literal["disabled", "effort", "adaptive", "between_tools", "budget"]


class JsonFormat(FrozenModel):
    """Answer with JSON: of this schema (JSON Schema), or any object. `strict`: exactly so, where the server can."""

    json_schema: JsonObject | None = None
    name: str = Field(default="answer", pattern=r"^[a-zA-Z0-9_-]{1,64}$")
    strict: bool = True


class PromptCaching(FrozenModel):
    """Whether and for how long servers may cache the prompt, so that the next request costs less.

    `short` is the server's shortest time, minutes; `long` the next one, about an hour, which costs more to write.
    """

    enabled: bool = True
    lifetime: Literal["short", "long"] = "short"


HEADERS_TIMEOUT = 120.0
FIRST_EVENT_TIMEOUT = 300.0
SLOW_START_TIMEOUT = 900.0


class Timeouts(FrozenModel):
    """Time limits in seconds.

    `headers` is from the sent request to the headers of the response, `first_event` the longest silence from there to
    the first event, `idle` the longest one after it, `total` the whole answer (None: no limit). Signs of life, such as
    comments, end a silence. Where `headers` or `first_event` is None, `for_start` fills it in.
    """

    connect: float = Field(default=10.0, gt=0)
    headers: float | None = Field(default=None, gt=0)
    first_event: float | None = Field(default=None, gt=0)
    idle: float = Field(default=300.0, gt=0)
    total: float | None = Field(default=None, gt=0)

    def for_start(self, *, slow: bool) -> "Timeouts":
        """Fill in the two limits of the start. `slow`: the server loads a model, or the model reasons first."""
        headers = self.headers or (SLOW_START_TIMEOUT if slow else HEADERS_TIMEOUT)
        first_event = self.first_event or (SLOW_START_TIMEOUT if slow else FIRST_EVENT_TIMEOUT)
        return self.model_copy(update={"headers": headers, "first_event": first_event})


class ConversationParameters(FrozenModel):
    """What the person may set for one conversation. None is not sent, so that the server's own default holds."""

    temperature: Annotated[float | None, OptionalNumber("0.7")] = Field(
        default=None,
        ge=0,
        le=2,
        title="Temperature",
        description="From 0, the most predictable, to 2, the most varied.",
    )
    top_p: Annotated[float | None, OptionalNumber("0.9")] = Field(
        default=None,
        ge=0,
        le=1,
        title="Top-p",
        description="Only the likeliest words that together reach this share, from 0 to 1.",
    )
    max_tokens: Annotated[int | None, OptionalNumber("4096")] = Field(
        default=None,
        ge=1,
        title="Maximum tokens",
        description="The longest answer. One that reaches it is cut, and can be continued.",
    )
    system_prompt: str | None = Field(
        default=None,
        title="System prompt",
        description="Sent to the model before everything else. If this is empty, the instructions in the settings "
        "are used.",
    )


class ProviderConfig(ConversationParameters):
    """How to ask: the parameters of the conversation, and everything else.

    `show_reasoning` asks for summaries of reasoning where a server sends none by itself. `extra_options` are merged
    into the request's body last and win: `tools` there, such as a server's own, are sent in place of all others.
    """

    top_k: int | None = Field(default=None, ge=1)
    reasoning: Reasoning | None = None
    show_reasoning: bool = True
    response_format: JsonFormat | None = None
    caching: PromptCaching = PromptCaching()
    stop_sequences: ListOrTuple[str] = EMPTY
    extra_options: JsonObject = Field(default_factory=dict)
    timeouts: Timeouts = Timeouts()


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """auto, none, required, or one tool by name."""

    mode: Literal["auto", "none", "required", "named"] = "auto"
    name: str | None = None


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request to a model: the whole history, images as bytes or web addresses, never as stored files.

    `text_only`: also a model that makes images is asked for none.
    """

    model: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: ToolChoice = ToolChoice()
    config: ProviderConfig = field(default_factory=ProviderConfig)
    conversation_id: str | None = None
    text_only: bool = False


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a model can do. None is unknown, which is not "no".

    `reasoning_modes` are the kinds of Reasoning that it takes; `efforts` its levels, `budget` the least and the most
    tokens. `sampling`: takes temperature, top_p and top_k. `forced_tools`: takes a tool choice of required or named.
    `binds_prefix`: takes its reasoning back only behind exactly what it was made from. `late_system`: takes
    instructions in the middle of a conversation. `cache_minimum`: the shortest prompt that is cached, in tokens.
    `outputs`: what it answers with.
    """

    images: bool | None = None
    tools: bool | None = None
    reasoning: bool | None = None
    context_window: Annotated[int, Field(ge=1)] | None = None
    max_output_tokens: Annotated[int, Field(ge=1)] | None = None
    reasoning_modes: frozenset[ReasoningMode] | None = None
    efforts: tuple[Effort, ...] | None = None
    default_effort: Effort | None = None
    reasons_by_default: bool | None = None
    budget: tuple[int, int] | None = None
    sampling: bool | None = None
    structured_output: bool | None = None
    forced_tools: bool | None = None
    binds_prefix: bool | None = None
    late_system: bool | None = None
    cache_minimum: Annotated[int, Field(ge=0)] | None = None
    outputs: tuple[Literal["image", "text"], ...] | None = None

    @property
    def makes_images(self) -> bool:
        """Return whether it is known to answer with pictures."""
        return "image" in (self.outputs or ())

    def over(self, other: "Capabilities") -> "Capabilities":
        """Return these, with the other's values where these are unknown."""
        known = {capability.name: getattr(self, capability.name) for capability in fields(self)}
        return replace(other, **{name: value for name, value in known.items() if value is not None})


class Price(FrozenModel):
    """US dollars for a million tokens; None: unknown. `cache_write_long`: with the longer lifetime.

    Where a vendor takes more for long prompts, an answer whose prompt has more than `beyond` tokens costs `long`.
    """

    input: float | None = Field(default=None, ge=0)
    output: float | None = Field(default=None, ge=0)
    cache_read: float | None = Field(default=None, ge=0)
    cache_write: float | None = Field(default=None, ge=0)
    cache_write_long: float | None = Field(default=None, ge=0)
    beyond: int | None = Field(default=None, ge=1)
    long: "Price | None" = None


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """One model: what its provider lists, and what is known besides. `retires` is the day of its end."""

    id: str
    title: str | None = None
    capabilities: Capabilities = field(default_factory=Capabilities)
    price: Price | None = None
    retires: date | None = None


@dataclass(frozen=True, slots=True)
class ImageLimits:
    """What a provider accepts of pictures. Bytes are those of the file; edges are in pixels; None: no known limit.

    With more than `many_images` pictures in one request, each has at most `many_images_max_edge`. Beyond
    `downscale_edge` the provider scales down itself, so sending more is waste. Messages of the
    assistant have no pictures but those that the provider `in_answers_of` made, with their state.
    """

    media_types: tuple[MediaType, ...] = SUPPORTED_MEDIA_TYPES
    max_bytes: int | None = None
    max_edge: int | None = None
    max_count: int | None = None
    many_images: int | None = None
    many_images_max_edge: int | None = None
    downscale_edge: int | None = None
    accepts_animated: bool = True
    accepts_urls: bool = True
    in_answers_of: str = ""


@dataclass(frozen=True, slots=True)
class TokenCount:
    """The length of a request. `margin` is the possible error of an estimate, as a share; 0 for a server's count."""

    tokens: int
    margin: float = 0.0


@dataclass(frozen=True, slots=True)
class CachedPrompt:
    """A prompt that a server keeps. `name` is the server's own, where it has one."""

    name: str | None = None
    tokens: int | None = None
    expires_at: datetime | None = None


@dataclass(slots=True)
class ProviderState:
    """Totals of one provider object, readable at any moment, also while a stream runs."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    request_count: int = 0
    last_request_time: datetime | None = None
    conversation_turns: int = 0
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])


EndpointKind = Literal["local", "cloud", "custom", "demo"]


def is_loopback(host: str) -> bool:
    """Return whether the host is this machine itself: localhost, its sub-names (RFC 6761), 127.0.0.0/8 and ::1."""
    name = host.strip("[]").rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


class Endpoint(FrozenModel):
    """One server as the person knows it. Its key is in the keyring under `id`.

    `has_key` says whether the keyring has one; None is unknown: a preset, or saved by an older version. `mirrors` are
    further addresses of the same service, which get the same key: they are asked when the first fails. `models` are
    names that the person typed, for a server that does not list its models.
    """

    id: str = Field(min_length=1)
    title: str
    dialect: Dialect = "openai-chat"
    base_url: str
    mirrors: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    kind: EndpointKind = "custom"
    needs_key: bool = False
    has_key: bool | None = None
    key_page: str | None = None

    @property
    def origins(self) -> frozenset[str]:
        """Scheme, host and port of every address: its key goes to no other."""
        return frozenset(_origin(address) for address in (self.base_url, *self.mirrors))

    @property
    def may_have_key(self) -> bool:
        """Whether to ask the keyring for its key: that may open windows of the system where the keyring is locked.

        Servers of this machine need none unless they were given one.
        """
        if self.has_key is not None:
            return self.needs_key or self.has_key
        addresses = (self.base_url, *self.mirrors)
        return self.needs_key or not all(is_loopback(urlsplit(address).hostname or "") for address in addresses)


class NoModelChosen(WrongUse):
    """Nobody can be asked: no model is chosen, or no server."""

    action = RemedyAction.CHOOSE_MODEL
    default_remedy = "Choose a model first."


def _origin(address: str) -> str:
    parts = urlsplit(address)
    scheme = parts.scheme.lower()
    port = parts.port or {"http": 80, "https": 443}.get(scheme)
    return f"{scheme}://{parts.hostname or ''}:{port}"


_ENDPOINTS = load_table(__name__, "endpoints.toml")
LOCAL_SERVERS = tuple(Endpoint(**values, kind="local") for values in _ENDPOINTS["local"])
CLOUD_PROVIDERS = tuple(Endpoint(**values, kind="cloud", needs_key=True) for values in _ENDPOINTS["cloud"])


DEMO_ENDPOINT, DEMO_MODEL = "demo", "demo"
"""The ids of the offline demo and of its scripted model."""
LOCAL_ENDPOINT = "local-models"
"""The id of the endpoint that runs model files. Its server starts with the first request."""


class LocalModel(FrozenModel):
    """A model file in the GGUF format. `id` is the model's name in conversations; `path` the first file of several.

    `size` is in bytes, of all its files. `source` is the program that keeps it, empty for a file that the person chose.
    None is what its header does not say.
    """

    id: str = Field(min_length=1, max_length=300)
    path: str
    size: int = Field(ge=0)
    source: str = ""
    name: str | None = None
    architecture: str | None = None
    context_length: int | None = Field(default=None, ge=1)
    quantisation: str | None = None


class LocalPhase(StrEnum):
    """What the server of model files does."""

    STOPPED = "stopped"
    LOADING = "loading"
    READY = "ready"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class LocalState:
    """The phase, the model, and the memory that the server takes, in bytes. `remark` says why it stopped or failed."""

    phase: LocalPhase = LocalPhase.STOPPED
    model: LocalModel | None = None
    memory: int | None = None
    remark: Sentence | None = None


@dataclass(frozen=True, slots=True)
class FoundModels:
    """The model files on this computer, and the path of the llama.cpp server; None where there is none."""

    models: tuple[LocalModel, ...]
    program: str | None


def local_endpoint(models: tuple[LocalModel, ...]) -> Endpoint | None:
    """Return the endpoint of the chosen model files; its address is not used, for each start has another one."""
    if not models:
        return None
    names = tuple(model.id for model in models)
    title, address = "Models on this computer", "http://127.0.0.1/v1"
    return Endpoint(id=LOCAL_ENDPOINT, title=title, base_url=address, kind="local", models=names, has_key=False)
