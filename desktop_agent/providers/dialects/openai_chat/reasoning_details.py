"""Reasoning state that arrives in a list of pieces and goes back as one list.

OpenRouter's `reasoning_details` are merged by index (its page on reasoning tokens); LiteLLM's `thinking_blocks` come
as pieces of text closed by a signature.
"""

from typing import Any

from desktop_agent.providers.transport.json_text import is_object

_GROWING = frozenset({"text", "summary"})


def merge_detail(merged: list[dict[str, Any]], piece: Any) -> None:
    """Add one piece: to the entry of the same index, type and id, or as a new entry. Nulls never overwrite."""
    if not is_object(piece):
        return
    entry = next((each for each in merged if _is_same(each, piece)), None)
    if entry is None:
        merged.append(dict(piece))
        return
    for name, value in piece.items():
        if value is None:
            continue
        before = entry.get(name)
        grows = name in _GROWING and isinstance(before, str) and isinstance(value, str)
        entry[name] = f"{before}{value}" if grows else value


def _is_same(entry: dict[str, Any], piece: dict[str, Any]) -> bool:
    if "index" not in piece or any(entry.get(name) != piece.get(name) for name in ("index", "type")):
        return False
    return None in (entry.get("id"), piece.get("id")) or entry["id"] == piece["id"]


def merge_thinking_block(merged: list[dict[str, Any]], piece: Any) -> None:
    """Add one piece: text grows in the last block until a signature closes it; redacted blocks stand alone."""
    if not is_object(piece):
        return
    last = merged[-1] if merged else None
    if piece.get("type") != "thinking" or last is None or last.get("type") != "thinking" or last.get("signature"):
        merged.append(dict(piece))
        return
    last["thinking"] = f"{last.get('thinking') or ''}{piece.get('thinking') or ''}"
    last |= {name: value for name, value in piece.items() if name not in ("thinking", "type") and value is not None}
