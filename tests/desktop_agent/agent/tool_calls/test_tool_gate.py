"""The gates, in their order: names, registry, hooks, rules, mode, the person, and once more before the start."""

import asyncio
import threading
from copy import deepcopy
from typing import Any

import pytest
from pydantic import BaseModel, model_validator

from desktop_agent.permissions.policy import PermissionPolicy
from desktop_agent.tools.json_schema import JsonSchema
from desktop_agent.tools.tool import AnyTool, ModelSchema, RunningCall, Tool
from desktop_agent.types.blocks import Json, Outcome, Text, ToolUse
from desktop_agent.types.engine_events import ApprovalRequested, ApprovalResolved, ToolStarted
from desktop_agent.types.messages import Message
from desktop_agent.types.permissions import (
    ACCEPT_EDITS_MODE,
    DEFAULT_MODE,
    PLAN_MODE,
    PathPattern,
    PathSubject,
    Rule,
    RuleEffect,
)
from desktop_agent.types.policies import HookAsk, HookDeny, HookEdit, Hooks, PostToolUse, PreToolUse
from desktop_agent.types.tool_calls import AllowOnce, Effect, ToolClass
from tests.fakes.tool_batch import Desk, Words, call, tool, until


class RecordingHook:
    """A hook that records the calls it is asked about, and answers with the next verdict."""

    def __init__(self, *verdicts: Any) -> None:
        self.heard: list[PreToolUse] = []
        self.verdicts = list(verdicts)

    async def __call__(self, moment: PreToolUse) -> Any:
        self.heard.append(moment)
        return self.verdicts.pop(0) if self.verdicts else None


def rule(effect: RuleEffect, name: str = "act", **more: Any) -> Rule:
    return Rule(effect=effect, tool=name, **more)


async def test_no_hook_hears_of_a_name_that_may_not_be_used_or_of_what_the_registry_refuses() -> None:
    hook = RecordingHook()
    permission_policy = PermissionPolicy(names=frozenset({"look", "none"}))
    uses = [
        call("1", "secret"),
        call("2", "none"),
        ToolUse(id="3", name="look", input={"word": []}),
        ToolUse(id="4", name="look", malformed="{"),
        call("5", "look"),
    ]
    desk = Desk(
        *uses,
        tools=[tool("look", reads=True), tool("secret", reads=True)],
        hooks=Hooks(pre_tool_use=(hook,)),
        permission_policy=permission_policy,
    )
    await desk.run()
    assert [moment.tool_use_id for moment in hook.heard] == ["5"]
    expected = [Outcome.DENIED, Outcome.FAILED, Outcome.FAILED, Outcome.FAILED, Outcome.SUCCEEDED]
    assert desk.outcomes == expected


async def test_hooks_come_before_rules_and_mode_and_never_overrule_them() -> None:
    hook = RecordingHook()
    permission_policy = PermissionPolicy([rule(RuleEffect.DENY)])
    desk = Desk(
        call("1", "act"), tools=[tool("act")], hooks=Hooks(pre_tool_use=(hook,)), permission_policy=permission_policy
    )
    await desk.run()
    assert len(hook.heard) == 1
    assert desk.outcomes == [Outcome.DENIED]


async def test_what_a_hook_makes_of_the_arguments_is_gated_shown_and_run_and_both_are_kept() -> None:
    hook = RecordingHook(HookEdit(input={"word": "edited"}))
    desk = Desk(call("1", "act", "asked"), tools=[tool("act")], hooks=Hooks(pre_tool_use=(hook,)))
    running = desk.start()
    await desk.asked()
    (approval,) = desk.approvals.open_approvals
    assert approval.input == {"word": "edited"}
    desk.decide(AllowOnce())
    await running
    (requested,) = desk.memory.of(ApprovalRequested)
    assert requested.effective_input == {"word": "edited"}
    assert requested.digest == desk.context.tools.get("act").digest({"word": "edited"})
    assert desk.memory.of(ToolStarted)[0].input == {"word": "edited"}
    assert desk.memory.of(ApprovalResolved)[0].effective_input == {"word": "edited"}
    assert desk.words == ["edited"]
    assert desk.uses[0].input == {"word": "asked"}


