"""Calls that a dead process left open."""

import asyncio
from typing import Any

import pytest

from desktop_agent.agent.tool_calls.tool_execution import RecoveredCalls
from desktop_agent.permissions.policy import PermissionPolicy
from desktop_agent.tools.tool import RunningCall
from desktop_agent.types.blocks import Outcome, Text, ToolResult
from desktop_agent.types.engine_events import ApprovalRequested, ApprovalResolved, ToolCallPending, ToolStarted
from desktop_agent.types.permissions import Rule, RuleEffect
from desktop_agent.types.policies import Hooks, PreToolUse
from desktop_agent.types.tool_calls import AllowOnce, call_digest
from tests.fakes.tool_batch import Desk, call, tool

DIGEST = call_digest("act", {"word": "x"})


def decided_calls(word: str, **more: Any) -> RecoveredCalls:
    fields: dict[str, Any] = {"by": "person", "digest": DIGEST, **more}
    return RecoveredCalls(decided={"1": ApprovalResolved("a", "1", word, **fields)})


def waiting_calls(**more: Any) -> RecoveredCalls:
    fields: dict[str, Any] = {"digest": DIGEST, **more}
    return RecoveredCalls(waiting={"1": ApprovalRequested("a", "1", **fields)})


class Counted:
    def __init__(self) -> None:
        self.ran: list[str] = []
        self.heard: list[str] = []

    async def work(self, word: str, running: RunningCall) -> str:
        self.ran.append(running.tool_use_id)
        return word

    async def hook(self, moment: PreToolUse) -> None:
        self.heard.append(moment.tool_use_id)

    def desk(self, left: RecoveredCalls, **more: Any) -> Desk:
        hooks = Hooks(pre_tool_use=(self.hook,))
        return Desk(call("1", "act"), tools=[tool("act", self.work)], left=left, hooks=hooks, **more)


async def test_what_was_finished_keeps_its_result_and_is_not_told_again() -> None:
    counted = Counted()
    result = ToolResult(tool_use_id="1", content=(Text(text="done before"),))
    desk = counted.desk(RecoveredCalls(finished={"1": result}, started=frozenset({"1"})))
    assert await desk.run()
    assert desk.results == [result]
    assert desk.memory.events == []
    assert counted.ran == []


@pytest.mark.parametrize("runs", [True, False])
async def test_what_was_started_is_unknown_and_never_run_again(runs: bool) -> None:
    counted = Counted()
    desk = counted.desk(RecoveredCalls(started=frozenset({"1"}), decided=decided_calls("allow_once").decided))
    if runs:
        await desk.run()
    assert desk.outcomes == [Outcome.UNKNOWN]
    assert desk.memory.about("1") == ["tool_finished"]
    assert counted.ran == []


async def test_what_was_allowed_and_not_started_runs_without_another_question() -> None:
    counted = Counted()
    desk = counted.desk(decided_calls("allow_once"))
    await desk.run()
    assert counted.ran == ["1"]
    assert counted.heard == []
    assert desk.memory.about("1") == ["tool_started", "tool_finished"]


async def test_an_edited_call_runs_with_its_edited_arguments() -> None:
    edited = {"word": "edited"}
    desk = Counted().desk(decided_calls("allow_once", effective_input=edited, digest=call_digest("act", edited)))
    await desk.run()
    (words,) = desk.words
    assert words.startswith("The person changed the arguments of this call")
    assert words.endswith("edited")


async def test_an_allowance_for_another_digest_is_asked_again() -> None:
    counted = Counted()
    desk = counted.desk(decided_calls("allow_once", digest="of something else"))
    running = desk.start()
    await desk.asked()
    assert counted.ran == []
    desk.decide(AllowOnce())
    await running
    assert counted.ran == counted.heard == ["1"]


async def test_a_rule_that_denies_by_now_goes_over_it() -> None:
    counted = Counted()
    permission_policy = PermissionPolicy([Rule(effect=RuleEffect.DENY, tool="act")])
    desk = counted.desk(decided_calls("allow_once"), permission_policy=permission_policy)
    await desk.run()
    assert desk.outcomes == [Outcome.DENIED]
    assert counted.ran == []


async def test_what_a_rule_had_allowed_is_judged_as_things_are_now() -> None:
    counted = Counted()
    desk = counted.desk(decided_calls("allow_once", by="rule"))
    running = desk.start()
    await desk.asked()
    desk.round.stop()
    await running
    assert counted.ran == []


@pytest.mark.parametrize(
    ("word", "outcome", "is_answered"),
    [
        ("deny", Outcome.DENIED, True),
        ("deny_and_stop", Outcome.DENIED, False),
        ("withdrawn", Outcome.CANCELLED, True),
    ],
)
async def test_a_call_that_was_not_allowed_does_not_run(word: str, outcome: Outcome, is_answered: bool) -> None:
    counted = Counted()
    desk = counted.desk(decided_calls(word, message="no thanks"))
    assert await desk.run() is is_answered
    assert desk.outcomes == [outcome]
    assert counted.ran == []
    if outcome is Outcome.DENIED:
        assert "no thanks" in desk.words[0]


