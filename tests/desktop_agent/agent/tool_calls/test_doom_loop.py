"""The third identical call in a row asks a person."""

import asyncio

import pytest

from desktop_agent.agent.tool_calls.doom_loop import DoomLoopDetector
from desktop_agent.permissions.policy import PermissionPolicy
from desktop_agent.types.blocks import Outcome, ToolResult, ToolUse
from desktop_agent.types.engine_events import ApprovalRequested, DoomLoopSuspected, ToolStarted
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.permissions import Rule, RuleEffect
from desktop_agent.types.tool_calls import AllowForConversation, AllowOnce, Deny
from tests.fakes.tool_batch import Desk, call, tool


def turn(*uses: ToolUse) -> list[Message]:
    results = [ToolResult(tool_use_id=use.id) for use in uses]
    return [Message(role=Role.ASSISTANT, blocks=uses), Message.tool_results(results)]


async def asked_about(*uses: ToolUse, earlier: list[Message]) -> list[str]:
    desk = Desk(*uses, tools=[tool("look", reads=True)], earlier=earlier)
    running = desk.start()
    while not running.done():
        await asyncio.sleep(0.001)
        while desk.approvals.open_approvals:
            desk.decide(Deny())
    requested = [event.tool_use_id for event in desk.memory.of(ApprovalRequested)]
    assert [event.tool_use_id for event in desk.memory.of(DoomLoopSuspected)] == requested
    return requested


async def test_within_one_answer_and_every_one_that_follows() -> None:
    uses = [call(str(number), "look") for number in range(5)]
    assert await asked_about(*uses, earlier=[]) == ["2", "3", "4"]


async def test_over_turns_also_when_a_server_repeats_its_ids() -> None:
    earlier = [*turn(call("call_0", "look")), *turn(call("call_0", "look"))]
    assert await asked_about(call("call_0", "look"), earlier=earlier) == ["call_0"]


async def test_two_are_none_and_other_arguments_or_another_tool_begin_anew() -> None:
    assert await asked_about(call("2", "look"), earlier=turn(call("1", "look"))) == []
    between = [*turn(call("1", "look"), call("2", "look")), *turn(call("3", "look", "other"))]
    assert await asked_about(call("4", "look"), earlier=between) == []
    assert (
        await asked_about(call("4", "look"), earlier=turn(call("1", "look"), call("2", "look"), call("3", "x"))) == []
    )


async def test_the_order_of_arguments_makes_no_difference() -> None:
    one, other = {"a": 1, "word": "x"}, {"word": "x", "a": 1}
    earlier = turn(ToolUse(id="1", name="look", input=one), ToolUse(id="2", name="look", input=other))
    desk = Desk(ToolUse(id="3", name="look", input=one), tools=[tool("look", reads=True)], earlier=earlier)
    await desk.run()
    # Counted as the third, though its arguments do not fit: what is refused needs no question.
    assert desk.outcomes == [Outcome.FAILED]
    assert not desk.memory.of(ApprovalRequested)


@pytest.mark.parametrize(("injected", "expected"), [(None, []), ("a guard", ["3"])])
async def test_a_prompt_of_the_person_begins_a_new_row_and_one_of_the_runtime_does_not(
    injected: str | None, expected: list[str]
) -> None:
    prompt = Message.user("again").model_copy(update={"injected_by": injected})
    earlier = [*turn(call("1", "look"), call("2", "look")), prompt]
    assert await asked_about(call("3", "look"), earlier=earlier) == expected


async def test_a_rule_that_allows_does_not_answer_it_and_the_reason_is_said() -> None:
    allow = Rule(effect=RuleEffect.ALLOW, tool="act")
    desk = Desk(
        call("3", "act"),
        tools=[tool("act")],
        permission_policy=PermissionPolicy([allow]),
        earlier=turn(call("1", "act"), call("2", "act")),
    )
    running = desk.start()
    await desk.asked()
    assert "3 times in a row" in desk.memory.of(ApprovalRequested)[0].reason
    desk.permission_policy.add(Rule(effect=RuleEffect.ALLOW, tool="*"))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not desk.memory.of(ToolStarted)
    desk.decide(AllowOnce())
    await running
    assert desk.outcomes == [Outcome.SUCCEEDED]


async def test_it_is_never_weaker_than_the_gate() -> None:
    deny = Rule(effect=RuleEffect.DENY, tool="look")
    uses = [call(str(number), "look") for number in range(3)]
    desk = Desk(*uses, tools=[tool("look", reads=True)], permission_policy=PermissionPolicy([deny]))
    await desk.run()
    assert desk.outcomes == [Outcome.DENIED] * 3


async def test_who_allows_it_for_the_conversation_is_not_asked_about_the_same_call_beside_it() -> None:
    uses = [call(str(number), "look") for number in range(5)]
    desk = Desk(*uses, tools=[tool("look", reads=True)])
    running = desk.start()
    await desk.asked(3)
    desk.decide(AllowForConversation())
    await running
    assert desk.outcomes == [Outcome.SUCCEEDED] * 5


def test_one_and_true_are_other_arguments() -> None:
    one, true = (ToolUse(id="call", name="look", input={"a": value}) for value in (1, True))
    row = DoomLoopDetector([], ())
    assert [row.count(use) for use in (one, one, true, true)] == [1, 2, 1, 2]
