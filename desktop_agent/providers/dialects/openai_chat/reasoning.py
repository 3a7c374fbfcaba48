"""How reasoning is switched on Chat Completions, family by family and, for OpenAI's own, model by model.

Nothing is sent that a server is known to refuse; what was wished for otherwise is said in an adjustment:
- no documented switch (LM Studio, vLLM, LiteLLM, strangers): OpenAI's word, which is dropped when it is refused;
  Mistral refuses every unknown field, so nothing is sent;
- a level that a model lacks becomes the nearest one that it has; a budget becomes a level where only levels exist;
- "off" where a model always reasons becomes its lowest level (xAI: nothing is sent);
- OpenAI models that refuse tools beside reasoning get effort "none" with tools (5.4: no effort);
- reasoning between calls only is asked for nowhere here;
- sampling and stop sequences are left out where a reasoning model refuses them.
What has no downgrade is an error before the network: models that take tools, or everything, on Responses only.
"""

import re
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from desktop_agent.providers.dialects.efforts import (
    BETWEEN_TOOLS_IGNORED,
    EffortWord,
    adaptive_ignored,
    choose_effort,
    effort_ignored,
    grok_version,
    level_adjustments,
)
from desktop_agent.providers.dialects.openai_models import OpenAIModelFacts, effort_for, openai_model_facts
from desktop_agent.providers.dialects.servers import ServerQuirks
from desktop_agent.vocabulary.errors import CapabilityMissing, Sentence, ToolCallingNotSupported
from desktop_agent.vocabulary.requests import (
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

# What OpenAI's models do here with tools beside reasoning. The first pattern that fits the start of the name counts.
_ToolsRule = Literal["responses", "none", "silent", "free"]
_OPENAI_TOOL_RULES: tuple[tuple[re.Pattern[str], _ToolsRule], ...] = (
    (re.compile(r"gpt-6-astra|gpt-6\.1-sol"), "responses"),  # refused: only the Responses interface takes both
    (re.compile(r"gpt-6|gpt-5\.[5-9]"), "none"),  # taken with an explicit effort of "none"
    (re.compile(r"gpt-5\.4"), "silent"),  # taken as long as no effort is named
)
_RESPONSES_ONLY = re.compile(r"(gpt-\d|o\d)[\w.]*-(?:\w+-)*pro\b")


@dataclass(frozen=True, slots=True)
class ReasoningSetting:
    """Fields to send, fields of the rest of the body that this model would refuse, and what is to be said."""

    fields: dict[str, Any] = field(default_factory=dict[str, Any])
    refused: frozenset[str] = frozenset()
    is_reasoning_model: bool = False
    adjustments: tuple[Sentence, ...] = ()


def reasoning_setting(request: ModelRequest, quirks: ServerQuirks, known: Capabilities) -> ReasoningSetting:
    """What to send for this request. Raises CapabilityMissing or ToolCallingNotSupported."""
    match quirks.switch:
        case "openai":
            found = _openai_setting(request, known)
        case "xai":
            found = _xai_setting(request)
        case "openrouter":
            found = _openrouter_setting(request, known)
        case "deepseek":
            found = _deepseek_setting(request)
        case "llamacpp":
            found = _llama_cpp_setting(request)
        case _ if quirks.family == "mistral":
            found = _uncontrollable(request)
        case _:
            # Asked for by the person, so it is sent; a server that refuses the field is asked again without it.
            effort, said = choose_effort(request, known.efforts, can_be_off=True)
            found = ReasoningSetting(_fields(effort) | _hide_reasoning(request, quirks, known), adjustments=said)
    if isinstance(request.config.reasoning, ReasoningBetweenTools):
        return replace(found, adjustments=(*found.adjustments, BETWEEN_TOOLS_IGNORED))
    return found


def _openrouter_setting(request: ModelRequest, known: Capabilities) -> ReasoningSetting:
    wish = request.config.reasoning
    if known.reasoning is False:
        return _uncontrollable(request)
    fields: dict[str, Any] = {}
    said: tuple[Sentence, ...] = ()
    if isinstance(wish, ReasoningDisabled | ReasoningAdaptive):
        fields = {"enabled": isinstance(wish, ReasoningAdaptive)}
    elif isinstance(wish, ReasoningBudget):
        fields = {"max_tokens": wish.tokens}
    elif isinstance(wish, ReasoningEffort):
        effort, said = choose_effort(request, known.efforts or _BELOW_MAX, can_be_off=True)
        fields = {"effort": effort}
    if not request.config.show_reasoning and fields.get("enabled", True):
        fields["exclude"] = True
    return ReasoningSetting({"reasoning": fields} if fields else {}, adjustments=said)


def _deepseek_setting(request: ModelRequest) -> ReasoningSetting:
    """The server reads minimal as low and medium as high; only its own three words are sent."""
    wish = request.config.reasoning
    if isinstance(wish, ReasoningDisabled):
        return ReasoningSetting({"thinking": {"type": "disabled"}})
    if isinstance(wish, ReasoningAdaptive):
        return ReasoningSetting({"thinking": {"type": "enabled"}})
    if not isinstance(wish, ReasoningEffort | ReasoningBudget):
        return ReasoningSetting()
    wanted = effort_for(wish)
    level = "low" if wanted in ("minimal", "low") else "high" if wanted in ("medium", "high") else "max"
    said = level_adjustments(request, wish, level)
    return ReasoningSetting({"thinking": {"type": "enabled"}, "reasoning_effort": level}, adjustments=said)


def _llama_cpp_setting(request: ModelRequest) -> ReasoningSetting:
    if isinstance(request.config.reasoning, ReasoningDisabled):
        return ReasoningSetting({"chat_template_kwargs": {"enable_thinking": False}})
    return _uncontrollable(request)


def _uncontrollable(request: ModelRequest) -> ReasoningSetting:
    """A server or model that cannot be told how to reason."""
    wish = request.config.reasoning
    values = {"model": request.model}
    if isinstance(wish, ReasoningEffort | ReasoningBudget):
        return ReasoningSetting(adjustments=effort_ignored(request))
    if isinstance(wish, ReasoningDisabled):
        said = Sentence("Whether “{model}” reasons cannot be chosen here, so it does as it does by itself.", values)
        return ReasoningSetting(adjustments=(said,))
    return ReasoningSetting()


def _xai_setting(request: ModelRequest) -> ReasoningSetting:
    """Efforts since grok-4.5; a model that reasons cannot be told not to, and takes no stop sequences."""
    version = grok_version(request.model)
    wish = request.config.reasoning
    if version < (4, 0):
        asked = isinstance(wish, ReasoningEffort | ReasoningBudget)
        return ReasoningSetting(adjustments=effort_ignored(request) if asked else ())
    if isinstance(wish, ReasoningDisabled):
        said = Sentence("“{model}” always reasons, so it reasons as it does by itself.", {"model": request.model})
        return ReasoningSetting(refused=_STOP, is_reasoning_model=True, adjustments=(said,))
    if version < (4, 5):
        return replace(_uncontrollable(request), refused=_STOP, is_reasoning_model=True)
    efforts: tuple[Effort, ...] = ("low", "medium", "high", "xhigh")
    effort, said = choose_effort(request, efforts if version >= (4, 7) else efforts[:3], can_be_off=False)
    return ReasoningSetting(_fields(effort), _STOP, is_reasoning_model=True, adjustments=said)


def _openai_setting(request: ModelRequest, known: Capabilities) -> ReasoningSetting:
    name = request.model.rpartition("/")[2].lower()
    if _RESPONSES_ONLY.match(name):
        raise CapabilityMissing(
            f"{request.model} is served by OpenAI's Responses interface only.",
            "Choose another model, or the Responses dialect for this server.",
        )
    facts = _model_facts(name, known)
    if facts is None:
        # Newer models tend to refuse an effort beside tools.
        if request.tools:
            return _uncontrollable(request)
        effort, said = choose_effort(request, None, can_be_off=True)
        return ReasoningSetting(_fields(effort), adjustments=said)
    if not facts.efforts:
        wish = request.config.reasoning
        said = effort_ignored(request) if isinstance(wish, ReasoningEffort | ReasoningBudget) else ()
        return ReasoningSetting(adjustments=adaptive_ignored(request) if isinstance(wish, ReasoningAdaptive) else said)
    effort, said = _openai_effort(request, name, facts)
    reasons = facts.reasons_by_default if effort is None else effort != "none"
    refused = _STOP if facts.sampling and not reasons else _STOP | _SAMPLING
    return ReasoningSetting(_fields(effort), refused, is_reasoning_model=True, adjustments=said)


def _model_facts(name: str, known: Capabilities) -> OpenAIModelFacts | None:
    """The row of this model, corrected by what the catalogue says. `max` is taken by no model on this interface."""
    facts = OpenAIModelFacts() if known.reasoning is False else openai_model_facts(name)
    if facts is None:
        return None
    efforts = facts.efforts if known.efforts is None else known.efforts
    return replace(
        facts,
        efforts=tuple(each for each in efforts if each != "max"),
        sampling=facts.sampling and known.sampling is not False,
        reasons_by_default=facts.reasons_by_default if known.reasons_by_default is None else known.reasons_by_default,
    )


def _openai_effort(
    request: ModelRequest, name: str, facts: OpenAIModelFacts
) -> tuple[EffortWord | None, tuple[Sentence, ...]]:
    """The word to send, or None for the model's own default."""
    wish = request.config.reasoning
    tools = (
        next((each for pattern, each in _OPENAI_TOOL_RULES if pattern.match(name)), "free") if request.tools else "free"
    )
    if tools == "responses":
        raise ToolCallingNotSupported(
            f"{request.model} calls tools by OpenAI's Responses interface only.",
            "Choose another model, the Responses dialect for this server, or turn tools off.",
        )
    if tools in ("none", "silent"):
        values = {"model": request.model}
        asked = isinstance(wish, ReasoningEffort | ReasoningBudget | ReasoningAdaptive)
        said = Sentence("“{model}” does not reason here while it has tools; by the Responses dialect it can.", values)
        return "none" if tools == "none" else None, (said,) if asked else ()
    if isinstance(wish, ReasoningAdaptive) and not facts.reasons_by_default:
        return None, adaptive_ignored(request)
    return choose_effort(request, facts.efforts, can_be_off=facts.can_be_off)


def _hide_reasoning(request: ModelRequest, quirks: ServerQuirks, known: Capabilities) -> dict[str, Any]:
    """Groq shows reasoning unless it is told not to; models that do not reason refuse the word."""
    is_asked = quirks.family == "groq" and known.reasoning is True and not request.config.show_reasoning
    return {"reasoning_format": "hidden"} if is_asked else {}


def _fields(effort: str | None) -> dict[str, Any]:
    return {} if effort is None else {"reasoning_effort": effort}
