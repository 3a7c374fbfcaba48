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
    BETWEEN_TOOLS,
    Word,
    effort_word,
    grok_version,
    not_by_itself,
    said_of_level,
    unheard,
)
from desktop_agent.providers.dialects.openai_models import OpenAIModel, effort_of, openai_model
from desktop_agent.providers.dialects.servers import Quirks
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
_Tools = Literal["responses", "none", "silent", "free"]
_OPENAI_TOOLS: tuple[tuple[re.Pattern[str], _Tools], ...] = (
    (re.compile(r"gpt-6-astra|gpt-6\.1-sol"), "responses"),  # refused: only the Responses interface takes both
    (re.compile(r"gpt-6|gpt-5\.[5-9]"), "none"),  # taken with an explicit effort of "none"
    (re.compile(r"gpt-5\.4"), "silent"),  # taken as long as no effort is named
)
_RESPONSES_ONLY = re.compile(r"(gpt-\d|o\d)[\w.]*-(?:\w+-)*pro\b")


@dataclass(frozen=True, slots=True)
class Switching:
    """Fields to send, fields of the rest of the body that this model would refuse, and what is to be said."""

    fields: dict[str, Any] = field(default_factory=dict[str, Any])
    refused: frozenset[str] = frozenset()
    is_reasoning_model: bool = False
    adjustments: tuple[Sentence, ...] = ()


def switching(request: ModelRequest, quirks: Quirks, known: Capabilities) -> Switching:
    """What to send for this request. Raises CapabilityMissing or ToolCallingNotSupported."""
    match quirks.switch:
        case "openai":
            found = _openai(request, known)
        case "xai":
            found = _xai(request)
        case "openrouter":
            found = _openrouter(request, known)
        case "deepseek":
            found = _deepseek(request)
        case "llamacpp":
            found = _llama_cpp(request)
        case _ if quirks.family == "mistral":
            found = _unswitched(request)
        case _:
            # Asked for by the person, so it is sent; a server that refuses the field is asked again without it.
            effort, said = effort_word(request, known.efforts, can_be_off=True)
            found = Switching(_fields(effort) | _hidden(request, quirks, known), adjustments=said)
    if isinstance(request.config.reasoning, ReasoningBetweenTools):
        return replace(found, adjustments=(*found.adjustments, BETWEEN_TOOLS))
    return found


def _openrouter(request: ModelRequest, known: Capabilities) -> Switching:
    wish = request.config.reasoning
    if known.reasoning is False:
        return _unswitched(request)
    fields: dict[str, Any] = {}
    said: tuple[Sentence, ...] = ()
    if isinstance(wish, ReasoningDisabled | ReasoningAdaptive):
        fields = {"enabled": isinstance(wish, ReasoningAdaptive)}
    elif isinstance(wish, ReasoningBudget):
        fields = {"max_tokens": wish.tokens}
    elif isinstance(wish, ReasoningEffort):
        effort, said = effort_word(request, known.efforts or _BELOW_MAX, can_be_off=True)
        fields = {"effort": effort}
    if not request.config.show_reasoning and fields.get("enabled", True):
        fields["exclude"] = True
    return Switching({"reasoning": fields} if fields else {}, adjustments=said)


def _deepseek(request: ModelRequest) -> Switching:
    """The server reads minimal as low and medium as high; only its own three words are sent."""
    wish = request.config.reasoning
    if isinstance(wish, ReasoningDisabled):
        return Switching({"thinking": {"type": "disabled"}})
    if isinstance(wish, ReasoningAdaptive):
        return Switching({"thinking": {"type": "enabled"}})
    if not isinstance(wish, ReasoningEffort | ReasoningBudget):
        return Switching()
    wanted = effort_of(wish)
    level = "low" if wanted in ("minimal", "low") else "high" if wanted in ("medium", "high") else "max"
    said = said_of_level(request, wish, level)
    return Switching({"thinking": {"type": "enabled"}, "reasoning_effort": level}, adjustments=said)


def _llama_cpp(request: ModelRequest) -> Switching:
    if isinstance(request.config.reasoning, ReasoningDisabled):
        return Switching({"chat_template_kwargs": {"enable_thinking": False}})
    return _unswitched(request)


