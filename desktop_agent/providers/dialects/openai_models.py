"""What is known of OpenAI's own models by their names: how they reason, and what they refuse meanwhile.

Sources: the reference of the Responses API (reasoning, prompt_cache_options) and the model pages, November 2026.
A catalogue may know better; a name that no row fits is unknown, not incapable.
"""

import re
from dataclasses import dataclass

from desktop_agent.vocabulary.requests import Effort, ReasoningBudget, ReasoningEffort

EFFORTS: tuple[Effort, ...] = ("minimal", "low", "medium", "high", "xhigh", "max")
_LOW_TO_HIGH: tuple[Effort, ...] = ("low", "medium", "high")
_LOW_TO_XHIGH: tuple[Effort, ...] = (*_LOW_TO_HIGH, "xhigh")
_LOW_TO_MAX: tuple[Effort, ...] = (*_LOW_TO_XHIGH, "max")


@dataclass(frozen=True, slots=True)
class OpenAIModelFacts:
    """One family of models. No `efforts`: it does not reason.

    `sampling`: takes temperature and top_p while reasoning is off; while it is on, none does. `cache_options`: takes
    prompt_cache_options, with which a cached prompt may be kept for longer, or not at all.
    """

    efforts: tuple[Effort, ...] = ()
    can_be_off: bool = True
    reasons_by_default: bool = False
    sampling: bool = True
    cache_options: bool = False


# The first pattern that fits the start of the name counts.
_OPENAI_ROWS: tuple[tuple[re.Pattern[str], OpenAIModelFacts], ...] = (
    (re.compile(r"gpt-[34]|chatgpt-|gpt-5[\w.]*-chat"), OpenAIModelFacts()),
    (
        re.compile(r"(gpt-6|gpt-5\.[6-9])[\w.]*-(?:\w+-)*pro\b"),
        OpenAIModelFacts(("medium", "high", "xhigh"), can_be_off=False, reasons_by_default=True, cache_options=True),
    ),
    (
        re.compile(r"gpt-5[\w.]*-(?:\w+-)*pro\b"),
        OpenAIModelFacts(("medium", "high", "xhigh"), can_be_off=False, reasons_by_default=True),
    ),
    (
        re.compile(r"gpt-6-astra|gpt-6\.1-sol"),
        OpenAIModelFacts(_LOW_TO_MAX, can_be_off=False, reasons_by_default=True, sampling=False, cache_options=True),
    ),
    (re.compile(r"gpt-6|gpt-5\.[6-9]"), OpenAIModelFacts(_LOW_TO_MAX, reasons_by_default=True, cache_options=True)),
    (re.compile(r"gpt-5\.5"), OpenAIModelFacts(_LOW_TO_XHIGH, reasons_by_default=True)),
    (re.compile(r"gpt-5\.[234]|gpt-5\.1-codex-max"), OpenAIModelFacts(_LOW_TO_XHIGH)),
    (re.compile(r"gpt-5\.1"), OpenAIModelFacts(_LOW_TO_HIGH)),
    (
        re.compile(r"gpt-5(?![.\d])"),
        OpenAIModelFacts(("minimal", *_LOW_TO_HIGH), can_be_off=False, reasons_by_default=True),
    ),
    (re.compile(r"o\d"), OpenAIModelFacts(_LOW_TO_HIGH, can_be_off=False, reasons_by_default=True)),
)


def openai_model_facts(model: str) -> OpenAIModelFacts | None:
    """What is known about a model by its name, with or without a vendor before a slash; None for an unknown one."""
    name = model.rpartition("/")[2].lower()
    return next((facts for pattern, facts in _OPENAI_ROWS if pattern.match(name)), None)


def effort_for(wish: ReasoningEffort | ReasoningBudget) -> Effort:
    """A budget as a level, roughly as providers translate between the two."""
    if isinstance(wish, ReasoningEffort):
        return wish.level
    return "low" if wish.tokens <= 2048 else "medium" if wish.tokens <= 8192 else "high"


def nearest_effort(level: Effort, efforts: tuple[Effort, ...]) -> Effort:
    """The level itself, or the nearest of those that a model has; the lower one of two as near."""
    wanted = EFFORTS.index(level)
    return min(efforts, key=lambda each: (abs(EFFORTS.index(each) - wanted), EFFORTS.index(each)))
