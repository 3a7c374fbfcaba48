"""Requests to the scripted model, and the steps of its answers."""

import json
import re
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from json import JSONDecoder
from typing import Any

from desktop_agent.types.providers import DEMO_MODEL
from desktop_agent.types.tool_calls import EDITED_BY_PERSON

# Seconds between two pieces.
FAST_PACE = 0.015
SLOW_PACE = 0.020


def _new_call_id() -> str:
    return f"call_{secrets.token_hex(8)}"


@dataclass(frozen=True, slots=True)
class Think:
    """Streams reasoning."""

    text: str


@dataclass(frozen=True, slots=True)
class Say:
    """Streams visible text, Markdown; `pace` is in seconds between two pieces."""

    text: str
    pace: float = FAST_PACE


@dataclass(frozen=True, slots=True)
class Call:
    """Streams a tool call."""

    name: str
    arguments: dict[str, Any]
    id: str = field(default_factory=_new_call_id)

    @property
    def arguments_json(self) -> str:
        return json.dumps(self.arguments, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Break:
    """Fails in the middle."""

    message: str


Step = Think | Say | Call | Break
Script = tuple[Step, ...]


def split_pieces(text: str) -> Iterator[str]:
    """Split a text into small pieces, as a model writes them; joined they are the text."""
    return (match.group() for match in re.finditer(r"\s*\S{1,7}|\s+", text))


MODEL = DEMO_MODEL

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ReceivedPicture:
    """A picture as it was received: measured from its bytes, not from its label."""

    size: int = 0
    format: str = ""
    width: int = 0
    height: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class AnsweredCall:
    """A call of this model since the person last wrote, and its result."""

    name: str
    arguments: Json
    result: str

    @property
    def edited(self) -> Json | None:
        """Return the arguments that a person wrote in place of the model's; None without an edit."""
        note, _, _ = self.result.partition("\n\n")
        if not note.startswith(EDITED_BY_PERSON):
            return None
        try:
            changed, _ = JSONDecoder().raw_decode(note, note.index("{"))
        except ValueError:
            return {}
        return changed

    @property
    def effective_arguments(self) -> Json:
        """Return its arguments, with what a person changed."""
        return {**self.arguments, **(self.edited or {})}

    @property
    def answer(self) -> str:
        """Return the result without the note about an edit."""
        return self.result if self.edited is None else self.result.partition("\n\n")[2]


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """A parsed request. `tools` is None if none were offered. `reasons`: the model may think."""

    stream: bool
    text: str
    prompts: int
    pictures: tuple[ReceivedPicture, ...]
    tools: tuple[str, ...] | None
    answered: tuple[AnsweredCall, ...]
    length: int
    reasons: bool = True
    wants_usage: bool = True

    @property
    def tokens(self) -> int:
        """Return its length: a script has no tokens, so four characters count as one."""
        return self.length // 4 + 1
