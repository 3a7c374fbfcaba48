"""Modes, policies, guards, waiting messages and questions as a real run meets them."""

import asyncio

from desktop_agent.agent.guards import Guards
from desktop_agent.agent.modes import change_mode
from desktop_agent.agent.prompt_policies import PromptPolicies
from desktop_agent.agent.questions import QuestionBroker, ask_user
from desktop_agent.agent.run import Run
from desktop_agent.agent.steering_queue import SteeringQueue
from desktop_agent.tools.tool import ToolRegistry
from desktop_agent.types.blocks import Outcome, ToolUse
from desktop_agent.types.engine_events import (
    ApprovalRequested,
    ContinuationInjected,
    GuardAborted,
    ModeChanged,
    ModeChangeRequested,
    QuestionAnswered,
    QuestionAsked,
    RunEnd,
    TurnStarted,
    UserMessageDelivered,
)
from desktop_agent.types.errors import QuotaExhausted
from desktop_agent.types.messages import Message
from desktop_agent.types.permissions import ACCEPT_EDITS_MODE, PLAN_MODE
from desktop_agent.types.policies import Guard, GuardContinue, GuardMoment, GuardVerdict, Limits, PromptPolicy
from desktop_agent.types.provider_events import ContentDelta, Done, MessageDelta, StopReason
from tests.fakes.agent_run import Desk, call, tool
from tests.fakes.scripted_provider import Turn, Wait


def with_tools(desk: Desk, *tools: object) -> Desk:
    object.__setattr__(desk.context, "tools", ToolRegistry(tools))  # type: ignore[arg-type]
    desk.run = Run(desk.context, desk.settings)
    return desk


def ask(id_: str = "1") -> ToolUse:
    return ToolUse(id=id_, name="ask_user", input={"question": "Which?", "choices": ["red", "green"]})


async def first_question_id(desk: Desk, broker: QuestionBroker) -> str:
    while not broker.open_questions:
        await asyncio.sleep(0.001)
    return broker.open_questions[0].question_id


async def test_a_question_is_asked_without_an_approval_in_plan_mode_too() -> None:
    broker = QuestionBroker()
    desk = Desk(Turn(ask()), Turn(ContentDelta("Red it is.")))
    with_tools(desk, ask_user(broker, desk.memory.emit))
    desk.modes.set_by_person("plan")
    running = desk.start()
    assert broker.answer(await first_question_id(desk, broker), "red")
    assert await running is RunEnd.COMPLETED
    assert not desk.memory.of(ApprovalRequested)
    assert "red" in str(desk.memory.results[0].content)
    assert [event.answer for event in desk.memory.of(QuestionAnswered)] == ["red"]


async def test_stop_takes_a_question_back() -> None:
    broker = QuestionBroker()
    desk = Desk(Turn(ask()))
    with_tools(desk, ask_user(broker, desk.memory.emit))
    running = desk.start()
    question_id = await first_question_id(desk, broker)
    desk.run.interrupt()
    assert await running is RunEnd.CANCELLED
    assert (broker.open_questions, desk.memory.outcomes) == ((), [Outcome.CANCELLED])
    assert desk.memory.of(QuestionAsked)[0].question_id == question_id
    assert [event.answer for event in desk.memory.of(QuestionAnswered)] == [None]


async def test_the_agent_s_change_of_mode_is_announced_and_holds_one_turn_later() -> None:
    desk = Desk(
        Turn(ToolUse(id="1", name="change_mode", input={"mode": "plan"})),
        Turn(call("2", "edit")),
        Turn(call("3", "edit")),
        Turn(ContentDelta("Done.")),
    )
    with_tools(desk, change_mode(desk.modes), tool("edit"))
    desk.modes.set_by_person("accept-edits")
    assert await desk.execute() is RunEnd.COMPLETED
    assert desk.memory.outcomes == [Outcome.SUCCEEDED, Outcome.SUCCEEDED, Outcome.DENIED]
    kinds = (TurnStarted, ModeChangeRequested, ModeChanged)
    order = [type(event) for event in desk.memory.events if isinstance(event, kinds)]
    assert order == [
        ModeChanged,
        TurnStarted,
        ModeChangeRequested,
        TurnStarted,
        ModeChanged,
        TurnStarted,
        TurnStarted,
    ]
    prompts = [request.config.system_prompt or "" for request in desk.provider.requests]
    assert [PLAN_MODE.addendum in prompt for prompt in prompts] == [False, False, True, True]


