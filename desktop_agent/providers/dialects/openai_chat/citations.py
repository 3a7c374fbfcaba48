"""Where claims come from, as annotations of a message say: `url_citation` of a server's own web search."""

from typing import Any

from desktop_agent.providers.transport.json_text import is_object, repair_text
from desktop_agent.vocabulary.blocks import Citation


def parse_citations(annotations: list[Any]) -> list[Citation]:
    """The citations among them; other annotations say nothing that a person could follow."""
    found: list[Citation] = []
    for annotation in annotations:
        inner = annotation.get("url_citation") if is_object(annotation) else None
        if is_object(inner) and isinstance(inner.get("url"), str):
            found.append(
                Citation(
                    url=repair_text(inner["url"]),
                    title=_optional_text(inner.get("title")),
                    quoted=_optional_text(inner.get("content")),
                    start=_offset(inner.get("start_index")),
                    end=_offset(inner.get("end_index")),
                )
            )
    return found


def _optional_text(value: Any) -> str | None:
    return repair_text(value) if isinstance(value, str) and value else None


def _offset(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None
