"""List a server's models, and choose how each is told to reason, family by family.

Nothing is sent that a server is known to refuse; downgrades are reported in an adjustment, and what has none is an
error before the network. What is unknown about a model stays None.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from typing import Any, Literal

from desktop_agent.providers.dialects.request_building import (
    BETWEEN_TOOLS_IGNORED,
    EffortWord,
    OpenAIModelFacts,
    adaptive_ignored,
    choose_effort,
    effort_for,
    effort_ignored,
    grok_version,
    level_adjustments,
    openai_model_facts,
)
from desktop_agent.providers.dialects.server_families import ServerQuirks, join_url, quirks_for_listing, url_outside_v1
from desktop_agent.providers.transport.error_responses import error_from_listing, has_error, is_bare_error
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
from desktop_agent.types.errors import CapabilityMissing, ProviderError, Sentence, ToolCallingNotSupported
from desktop_agent.types.providers import (
    Capabilities,
    Effort,
    ModelInfo,
    ModelRequest,
    Price,
    ReasoningAdaptive,
    ReasoningBetweenTools,
    ReasoningBudget,
    ReasoningDisabled,
    ReasoningEffort,
)

Exchange = Callable[..., Awaitable[bytes]]
_MAX_PARALLEL_SHOWS = 4
_MAX_SHOWS = 60


@dataclass(frozen=True, slots=True)
class ModelListing:
    """The models, and the server's family as the listing shows it."""

    models: tuple[ModelInfo, ...]
    quirks: ServerQuirks


async def fetch_models(root: str, quirks: ServerQuirks, exchange: Exchange) -> ModelListing:
    """Fetch everything. `exchange(url, body=None)` returns bytes. Raises ProviderError."""
    entries = _parse_entries(await exchange(join_url(root, "models")))
    quirks = quirks_for_listing(entries, quirks)
    capabilities = await _family_capabilities(root, quirks, [str(entry["id"]) for entry in entries], exchange)
    models = [_parse_model(entry, capabilities.get(str(entry["id"])) or capabilities.get("")) for entry in entries]
    return ModelListing(tuple(models), quirks)


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
    return [entry for entry in entries if isinstance(entry.get("id"), str) and entry["id"]]


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
    """Parse OpenRouter's prices: dollars for one token, as strings; -1 if it depends on who answers."""
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
    )


async def _family_capabilities(
    root: str, quirks: ServerQuirks, ids: list[str], exchange: Exchange
) -> Mapping[str, Capabilities]:
    """Return facts by model id from a family's own endpoint; the empty id is for every model."""
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
    """POST /api/show for each model. The window is `num_ctx` if the model file sets one, else the model's own."""
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
    capabilities: dict[str, Capabilities] = {}
    for entry in entries:
        names = [entry.get(key), *(instance.get("id") for instance in objects_in(entry, "loaded_instances"))]
        capabilities |= {name: _lm_studio_model(entry) for name in names if isinstance(name, str)}
    return capabilities


def _lm_studio_model(entry: dict[str, Any]) -> Capabilities:
    loaded = [object_in(instance, "config").get("context_length") for instance in objects_in(entry, "loaded_instances")]
    flags = object_in(entry, "capabilities")
    # Not trained for tools is not "no tools": the server adds them to every model's prompt.
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
        context_window=_first_size(settings.get("n_ctx"), object_in(data, "modalities").get("n_ctx")),
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


_SAMPLING = frozenset({"temperature", "top_p", "top_k"})
_STOP = frozenset({"stop"})
_BELOW_MAX: tuple[Effort, ...] = ("minimal", "low", "medium", "high", "xhigh")

# What OpenAI's models do here with tools and reasoning. The first pattern that fits the start of the name counts.
_ToolsRule = Literal["responses", "none", "silent", "free"]
_OPENAI_TOOL_RULES: tuple[tuple[re.Pattern[str], _ToolsRule], ...] = (
    (re.compile(r"gpt-6-astra|gpt-6\.1-sol"), "responses"),  # refused: only the Responses interface takes both
    (re.compile(r"gpt-6|gpt-5\.[5-9]"), "none"),  # taken with an explicit effort of "none"
    (re.compile(r"gpt-5\.4"), "silent"),  # taken as long as no effort is named
)
_RESPONSES_ONLY = re.compile(r"(gpt-\d|o\d)[\w.]*-(?:\w+-)*pro\b")