async def test_the_person_has_the_last_word_about_the_mode() -> None:
    desk = Desk(
        Turn(ToolUse(id="1", name="change_mode", input={"mode": "plan"})),
        Turn(call("2", "object")),
        Turn(ContentDelta("Done.")),
    )

    async def object_to_it(_word: str) -> str:
        assert desk.modes.requested is not None
        assert desk.modes.is_announced
        desk.modes.set_by_person("accept-edits")
        return "no"

    with_tools(desk, change_mode(desk.modes), tool("object", object_to_it, read_only=True))
    await desk.execute()
    assert (desk.modes.current.name, desk.modes.requested) == ("accept-edits", None)
    assert [event.authority for event in desk.memory.of(ModeChanged)] == ["person"]
    assert desk.permission_policy.mode == ACCEPT_EDITS_MODE


async def test_policies_shape_the_instructions_in_order_and_once() -> None:
    policies = PromptPolicies()
    policies.install(PromptPolicy(id="later", text="Be brief.", precedence=200))
    policies.install(PromptPolicy(id="once", text="Say hello.", scope="next_turn"))
    desk = Desk(Turn(call("1", "look")), Turn(), tools=(tool("look", read_only=True),), policies=policies)
    await desk.execute()
    first, second = (request.config.system_prompt or "" for request in desk.provider.requests)
    assert first.index("Say hello.") < first.index("Be brief.")
    assert "Say hello." not in second
    assert "Be brief." in second


def hello_once() -> PromptPolicies:
    policies = PromptPolicies()
    policies.install(PromptPolicy(id="once", text="Say hello.", scope="next_turn"))
    return policies


async def test_more_instructions_are_read_for_each_turn_and_come_before_those_of_policies_and_the_mode() -> None:
    texts = iter(["Be brief.", "Be long."])

    async def more() -> tuple[str, ...]:
        return (next(texts),)

    desk = Desk(Turn(call("1", "look")), Turn(), tools=(tool("look", read_only=True),), more_instructions=more)
    desk.context.policies.install(PromptPolicy(id="p", text="Say hello."))
    desk.modes.set_by_person("plan")
    assert await desk.execute() is RunEnd.COMPLETED
    others = f"Say hello.\n\n{PLAN_MODE.addendum}"
    assert instructions(desk) == [f"Be brief.\n\n{others}", f"Be long.\n\n{others}"]


async def test_more_instructions_stay_as_they_are_for_the_rest_of_a_paused_answer() -> None:
    texts = iter(["Be brief.", "Be long."])

    async def more() -> tuple[str, ...]:
        return (next(texts),)

    paused = Turn(ContentDelta("Half"), MessageDelta(StopReason.PAUSE_TURN), Done())
    desk = Desk(paused, Turn(call("1", "look")), Turn(), tools=(tool("look", read_only=True),), more_instructions=more)
    assert await desk.execute() is RunEnd.COMPLETED
    assert instructions(desk) == ["Be brief.", "Be brief.", "Be long."]


def instructions(desk: Desk) -> list[str]:
    return [request.config.system_prompt or "" for request in desk.provider.requests]


async def test_a_policy_for_one_turn_outlasts_a_question_that_failed() -> None:
    policies = hello_once()
    desk = Desk(Turn(QuotaExhausted("empty")), Turn(ContentDelta("Hello.")), Turn(), policies=policies)
    for end in (RunEnd.FAILED, RunEnd.COMPLETED, RunEnd.COMPLETED):
        assert await Run(desk.context, desk.settings).execute() is end
    assert instructions(desk) == ["Say hello.", "Say hello.", ""]
    assert policies.list() == ()


async def test_a_policy_for_one_turn_outlasts_a_stop_before_anything_came() -> None:
    policies, wait = hello_once(), Wait(asyncio.Event(), asyncio.Event())
    desk = Desk(Turn(wait), Turn(ContentDelta("Hello.")), policies=policies)
    assert wait.reached is not None
    running = desk.start()
    await wait.reached.wait()
    desk.run.interrupt()
    assert await running is RunEnd.CANCELLED
    assert [policy.id for policy in policies.list()] == ["once"]
    assert await Run(desk.context, desk.settings).execute() is RunEnd.COMPLETED
    assert instructions(desk) == ["Say hello."] * 2
    assert policies.list() == ()


