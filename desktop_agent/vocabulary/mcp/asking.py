"""What an MCP server asks a person for, and how that is answered."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal

from desktop_agent.vocabulary.blocks import JsonObject
from desktop_agent.vocabulary.requests import Price
from desktop_agent.vocabulary.usage import Usage


@dataclass(frozen=True, slots=True)
class ElicitationRequest:
    """Words for the person, and a form to fill in or an address to open.

    `form` is a JSON Schema of type object whose properties are texts, numbers, yes or no, or choices. `url`: the
    person is to open this page, and accepts to say so; nothing else than that goes back. `may_open`: it leads into no
    private network of which the server has no part, and nobody can listen.
    """

    server: str
    message: str
    form: JsonObject = field(default_factory=dict[str, object])
    url: str | None = None
    may_open: bool = True


@dataclass(frozen=True, slots=True)
class ElicitationAnswer:
    """`decline`: the person said no. `cancel`: the person did not answer."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, str | int | float | bool | list[str] | None] | None = None


@dataclass(frozen=True, slots=True)
class AnsweringModel:
    """Who would answer a server: the server of models by its title, and the model's id and title."""

    endpoint: str
    model: str
    title: str
    price: Price | None = None


@dataclass(frozen=True, slots=True)
class SamplingRequest:
    """An MCP server wants a model to answer something. `messages` are role and text.

    `answered_by` is None as long as nobody looked, and where no model is chosen.
    """

    server: str
    messages: tuple[tuple[Literal["user", "assistant"], str], ...]
    system_prompt: str | None
    max_tokens: int
    answered_by: AnsweringModel | None = None


@dataclass(frozen=True, slots=True)
class SamplingAnswer:
    """What the model said. `is_cut`: it was not at its end."""

    text: str
    model: str
    usage: Usage | None = None
    is_cut: bool = False


Elicit = Callable[[ElicitationRequest], Awaitable[ElicitationAnswer]]
Sample = Callable[[SamplingRequest], Awaitable[SamplingAnswer | None]]
ApproveSampling = Callable[[SamplingRequest], Awaitable[bool]]
ApproveAnswer = Callable[[SamplingRequest, SamplingAnswer], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class People:
    """Who is asked. None: nobody is there, so that forms are declined, and no model answers for a server.

    A model answers only where a person sees both what it is asked and what it said.
    """

    elicit: Elicit | None = None
    approve_sampling: ApproveSampling | None = None
    approve_answer: ApproveAnswer | None = None


@dataclass(frozen=True, slots=True)
class Answerers:
    """Who answers a server. `sample` has a person agree before and after the model answers; None: it did not."""

    elicit: Elicit | None = None
    sample: Sample | None = None
