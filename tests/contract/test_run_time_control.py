"""Section Faces: whatever the window can do with a conversation, the library can, at any moment."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from desktop_agent.api.client import Client
from desktop_agent.permissions.approvals import AnswerStatus
from desktop_agent.types.blocks import JsonObject, Outcome, ToolUse
from desktop_agent.types.engine_events import (
    ApprovalRequested,
    ApprovalResolved,
    ContinuationInjected,
    Envelope,
    ModeChanged,
    ModeChangeRequested,
    PolicyApplied,
    PolicyInstalled,
    PolicyRemoved,
    QuestionAnswered,
    QuestionAsked,
    RunEnd,
    RunFinished,
    ToolFinished,
    UserMessageDelivered,
    UserMessageQueued,
    UserMessageReturned,
)
from desktop_agent.types.errors import TurnMismatch, WrongUse
from desktop_agent.types.permissions import ACCEPT_EDITS_MODE, PLAN_MODE, Mode, Rule, RuleEffect, RuleScope
from desktop_agent.types.policies import Guard, GuardContinue, GuardMoment, PromptPolicy, StopTurn
from desktop_agent.types.tool_calls import AllowAlways, AllowForConversation, AllowOnce, Decision, Deny
from tests.fakes.library import LIMIT, Gate, acting, adder, blocks_of, call, listed, says, sent
from tests.fakes.scripted_provider import Turn

ASK = Rule(effect=RuleEffect.ASK, tool="add", scope=RuleScope.ALWAYS)
POLICY = PromptPolicy(id="brief", text="Be brief.")


async def until(true: Callable[[], object]) -> None:
    async with asyncio.timeout(LIMIT):
        while not true():
            await asyncio.sleep(0.001)


class EventRecorder:
    """A listener that records every envelope."""

    def __init__(self) -> None:
        self.envelopes: list[Envelope] = []

    def __call__(self, envelope: Envelope) -> None:
        self.envelopes.append(envelope)

    def of(self, *kinds: type) -> list[Any]:
        return [envelope.event for envelope in self.envelopes if isinstance(envelope.event, kinds)]


async def test_run_time_control__what_the_options_install_is_heard() -> None:
    recorder = EventRecorder()
    options, _ = acting(Turn(says("ok")), policies=(POLICY,), mode="plan")
    async with Client(options, listener=recorder) as client:
        await client.complete("hi")
    assert recorder.of(ModeChanged) == [ModeChanged("default", "plan", "person")]
    assert recorder.of(PolicyInstalled) == [PolicyInstalled("brief")]
    assert [event.ids for event in recorder.of(PolicyApplied)] == [("brief",)]


@pytest.mark.parametrize("asked_before", [False, True])
async def test_run_time_control__the_mode_is_read_and_set_also_one_of_the_callers_own(asked_before: bool) -> None:
    recorder = EventRecorder()
    own = Mode(name="mine", title="Mine", addendum="My words.")
    options, provider = acting(*[Turn(says("ok"))] * 3)
    async with Client(options, listener=recorder) as client:
        if asked_before:
            await client.complete("hi")
        assert client.mode.name == "default"
        client.set_mode("plan")
        assert client.mode == PLAN_MODE
        client.set_mode(own)
        assert (client.mode, client.modes[-1]) == (own, own)
        with pytest.raises(WrongUse):
            client.set_mode("nobody's")
        await client.complete("hi")
        assert client.options.mode == "default"
    assert "My words." in str(provider.requests[-1])
    assert recorder.of(ModeChanged)[-1].to_mode == "mine"


async def test_run_time_control__a_mode_that_is_set_while_the_model_answers_holds_for_its_calls() -> None:
    gate = Gate()
    options, _ = acting(Turn(gate.step, call()), Turn(says("ok")), tools=(adder(),), auto_execute_tools=True)
    async with Client(options) as client:
        events = asyncio.create_task(listed(client.stream("add")))
        await gate.until_arrived()
        client.set_mode("plan")
        gate.opened.set()
        finished = [event for event in await events if isinstance(event, ToolFinished)]
    assert [event.outcome for event in finished] == [Outcome.DENIED]


async def test_run_time_control__the_agent_asks_for_another_mode_and_the_request_can_be_taken_back() -> None:
    recorder, gate = EventRecorder(), Gate()
    wish = ToolUse(id="m", name="change_mode", input={"mode": "plan"})
    options, _ = acting(
        *(Turn(wish), Turn(gate.step, ToolUse(id="n", name="add", input={"a": 1, "b": 2})), Turn(says("ok"))),
        tools=(adder(),),
        auto_execute_tools=True,
        mode_requests=True,
    )
    async with Client(options, listener=recorder) as client:
        asking = asyncio.create_task(client.complete("go"))
        await gate.until_arrived()
        assert [event.to_mode for event in recorder.of(ModeChangeRequested)] == ["plan"]
        assert client.cancel_mode_request()
        assert not client.cancel_mode_request()
        gate.opened.set()
        await asking
        assert client.mode.name == "default"


@pytest.mark.parametrize("asked_before", [False, True])
async def test_run_time_control__prompt_policies_are_installed_listed_and_removed(asked_before: bool) -> None:
    recorder = EventRecorder()
    options, provider = acting(*[Turn(says("ok"))] * 3)
    async with Client(options, listener=recorder) as client:
        if asked_before:
            await client.complete("hi")
        client.policies.install(POLICY)
        client.policies.install(PromptPolicy(id="first", text="Me first.", precedence=1))
        assert [policy.id for policy in client.policies.list()] == ["first", "brief"]
        with pytest.raises(WrongUse):
            client.policies.install(POLICY)
        await client.complete("hi")
        assert "Be brief." in str(provider.requests[-1])
        client.policies.remove("brief")
        with pytest.raises(WrongUse):
            client.policies.remove("brief")
        await client.complete("hi") if not asked_before else None
    assert {event.id for event in recorder.of(PolicyInstalled)} == {"brief", "first"}
    assert [event.id for event in recorder.of(PolicyRemoved)] == ["brief"]


@pytest.mark.parametrize("asked_before", [False, True])
async def test_run_time_control__guards_are_added_and_removed(asked_before: bool) -> None:
    async def go_on(moment: GuardMoment) -> GuardContinue | None:
        return GuardContinue("More.") if moment.iteration < 1 else None

    recorder = EventRecorder()
    options, _ = acting(*[Turn(says("ok"))] * 4)
    async with Client(options, listener=recorder) as client:
        if asked_before:
            await client.complete("hi")
        client.guards.add(Guard("more", go_on, max_iterations=3))
        assert [guard.name for guard in client.guards.list()] == ["more"]
        await client.complete("hi")
        assert len(recorder.of(ContinuationInjected)) == 1
        client.guards.remove("more")
        with pytest.raises(WrongUse):
            client.guards.remove("more")
        assert client.guards.list() == ()


@pytest.mark.parametrize("asked_before", [False, True])
async def test_run_time_control__rules_hold_from_the_moment_they_are_laid_down(asked_before: bool) -> None:
    deny = Rule(effect=RuleEffect.DENY, tool="add", scope=RuleScope.ALWAYS)
    turns = [Turn(says("ok"))] if asked_before else []
    options, _ = acting(
        *turns,
        Turn(call()),
        Turn(says("no")),
        Turn(call("c2")),
        Turn(says("3")),
        tools=(adder(),),
        auto_execute_tools=True,
    )
    async with Client(options) as client:
        if asked_before:
            await client.complete("hi")
        client.rules.add(deny)
        assert deny.id in [rule.id for rule in client.rules.list()]
        denied = [event.outcome for event in await listed(client.stream("add")) if isinstance(event, ToolFinished)]
        assert client.rules.revoke(deny.id)
        assert not client.rules.revoke(deny.id)
        allowed = [event.outcome for event in await listed(client.stream("add")) if isinstance(event, ToolFinished)]
    assert (denied, allowed) == ([Outcome.DENIED], [Outcome.SUCCEEDED])


async def test_run_time_control__a_message_is_steered_in_edited_moved_and_withdrawn() -> None:
    recorder, gate = EventRecorder(), Gate()
    options, provider = acting(
        Turn(call()), Turn(says("ok")), tools=(adder(gate.opened.wait),), auto_execute_tools=True
    )
    async with Client(options, listener=recorder) as client:
        with pytest.raises(WrongUse):
            client.queue.add("too early")
        asking = asyncio.create_task(client.complete("add"))
        await until(lambda: recorder.of(ApprovalRequested) or client.turn_id)
        first, second, third = (client.queue.add(text) for text in ("one", "two", "three"))
        assert [entry.id for entry in client.queue.list()] == [first, second, third]
        client.queue.edit(second, "zwei")
        client.queue.move(second, 0)
        assert client.queue.withdraw(third).text == "three"
        with pytest.raises(WrongUse):
            client.queue.withdraw(third)
        gate.opened.set()
        await asking
    assert [event.message_id for event in recorder.of(UserMessageQueued)] == [first, second, third]
    assert [event.message_id for event in recorder.of(UserMessageDelivered)] == [second, first]
    assert [text for role, text in sent(provider) if role == "user"] == ["add", "zwei", "one"]


async def test_run_time_control__a_message_for_another_turn_is_an_error_of_its_own() -> None:
    gate = Gate()
    options, _ = acting(Turn(says("a"), gate.step), Turn(says("b")))
    async with Client(options) as client:
        assert client.turn_id is None
        await client.send("hi")
        with pytest.raises(TurnMismatch):
            client.queue.add("late", expected_turn="another")
        assert client.queue.list() == ()
        client.queue.add("in time", expected_turn=client.turn_id)
        gate.opened.set()
        assert [block.text for block in await blocks_of(client.receive)] == ["a", "b"]


@pytest.mark.parametrize("how", ["receive", "continue"])
async def test_run_time_control__a_message_for_when_it_is_idle_begins_the_next_run_which_is_read_next(how: str) -> None:
    recorder, gate = EventRecorder(), Gate()
    options, provider = acting(Turn(says("a"), gate.step), Turn(says("b")), Turn(says("c")))
    async with Client(options, listener=recorder) as client:
        await client.send("hi")
        queued = client.queue.add("later", "idle")
        gate.opened.set()
        assert [block.text for block in await blocks_of(client.receive)] == ["a"]
        if how == "continue":
            assert (await client.complete()).text == "b"
        else:
            await client.continue_()
            assert [block.text for block in await blocks_of(client.receive)] == ["b"]
        assert [event.message_id for event in recorder.of(UserMessageDelivered)] == [queued]
        assert (await client.complete("and")).text == "c"
    assert [end.reason for end in recorder.of(RunFinished)] == [RunEnd.COMPLETED] * 3
    provider.assert_finished()


async def test_run_time_control__a_message_that_comes_when_nothing_is_under_way_is_asked_at_once() -> None:
    options, _ = acting(Turn(says("a")), Turn(says("b")))
    async with Client(options) as client:
        await client.complete("hi")
        client.queue.add("and?")
        await client.continue_()
        assert [block.text for block in await blocks_of(client.receive)] == ["b"]


async def test_run_time_control__a_message_waits_while_the_caller_runs_the_calls() -> None:
    options, provider = acting(Turn(call()), Turn(says("ok")), tools=(adder(),))
    async with Client(options) as client:
        await client.complete("add")
        client.queue.add("and be brief")
        assert len(client.queue.list()) == 1
        client.add_tool_result("c1", 3)
        assert (await client.complete()).text == "ok"
    assert [role for role, _ in sent(provider)] == ["user", "assistant", "tool", "user"]


async def test_run_time_control__stop_hands_back_what_waits_and_stopping_the_turn_sends_it() -> None:
    recorder, gates = EventRecorder(), [Gate(), Gate()]
    options, _ = acting(Turn(says("a"), gates[0].step), Turn(says("b"), gates[1].step))
    async with Client(options, listener=recorder) as client:
        await client.send("hi")
        client.queue.add("next", "idle")
        assert client.interrupt(StopTurn())
        await blocks_of(client.receive)
        await client.continue_()
        waiting = client.queue.add("never", "idle")
        assert client.interrupt()
        await blocks_of(client.receive)
        await until(lambda: recorder.of(UserMessageReturned))
        assert [event.message_id for event in recorder.of(UserMessageReturned)] == [waiting]
        message = client.queue.returned(waiting)
        assert message is not None
        assert message.text == "never"
        assert client.queue.returned(waiting) is None
        assert not client.interrupt()


async def test_run_time_control__one_call_is_stopped_and_the_run_goes_on() -> None:
    began = asyncio.Event()

    async def hang() -> None:
        began.set()
        await asyncio.Event().wait()

    options, _ = acting(Turn(call()), Turn(says("ok")), tools=(adder(hang),), auto_execute_tools=True)
    async with Client(options) as client:
        asking = asyncio.create_task(client.complete("add"))
        await asyncio.wait_for(began.wait(), LIMIT)
        assert not client.stop_tool("nobody's")
        assert client.stop_tool("c1")
        response = await asking
    assert (response.text, response.end) == ("ok", RunEnd.COMPLETED)


async def test_run_time_control__approvals_wait_are_listed_and_answered_by_id_and_the_first_answer_counts() -> None:
    recorder = EventRecorder()
    options, _ = acting(
        Turn(call("a"), call("b")), Turn(says("ok")),
        tools=(adder(),), auto_execute_tools=True, rules=(ASK,), approver="wait",
    )  # fmt: skip
    async with Client(options, listener=recorder) as client:
        assert client.approvals.answer("nobody's", AllowOnce()).status is AnswerStatus.UNKNOWN
        asking = asyncio.create_task(client.complete("add"))
        await until(lambda: len(client.approvals.list()) == 2)
        first, second = client.approvals.list()
        assert (first.tool_use.id, first.input) == ("a", {"a": 1, "b": 2})
        assert client.approvals.answer(first.approval_id, AllowOnce()).accepted
        late = client.approvals.answer(first.approval_id, Deny())
        assert (late.accepted, late.status) == (False, AnswerStatus.ALREADY_DECIDED)
        with pytest.raises(WrongUse):
            client.approvals.answer(second.approval_id, AllowAlways(rule_id="nobody's"))
        assert client.approvals.answer(second.approval_id, Deny(message="no")).accepted
        await asking
        assert client.approvals.list() == ()
    outcomes = {event.id: event.outcome for event in recorder.of(ToolFinished)}
    assert outcomes == {"a": Outcome.SUCCEEDED, "b": Outcome.DENIED}
    assert [event.decision for event in recorder.of(ApprovalResolved)] == ["allow_once", "deny"]


async def test_run_time_control__an_answer_from_elsewhere_goes_over_an_approver_that_takes_its_time() -> None:
    async def slow(_: object) -> Decision:
        await asyncio.Event().wait()
        return Deny()

    options, _ = acting(
        Turn(call()), Turn(says("ok")), tools=(adder(),), auto_execute_tools=True, rules=(ASK,), approver=slow
    )
    async with Client(options) as client:
        asking = asyncio.create_task(client.complete("add"))
        await until(client.approvals.list)
        client.approvals.answer(client.approvals.list()[0].approval_id, AllowOnce())
        assert (await asking).text == "ok"


def for_conversation(_: Any) -> Decision:
    return AllowForConversation()


def always(approval: Any) -> Decision:
    return AllowAlways(rule_id=approval.proposals[-1].id)


@pytest.mark.parametrize("decide", [for_conversation, always])
async def test_run_time_control__what_is_allowed_for_longer_is_not_asked_again(
    decide: Callable[[Any], Decision],
) -> None:
    inputs: list[JsonObject] = []

    async def approver(approval: Any) -> Decision:
        inputs.append(approval.input)
        return decide(approval)

    other = Rule(effect=RuleEffect.ASK, tool="other", scope=RuleScope.ALWAYS)
    options, provider = acting(
        *(Turn(call("a")), Turn(call("b", 3, 4)), Turn(call("c", name="other")), Turn(says("ok"))),
        *(Turn(call("d", 5, 6)), Turn(says("ok"))),
        tools=(adder(), adder(name="other")),
        auto_execute_tools=True,
        rules=(ASK, other),
        approver=approver,
    )
    async with Client(options) as client:
        await client.complete("add")
        await client.complete("again")
        # Another rule asks for itself, and what was allowed can be taken back.
        assert inputs == [{"a": 1, "b": 2}, {"a": 1, "b": 2}]
        answering = [rule for rule in client.rules.list() if rule.answers]
        assert [rule.tool for rule in answering] == ["add", "other"]
    provider.assert_finished()


async def test_run_time_control__what_is_allowed_for_longer_never_goes_over_a_rule_that_denies() -> None:
    async def approver(_: object) -> Decision:
        return AllowForConversation()

    options, _ = acting(
        Turn(call("a")), Turn(says("ok")), Turn(call("b")), Turn(says("ok")),
        tools=(adder(),), auto_execute_tools=True, rules=(ASK,), approver=approver,
    )  # fmt: skip
    async with Client(options) as client:
        await client.complete("add")
        client.rules.add(Rule(effect=RuleEffect.DENY, tool="add", scope=RuleScope.ALWAYS))
        events = await listed(client.stream("add"))
    assert [event.outcome for event in events if isinstance(event, ToolFinished)] == [Outcome.DENIED]


async def test_run_time_control__the_agent_asks_the_person_who_answers_by_id() -> None:
    recorder = EventRecorder()
    question = ToolUse(id="q", name="ask_user", input={"question": "Tea or coffee?", "choices": ["tea", "coffee"]})
    options, provider = acting(Turn(question), Turn(says("ok")), auto_execute_tools=True, ask_user=True)
    async with Client(options, listener=recorder) as client:
        assert client.questions.list() == ()
        assert not client.questions.answer("nobody's", "tea")
        asking = asyncio.create_task(client.complete("drink"))
        await until(client.questions.list)
        (waiting,) = client.questions.list()
        assert (waiting.question, waiting.choices) == ("Tea or coffee?", ("tea", "coffee"))
        assert client.questions.answer(waiting.question_id, "tea")
        assert not client.questions.answer(waiting.question_id, "coffee")
        await asking
    assert [event.question_id for event in recorder.of(QuestionAsked)] == [waiting.question_id]
    assert [event.answer for event in recorder.of(QuestionAnswered)] == ["tea"]
    assert "tea" in str(provider.requests[-1].messages[-1])


def test_run_time_control__questions_and_mode_requests_need_somebody_who_runs_tools() -> None:
    for values in ({"ask_user": True}, {"mode_requests": True}):
        with pytest.raises(WrongUse):
            Client(model="m", provider=object(), **values)


async def test_run_time_control__whatever_is_changed_after_the_end_is_refused() -> None:
    options, _ = acting(Turn(says("ok")))
    client = Client(options)
    await client.complete("hi")
    await client.aclose()
    for change in (
        lambda: client.set_mode(ACCEPT_EDITS_MODE.name),
        lambda: client.policies.install(POLICY),
        lambda: client.queue.add("late"),
        lambda: client.rules.add(ASK),
    ):
        with pytest.raises(WrongUse):
            change()
    assert client.mode.name == "default"
