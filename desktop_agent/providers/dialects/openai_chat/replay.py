"""Reasoning on its way back, in the field where each family wants its own, and nowhere else."""

from typing import Any

from desktop_agent.providers.dialects.gemini.contents import NO_SIGNATURE
from desktop_agent.providers.dialects.openai_chat.reasoning_details import merge_detail, merge_thinking_block
from desktop_agent.providers.dialects.servers import ServerQuirks
from desktop_agent.vocabulary.blocks import Block, Text, Thinking, ToolUse, Unknown


def add_reasoning_fields(
    message: dict[str, Any], thoughts: list[Thinking], calls: tuple[ToolUse, ...], quirks: ServerQuirks
) -> None:
    """Add to an assistant message what its server must see again."""
    match quirks.replay:
        case "reasoning_content" | "reasoning":
            text = "".join(thought.text for thought in thoughts if _is_shown(thought))
            # DeepSeek refuses a turn with calls that lacks the field, also when it was empty.
            if (calls or not quirks.replay_on_calls_only) and (text or quirks.replay_on_calls_only):
                message[quirks.replay] = text
        case "reasoning_details":
            _add_merged(message, "reasoning_details", thoughts, merge_detail)
        case "thinking_blocks":
            _add_merged(message, "thinking_blocks", thoughts, merge_thinking_block)
        case _:
            pass
    if quirks.extra_content:
        _add_extra_content(message, thoughts, calls)


def add_missing_signatures(message: dict[str, Any]) -> None:
    """What Google takes in place of a signature that nobody has, on the first call of an answer without any."""
    calls: list[dict[str, Any]] = message.get("tool_calls", [])
    if calls and not any("extra_content" in call for call in calls):
        calls[0]["extra_content"] = {"google": {"thought_signature": NO_SIGNATURE}}


def content_parts(blocks: tuple[Block, ...], thoughts: list[Thinking], provider: str) -> str | list[dict[str, Any]]:
    """Mistral's content: a list of thinking, text and other parts in their order; a plain string where all is text."""
    own = {id(thought) for thought in thoughts if thought.metadata.get("field") == "content.thinking"}
    kept = {id(block) for block in blocks if isinstance(block, Unknown) and block.provider == provider}
    if not own and not kept:
        return "".join(block.text for block in blocks if isinstance(block, Text))
    parts: list[Any] = []
    for block in blocks:
        if isinstance(block, Text):
            parts.append({"type": "text", "text": block.text})
        elif isinstance(block, Unknown) and id(block) in kept:
            parts.append(block.raw)
        elif isinstance(block, Thinking) and id(block) in own:
            state = {name: value for name, value in block.metadata.items() if name in ("signature", "closed")}
            parts.append({"type": "thinking", "thinking": [{"type": "text", "text": block.text}], **state})
    return parts


def _is_shown(thought: Thinking) -> bool:
    return thought.metadata.get("field") in ("reasoning_content", "reasoning")


def _add_merged(message: dict[str, Any], name: str, thoughts: list[Thinking], merge: Any) -> None:
    merged: list[dict[str, Any]] = []
    for thought in thoughts:
        for entry in thought.metadata.get(name) or ():
            merge(merged, entry)
    if merged:
        message[name] = merged


def _add_extra_content(message: dict[str, Any], thoughts: list[Thinking], calls: tuple[ToolUse, ...]) -> None:
    states = {
        thought.metadata.get("call_id"): thought.metadata.get("extra_content")
        for thought in thoughts
        if thought.metadata.get("field") == "extra_content"
    }
    for call, written in zip(calls, message.get("tool_calls") or (), strict=False):
        if states.get(call.id) is not None:
            written["extra_content"] = states[call.id]
