"""Blocks of kinds that the library does not know become words about them, so that the rest of an answer is read."""

from typing import Any, cast

from desktop_agent.tools.answers import MAX_PARTS, limit_parts, omitted_parts_note

_KNOWN_TYPES = frozenset({"text", "image", "audio", "resource", "resource_link"})
_MAX_TYPE_LENGTH = 100


def replace_unknown_content(result: Any) -> Any:
    """The result of a request, as it came over the wire."""
    if not isinstance(result, dict):
        return result
    found = cast("dict[str, Any]", result)
    blocks, messages = found.get("content"), found.get("messages")
    if isinstance(blocks, list):
        given = cast("list[Any]", blocks)
        first, rest = limit_parts(given)
        said = [{"type": "text", "text": omitted_parts_note(rest).text}] if rest else []
        return {**found, "content": [*(_known_block(each) for each in first), *said]}
    if isinstance(messages, list):
        # One more than is taken says that there are more.
        return {**found, "messages": [_known_message(each) for each in cast("list[Any]", messages)[: MAX_PARTS + 1]]}
    return found


def _known_message(message: Any) -> Any:
    if not isinstance(message, dict):
        return message
    found = cast("dict[str, Any]", message)
    return {**found, "content": _known_block(found.get("content"))}


def _known_block(block: Any) -> Any:
    if not isinstance(block, dict):
        return block
    kind = cast("dict[str, Any]", block).get("type")
    if kind in _KNOWN_TYPES or not isinstance(kind, str):
        return cast("dict[str, Any]", block)
    return {"type": "text", "text": f"[left out: {kind[:_MAX_TYPE_LENGTH]}, which is of no known kind]"}