async def test_what_waited_waits_again_under_its_number_and_is_not_requested_twice() -> None:
    counted = Counted()
    desk = counted.desk(waiting_calls())
    running = desk.start()
    await desk.asked()
    assert [approval.approval_id for approval in desk.approvals.open_approvals] == ["a"]
    assert desk.memory.events == []
    desk.decide(AllowOnce())
    await running
    assert desk.memory.about("1") == ["approval_resolved", "tool_started", "tool_finished"]
    assert counted.heard == []


async def test_what_waited_and_would_be_another_call_now_is_asked_anew() -> None:
    desk = Counted().desk(waiting_calls(digest="of something else"))
    running = desk.start()
    await desk.asked()
    assert [approval.approval_id for approval in desk.approvals.open_approvals] != ["a"]
    assert len(desk.memory.of(ApprovalRequested)) == 1
    desk.round.stop()
    await running


@pytest.mark.parametrize(("effect", "word"), [(RuleEffect.ALLOW, "allow_once"), (RuleEffect.DENY, "deny")])
async def test_a_card_that_a_rule_answers_by_now_is_closed(effect: RuleEffect, word: str) -> None:
    counted = Counted()
    desk = counted.desk(waiting_calls(), permission_policy=PermissionPolicy([Rule(effect=effect, tool="act")]))
    await desk.run()
    (resolved,) = desk.memory.of(ApprovalResolved)
    assert (resolved.approval_id, resolved.decision, resolved.by) == ("a", word, "rule")
    assert counted.ran == (["1"] if effect is RuleEffect.ALLOW else [])


async def test_a_reason_to_ask_holds_over_the_restart() -> None:
    permission_policy = PermissionPolicy([Rule(effect=RuleEffect.ALLOW, tool="act")])
    desk = Counted().desk(waiting_calls(reason="a hook wanted it"), permission_policy=permission_policy)
    running = desk.start()
    await desk.asked()
    assert desk.approvals.open_approvals[0].reason == "a hook wanted it"
    desk.round.stop()
    await running


async def test_of_what_nothing_is_known_all_gates_are_passed() -> None:
    counted = Counted()
    desk = Desk(
        *(call("1", "act"), call("2", "act", "y")),
        tools=[tool("act", counted.work)],
        left=decided_calls("allow_once"),
        hooks=Hooks(pre_tool_use=(counted.hook,)),
    )
    running = desk.start()
    await desk.asked()
    desk.decide(AllowOnce())
    await running
    assert counted.ran == ["1", "2"]
    assert counted.heard == ["2"]
    assert [event.id for event in desk.memory.of(ToolCallPending)] == ["2"]
    assert len(desk.memory.of(ToolStarted)) == 2


async def test_each_call_runs_once_however_often_the_process_dies() -> None:
    """Every prefix of the journal is what a crash may leave; going on from it runs what has not started."""
    ran: list[str] = []

    async def work(word: str, running: RunningCall) -> str:
        ran.append(running.tool_use_id)
        return word

    uses = [call("1", "look"), call("2", "act"), call("3", "act", "y")]
    tools = [tool("look", work, reads=True), tool("act", work)]

    async def decide_all(desk: Desk) -> None:
        running = desk.start()
        while not running.done():
            while desk.approvals.open_approvals:
                desk.decide(AllowOnce())
            await asyncio.sleep(0)

    first = Desk(*uses, tools=tools)
    await decide_all(first)
    journal = list(first.memory.events)
    for length in range(len(journal) + 1):
        before = journal[:length]
        of: dict[str, dict[str, Any]] = {"tool_finished": {}, "approval_resolved": {}, "approval_requested": {}}
        for event in before:
            if event.type in of:
                of[event.type][getattr(event, "tool_use_id", None) or event.id] = event
        started = frozenset(event.id for event in before if isinstance(event, ToolStarted))
        recovered = RecoveredCalls(
            finished={id_: event.result for id_, event in of["tool_finished"].items()},
            started=started,
            decided=of["approval_resolved"],
            waiting=of["approval_requested"],
        )
        ran.clear()
        desk = Desk(*uses, tools=tools, left=recovered)
        await decide_all(desk)
        assert sorted(ran) == sorted({"1", "2", "3"} - started)
        lost = started - set(recovered.finished)
        for use, outcome in zip(uses, desk.outcomes, strict=True):
            assert outcome is (Outcome.UNKNOWN if use.id in lost else Outcome.SUCCEEDED)


async def test_what_was_announced_is_not_announced_again_and_passes_all_gates() -> None:
    counted = Counted()
    desk = counted.desk(RecoveredCalls(announced=frozenset({"1"})))
    running = desk.start()
    await desk.asked()
    assert not desk.memory.of(ToolCallPending)
    assert counted.heard == ["1"]
    desk.decide(AllowOnce())
    await running
    assert desk.outcomes == [Outcome.SUCCEEDED]
