"""Tools that the caller runs itself: their descriptions, and the results submitted for their calls."""

import json
from collections.abc import Sequence
from typing import Any, NoReturn, cast

from desktop_agent.conversation.history import missing_result, unanswered_calls
from desktop_agent.processes.foreign_code import type_name, validate_message
from desktop_agent.tools.tool import AnyTool, RunningCall, Tool
from desktop_agent.types.blocks import Image, Json, JsonObject, Outcome, ResultPart, Text, ToolResult, ToolUse
from desktop_agent.types.engine_events import Event, TurnStarted
from desktop_agent.types.errors import DuplicateToolResult, StaleToolCall, ToolFailed, UnknownToolCall, WrongUse
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.tool_calls import ToolSpec

_NOT_RUN_TEXT = "This call was not run: the conversation went on without it."


class SubmittedResults:
    """Results of the newest answer's calls, accepted from the moment each call is handed out.

    They reach the history when the conversation goes on. A call that the runtime closed meanwhile, because of Stop or
    because the answer broke off, then gets the caller's result: the history says what really ran.
    """

    def __init__(self) -> None:
        self._open_calls: set[str] = set()
        self._results: dict[str, ToolResult] = {}

    @property
    def has_open_calls(self) -> bool:
        """Whether the caller has calls of the newest answer."""
        return bool(self._open_calls)

    @property
    def has_results(self) -> bool:
        """Whether results wait for the conversation to go on."""
        return bool(self._results)

    def handle(self, event: Event) -> None:
        """Take one event of the run: a call is handed out, or another answer begins."""
        if isinstance(event, ToolUse):
            self._open_calls.add(event.id)
        elif isinstance(event, TurnStarted):
            self.clear()

    def add(self, history: Sequence[Message], *results: ToolResult) -> None:
        """Add all of these or none. Raises UnknownToolCall, DuplicateToolResult and StaleToolCall."""
        open_ids = self._open_calls | {call.id for call in unanswered_calls(history)}
        new_results: dict[str, ToolResult] = {}
        for result in results:
            call_id = result.tool_use_id
            if call_id in new_results or (call_id in self._results and call_id in open_ids):
                raise DuplicateToolResult(f"The call “{call_id}” has its result already.")
            if call_id not in open_ids:
                raise _unexpected_result(call_id, open_ids, history)
            new_results[call_id] = result
        self._results.update(new_results)

    def missing(self, history: Sequence[Message]) -> tuple[ToolUse, ...]:
        """Return the calls without a result, in call order."""
        return tuple(call for call in unanswered_calls(history) if call.id not in self._results)

    def apply_to(self, history: tuple[Message, ...]) -> tuple[Message, ...]:
        """Return the history with all results in call order; calls without one are marked as not run."""
        calls = unanswered_calls(history)
        if calls:
            results = [
                self._results.get(call.id) or missing_result(call, Outcome.CANCELLED, _NOT_RUN_TEXT) for call in calls
            ]
            return (*history, Message.tool_results(results))
        if not self._results or not history or history[-1].role is not Role.TOOL:
            return history
        return (*history[:-1], self._with_results(history[-1]))

    def clear(self) -> None:
        """Forget everything: another answer, or another history, begins."""
        self._open_calls.clear()
        self._results.clear()

    def _with_results(self, message: Message) -> Message:
        results = dict(self._results)
        blocks = [
            results.pop(block.tool_use_id, block) if isinstance(block, ToolResult) else block
            for block in message.blocks
        ]
        return message.model_copy(update={"blocks": tuple(blocks)})


def _unexpected_result(call_id: str, open_ids: set[str], history: Sequence[Message]) -> WrongUse:
    if any(call.id == call_id for message in history for call in message.tool_uses):
        return StaleToolCall(f"The call “{call_id}” is of an older turn and waits for no result any more.")
    names = ", ".join(sorted(open_ids)) or "none"
    return UnknownToolCall(f"No call “{call_id}” waits for a result.", f"These calls wait: {names}.")


def validate_results(results: Sequence[object]) -> tuple[ToolResult, ...]:
    """Return the caller's results, validated. Raises WrongUse for what is no result."""
    for result in results:
        if not isinstance(result, ToolResult):
            raise WrongUse(f"This is not a result but {type_name(result)}.", "Make it with ToolResult(tool_use_id=…).")
    message = validate_message(Message.model_construct(role=Role.TOOL, blocks=tuple(results)))
    return tuple([block for block in message.blocks if isinstance(block, ToolResult)])


def make_result(tool_use_id: str, content: object, *, is_error: bool) -> ToolResult:
    """Return a result of text, a JSON value, blocks, or a ToolResult, copied. Raises WrongUse for anything else."""
    if not isinstance(tool_use_id, str):  # pyright: ignore[reportUnnecessaryIsInstance]  the call itself comes here too
        raise WrongUse(f"This is not the id of a call but {type_name(tool_use_id)}.", "Give the `id` of its ToolUse.")
    if isinstance(content, ToolResult):
        if content.tool_use_id not in {"", tool_use_id}:
            raise WrongUse(
                f"This is the result of “{content.tool_use_id}”, not of “{tool_use_id}”.", "Give it under its own id."
            )
        return content.model_copy(
            update={"tool_use_id": tool_use_id, **({"outcome": Outcome.FAILED} if is_error else {})}
        )
    outcome = Outcome.FAILED if is_error else Outcome.SUCCEEDED
    return ToolResult(tool_use_id=tool_use_id, content=_result_parts(content), outcome=outcome)


def _result_parts(content: object) -> tuple[ResultPart, ...]:
    if isinstance(content, str):
        return (Text(text=content),)
    if isinstance(content, Text | Json | Image):
        return (content,)
    if isinstance(content, list | tuple):
        elements = tuple(cast("Sequence[object]", content))
        if any(isinstance(element, Text | Json | Image) for element in elements):
            return tuple(part for element in elements for part in _result_parts(element))
    return (Json(value=_copy_json(content)),)


def _copy_json(content: Any) -> Any:
    """Return a copy: what the caller does with its own object later must not reach the history."""
    try:
        return json.loads(json.dumps(content, allow_nan=False))
    except RecursionError:
        reason = "it is nested too deep"
    except (TypeError, ValueError) as error:
        reason = str(error).rstrip(".")
    raise WrongUse(f"The result is no JSON: {reason}.", "Give strings, numbers, lists and dicts.")


class _UncheckedSchema:
    """The caller validates arguments itself."""

    def __init__(self, json_schema: JsonObject) -> None:
        self.json_schema = json_schema

    def checked(self, arguments: JsonObject) -> JsonObject:
        return arguments


def to_tool_spec(tool: object) -> ToolSpec:
    """Return the spec of a tool. Raises WrongUse for what is no tool."""
    if isinstance(tool, ToolSpec):
        return tool
    if isinstance(tool, Tool):
        return cast("AnyTool", tool).spec
    name = getattr(tool, "__name__", type(tool).__name__)
    raise WrongUse(f"“{name}” is not a tool.", "Make it one with @tool.")


def to_tool(tool: AnyTool | ToolSpec) -> AnyTool:
    """Return the tool itself, or one that can be offered but not run."""
    if isinstance(tool, Tool):
        return tool

    spec = to_tool_spec(tool)

    async def run(_input: JsonObject, _call: RunningCall) -> NoReturn:
        raise ToolFailed(f"“{spec.name}” runs elsewhere.")

    schema = _UncheckedSchema(spec.input_schema)
    return Tool(name=spec.name, description=spec.description, schema=schema, run=run)
