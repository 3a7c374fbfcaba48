"""A tool whose every call is asked about: no rule or mode allows it, but rules can deny it."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from desktop_agent.permissions.approvals import Approval, ApprovalBroker, explain_preview
from desktop_agent.permissions.gate import Ask, Denied
from desktop_agent.permissions.policy import PermissionPolicy
from desktop_agent.tools.tool import AnyTool
from desktop_agent.types.blocks import ToolUse
from desktop_agent.types.errors import Sentence, WrongUse
from desktop_agent.types.messages import new_id
from desktop_agent.types.permissions import (
    ACCEPT_EDITS_MODE,
    DEFAULT_MODE,
    PLAN_MODE,
    ArgumentsPattern,
    CommandPattern,
    Mode,
    Pattern,
    Rule,
    RuleEffect,
)
from desktop_agent.types.tool_calls import (
    AllowAlways,
    AllowForConversation,
    AllowOnce,
    CommandPart,
    CommandPreview,
    Effect,
    Risk,
)

MakeTool = Callable[..., AnyTool]
WHY = Sentence("Each one is asked about.")
USE = ToolUse(id="c1", name="act", input={"lines": ["git push"]})
WORDS = CommandPattern(words=("git", "push"), folder=None)


@pytest.fixture
def tool(make_open_tool: MakeTool) -> AnyTool:
    return replace(make_open_tool([Effect.EXECUTE]), always_asked=WHY)


def rule(effect: RuleEffect, pattern: Pattern | None = None, *answers: str) -> Rule:
    return Rule(effect=effect, tool="act", pattern=pattern, answers=answers)


@pytest.mark.parametrize("mode", [DEFAULT_MODE, ACCEPT_EDITS_MODE])
async def test_no_rule_and_no_mode_allows_it(tool: AnyTool, mode: Mode) -> None:
    exact = ArgumentsPattern(digest=tool.digest(USE.input))
    for pattern in (None, exact, WORDS):
        allows = rule(RuleEffect.ALLOW, pattern)
        own = Mode(name="all", title="All", mutating=mode.mutating, rules=(allows,))
        for policy in (PermissionPolicy([allows], mode=mode), PermissionPolicy(mode=own)):
            assert await policy.verdict(USE, tool) == Ask(exact.digest, (WHY,))
            # The reason is the tool, not the line.
            assert await policy.verdict(USE, replace(tool, always_asked=None)) != Ask(exact.digest, (WHY,))


async def test_a_rule_that_answers_another_does_not_allow_it(tool: AnyTool) -> None:
    asks = rule(RuleEffect.ASK, WORDS)
    verdict = await PermissionPolicy([asks, rule(RuleEffect.ALLOW, WORDS, asks.id)]).verdict(USE, tool)
    assert isinstance(verdict, Ask)


async def test_what_denies_holds(tool: AnyTool) -> None:
    for pattern in (None, WORDS):
        policy = PermissionPolicy([rule(RuleEffect.ALLOW), rule(RuleEffect.DENY, pattern)])
        assert isinstance(await policy.verdict(USE, tool), Denied)
    assert isinstance(await PermissionPolicy(mode=PLAN_MODE).verdict(USE, tool), Denied)
    hard = ToolUse(id="c1", name="act", input={"lines": ["rm -rf /"]})
    assert isinstance(await PermissionPolicy([rule(RuleEffect.ALLOW)]).verdict(hard, tool), Denied)


async def test_no_rule_is_offered_and_none_is_made(tool: AnyTool) -> None:
    policy = PermissionPolicy()
    assert await policy.proposals(USE, replace(tool, always_asked=None))
    assert await policy.proposals(USE, tool) == ()
    broker = ApprovalBroker()
    approval = broker.open(Approval(new_id(), USE, tool))
    for decision in (AllowForConversation(), AllowAlways(rule_id="r")):
        with pytest.raises(WrongUse):
            broker.answer(approval.approval_id, decision)
    report = broker.answer(approval.approval_id, AllowOnce())
    assert report.resolution is not None
    assert report.resolution.rule is None


def test_a_line_of_powershell_is_never_said_to_be_understood_and_its_lookalikes_are_found() -> None:
    parts = (CommandPart("git push"), CommandPart("rеmove-item x", (Risk.DELETES,)))
    line = "git push; rеmove-item x"
    preview = CommandPreview(line, "/work", "Not confined: x.", parts, understood=True, language="powershell")
    explained = explain_preview(preview)
    assert isinstance(explained, CommandPreview)
    assert not explained.understood
    assert [part.text for part in explained.parts] == ["git push", "rеmove-item x"]
    assert explained.parts[1].risks == (Risk.DELETES, Risk.LOOKALIKE)
    plain = explain_preview(replace(preview, parts=()))
    assert isinstance(plain, CommandPreview)
    assert [part.text for part in plain.parts] == [line]
    assert plain.parts[0].lookalikes