@dataclass(frozen=True, slots=True)
class ReasoningSetting:
    """Fields to send, fields of the rest of the body that this model would refuse, and notes."""

    fields: dict[str, Any] = field(default_factory=dict[str, Any])
    refused: frozenset[str] = frozenset()
    is_reasoning_model: bool = False
    adjustments: tuple[Sentence, ...] = ()


def reasoning_setting(request: ModelRequest, quirks: ServerQuirks, known: Capabilities) -> ReasoningSetting:
    """Return what to send for this request. Raises CapabilityMissing or ToolCallingNotSupported."""
    match quirks.switch:
        case "openai":
            setting = _openai_setting(request, known)
        case "xai":
            setting = _xai_setting(request)
        case "openrouter":
            setting = _openrouter_setting(request, known)
        case "deepseek":
            setting = _deepseek_setting(request)
        case "llamacpp":
            setting = _llama_cpp_setting(request)
        case _ if quirks.family == "mistral":
            setting = _uncontrollable(request)
        case _:
            # The person asked for it, so it is sent; a server that refuses the field is asked again without it.
            effort, notes = choose_effort(request, known.efforts, can_be_off=True)
            setting = ReasoningSetting(_fields(effort) | _hide_reasoning(request, quirks, known), adjustments=notes)
    if isinstance(request.config.reasoning, ReasoningBetweenTools):
        return replace(setting, adjustments=(*setting.adjustments, BETWEEN_TOOLS_IGNORED))
    return setting


def _openrouter_setting(request: ModelRequest, known: Capabilities) -> ReasoningSetting:
    reasoning = request.config.reasoning
    if known.reasoning is False:
        return _uncontrollable(request)
    fields: dict[str, Any] = {}
    notes: tuple[Sentence, ...] = ()
    if isinstance(reasoning, ReasoningDisabled | ReasoningAdaptive):
        fields = {"enabled": isinstance(reasoning, ReasoningAdaptive)}
    elif isinstance(reasoning, ReasoningBudget):
        fields = {"max_tokens": reasoning.tokens}
    elif isinstance(reasoning, ReasoningEffort):
        effort, notes = choose_effort(request, known.efforts or _BELOW_MAX, can_be_off=True)
        fields = {"effort": effort}
    if not request.config.show_reasoning and fields.get("enabled", True):
        fields["exclude"] = True
    return ReasoningSetting({"reasoning": fields} if fields else {}, adjustments=notes)


def _deepseek_setting(request: ModelRequest) -> ReasoningSetting:
    """Send only the server's own three words: it reads minimal as low and medium as high."""
    reasoning = request.config.reasoning
    if isinstance(reasoning, ReasoningDisabled):
        return ReasoningSetting({"thinking": {"type": "disabled"}})
    if isinstance(reasoning, ReasoningAdaptive):
        return ReasoningSetting({"thinking": {"type": "enabled"}})
    if not isinstance(reasoning, ReasoningEffort | ReasoningBudget):
        return ReasoningSetting()
    wanted = effort_for(reasoning)
    level = "low" if wanted in ("minimal", "low") else "high" if wanted in ("medium", "high") else "max"
    notes = level_adjustments(request, reasoning, level)
    return ReasoningSetting({"thinking": {"type": "enabled"}, "reasoning_effort": level}, adjustments=notes)


def _llama_cpp_setting(request: ModelRequest) -> ReasoningSetting:
    if isinstance(request.config.reasoning, ReasoningDisabled):
        return ReasoningSetting({"chat_template_kwargs": {"enable_thinking": False}})
    return _uncontrollable(request)


def _uncontrollable(request: ModelRequest) -> ReasoningSetting:
    """Return the setting for a server or model that cannot be told how to reason."""
    reasoning = request.config.reasoning
    values = {"model": request.model}
    if isinstance(reasoning, ReasoningEffort | ReasoningBudget):
        return ReasoningSetting(adjustments=effort_ignored(request))
    if isinstance(reasoning, ReasoningDisabled):
        note = Sentence("Whether “{model}” reasons cannot be chosen here, so it does as it does by itself.", values)
        return ReasoningSetting(adjustments=(note,))
    return ReasoningSetting()


