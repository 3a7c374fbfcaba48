"""What the scripted model does in one answer: a short list of steps."""

import json
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

# Seconds between two pieces.
FAST_PACE = 0.015
SLOW_PACE = 0.020


def _new_call_id() -> str:
    return f"call_{secrets.token_hex(8)}"


@dataclass(frozen=True, slots=True)
class Think:
    """Stream reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class Say:
    """Stream visible text, Markdown; `pace` is in seconds between two pieces."""

    text: str
    pace: float = FAST_PACE


@dataclass(frozen=True, slots=True)
class Call:
    """Stream a tool call."""

    name: str
    arguments: dict[str, Any]
    id: str = field(default_factory=_new_call_id)

    @property
    def arguments_json(self) -> str:
        """The arguments as the model writes them."""
        return json.dumps(self.arguments, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Break:
    """Fail in the middle."""

    message: str


Step = Think | Say | Call | Break
Script = tuple[Step, ...]


def split_pieces(text: str) -> Iterator[str]:
    """A text in the small pieces in which a model writes; joined they are the text."""
    return (match.group() for match in re.finditer(r"\s*\S{1,7}|\s+", text))
