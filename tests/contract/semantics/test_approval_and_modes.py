"""Section Semantics: what a person decides, and how much may happen unasked."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from desktop_agent.permissions.approvals import AnswerStatus
from desktop_agent.permissions.rule_proposals import describe_rule
from desktop_agent.types.blocks import Outcome, ToolUse
from desktop_agent.types.engine_events import (
    ApprovalRequested,
    ApprovalResolved,
    ModeChanged,
    ModeChangeRequested,
    RunEnd,
    ToolStarted,
    TurnStarted,
)
from desktop_agent.types.errors import ToolInputInvalid, WrongUse
from desktop_agent.types.messages import Message
from desktop_agent.types.permissions import BUILT_IN_MODES, DEFAULT_MODE, PLAN_MODE, Mode, PathPattern, RuleScope
from desktop_agent.types.tool_calls import (
    AllowAlways,
    AllowForConversation,
    AllowOnce,
    Deny,
    DenyAndStop,
    Effect,
    call_digest,
)
from tests.contract.scenes import ACT, DONE, LOOK, answer_all, decided, in_folder, on_disk, one, only, until, write
from tests.fakes.agent_run import Desk, call, tool
from tests.fakes.scripted_provider import Turn

FETCH = replace(tool("fetch", read_only=True), effects=frozenset({Effect.NETWORK}))


def inputs(desk: Desk) -> list[str]:
    return [event.input["word"] for event in desk.memory.of(ToolStarted)]


async def test_approval__allow_once_allows_this_call_and_no_other() -> None:
    desk = Desk(Turn(call("1", "act", "a")), Turn(call("2", "act", "b")), DONE, tools=(ACT,))
    assert await decided(desk, AllowOnce(), Deny()) is RunEnd.COMPLETED
    assert inputs(desk) == ["a"]
    assert desk.memory.outcomes == [Outcome.SUCCEEDED, Outcome.DENIED]


async def test_approval__for_this_conversation_asks_no_more_about_this_tool() -> None:
    other = tool("other")
    turns = Turn(call("1", "act", "a")), Turn(call("2", "act", "b"), call("3", "other")), DONE
    desk = Desk(*turns, tools=(ACT, other))
    await decided(desk, AllowForConversation(), Deny())
    assert inputs(desk) == ["a", "b"]
    assert [event.tool_use_id for event in desk.memory.of(ApprovalRequested)] == ["1", "3"]


async def test_approval__always_for_a_pattern_that_was_shown_before(tmp_path: Path) -> None:
    turns = Turn(write("1", "sub/a.txt", "a")), Turn(write("2", "b.txt", "b"), write("3", ".envrc", "c")), DONE
    async with in_folder(tmp_path, *turns) as stage:
        session = stage.session
        session.send(Message.user("go"))
        await stage.until(lambda: session.approvals.open_approvals)
        card = one(session.approvals.open_approvals)
        shown = next(rule for rule in card.proposals if rule.scope is RuleScope.WORKSPACE)
        assert shown.pattern == PathPattern(prefix=str(tmp_path / "work"))
        assert str(tmp_path / "work") in str(describe_rule(shown))
        with pytest.raises(WrongUse):
            session.approvals.answer(card.approval_id, AllowAlways(rule_id="never shown"))
        session.approvals.answer(card.approval_id, AllowAlways(rule_id=shown.id))
        await stage.until(lambda: session.approvals.open_approvals)
        assert one(session.approvals.open_approvals).tool_use.id == "3"  # what a program runs by itself
        session.approvals.answer(session.approvals.open_approvals[0].approval_id, Deny())
        await stage.idle()
        assert [rule.id for rule in session.permission_policy.rules] == [shown.id]
        assert sorted(path.name for path in (tmp_path / "work").rglob("*.txt")) == ["a.txt", "b.txt"]
        await session.close()
        assert [rule.id for rule in await stage.shaky.store.rules.all()] == [shown.id]


async def test_approval__edited_arguments_are_checked_and_are_what_runs() -> None:
    desk = Desk(Turn(call("1", "act", "old")), DONE, tools=(ACT,))
    running = desk.start()
    await desk.approvals_open()
    with pytest.raises(ToolInputInvalid):
        desk.decide(AllowOnce(edited_input={"word": ["no"]}))
    desk.decide(AllowOnce(edited_input={"word": "new"}))
    await running
    assert inputs(desk) == ["new"]
    resolved = one(desk.memory.of(ApprovalResolved))
    assert (resolved.effective_input, resolved.digest) == ({"word": "new"}, ACT.digest({"word": "new"}))
    assert desk.memory.messages[1].tool_uses[0].input == {"word": "old"}


async def test_approval__deny_tells_the_model_and_goes_on() -> None:
    desk = Desk(Turn(call("1", "act")), DONE, tools=(ACT,))
    assert await decided(desk, Deny(message="not on a Sunday")) is RunEnd.COMPLETED
    assert "not on a Sunday" in str(desk.provider.requests[1].messages[-1].blocks)
    assert (desk.memory.outcomes, inputs(desk)) == ([Outcome.DENIED], [])


async def test_approval__deny_and_stop_ends_the_run_and_nothing_else_starts() -> None:
    desk = Desk(Turn(call("1", "act"), call("2", "look")), DONE, tools=(ACT, LOOK))
    assert await decided(desk, DenyAndStop()) is RunEnd.CANCELLED
    assert desk.memory.outcomes == [Outcome.DENIED, Outcome.CANCELLED]
    assert (len(desk.provider.requests), inputs(desk)) == (1, [])


async def test_approval__is_bound_to_tool_identity_and_normalised_arguments() -> None:
    desk = Desk(
        Turn(call("1", "fetch", "a")),
        Turn(call("2", "fetch", "a")),
        Turn(call("3", "fetch", "b")),
        DONE,
        tools=(FETCH,),
    )
    await decided(desk, AllowForConversation(), Deny())
    # What reaches far is allowed as it was shown, not the whole tool.
    assert inputs(desk) == ["a", "a"]
    assert call_digest("t", {"a": 1, "b": {"c": 2, "d": 3}}) == call_digest("t", {"b": {"d": 3, "c": 2}, "a": 1})
    elsewhere = replace(ACT, scope="/elsewhere")
    assert len({ACT.digest({}), elsewhere.digest({}), LOOK.digest({}), ACT.digest({"word": "x"})}) == 4


async def test_approval__the_cards_of_a_turn_appear_together_and_wait_in_any_order() -> None:
    desk = Desk(Turn(*(call(str(n), "act", str(n)) for n in range(3))), DONE, tools=(ACT,))
    running = desk.start()
    await desk.approvals_open(3)
    assert [approval.tool_use.id for approval in desk.approvals.open_approvals] == ["0", "1", "2"]
    assert not desk.memory.of(ToolStarted)
    for position in (2, 1, 0):
        desk.decide(AllowOnce(), position)
    await running
    assert inputs(desk) == ["0", "1", "2"]


async def test_approval__waiting_holds_no_slot() -> None:
    many = [call(f"f{n}", "fetch", str(n)) for n in range(30)]
    desk = Desk(Turn(*many, call("l", "look")), DONE, tools=(FETCH, LOOK))
    running = desk.start()
    await desk.approvals_open(30)
    await until(lambda: [event.id for event in desk.memory.of(ToolStarted)] == ["l"])
    desk.run.interrupt()
    await running


async def test_approval__the_first_decision_wins_and_a_second_is_told_so() -> None:
    desk = Desk(Turn(call("1", "act")), DONE, tools=(ACT,))
    running = desk.start()
    await desk.approvals_open()
    approval_id = one(desk.approvals.open_approvals).approval_id
    first, second = (desk.approvals.answer(approval_id, decision) for decision in (Deny(), AllowOnce()))
    assert (first.accepted, second.accepted, second.status) == (True, False, AnswerStatus.ALREADY_DECIDED)
    assert second.resolution == first.resolution
    await running
    assert desk.approvals.answer(approval_id, AllowOnce()).status is AnswerStatus.ALREADY_DECIDED
    assert desk.memory.outcomes == [Outcome.DENIED]


async def test_approval__a_window_that_is_gone_means_paused_not_denied(tmp_path: Path) -> None:
    async with on_disk(tmp_path, Turn(call("1", "act")), DONE, tools=(ACT,)) as stage:
        session = stage.session
        session.send(Message.user("go"))
        await stage.until(lambda: session.approvals.open_approvals)
        session.unsubscribe(stage.events.append)  # nobody looks any more
        for _ in range(50):
            await asyncio.sleep(0)
        assert session.working
        assert not only([envelope.event for envelope in stage.events], ApprovalResolved)
        assert len(session.approvals.open_approvals) == 1
        await answer_all(stage, AllowOnce())
        await stage.idle()
        assert session.history[-1].text == "Done."
        await session.close()


NET = replace(tool("net"), effects=frozenset({Effect.WRITE, Effect.NETWORK}))


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("default", {"look": "runs", "act": "asks", "net": "asks"}),
        ("plan", {"look": "runs", "act": "denied", "net": "denied"}),
        ("accept-edits", {"look": "runs", "act": "runs", "net": "asks"}),
    ],
)
async def test_modes__say_what_becomes_of_calls_that_change_something(mode: str, expected: dict[str, str]) -> None:
    desk = Desk(Turn(*(call(name, name) for name in expected)), DONE, tools=(LOOK, ACT, NET))
    desk.modes.set_by_person(mode)
    await decided(desk, *(Deny() for how in expected.values() if how == "asks"))
    asked_ids = {event.tool_use_id for event in desk.memory.of(ApprovalRequested)}
    ran = {event.id for event in desk.memory.of(ToolStarted)}
    outcomes = {name: "asks" if name in asked_ids else "runs" if name in ran else "denied" for name in expected}
    assert outcomes == expected


async def test_modes__plan_adds_its_own_words_to_the_instructions() -> None:
    desk = Desk(DONE)
    desk.modes.set_by_person("plan")
    await desk.execute()
    assert PLAN_MODE.addendum in (desk.provider.requests[0].config.system_prompt or "")
    assert DEFAULT_MODE.addendum == ""


async def test_modes__the_persons_own_mode_holds_with_its_rules_and_words(tmp_path: Path) -> None:
    careful = Mode(name="careful", title="Careful", mutating="deny", addendum="Be careful.")
    turns = Turn(call("1", "act")), DONE
    async with on_disk(tmp_path, *turns, tools=(ACT,), modes=lambda: (*BUILT_IN_MODES, careful)) as stage:
        stage.session.modes.set_by_person("careful")
        await stage.say()
        assert stage.of(ToolStarted) == []
        assert "Be careful." in (stage.provider.requests[0].config.system_prompt or "")
        with pytest.raises(WrongUse):
            stage.session.modes.set_by_person("nonsense")
        await stage.session.close()


async def test_modes__the_persons_change_reaches_every_call_that_has_not_started() -> None:
    began, go = asyncio.Event(), asyncio.Event()

    async def work(word: str) -> str:
        began.set()
        await go.wait()
        return word

    act = tool("act", work)
    desk = Desk(Turn(call("1", "act", "a"), call("2", "act", "b"), call("3", "act", "c")), DONE, tools=(act,))
    running = desk.start()
    await desk.approvals_open(3)
    desk.decide(AllowOnce())
    desk.decide(AllowOnce())
    await began.wait()
    desk.modes.set_by_person("plan")
    await until(lambda: not desk.approvals.open_approvals)  # the card that waited is decided, not left behind
    go.set()
    await running
    assert inputs(desk) == ["a"]
    assert desk.memory.outcomes == [Outcome.SUCCEEDED, Outcome.DENIED, Outcome.DENIED]


async def test_modes__a_wider_one_lets_what_waits_run_at_once() -> None:
    desk = Desk(Turn(call("1", "act")), DONE, tools=(ACT,))
    running = desk.start()
    await desk.approvals_open()
    desk.modes.set_by_person("accept-edits")
    await running
    assert inputs(desk) == ["x"]
    assert one(desk.memory.of(ApprovalResolved)).by == "rule"


def wish(mode: str) -> ToolUse:
    return ToolUse(id=f"to {mode}", name="change_mode", input={"mode": mode})


async def test_modes__the_agents_wish_is_announced_at_the_next_edge_and_holds_one_turn_later(tmp_path: Path) -> None:
    turns = Turn(wish("plan")), Turn(call("1", "act", "a")), Turn(call("2", "act", "b")), DONE
    async with on_disk(tmp_path, *turns, tools=(ACT,), mode_requests=True) as stage:
        stage.session.send(Message.user("go"))
        await answer_all(stage, AllowOnce())
        await stage.idle()
        events = [envelope.event for envelope in stage.events]
        kinds = [type(event) for event in only(events, ModeChangeRequested, ModeChanged, TurnStarted)]
        first = [TurnStarted, ModeChangeRequested, TurnStarted, ModeChanged, TurnStarted, TurnStarted]
        assert kinds == first
        assert one(only(events, ModeChanged)).authority == "agent"
        assert [event.id for event in only(events, ToolStarted)] == ["to plan", "1"]
        await stage.session.close()


async def test_modes__the_person_cancels_the_agents_wish_or_decides_otherwise() -> None:
    for decide in (lambda desk: desk.modes.cancel_request(), lambda desk: desk.modes.set_by_person("accept-edits")):
        desk = Desk(Turn(call("1", "look")), Turn(call("2", "look", "b")), DONE, tools=(LOOK,))
        desk.modes.request_by_agent("plan")
        decide(desk)
        assert desk.modes.requested is None
        await desk.execute()
        assert desk.modes.current.name != "plan"
        assert not desk.memory.of(ModeChangeRequested)


async def test_modes__the_agent_never_widens_its_own_authority(tmp_path: Path) -> None:
    turns = Turn(wish("accept-edits")), Turn(call("1", "look")), Turn(call("2", "look", "b")), DONE
    async with on_disk(tmp_path, *turns, tools=(LOOK,), mode_requests=True) as stage:
        await stage.say()
        assert stage.session.modes.current is DEFAULT_MODE
        assert not stage.of(ModeChangeRequested) + stage.of(ModeChanged)
        result = stage.provider.requests[1].messages[-1].blocks[0]
        assert result.is_error  # type: ignore[union-attr]
        await stage.session.close()


async def test_modes__a_wish_that_would_widen_what_the_person_chose_meanwhile_comes_to_nothing() -> None:
    desk = Desk(Turn(call("1", "look")), Turn(call("2", "look", "b")), DONE, tools=(LOOK,))
    desk.modes.set_by_person("accept-edits")
    desk.modes.request_by_agent("default")
    desk.modes.set_by_person("plan")
    await desk.execute()
    assert desk.modes.current is PLAN_MODE