def _unswitched(request: ModelRequest) -> Switching:
    """A server or model that cannot be told how to reason."""
    wish = request.config.reasoning
    values = {"model": request.model}
    if isinstance(wish, ReasoningEffort | ReasoningBudget):
        return Switching(adjustments=unheard(request))
    if isinstance(wish, ReasoningDisabled):
        said = Sentence("Whether “{model}” reasons cannot be chosen here, so it does as it does by itself.", values)
        return Switching(adjustments=(said,))
    return Switching()


def _xai(request: ModelRequest) -> Switching:
    """Efforts since grok-4.5; a model that reasons cannot be told not to, and takes no stop sequences."""
    version = grok_version(request.model)
    wish = request.config.reasoning
    if version < (4, 0):
        asked = isinstance(wish, ReasoningEffort | ReasoningBudget)
        return Switching(adjustments=unheard(request) if asked else ())
    if isinstance(wish, ReasoningDisabled):
        said = Sentence("“{model}” always reasons, so it reasons as it does by itself.", {"model": request.model})
        return Switching(refused=_STOP, is_reasoning_model=True, adjustments=(said,))
    if version < (4, 5):
        return replace(_unswitched(request), refused=_STOP, is_reasoning_model=True)
    efforts: tuple[Effort, ...] = ("low", "medium", "high", "xhigh")
    effort, said = effort_word(request, efforts if version >= (4, 7) else efforts[:3], can_be_off=False)
    return Switching(_fields(effort), _STOP, is_reasoning_model=True, adjustments=said)


def _openai(request: ModelRequest, known: Capabilities) -> Switching:
    name = request.model.rpartition("/")[2].lower()
    if _RESPONSES_ONLY.match(name):
        raise CapabilityMissing(
            f"{request.model} is served by OpenAI's Responses interface only.",
            "Choose another model, or the Responses dialect for this server.",
        )
    facts = _facts(name, known)
    if facts is None:
        # Newer models tend to refuse an effort beside tools.
        if request.tools:
            return _unswitched(request)
        effort, said = effort_word(request, None, can_be_off=True)
        return Switching(_fields(effort), adjustments=said)
    if not facts.efforts:
        wish = request.config.reasoning
        said = unheard(request) if isinstance(wish, ReasoningEffort | ReasoningBudget) else ()
        return Switching(adjustments=not_by_itself(request) if isinstance(wish, ReasoningAdaptive) else said)
    effort, said = _openai_effort(request, name, facts)
    reasons = facts.reasons_by_default if effort is None else effort != "none"
    refused = _STOP if facts.sampling and not reasons else _STOP | _SAMPLING
    return Switching(_fields(effort), refused, is_reasoning_model=True, adjustments=said)


def _facts(name: str, known: Capabilities) -> OpenAIModel | None:
    """The row of this model, corrected by what the catalogue says. `max` is taken by no model on this interface."""
    facts = OpenAIModel() if known.reasoning is False else openai_model(name)
    if facts is None:
        return None
    efforts = facts.efforts if known.efforts is None else known.efforts
    return replace(
        facts,
        efforts=tuple(each for each in efforts if each != "max"),
        sampling=facts.sampling and known.sampling is not False,
        reasons_by_default=facts.reasons_by_default if known.reasons_by_default is None else known.reasons_by_default,
    )


def _openai_effort(request: ModelRequest, name: str, facts: OpenAIModel) -> tuple[Word | None, tuple[Sentence, ...]]:
    """The word to send, or None for the model's own default."""
    wish = request.config.reasoning
    tools = next((each for pattern, each in _OPENAI_TOOLS if pattern.match(name)), "free") if request.tools else "free"
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
        return None, not_by_itself(request)
    return effort_word(request, facts.efforts, can_be_off=facts.can_be_off)


def _hidden(request: ModelRequest, quirks: Quirks, known: Capabilities) -> dict[str, Any]:
    """Groq shows reasoning unless it is told not to; models that do not reason refuse the word."""
    is_asked = quirks.family == "groq" and known.reasoning is True and not request.config.show_reasoning
    return {"reasoning_format": "hidden"} if is_asked else {}


def _fields(effort: str | None) -> dict[str, Any]:
    return {} if effort is None else {"reasoning_effort": effort}
