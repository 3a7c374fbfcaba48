"""Section Semantics: what a dead process left, and agents that call agents."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from desktop_agent.permissions.gate import Denied
from desktop_agent.permissions.policy import PermissionPolicy
from desktop_agent.types.blocks import Outcome, ToolUse
from desktop_agent.types.engine_events import (
    ApprovalRequested,
    LimitReached,
    RunEnd,
    RunFinished,
    RunStarted,
    ToolFinished,
    ToolStarted,
)
from desktop_agent.types.errors import SpecialistHasNoTools
from desktop_agent.types.messages import Message
from desktop_agent.types.permissions import Rule, RuleEffect, RuleScope
from desktop_agent.types.policies import Limits, Specialist, StopTurn
from desktop_agent.types.provider_events import ContentDelta, Usage, UsageUpdate
from desktop_agent.types.providers import ProviderConfig
from desktop_agent.types.tool_calls import AllowOnce, Deny
from tests.contract.dying import Machine
from tests.contract.scenes import ACT, DONE, LOOK, on_disk, one, until
from tests.fakes.agent_run import call, tool
from tests.fakes.scripted_provider import Turn
from tests.fakes.session import Stage, check_invariants, results_of
from tests.fakes.specialist_run import Team, ask, specialist


async def waiting(stage: Stage, count: int = 1) -> None:
    await stage.until(lambda: len(stage.session.approvals.open_approvals) == count)


def decide(stage: Stage, decision: Any, position: int = 0) -> None:
    card = stage.session.approvals.open_approvals[position]
    stage.session.approvals.answer(card.approval_id, decision)


async def test_crash__what_was_awaiting_is_shown_again(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    async with machine.dying(call("1", "act", "a")) as dead:
        await waiting(dead)
        card = one(dead.session.approvals.open_approvals).approval_id
        async with machine.after(dead, DONE) as (stage, session):
            assert session.can_resume
            session.resume()
            await waiting(stage)
            assert one(session.approvals.open_approvals).approval_id == card
            assert machine.ran_again == []
            decide(stage, AllowOnce())
            await stage.idle()
            assert machine.ran_again == ["a"]
            assert session.history[-1].text == "Done."
            assert {envelope.run_id for envelope in stage.events if envelope.run_id} == {dead.events[0].run_id}


@pytest.mark.parametrize("is_the_same", [True, False])
async def test_crash__what_was_approved_and_not_started_runs_after_a_look_at_its_digest(
    tmp_path: Path, is_the_same: bool
) -> None:
    machine = Machine(tmp_path)
    async with machine.dying(call("1", "act", "a"), call("2", "act", "b")) as dead:
        await waiting(dead, 2)
        decide(dead, AllowOnce())
        decide(dead, AllowOnce())
        await until(lambda: machine.ran == ["a"])
        async with machine.after(dead, DONE, scope="" if is_the_same else "/another/folder") as (stage, session):
            session.resume()
            if not is_the_same:
                await waiting(stage)
                assert machine.ran_again == []
                decide(stage, Deny())
            await stage.idle()
            assert machine.ran_again == (["b"] if is_the_same else [])
            outcomes = [result.outcome for result in results_of(session.history).values()]
            assert outcomes == [Outcome.UNKNOWN, Outcome.SUCCEEDED if is_the_same else Outcome.DENIED]


async def test_crash__what_had_started_is_unknown_and_never_run_again_by_itself(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    async with machine.dying(call("1", "look", "a")) as dead:
        await until(lambda: machine.ran == ["a"])
        async with machine.after(dead, DONE) as (stage, session):
            session.resume()
            await stage.idle()
            assert machine.ran_again == []
            assert results_of(session.history)["1"].outcome is Outcome.UNKNOWN
            assert session.history[-1].text == "Done."
            assert stage.of(RunFinished) == [RunFinished(RunEnd.COMPLETED)]


async def test_crash__who_does_not_go_on_may_send_something_else(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    async with machine.dying(call("1", "act", "a")) as dead:
        await waiting(dead)
        async with machine.after(dead, DONE) as (stage, session):
            await stage.say("something else")
            assert machine.ran_again == []
            assert results_of(session.history)["1"].outcome is Outcome.CANCELLED
            assert session.history[-1].text == "Done."


async def test_delegation__a_specialist_is_a_tool_with_its_own_prompt_model_and_tools() -> None:
    helper = specialist(tools=("look",), config=ProviderConfig(temperature=0.25))
    team = Team(
        Turn(ask("1", task="Find the sea.", context="It is blue.")), DONE, specialists=(helper,),
        plays={"researcher": (Turn(call("9", "look")), Turn(ContentDelta("There.")))}, tools=(LOOK, ACT),
    )  # fmt: skip
    assert await team.execute() is RunEnd.COMPLETED
    assert team.answered == (Outcome.SUCCEEDED, "There.")
    offered = [tool.name for tool in team.provider.requests[0].tools]
    assert offered == ["look", "act", "researcher"]
    below = team.models["researcher"].requests[0]
    assert (below.model, below.config.system_prompt, below.config.temperature) == (
        "researcher", "You are researcher.", 0.25,
    )  # fmt: skip
    assert [tool.name for tool in below.tools] == ["look"]
    assert team.sub.of(RunStarted)[0].agent == "researcher"
    team.finish()


HELPER = Specialist(name="helper", description="Helps.", system_prompt="You help.", tools=("act",))


async def test_delegation__its_events_carry_the_runs_above_and_its_cards_surface_with_its_path(tmp_path: Path) -> None:
    turns = Turn(ToolUse(id="1", name="helper", input={"task": "Act."})), Turn(call("9", "act")), DONE, DONE
    async with on_disk(tmp_path, *turns, tools=(ACT,), specialists=lambda: (HELPER,)) as stage:
        stage.session.send(Message.user("go"))
        await waiting(stage)
        card = one(stage.session.approvals.open_approvals)
        assert (card.agent_path, card.tool_use.id) == (("helper",), "9")
        request = one(envelope for envelope in stage.events if isinstance(envelope.event, ApprovalRequested))
        assert request.parent_run_id == stage.events[0].run_id != request.run_id
        decide(stage, AllowOnce())
        await stage.idle()
        assert results_of(stage.session.history)["1"].outcome is Outcome.SUCCEEDED
        assert len(stage.session.history) == 4  # what it said is its own
        check_invariants(stage.session.history, stage.events)
        await stage.session.close()


async def test_delegation__has_a_share_of_the_budget_and_what_it_uses_counts_above() -> None:
    used = UsageUpdate(Usage(total_tokens=50))
    team = Team(
        Turn(ask("1")), DONE, specialists=(specialist(tools=("look",), share=0.4),),
        plays={"researcher": (Turn(used, call("9", "look")),)}, tools=(LOOK,), limits=Limits(tokens=100),
    )  # fmt: skip
    await team.execute()
    assert team.sub.end is RunEnd.LIMIT
    assert [event.which for event in team.sub.of(LimitReached)] == ["tokens"]
    above = Team(Turn(ask("1")), plays={"researcher": (Turn(used, ContentDelta("Found.")),)}, limits=Limits(tokens=50))
    assert await above.execute() is RunEnd.LIMIT


@pytest.mark.parametrize(("depth", "runs"), [(3, 3), (2, 2), (1, 1)])
async def test_delegation__is_three_deep_at_most(depth: int, runs: int) -> None:
    names = ["one", "two", "three", "four"]
    chain = [specialist(name, specialists=tuple(names)) for name in names]
    plays = {name: (Turn(ask(name, below)), DONE) for name, below in zip(names, [*names[1:], "none"], strict=True)}
    team = Team(Turn(ask("0", "one")), DONE, specialists=tuple(chain), plays=plays, limits=Limits(depth=depth))
    assert await team.execute() is RunEnd.COMPLETED
    used = [name for name in names if team.models[name].requests]
    assert used == names[:runs]
    with pytest.raises(ValueError, match="depth"):
        Limits(depth=4)


async def test_delegation__one_without_tools_that_asks_for_one_gets_a_typed_error() -> None:
    team = Team(Turn(ask("1")), DONE, plays={"researcher": (Turn(call("9", "look")),)}, tools=(LOOK,))
    assert await team.execute() is RunEnd.COMPLETED
    outcome, words = team.answered
    assert outcome is Outcome.FAILED
    assert "has no tools" in words
    assert SpecialistHasNoTools.kind == "specialist_has_no_tools"
    assert not team.memory.of(ToolStarted)[1:]


async def test_delegation__never_widens_what_may_run() -> None:
    everything = Rule(effect=RuleEffect.DENY, tool="act", scope=RuleScope.ALWAYS)
    above = PermissionPolicy((everything,))
    below = above.nested(rules=(Rule(effect=RuleEffect.ALLOW, tool="*", scope=RuleScope.ALWAYS),))
    assert isinstance(await below.verdict(call("1", "act"), ACT), Denied)
    team = Team(
        Turn(ask("1")), DONE, specialists=(specialist(tools=("act", "missing"), mode="accept-edits"),),
        plays={"researcher": (Turn(call("9", "act")), DONE)}, tools=(ACT,),
    )  # fmt: skip
    team.modes.set_by_person("plan")
    await team.execute()
    assert team.sub.outcomes == [Outcome.DENIED]


async def test_delegation__stop_reaches_it() -> None:
    began = asyncio.Event()

    async def hang(_: str) -> str:
        began.set()
        await asyncio.Event().wait()
        return ""

    team = Team(
        Turn(ask("1")), DONE, specialists=(specialist(tools=("hang",)),),
        plays={"researcher": (Turn(call("9", "hang")),)}, tools=(tool("hang", hang, read_only=True),),
    )  # fmt: skip
    running = team.start()
    await began.wait()
    team.run.interrupt(StopTurn())
    assert await running is RunEnd.CANCELLED
    assert (team.sub.end, team.sub.outcomes) == (RunEnd.CANCELLED, [Outcome.CANCELLED])
    assert team.memory.outcomes == [Outcome.CANCELLED]
    assert len(team.memory.of(ToolFinished)) == 1
