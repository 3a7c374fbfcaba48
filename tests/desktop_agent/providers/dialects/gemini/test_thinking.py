"""Requested thinking, for models of every generation."""

from typing import Any

import pytest

from desktop_agent.providers.catalogue.catalogue import Catalogue
from desktop_agent.providers.dialects.gemini.request import ThinkingAbility, thinking_ability, thinking_options
from desktop_agent.types.providers import (
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


def config(wish: Reasoning | None, ability: ThinkingAbility, *, show: bool = False) -> tuple[dict[str, Any], int]:
    options = thinking_options(ProviderConfig(reasoning=wish, show_reasoning=show), "m", ability)
    assert all(str(adjustment).endswith(".") for adjustment in options.adjustments)
    return options.config, len(options.adjustments)


LEVELS = ThinkingAbility("level", levels=("low", "high"))
PRO = ThinkingAbility("budget", budget=(128, 32_768))
LITE = ThinkingAbility("budget", budget=(512, 24_576), can_be_off=True)

CASES: list[tuple[Reasoning | None, ThinkingAbility, dict[str, Any], int]] = [
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
    (ReasoningEffort(level="xhigh"), ThinkingAbility("level", levels=("high", "xhigh")), {"thinkingLevel": "XHIGH"}, 0),
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
    (None, ThinkingAbility(), {}, 0),
    (ReasoningDisabled(), ThinkingAbility(), {}, 0),
    (ReasoningEffort(), ThinkingAbility(), {}, 1),
]


@pytest.mark.parametrize(("wish", "ability", "expected", "adjustment_count"), CASES)
def test_a_wish(
    wish: Reasoning | None, ability: ThinkingAbility, expected: dict[str, Any], adjustment_count: int
) -> None:
    assert config(wish, ability) == (expected, adjustment_count)
    with_thoughts, _ = config(wish, ability, show=True)
    is_off = ability.way == "none" or expected.get("thinkingBudget") == 0
    assert with_thoughts == (expected if is_off else {"includeThoughts": True, **expected})
    assert not {"thinkingLevel", "thinkingBudget"} <= with_thoughts.keys()


@pytest.mark.parametrize(
    ("model", "ability"),
    [
        ("gemini-4-argon", ThinkingAbility("level")),
        ("gemini-3-flash-preview", ThinkingAbility("level")),
        ("gemini-10", ThinkingAbility("level")),
        ("gemini-flash-latest", ThinkingAbility("level")),
        ("gemini-2.5-pro-preview", PRO),
        ("gemini-2.5-flash", ThinkingAbility("budget", can_be_off=True)),
        ("gemini-2.5-flash-lite", LITE),
        ("gemini-2.0-flash", ThinkingAbility()),
        ("gemma-3-27b-it", ThinkingAbility()),
        ("tunedModels/mine", ThinkingAbility()),
    ],
)
def test_by_name_where_nothing_is_known(model: str, ability: ThinkingAbility) -> None:
    assert thinking_ability(model, NOBODY) == ability
    assert ability.checks_signatures == (ability.way == "level")


def test_what_is_known_goes_before_the_name() -> None:
    assert thinking_ability("gemini-3-x", Capabilities(reasoning=False)) == ThinkingAbility()
    by_budget = Capabilities(budget=(1, 9), reasoning_modes=frozenset({"budget"}))
    assert thinking_ability("gemini-3-x", by_budget) == ThinkingAbility("budget", budget=(1, 9))
    by_level = Capabilities(efforts=("low",), reasoning_modes=frozenset({"effort", "disabled"}))
    assert thinking_ability("gemini-2.5-pro", by_level) == ThinkingAbility(
        "level", levels=("low",), budget=(128, 32_768)
    )
    assert thinking_ability("mine", Capabilities(reasoning_modes=frozenset({"effort"}))).way == "level"


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
    for model, expected in ways.items():
        row = table.find("gemini", model)
        assert row is not None
        ability = thinking_ability(model, row.capabilities)
        assert (ability.way, ability.can_be_off) == expected
        if ability.way == "budget":
            assert ability.budget == thinking_ability(model, NOBODY).budget
