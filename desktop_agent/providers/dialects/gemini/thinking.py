"""How hard a model thinks: levels from Gemini 3 on, a budget of tokens in 2.5, never both in one request.

Which of the two comes from what is known about the model; only where nothing is known, from the version in its name.
Ranges and levels: ai.google.dev/gemini-api/docs/thinking.
"""

import re
from dataclasses import dataclass
from typing import Any, Literal

from desktop_agent.vocabulary.errors import Sentence
from desktop_agent.vocabulary.requests import (
    Capabilities,
    Effort,
    ProviderConfig,
    Reasoning,
    ReasoningAdaptive,
    ReasoningBetweenTools,
    ReasoningBudget,
    ReasoningDisabled,
)

_EFFORT_ORDER: tuple[Effort, ...] = ("minimal", "low", "medium", "high", "xhigh", "max")
# What every model with levels has; some have MINIMAL below, and refuse it where they do not.
_USUAL_LEVELS: tuple[Effort, ...] = ("low", "medium", "high")
# ai.google.dev/gemini-api/docs/openai, "Thinking": what levels mean in tokens.
_TOKENS: dict[Effort, int] = {"minimal": 1024, "low": 1024, "medium": 8192, "high": 24_576}
_DYNAMIC = -1
_VERSION = re.compile(r"^gemini-(\d+)(?:\.(\d+))?")


@dataclass(frozen=True, slots=True)
class ThinkingAbility:
    """How a model is told to think: by level, by budget (least and most tokens), or not at all."""

    way: Literal["level", "budget", "none"] = "none"
    levels: tuple[Effort, ...] = _USUAL_LEVELS
    budget: tuple[int, int] = (0, 24_576)
    can_be_off: bool = False

    @property
    def checks_signatures(self) -> bool:
        """Whether it refuses calls of the current turn that come back without their signature: from Gemini 3 on."""
        return self.way == "level"


@dataclass(frozen=True, slots=True)
class ThinkingSetting:
    """The `thinkingConfig` to send, empty for none, and what had to be changed about the wish."""

    config: dict[str, Any]
    adjustments: tuple[Sentence, ...] = ()


def thinking_ability(model: str, known: Capabilities) -> ThinkingAbility:
    """What this model can be told. `model` is its name without `models/`."""
    if known.reasoning is False:
        return ThinkingAbility()
    named, modes = _ability_by_name(model), known.reasoning_modes
    if modes is None and known.efforts is None and known.budget is None:
        return named
    by_level = bool(known.efforts) or (known.budget is None and "effort" in (modes or ()))
    return ThinkingAbility(
        way="level" if by_level else "budget",
        levels=known.efforts or named.levels,
        budget=known.budget or named.budget,
        can_be_off=not by_level and (named.can_be_off if modes is None else "disabled" in modes),
    )


def _ability_by_name(model: str) -> ThinkingAbility:
    """For models that no table has. The only place that reads a version out of a name."""
    found = _VERSION.match(model)
    if found is None:
        # "gemini-flash-latest" and its like stand for the newest; what is no Gemini (Gemma, for example) has none.
        return ThinkingAbility("level") if model.startswith("gemini-") else ThinkingAbility()
    version = (int(found[1]), int(found[2] or 0))
    if version >= (3, 0):
        return ThinkingAbility("level")
    if version < (2, 5):
        return ThinkingAbility()
    if "-pro" in model:
        return ThinkingAbility("budget", budget=(128, 32_768))
    return ThinkingAbility("budget", budget=(512 if "-lite" in model else 0, 24_576), can_be_off=True)


def thinking_setting(config: ProviderConfig, model: str, ability: ThinkingAbility) -> ThinkingSetting:
    """What to send for this wish."""
    wish = config.reasoning
    if ability.way == "none":
        return ThinkingSetting(
            {}, () if wish is None or isinstance(wish, ReasoningDisabled) else (_no_thinking_sentence(model),)
        )
    found = _by_level(wish, model, ability) if ability.way == "level" else _by_budget(wish, model, ability)
    if config.show_reasoning and found.config.get("thinkingBudget") != 0:
        return ThinkingSetting({"includeThoughts": True, **found.config}, found.adjustments)
    return found


