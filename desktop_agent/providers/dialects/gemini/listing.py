"""The models of a server, page by page, and what its listing tells about each."""

from collections.abc import Awaitable, Callable
from typing import Any

from desktop_agent.providers.transport.failures import error_from_listing, has_error
from desktop_agent.providers.transport.json_text import array_in, is_object, loads, objects_in, repair_text
from desktop_agent.vocabulary.requests import Capabilities, ModelInfo

FetchPage = Callable[[dict[str, str]], Awaitable[bytes]]
_PER_PAGE = "1000"
# Google has some dozens of models; a server whose pages never end is not followed for ever.
_MAX_PAGES = 20


async def fetch_models(fetch: FetchPage) -> tuple[ModelInfo, ...]:
    """All models that answer questions. `fetch` asks for a page by its query. Raises ProviderError."""
    found: dict[str, ModelInfo] = {}
    query = {"pageSize": _PER_PAGE}
    for _ in range(_MAX_PAGES):
        page = _parse_page(await fetch(query))
        for model in map(_parse_model, objects_in(page, "models")):
            if model is not None:
                found.setdefault(model.id, model)
        token = page.get("nextPageToken")
        if not isinstance(token, str) or not token or token == query.get("pageToken"):
            break
        query = {"pageSize": _PER_PAGE, "pageToken": token}
    return tuple(found.values())


def _parse_page(body: bytes) -> dict[str, Any]:
    try:
        data = loads(body)
    except ValueError:
        data = None
    # A server without any model sends an empty object.
    is_page = is_object(data) and (not data or bool({"models", "nextPageToken"} & data.keys()))
    if not is_object(data) or not is_page or has_error(data.get("error")):
        raise error_from_listing(body)
    return data


def _parse_model(entry: dict[str, Any]) -> ModelInfo | None:
    name, title = entry.get("name"), entry.get("displayName")
    if not isinstance(name, str) or not name.removeprefix("models/"):
        return None
    if "supportedGenerationMethods" in entry and "generateContent" not in array_in(entry, "supportedGenerationMethods"):
        return None
    thinks = entry.get("thinking")
    return ModelInfo(
        id=repair_text(name.removeprefix("models/")),
        title=repair_text(title) if isinstance(title, str) and title else None,
        capabilities=Capabilities(
            context_window=_parse_size(entry.get("inputTokenLimit")),
            max_output_tokens=_parse_size(entry.get("outputTokenLimit")),
            reasoning=thinks if isinstance(thinks, bool) else None,
        ),
    )


def _parse_size(value: Any) -> int | None:
    return value if type(value) is int and value > 0 else None
