"""A program with a folder before its name may be one of the workspace: no rule for what it seems to start covers it."""

from collections.abc import Callable

import pytest

from desktop_agent.permissions.rule_matching import CallFacts, Match, find_allowing_rule, match_restriction
from desktop_agent.tools.tool import AnyTool
from desktop_agent.types.permissions import CommandPattern, CommandSubject, Rule, RuleEffect, RuleScope
from desktop_agent.types.tool_calls import Effect

MakeTool = Callable[..., AnyTool]
LINES = (
    "./timeout 5 mkdir a",
    "./env mkdir a",
    "bin/nohup mkdir a",
    "./nice mkdir a",
    "./command mkdir a",
    "./time mkdir a",
    "./eval mkdir a",
    "./bash -c 'mkdir a'",
    "/usr/bin/env mkdir a",
    "mkdir a; ./stdbuf -oL ls",
    "mkdir a; ./xargs cat",
)


@pytest.mark.parametrize("sandboxed", [False, True])
@pytest.mark.parametrize("line", LINES)
def test_a_wrapper_of_the_workspace_needs_its_own_rule(line: str, sandboxed: bool, make_tool: MakeTool) -> None:
    tool = make_tool(Effect.EXECUTE)
    case = CallFacts(tool, "d", (CommandSubject(line, is_sandboxed=sandboxed),), "/w")
    allow = Rule(effect=RuleEffect.ALLOW, tool="*", pattern=CommandPattern(words=("mkdir",)), scope=RuleScope.ALWAYS)
    assert find_allowing_rule((allow,), case) is None


@pytest.mark.parametrize("line", LINES)
def test_a_denied_command_is_denied_inside_a_wrapper_of_the_workspace(line: str, make_tool: MakeTool) -> None:
    case = CallFacts(make_tool(Effect.EXECUTE), "d", (CommandSubject(line),), "/w")
    deny = Rule(effect=RuleEffect.DENY, tool="*", pattern=CommandPattern(words=("mkdir",)), scope=RuleScope.ALWAYS)
    assert match_restriction(deny, case) is Match.YES
