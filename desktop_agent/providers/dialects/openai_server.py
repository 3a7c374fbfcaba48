"""Servers that speak one of OpenAI's dialects: their family, and the models that they list.

Some families have another endpoint that tells more about their models. What is unknown about a model stays None.
"""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any, Literal
from urllib.parse import quote

from pydantic import SecretStr

from desktop_agent.data_files import load_table
from desktop_agent.providers.catalogue.catalogue import Catalogue
from desktop_agent.providers.dialects.server_adapter import ServerAdapter
from desktop_agent.providers.dialects.server_families import (
    ServerQuirks,
    api_root,
    join_url,
    picture_limits,
    quirks_for_listing,
    quirks_for_url,
    url_outside_v1,
)
from desktop_agent.providers.transport.error_responses import error_from_listing, has_error, is_bare_error
from desktop_agent.providers.transport.http_client import HttpClient, HttpRequest
from desktop_agent.providers.transport.json_codec import (
    array_in,
    dumps,
    flag_in,
    is_array,
    is_object,
    loads,
    object_in,
    objects_in,
    repair_text,
)
from desktop_agent.types.errors import ProviderError
from desktop_agent.types.providers import Capabilities, ImageLimits, ModelInfo, Price, Timeouts

_MAX_PARALLEL_SHOWS = 4
_MAX_SHOWS = 60
# The question waits meanwhile, and can be asked without.
_SHORT_TIMEOUTS = Timeouts(connect=5, headers=5, idle=5, total=10)


def droppable_fields(name: str) -> frozenset[str]:
    """Return one list of droppable_fields.toml."""
    return frozenset(load_table(__name__, "droppable_fields.toml")[name])


class OpenAIServer(ServerAdapter):
    """One server of a family. `base_url` is what the vendor's own SDK expects, usually ending in /v1.

    `quirks` overrides what the address and the listing suggest. A request with a field that the server refuses is sent
    once more without it. Raises WrongUse for an address or a key that cannot be used.
    """

    def __init__(
        self,
        *,
        base_url: str,
        api_key: SecretStr | None = None,
        http: HttpClient,
        quirks: ServerQuirks | None = None,
        catalogue: Catalogue | None = None,
    ) -> None:
        self._is_guess = quirks is None
        self._quirks = quirks or quirks_for_url(api_root(base_url))
        self._vendor, self._key_header = self._quirks.family, self._quirks.key_header
        super().__init__(base_url=base_url, api_key=api_key, http=http, catalogue=catalogue)
        # Fields that the server refused, by model.
        self._refused: dict[str, frozenset[str]] = {}

    def _parse_root(self, base_url: str) -> str:
        return api_root(base_url, self._quirks.usual_path)

    async def list_models(self) -> tuple[ModelInfo, ...]:
        """Return the server's listing, and learn from it which family the server belongs to."""
        entries = _parse_entries(await self._exchange(join_url(self._root, "models")))
        quirks = quirks_for_listing(entries, self._quirks)
        if self._is_guess:
            self._quirks, self._vendor = quirks, quirks.family
        known = await self._family_capabilities(quirks.family, [entry["id"] for entry in entries])
        return self._set_listing(_parse_model(entry, known.get(entry["id"]) or known.get("")) for entry in entries)

    def picture_limits(self, model: str) -> ImageLimits:  # noqa: ARG002  the same for all its models
        """Return what this family of servers accepts."""
        return picture_limits(self._quirks)

    async def _ask_what_it_makes(self, model: str) -> None:
        """Ask OpenRouter what a model answers with, where neither a listing nor a table says it.

        Its models make pictures only where they are asked for some, and whoever asks one question lists no models.
        """
        known = self.model_info(model)
        is_known = model in self._listed or known.capabilities.outputs is not None
        # Its names begin with the maker's.
        if self._vendor != "openrouter" or "/" not in model or is_known:
            return
        call = HttpRequest(
            join_url(self._root, f"models/{quote(model, safe='/:')}/endpoints"), _SHORT_TIMEOUTS, None, self._secret
        )
        try:
            entry = object_in(loads(await self._http.exchange(call)), "data")
        except (ProviderError, ValueError, TypeError) as error:
            if isinstance(error, ProviderError) and error.retryable:
                # It passes: the next question asks again.
                return
            entry = {}
        self._listed[model] = replace(known, capabilities=_capabilities(entry).over(known.capabilities))

    async def _family_capabilities(self, family: str, ids: list[str]) -> Mapping[str, Capabilities]:
        """Return facts by model id from a family's own endpoint; the empty id is for every model."""
        try:
            match family:
                case "ollama":
                    return await self._ollama_capabilities(ids)
                case "lmstudio":
                    return await self._lm_studio_capabilities()
                case "litellm":
                    return _litellm_capabilities(await self._fetch("model/info"))
                case "llamacpp":
                    return {"": _llama_cpp_capabilities(await self._fetch("props"))}
                case _:
                    return {}
        except (ProviderError, ValueError):
            return {}

    async def _ollama_capabilities(self, ids: list[str]) -> dict[str, Capabilities]:
        """POST /api/show for each model. The window is `num_ctx` if the model file sets one, else the model's own."""
        slots = asyncio.Semaphore(_MAX_PARALLEL_SHOWS)

        async def show(model: str) -> tuple[str, Capabilities]:
            try:
                async with slots:
                    data = await self._fetch("api/show", dumps({"model": model}))
            except (ProviderError, ValueError):
                return model, Capabilities()
            return model, _ollama_model(data if is_object(data) else {})

        return dict(await asyncio.gather(*(show(model) for model in ids[:_MAX_SHOWS])))

    async def _lm_studio_capabilities(self) -> dict[str, Capabilities]:
        """GET /api/v1/models, or /api/v0/models of older versions; the context of a loaded model counts."""
        try:
            entries, key = objects_in(await self._fetch("api/v1/models"), "models"), "key"
        except ProviderError:
            entries, key = objects_in(await self._fetch("api/v0/models"), "data"), "id"
        capabilities: dict[str, Capabilities] = {}
        for entry in entries:
            names = [entry.get(key), *(instance.get("id") for instance in objects_in(entry, "loaded_instances"))]
            capabilities |= {name: _lm_studio_model(entry) for name in names if isinstance(name, str)}
        return capabilities

    async def _fetch(self, path: str, body: bytes | None = None) -> Any:
        return loads(await self._exchange(url_outside_v1(self._root, path), body))


