"""Model providers: endpoints, requests and their configuration, capabilities, prices, limits and models."""

import ipaddress
from dataclasses import dataclass, field, fields, replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field

from desktop_agent.types.blocks import SUPPORTED_MEDIA_TYPES, JsonObject, MediaType
from desktop_agent.types.dialects import Dialect
from desktop_agent.types.messages import Message
from desktop_agent.types.tool_calls import ToolSpec


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


Effort = Literal["minimal", "low", "medium", "high", "xhigh", "max"]


class ReasoningDisabled(_Frozen):
    """Ask the model not to reason, where it can be asked."""

    type: Literal["disabled"] = "disabled"


class ReasoningEffort(_Frozen):
    """Reason this hard."""

    type: Literal["effort"] = "effort"
    level: Effort = "medium"


class ReasoningAdaptive(_Frozen):
    """Let the model decide how much."""

    type: Literal["adaptive"] = "adaptive"


class ReasoningBetweenTools(_Frozen):
    """Not before the answer, only between calls of tools."""

    type: Literal["between_tools"] = "between_tools"


class ReasoningBudget(_Frozen):
    """Reason for at most so many tokens."""

    type: Literal["budget"] = "budget"
    tokens: int = Field(ge=1)


Reasoning = Annotated[
    ReasoningDisabled | ReasoningEffort | ReasoningAdaptive | ReasoningBetweenTools | ReasoningBudget,
    Field(discriminator="type"),
]
ReasoningMode = Literal["disabled", "effort", "adaptive", "between_tools", "budget"]


class JsonFormat(_Frozen):
    """Answer with JSON: of this schema (JSON Schema), or any object. `strict`: exactly so, where the server can."""

    json_schema: JsonObject | None = None
    name: str = Field(default="answer", pattern=r"^[a-zA-Z0-9_-]{1,64}$")
    strict: bool = True


class PromptCaching(_Frozen):
    """Whether servers may keep what was read, so that the next question costs less; and for how long.

    `short` is the server's shortest time, minutes; `long` the next one, about an hour, which costs more to write.
    """

    enabled: bool = True
    lifetime: Literal["short", "long"] = "short"


HEADERS_TIMEOUT = 120.0
FIRST_EVENT_TIMEOUT = 300.0
SLOW_START_TIMEOUT = 900.0


class Timeouts(_Frozen):
    """Seconds.

    `headers` is from the request that was sent to the headers of the answer, `first_event` the longest silence from
    there to the first event, `idle` the longest one after it, `total` the whole answer (None: no limit). Signs of life,
    such as comments, end a silence. Where `headers` or `first_event` is None, `for_start` fills it in.
    """

    connect: float = Field(default=10.0, gt=0)
    headers: float | None = Field(default=None, gt=0)
    first_event: float | None = Field(default=None, gt=0)
    idle: float = Field(default=300.0, gt=0)
    total: float | None = Field(default=None, gt=0)

    def for_start(self, *, slow: bool) -> "Timeouts":
        """The same with the two limits of the start filled in. `slow`: the server loads a model, or the model reasons
        before it says anything."""
        headers = self.headers or (SLOW_START_TIMEOUT if slow else HEADERS_TIMEOUT)
        first_event = self.first_event or (SLOW_START_TIMEOUT if slow else FIRST_EVENT_TIMEOUT)
        return self.model_copy(update={"headers": headers, "first_event": first_event})


class ConversationParameters(_Frozen):
    """What the person may set for one conversation. None is not sent, so that the server's own default holds."""

    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, ge=0, le=1)
    max_tokens: int | None = Field(default=None, ge=1)
    system_prompt: str | None = None


class ProviderConfig(ConversationParameters):
    """How to ask: the parameters of the conversation, and everything else.

    `show_reasoning` asks for summaries of reasoning where a server sends none by itself. `extra_options` are merged
    into the request's body last and win.
    """

    top_k: int | None = Field(default=None, ge=1)
    reasoning: Reasoning | None = None
    show_reasoning: bool = True
    response_format: JsonFormat | None = None
    caching: PromptCaching = PromptCaching()
    stop_sequences: tuple[str, ...] = ()
    extra_options: JsonObject = Field(default_factory=dict)
    timeouts: Timeouts = Timeouts()

    if TYPE_CHECKING:

        def __init__(  # noqa: PLR0913
            self,
            *,
            temperature: float | None = None,
            max_tokens: int | None = None,
            top_p: float | None = None,
            top_k: int | None = None,
            reasoning: Reasoning | None = None,
            show_reasoning: bool = True,
            response_format: JsonFormat | None = None,
            caching: PromptCaching = ...,
            system_prompt: str | None = None,
            stop_sequences: list[str] | tuple[str, ...] = (),
            extra_options: JsonObject = ...,
            timeouts: Timeouts = ...,
        ) -> None: ...


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """auto, none, required, or one tool by name."""

    mode: Literal["auto", "none", "required", "named"] = "auto"
    name: str | None = None


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One question to one model: the whole history, images as bytes or web addresses, never as stored files."""

    model: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: ToolChoice = ToolChoice()
    config: ProviderConfig = field(default_factory=ProviderConfig)
    conversation_id: str | None = None


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a model can do. None is "nobody says", which is not "no".

    `reasoning_modes` are the kinds of Reasoning that it takes; `efforts` its levels, `budget` the least and the most
    tokens. `sampling`: takes temperature, top_p and top_k. `forced_tools`: takes a tool choice of required or named.
    `binds_prefix`: takes its reasoning back only behind exactly what it was made from. `late_system`: takes
    instructions in the middle of a conversation. `cache_minimum`: the shortest prompt that is cached, in tokens.
    """

    images: bool | None = None
    tools: bool | None = None
    reasoning: bool | None = None
    context_window: int | None = None
    max_output_tokens: int | None = None
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
    cache_minimum: int | None = None

    def over(self, other: "Capabilities") -> "Capabilities":
        """These, and what only the other says."""
        mine = {each.name: getattr(self, each.name) for each in fields(self)}
        return replace(other, **{name: value for name, value in mine.items() if value is not None})


