"""Read-only calls are allowed by default, but not past rules and modes that deny or ask."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from desktop_agent.permissions.gate import Allowed, Ask, Denied, Suspension, Verdict, decide, stricter
from desktop_agent.permissions.rule_matching import CallFacts, find_allowing_rule
from desktop_agent.permissions.rule_proposals import propose_rules
from desktop_agent.tools.tool import AnyTool
from desktop_agent.types.errors import Sentence
from desktop_agent.types.permissions import (
    ACCEPT_EDITS_MODE,
    DEFAULT_MODE,
    PLAN_MODE,
    CommandPattern,
    CommandSubject,
    HostPattern,
    HostSubject,
    Mode,
    Rule,
    RuleEffect,
    RuleScope,
)
from desktop_agent.types.tool_calls import Effect

MakeTool = Callable[..., AnyTool]
EVERYTHING = (Effect.READ, Effect.WRITE, Effect.EXECUTE, Effect.NETWORK)
READ_ONLY = CommandSubject("git status | head", is_sandboxed=True)
TESTS = CommandSubject("python -m pytest -q 2>&1 | tail -5", is_sandboxed=True)


@pytest.fixture
def tool(make_tool: MakeTool) -> AnyTool:
    return make_tool(*EVERYTHING)


def judged(
    tool: AnyTool, *subjects: CommandSubject | HostSubject, rules: tuple[Rule, ...] = (), mode: Mode = DEFAULT_MODE
) -> Verdict:
    suspension = Suspension(frozenset({Effect.EXECUTE, Effect.NETWORK}), Sentence("A page was read."))
    return decide(CallFacts(tool, "d", subjects, "/w"), rules, mode, suspension=suspension)


@pytest.mark.parametrize("mode", [DEFAULT_MODE, PLAN_MODE, ACCEPT_EDITS_MODE])
def test_what_is_read_only_is_let_through_in_every_mode_and_after_outside_content(tool: AnyTool, mode: Mode) -> None:
    assert judged(tool, READ_ONLY, mode=mode) == Allowed("d", "default")


def test_what_is_not_sandboxed_is_asked_about(tool: AnyTool) -> None:
    assert isinstance(judged(tool, replace(READ_ONLY, is_sandboxed=False)), Ask)
    assert isinstance(judged(tool, READ_ONLY, HostSubject("example.org")), Ask)
    assert isinstance(judged(tool, TESTS), Ask)
    assert isinstance(judged(tool), Ask)


@pytest.mark.parametrize(("effect", "verdict"), [(RuleEffect.DENY, Denied), (RuleEffect.ASK, Ask)])
def test_rules_that_hold_back_hold_it_back(tool: AnyTool, effect: RuleEffect, verdict: type[Verdict]) -> None:
    for pattern in (None, CommandPattern(words=("git",)), CommandPattern(words=("head",))):
        rule = Rule(effect=effect, tool="*", pattern=pattern, scope=RuleScope.ALWAYS)
        assert isinstance(judged(tool, READ_ONLY, rules=(rule,)), verdict)


def test_what_is_read_only_beside_something_else_needs_no_rule_of_its_own(tool: AnyTool) -> None:
    case = CallFacts(tool, "d", (TESTS,), "/w")
    first = propose_rules(tool, "d", (TESTS,), workspace="/w")[0]
    assert first.pattern == CommandPattern(words=("python", "-m", "pytest"))
    assert find_allowing_rule((first,), case) is first
    for line in ("python -m pytest | sort -o x", "python -m pytest | cat ../x", "python -m pytest | tail > x"):
        assert find_allowing_rule((first,), replace(case, subjects=(replace(TESTS, line=line),))) is None
    assert find_allowing_rule((first,), replace(case, subjects=(replace(TESTS, is_sandboxed=False),))) is None


def test_a_mode_that_changes_nothing_and_an_agent_above_hold_it_to_reading(tool: AnyTool) -> None:
    everything = Rule(effect=RuleEffect.ALLOW, tool="*", scope=RuleScope.ALWAYS)
    assert judged(tool, READ_ONLY, rules=(everything,), mode=PLAN_MODE) == Allowed("d", "default")
    by_rule, by_default = Allowed("d", "rule", "r", trusts=True), Allowed("d", "default")
    for pair in ((by_rule, by_default), (by_default, by_rule)):
        assert stricter(*pair) == by_default


def test_a_rule_about_what_is_read_only_is_found(tool: AnyTool) -> None:
    rule = Rule(effect=RuleEffect.ALLOW, tool="*", pattern=CommandPattern(words=("git",)), scope=RuleScope.ALWAYS)
    case = CallFacts(tool, "d", (CommandSubject("git status", is_sandboxed=True),), "/w")
    assert find_allowing_rule((rule,), case) is rule


def test_several_rules_trust_what_is_brought_only_together(tool: AnyTool) -> None:
    subjects = (CommandSubject("git fetch"), HostSubject("example.org"))
    git = Rule(effect=RuleEffect.ALLOW, tool="*", pattern=CommandPattern(words=("git", "fetch")), trusts=True)
    host = Rule(effect=RuleEffect.ALLOW, tool="*", pattern=HostPattern(host="example.org"))
    for trusts in (False, True):
        rule = find_allowing_rule(
            (git, host.model_copy(update={"trusts": trusts})), CallFacts(tool, "d", subjects, "/w")
        )
        assert rule is not None
        assert rule.trusts is trusts
