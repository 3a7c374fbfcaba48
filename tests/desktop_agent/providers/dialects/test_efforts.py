"""The effort that both of OpenAI's interfaces choose for a requested reasoning."""

import pytest

from desktop_agent.providers.dialects.request_building import choose_effort, grok_version
from desktop_agent.types.messages import Message
from desktop_agent.types.providers import (
    Effort,
    ModelRequest,
    ProviderConfig,
    Reasoning,
    ReasoningAdaptive,
    ReasoningBudget,
    ReasoningDisabled,
    ReasoningEffort,
)

USUAL: tuple[Effort, ...] = ("low", "medium", "high")


@pytest.mark.parametrize(
    ("wish", "efforts", "can_be_off", "word", "is_said"),
    [
        (None, USUAL, True, None, False),
        (ReasoningAdaptive(), USUAL, True, None, False),
        (ReasoningEffort(level="low"), USUAL, True, "low", False),
        (ReasoningEffort(level="max"), USUAL, True, "high", True),
        (ReasoningEffort(level="max"), None, True, "max", False),
        (ReasoningEffort(level="max"), (), True, None, True),
        (ReasoningBudget(tokens=5000), USUAL, True, "medium", True),
        (ReasoningDisabled(), USUAL, True, "none", False),
        (ReasoningDisabled(), USUAL, False, "low", True),
        (ReasoningDisabled(), None, False, "none", False),
        (ReasoningDisabled(), (), True, None, False),
    ],
)
def test_a_wish_as_a_word(
    wish: Reasoning | None, efforts: tuple[Effort, ...] | None, word: str | None, *, can_be_off: bool, is_said: bool
) -> None:
    request = ModelRequest("m", (Message.user("hi"),), config=ProviderConfig(reasoning=wish))
    chosen, adjustment = choose_effort(request, efforts, can_be_off=can_be_off)
    assert chosen == word
    assert bool(adjustment) is is_said


@pytest.mark.parametrize(
    ("model", "version"),
    [("grok-4.7", (4, 7)), ("x-ai/grok-4", (4, 0)), ("grok-4-fast-non-reasoning", (0, 0)), ("gpt-5", (0, 0))],
)
def test_versions_of_grok(model: str, version: tuple[int, int]) -> None:
    assert grok_version(model) == version