async def test_a_hook_that_denies_is_heard_by_the_model_and_the_rest_goes_on() -> None:
    hook = RecordingHook(HookDeny("not today"))
    desk = Desk(
        *(call("1", "look"), call("2", "look", "y")),
        tools=[tool("look", reads=True)],
        hooks=Hooks(pre_tool_use=(hook,)),
    )
    await desk.run()
    assert desk.outcomes == [Outcome.DENIED, Outcome.SUCCEEDED]
    assert "not today" in desk.words[0]


async def test_a_hook_that_asks_is_not_overruled_by_what_a_rule_allows_now_or_later() -> None:
    hook = RecordingHook(HookAsk("look at this"))
    permission_policy = PermissionPolicy([rule(RuleEffect.ALLOW)])
    desk = Desk(
        call("1", "act"), tools=[tool("act")], hooks=Hooks(pre_tool_use=(hook,)), permission_policy=permission_policy
    )
    running = desk.start()
    await desk.asked()
    assert desk.memory.of(ApprovalRequested)[0].reason == "look at this"
    permission_policy.add(rule(RuleEffect.ALLOW, "*"))
    for _ in range(20):
        await asyncio.sleep(0)
    assert desk.approvals.open_approvals
    desk.decide(AllowOnce())
    await running
    assert desk.outcomes == [Outcome.SUCCEEDED]


async def test_a_hook_that_raises_denies_its_call() -> None:
    async def burst(_moment: PreToolUse) -> None:
        raise ZeroDivisionError

    desk = Desk(call("1", "look"), tools=[tool("look", reads=True)], hooks=Hooks(pre_tool_use=(burst,)))
    await desk.run()
    assert desk.outcomes == [Outcome.DENIED]
    assert not desk.memory.of(ToolStarted)


async def test_hooks_run_once_for_a_call_however_often_it_is_judged() -> None:
    hook = RecordingHook()
    desk = Desk(call("1", "act"), tools=[tool("act")], hooks=Hooks(pre_tool_use=(hook,)))
    running = desk.start()
    await desk.asked()
    desk.permission_policy.set_mode(PLAN_MODE.model_copy(update={"mutating": "ask"}))
    desk.decide(AllowOnce())
    await running
    assert len(hook.heard) == 1


