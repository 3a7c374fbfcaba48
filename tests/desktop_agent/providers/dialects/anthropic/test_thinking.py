from typing import Any

import pytest

from desktop_agent.types.messages import Message
from desktop_agent.types.providers import (
    Capabilities,
    Reasoning,
    ReasoningAdaptive,
    ReasoningBetweenTools,
    ReasoningBudget,
    ReasoningDisabled,
    ReasoningEffort,
    ToolChoice,
)
from tests.desktop_agent.providers.dialects.anthropic.bodies import (
    TOOL,
    TYPES,
    answer,
    asked,
    body,
    call,
    result,
    results,
    said,
    thought,
)

SHOWN = {"type": "adaptive", "display": "summarized"}
OFF = {"type": "disabled"}
WISHES: tuple[Reasoning | None, ...] = (
    None,
    ReasoningDisabled(),
    ReasoningAdaptive(),
    ReasoningBetweenTools(),
    *(ReasoningEffort(level=each) for each in ("minimal", "low", "medium", "high", "xhigh", "max")),
    *(ReasoningBudget(tokens=each) for each in (1, 1024, 5000, 60_000, 500_000)),
)


def sent(wish: Reasoning | None, model: str, known: Capabilities | None = None, **more: Any) -> tuple[Any, Any]:
    found = body(asked(model=model, reasoning=wish, **more), known)
    return found.get("thinking"), found.get("output_config", {}).get("effort")


@pytest.mark.parametrize("choice", ["auto", "required"])
@pytest.mark.parametrize("max_tokens", [None, 1024, 1500, 1_000_000])
@pytest.mark.parametrize("model", [*TYPES, "somebody-elses"])
def test_no_wish_makes_a_request_that_is_refused(model: str, max_tokens: int | None, choice: Any) -> None:
    for wish in WISHES:
        for own in ({}, {"output_config": {"effort": "xhigh"}}):
            body(
                asked(
                    model=model,
                    reasoning=wish,
                    max_tokens=max_tokens,
                    tools=(TOOL,),
                    tool_choice=ToolChoice(choice, "f"),
                    extra_options=own,
                )
            )


@pytest.mark.parametrize(
    ("model", "thinking"),
    [
        ("claude-fable-5-2", SHOWN),
        ("claude-opus-5", SHOWN),
        ("claude-haiku-5-5", SHOWN),
        ("claude-opus-4-8", None),
        ("claude-opus-4-5", None),
        ("nobody-knows", None),
    ],
)
def test_unasked_only_what_is_on_is_shown(model: str, thinking: Any) -> None:
    assert sent(None, model) == (thinking, None)
    assert sent(None, model, show_reasoning=False) == (None, None)
    assert said(asked(model=model)) == []


def test_a_listed_model_that_always_thinks_is_asked_to_show_it() -> None:
    listed = Capabilities(reasoning_modes=frozenset({"adaptive"}))
    assert sent(None, "new", listed) == (SHOWN, None)
    assert sent(None, "new", Capabilities(reasoning_modes=frozenset({"adaptive", "disabled"}))) == (None, None)


@pytest.mark.parametrize(
    ("model", "thinking", "effort", "words"),
    [
        ("claude-opus-5", OFF, None, 0),
        ("claude-sonnet-4-5", OFF, None, 0),
        ("claude-haiku-5-5", OFF, None, 0),
        ("claude-sonnet-5-5", {"type": "between_tools"}, None, 1),
        ("claude-opus-5-5", SHOWN, "low", 1),
        ("claude-fable-5", SHOWN, "low", 1),
        ("nobody-knows", OFF, None, 0),
    ],
)
def test_off(model: str, thinking: Any, effort: Any, words: int) -> None:
    assert sent(ReasoningDisabled(), model) == (thinking, effort)
    assert len(said(asked(model=model, reasoning=ReasoningDisabled()))) == words


@pytest.mark.parametrize(
    ("model", "level", "thinking", "effort", "words"),
    [
        ("claude-opus-5", "xhigh", SHOWN, "xhigh", 0),
        ("claude-opus-4-8", "low", SHOWN, "low", 0),
        ("claude-opus-5", "minimal", SHOWN, "low", 1),
        ("claude-sonnet-5", "xhigh", SHOWN, "high", 1),
        ("claude-opus-4-5", "max", {"type": "enabled", "budget_tokens": 62_976}, "high", 1),
        ("claude-sonnet-4-5", "medium", {"type": "enabled", "budget_tokens": 8192}, None, 1),
        ("nobody-knows", "high", None, "high", 0),
    ],
)
def test_levels(model: str, level: Any, thinking: Any, effort: Any, words: int) -> None:
    wish = ReasoningEffort(level=level)
    assert sent(wish, model) == (thinking, effort)
    assert len(said(asked(model=model, reasoning=wish))) == words


