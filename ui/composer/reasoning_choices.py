"""What a person can choose about reasoning, made from what a model can do."""

from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication

from desktop_agent.vocabulary.requests import (
    Capabilities,
    Effort,
    Reasoning,
    ReasoningAdaptive,
    ReasoningBetweenTools,
    ReasoningBudget,
    ReasoningDisabled,
    ReasoningEffort,
    ReasoningMode,
)

# Where nobody says what a model can do: what most servers take.
_DEFAULT_EFFORTS: tuple[Effort, ...] = ("low", "medium", "high")
_BUDGETS = (2_048, 8_192, 16_384, 32_768)


@dataclass(frozen=True, slots=True)
class ReasoningChoice:
    """One entry. `reasoning` None leaves it to the model; `hint` says what that is, where it is known."""

    reasoning: Reasoning | None
    hint: str = ""

    @property
    def text(self) -> str:
        """The choice in the person's language."""
        return reasoning_name(self.reasoning)


def reasoning_choices(capabilities: Capabilities, current: Reasoning | None) -> list[ReasoningChoice]:
    """Default first; nothing where there is nothing to choose.

    Of a model that nobody knows, the choice made before stays among them: nobody says that it is lacking.
    """
    if capabilities.reasoning is False:
        return []
    if not _is_known(capabilities):
        usual: list[Reasoning | None] = [None, ReasoningDisabled(), *map(_effort, _DEFAULT_EFFORTS)]
        return [ReasoningChoice(each) for each in (usual if current in usual else [*usual, current])]
    offered = _supported(capabilities)
    return [ReasoningChoice(None, _default_hint(capabilities)), *map(ReasoningChoice, offered)] if offered else []


def is_unsupported(capabilities: Capabilities, reasoning: Reasoning | None) -> bool:
    """Whether this choice is known not to be one for this model."""
    if reasoning is None:
        return False
    if capabilities.reasoning is False:
        return True
    if isinstance(reasoning, ReasoningBudget) and "budget" in (capabilities.reasoning_modes or ()):
        return (
            capabilities.budget is not None and not capabilities.budget[0] <= reasoning.tokens <= capabilities.budget[1]
        )
    return _is_known(capabilities) and reasoning not in _supported(capabilities)


def reasoning_name(reasoning: Reasoning | None) -> str:
    """A choice in a word or two."""
    translate = QCoreApplication.translate
    match reasoning:
        case None:
            return translate("Reasoning", "Default")
        case ReasoningDisabled():
            return translate("Reasoning", "Off")
        case ReasoningBetweenTools():
            return translate("Reasoning", "Between tools")
        case ReasoningAdaptive():
            return translate("Reasoning", "Adaptive")
        case ReasoningBudget():
            return translate("Reasoning", "Up to {0} tokens").format(f"{reasoning.tokens:,}")
        case ReasoningEffort():
            return _effort_name(reasoning.level)


def _is_known(capabilities: Capabilities) -> bool:
    return capabilities.reasoning_modes is not None or capabilities.efforts is not None


def _supported(capabilities: Capabilities) -> list[Reasoning]:
    """Without the default. Where only efforts are known, they are all that is known."""
    modes: frozenset[ReasoningMode] = capabilities.reasoning_modes or frozenset()
    found: list[Reasoning] = []
    if "disabled" in modes:
        found.append(ReasoningDisabled())
    if "between_tools" in modes:
        found.append(ReasoningBetweenTools())
    if "effort" in modes or capabilities.reasoning_modes is None:
        found += map(_effort, capabilities.efforts or _DEFAULT_EFFORTS)
    elif "budget" in modes:
        least, most = capabilities.budget or (_BUDGETS[0], _BUDGETS[-1])
        found += [ReasoningBudget(tokens=each) for each in _BUDGETS if least <= each <= most]
    if "adaptive" in modes:
        found.append(ReasoningAdaptive())
    return found


def _effort(level: Effort) -> Reasoning:
    return ReasoningEffort(level=level)


def _default_hint(capabilities: Capabilities) -> str:
    if capabilities.reasons_by_default is False:
        return reasoning_name(ReasoningDisabled())
    return _effort_name(capabilities.default_effort) if capabilities.default_effort else ""


def _effort_name(level: Effort) -> str:
    translate = QCoreApplication.translate
    words: dict[Effort, str] = {
        "minimal": translate("Reasoning", "Minimal"),
        "low": translate("Reasoning", "Low"),
        "medium": translate("Reasoning", "Medium"),
        "high": translate("Reasoning", "High"),
        "xhigh": translate("Reasoning", "Very high"),
        "max": translate("Reasoning", "Maximum"),
    }
    return words[level]
