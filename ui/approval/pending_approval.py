"""A tool call that waits for the person's approval."""

from collections.abc import Callable
from dataclasses import dataclass, field

from desktop_agent.types.blocks import JsonObject
from desktop_agent.types.errors import Sentence
from desktop_agent.types.tool_calls import (
    CommandPreview,
    DiffPreview,
    Effect,
    NetworkPreview,
    PicturePreview,
    Preview,
    ToolClass,
)

MAX_SUBJECT_LENGTH = 200
"""Characters."""


def _accept_any(arguments: JsonObject) -> str | None:
    del arguments
    return None


@dataclass(frozen=True)
class RuleOffer:
    """A rule that may be made of a call, in words. It holds in the folder `workspace`, or everywhere."""

    rule_id: str
    words: Sentence
    workspace: str | None = None


@dataclass(frozen=True)
class PendingApproval:
    """One waiting call.

    `agent_path` names the specialists that lead to the call; empty is the main agent. `validate` answers with a
    sentence when edited arguments do not fit the tool, and with None when they do. `reasons` are why it is asked, where
    it is not the tool's default; `outsiders` are those outside whose content is one of them. `offers` are rules that
    may be made of it. `undoable`: whether what it changes can be undone; None where it changes nothing.
    `server` is the MCP server that offers the tool, by the name the person gave it; `server_says` is what it says
    about the tool. `workspace` is the folder in which it works; empty where it reaches no files.
    """

    approval_id: str
    tool: str
    arguments: JsonObject
    agent_path: tuple[str, ...] = ()
    tool_class: ToolClass = ToolClass.MUTATING
    effects: frozenset[Effect] = frozenset()
    preview: Preview | None = None
    reasons: tuple[Sentence, ...] = ()
    outsiders: tuple[str, ...] = ()
    offers: tuple[RuleOffer, ...] = ()
    undoable: bool | None = None
    server: str = ""
    server_says: str = ""
    workspace: str = ""
    validate: Callable[[JsonObject], str | None] = field(default=_accept_any, compare=False, repr=False)

    @property
    def subject(self) -> str:
        """What it is about, on one line: tells it from other calls of the same tool."""
        match self.preview:
            case (
                CommandPreview(line=text)
                | DiffPreview(path=text)
                | NetworkPreview(url=text)
                | PicturePreview(name=text)
            ):
                pass
            case _:
                text = next((each for each in self.arguments.values() if isinstance(each, str)), "")
        return " ".join(text[:MAX_SUBJECT_LENGTH].split())
