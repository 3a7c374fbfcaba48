"""What a request asks, in whatever dialect it came, as far as the scripted model looks at it."""

from dataclasses import dataclass
from typing import Any

from desktop_agent.providers.demo.seals import Prefix

MODEL = "demo"

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ReceivedPicture:
    """A picture as it really came: read from its bytes, not from its label."""

    size: int = 0
    format: str = ""
    width: int = 0
    height: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class AnsweredCall:
    """A call of this model since the person last spoke, and what came back."""

    name: str
    arguments: Json
    result: str


@dataclass(frozen=True, slots=True)
class Question:
    """A request, read. `tools` is None when none were offered.

    `reasons`: the model may think; `shows_reasoning`: what it thinks may be read. `replayed` counts the states of
    reasoning that came back unchanged. `prefix` is everything that the answer will stand behind, where it counts.
    """

    stream: bool
    text: str
    prompts: int
    pictures: tuple[ReceivedPicture, ...]
    tools: tuple[str, ...] | None
    answered: tuple[AnsweredCall, ...]
    length: int
    reasons: bool = True
    shows_reasoning: bool = True
    wants_usage: bool = True
    replayed: int = 0
    prefix: Prefix | None = None

    @property
    def tokens(self) -> int:
        """How long it is: a script has no tokens, so four characters are taken for one."""
        return self.length // 4 + 1
