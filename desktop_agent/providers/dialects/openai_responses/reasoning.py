"""How reasoning is asked for on the Responses API, family by family and, for OpenAI's own, model by model.

Nothing is sent that a model is known to refuse; what was wished for otherwise is said in an adjustment:
- a level that a model lacks becomes the nearest one that it has; a budget becomes a level, there is nothing else here;
- "off" where a model always reasons becomes its lowest level (xAI: the model's own);
- reasoning between calls only, and levels for a model that does not reason, are left to the model;
- temperature and top_p are left out while a model reasons that refuses them then.
Summaries are asked for where OpenAI's own models answer; others send reasoning as they please.
"""

from dataclasses import dataclass, field, replace
from typing import Any

from desktop_agent.providers.dialects.efforts import (
    BETWEEN_TOOLS_IGNORED,
    adaptive_ignored,
    choose_effort,
    effort_ignored,
    grok_version,
)
from desktop_agent.providers.dialects.openai_models import OpenAIModelFacts, openai_model_facts
from desktop_agent.providers.dialects.servers import ServerQuirks
from desktop_agent.vocabulary.errors import Sentence
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


@dataclass(frozen=True, slots=True)
class ReasoningSetting:
    """What goes into `reasoning`, and whether temperature and top_p may stand beside it."""

    reasoning: dict[str, str] = field(default_factory=dict[str, str])
    sampling: bool = True
    adjustments: tuple[Sentence, ...] = ()


def reasoning_setting(request: ModelRequest, quirks: ServerQuirks, known: Capabilities) -> ReasoningSetting:
    """What to send for this request. `known` is believed before the table of names."""
    match quirks.switch:
        case "openai":
            found = _openai_setting(request, _model_facts(request.model, known), known)
        case "xai":
            found = _xai_setting(request)
        case _:
            effort, said = choose_effort(request, known.efforts, can_be_off=True)
            found = ReasoningSetting(_fields(effort), known.sampling is not False, said)
    if isinstance(request.config.reasoning, ReasoningBetweenTools):
        return replace(found, adjustments=(*found.adjustments, BETWEEN_TOOLS_IGNORED))
    return found


def _model_facts(model: str, known: Capabilities) -> OpenAIModelFacts | None:
    """The row of this model, corrected by what the catalogue or the server says."""
    facts = openai_model_facts(model)
    if known.reasoning is False:
        facts = OpenAIModelFacts()
    elif known.efforts is not None:
        facts = replace(facts or OpenAIModelFacts(reasons_by_default=True), efforts=known.efforts)
    if facts is None:
        return None
    modes, by_default = known.reasoning_modes, known.reasons_by_default
    return replace(
        facts,
        can_be_off=facts.can_be_off if modes is None else "disabled" in modes,
        reasons_by_default=facts.reasons_by_default if by_default is None else by_default,
        sampling=facts.sampling and known.sampling is not False,
    )


def _openai_setting(request: ModelRequest, facts: OpenAIModelFacts | None, known: Capabilities) -> ReasoningSetting:
    summary = {"summary": "auto"} if request.config.show_reasoning else {}
    if facts is None:
        effort, said = choose_effort(request, None, can_be_off=True)
        return ReasoningSetting(
            _fields(effort) | ({} if effort == "none" else summary), known.sampling is not False, said
        )
    effort, said = choose_effort(request, facts.efforts, can_be_off=facts.can_be_off)
    if isinstance(request.config.reasoning, ReasoningAdaptive) and not facts.reasons_by_default:
        said = adaptive_ignored(request)
    reasons = facts.reasons_by_default if effort is None else effort != "none"
    return ReasoningSetting(_fields(effort) | (summary if reasons else {}), facts.sampling and not reasons, said)


def _xai_setting(request: ModelRequest) -> ReasoningSetting:
    """Efforts since grok-4.5; a model that reasons cannot be told not to."""
    version = grok_version(request.model)
    wish = request.config.reasoning
    if version < (4, 5):
        return ReasoningSetting(
            adjustments=effort_ignored(request) if isinstance(wish, ReasoningEffort | ReasoningBudget) else ()
        )
    if isinstance(wish, ReasoningDisabled):
        said = Sentence("“{model}” always reasons, so it reasons as it does by itself.", {"model": request.model})
        return ReasoningSetting(adjustments=(said,))
    efforts: tuple[Effort, ...] = ("low", "medium", "high", "xhigh")
    effort, adjustments = choose_effort(request, efforts if version >= (4, 7) else efforts[:3], can_be_off=False)
    return ReasoningSetting(_fields(effort), adjustments=adjustments)


def _fields(effort: str | None) -> dict[str, Any]:
    return {} if effort is None else {"effort": effort}
