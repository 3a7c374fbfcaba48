"""How a model is told to think: what the person wishes, as far as the model can, and what had to be changed.

Which types a model accepts comes from what is known about it; a type that it does not accept is refused with 400. Of
a model that nobody knows nothing is asked unless the person did. Graceful downgrades, each of them stated:
- a level that a model lacks becomes the nearest one that it has; a budget becomes a level where only levels exist;
- "off" becomes "between tools" where that is as far off as thinking goes, else the lowest level;
- a forced call becomes a free choice where a model always thinks, and switches thinking off where it may be off.
"""

from dataclasses import dataclass, replace
from typing import Any

from desktop_agent.providers.dialects.anthropic.listing import MIN_BUDGET
from desktop_agent.vocabulary.errors import Sentence
from desktop_agent.vocabulary.requests import (
    Capabilities,
    Effort,
    ModelRequest,
    Reasoning,
    ReasoningAdaptive,
    ReasoningBetweenTools,
    ReasoningBudget,
    ReasoningDisabled,
    ReasoningEffort,
)

_EFFORT_ORDER: tuple[Effort, ...] = ("minimal", "low", "medium", "high", "xhigh", "max")
_USUAL_EFFORTS: tuple[Effort, ...] = ("low", "medium", "high", "max")
_UP_TO_HIGH = ("low", "medium", "high")
_BUDGETS: dict[Effort, int] = {
    "minimal": 1024,
    "low": 2048,
    "medium": 8192,
    "high": 16_384,
    "xhigh": 32_768,
    "max": 1_000_000,
}
# Accepts thinking that is off, but not beside the two highest levels.
_OFF_UP_TO_HIGH = frozenset({"claude-opus-5"})


@dataclass(frozen=True, slots=True)
class ThinkingSetting:
    """The `thinking` field and the effort to send, None for neither, and what was changed about the wish."""

    thinking: dict[str, Any] | None = None
    effort: str | None = None
    adjustments: tuple[Sentence, ...] = ()

    @property
    def is_on(self) -> bool:
        """Whether thinking is asked for."""
        return self.thinking is not None and self.thinking["type"] in ("adaptive", "enabled")


@dataclass(frozen=True, slots=True)
class ThinkingAbility:
    """What a model takes. `modes` is None where nobody knows."""

    model: str
    known: Capabilities
    modes: frozenset[str] | None = None
    shows: bool = True
    room: int = 0  # max_tokens: a budget must be smaller

    @property
    def always_thinks(self) -> bool:
        """Thinking cannot be switched off."""
        return self.modes is not None and "adaptive" in self.modes and "disabled" not in self.modes

    @property
    def takes_forced_calls(self) -> bool:
        """Whether a call may be demanded."""
        return not self.always_thinks if self.known.forced_tools is None else self.known.forced_tools

    def takes(self, mode: str) -> bool:
        """Whether this can be asked for; of an unknown model anything can."""
        return self.modes is None or mode in self.modes

    @property
    def adaptive(self) -> dict[str, Any]:
        """The field that lets the model decide; current models show nothing unless they are asked to."""
        return {"type": "adaptive", "display": "summarized"} if self.shows else {"type": "adaptive"}


def thinking_ability(request: ModelRequest, known: Capabilities, room: int) -> ThinkingAbility:
    """What this request's model takes. `room` is its max_tokens."""
    return ThinkingAbility(request.model, known, known.reasoning_modes, request.config.show_reasoning, room)


def thinking_setting(wish: Reasoning | None, able: ThinkingAbility) -> ThinkingSetting:
    """What to send for this wish."""
    match wish:
        case None:
            return _default_setting(able)
        case ReasoningDisabled():
            return _off_setting(able)
        case ReasoningEffort():
            return _effort_setting(wish.level, able)
        case ReasoningAdaptive():
            return _adaptive_setting(able)
        case ReasoningBetweenTools():
            return _between_tools_setting(able)
        case ReasoningBudget():
            return _budget_setting(wish.tokens, able)


def resolve_conflicts(
    switch: ThinkingSetting, able: ThinkingAbility, *, forced: bool, effort: str | None
) -> ThinkingSetting:
    """The same, fit for a forced call, and for an `effort` that the person wrote into the body themselves."""
    if forced and switch.is_on and able.known.reasons_by_default is not True:
        switch = _with_adjustments(replace(switch, thinking=None), _NO_THINKING_WHEN_FORCED)
    kind = switch.thinking["type"] if switch.thinking is not None else ""
    is_bound = kind == "between_tools" or (kind == "disabled" and able.model in _OFF_UP_TO_HIGH)
    if is_bound and effort is not None and effort not in _UP_TO_HIGH:
        switch = _with_adjustments(replace(switch, thinking=None), Sentence(_ON_AT_THIS_LEVEL, {"level": effort}))
    return switch


