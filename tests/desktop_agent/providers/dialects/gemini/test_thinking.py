"""Wishes about thinking, for models of every generation."""

from typing import Any

import pytest

from desktop_agent.providers.catalogue.catalogue import Catalogue
from desktop_agent.providers.dialects.gemini.thinking import Ability, ability_of, thinking_for
from desktop_agent.vocabulary.requests import (
    Capabilities,
    ProviderConfig,
    Reasoning,
    ReasoningAdaptive,
    ReasoningBetweenTools,
    ReasoningBudget,
    ReasoningDisabled,
    ReasoningEffort,
)

NOBODY = Capabilities()


def config(wish: Reasoning | None, ability: Ability, *, show: bool = False) -> tuple[dict[str, Any], int]:
    found = thinking_for(ProviderConfig(reasoning=wish, show_reasoning=show), "m", ability)
    assert all(str(each).endswith(".") for each in found.adjustments)
    return found.config, len(found.adjustments)


LEVELS = Ability("level", levels=("low", "high"))
PRO = Ability("budget", budget=(128, 32_768))
LITE = Ability("budget", budget=(512, 24_576), can_be_off=True)

CASES: list[tuple[Reasoning | None, Ability, dict[str, Any], int]] = [
    (None, LEVELS, {}, 0),
    (ReasoningAdaptive(), LEVELS, {}, 0),
    (ReasoningBetweenTools(), LEVELS, {}, 1),
    (ReasoningDisabled(), LEVELS, {"thinkingLevel": "LOW"}, 1),
    (ReasoningEffort(level="high"), LEVELS, {"thinkingLevel": "HIGH"}, 0),
    (ReasoningEffort(level="medium"), LEVELS, {"thinkingLevel": "LOW"}, 1),
    (ReasoningEffort(level="minimal"), LEVELS, {"thinkingLevel": "LOW"}, 1),
    (ReasoningEffort(level="max"), LEVELS, {"thinkingLevel": "HIGH"}, 1),
    (ReasoningBudget(tokens=9000), LEVELS, {"thinkingLevel": "HIGH"}, 1),
    (ReasoningBudget(tokens=10), LEVELS, {"thinkingLevel": "LOW"}, 1),
    (ReasoningEffort(level="xhigh"), Ability("level", levels=("high", "xhigh")), {"thinkingLevel": "XHIGH"}, 0),
    (None, PRO, {}, 0),
    (ReasoningAdaptive(), PRO, {"thinkingBudget": -1}, 0),
    (ReasoningBetweenTools(), PRO, {}, 1),
    (ReasoningDisabled(), PRO, {"thinkingBudget": 128}, 1),
    (ReasoningDisabled(), LITE, {"thinkingBudget": 0}, 0),
    (ReasoningBudget(tokens=1000), PRO, {"thinkingBudget": 1000}, 0),
    (ReasoningBudget(tokens=1), PRO, {"thinkingBudget": 128}, 1),
    (ReasoningBudget(tokens=1), LITE, {"thinkingBudget": 512}, 1),
    (ReasoningBudget(tokens=99_999), PRO, {"thinkingBudget": 32_768}, 1),
    (ReasoningEffort(level="medium"), PRO, {"thinkingBudget": 8192}, 1),
    (ReasoningEffort(level="max"), LITE, {"thinkingBudget": 24_576}, 1),
    (None, Ability(), {}, 0),
    (ReasoningDisabled(), Ability(), {}, 0),
    (ReasoningEffort(), Ability(), {}, 1),
]


@pytest.mark.parametrize(("wish", "ability", "wanted", "told"), CASES)
def test_a_wish(wish: Reasoning | None, ability: Ability, wanted: dict[str, Any], told: int) -> None:
    assert config(wish, ability) == (wanted, told)
    shown, _ = config(wish, ability, show=True)
    is_off = ability.way == "none" or wanted.get("thinkingBudget") == 0
    assert shown == (wanted if is_off else {"includeThoughts": True, **wanted})
    assert not {"thinkingLevel", "thinkingBudget"} <= shown.keys()


@pytest.mark.parametrize(
    ("model", "ability"),
    [
        ("gemini-4-argon", Ability("level")),
        ("gemini-3-flash-preview", Ability("level")),
        ("gemini-10", Ability("level")),
        ("gemini-flash-latest", Ability("level")),
        ("gemini-2.5-pro-preview", PRO),
        ("gemini-2.5-flash", Ability("budget", can_be_off=True)),
        ("gemini-2.5-flash-lite", LITE),
        ("gemini-2.0-flash", Ability()),
        ("gemma-3-27b-it", Ability()),
        ("tunedModels/mine", Ability()),
    ],
)
def test_by_name_where_nothing_is_known(model: str, ability: Ability) -> None:
    assert ability_of(model, NOBODY) == ability
    assert ability.checks_signatures == (ability.way == "level")


def test_what_is_known_goes_before_the_name() -> None:
    assert ability_of("gemini-3-x", Capabilities(reasoning=False)) == Ability()
    by_budget = Capabilities(budget=(1, 9), reasoning_modes=frozenset({"budget"}))
    assert ability_of("gemini-3-x", by_budget) == Ability("budget", budget=(1, 9))
    by_level = Capabilities(efforts=("low",), reasoning_modes=frozenset({"effort", "disabled"}))
    assert ability_of("gemini-2.5-pro", by_level) == Ability("level", levels=("low",), budget=(128, 32_768))
    assert ability_of("mine", Capabilities(reasoning_modes=frozenset({"effort"}))).way == "level"


async def test_the_shipped_table_is_understood() -> None:
    table = Catalogue(shipped=True)
    await table.warm_up()
    ways = {
        "gemini-4-argon": ("level", False),
        "gemini-3.7-flash": ("level", False),
        "gemini-2.5-pro": ("budget", False),
        "gemini-2.5-flash": ("budget", True),
        "gemini-2.5-flash-lite": ("budget", True),
    }
    for model, wanted in ways.items():
        known = table.find("gemini", model)
        assert known is not None
        ability = ability_of(model, known.capabilities)
        assert (ability.way, ability.can_be_off) == wanted
        if ability.way == "budget":
            assert ability.budget == ability_of(model, NOBODY).budget
