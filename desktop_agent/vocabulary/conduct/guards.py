"""Continuation guards: whether an agent that wants to end may end."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from desktop_agent.vocabulary.errors import WrongUse
from desktop_agent.vocabulary.messages import Message
from desktop_agent.vocabulary.provider_events import StopReason


@dataclass(frozen=True, slots=True)
class GuardMoment:
    """What a guard looks at. `iteration` counts how often this guard made the run go on, from 0."""

    history: tuple[Message, ...]
    stop_reason: StopReason | None
    iteration: int
    turns: int


@dataclass(frozen=True, slots=True)
class GuardPass:
    """No opinion: the run does what it would do without this guard."""


@dataclass(frozen=True, slots=True)
class GuardContinue:
    """Go on, with this prompt."""

    prompt: str


@dataclass(frozen=True, slots=True)
class GuardStop:
    """End the run well, now."""


@dataclass(frozen=True, slots=True)
class GuardAbort:
    """End the run, and say why. The guard is removed."""

    reason: str


GuardVerdict = GuardPass | GuardContinue | GuardStop | GuardAbort
GuardCheck = Callable[[GuardMoment], Awaitable[GuardVerdict | None]]


@dataclass(frozen=True, slots=True)
class Guard:
    """One guard. `at`: after each turn, or only when the run would end. Raises WrongUse without a bound."""

    name: str
    check: GuardCheck
    max_iterations: int
    at: Literal["turn_end", "session_stop"] = "session_stop"

    def __post_init__(self) -> None:
        if self.max_iterations < 1:
            raise WrongUse("A guard needs max_iterations of at least 1.")
