"""The listing of a server's models, with what it tells about each.

OpenAI lists names only. Others put facts into the same listing (OpenRouter, Mistral, Groq, vLLM, llama.cpp), or keep
them in a place of their own that is asked too (Ollama, LM Studio, LiteLLM, llama.cpp); that such a place does not
answer is no error. What nobody tells stays None.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from desktop_agent.providers.dialects.servers import ServerQuirks, quirks_for_listing
from desktop_agent.providers.transport.addresses import join_url, url_outside_v1
from desktop_agent.providers.transport.failures import error_from_listing, has_error, is_bare_error
from desktop_agent.providers.transport.json_text import (
    array_in,
    dumps,
    is_array,
    is_object,
    loads,
    object_in,
    objects_in,
    repair_text,
)
from desktop_agent.vocabulary.errors import ProviderError
from desktop_agent.vocabulary.requests import Capabilities, ModelInfo, Price

Exchange = Callable[..., Awaitable[bytes]]
_MAX_PARALLEL_SHOWS = 4
_MAX_SHOWS = 60


@dataclass(frozen=True, slots=True)
class ModelListing:
    """The models, and who the server turned out to be."""

    models: tuple[ModelInfo, ...]
    quirks: ServerQuirks


async def fetch_models(root: str, quirks: ServerQuirks, exchange: Exchange) -> ModelListing:
    """Ask for everything. `exchange(url, body=None)` answers with bytes. Raises ProviderError."""
    entries = _parse_entries(await exchange(join_url(root, "models")))
    quirks = quirks_for_listing(entries, quirks)
    more = await _family_capabilities(root, quirks, [str(entry["id"]) for entry in entries], exchange)
    models = [_parse_model(entry, more.get(str(entry["id"])) or more.get("")) for entry in entries]
    return ModelListing(tuple(models), quirks)


def _parse_entries(body: bytes) -> list[dict[str, Any]]:
    try:
        data = loads(body)
    except ValueError:
        data = ...
    said = data if is_object(data) else {}
    found = said.get("data", said.get("models", ...)) if is_object(data) else data
    if found is None and not is_bare_error(data):  # Ollama without any model
        found = []
    entries = [each for each in found if is_object(each)] if is_array(found) else []
    is_listing = is_array(found) and not (has_error(said.get("error")) or (said.get("success") is False and not found))
    if not is_listing or any(has_error(each.get("error")) for each in entries[:1]):
        raise error_from_listing(body)
    return [each for each in entries if isinstance(each.get("id"), str) and each["id"]]


def _parse_model(entry: dict[str, Any], more: Capabilities | None) -> ModelInfo:
    title = entry.get("name")
    own = _capabilities(entry)
    return ModelInfo(
        id=repair_text(entry["id"]),
        title=repair_text(title) if isinstance(title, str) and title and title != entry["id"] else None,
        capabilities=own if more is None else more.over(own),
        price=_parse_price(object_in(entry, "pricing")),
        retires=_parse_day(entry.get("shutdown_date")),
    )


def _parse_price(pricing: dict[str, Any]) -> Price | None:
    """OpenRouter's prices: dollars for one token, as strings; -1 where it depends on who answers."""
    price = Price(
        input=_price_per_million(pricing.get("prompt")),
        output=_price_per_million(pricing.get("completion")),
        cache_read=_price_per_million(pricing.get("input_cache_read")),
        cache_write=_price_per_million(pricing.get("input_cache_write")),
    )
    return price if price != Price() else None


def _price_per_million(dollars: Any) -> float | None:
    try:
        value = float(dollars) * 1_000_000
    except (TypeError, ValueError, OverflowError):
        return None
    return round(value, 6) if 0 <= value < 1_000_000 else None


def _capabilities(entry: dict[str, Any]) -> Capabilities:
    """Facts that stand in the listing itself, under the names of several families."""
    flags, meta = object_in(entry, "capabilities"), object_in(entry, "meta")
    modalities = object_in(entry, "architecture").get("input_modalities")
    parameters = entry.get("supported_parameters")
    context = _first_size(
        entry.get("context_length"),
        entry.get("max_context_length"),
        entry.get("max_model_len"),
        entry.get("context_window"),
        meta.get("n_ctx"),
    )
    output = _first_size(
        object_in(entry, "top_provider").get("max_completion_tokens"), entry.get("max_completion_tokens")
    )
    return Capabilities(
        images=_flag(flags, "vision") if not is_array(modalities) else "image" in modalities,
        tools=_flag(flags, "function_calling") if not is_array(parameters) else "tools" in parameters,
        reasoning=_flag(flags, "reasoning") if not is_array(parameters) else "reasoning" in parameters,
        context_window=context,
        max_output_tokens=output,
    )