def _parse_entries(body: bytes) -> list[dict[str, Any]]:
    try:
        data = loads(body)
    except ValueError:
        data = ...
    fields = data if is_object(data) else {}
    listed = fields.get("data", fields.get("models", ...)) if is_object(data) else data
    if listed is None and not is_bare_error(data):  # Ollama without any model
        listed = []
    entries = [entry for entry in listed if is_object(entry)] if is_array(listed) else []
    is_refused = fields.get("success") is False and not listed
    is_listing = is_array(listed) and not has_error(fields.get("error")) and not is_refused
    if not is_listing or any(has_error(entry.get("error")) for entry in entries[:1]):
        raise error_from_listing(body)
    return [entry for entry in entries if isinstance(entry.get("id"), str) and entry["id"] and _can_chat(entry)]


def _can_chat(entry: dict[str, Any]) -> bool:
    """Whether a model answers questions: Mistral also lists models for embeddings and moderation, with a flag."""
    return flag_in(object_in(entry, "capabilities"), "completion_chat") is not False


def _parse_model(entry: dict[str, Any], capabilities: Capabilities | None) -> ModelInfo:
    title = entry.get("name")
    own = _capabilities(entry)
    return ModelInfo(
        id=repair_text(entry["id"]),
        title=repair_text(title) if isinstance(title, str) and title and title != entry["id"] else None,
        capabilities=own if capabilities is None else capabilities.over(own),
        price=_parse_price(object_in(entry, "pricing")),
        retires=_parse_day(entry.get("shutdown_date")),
    )


def _parse_price(pricing: dict[str, Any]) -> Price | None:
    """Parse OpenRouter's prices: dollars for one token, as strings; -1 if it depends on the server."""
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
    """Return facts from the listing itself, under the names of several families."""
    flags, meta = object_in(entry, "capabilities"), object_in(entry, "meta")
    modalities = object_in(entry, "architecture").get("input_modalities")
    outputs = object_in(entry, "architecture").get("output_modalities")
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
        images=flag_in(flags, "vision") if not is_array(modalities) else "image" in modalities,
        tools=flag_in(flags, "function_calling") if not is_array(parameters) else "tools" in parameters,
        reasoning=flag_in(flags, "reasoning") if not is_array(parameters) else "reasoning" in parameters,
        context_window=context,
        max_output_tokens=output,
        outputs=tuple(kind for kind in _OUTPUTS if kind in outputs) if is_array(outputs) else None,
    )


_OUTPUTS: tuple[Literal["image"], Literal["text"]] = ("image", "text")


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


def _lm_studio_model(entry: dict[str, Any]) -> Capabilities:
    loaded = [object_in(instance, "config").get("context_length") for instance in objects_in(entry, "loaded_instances")]
    flags = object_in(entry, "capabilities")
    # A model that is not trained for tools can call them: the server adds them to every prompt.
    trained = flag_in(flags, "trained_for_tool_use") or "tool_use" in array_in(entry, "capabilities")
    kind = entry.get("type")
    return Capabilities(
        images=flag_in(flags, "vision") if flags or not isinstance(kind, str) else kind == "vlm",
        tools=trained or None,
        context_window=_first_size(*loaded, entry.get("loaded_context_length"), entry.get("max_context_length")),
    )


def _litellm_capabilities(data: Any) -> dict[str, Capabilities]:
    capabilities: dict[str, Capabilities] = {}
    for entry in objects_in(data, "data"):
        facts = object_in(entry, "model_info")
        if isinstance(name := entry.get("model_name"), str):
            capabilities[name] = Capabilities(
                images=flag_in(facts, "supports_vision"),
                tools=flag_in(facts, "supports_function_calling"),
                reasoning=flag_in(facts, "supports_reasoning"),
                context_window=_first_size(facts.get("max_input_tokens"), facts.get("max_tokens")),
                max_output_tokens=_first_size(facts.get("max_output_tokens")),
            )
    return capabilities


def _llama_cpp_capabilities(data: Any) -> Capabilities:
    """GET /props: the context of a slot is what one conversation gets; the trained one is not."""
    settings = object_in(data, "default_generation_settings")
    return Capabilities(
        images=flag_in(object_in(data, "modalities"), "vision"),
        context_window=_first_size(settings.get("n_ctx")),
    )


def _parse_day(value: Any) -> date | None:
    """Parse OpenAI's `shutdown_date`: a date, or seconds since 1970 as in `created`."""
    try:
        if isinstance(value, str):
            return datetime.fromisoformat(value).date()
        return datetime.fromtimestamp(value, UTC).date() if type(value) is int and value > 0 else None
    except (ValueError, OverflowError, OSError):
        return None


def _first_size(*values: Any) -> int | None:
    return next((value for value in values if type(value) is int and value > 0), None)