class Price(_Frozen):
    """US dollars for a million tokens. None: nobody says. `cache_write_long`: with the longer lifetime.

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
    """One model: what its provider's listing says, and what is known besides. `retires` is the day it goes."""

    id: str
    title: str | None = None
    capabilities: Capabilities = field(default_factory=Capabilities)
    price: Price | None = None
    retires: date | None = None


@dataclass(frozen=True, slots=True)
class ImageLimits:
    """What a provider takes of pictures. Bytes are those of the file; edges are in pixels; None: no limit is known.

    More than `crowd` pictures in one request: each at most `many_images_max_edge`. Beyond `downscale_edge` the
    provider scales down itself, so sending more is waste. `moving`: whether animated pictures are taken.
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


@dataclass(frozen=True, slots=True)
class TokenCount:
    """How long a request is. `margin` is by how much an estimate may be off, as a share; 0 where the server counted."""

    tokens: int
    margin: float = 0.0


@dataclass(frozen=True, slots=True)
class CachedPrompt:
    """A prompt that a server keeps ready. `name` is the server's own, where it has one."""

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
    """Whether the host is this machine itself: localhost, its sub-names (RFC 6761), 127.0.0.0/8 and ::1."""
    name = host.strip("[]").rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


class Endpoint(BaseModel):
    """One server as the person knows it. The key is not here: it lies in the keyring under `id`.

    `has_key` says whether one was put there; None is not known: a preset, or saved by a version that did not say it.
    `mirrors` are further addresses of the same service, which get the same key: they are asked when the first fails.
    `models` are names that the person typed, for a server that does not list its models.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

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
        """Scheme, host and port of every address: a key that was given for these goes to no other."""
        return frozenset(_origin(each) for each in (self.base_url, *self.mirrors))

    @property
    def may_have_key(self) -> bool:
        """Whether the keyring is to be asked for its key: asking opens windows of the system where it is locked.

        Servers of this machine want none unless they were given one.
        """
        if self.has_key is not None:
            return self.needs_key or self.has_key
        addresses = (self.base_url, *self.mirrors)
        return self.needs_key or not all(is_loopback(urlsplit(each).hostname or "") for each in addresses)


def _origin(address: str) -> str:
    parts = urlsplit(address)
    scheme = parts.scheme.lower()
    port = parts.port or {"http": 80, "https": 443}.get(scheme)
    return f"{scheme}://{parts.hostname or ''}:{port}"


LOCAL_SERVERS: tuple[Endpoint, ...] = (
    Endpoint(id="ollama", title="Ollama", base_url="http://127.0.0.1:11434/v1", kind="local"),
    Endpoint(id="lmstudio", title="LM Studio", base_url="http://127.0.0.1:1234/v1", kind="local"),
    Endpoint(id="llamacpp", title="llama.cpp", base_url="http://127.0.0.1:8080/v1", kind="local"),
    Endpoint(id="vllm", title="vLLM", base_url="http://127.0.0.1:8000/v1", kind="local"),
)


def _cloud_endpoint(id_: str, title: str, base_url: str, key_page: str, dialect: Dialect = "openai-chat") -> Endpoint:
    return Endpoint(
        id=id_, title=title, dialect=dialect, base_url=base_url, kind="cloud", needs_key=True, key_page=key_page
    )


CLOUD_PROVIDERS: tuple[Endpoint, ...] = (
    _cloud_endpoint(
        "anthropic",
        "Anthropic",
        "https://api.anthropic.com",
        "https://platform.claude.com/settings/keys",
        "anthropic",
    ),
    _cloud_endpoint(
        "openai", "OpenAI", "https://api.openai.com/v1", "https://platform.openai.com/api-keys", "openai-responses"
    ),
    _cloud_endpoint(
        "gemini",
        "Google Gemini",
        "https://generativelanguage.googleapis.com",
        "https://aistudio.google.com/apikey",
        "gemini",
    ),
    _cloud_endpoint("openrouter", "OpenRouter", "https://openrouter.ai/api/v1", "https://openrouter.ai/settings/keys"),
    _cloud_endpoint("deepseek", "DeepSeek", "https://api.deepseek.com", "https://platform.deepseek.com/api_keys"),
    _cloud_endpoint("groq", "Groq", "https://api.groq.com/openai/v1", "https://console.groq.com/keys"),
    _cloud_endpoint("mistral", "Mistral", "https://api.mistral.ai/v1", "https://console.mistral.ai/api-keys"),
    _cloud_endpoint("xai", "xAI", "https://api.x.ai/v1", "https://console.x.ai"),
)
