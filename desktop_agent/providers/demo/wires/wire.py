"""What all dialects write down in the same way."""

import json
import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from desktop_agent.providers.demo.question import ReceivedRequest
from desktop_agent.providers.demo.refusals import RequestError
from desktop_agent.providers.demo.script import Break, Call, Say, Script, Step, Think, split_pieces


@dataclass(frozen=True, slots=True)
class TimedFrame:
    """One server-sent event as it is sent, and the seconds to wait before it."""

    data: bytes
    pause: float = 0.0


@dataclass
class AnswerWriter(ABC):
    """One answer. Token counts are counts of pieces: a script has no tokens."""

    question: ReceivedRequest
    script: Script

    def __post_init__(self) -> None:
        self.id = secrets.token_hex(12)

    @abstractmethod
    def frames(self) -> Iterator[TimedFrame]:
        """Everything that is sent; after a Break nothing more, not even the end mark."""

    @abstractmethod
    def full_answer(self) -> Any:
        """The answer in one piece. Raises Refusal where the stream would break off."""

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls, in order."""
        return tuple(step for step in self.script if isinstance(step, Call))

    @property
    def written(self) -> int:
        """How many pieces there are."""
        return sum(_piece_count(step) for step in self.script)

    @property
    def thought(self) -> int:
        """How many of them are reasoning."""
        return sum(_piece_count(step) for step in self.script if isinstance(step, Think))

    def require_unbroken(self) -> None:
        """Raises Refusal where the stream would break off."""
        broken = next((step for step in self.script if isinstance(step, Break)), None)
        if broken is not None:
            raise RequestError(500, broken.message, "demo_error")


def sse_event(value: dict[str, Any], pause: float = 0.0, *, named: bool = False, end: str = "\n") -> TimedFrame:
    """An event with this data; `named`: after its type; `end` ends its lines."""
    head = f"event: {value['type']}{end}" if named else ""
    return TimedFrame(
        f"{head}data: {json.dumps(value, ensure_ascii=False)}{end}{end}".encode("utf-8", "replace"), pause
    )


def _piece_count(step: Step) -> int:
    match step:
        case Think() | Say():
            return sum(1 for _ in split_pieces(step.text))
        case Call():
            return sum(1 for _ in split_pieces(step.arguments_json))
        case Break():
            return 0
