"""A wish about reasoning as one of the levels that OpenAI's two interfaces have, and what is to be said about it."""

import re
from typing import Literal

from desktop_agent.providers.dialects.openai_models import effort_for, nearest_effort
from desktop_agent.vocabulary.errors import Sentence
from desktop_agent.vocabulary.requests import (
    Effort,
    ModelRequest,
    ReasoningBudget,
    ReasoningDisabled,
    ReasoningEffort,
)

EffortWord = Effort | Literal["none"]
BETWEEN_TOOLS_IGNORED = Sentence("Reasoning only between calls cannot be asked for here, so the model decides.")
_GROK = re.compile(r"grok-(\d+)(?:\.(\d+))?(?!.*non-reasoning)")


def choose_effort(
    request: ModelRequest, efforts: tuple[Effort, ...] | None, *, can_be_off: bool
) -> tuple[EffortWord | None, tuple[Sentence, ...]]:
    """The word to send, None for the model's own, and what is to be said about it. `efforts` None: nobody knows."""
    wish = request.config.reasoning
    if isinstance(wish, ReasoningEffort | ReasoningBudget):
        if efforts == ():
            return None, effort_ignored(request)
        wanted = effort_for(wish)
        level = nearest_effort(wanted, efforts) if efforts else wanted
        return level, level_adjustments(request, wish, level)
    if not isinstance(wish, ReasoningDisabled) or efforts == ():
        return None, ()
    if can_be_off or efforts is None:
        return "none", ()
    values = {"model": request.model, "effort": efforts[0]}
    return efforts[0], (Sentence("“{model}” always reasons, so it reasons at “{effort}”.", values),)


def level_adjustments(
    request: ModelRequest, wish: ReasoningEffort | ReasoningBudget, level: Effort
) -> tuple[Sentence, ...]:
    """What is to be said where this level is sent for that wish."""
    if isinstance(wish, ReasoningBudget):
        values = {"tokens": str(wish.tokens), "effort": level}
        return (Sentence("Reasoning has levels here: {tokens} tokens became “{effort}”.", values),)
    if level != wish.level:
        values = {"model": request.model, "wanted": wish.level, "effort": level}
        return (Sentence("“{model}” has no effort “{wanted}”, so it reasons at “{effort}”.", values),)
    return ()


def effort_ignored(request: ModelRequest) -> tuple[Sentence, ...]:
    """Levels are wished for where none can be sent."""
    values = {"model": request.model}
    return (Sentence("How hard “{model}” reasons cannot be chosen, so that was left out.", values),)


def adaptive_ignored(request: ModelRequest) -> tuple[Sentence, ...]:
    """The model was to decide, and by itself it does not reason."""
    values = {"model": request.model}
    return (Sentence("“{model}” does not choose by itself how much to reason, so it does not.", values),)


def grok_version(model: str) -> tuple[int, int]:
    """Of a Grok that reasons; (0, 0) for any other model."""
    found = _GROK.search(model)
    return (0, 0) if found is None else (int(found[1]), int(found[2] or 0))
