"""What a message is made of. Frozen; JSON and back without loss."""

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from desktop_agent.vocabulary.images import ImageDetail, ImageSource

# pydantic's own JsonValue is recursive and slow on large inputs; what comes from the wire was parsed as JSON already.
JsonObject = dict[str, Any]


class _Block(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Citation(_Block):
    """Where a claim comes from, as the provider says. `start` and `end` are characters of the text it stands in."""

    title: str | None = None
    url: str | None = None
    quoted: str | None = None
    start: int | None = Field(default=None, ge=0)
    end: int | None = Field(default=None, ge=0)


class Text(_Block):
    """Visible text, Markdown by habit.

    `metadata` is opaque and goes back with the text to the provider named in `provider`, and to no other.
    """

    type: Literal["text"] = "text"
    text: str
    citations: tuple[Citation, ...] = ()
    provider: str = ""
    metadata: JsonObject = Field(default_factory=dict)

    if TYPE_CHECKING:

        def __init__(
            self, *, text: str, citations: Sequence[Citation] = (), provider: str = "", metadata: JsonObject = ...
        ) -> None: ...


class Json(_Block):
    """A structured result of a tool."""

    type: Literal["json"] = "json"
    value: Any


class Image(_Block):
    """A picture. `name` is what the person knows it by, never a path."""

    type: Literal["image"] = "image"
    source: ImageSource
    detail: ImageDetail = ImageDetail.AUTO
    name: str | None = None


class Thinking(_Block):
    """A finished reasoning block.

    `text` is only what the API chose to show. `metadata` is opaque and replayed byte for byte to the provider
    named in `provider`, and to no other.
    """

    type: Literal["thinking"] = "thinking"
    text: str
    provider: str
    metadata: JsonObject = Field(default_factory=dict)
    seconds: float | None = None


class ToolUse(_Block):
    """A complete call. `malformed` keeps the arguments that could not be read as an object; such a call never runs.

    `metadata` is opaque and goes back with the call to the provider named in `provider`, and to no other.
    """

    type: Literal["tool_use"] = "tool_use"
    id: str
    name: str
    input: JsonObject = Field(default_factory=dict)
    malformed: str | None = None
    provider: str = ""
    metadata: JsonObject = Field(default_factory=dict)


class Outcome(StrEnum):
    """How a call ended. `unknown`: it had started when the process died, so it is never run again by itself."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    DENIED = "denied"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    LIMIT = "limit"
    UNKNOWN = "unknown"


ResultPart = Annotated[Text | Json | Image, Field(discriminator="type")]


class ToolResult(_Block):
    """The answer to the call `tool_use_id`. `ran_with`: arguments that a person wrote in place of the model's."""

    type: Literal["tool_result"] = "tool_result"
    tool_use_id: str
    content: tuple[ResultPart, ...] = ()
    outcome: Outcome = Outcome.SUCCEEDED
    ran_with: JsonObject | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            tool_use_id: str,
            content: Sequence[ResultPart] = (),
            outcome: Outcome = Outcome.SUCCEEDED,
            ran_with: JsonObject | None = None,
        ) -> None: ...

    @property
    def is_error(self) -> bool:
        """Whether the model should be told that the call did not succeed."""
        return self.outcome is not Outcome.SUCCEEDED


class ServerStep(_Block):
    """A step that the provider took on its own servers: a search, code that it ran, what came of it.

    `name` is the provider's word for it, `text` says in words what it did; nothing is run here. `raw` goes back
    unchanged to the provider named in `provider`, and to no other.
    """

    type: Literal["server_step"] = "server_step"
    provider: str
    name: str
    text: str = ""
    raw: Any


class Unknown(_Block):
    """A block that this version does not know: kept and shown as such, never dropped.

    `provider` is who sent it and gets it back; empty for what an unknown version of this program wrote.
    """

    type: Literal["unknown"] = "unknown"
    raw: Any
    provider: str = ""


class Summary(_Block):
    """What was said before the message `first_kept_id`, in short, for the model; people still see all of it.

    Only in a system message of the runtime's own; no dialect ever meets it.
    """

    type: Literal["summary"] = "summary"
    text: str
    first_kept_id: str


Block = Annotated[
    Text | Image | Thinking | ToolUse | ToolResult | ServerStep | Summary | Unknown,
    Field(discriminator="type"),
]
