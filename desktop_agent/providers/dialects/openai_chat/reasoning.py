"""Choose how reasoning is requested in Chat Completions, family by family.

Nothing is sent that a server is known to refuse; downgrades are reported in an adjustment, and what cannot be
downgraded is an error before anything is sent.
"""

import re
from dataclasses import dataclass, field, replace
from typing import Any

from desktop_agent.providers.dialects.request_building import (
    BETWEEN_TOOLS_IGNORED,
    EffortChoice,
    OpenAIModelFacts,
    choose_effort,
    choose_openai_effort,
    choose_xai_effort,
    effort_for,
    effort_ignored,
    grok_version,
    level_adjustments,
    openai_model_facts,
)
from desktop_agent.providers.dialects.server_families import ServerQuirks
from desktop_agent.types.errors import CapabilityMissing, Sentence, ToolCallingNotSupported
from desktop_agent.types.providers import (
    Capabilities,
    Effort,
    ModelRequest,
    ReasoningAdaptive,
    ReasoningBetweenTools,
    ReasoningBudget,
    ReasoningDisabled,
    ReasoningEffort,
)

_SAMPLING = frozenset({"temperature", "top_p", "top_k"})
_STOP = frozenset({"stop"})
_BELOW_MAX: tuple[Effort, ...] = ("minimal", "low", "medium", "high", "xhigh")
# For any version: new ones are expected to be the same.
_RESPONSES_ONLY = re.compile(r"(gpt-\d|o\d)[\w.]*-(?:\w+-)*pro\b")


@dataclass(frozen=True, slots=True)
class ReasoningOptions:
    """Fields to send, fields of the rest of the body that this model would refuse, and notes."""

    fields: dict[str, Any] = field(default_factory=dict[str, Any])
    refused: frozenset[str] = frozenset()
    is_reasoning_model: bool = False
    adjustments: tuple[Sentence, ...] = ()


def reasoning_options(request: ModelRequest, quirks: ServerQuirks, known: Capabilities) -> ReasoningOptions:
    """Return what to send for this request. Raises CapabilityMissing or ToolCallingNotSupported."""
    match quirks.switch:
        case "openai":
            setting = _openai_options(request, known)
        case "xai":
            setting = _xai_options(request)
        case "openrouter":
            setting = _openrouter_options(request, known)
        case "deepseek":
            setting = _deepseek_options(request)
        case "llamacpp":
            setting = _llama_cpp_options(request)
        case _ if quirks.family == "mistral":
            setting = _uncontrollable(request)
        case _:
            # The person requested it, so it is sent; if a server refuses the field, the request is sent without it.
            effort, notes = choose_effort(request, known.efforts, can_be_off=True)
            setting = ReasoningOptions(_fields(effort) | _hide_reasoning(request, quirks, known), adjustments=notes)
    if isinstance(request.config.reasoning, ReasoningBetweenTools):
        return replace(setting, adjustments=(*setting.adjustments, BETWEEN_TOOLS_IGNORED))
    return setting


def _openrouter_options(request: ModelRequest, known: Capabilities) -> ReasoningOptions:
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
    return ReasoningOptions({"reasoning": fields} if fields else {}, adjustments=notes)


def _deepseek_options(request: ModelRequest) -> ReasoningOptions:
    """Send only the server's own three levels: it treats minimal as low and medium as high."""
    reasoning = request.config.reasoning
    if isinstance(reasoning, ReasoningDisabled):
        return ReasoningOptions({"thinking": {"type": "disabled"}})
    if isinstance(reasoning, ReasoningAdaptive):
        return ReasoningOptions({"thinking": {"type": "enabled"}})
    if not isinstance(reasoning, ReasoningEffort | ReasoningBudget):
        return ReasoningOptions()
    effort = effort_for(reasoning)
    level = "low" if effort in ("minimal", "low") else "high" if effort in ("medium", "high") else "max"
    notes = level_adjustments(request, reasoning, level)
    return ReasoningOptions({"thinking": {"type": "enabled"}, "reasoning_effort": level}, adjustments=notes)