class TestAsThingsAreNow:
    """A change of rules or mode holds for every call that has not started."""

    async def test_what_waits_is_allowed_by_a_new_rule(self) -> None:
        desk = Desk(call("1", "act"), tools=[tool("act")])
        running = desk.start()
        await desk.asked()
        desk.permission_policy.add(rule(RuleEffect.ALLOW))
        await running
        assert desk.outcomes == [Outcome.SUCCEEDED]
        (resolved,) = desk.memory.of(ApprovalResolved)
        assert (resolved.decision, resolved.by) == ("allow_once", "rule")

    @pytest.mark.parametrize("by", ["rule", "mode"])
    async def test_what_waits_is_refused_by_a_new_rule_or_mode(self, by: str) -> None:
        desk = Desk(call("1", "act"), tools=[tool("act")])
        running = desk.start()
        await desk.asked()
        desk.permission_policy.add(rule(RuleEffect.DENY)) if by == "rule" else desk.permission_policy.set_mode(
            PLAN_MODE
        )
        await running
        assert desk.outcomes == [Outcome.DENIED]
        (resolved,) = desk.memory.of(ApprovalResolved)
        assert (resolved.decision, resolved.by) == ("deny", "rule")
        assert not desk.memory.of(ToolStarted)

    async def test_a_mode_that_accepts_edits_lets_what_waits_run(self) -> None:
        desk = Desk(call("1", "act"), tools=[tool("act")])
        running = desk.start()
        await desk.asked()
        desk.permission_policy.set_mode(ACCEPT_EDITS_MODE)
        await running
        assert desk.outcomes == [Outcome.SUCCEEDED]

    async def test_what_a_mode_allowed_is_asked_about_at_once_when_the_mode_ends_before_its_turn(self) -> None:
        inside, gate = asyncio.Event(), asyncio.Event()

        async def work(word: str, _call: RunningCall) -> str:
            inside.set()
            await gate.wait()
            return word

        desk = Desk(*(call(str(n), "act", str(n)) for n in range(3)), tools=[tool("act", work)], mode=ACCEPT_EDITS_MODE)
        running = desk.start()
        await inside.wait()
        assert not desk.approvals.open_approvals
        desk.permission_policy.set_mode(DEFAULT_MODE)
        await desk.asked(2)
        assert [approval.tool_use.id for approval in desk.approvals.open_approvals] == ["1", "2"]
        gate.set()
        desk.decide(AllowOnce())
        desk.decide(AllowOnce())
        await running
        assert desk.outcomes == [Outcome.SUCCEEDED] * 3

    async def test_a_rule_that_denies_goes_over_what_the_person_allowed_and_has_not_started(self) -> None:
        inside, gate = asyncio.Event(), asyncio.Event()

        async def work(word: str, _call: RunningCall) -> str:
            inside.set()
            await gate.wait()
            return word

        desk = Desk(call("1", "act"), call("2", "act", "y"), tools=[tool("act", work)])
        running = desk.start()
        await desk.asked(2)
        desk.decide(AllowOnce())
        desk.decide(AllowOnce())
        await inside.wait()
        desk.permission_policy.add(rule(RuleEffect.DENY))
        gate.set()
        await running
        assert desk.outcomes == [Outcome.SUCCEEDED, Outcome.DENIED]

    @pytest.mark.parametrize("mode", [PLAN_MODE, DEFAULT_MODE])
    async def test_a_mode_that_ends_while_the_start_is_journalled_keeps_the_call_from_running(self, mode: Any) -> None:
        ran: list[str] = []

        async def work(word: str, _call: RunningCall) -> str:
            ran.append(word)
            return word

        desk = Desk(call("1", "act"), tools=[tool("act", work)], mode=ACCEPT_EDITS_MODE)
        desk.memory.slow.clear()
        running = desk.start()
        await until(lambda: desk.memory.of(ToolStarted))
        desk.permission_policy.set_mode(mode)
        desk.memory.slow.set()
        await running
        assert ran == []
        assert desk.outcomes == [Outcome.DENIED]
        assert not desk.memory.of(ApprovalRequested)

    async def test_at_whatever_step_the_mode_changes_nothing_begins_that_it_denies(self) -> None:
        modes: list[str] = []

        async def work(word: str, _call: RunningCall) -> str:
            modes.append(desk.permission_policy.mode.name)
            return word

        for steps in range(40):
            desk = Desk(call("1", "act"), tools=[tool("act", work)], mode=ACCEPT_EDITS_MODE)
            running = desk.start()
            for _ in range(steps):
                await asyncio.sleep(0)
            desk.permission_policy.set_mode(PLAN_MODE)
            await running
            assert desk.outcomes[0] in {Outcome.DENIED, Outcome.SUCCEEDED}
        assert set(modes) == {ACCEPT_EDITS_MODE.name}

    async def test_a_rule_that_changed_while_the_gates_looked_counts(self) -> None:
        looking, gate = asyncio.Event(), asyncio.Event()

        async def subjects(_arguments: Words) -> tuple[PathSubject, ...]:
            looking.set()
            await gate.wait()
            return (PathSubject("/project/a"),)

        desk = Desk(
            call("1", "act"), call("2", "look"), tools=[tool("act"), tool("look", reads=True, subjects=subjects)]
        )
        running = desk.start()
        await looking.wait()
        desk.permission_policy.add(rule(RuleEffect.DENY, "look", pattern=PathPattern(prefix="/project")))
        desk.permission_policy.add(rule(RuleEffect.DENY))
        gate.set()
        await running
        assert desk.outcomes == [Outcome.DENIED, Outcome.DENIED]
        assert not desk.memory.of(ToolStarted)

    async def test_the_rule_that_let_a_call_run_is_noted_as_used(self) -> None:
        allow = rule(RuleEffect.ALLOW)
        desk = Desk(call("1", "act"), tools=[tool("act")], permission_policy=PermissionPolicy([allow]))
        assert [rule.last_used_at for rule in desk.permission_policy.rules] == [None]
        await desk.run()
        assert [rule.last_used_at is not None for rule in desk.permission_policy.rules] == [True]