_LEVEL = "The level of reasoning “{level}” is not taken here; “{sent}” was asked for instead."
_NO_REASONING = Sentence("This model does not reason, so no reasoning was asked for.")
_NOT_OFF = Sentence("This model always reasons; it was asked to reason as little as it can.")
_BETWEEN = Sentence("This model's reasoning cannot be switched off altogether; it may comment between calls of tools.")
_ON_AT_THIS_LEVEL = "Reasoning cannot be switched off at the level “{level}”; the model reasons."
_AS_IT_LIKES = Sentence("This model decides by itself how much to reason.")
_AS_A_BUDGET = Sentence("This model takes a budget for reasoning instead of a level.")
_BUDGET_CHANGED = "The budget for reasoning was changed to {tokens} tokens, which is what fits."
_NO_ROOM = Sentence("The answer's limit leaves no room for reasoning, so none was asked for.")
_NO_THINKING_WHEN_FORCED = Sentence("No reasoning was asked for, because the model must call a tool.")


def _with_adjustments(switch: ThinkingSetting, *sentences: Sentence) -> ThinkingSetting:
    return replace(switch, adjustments=(*switch.adjustments, *sentences))


def _default_setting(able: ThinkingAbility) -> ThinkingSetting:
    """A model that thinks anyway is asked to show it; nothing else is switched on or off."""
    thinks = able.known.reasons_by_default
    if thinks is None:
        thinks = able.always_thinks
    if able.shows and thinks and able.modes is not None and "adaptive" in able.modes:
        return ThinkingSetting(able.adaptive)
    return ThinkingSetting()


def _off_setting(able: ThinkingAbility) -> ThinkingSetting:
    if able.takes("disabled"):
        return ThinkingSetting({"type": "disabled"})
    if able.takes("between_tools"):
        return ThinkingSetting({"type": "between_tools"}, adjustments=(_BETWEEN,))
    if not able.always_thinks:
        return ThinkingSetting()
    levels = _effort_levels(able)
    return ThinkingSetting(able.adaptive, levels[0] if levels else None, (_NOT_OFF,))


def _adaptive_setting(able: ThinkingAbility) -> ThinkingSetting:
    if able.takes("adaptive"):
        return ThinkingSetting(able.adaptive)
    if able.takes("budget"):
        return _with_adjustments(_budget_setting(_BUDGETS["medium"], able), _AS_A_BUDGET)
    return ThinkingSetting(adjustments=(_NO_REASONING,))


def _between_tools_setting(able: ThinkingAbility) -> ThinkingSetting:
    if able.takes("between_tools"):
        return ThinkingSetting({"type": "between_tools"})
    found = _adaptive_setting(able)
    return _with_adjustments(found, _AS_IT_LIKES) if found.thinking is not None else found


def _effort_setting(level: Effort, able: ThinkingAbility) -> ThinkingSetting:
    levels = _effort_levels(able)
    if not levels:
        found = (
            _adaptive_setting(able)
            if not able.takes("budget") or able.takes("adaptive")
            else _budget_setting(_BUDGETS[level], able)
        )
        said = _AS_IT_LIKES if able.takes("adaptive") else _AS_A_BUDGET
        return _with_adjustments(ThinkingSetting(found.thinking), said) if found.thinking is not None else found
    sent = _nearest_level(level, levels)
    changed = () if sent == level else (Sentence(_LEVEL, {"level": level, "sent": sent}),)
    if able.modes is None:
        return ThinkingSetting(None, sent, changed)
    if "adaptive" in able.modes:
        return ThinkingSetting(able.adaptive, sent, changed)
    thinking = _budget_setting(_BUDGETS[level], able).thinking if "budget" in able.modes else None
    return ThinkingSetting(thinking, sent, changed)


def _budget_setting(tokens: int, able: ThinkingAbility) -> ThinkingSetting:
    if not able.takes("budget"):
        levels = _effort_levels(able)
        level: Effort = "low" if tokens <= 2048 else "medium" if tokens <= 8192 else "high"
        found = _effort_setting(level, able) if levels else _adaptive_setting(able)
        values = {"level": f"{tokens} tokens", "sent": found.effort or ""}
        return (
            _with_adjustments(ThinkingSetting(found.thinking, found.effort), Sentence(_LEVEL, values))
            if found.effort
            else found
        )
    least, most = able.known.budget or (MIN_BUDGET, tokens)
    least = max(least, MIN_BUDGET)
    # Something must be left for the answer itself.
    most = min(max(most, least), able.room - 1 if able.room <= 2 * MIN_BUDGET else able.room - MIN_BUDGET)
    if most < least:
        return ThinkingSetting(adjustments=(_NO_ROOM,))
    fit = min(max(tokens, least), most)
    changed = () if fit == tokens else (Sentence(_BUDGET_CHANGED, {"tokens": str(fit)}),)
    return ThinkingSetting({"type": "enabled", "budget_tokens": fit}, adjustments=changed)


def _effort_levels(able: ThinkingAbility) -> tuple[Effort, ...]:
    """The levels that can be asked for, lowest first."""
    if not able.takes("effort"):
        return ()
    return tuple(level for level in _EFFORT_ORDER if level in (able.known.efforts or _USUAL_EFFORTS))


def _nearest_level(level: Effort, levels: tuple[Effort, ...]) -> Effort:
    wanted = _EFFORT_ORDER.index(level)
    return min(levels, key=lambda each: abs(_EFFORT_ORDER.index(each) - wanted))