async def _family_capabilities(
    root: str, quirks: ServerQuirks, ids: list[str], exchange: Exchange
) -> Mapping[str, Capabilities]:
    """Facts by model id from a family's own place; the empty id stands for every model."""
    try:
        match quirks.family:
            case "ollama":
                return await _ollama_capabilities(root, ids, exchange)
            case "lmstudio":
                return await _lm_studio_capabilities(root, exchange)
            case "litellm":
                return _litellm_capabilities(loads(await exchange(url_outside_v1(root, "model/info"))))
            case "llamacpp":
                return {"": _llama_cpp_capabilities(loads(await exchange(url_outside_v1(root, "props"))))}
            case _:
                return {}
    except (ProviderError, ValueError):
        return {}


async def _ollama_capabilities(root: str, ids: list[str], exchange: Exchange) -> dict[str, Capabilities]:
    """POST /api/show for each model. The window is `num_ctx` where the model file sets one, else the model's own."""
    turn = asyncio.Semaphore(_MAX_PARALLEL_SHOWS)

    async def shown(model: str) -> tuple[str, Capabilities]:
        try:
            async with turn:
                data = loads(await exchange(url_outside_v1(root, "api/show"), dumps({"model": model})))
        except (ProviderError, ValueError):
            return model, Capabilities()
        return model, _ollama_model(data if is_object(data) else {})

    return dict(await asyncio.gather(*(shown(model) for model in ids[:_MAX_SHOWS])))


def _ollama_model(data: dict[str, Any]) -> Capabilities:
    names = data.get("capabilities")
    parameters = data.get("parameters")
    chosen = re.search(r"^num_ctx\s+(\d+)", parameters, re.MULTILINE) if isinstance(parameters, str) else None
    lengths = [value for name, value in object_in(data, "model_info").items() if name.endswith(".context_length")]
    return Capabilities(
        images=None if not is_array(names) else "vision" in names,
        tools=None if not is_array(names) else "tools" in names,
        reasoning=None if not is_array(names) else "thinking" in names,
        context_window=_first_size(int(chosen[1]) if chosen else None, *lengths),
    )


async def _lm_studio_capabilities(root: str, exchange: Exchange) -> dict[str, Capabilities]:
    """GET /api/v1/models, or /api/v0/models of older versions; the context of a loaded model is what counts."""
    try:
        data = loads(await exchange(url_outside_v1(root, "api/v1/models")))
        entries, key = objects_in(data, "models"), "key"
    except ProviderError:
        data = loads(await exchange(url_outside_v1(root, "api/v0/models")))
        entries, key = objects_in(data, "data"), "id"
    found: dict[str, Capabilities] = {}
    for entry in entries:
        names = [entry.get(key), *(each.get("id") for each in objects_in(entry, "loaded_instances"))]
        found |= {name: _lm_studio_model(entry) for name in names if isinstance(name, str)}
    return found


def _lm_studio_model(entry: dict[str, Any]) -> Capabilities:
    loaded = [object_in(each, "config").get("context_length") for each in objects_in(entry, "loaded_instances")]
    flags = object_in(entry, "capabilities")
    # Not trained for tools is not "no tools": the server offers them to every model by its prompt.
    trained = _flag(flags, "trained_for_tool_use") or "tool_use" in array_in(entry, "capabilities")
    kind = entry.get("type")
    return Capabilities(
        images=_flag(flags, "vision") if flags or not isinstance(kind, str) else kind == "vlm",
        tools=trained or None,
        context_window=_first_size(*loaded, entry.get("loaded_context_length"), entry.get("max_context_length")),
    )


def _litellm_capabilities(data: Any) -> dict[str, Capabilities]:
    found: dict[str, Capabilities] = {}
    for entry in objects_in(data, "data"):
        facts = object_in(entry, "model_info")
        if isinstance(name := entry.get("model_name"), str):
            found[name] = Capabilities(
                images=_flag(facts, "supports_vision"),
                tools=_flag(facts, "supports_function_calling"),
                reasoning=_flag(facts, "supports_reasoning"),
                context_window=_first_size(facts.get("max_input_tokens"), facts.get("max_tokens")),
                max_output_tokens=_first_size(facts.get("max_output_tokens")),
            )
    return found


def _llama_cpp_capabilities(data: Any) -> Capabilities:
    """GET /props: the context of a slot is what one conversation gets; the trained one is not."""
    settings = object_in(data, "default_generation_settings")
    return Capabilities(
        images=_flag(object_in(data, "modalities"), "vision"),
        context_window=_first_size(settings.get("n_ctx"), object_in(data, "modalities").get("n_ctx")),
    )


def _flag(data: dict[str, Any], name: str) -> bool | None:
    value = data.get(name)
    return value if isinstance(value, bool) else None


def _parse_day(value: Any) -> date | None:
    """OpenAI's `shutdown_date`: a date, or seconds since 1970 as in `created`."""
    try:
        if isinstance(value, str):
            return datetime.fromisoformat(value).date()
        return datetime.fromtimestamp(value, UTC).date() if type(value) is int and value > 0 else None
    except (ValueError, OverflowError, OSError):
        return None


def _first_size(*values: Any) -> int | None:
    return next((value for value in values if type(value) is int and value > 0), None)