def _llama_cpp_options(request: ModelRequest) -> ReasoningOptions:
    if isinstance(request.config.reasoning, ReasoningDisabled):
        return ReasoningOptions({"chat_template_kwargs": {"enable_thinking": False}})
    return _uncontrollable(request)


def _uncontrollable(request: ModelRequest) -> ReasoningOptions:
    """Return the setting for a server or model whose reasoning cannot be set."""
    reasoning = request.config.reasoning
    values = {"model": request.model}
    if isinstance(reasoning, ReasoningEffort | ReasoningBudget):
        return ReasoningOptions(adjustments=effort_ignored(request))
    if isinstance(reasoning, ReasoningDisabled):
        note = Sentence("Reasoning cannot be turned on or off here for “{model}”, so the model decides.", values)
        return ReasoningOptions(adjustments=(note,))
    return ReasoningOptions()


def _xai_options(request: ModelRequest) -> ReasoningOptions:
    """Return the setting for xAI: a model that reasons accepts no stop sequences."""
    effort, notes = choose_xai_effort(request, always_reasons_since=(4, 0))
    reasons = grok_version(request.model) >= (4, 0)
    return ReasoningOptions(_fields(effort), _STOP if reasons else frozenset(), reasons, notes)


def _openai_options(request: ModelRequest, known: Capabilities) -> ReasoningOptions:
    name = request.model.rpartition("/")[2].lower()
    if _RESPONSES_ONLY.match(name):
        raise CapabilityMissing(
            Sentence("{model} is served by the API “OpenAI Responses” only.", {"model": request.model}),
            "Choose another model, or the API “OpenAI Responses” for this server.",
        )
    facts = _model_facts(name, known)
    if facts is None:
        # Newer models tend to refuse an effort with tools.
        if request.tools:
            return _uncontrollable(request)
        effort, notes = choose_effort(request, None, can_be_off=True)
        return ReasoningOptions(_fields(effort), adjustments=notes)
    if not facts.efforts:
        return ReasoningOptions(adjustments=choose_openai_effort(request, replace(facts, reasons_by_default=False))[1])
    effort, notes = _effort_beside_tools(request, facts) if request.tools else choose_openai_effort(request, facts)
    refused = _STOP if facts.sampling and not facts.reasons_at(effort) else _STOP | _SAMPLING
    return ReasoningOptions(_fields(effort), refused, is_reasoning_model=True, adjustments=notes)


def _model_facts(name: str, known: Capabilities) -> OpenAIModelFacts | None:
    """Return the row of this model, corrected by the catalogue. No model accepts `max` on this interface."""
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


def _effort_beside_tools(request: ModelRequest, facts: OpenAIModelFacts) -> EffortChoice:
    """Return the effort to send with tools, or None for the model's own default."""
    match facts.chat_tools:
        case "refused":
            raise ToolCallingNotSupported(
                Sentence("{model} calls tools by the API “OpenAI Responses” only.", {"model": request.model}),
                "Choose another model, the API “OpenAI Responses” for this server, or turn tools off.",
            )
        case "any":
            return choose_openai_effort(request, facts)
        case _:
            values = {"model": request.model}
            is_requested = isinstance(request.config.reasoning, ReasoningEffort | ReasoningBudget | ReasoningAdaptive)
            note = Sentence(
                "“{model}” does not reason here while it has tools; by the API “OpenAI Responses” it can.", values
            )
            return "none" if facts.chat_tools == "none" else None, (note,) if is_requested else ()


def _hide_reasoning(request: ModelRequest, quirks: ServerQuirks, known: Capabilities) -> dict[str, Any]:
    """Return the field that hides reasoning at Groq; models that do not reason refuse it."""
    is_hidden = quirks.family == "groq" and known.reasoning is True and not request.config.show_reasoning
    return {"reasoning_format": "hidden"} if is_hidden else {}


def _fields(effort: str | None) -> dict[str, Any]:
    return {} if effort is None else {"reasoning_effort": effort}
