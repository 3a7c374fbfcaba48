"""Tool calls as nouns: what a tool says about itself, what a person may decide."""

import hashlib
import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from desktop_agent.vocabulary.blocks import JsonObject


class ToolClass(StrEnum):
    """Whether a call may change anything. Unknown tools count as mutating."""

    READ_ONLY = "read_only"
    MUTATING = "mutating"


class Effect(StrEnum):
    """What a call touches."""

    READ = "read"
    WRITE = "write"
    EXECUTE = "execute"
    NETWORK = "network"
    DELEGATE = "delegate"


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """What the model is told about a tool. `input_schema` is a JSON Schema of type object."""

    name: str
    description: str
    input_schema: dict[str, Any]


@dataclass(frozen=True, slots=True)
class TextPreview:
    """The effect of a call in words."""

    text: str
    type: Literal["text"] = "text"


@dataclass(frozen=True, slots=True)
class DiffPreview:
    """A file before and after. `before` is None for a new file."""

    path: str
    before: str | None
    after: str
    type: Literal["diff"] = "diff"


Preview = TextPreview | DiffPreview


class _Decision(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class AllowOnce(_Decision):
    """Run exactly this call; with `edited_input`, run it with these arguments instead."""

    type: Literal["allow_once"] = "allow_once"
    edited_input: JsonObject | None = None


class AllowForConversation(_Decision):
    """Run it, and let this tool run unasked until the conversation is closed for good."""

    type: Literal["allow_for_conversation"] = "allow_for_conversation"
    edited_input: JsonObject | None = None


class AllowAlways(_Decision):
    """Run it, and let what the rule says run unasked from now on. The rule was shown before."""

    type: Literal["allow_always"] = "allow_always"
    rule_id: str
    edited_input: JsonObject | None = None


class Deny(_Decision):
    """Do not run it; the model is told, with the message if there is one, and goes on."""

    type: Literal["deny"] = "deny"
    message: str = ""


class DenyAndStop(_Decision):
    """Do not run it, and end the run."""

    type: Literal["deny_and_stop"] = "deny_and_stop"
    message: str = ""


Decision = Annotated[
    AllowOnce | AllowForConversation | AllowAlways | Deny | DenyAndStop,
    Field(discriminator="type"),
]


def call_digest(tool_identity: str, arguments: JsonObject) -> str:
    """SHA-256 over tool identity and normalised arguments: what an approval is bound to."""
    normal = json.dumps([tool_identity, arguments], sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(normal.encode("utf-8", "surrogatepass")).hexdigest()