def _xai_setting(request: ModelRequest) -> ReasoningSetting:
    """Send efforts since grok-4.5; a model that reasons cannot be told not to, and takes no stop sequences."""
    version = grok_version(request.model)
    reasoning = request.config.reasoning
    if version < (4, 0):
        is_requested = isinstance(reasoning, ReasoningEffort | ReasoningBudget)
        return ReasoningSetting(adjustments=effort_ignored(request) if is_requested else ())
    if isinstance(reasoning, ReasoningDisabled):
        notes = Sentence("“{model}” always reasons, so it reasons as it does by itself.", {"model": request.model})
        return ReasoningSetting(refused=_STOP, is_reasoning_model=True, adjustments=(notes,))
    if version < (4, 5):
        return replace(_uncontrollable(request), refused=_STOP, is_reasoning_model=True)
    efforts: tuple[Effort, ...] = ("low", "medium", "high", "xhigh")
    effort, notes = choose_effort(request, efforts if version >= (4, 7) else efforts[:3], can_be_off=False)
    return ReasoningSetting(_fields(effort), _STOP, is_reasoning_model=True, adjustments=notes)


def _openai_setting(request: ModelRequest, known: Capabilities) -> ReasoningSetting:
    name = request.model.rpartition("/")[2].lower()
    if _RESPONSES_ONLY.match(name):
        raise CapabilityMissing(
            f"{request.model} is served by OpenAI's Responses interface only.",
            "Choose another model, or the Responses dialect for this server.",
        )
    facts = _model_facts(name, known)
    if facts is None:
        # Newer models tend to refuse an effort with tools.
        if request.tools:
            return _uncontrollable(request)
        effort, notes = choose_effort(request, None, can_be_off=True)
        return ReasoningSetting(_fields(effort), adjustments=notes)
    if not facts.efforts:
        reasoning = request.config.reasoning
        notes = effort_ignored(request) if isinstance(reasoning, ReasoningEffort | ReasoningBudget) else ()
        return ReasoningSetting(
            adjustments=adaptive_ignored(request) if isinstance(reasoning, ReasoningAdaptive) else notes
        )
    effort, notes = _openai_effort(request, name, facts)
    reasons = facts.reasons_by_default if effort is None else effort != "none"
    refused = _STOP if facts.sampling and not reasons else _STOP | _SAMPLING
    return ReasoningSetting(_fields(effort), refused, is_reasoning_model=True, adjustments=notes)


def _model_facts(name: str, known: Capabilities) -> OpenAIModelFacts | None:
    """Return the row of this model, corrected by the catalogue. No model takes `max` on this interface."""
    facts = OpenAIModelFacts() if known.reasoning is False else openai_model_facts(name)
    if facts is None:
        return None
    efforts = facts.efforts if known.efforts is None else known.efforts
    return replace(
        facts,
        efforts=tuple(effort for effort in efforts if effort != "max"),
        sampling=facts.sampling and known.sampling is not False,
        reasons_by_default=facts.reasons_by_default if known.reasons_by_default is None else known.reasons_by_default,
    )


def _openai_effort(
    request: ModelRequest, name: str, facts: OpenAIModelFacts
) -> tuple[EffortWord | None, tuple[Sentence, ...]]:
    """Return the word to send, or None for the model's own default."""
    reasoning = request.config.reasoning
    tools = (
        next((rule for pattern, rule in _OPENAI_TOOL_RULES if pattern.match(name)), "free") if request.tools else "free"
    )
    if tools == "responses":
        raise ToolCallingNotSupported(
            f"{request.model} calls tools by OpenAI's Responses interface only.",
            "Choose another model, the Responses dialect for this server, or turn tools off.",
        )
    if tools in ("none", "silent"):
        values = {"model": request.model}
        is_requested = isinstance(reasoning, ReasoningEffort | ReasoningBudget | ReasoningAdaptive)
        note = Sentence("“{model}” does not reason here while it has tools; by the Responses dialect it can.", values)
        return "none" if tools == "none" else None, (note,) if is_requested else ()
    if isinstance(reasoning, ReasoningAdaptive) and not facts.reasons_by_default:
        return None, adaptive_ignored(request)
    return choose_effort(request, facts.efforts, can_be_off=facts.can_be_off)


def _hide_reasoning(request: ModelRequest, quirks: ServerQuirks, known: Capabilities) -> dict[str, Any]:
    """Tell Groq to hide reasoning, which it shows otherwise; models that do not reason refuse the field."""
    is_asked = quirks.family == "groq" and known.reasoning is True and not request.config.show_reasoning
    return {"reasoning_format": "hidden"} if is_asked else {}


def _fields(effort: str | None) -> dict[str, Any]:
    return {} if effort is None else {"reasoning_effort": effort}
