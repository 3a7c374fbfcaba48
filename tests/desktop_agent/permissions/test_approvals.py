import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from desktop_agent.permissions.approvals import AnswerStatus, Approval, ApprovalBroker
from desktop_agent.permissions.gate import Allowed, Ask
from desktop_agent.tools.json_schema import JsonSchema
from desktop_agent.tools.tool import AnyTool, Tool
from desktop_agent.types.blocks import ToolUse
from desktop_agent.types.errors import Sentence, ToolInputInvalid, WrongUse
from desktop_agent.types.messages import new_id
from desktop_agent.types.permissions import ArgumentsPattern, HostPattern, Rule, RuleEffect, RuleScope
from desktop_agent.types.tool_calls import (
    AllowAlways,
    AllowForConversation,
    AllowOnce,
    Deny,
    DenyAndStop,
    Effect,
    TextPreview,
)

MakeTool = Callable[..., AnyTool]


@pytest.fixture
def tool(make_tool: MakeTool) -> AnyTool:
    return make_tool()


def use(id_: str = "c1", path: str = "a") -> ToolUse:
    return ToolUse(id=id_, name="touch", input={"path": path})


async def test_a_decision_reaches_who_waits(tool: AnyTool) -> None:
    broker = ApprovalBroker()
    preview = TextPreview("what would happen")
    approval = broker.open(Approval(new_id(), use(), tool, preview, agent_path=("writer",)))
    assert (approval.preview, approval.agent_path, approval.digest) == (
        preview,
        ("writer",),
        tool.digest({"path": "a"}),
    )
    waiting = asyncio.ensure_future(approval.resolution())
    await asyncio.sleep(0)
    assert not waiting.done()
    report = broker.answer(approval.approval_id, AllowOnce())
    assert report.accepted
    resolution = await waiting
    assert resolution == report.resolution
    assert resolution.verdict == Allowed(approval.digest, "person")
    assert broker.open_approvals == ()


async def test_the_first_decision_counts_and_a_second_is_told_so(tool: AnyTool) -> None:
    broker = ApprovalBroker()
    approval = broker.open(Approval(new_id(), use(), tool))
    broker.answer(approval.approval_id, Deny(message="no"))
    for later in (AllowOnce(), AllowForConversation(), AllowOnce(edited_input={"bad": 1}), DenyAndStop()):
        report = broker.answer(approval.approval_id, later)
        assert (report.accepted, report.status) == (False, AnswerStatus.ALREADY_DECIDED)
        assert report.resolution is not None
        assert report.resolution.decision == Deny(message="no")
    resolution = await approval.resolution()
    assert (resolution.decision, resolution.verdict) == (Deny(message="no"), None)


async def test_an_edit_is_checked_and_bound_to_its_own_digest(tool: AnyTool) -> None:
    broker = ApprovalBroker()
    approval = broker.open(Approval(new_id(), use(), tool))
    with pytest.raises(ToolInputInvalid):
        broker.answer(approval.approval_id, AllowOnce(edited_input={"path": 3}))
    assert broker.open_approvals == (approval,)
    broker.answer(approval.approval_id, AllowForConversation(edited_input={"path": "b"}))
    resolution = await approval.resolution()
    assert (resolution.edited, resolution.input) == (True, {"path": "b"})
    assert resolution.verdict is not None
    assert resolution.verdict.digest == tool.digest({"path": "b"}) != tool.digest({"path": "a"})


async def test_approvals_stand_in_call_order_and_are_answered_in_any(tool: AnyTool) -> None:
    broker = ApprovalBroker()
    first, second, third = (broker.open(Approval(new_id(), use(f"c{n}", f"f{n}"), tool)) for n in range(3))
    broker.answer(second.approval_id, AllowOnce())
    assert broker.open_approvals == (first, third)
    assert (await second.resolution()).input == {"path": "f1"}


async def test_stop_takes_back_all_that_wait(tool: AnyTool) -> None:
    broker = ApprovalBroker()
    decided, first, second = (broker.open(Approval(new_id(), use(f"c{n}"), tool)) for n in range(3))
    broker.answer(decided.approval_id, AllowOnce())
    assert [broker.withdraw(approval.approval_id) for approval in (decided, first, second)] == [None, first, second]
    assert broker.open_approvals == ()
    resolution = await first.resolution()
    assert (resolution.by, resolution.decision, resolution.verdict) == ("stop", None, None)
    assert (await decided.resolution()).allows
    assert broker.answer(first.approval_id, AllowOnce()).status is AnswerStatus.WITHDRAWN


async def test_cancelling_the_wait_leaves_the_question_open(tool: AnyTool) -> None:
    broker = ApprovalBroker()
    approval = broker.open(Approval(new_id(), use(), tool))
    waiting = asyncio.ensure_future(approval.resolution())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert broker.answer(approval.approval_id, AllowOnce()).accepted
    assert (await approval.resolution()).allows


