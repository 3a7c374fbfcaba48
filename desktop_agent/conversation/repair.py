"""Keeps a history acceptable to every server: each call has exactly one result before the next user text."""

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence

from desktop_agent.vocabulary.blocks import Outcome, Text, ToolResult, ToolUse
from desktop_agent.vocabulary.messages import Message, Role

_NEVER_ANSWERED = "This call was never answered: the conversation was interrupted."


def unanswered_calls(messages: Sequence[Message]) -> tuple[ToolUse, ...]:
    """Calls of the last assistant message that have no result yet. Reads the end only."""
    answered: set[str] = set()
    for message in reversed(messages):
        if message.role is Role.ASSISTANT:
            calls = {call.id: call for call in message.tool_uses}
            return tuple(call for call in calls.values() if call.id not in answered)
        if message.role is Role.TOOL:
            answered |= {block.tool_use_id for block in message.blocks if isinstance(block, ToolResult)}
    return ()


def missing_result(call: ToolUse, outcome: Outcome, why: str) -> ToolResult:
    """A result in place of one that will never come."""
    return ToolResult(tool_use_id=call.id, content=(Text(text=why),), outcome=outcome)


def normalised_history(messages: Iterable[Message]) -> tuple[Message, ...]:
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
        given: defaultdict[str, deque[ToolResult]] = defaultdict(deque)
        carrier: Message | None = None
        while position < len(source) and source[position].role is Role.TOOL:
            carrier = carrier or source[position]
            for block in source[position].blocks:
                if isinstance(block, ToolResult):
                    given[block.tool_use_id].append(block)
            position += 1
        # Ids that stand twice in one answer pair by their order.
        results = tuple(
            given[call.id].popleft() if given[call.id] else missing_result(call, Outcome.CANCELLED, _NEVER_ANSWERED)
            for call in message.tool_uses
        )
        fixed.append(
            carrier.model_copy(update={"blocks": results})
            if carrier
            else Message(id=f"{message.id}-results", role=Role.TOOL, blocks=results, created_at=message.created_at)
        )
    return tuple(fixed)
