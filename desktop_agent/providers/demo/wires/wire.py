"""What all dialects write down in the same way."""

import json
import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from desktop_agent.providers.demo.question import Question
from desktop_agent.providers.demo.refusals import Refusal
from desktop_agent.providers.demo.script import Break, Call, Say, Script, Step, Think, pieces


@dataclass(frozen=True, slots=True)
class Frame:
    """One server-sent event as it is sent, and the seconds to wait before it."""

    data: bytes
    pause: float = 0.0


@dataclass
class Wire(ABC):
    """One answer. Token counts are counts of pieces: a script has no tokens."""

    question: Question
    script: Script

    def __post_init__(self) -> None:
        self.id = secrets.token_hex(12)

    @abstractmethod
    def frames(self) -> Iterator[Frame]:
        """Everything that is sent; after a Break nothing more, not even the end mark."""

    @abstractmethod
    def whole(self) -> Any:
        """The answer in one piece. Raises Refusal where the stream would break off."""

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls, in order."""
        return tuple(step for step in self.script if isinstance(step, Call))

    @property
    def written(self) -> int:
        """How many pieces there are."""
        return sum(_length(step) for step in self.script)

    @property
    def thought(self) -> int:
        """How many of them are reasoning."""
        return sum(_length(step) for step in self.script if isinstance(step, Think))

    def check_whole(self) -> None:
        """Raises Refusal where the stream would break off."""
        broken = next((step for step in self.script if isinstance(step, Break)), None)
        if broken is not None:
            raise Refusal(500, broken.message, "demo_error")


def event(value: dict[str, Any], pause: float = 0.0, *, named: bool = False, end: str = "\n") -> Frame:
    """An event with this data; `named`: after its type; `end` ends its lines."""
    head = f"event: {value['type']}{end}" if named else ""
    return Frame(f"{head}data: {json.dumps(value, ensure_ascii=False)}{end}{end}".encode("utf-8", "replace"), pause)


def _length(step: Step) -> int:
    match step:
        case Think() | Say():
            return sum(1 for _ in pieces(step.text))
        case Call():
            return sum(1 for _ in pieces(step.written))
        case Break():
            return 0