async def test_an_unknown_id_is_reported(tool: AnyTool) -> None:
    report = ApprovalBroker().answer("nothing", AllowOnce())
    assert (report.status, report.resolution) == (AnswerStatus.UNKNOWN, None)


async def test_an_id_from_before_a_restart_can_be_asked_again_but_not_twice(tool: AnyTool) -> None:
    broker = ApprovalBroker()
    assert broker.open(Approval("kept", use(), tool), is_reopened=True).approval_id == "kept"
    with pytest.raises(WrongUse):
        broker.open(Approval("kept", use(), tool), is_reopened=True)
    broker.withdraw("kept")
    with pytest.raises(WrongUse):
        broker.open(Approval("kept", use(), tool), is_reopened=True)


async def test_what_a_hook_made_of_the_arguments_is_what_is_asked_about(tool: AnyTool) -> None:
    broker = ApprovalBroker()
    verdict = Ask(tool.digest({"path": "b"}), (Sentence("A hook asks."),))
    approval = broker.open(Approval(new_id(), use(), tool, arguments={"path": "b"}, verdict=verdict))
    assert (approval.input, approval.reason) == ({"path": "b"}, "A hook asks.")
    broker.answer(approval.approval_id, AllowOnce())
    resolution = await approval.resolution()
    assert (resolution.input, resolution.edited) == ({"path": "b"}, False)
    assert resolution.verdict is not None
    assert resolution.verdict.digest == tool.digest({"path": "b"}) != tool.digest({"path": "a"})


async def test_always_takes_only_a_rule_that_was_proposed(tool: AnyTool) -> None:
    broker = ApprovalBroker()
    proposed = Rule(effect=RuleEffect.ALLOW, tool=tool.identity, scope=RuleScope.ALWAYS)
    approval = broker.open(Approval(new_id(), use(), tool, proposals=(proposed,)))
    with pytest.raises(WrongUse):
        broker.answer(approval.approval_id, AllowAlways(rule_id="another"))
    assert broker.open_approvals == (approval,)
    broker.answer(approval.approval_id, AllowAlways(rule_id=proposed.id))
    resolution = await approval.resolution()
    assert (resolution.allows, resolution.rule) == (True, proposed)


async def test_allowing_for_the_conversation_makes_a_rule_for_the_whole_tool(tool: AnyTool) -> None:
    broker = ApprovalBroker()
    for decision in (AllowOnce(), Deny()):
        assert broker.open(Approval(new_id(), use(), tool)).resolution_of(decision).rule is None
    rule = broker.open(Approval(new_id(), use(), tool)).resolution_of(AllowForConversation()).rule
    assert rule is not None
    assert (rule.effect, rule.tool, rule.pattern, rule.scope) == (
        RuleEffect.ALLOW,
        tool.identity,
        None,
        RuleScope.CONVERSATION,
    )


@pytest.mark.parametrize("effect", [Effect.EXECUTE, Effect.NETWORK])
async def test_of_a_tool_that_reaches_far_only_what_was_shown_is_allowed(make_tool: MakeTool, effect: Effect) -> None:
    broker, tool = ApprovalBroker(), make_tool(effect)
    narrow = HostPattern(host="example.org")
    proposal = Rule(effect=RuleEffect.ALLOW, tool=tool.identity, pattern=narrow, scope=RuleScope.ALWAYS)
    approval = broker.open(Approval(new_id(), use(), tool, proposals=(proposal,)))
    rule = approval.resolution_of(AllowForConversation()).rule
    assert rule is not None
    assert (rule.pattern, rule.scope, rule.workspace) == (narrow, RuleScope.CONVERSATION, None)
    edited = approval.resolution_of(AllowForConversation(edited_input={"path": "b"})).rule
    unshown = broker.open(Approval(new_id(), use(), tool)).resolution_of(AllowForConversation()).rule
    assert edited is not None
    assert unshown is not None
    assert edited.pattern == ArgumentsPattern(digest=tool.digest({"path": "b"}), words="b")
    assert unshown.pattern == ArgumentsPattern(digest=tool.digest({"path": "a"}), words="a")


async def test_a_rule_decides_once_and_never_over_a_person(tool: AnyTool) -> None:
    broker = ApprovalBroker()
    allowed, denied, answered = (broker.open(Approval(new_id(), use(f"c{n}"), tool)) for n in range(3))
    assert broker.resolve_by_rule(allowed.approval_id, allow=True).accepted
    assert broker.resolve_by_rule(denied.approval_id, allow=False, why="Plan is on.").accepted
    broker.answer(answered.approval_id, AllowOnce())
    assert not broker.resolve_by_rule(answered.approval_id, allow=False).accepted
    assert not broker.answer(allowed.approval_id, Deny()).accepted
    resolution = await allowed.resolution()
    assert (resolution.by, resolution.verdict) == ("rule", Allowed(allowed.digest, "rule"))
    refused = await denied.resolution()
    assert (refused.by, refused.decision, refused.verdict) == ("rule", Deny(message="Plan is on."), None)
    assert (await answered.resolution()).by == "person"


