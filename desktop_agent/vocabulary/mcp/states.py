"""How an MCP server is now, and what it offers."""

from dataclasses import dataclass, field
from typing import Literal

from desktop_agent.vocabulary.blocks import JsonObject
from desktop_agent.vocabulary.errors import Sentence
from desktop_agent.vocabulary.tool_calls import ToolClass


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
