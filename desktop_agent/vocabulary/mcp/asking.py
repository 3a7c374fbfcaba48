"""What an MCP server asks a person for, and how that is answered."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal

from desktop_agent.vocabulary.blocks import JsonObject, Text, ToolResult, ToolUse
from desktop_agent.vocabulary.requests import Price
from desktop_agent.vocabulary.usage import Usage


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