async def test_stop_reaches_one_call_once(tool: AnyTool) -> None:
    broker = ApprovalBroker()
    first, second = (broker.open(Approval(new_id(), use(f"c{n}"), tool)) for n in range(2))
    assert broker.withdraw(first.approval_id) is first
    assert broker.withdraw(first.approval_id) is None
    assert broker.withdraw("nothing") is None
    assert (await first.resolution()).by == "stop"
    assert broker.open_approvals == (second,)


@pytest.mark.parametrize("decision", [True, None, "allow_once"])
async def test_what_is_no_decision_is_refused_and_the_question_stays(tool: AnyTool, decision: Any) -> None:
    broker = ApprovalBroker()
    approval = broker.open(Approval(new_id(), use(), tool))
    with pytest.raises(WrongUse):
        broker.answer(approval.approval_id, decision)
    assert broker.open_approvals == (approval,)
    assert broker.answer(approval.approval_id, AllowOnce()).accepted


async def test_approvals_that_ended_long_ago_are_forgotten(tool: AnyTool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("desktop_agent.permissions.approvals._MAX_REMEMBERED", 2)
    broker = ApprovalBroker()
    ids = [broker.open(Approval(new_id(), use(f"c{n}"), tool)).approval_id for n in range(4)]
    for id_ in ids:
        broker.answer(id_, AllowOnce())
    late = [broker.answer(id_, Deny()).status for id_ in ids]
    assert late == [AnswerStatus.UNKNOWN] * 2 + [AnswerStatus.ALREADY_DECIDED] * 2


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels - 1):
        value = {"a": value}
    return value


async def test_what_is_asked_about_is_a_copy(tool: AnyTool) -> None:
    broker, arguments = ApprovalBroker(), {"path": "b"}
    call = use()
    approval = broker.open(Approval(new_id(), call, tool, arguments=arguments))
    assert (approval.tool_use, approval.input) == (call, arguments)
    assert approval.input is approval.input
    approval.tool_use.input["path"] = "other"
    approval.input["path"] = "other"
    broker.answer(approval.approval_id, AllowOnce())
    resolution = await approval.resolution()
    assert (call.input, arguments, resolution.input) == ({"path": "a"}, {"path": "b"}, {"path": "b"})
    assert resolution.digest == tool.digest({"path": "b"})


async def test_what_is_done_to_edited_arguments_later_changes_nothing(tool: AnyTool) -> None:
    broker = ApprovalBroker()
    approval, edited = broker.open(Approval(new_id(), use(), tool)), {"path": "b"}
    decision = AllowOnce(edited_input=edited)
    broker.answer(approval.approval_id, decision)
    edited["path"] = "other"
    assert decision.edited_input is not None
    decision.edited_input["path"] = "other"
    resolution = await approval.resolution()
    assert (resolution.input, resolution.digest) == ({"path": "b"}, tool.digest({"path": "b"}))


@pytest.mark.parametrize(
    "edited",
    [
        {"path": nested(5_000)},
        {"path": nested(300)},
        {"path": float("nan")},
        {"path": {1, 2}},
        {"path": object()},
    ],
    ids=["5,000 deep", "300 deep", "NaN", "set", "object"],
)
async def test_edited_arguments_that_nothing_can_keep_are_refused_in_a_sentence(
    make_tool: MakeTool, edited: dict[str, Any]
) -> None:
    anything = JsonSchema({"type": "object"})
    tool: AnyTool = Tool("touch", "", anything, make_tool().run)
    broker = ApprovalBroker()
    approval = broker.open(Approval(new_id(), use(), tool))
    with pytest.raises(ToolInputInvalid) as refused:
        broker.answer(approval.approval_id, AllowOnce(edited_input=edited))
    assert str(refused.value).endswith(".")
    assert broker.open_approvals == (approval,)
    assert broker.answer(approval.approval_id, Deny()).accepted


@pytest.mark.parametrize("error", [SystemExit, GeneratorExit, KeyboardInterrupt, LookupError, RecursionError])
async def test_whatever_a_tool_makes_of_edited_arguments_it_is_said_in_a_sentence(
    make_tool: MakeTool, error: type[BaseException]
) -> None:
    class FailingSchema:
        @property
        def json_schema(self) -> dict[str, Any]:
            return {"type": "object"}

        def checked(self, _arguments: dict[str, Any]) -> Any:
            raise error("a secret")

    tool: AnyTool = Tool("touch", "", FailingSchema(), make_tool().run)
    broker = ApprovalBroker()
    approval = broker.open(Approval(new_id(), use(), tool))
    with pytest.raises(ToolInputInvalid) as refused:
        broker.answer(approval.approval_id, AllowOnce(edited_input={"path": "b"}))
    assert "secret" not in str(refused.value)
    assert broker.open_approvals == (approval,)