class TestArguments:
    """What runs is what was allowed, letter by letter."""

    async def test_arguments_that_change_after_they_were_allowed_do_not_run(self) -> None:
        desk = Desk(call("1", "act", "allowed"), tools=[tool("act")])
        desk.memory.slow.clear()
        running = desk.start()
        await desk.asked()
        desk.decide(AllowOnce())
        await until(lambda: desk.memory.of(ToolStarted))
        desk.uses[0].input["word"] = "another"
        desk.memory.slow.set()
        await running
        assert desk.outcomes == [Outcome.DENIED]

    async def test_what_a_tool_does_to_its_arguments_stays_with_the_tool(self) -> None:
        class Loose(BaseModel):
            word: str = ""
            more: dict[str, Any] = {}

            @model_validator(mode="before")
            @classmethod
            def eat(cls, data: dict[str, Any]) -> dict[str, Any]:
                data["more"] = {"word": data.pop("word", "")}
                return data

        async def run(arguments: Loose, _call: RunningCall) -> tuple[Text, ...]:
            arguments.more["word"] += "!"
            return (Text(text=arguments.more["word"]),)

        async def preview(arguments: Loose) -> None:
            arguments.more.clear()

        act = Tool("act", "", ModelSchema(Loose), run, ToolClass.MUTATING, frozenset({Effect.WRITE}), preview)
        desk = Desk(call("1", "act", "word"), tools=[act])
        before = deepcopy(desk.uses[0].input)
        running = desk.start()
        await desk.asked()
        desk.decide(AllowOnce())
        await running
        assert desk.words == ["word!"]
        assert desk.uses[0].input == before

    @pytest.mark.parametrize("error", [KeyboardInterrupt, asyncio.CancelledError, RecursionError])
    async def test_a_tool_that_cannot_even_be_judged_is_a_failed_call(self, error: type[BaseException]) -> None:
        class Burst(Words):
            @model_validator(mode="before")
            @classmethod
            def burst(cls, _data: Any) -> Any:
                raise error

        bad = Tool("bad", "", ModelSchema(Burst), tool("x").run)
        desk = Desk(call("1", "bad"), call("2", "look"), tools=[bad, tool("look", reads=True)])
        await desk.run()
        assert desk.outcomes == [Outcome.FAILED, Outcome.SUCCEEDED]
        assert error.__name__ in desk.words[0]


async def test_all_hooks_of_a_round_share_one_copy_of_the_history() -> None:
    histories: list[tuple[Message, ...]] = []

    async def before(moment: PreToolUse) -> None:
        histories.append(moment.history)

    async def after(moment: PostToolUse) -> None:
        histories.append(moment.history)

    hooks = Hooks(pre_tool_use=(before, before), post_tool_use=(after,))
    uses = [call(str(number), "look", f"w{number}") for number in range(3)]
    desk = Desk(*uses, tools=[tool("look", reads=True)], hooks=hooks)
    history = desk.memory.history()
    await desk.run()
    assert len(histories) == 9
    assert all(history is histories[0] for history in histories)
    assert histories[0] == history
    assert histories[0][-1] is not history[-1]


