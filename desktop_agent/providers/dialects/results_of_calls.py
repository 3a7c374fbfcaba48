"""Which result belongs to which call: the same for every dialect that pairs them message by message."""

from desktop_agent.vocabulary.blocks import ToolResult
from desktop_agent.vocabulary.messages import Message, Role

NO_RESULT = "No result: the call was interrupted before it ended."
"""What a model is told of a call that nobody answered."""


def results_after(messages: tuple[Message, ...], place: int) -> dict[str, ToolResult]:
    """Results up to the next answer: ids that a server repeats belong to the message they follow. The first counts."""
    found: dict[str, ToolResult] = {}
    for message in messages[place + 1 :]:
        if message.role is Role.ASSISTANT:
            break
        for block in message.blocks:
            if isinstance(block, ToolResult):
                found.setdefault(block.tool_use_id, block)
    return found
