"""Blocks of kinds that the library does not know become words about them, so that the rest of an answer is read."""

from typing import Any, cast

from desktop_agent.tools.answers import MOST_PARTS, first_of, left_out

_KNOWN = frozenset({"text", "image", "audio", "resource", "resource_link"})
_LONGEST = 100


def with_known_kinds(result: Any) -> Any:
    """The result of a request, as it came over the wire."""
    if not isinstance(result, dict):
        return result
    found = cast("dict[str, Any]", result)
    blocks, messages = found.get("content"), found.get("messages")
    if isinstance(blocks, list):
        given = cast("list[Any]", blocks)
        first, rest = first_of(given)
        said = [{"type": "text", "text": left_out(rest).text}] if rest else []
        return {**found, "content": [*(_known(each) for each in first), *said]}
    if isinstance(messages, list):
        # One more than is taken says that there are more.
        return {**found, "messages": [_message(each) for each in cast("list[Any]", messages)[: MOST_PARTS + 1]]}
    return found


def _message(message: Any) -> Any:
    if not isinstance(message, dict):
        return message
    found = cast("dict[str, Any]", message)
    return {**found, "content": _known(found.get("content"))}


def _known(block: Any) -> Any:
    if not isinstance(block, dict):
        return block
    kind = cast("dict[str, Any]", block).get("type")
    if kind in _KNOWN or not isinstance(kind, str):
        return cast("dict[str, Any]", block)
    return {"type": "text", "text": f"[left out: {kind[:_LONGEST]}, which is of no known kind]"}
