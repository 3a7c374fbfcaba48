"""What the provider's own servers did, in words, and where its claims come from."""

from typing import Any

from desktop_agent.providers.transport.json_text import dumps, is_object, mended, mended_json, object_in, objects_in
from desktop_agent.vocabulary.blocks import Citation, ServerStep, Unknown

PROVIDER = "anthropic"
"""What blocks and answers of this dialect are marked with."""

_LONGEST_TEXT = 2000
_SAID_IN = ("query", "url", "command", "code", "pattern", "path")


def block_of(raw: dict[str, Any]) -> ServerStep | Unknown:
    """A block that is neither text, thinking nor a call: a step of the servers', or something unknown here."""
    clean = mended_json(raw)
    kind = str(clean.get("type") or "")
    if not is_step(kind):
        return Unknown(raw=clean, provider=PROVIDER)
    name = clean.get("name")
    return ServerStep(
        provider=PROVIDER,
        name=name if isinstance(name, str) and name else kind,
        text=_asked(clean) if kind.endswith("tool_use") else _found(clean),
        raw=clean,
    )


def is_step(kind: str) -> bool:
    """Whether blocks of this type are steps of the provider's own servers."""
    return kind in ("server_tool_use", "container_upload") or kind.endswith("_tool_result") or kind.startswith("mcp_")


def citation_of(raw: dict[str, Any]) -> Citation:
    """What a person wants to know of a citation. Its positions are those of the source, so they are left out."""
    return Citation(
        title=_text(raw.get("document_title")) or _text(raw.get("title")),
        url=_text(raw.get("url")) or _text(raw.get("source")),
        quoted=_text(raw.get("cited_text")),
    )


def _text(value: Any) -> str | None:
    return mended(value) if isinstance(value, str) and value else None


def _asked(raw: dict[str, Any]) -> str:
    wish = object_in(raw, "input")
    said = next((wish[name] for name in _SAID_IN if isinstance(wish.get(name), str)), None)
    return (said if said is not None else dumps(wish).decode() if wish else "")[:_LONGEST_TEXT]


def _found(raw: dict[str, Any]) -> str:
    """Titles and addresses of what was found, what a program printed, or how it failed."""
    content = raw.get("content")
    if isinstance(content, str):
        return content[:_LONGEST_TEXT]
    entries = objects_in(raw, "content") or ([content] if is_object(content) else [])
    lines = [line for entry in entries for line in _lines(entry)]
    if not lines and isinstance(raw.get("file_id"), str):
        lines = [raw["file_id"]]
    return "\n".join(lines)[:_LONGEST_TEXT]


def _lines(entry: dict[str, Any]) -> list[str]:
    page = " ".join(each for name in ("title", "url") if isinstance(each := entry.get(name), str) and each)
    said = [entry.get(name) for name in ("text", "stdout", "stderr", "error_code")]
    return [each for each in (page, *said) if isinstance(each, str) and each]
