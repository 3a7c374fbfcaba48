"""Keeps a history acceptable to every server: each call has exactly one result before the next user text."""

from collections.abc import Iterable

from desktop_agent.vocabulary.blocks import Outcome, Text, ToolResult, ToolUse
from desktop_agent.vocabulary.messages import Message, Role

_MISSING = "This call was never answered: the conversation was interrupted."


def unanswered(messages: Iterable[Message]) -> tuple[ToolUse, ...]:
    """Calls of the last assistant message that have no result yet."""
    open_calls: dict[str, ToolUse] = {}
    for message in messages:
        if message.role is Role.ASSISTANT:
            open_calls = {call.id: call for call in message.tool_uses}
        elif message.role is Role.TOOL:
            for block in message.blocks:
                if isinstance(block, ToolResult):
                    open_calls.pop(block.tool_use_id, None)
    return tuple(open_calls.values())


def missing_result(call: ToolUse, outcome: Outcome, why: str) -> ToolResult:
    """A result in place of one that will never come."""
    return ToolResult(tool_use_id=call.id, content=(Text(text=why),), outcome=outcome)


def repaired(messages: Iterable[Message]) -> tuple[Message, ...]:
    """The same history with every call answered once, right after its message; stray results are left out.

    Idempotent. Ids that a server repeats pair with the message just before them.
    """
    source = list(messages)
    fixed: list[Message] = []
    position = 0
    while position < len(source):
        message = source[position]
        position += 1
        if message.role is Role.TOOL:
            continue
        fixed.append(message)
        if message.role is not Role.ASSISTANT or not message.tool_uses:
            continue
        given: dict[str, ToolResult] = {}
        carrier: Message | None = None
        while position < len(source) and source[position].role is Role.TOOL:
            carrier = carrier or source[position]
            for block in source[position].blocks:
                if isinstance(block, ToolResult):
                    given.setdefault(block.tool_use_id, block)
            position += 1
        results = tuple(
            given.get(call.id) or missing_result(call, Outcome.CANCELLED, _MISSING) for call in message.tool_uses
        )
        fixed.append(
            carrier.model_copy(update={"blocks": results})
            if carrier
            else Message(id=f"{message.id}-results", role=Role.TOOL, blocks=results, created_at=message.created_at)
        )
    return tuple(fixed)
