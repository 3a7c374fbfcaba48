from collections.abc import Callable
from typing import Any

import pytest

from desktop_agent.permissions.gate import AdmittedCall, Allowed, Ask, Denied, Suspension, admit, decide, stricter
from desktop_agent.permissions.rule_matching import CallFacts
from desktop_agent.tools.tool import AnyTool
from desktop_agent.types.blocks import Outcome, ToolUse
from desktop_agent.types.errors import Sentence
from desktop_agent.types.permissions import (
    ACCEPT_EDITS_MODE,
    DEFAULT_MODE,
    PLAN_MODE,
    ArgumentsPattern,
    Mode,
    PathPattern,
    Rule,
    RuleEffect,
)
from desktop_agent.types.tool_calls import Effect, ToolClass

MakeTool = Callable[..., AnyTool]
READ_ONLY = ToolClass.READ_ONLY


def call(arguments: dict[str, Any] | None = None, *, malformed: str | None = None) -> ToolUse:
    return ToolUse(id="c1", name="touch", input=arguments or {"path": "a"}, malformed=malformed)


def case(tool: AnyTool) -> CallFacts:
    return CallFacts(tool, tool.digest({"path": "a"}))


def rule(effect: RuleEffect = RuleEffect.ALLOW, tool: str = "*", **more: Any) -> Rule:
    return Rule(effect=effect, tool=tool, **more)


def test_a_malformed_call_is_refused_before_anything_else(make_tool: MakeTool) -> None:
    for tool in (make_tool(), make_tool(Effect.READ, tool_class=READ_ONLY), None):
        verdict = admit(call(malformed='{"path": '), tool)
        assert isinstance(verdict, Denied)
        assert verdict.outcome is Outcome.FAILED
        assert "not a JSON object" in str(verdict.sentence)


@pytest.mark.parametrize(("malformed", "expected"), [("{}", "one at a time"), ('{"a": NaN}', "not a JSON object")])
def test_a_call_whose_arguments_are_an_object_is_refused_for_another_reason(malformed: str, expected: str) -> None:
    verdict = admit(call(malformed=malformed), None)
    assert isinstance(verdict, Denied)
    assert expected in str(verdict.sentence)


def test_an_unknown_tool_is_refused_with_the_names_there_are() -> None:
    verdict = admit(call(), None, ["read_file", "calculate"])
    assert isinstance(verdict, Denied)
    assert str(verdict.sentence) == "There is no tool “touch”. The tools are: read_file, calculate."
    none = admit(call(), None)
    assert isinstance(none, Denied)
    assert "no tools" in str(none.sentence)


def test_a_name_with_braces_does_not_break_the_sentence() -> None:
    verdict = admit(ToolUse(id="c", name="{x} {0}"), None, ["a"])
    assert isinstance(verdict, Denied)
    assert "“{x} {0}”" in str(verdict.sentence)


def test_arguments_that_do_not_fit_are_refused(make_tool: MakeTool) -> None:
    for arguments in ({"path": 3}, {"paths": "a"}, {"path": "a", "other": 1}):
        verdict = admit(call(arguments), make_tool())
        assert isinstance(verdict, Denied)
        assert verdict.outcome is Outcome.FAILED
        assert "do not fit" in str(verdict.sentence)


def test_arguments_nested_too_deep_are_refused_not_raised(make_tool: MakeTool) -> None:
    deep: dict[str, Any] = {}
    for _ in range(5000):
        deep = {"d": deep}
    assert isinstance(admit(call({"path": "a", "more": deep}), make_tool()), Denied)


def test_an_admitted_call_carries_the_digest_of_its_arguments(make_tool: MakeTool) -> None:
    tool = make_tool()
    entry = admit(call(), tool)
    assert isinstance(entry, AdmittedCall)
    assert (entry.tool, entry.digest, entry.input.path) == (tool, tool.digest({"path": "a"}), "a")


@pytest.mark.parametrize("effects", [(), (Effect.READ,), (Effect.DELEGATE,)])
@pytest.mark.parametrize("mode", [DEFAULT_MODE, PLAN_MODE, ACCEPT_EDITS_MODE])
def test_a_tool_that_only_reads_or_only_delegates_runs_unasked(
    make_tool: MakeTool, effects: tuple[Effect, ...], mode: Mode
) -> None:
    tool = make_tool(*effects, tool_class=READ_ONLY)
    assert decide(case(tool), (), mode) == Allowed(tool.digest({"path": "a"}), "default")


@pytest.mark.parametrize("effect", [Effect.WRITE, Effect.EXECUTE, Effect.NETWORK, Effect.DELEGATE])
def test_any_other_effect_asks_even_when_called_read_only(make_tool: MakeTool, effect: Effect) -> None:
    tool = make_tool(Effect.READ, effect, tool_class=READ_ONLY)
    assert decide(case(tool), (), DEFAULT_MODE) == Ask(tool.digest({"path": "a"}))


def test_a_mutating_tool_asks_whatever_it_says_to_touch(make_tool: MakeTool) -> None:
    for effects in ((), (Effect.READ,), (Effect.DELEGATE,)):
        assert isinstance(decide(case(make_tool(*effects)), (), DEFAULT_MODE), Ask)