class TestLarge:
    """Large arguments and results are processed in threads."""

    USE = ToolUse(id="1", name="look", input={"words": [{"a": number} for number in range(5_000)]})

    @staticmethod
    def counting(monkeypatch: pytest.MonkeyPatch) -> list[int]:
        digests: list[int] = []
        real_digest = Tool.digest

        def digest(self: AnyTool, arguments: Any) -> str:
            digests.append(threading.get_ident())
            return real_digest(self, arguments)

        monkeypatch.setattr(Tool, "digest", digest)
        return digests

    async def test_the_digest_is_made_once_and_of_what_runs_once_more(self, monkeypatch: pytest.MonkeyPatch) -> None:
        digests = self.counting(monkeypatch)
        received: list[Any] = []

        async def run(arguments: Any, _running: RunningCall) -> Any:
            received.append(arguments)
            return (Json(value=list(range(200_000))),)

        schema = JsonSchema({"type": "object"})
        look = Tool("look", "", schema, run, tool_class=ToolClass.READ_ONLY, timeout=30.0)
        desk = Desk(self.USE, tools=[look], permission_policy=PermissionPolicy([rule(RuleEffect.ASK, "look")]))
        running = desk.start()
        await desk.asked()
        assert len(digests) == 1
        desk.permission_policy.set_mode(ACCEPT_EDITS_MODE)
        for _ in range(10):
            await asyncio.sleep(0)
        desk.decide(AllowOnce())
        await running
        assert desk.outcomes == [Outcome.SUCCEEDED]
        assert received == [self.USE.input]
        assert len(digests) == 2
        assert threading.get_ident() not in digests
        assert desk.words[0].endswith("[cut: more than 400,000 characters in all]")

    async def test_what_is_changed_after_it_was_allowed_does_not_run(self) -> None:
        desk = Desk(call("1", "act"), tools=[tool("act")])
        running = desk.start()
        await desk.asked()
        desk.decide(AllowOnce())
        desk.uses[0].input["word"] = "another"
        await running
        assert desk.outcomes == [Outcome.DENIED]


async def never(_arguments: Words) -> tuple[PathSubject, ...]:
    await asyncio.Event().wait()
    raise AssertionError


@pytest.mark.parametrize("rules", [(), (rule(RuleEffect.ALLOW),)])
@pytest.mark.parametrize("reads", [True, False])
async def test_a_call_that_cannot_be_judged_in_time_is_asked_about(
    monkeypatch: pytest.MonkeyPatch, rules: tuple[Rule, ...], reads: bool
) -> None:
    monkeypatch.setattr("desktop_agent.agent.tool_calls.tool_gate.TOOL_QUERY_TIMEOUT", 0.01)
    act = tool("act", reads=reads, subjects=never)
    desk = Desk(call("1", "act"), tools=[act], permission_policy=PermissionPolicy(rules))
    running = desk.start()
    await desk.asked()
    (approval,) = desk.approvals.open_approvals
    assert str(approval.reasons[0]) == "The rules could not be applied to this call in time, so you decide."
    assert not desk.memory.of(ToolStarted)
    desk.decide(AllowOnce())
    await running
    assert desk.outcomes == [Outcome.SUCCEEDED]


async def test_what_cannot_be_judged_in_time_is_still_denied_by_its_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("desktop_agent.agent.tool_calls.tool_gate.TOOL_QUERY_TIMEOUT", 0.01)
    policies = [PermissionPolicy((rule(RuleEffect.DENY),)), PermissionPolicy(mode=PLAN_MODE)]
    for policy in policies:
        desk = Desk(call("1", "act"), tools=[tool("act", subjects=never)], permission_policy=policy)
        await desk.start()
        assert desk.outcomes == [Outcome.DENIED]
