"""Where claims come from, as annotations of a message say: `url_citation` of a server's own web search."""

from typing import Any

from desktop_agent.providers.transport.json_text import is_object, mended
from desktop_agent.vocabulary.blocks import Citation


def citations_of(annotations: list[Any]) -> list[Citation]:
    """The citations among them; other annotations say nothing that a person could follow."""
    found: list[Citation] = []
    for annotation in annotations:
        inner = annotation.get("url_citation") if is_object(annotation) else None
        if is_object(inner) and isinstance(inner.get("url"), str):
            found.append(
                Citation(
                    url=mended(inner["url"]),
                    title=_text(inner.get("title")),
                    quoted=_text(inner.get("content")),
                    start=_place(inner.get("start_index")),
                    end=_place(inner.get("end_index")),
                )
            )
    return found


def _text(value: Any) -> str | None:
    return mended(value) if isinstance(value, str) and value else None


def _place(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None
