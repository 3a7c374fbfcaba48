"""Section Semantics: prompt policies, guards, steering, questions to the person, doom loops."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from desktop_agent.agent.guards import Guards
from desktop_agent.agent.prompt_policies import PromptPolicies
from desktop_agent.agent.questions import QuestionBroker, ask_user
from desktop_agent.engine.session_opening import reopen_session
from desktop_agent.types.blocks import Outcome, Text, ToolUse
from desktop_agent.types.engine_events import (
    ApprovalRequested,
    ContinuationInjected,
    DoomLoopSuspected,
    GuardAborted,
    QuestionAnswered,
    QuestionAsked,
    RunEnd,
    RunStarted,
    UserMessageDelivered,
    UserMessageReturned,
)
from desktop_agent.types.errors import WrongUse
from desktop_agent.types.messages import Message
from desktop_agent.types.policies import (
    Guard,
    GuardAbort,
    GuardContinue,
    GuardMoment,
    GuardStop,
    GuardVerdict,
    PolicyTrigger,
    PromptPolicy,
    StopTurn,
)
from desktop_agent.types.provider_events import ContentDelta
from desktop_agent.types.tool_calls import AllowOnce, Deny
from tests.contract.scenes import ACT, DONE, LOOK, decided, on_disk, one
from tests.fakes.agent_run import Desk, call
from tests.fakes.library import Gate
from tests.fakes.scripted_provider import Turn
from tests.fakes.session import Stage, check_invariants, results_of
from tests.fakes.specialist_run import Team, ask, specialist


def instructions(desk: Desk) -> list[list[str]]:
    return [(request.config.system_prompt or "").split("\n\n") for request in desk.provider.requests]


def looking(*more: Turn) -> tuple[Turn, ...]:
    return (Turn(call("1", "look")), Turn(call("2", "look", "b")), *more)


async def test_prompt_policies__lower_precedence_goes_first_and_scopes_last_as_they_say(tmp_path: Path) -> None:
    async with on_disk(tmp_path, *looking(DONE), DONE, tools=(LOOK,)) as stage:
        policies = stage.session.policies
        policies.install(PromptPolicy(id="last", text="Last.", precedence=300, scope="persistent"))
        policies.install(PromptPolicy(id="once", text="Once.", precedence=-1, scope="next_turn"))
        policies.install(PromptPolicy(id="mid", text="Mid.", precedence=200))
        assert [policy.id for policy in policies.list()] == ["once", "mid", "last"]
        await stage.say()
        policies.remove("mid")
        texts = [request.config.system_prompt for request in stage.provider.requests]
        assert texts == ["Once.\n\nMid.\n\nLast.", "Mid.\n\nLast.", "Mid.\n\nLast."]
        await stage.session.close()
        reopened = await reopen_session(stage.shaky.store, stage.session.record.id, stage.session._runs._setup)
        assert [policy.id for policy in reopened.policies.list()] == ["last"]  # only what is persistent is kept
        await reopened.close()


def test_prompt_policies__a_duplicate_and_an_unknown_one_are_errors() -> None:
    policies = PromptPolicies()
    policies.install(PromptPolicy(id="p", text="a"))
    with pytest.raises(WrongUse):
        policies.install(PromptPolicy(id="p", text="b"))
    with pytest.raises(WrongUse):
        policies.remove("q")
    assert [policy.text for policy in policies.list()] == ["a"]


async def test_prompt_policies__are_triggered_by_mode_tool_and_word() -> None:
    policies = PromptPolicies()
    policies.install(PromptPolicy(id="mode", text="In plan.", trigger=PolicyTrigger(mode="plan")))
    policies.install(PromptPolicy(id="tool", text="After looking.", trigger=PolicyTrigger(tool="look")))
    policies.install(PromptPolicy(id="word", text="About ships.", trigger=PolicyTrigger(word="ship")))
    desk = Desk(*looking(DONE), tools=(LOOK,), policies=policies)
    desk.memory.messages[0] = Message.user("Tell me of the SHIP.")
    await desk.execute()
    assert instructions(desk) == [["About ships."], *[["After looking.", "About ships."]] * 2]
    planned = Desk(DONE, policies=policies)
    planned.modes.set_by_person("plan")
    await planned.execute()
    assert instructions(planned)[0][0] == "In plan."


async def test_prompt_policies__change_text_never_authority() -> None:
    policies = PromptPolicies()
    policies.install(
        PromptPolicy(id="p", text="You may use every tool without asking. Mode: accept-edits.", precedence=-99)
    )
    desk = Desk(Turn(call("1", "act")), DONE, tools=(ACT,), policies=policies)
    await decided(desk, Deny())
    assert len(desk.memory.of(ApprovalRequested)) == 1
    assert desk.memory.outcomes == [Outcome.DENIED]


def guard(verdict: GuardVerdict | Exception | None, most: int = 1, **more: Any) -> Guard:
    async def check(_: GuardMoment) -> GuardVerdict | None:
        if isinstance(verdict, Exception):
            raise verdict
        return verdict

    return Guard("g", check, most, **more)


async def test_continuation_guards__continue_injects_a_prompt() -> None:
    desk = Desk(DONE, DONE, guards=Guards((guard(GuardContinue("Check it.")),)))
    assert await desk.execute() is RunEnd.COMPLETED
    assert [message.text for message in desk.provider.requests[1].messages] == ["go", "Done.", "Check it."]


@pytest.mark.parametrize("at", ["turn_end", "session_stop"])
@pytest.mark.parametrize(
    ("verdict", "end"),
    [(GuardStop(), RunEnd.COMPLETED), (GuardAbort("enough"), RunEnd.ABORTED), (None, RunEnd.COMPLETED)],
)
async def test_continuation_guards__run_at_the_end_of_a_turn_or_of_the_session(
    at: Any, verdict: Any, end: RunEnd
) -> None:
    desk = Desk(Turn(call("1", "look")), DONE, tools=(LOOK,), guards=Guards((guard(verdict, at=at),)))
    assert await desk.execute() is end
    # Only a guard that is asked after each turn can end it before the model would.
    assert len(desk.provider.requests) == (1 if at == "turn_end" and verdict else 2)
    assert len(desk.memory.results) == 1


def test_continuation_guards__a_bound_is_mandatory() -> None:
    async def check(_: GuardMoment) -> None: ...

    with pytest.raises(TypeError):
        Guard("g", check)  # type: ignore[call-arg]
    with pytest.raises(WrongUse):
        Guard("g", check, max_iterations=0)


@pytest.mark.parametrize(
    ("verdict", "end"),
    [
        (GuardContinue("more"), RunEnd.COMPLETED),
        (GuardAbort("enough"), RunEnd.ABORTED),
        (RuntimeError("broken"), RunEnd.COMPLETED),
    ],
)
async def test_continuation_guards__exceeding_aborting_or_raising_removes_it_and_the_run_ends_well(
    verdict: Any, end: RunEnd
) -> None:
    guards = Guards((guard(verdict, 2),))
    desk = Desk(*[DONE] * 3, guards=guards)
    assert await desk.execute() is end
    assert guards.list() == ()
    assert len(desk.memory.of(GuardAborted)) == 1
    assert [event.iteration for event in desk.memory.of(ContinuationInjected)] == (
        [1, 2] if isinstance(verdict, GuardContinue) else []
    )


async def steered(tmp_path: Path, do: Callable[[Stage], Awaitable[None]], *turns: Turn, **more: Any) -> Stage:
    """Something is done in the middle of an answer."""
    gate = Gate()
    async with on_disk(tmp_path, Turn(gate.step, call("1", "look")), *turns, tools=(LOOK,), **more) as stage:
        stage.session.send(Message.user("go"))
        await gate.until_arrived()
        await do(stage)
        gate.opened.set()
        await stage.idle()
        check_invariants(stage.session.history, stage.events)
        await stage.session.close()
        return stage


def roles(stage: Stage) -> list[str]:
    return [f"{message.role}:{message.text}".rstrip(":") for message in stage.session.history]


async def test_steering__as_soon_as_possible_is_after_the_results_of_this_turn(tmp_path: Path) -> None:
    async def do(stage: Stage) -> None:
        stage.session.steer(Message.user("soon"))

    stage = await steered(tmp_path, do, DONE)
    assert roles(stage) == ["user:go", "assistant", "tool", "user:soon", "assistant:Done."]
    assert len(stage.of(RunStarted)) == 1


async def test_steering__when_idle_is_after_the_run(tmp_path: Path) -> None:
    async def do(stage: Stage) -> None:
        stage.session.steer(Message.user("later"), "idle")

    stage = await steered(tmp_path, do, DONE, Turn(ContentDelta("Too.")))
    assert roles(stage) == ["user:go", "assistant", "tool", "assistant:Done.", "user:later", "assistant:Too."]
    assert len(stage.of(RunStarted)) == 2


async def test_steering__entries_can_be_edited_reordered_and_deleted(tmp_path: Path) -> None:
    async def do(stage: Stage) -> None:
        a, b, c = (Message.user(text) for text in "abc")
        for message in (a, b, c):
            stage.session.steer(message)
        stage.session.queue.edit(b.id, [Text(text="B")])
        stage.session.queue.move(c.id, 0)
        stage.session.queue.remove(a.id)
        with pytest.raises(WrongUse):
            stage.session.queue.remove(a.id)

    stage = await steered(tmp_path, do, DONE)
    assert roles(stage)[3:] == ["user:c", "user:B", "assistant:Done."]


@pytest.mark.parametrize("stop", [False, True])
async def test_steering__each_is_delivered_once_or_handed_back_never_both(tmp_path: Path, stop: bool) -> None:
    sent = [Message.user(str(n)) for n in range(4)]

    async def do(stage: Stage) -> None:
        for number, message in enumerate(sent):
            stage.session.steer(message, "soon" if number % 2 else "idle")
        if stop:
            stage.session.interrupt()

    stage = await steered(tmp_path, do, DONE, DONE, DONE)
    known = [message.id for message in stage.session.history]
    returned = [event.message_id for event in stage.of(UserMessageReturned)]
    for message in sent:
        assert known.count(message.id) + returned.count(message.id) == 1
        assert (message.id in returned) is stop
    assert [stage.session.returned(message_id) for message_id in returned] == [id_ for id_ in sent if stop]


async def test_steering__the_wrong_turn_is_an_error_and_nothing_waits(tmp_path: Path) -> None:
    async def do(stage: Stage) -> None:
        turn = stage.events[-1].turn_id
        with pytest.raises(WrongUse):
            stage.session.steer(Message.user("no"), expected_turn_id="another turn")
        assert stage.session.queue.entries == ()
        stage.session.steer(Message.user("yes"), expected_turn_id=turn)

    stage = await steered(tmp_path, do, DONE)
    assert "user:yes" in roles(stage)
    assert "user:no" not in roles(stage)


async def test_steering__what_waits_when_the_turn_is_stopped_is_sent_next(tmp_path: Path) -> None:
    async def do(stage: Stage) -> None:
        stage.session.steer(Message.user("rather this"))
        stage.session.interrupt(StopTurn())

    stage = await steered(tmp_path, do, DONE)
    assert roles(stage) == ["user:go", "user:rather this", "assistant:Done."]
    assert stage.of(UserMessageReturned) == []
    assert len(stage.of(UserMessageDelivered)) == 1


def question(**more: Any) -> ToolUse:
    return ToolUse(id="q", name="ask_user", input={"question": "Which?", **more})


@pytest.mark.parametrize(
    ("fields", "reply", "expected"),
    [
        ({"choices": ["red", "green"], "free_text": False}, "green", "green"),
        ({"choices": ["red", "green", "blue"], "several": True}, ("blue", "red"), "red\nblue"),
        ({}, "something of my own", "something of my own"),
    ],
)
async def test_ask_the_user__choices_and_free_text(tmp_path: Path, fields: dict, reply: Any, expected: str) -> None:
    async with on_disk(tmp_path, Turn(question(**fields)), DONE, questions=True) as stage:
        session = stage.session
        session.send(Message.user("go"))
        await stage.until(lambda: session.questions.open_questions)
        waiting = one(session.questions.open_questions)
        if not fields.get("free_text", True):
            with pytest.raises(WrongUse):
                session.questions.answer(waiting.question_id, "purple")
        assert session.questions.answer(waiting.question_id, reply)
        assert not session.questions.answer(waiting.question_id, "again")
        await stage.idle()
        assert expected in one(results_of(session.history)["q"].content).text  # type: ignore[union-attr]
        assert one(stage.of(QuestionAnswered)).answer == expected
        await session.close()


async def test_ask_the_user__has_a_timeout_after_which_the_agent_goes_on() -> None:
    events: list[Any] = []
    asking = ask_user(QuestionBroker(), events.append, 0.01)
    desk = Desk(Turn(question()), DONE, tools=(asking,))
    assert await desk.execute() is RunEnd.COMPLETED
    assert [type(event) for event in events] == [QuestionAsked, QuestionAnswered]
    assert events[1].answer is None
    assert "did not answer" in str(desk.memory.results[0].content)


async def test_ask_the_user__is_for_the_root_agent_only() -> None:
    events: list[Any] = []
    broker = QuestionBroker()
    team = Team(
        Turn(ask("1")), DONE,
        specialists=(specialist(tools=("ask_user",)),),
        plays={"researcher": (Turn(question()), DONE)},
        tools=(ask_user(broker, events.append),),
    )  # fmt: skip
    assert await team.execute() is RunEnd.COMPLETED
    assert team.sub.outcomes == [Outcome.FAILED]
    assert (events, broker.open_questions) == ([], ())


async def test_doom_loop__the_third_identical_call_in_a_row_asks_the_person() -> None:
    desk = Desk(*(Turn(call(str(n), "look")) for n in range(3)), DONE, tools=(LOOK,))
    running = desk.start()
    await desk.approvals_open()
    card = one(desk.approvals.open_approvals)
    assert (card.tool_use.id, desk.memory.of(DoomLoopSuspected)) == ("2", [DoomLoopSuspected("2", 3)])
    assert card.reason
    desk.decide(AllowOnce())
    assert await running is RunEnd.COMPLETED
    assert desk.memory.outcomes == [Outcome.SUCCEEDED] * 3


async def test_doom_loop__also_within_one_answer_and_never_for_calls_that_differ() -> None:
    desk = Desk(Turn(*(call(str(n), "look") for n in range(3))), DONE, tools=(LOOK,))
    await decided(desk, Deny())
    assert [str(outcome) for outcome in desk.memory.outcomes] == ["succeeded", "succeeded", "denied"]
    words = ["a", "a", "b", "a", "a"]
    other = Desk(*(Turn(call(str(n), "look", word)) for n, word in enumerate(words)), DONE, tools=(LOOK,))
    await other.execute()
    assert not other.memory.of(DoomLoopSuspected)


async def test_doom_loop__asks_also_where_a_rule_allows_and_never_weakens_a_denial() -> None:
    allowed = Desk(*(Turn(call(str(n), "act")) for n in range(3)), DONE, tools=(ACT,))
    allowed.allow(ACT)
    await decided(allowed, Deny())
    assert [str(outcome) for outcome in allowed.memory.outcomes] == ["succeeded", "succeeded", "denied"]
    denied = Desk(*(Turn(call(str(n), "act")) for n in range(3)), DONE, tools=(ACT,))
    denied.modes.set_by_person("plan")
    await denied.execute()
    assert [str(outcome) for outcome in denied.memory.outcomes] == ["denied"] * 3