@pytest.mark.parametrize(
    ("model", "max_tokens", "tokens", "thinking", "effort", "words"),
    [
        ("claude-sonnet-4-5", None, 5000, 5000, None, 0),
        ("claude-sonnet-4-5", None, 5, 1024, None, 1),
        ("claude-sonnet-4-5", 4000, 9000, 2976, None, 1),
        ("claude-sonnet-4-5", 1025, 9000, 1024, None, 1),
        ("claude-sonnet-4-5", 1024, 9000, None, None, 1),
        ("claude-opus-5", None, 1000, "adaptive", "low", 1),
        ("claude-opus-5", None, 9000, "adaptive", "high", 1),
        ("nobody-knows", 4000, 2000, 2000, None, 0),
    ],
)
def test_budgets(model: str, max_tokens: Any, tokens: int, thinking: Any, effort: Any, words: int) -> None:
    wish = ReasoningBudget(tokens=tokens)
    found, level = sent(wish, model, max_tokens=max_tokens)
    assert level == effort
    assert (found.get("budget_tokens", found["type"]) if found else None) == thinking
    assert len(said(asked(model=model, reasoning=wish, max_tokens=max_tokens))) == words


def test_adaptive_and_between_tools() -> None:
    assert sent(ReasoningAdaptive(), "claude-opus-4-8") == (SHOWN, None)
    assert sent(ReasoningAdaptive(), "claude-haiku-4-5")[0]["type"] == "enabled"
    assert sent(ReasoningBetweenTools(), "claude-sonnet-5-5") == ({"type": "between_tools"}, None)
    assert sent(ReasoningBetweenTools(), "claude-opus-5") == (SHOWN, None)
    assert len(said(asked(reasoning=ReasoningBetweenTools()))) == 1
    none = Capabilities(reasoning_modes=frozenset({"disabled"}))
    assert sent(ReasoningAdaptive(), "m", none) == (None, None)
    assert sent(ReasoningEffort(), "m", none) == (None, None)
    assert len(said(asked(model="m", reasoning=ReasoningEffort()), none)) == 1


def test_the_persons_own_level_beside_off() -> None:
    own = {"output_config": {"effort": "max"}}
    found = body(asked(reasoning=ReasoningDisabled(), extra_options=own))
    assert ("thinking" in found, found["output_config"]) == (False, {"effort": "max"})
    found = body(asked(model="claude-opus-4-8", reasoning=ReasoningDisabled(), extra_options=own))
    assert found["thinking"] == OFF


def test_forced_calls() -> None:
    required = ToolChoice("required")
    found = body(asked(model="claude-opus-5-5", tools=(TOOL,), tool_choice=required))
    assert found["tool_choice"] == {"type": "auto"}
    assert len(said(asked(model="claude-opus-5-5", tools=(TOOL,), tool_choice=required))) == 1
    assert body(asked(model="claude-haiku-5-5", tools=(TOOL,), tool_choice=required))["tool_choice"] == {"type": "any"}
    named = ToolChoice("named", "f")
    assert body(asked(tools=(TOOL,), tool_choice=named))["tool_choice"] == {"type": "tool", "name": "f"}
    assert body(asked(tools=(TOOL,), tool_choice=ToolChoice("none")))["tool_choice"] == {"type": "none"}
    assert "tool_choice" not in body(asked(tool_choice=required))
    listed = Capabilities(reasoning_modes=frozenset({"adaptive"}))
    assert body(asked(model="m", tools=(TOOL,), tool_choice=required), listed)["tool_choice"] == {"type": "auto"}


def test_thinking_by_budget_is_not_switched_on_for_a_forced_call_or_in_the_middle_of_a_loop() -> None:
    wish, model = ReasoningBudget(tokens=2000), "claude-sonnet-4-5"
    forced = asked(model=model, reasoning=wish, tools=(TOOL,), tool_choice=ToolChoice("required"))
    assert "thinking" not in body(forced)
    assert len(said(forced)) == 1
    bare = (Message.user("q"), answer(call(), model=model), results(result()))
    assert "thinking" not in body(asked(*bare, model=model, reasoning=wish))
    assert len(said(asked(*bare, model=model, reasoning=wish))) == 1
    begun = (Message.user("q"), answer(thought(), call(), model=model), results(result()))
    assert body(asked(*begun, model=model, reasoning=wish))["thinking"]["budget_tokens"] == 2000
    over = (*bare, answer("x", model=model), Message.user("next"))
    assert "thinking" in body(asked(*over, model=model, reasoning=wish))


def test_no_table_makes_a_budget_smaller_than_the_server_takes() -> None:
    known = Capabilities(reasoning_modes=frozenset({"budget"}), budget=(1, 5000))
    assert sent(ReasoningBudget(tokens=10), "m", known)[0]["budget_tokens"] == 1024
