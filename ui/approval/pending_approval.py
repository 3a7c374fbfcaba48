"""What a person is asked to decide."""

from collections.abc import Callable
from dataclasses import dataclass, field

from desktop_agent.vocabulary.blocks import JsonObject
from desktop_agent.vocabulary.tool_calls import Effect, Preview, ToolClass


def _anything_fits(arguments: JsonObject) -> str | None:
    del arguments
    return None


@dataclass(frozen=True)
class PendingApproval:
    """One waiting call.

    `agent_path` names the specialists that lead to the call; empty is the main agent. `validate` answers with a
    sentence when edited arguments do not fit the tool, and with None when they do.
    """

    approval_id: str
    tool: str
    arguments: JsonObject
    agent_path: tuple[str, ...] = ()
    tool_class: ToolClass = ToolClass.MUTATING
    effects: frozenset[Effect] = frozenset()
    preview: Preview | None = None
    validate: Callable[[JsonObject], str | None] = field(default=_anything_fits, compare=False, repr=False)
