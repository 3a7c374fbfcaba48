"""The listing of models, page by page, with what it tells about each.

`capabilities.thinking.types.X.supported` is false exactly where asking for X is refused, so it decides what is asked.
Servers that imitate the interface list names and little else; what nobody tells stays None.
"""

from collections.abc import Awaitable, Callable
from datetime import date, datetime
from typing import Any
from urllib.parse import quote

from desktop_agent.providers.dialects.anthropic.usage import token_count
from desktop_agent.providers.transport.failures import error_from_listing, has_error
from desktop_agent.providers.transport.json_text import is_array, is_object, loads, object_in, objects_in, repair_text
from desktop_agent.vocabulary.requests import Capabilities, Effort, ModelInfo, ReasoningMode

MIN_BUDGET = 1024
_PAGE_SIZE = 1000
_MAX_PAGES = 20
_LISTED_EFFORTS: tuple[Effort, ...] = ("low", "medium", "high", "xhigh", "max")
_MODES_BY_TYPE: tuple[tuple[str, ReasoningMode], ...] = (
    ("adaptive", "adaptive"),
    ("between_tools", "between_tools"),
    ("disabled", "disabled"),
    ("enabled", "budget"),
)


async def fetch_models(exchange: Callable[[str], Awaitable[bytes]]) -> tuple[ModelInfo, ...]:
    """Ask for all pages; `exchange` takes the query. Retired models are left out. Raises ProviderError."""
    models: dict[str, ModelInfo] = {}
    query, asked = f"limit={_PAGE_SIZE}", set[str]()
    for _ in range(_MAX_PAGES):
        page = _parse_page(await exchange(query))
        for entry in objects_in(page, "data"):
            if isinstance(entry.get("id"), str) and entry["id"] and entry.get("lifecycle") != "retired":
                models.setdefault(entry["id"], parse_model(entry))
        last = page.get("last_id")
        if page.get("has_more") is not True or not isinstance(last, str) or last in asked:
            break
        asked.add(last)
        query = f"limit={_PAGE_SIZE}&after_id={quote(last, safe='')}"
    return tuple(models.values())


def parse_model(entry: dict[str, Any]) -> ModelInfo:
    """One entry of the listing."""
    title = entry.get("display_name")
    return ModelInfo(
        id=repair_text(entry["id"]),
        title=repair_text(title) if isinstance(title, str) and title and title != entry["id"] else None,
        capabilities=_capabilities(entry),
        retires=_parse_day(entry.get("retires_at")),
    )


def _parse_page(body: bytes) -> dict[str, Any]:
    try:
        data = loads(body)
    except ValueError:
        data = None
    if is_object(data) and is_array(data.get("data")) and not has_error(data.get("error")):
        return data
    raise error_from_listing(body)


def _capabilities(entry: dict[str, Any]) -> Capabilities:
    said = object_in(entry, "capabilities")
    thinking, effort = object_in(said, "thinking"), object_in(said, "effort")
    longest = token_count(entry.get("max_tokens")) or None
    modes = _modes(thinking, effort)
    efforts: tuple[Effort, ...] = tuple(level for level in _LISTED_EFFORTS if _supported(effort, level))
    can_budget = modes is not None and "budget" in modes and longest is not None and longest > MIN_BUDGET
    return Capabilities(
        images=_supported(said, "image_input"),
        reasoning=_flag(thinking, "supported"),
        context_window=token_count(entry.get("max_input_tokens")) or None,
        max_output_tokens=longest,
        reasoning_modes=modes,
        efforts=efforts or None,
        budget=(MIN_BUDGET, longest - 1) if can_budget and longest is not None else None,
        structured_output=_supported(said, "structured_outputs"),
    )


def _modes(thinking: dict[str, Any], effort: dict[str, Any]) -> frozenset[ReasoningMode] | None:
    types = object_in(thinking, "types")
    if not types:
        return None
    found: set[ReasoningMode] = {mode for name, mode in _MODES_BY_TYPE if _supported(types, name)}
    if _flag(effort, "supported"):
        found.add("effort")
    return frozenset(found)


def _supported(data: dict[str, Any], name: str) -> bool | None:
    return _flag(object_in(data, name), "supported")


def _flag(data: dict[str, Any], name: str) -> bool | None:
    value = data.get(name)
    return value if isinstance(value, bool) else None


def _parse_day(value: Any) -> date | None:
    try:
        return datetime.fromisoformat(value).date() if isinstance(value, str) else None
    except ValueError:
        return None