def test_deny_goes_over_ask_and_ask_over_allow(make_tool: MakeTool) -> None:
    tool = make_tool(Effect.WRITE)
    allow, ask, deny = rule(), rule(RuleEffect.ASK), rule(RuleEffect.DENY)
    assert decide(case(tool), (allow,), DEFAULT_MODE) == Allowed(case(tool).digest, "rule", allow.id)
    question = decide(case(tool), (allow, ask), DEFAULT_MODE)
    assert isinstance(question, Ask)
    assert question.reason == "A rule made by you asks about this call."
    assert question.reasons[0].values["origin"] == Sentence("you"), "it can be translated"
    refused = decide(case(tool), (allow, ask, deny), DEFAULT_MODE)
    assert isinstance(refused, Denied)
    assert refused.outcome is Outcome.DENIED


def test_rules_of_a_mode_count_like_others(make_tool: MakeTool) -> None:
    tool = make_tool(Effect.READ, tool_class=READ_ONLY)
    careful = Mode(name="careful", title="Careful", rules=(rule(RuleEffect.DENY, "touch", origin="a mode"),))
    refused = decide(case(tool), (rule(),), careful)
    assert isinstance(refused, Denied)
    assert "a mode" in str(refused.sentence)


@pytest.mark.parametrize(
    ("effects", "tool_class"),
    [
        ((), ToolClass.MUTATING),
        ((Effect.READ,), ToolClass.MUTATING),
        ((Effect.WRITE,), READ_ONLY),
        ((Effect.EXECUTE,), READ_ONLY),
    ],
)
def test_plan_denies_what_changes_something_whatever_rules_allow(
    make_tool: MakeTool, effects: tuple[Effect, ...], tool_class: ToolClass
) -> None:
    tool = make_tool(*effects, tool_class=tool_class)
    for rules in ((), (rule(),), (rule(RuleEffect.ASK),), (rule(pattern=ArgumentsPattern(digest=case(tool).digest)),)):
        verdict = decide(case(tool), rules, PLAN_MODE)
        assert isinstance(verdict, Denied)
        assert "“Plan”" in str(verdict.sentence)


@pytest.mark.parametrize(
    ("effects", "allowed"),
    [
        ((Effect.WRITE,), True),
        ((Effect.READ, Effect.WRITE), True),
        ((), False),
        ((Effect.READ,), False),
        ((Effect.WRITE, Effect.NETWORK), False),
        ((Effect.EXECUTE,), False),
        ((Effect.WRITE, Effect.DELEGATE), False),
    ],
)
def test_accept_edits_lets_through_only_reading_and_writing(
    make_tool: MakeTool, effects: tuple[Effect, ...], allowed: bool
) -> None:
    tool = make_tool(*effects)
    verdict = decide(case(tool), (), ACCEPT_EDITS_MODE)
    assert verdict == (Allowed(case(tool).digest, "mode") if allowed else Ask(case(tool).digest))
    assert isinstance(decide(case(tool), (rule(RuleEffect.ASK),), ACCEPT_EDITS_MODE), Ask)


def test_what_is_suspended_is_asked_with_the_reason_but_defaults_stay(make_tool: MakeTool) -> None:
    suspension = Suspension(frozenset({Effect.WRITE}), Sentence("A web page was read."))
    writing, reading = make_tool(Effect.WRITE), make_tool(Effect.READ, tool_class=READ_ONLY)
    for rules, mode in (((rule(),), DEFAULT_MODE), ((), ACCEPT_EDITS_MODE)):
        assert isinstance(decide(case(writing), rules, mode), Allowed)
        question = decide(case(writing), rules, mode, suspension=suspension)
        assert question == Ask(case(writing).digest, (Sentence("A web page was read."),))
    undeclared = decide(case(make_tool()), (rule(),), DEFAULT_MODE, suspension=suspension)
    assert isinstance(undeclared, Ask)
    everything = Suspension(frozenset(Effect), Sentence("Wait."))
    assert isinstance(decide(case(reading), (rule(),), DEFAULT_MODE, suspension=everything), Allowed)
    assert isinstance(decide(case(writing), (rule(RuleEffect.DENY),), DEFAULT_MODE, suspension=suspension), Denied)


def test_a_call_that_cannot_say_what_it_touches_is_asked_about_unless_these_arguments_are_allowed(
    make_tool: MakeTool,
) -> None:
    tool = make_tool(Effect.WRITE)
    silent = CallFacts(tool, tool.digest({"path": "a"}), None)
    assert isinstance(decide(silent, (rule(),), DEFAULT_MODE), Ask)
    assert isinstance(decide(silent, (), ACCEPT_EDITS_MODE), Ask)
    assert isinstance(decide(silent, (rule(pattern=PathPattern(prefix="/")),), DEFAULT_MODE), Ask)
    exact = rule(pattern=ArgumentsPattern(digest=silent.digest))
    assert decide(silent, (rule(), exact), DEFAULT_MODE) == Allowed(silent.digest, "rule", exact.id)


def test_the_strictest_of_two_counts() -> None:
    allowed, ask, refused = Allowed("d", "default"), Ask("d"), Denied(Outcome.DENIED, Sentence("no"))
    assert stricter(allowed, ask) == stricter(ask, allowed) == ask
    assert stricter(refused, ask) == stricter(allowed, refused) == refused
    assert stricter(Ask("d", (Sentence("first"),)), Ask("d", (Sentence("second"),))) == Ask("d", (Sentence("first"),))
