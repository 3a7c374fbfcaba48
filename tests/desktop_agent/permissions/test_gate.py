from collections.abc import Callable
from typing import Any

import pytest

from desktop_agent.permissions.allowances import Allowances
from desktop_agent.permissions.gate import Allowed, Ask, Refused, decide, still_allowed
from desktop_agent.tools.tool import AnyTool
from desktop_agent.vocabulary.blocks import Outcome, ToolUse
from desktop_agent.vocabulary.tool_calls import Effect, ToolClass

MakeTool = Callable[..., AnyTool]
NONE = Allowances()


def call(arguments: dict[str, Any] | None = None, *, malformed: str | None = None) -> ToolUse:
    return ToolUse(id="c1", name="touch", input=arguments or {"path": "a"}, malformed=malformed)


def test_a_malformed_call_is_refused_before_anything_else(make_tool: MakeTool) -> None:
    allowed = NONE.allowing(make_tool().identity)
    for tool in (make_tool(), make_tool(Effect.READ, tool_class=ToolClass.READ_ONLY), None):
        verdict = decide(call(malformed='{"path": '), tool, allowed)
        assert isinstance(verdict, Refused)
        assert verdict.outcome is Outcome.FAILED
        assert "not a JSON object" in str(verdict.sentence)


def test_an_unknown_tool_is_refused_with_the_names_there_are() -> None:
    verdict = decide(call(), None, NONE.allowing("touch"), ["read_file", "calculate"])
    assert isinstance(verdict, Refused)
    assert str(verdict.sentence) == "There is no tool “touch”. The tools are: read_file, calculate."
    none = decide(call(), None, NONE)
    assert isinstance(none, Refused)
    assert "no tools" in str(none.sentence)


def test_a_name_with_braces_does_not_break_the_sentence() -> None:
    verdict = decide(ToolUse(id="c", name="{x} {0}"), None, NONE, ["a"])
    assert isinstance(verdict, Refused)
    assert "“{x} {0}”" in str(verdict.sentence)


def test_arguments_that_do_not_fit_are_refused_even_when_allowed(make_tool: MakeTool) -> None:
    tool = make_tool()
    for arguments in ({"path": 3}, {"paths": "a"}, {"path": "a", "other": 1}):
        verdict = decide(call(arguments), tool, NONE.allowing(tool.identity))
        assert isinstance(verdict, Refused)
        assert verdict.outcome is Outcome.FAILED
        assert "do not fit" in str(verdict.sentence)


def test_arguments_nested_too_deep_are_refused_not_raised(make_tool: MakeTool) -> None:
    deep: dict[str, Any] = {}
    for _ in range(5000):
        deep = {"d": deep}
    assert isinstance(decide(call({"path": "a", "more": deep}), make_tool(), NONE), Refused)


@pytest.mark.parametrize("effects", [(), (Effect.READ,)])
def test_a_tool_that_only_reads_runs_unasked(make_tool: MakeTool, effects: tuple[Effect, ...]) -> None:
    tool = make_tool(*effects, tool_class=ToolClass.READ_ONLY)
    assert decide(call(), tool, NONE) == Allowed(tool.digest({"path": "a"}), "default")


@pytest.mark.parametrize("effect", [Effect.WRITE, Effect.EXECUTE, Effect.NETWORK, Effect.DELEGATE])
def test_any_other_effect_asks_even_when_called_read_only(make_tool: MakeTool, effect: Effect) -> None:
    tool = make_tool(Effect.READ, effect, tool_class=ToolClass.READ_ONLY)
    assert decide(call(), tool, NONE) == Ask(tool.digest({"path": "a"}))


def test_a_mutating_tool_asks_whatever_it_says_to_touch(make_tool: MakeTool) -> None:
    assert isinstance(decide(call(), make_tool(), NONE), Ask)
    assert isinstance(decide(call(), make_tool(Effect.READ), NONE), Ask)


def test_an_allowance_holds_for_this_very_tool_only(make_tool: MakeTool) -> None:
    tool = make_tool(Effect.WRITE, scope="/here")
    allowances = NONE.allowing(tool.identity)
    assert decide(call(), tool, allowances) == Allowed(tool.digest({"path": "a"}), "conversation")
    for other in (make_tool(Effect.WRITE, scope="/there"), make_tool(Effect.WRITE, name="Touch", scope="/here")):
        assert isinstance(decide(call(), other, allowances), Ask)
    assert isinstance(decide(call(), tool, allowances.without(tool.identity)), Ask)


def test_the_last_look_sees_other_arguments_and_another_tool(make_tool: MakeTool) -> None:
    tool = make_tool(scope="/here")
    verdict = decide(call({"path": "a", "more": {"x": 1, "y": 2}}), tool, NONE.allowing(tool.identity))
    assert still_allowed(verdict, tool, {"more": {"y": 2, "x": 1}, "path": "a"})
    assert not still_allowed(verdict, tool, {"path": "a", "more": {"x": 1}})
    assert not still_allowed(verdict, make_tool(scope="/there"), {"path": "a", "more": {"x": 1, "y": 2}})
    asked = decide(call(), tool, NONE)
    assert not still_allowed(asked, tool, {"path": "a"})


def test_allowances_survive_json() -> None:
    allowances = NONE.allowing("b").allowing("a").allowing("b")
    assert Allowances.model_validate_json(allowances.model_dump_json()) == allowances
    assert allowances.without("c") == allowances