def _by_level(wish: Reasoning | None, model: str, ability: ThinkingAbility) -> ThinkingSetting:
    match wish:
        case None | ReasoningAdaptive():
            return ThinkingSetting({})
        case ReasoningBetweenTools():
            return ThinkingSetting({}, (_not_between_tools_sentence(model),))
        case ReasoningDisabled():
            lowest = min(ability.levels, key=_EFFORT_ORDER.index)
            words = "{model} cannot stop thinking; it was asked for its lowest level, {level}."
            return ThinkingSetting(_level_field(lowest), (Sentence(words, {"model": model, "level": lowest}),))
        case ReasoningBudget():
            asked: Effort = "low" if wish.tokens <= 1024 else "medium" if wish.tokens <= 8192 else "high"
            level = _nearest_level(asked, ability.levels)
            words = "{model} takes no number of tokens to think with; it was asked for the level {level}."
            return ThinkingSetting(_level_field(level), (Sentence(words, {"model": model, "level": level}),))
        case _:
            level = _nearest_level(wish.level, ability.levels)
            if level == wish.level:
                return ThinkingSetting(_level_field(level))
            words = "{model} has no thinking level {asked}; it was asked for {level}."
            return ThinkingSetting(
                _level_field(level), (Sentence(words, {"model": model, "asked": wish.level, "level": level}),)
            )


def _by_budget(wish: Reasoning | None, model: str, ability: ThinkingAbility) -> ThinkingSetting:
    least, most = ability.budget
    match wish:
        case None:
            return ThinkingSetting({})
        case ReasoningAdaptive():
            return ThinkingSetting({"thinkingBudget": _DYNAMIC})
        case ReasoningBetweenTools():
            return ThinkingSetting({}, (_not_between_tools_sentence(model),))
        case ReasoningDisabled():
            if ability.can_be_off:
                return ThinkingSetting({"thinkingBudget": 0})
            words = "{model} cannot stop thinking; it was given its smallest limit, {tokens} tokens."
            return ThinkingSetting(
                {"thinkingBudget": least}, (Sentence(words, {"model": model, "tokens": str(least)}),)
            )
        case ReasoningBudget():
            tokens = min(max(wish.tokens, least), most)
            words = "{model} thinks with {least} to {most} tokens; it was given {tokens}."
            values = {"model": model, "least": str(least), "most": str(most), "tokens": str(tokens)}
            return ThinkingSetting(
                {"thinkingBudget": tokens}, () if tokens == wish.tokens else (Sentence(words, values),)
            )
        case _:
            tokens = min(max(_TOKENS.get(wish.level, most), least), most)
            words = "{model} has no thinking levels; for {asked} it was given {tokens} tokens."
            values = {"model": model, "asked": wish.level, "tokens": str(tokens)}
            return ThinkingSetting({"thinkingBudget": tokens}, (Sentence(words, values),))


def _nearest_level(asked: Effort, levels: tuple[Effort, ...]) -> Effort:
    """The level that is closest; of two the lower, which costs less."""
    place = _EFFORT_ORDER.index(asked)
    return min(levels, key=lambda each: (abs(_EFFORT_ORDER.index(each) - place), _EFFORT_ORDER.index(each)))


def _level_field(level: Effort) -> dict[str, Any]:
    return {"thinkingLevel": level.upper()}


def _no_thinking_sentence(model: str) -> Sentence:
    return Sentence("{model} does not think, so it was not asked to.", {"model": model})


def _not_between_tools_sentence(model: str) -> Sentence:
    return Sentence("{model} cannot think between tools only; it decides by itself.", {"model": model})
