"""Results that the caller gives to calls it runs itself: exact ids, once each."""

import json
from collections.abc import Sequence
from typing import Any

from desktop_agent.conversation.repair import missing_result, unanswered
from desktop_agent.permissions.foreign_messages import sound
from desktop_agent.tools.foreign_code import kind_of
from desktop_agent.vocabulary.blocks import Json, Outcome, Text, ToolResult, ToolUse
from desktop_agent.vocabulary.errors import WrongUse
from desktop_agent.vocabulary.messages import Message, Role

_NOT_RUN = "This call was not run: the conversation went on without it."


class GivenResults:
    """Collects results until all calls of the answer have one, or the conversation goes on without."""

    def __init__(self) -> None:
        self._given: dict[str, ToolResult] = {}

    def give(self, history: Sequence[Message], *results: ToolResult) -> None:
        """All of these or none. Raises WrongUse for an id that waits for no result, or that has one."""
        waiting = {call.id for call in unanswered(history)}
        fresh: dict[str, ToolResult] = {}
        for result in results:
            call_id = result.tool_use_id
            if call_id in fresh or (call_id in self._given and call_id in waiting):
                raise WrongUse(f"The call “{call_id}” has its result already.", "Give each result once.")
            if call_id not in waiting:
                names = ", ".join(sorted(waiting)) or "none"
                raise WrongUse(f"No call “{call_id}” waits for a result.", f"These calls wait: {names}.")
            fresh[call_id] = result
        self._given.update(fresh)

    def missing(self, history: Sequence[Message]) -> tuple[ToolUse, ...]:
        """Calls that wait, in call order."""
        return tuple(call for call in unanswered(history) if call.id not in self._given)

    def taken(self, history: Sequence[Message]) -> tuple[Message, ...]:
        """The message with all results in call order, if a call waits; calls without one were not run."""
        calls = unanswered(history)
        results = [self._given.get(call.id) or missing_result(call, Outcome.CANCELLED, _NOT_RUN) for call in calls]
        self._given.clear()
        return (Message.tool_results(results),) if results else ()

    def forget(self) -> None:
        """The history is another one now."""
        self._given.clear()


def sound_results(given: Sequence[object]) -> tuple[ToolResult, ...]:
    """Results that the caller made, as our own. Raises WrongUse for what is none."""
    for each in given:
        if not isinstance(each, ToolResult):
            raise WrongUse(f"This is no result but {kind_of(each)}.", "Make it with ToolResult(tool_use_id=…).")
    message = sound(Message.model_construct(role=Role.TOOL, blocks=tuple(given)))
    return tuple([block for block in message.blocks if isinstance(block, ToolResult)])


def result_of(tool_use_id: str, content: Any, *, is_error: bool) -> ToolResult:
    """A result of a JSON value, copied; a string is text. Raises WrongUse for what is no JSON."""
    part = Text(text=content) if isinstance(content, str) else Json(value=_copied(content))
    outcome = Outcome.FAILED if is_error else Outcome.SUCCEEDED
    return ToolResult(tool_use_id=tool_use_id, content=(part,), outcome=outcome)


def _copied(content: Any) -> Any:
    """What the caller does with its own object later must not reach the history."""
    try:
        return json.loads(json.dumps(content, allow_nan=False))
    except RecursionError:
        why = "it is nested too deep"
    except (TypeError, ValueError) as error:
        why = str(error).rstrip(".")
    raise WrongUse(f"The result is no JSON: {why}.", "Give strings, numbers, lists and dicts.")
