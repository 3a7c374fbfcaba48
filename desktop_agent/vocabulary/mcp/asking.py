"""What a server of tools asks a person for, and how that is answered."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal

from desktop_agent.vocabulary.blocks import JsonObject


@dataclass(frozen=True, slots=True)
class ElicitationRequest:
    """Words for the person, and a form to fill in or an address to open.

    `form` is a JSON Schema of type object whose properties are texts, numbers, yes or no, or choices. `url`: the
    person is to open this page, and accepts to say so; nothing else than that goes back.
    """

    server: str
    message: str
    form: JsonObject = field(default_factory=dict[str, object])
    url: str | None = None


@dataclass(frozen=True, slots=True)
class ElicitationAnswer:
    """`decline`: the person said no. `cancel`: the person did not answer."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, str | int | float | bool | list[str] | None] | None = None


@dataclass(frozen=True, slots=True)
class SamplingRequest:
    """A server wants a model to answer something. `messages` are role and text."""

    server: str
    messages: tuple[tuple[Literal["user", "assistant"], str], ...]
    system_prompt: str | None
    max_tokens: int


@dataclass(frozen=True, slots=True)
class SamplingAnswer:
    """What the model said, once the person had agreed."""

    text: str
    model: str


Elicit = Callable[[ElicitationRequest], Awaitable[ElicitationAnswer]]
Sample = Callable[[SamplingRequest], Awaitable[SamplingAnswer | None]]


@dataclass(frozen=True, slots=True)
class People:
    """Who is asked. None: nobody is there, so that forms are declined; and no model answers for a server."""

    elicit: Elicit | None = None
    sample: Sample | None = None