async def test_half_an_answer_uses_up_what_was_added_for_it() -> None:
    policies, wait = hello_once(), Wait(asyncio.Event(), asyncio.Event())
    desk = Desk(Turn(ContentDelta("Hel"), wait), policies=policies)
    assert wait.reached is not None
    running = desk.start()
    await wait.reached.wait()
    desk.run.interrupt()
    assert await running is RunEnd.CANCELLED
    assert desk.memory.messages[-1].text == "Hel"
    assert policies.list() == ()


async def test_an_answer_that_is_being_written_when_stop_comes_uses_it_up_too() -> None:
    policies, writing = hello_once(), asyncio.Event()
    desk = Desk(Turn(ContentDelta("Hello.")), policies=policies)
    remember = desk.memory.commit

    async def commit(*messages: Message) -> None:
        await remember(*messages)
        writing.set()
        await asyncio.Event().wait()

    desk.memory.commit = commit  # type: ignore[method-assign]
    running = desk.start()
    await writing.wait()
    desk.run.interrupt()
    assert await running is RunEnd.CANCELLED
    assert desk.memory.messages[-1].text == "Hello."
    assert policies.list() == ()


async def test_one_that_was_replaced_while_the_model_wrote_waits_for_its_own_turn() -> None:
    policies = hello_once()
    wait = Wait(asyncio.Event(), asyncio.Event())
    desk = Desk(Turn(wait, call("1", "look")), Turn(), tools=(tool("look", read_only=True),), policies=policies)
    assert wait.reached is not None
    running = desk.start()
    await wait.reached.wait()
    policies.remove("once")
    policies.install(PromptPolicy(id="once", text="Say goodbye.", scope="next_turn"))
    wait.until.set()
    assert await running is RunEnd.COMPLETED
    assert instructions(desk) == ["Say hello.", "Say goodbye."]
    assert policies.list() == ()


async def test_a_stubborn_guard_does_not_keep_a_run_alive() -> None:
    async def never_enough(moment: GuardMoment) -> GuardVerdict:
        return GuardContinue(f"more, {moment.iteration}")

    guards = Guards((Guard("more", never_enough, 2),))
    desk = Desk(Turn(), Turn(), Turn(), guards=guards, limits=Limits(turns=50))
    assert await desk.execute() is RunEnd.COMPLETED
    desk.provider.assert_finished()
    assert [event.iteration for event in desk.memory.of(ContinuationInjected)] == [1, 2]
    assert [event.guard_name for event in desk.memory.of(GuardAborted)] == ["more"]
    injected = [message.text for message in desk.memory.messages if message.injected_by == "more"]
    assert injected == ["more, 0", "more, 1"]
    assert guards.list() == ()


async def test_stop_goes_through_a_guard_that_thinks() -> None:
    begun = asyncio.Event()

    async def think(_moment: GuardMoment) -> None:
        begun.set()
        await asyncio.Event().wait()

    desk = Desk(Turn(ContentDelta("Done.")), guards=Guards((Guard("slow", think, 1),)))
    running = desk.start()
    await begun.wait()
    desk.run.interrupt()
    assert await running is RunEnd.CANCELLED
    assert desk.memory.messages[-1].text == "Done."


async def test_a_message_that_waits_is_delivered_after_the_results_of_its_turn() -> None:
    queue = SteeringQueue()
    message, later = Message.user("Look left too."), Message.user("And then?")

    async def work(_word: str) -> str:
        queue.add(message)
        queue.add(later, "idle")
        return "seen"

    desk = Desk(
        Turn(call("1", "look")), Turn(ContentDelta("Done.")), tools=(tool("look", work, read_only=True),), queue=queue
    )
    assert await desk.execute() is RunEnd.COMPLETED
    assert [message.text for message in desk.provider.requests[1].messages[-1:]] == ["Look left too."]
    assert [event.message_id for event in desk.memory.of(UserMessageDelivered)] == [message.id]
    assert [entry.message for entry in queue.entries] == [later]
