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
    adjustments_of,
    answer,
    body,
    call,
    make_request,
    result,
    results,
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


def thinking_and_effort(
    wish: Reasoning | None, model: str, capabilities: Capabilities | None = None, **more: Any
) -> tuple[Any, Any]:
    fields = body(make_request(model=model, reasoning=wish, **more), capabilities)
    return fields.get("thinking"), fields.get("output_config", {}).get("effort")


@pytest.mark.parametrize("choice", ["auto", "required"])
@pytest.mark.parametrize("max_tokens", [None, 1024, 1500, 1_000_000])
@pytest.mark.parametrize("model", [*TYPES, "somebody-elses"])
def test_no_wish_makes_a_request_that_is_refused(model: str, max_tokens: int | None, choice: Any) -> None:
    for wish in WISHES:
        for own in ({}, {"output_config": {"effort": "xhigh"}}):
            body(
                make_request(
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
    assert thinking_and_effort(None, model) == (thinking, None)
    assert thinking_and_effort(None, model, show_reasoning=False) == (None, None)
    assert adjustments_of(make_request(model=model)) == []


def test_a_listed_model_that_always_thinks_is_asked_to_show_it() -> None:
    listed = Capabilities(reasoning_modes=frozenset({"adaptive"}))
    assert thinking_and_effort(None, "new", listed) == (SHOWN, None)
    assert thinking_and_effort(None, "new", Capabilities(reasoning_modes=frozenset({"adaptive", "disabled"}))) == (
        None,
        None,
    )


@pytest.mark.parametrize(
    ("model", "thinking", "effort", "adjustment_count"),
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
def test_off(model: str, thinking: Any, effort: Any, adjustment_count: int) -> None:
    assert thinking_and_effort(ReasoningDisabled(), model) == (thinking, effort)
    assert len(adjustments_of(make_request(model=model, reasoning=ReasoningDisabled()))) == adjustment_count


@pytest.mark.parametrize(
    ("model", "level", "thinking", "effort", "adjustment_count"),
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
def test_levels(model: str, level: Any, thinking: Any, effort: Any, adjustment_count: int) -> None:
    wish = ReasoningEffort(level=level)
    assert thinking_and_effort(wish, model) == (thinking, effort)
    assert len(adjustments_of(make_request(model=model, reasoning=wish))) == adjustment_count


@pytest.mark.parametrize(
    ("model", "max_tokens", "tokens", "thinking", "effort", "adjustment_count"),
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
def test_budgets(model: str, max_tokens: Any, tokens: int, thinking: Any, effort: Any, adjustment_count: int) -> None:
    wish = ReasoningBudget(tokens=tokens)
    thinking_sent, level = thinking_and_effort(wish, model, max_tokens=max_tokens)
    assert level == effort
    assert (thinking_sent.get("budget_tokens", thinking_sent["type"]) if thinking_sent else None) == thinking
    assert len(adjustments_of(make_request(model=model, reasoning=wish, max_tokens=max_tokens))) == adjustment_count


def test_adaptive_and_between_tools() -> None:
    assert thinking_and_effort(ReasoningAdaptive(), "claude-opus-4-8") == (SHOWN, None)
    assert thinking_and_effort(ReasoningAdaptive(), "claude-haiku-4-5")[0]["type"] == "enabled"
    assert thinking_and_effort(ReasoningBetweenTools(), "claude-sonnet-5-5") == ({"type": "between_tools"}, None)
    assert thinking_and_effort(ReasoningBetweenTools(), "claude-opus-5") == (SHOWN, None)
    assert len(adjustments_of(make_request(reasoning=ReasoningBetweenTools()))) == 1
    none = Capabilities(reasoning_modes=frozenset({"disabled"}))
    assert thinking_and_effort(ReasoningAdaptive(), "m", none) == (None, None)
    assert thinking_and_effort(ReasoningEffort(), "m", none) == (None, None)
    assert len(adjustments_of(make_request(model="m", reasoning=ReasoningEffort()), none)) == 1


def test_the_persons_own_level_beside_off() -> None:
    own = {"output_config": {"effort": "max"}}
    fields = body(make_request(reasoning=ReasoningDisabled(), extra_options=own))
    assert ("thinking" in fields, fields["output_config"]) == (False, {"effort": "max"})
    fields = body(make_request(model="claude-opus-4-8", reasoning=ReasoningDisabled(), extra_options=own))
    assert fields["thinking"] == OFF


def test_forced_calls() -> None:
    required = ToolChoice("required")
    fields = body(make_request(model="claude-opus-5-5", tools=(TOOL,), tool_choice=required))
    assert fields["tool_choice"] == {"type": "auto"}
    assert len(adjustments_of(make_request(model="claude-opus-5-5", tools=(TOOL,), tool_choice=required))) == 1
    assert body(make_request(model="claude-haiku-5-5", tools=(TOOL,), tool_choice=required))["tool_choice"] == {
        "type": "any"
    }
    named = ToolChoice("named", "f")
    assert body(make_request(tools=(TOOL,), tool_choice=named))["tool_choice"] == {"type": "tool", "name": "f"}
    assert body(make_request(tools=(TOOL,), tool_choice=ToolChoice("none")))["tool_choice"] == {"type": "none"}
    assert "tool_choice" not in body(make_request(tool_choice=required))
    listed = Capabilities(reasoning_modes=frozenset({"adaptive"}))
    assert body(make_request(model="m", tools=(TOOL,), tool_choice=required), listed)["tool_choice"] == {"type": "auto"}


def test_thinking_by_budget_is_not_switched_on_for_a_forced_call_or_in_the_middle_of_a_loop() -> None:
    wish, model = ReasoningBudget(tokens=2000), "claude-sonnet-4-5"
    forced = make_request(model=model, reasoning=wish, tools=(TOOL,), tool_choice=ToolChoice("required"))
    assert "thinking" not in body(forced)
    assert len(adjustments_of(forced)) == 1
    bare = (Message.user("q"), answer(call(), model=model), results(result()))
    assert "thinking" not in body(make_request(*bare, model=model, reasoning=wish))
    assert len(adjustments_of(make_request(*bare, model=model, reasoning=wish))) == 1
    begun = (Message.user("q"), answer(thought(), call(), model=model), results(result()))
    assert body(make_request(*begun, model=model, reasoning=wish))["thinking"]["budget_tokens"] == 2000
    over = (*bare, answer("x", model=model), Message.user("next"))
    assert "thinking" in body(make_request(*over, model=model, reasoning=wish))


def test_no_table_makes_a_budget_smaller_than_the_server_takes() -> None:
    capabilities = Capabilities(reasoning_modes=frozenset({"budget"}), budget=(1, 5000))
    assert thinking_and_effort(ReasoningBudget(tokens=10), "m", capabilities)[0]["budget_tokens"] == 1024
