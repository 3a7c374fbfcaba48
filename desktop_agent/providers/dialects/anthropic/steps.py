"""What the provider's own servers did, in words, and where its claims come from."""

from typing import Any

from desktop_agent.providers.transport.json_text import (
    dumps,
    is_object,
    object_in,
    objects_in,
    repair_json,
    repair_text,
)
from desktop_agent.vocabulary.blocks import Citation, ServerStep, Unknown

PROVIDER = "anthropic"
"""What blocks and answers of this dialect are marked with."""

_MAX_TEXT_LENGTH = 2000
_INPUT_FIELDS = ("query", "url", "command", "code", "pattern", "path")


def parse_block(raw: dict[str, Any]) -> ServerStep | Unknown:
    """A block that is neither text, thinking nor a call: a step of the servers', or something unknown here."""
    clean = repair_json(raw)
    kind = str(clean.get("type") or "")
    if not is_step(kind):
        return Unknown(raw=clean, provider=PROVIDER)
    name = clean.get("name")
    return ServerStep(
        provider=PROVIDER,
        name=name if isinstance(name, str) and name else kind,
        text=_request_text(clean) if kind.endswith("tool_use") else _result_text(clean),
        raw=clean,
    )


def is_step(kind: str) -> bool:
    """Whether blocks of this type are steps of the provider's own servers."""
    return kind in ("server_tool_use", "container_upload") or kind.endswith("_tool_result") or kind.startswith("mcp_")


def parse_citation(raw: dict[str, Any]) -> Citation:
    """What a person wants to know of a citation. Its positions are those of the source, so they are left out."""
    return Citation(
        title=_optional_text(raw.get("document_title")) or _optional_text(raw.get("title")),
        url=_optional_text(raw.get("url")) or _optional_text(raw.get("source")),
        quoted=_optional_text(raw.get("cited_text")),
    )


def _optional_text(value: Any) -> str | None:
    return repair_text(value) if isinstance(value, str) and value else None


def _request_text(raw: dict[str, Any]) -> str:
    wish = object_in(raw, "input")
    said = next((wish[name] for name in _INPUT_FIELDS if isinstance(wish.get(name), str)), None)
    return (said if said is not None else dumps(wish).decode() if wish else "")[:_MAX_TEXT_LENGTH]


def _result_text(raw: dict[str, Any]) -> str:
    """Titles and addresses of what was found, what a program printed, or how it failed."""
    content = raw.get("content")
    if isinstance(content, str):
        return content[:_MAX_TEXT_LENGTH]
    entries = objects_in(raw, "content") or ([content] if is_object(content) else [])
    lines = [line for entry in entries for line in _result_lines(entry)]
    if not lines and isinstance(raw.get("file_id"), str):
        lines = [raw["file_id"]]
    return "\n".join(lines)[:_MAX_TEXT_LENGTH]


def _result_lines(entry: dict[str, Any]) -> list[str]:
    page = " ".join(each for name in ("title", "url") if isinstance(each := entry.get(name), str) and each)
    said = [entry.get(name) for name in ("text", "stdout", "stderr", "error_code")]
    return [each for each in (page, *said) if isinstance(each, str) and each]
