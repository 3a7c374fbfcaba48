"""What happens between two turns."""

import asyncio
from dataclasses import replace

import pytest

from desktop_agent.agent.guards import Guards
from desktop_agent.agent.prompt_policies import PromptPolicies
from desktop_agent.agent.run import Run
from desktop_agent.agent.steering_queue import SteeringQueue
from desktop_agent.providers.provider import Provider
from desktop_agent.types.blocks import Summary
from desktop_agent.types.engine_events import (
    ContextCompacted,
    ContinuationInjected,
    CostUpdated,
    ErrorOccurred,
    GuardAborted,
    LimitReached,
    ModeChanged,
    ModeChangeRequested,
    PolicyApplied,
    RunEnd,
    ToolCallPending,
    TurnStarted,
    UserMessageDelivered,
    UserMessageReturned,
)
from desktop_agent.types.errors import ContextLengthExceeded, WrongUse
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.policies import (
    Guard,
    GuardAbort,
    GuardContinue,
    GuardPass,
    GuardStop,
    HookDeny,
    HookEdit,
    Hooks,
    Limits,
    PromptPolicy,
    UserPromptSubmit,
)
from desktop_agent.types.provider_events import ContentDelta, Done, MessageDelta, StopReason, Usage, UsageUpdate
from desktop_agent.types.providers import Capabilities, ModelInfo
from tests.fakes.agent_run import Desk, call, tool
from tests.fakes.scripted_provider import Expect, Turn, Wait
from tests.frame.patience import PATIENCE


def prompts(desk: Desk) -> list[str]:
    return [message.text for message in desk.memory.messages if message.role is Role.USER]


class TestPrompts:
    async def test_a_hook_that_refuses_hands_the_prompt_back_and_nothing_is_asked(self) -> None:
        async def refuse(_moment: UserPromptSubmit) -> HookDeny:
            return HookDeny("it holds a password")

        desk = Desk(hooks=Hooks((refuse,)))
        prompt = Message.user("my password is x")
        assert await desk.execute(prompt) is RunEnd.ABORTED
        assert [event.message_id for event in desk.memory.of(UserMessageReturned)] == [prompt.id]
        assert "it holds a password" in desk.memory.of(ErrorOccurred)[0].message
        assert desk.provider.requests == []
        assert prompts(desk) == ["go"]

    async def test_a_hook_may_change_the_prompt_and_sees_what_was_said_before(self) -> None:
        histories = []

        async def change(moment: UserPromptSubmit) -> HookEdit:
            histories.append([message.text for message in moment.history])
            return HookEdit(prompt=moment.prompt.model_copy(update={"blocks": Message.user("changed").blocks}))

        desk = Desk(Turn(ContentDelta("ok")), hooks=Hooks((change,)))
        prompt = Message.user("as written")
        assert await desk.execute(prompt) is RunEnd.COMPLETED
        assert desk.memory.messages[1].id == prompt.id
        assert (prompts(desk), histories) == (["go", "changed"], [["go"]])

    @pytest.mark.parametrize("begun", [True, False], ids=["while it is judged", "before"])
    async def test_a_prompt_that_hooks_still_judge_at_stop_is_kept_as_they_decide(self, begun: bool) -> None:
        reached, stopped = asyncio.Event(), asyncio.Event()

        async def ponder(moment: UserPromptSubmit) -> HookEdit:
            reached.set()
            await stopped.wait()
            return HookEdit(prompt=moment.prompt.model_copy(update={"blocks": Message.user("decided").blocks}))

        desk = Desk(hooks=Hooks((ponder,)))
        running = asyncio.create_task(desk.run.execute(Message.user("hm")))
        if begun:
            await reached.wait()
        else:
            await asyncio.sleep(0)
        desk.run.interrupt()
        stopped.set()
        assert await running is RunEnd.CANCELLED
        assert prompts(desk) == ["go", "decided"]
        assert (desk.memory.of(UserMessageReturned), desk.memory.of(ErrorOccurred)) == ([], [])
        assert desk.provider.requests == []

    @pytest.mark.parametrize("denies", [True, False], ids=["deny it", "never decide"])
    async def test_a_prompt_that_hooks_do_not_let_pass_after_stop_was_not_sent(
        self, denies: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        reached, stopped = asyncio.Event(), asyncio.Event()

        async def ponder(_moment: UserPromptSubmit) -> HookDeny:
            reached.set()
            await (stopped if denies else asyncio.Event()).wait()
            return HookDeny("it holds a password")

        monkeypatch.setattr("desktop_agent.agent.turn_boundary.HOOKS_GRACE", PATIENCE if denies else 0.01)
        desk = Desk(hooks=Hooks((ponder,)))
        running = asyncio.create_task(desk.run.execute(Message.user("hm")))
        await reached.wait()
        desk.run.interrupt()
        stopped.set()
        assert await running is RunEnd.CANCELLED
        # Stop is no error: its session hands it back.
        assert (desk.memory.of(UserMessageReturned), desk.memory.of(ErrorOccurred)) == ([], [])
        assert prompts(desk) == ["go"]


class TestQueue:
    async def test_a_message_comes_in_after_the_results_of_the_turn_that_runs(self) -> None:
        queue = SteeringQueue()

        async def work(_word: str) -> str:
            queue.add(Message.user("and mind the gap"))
            queue.add(Message.user("afterwards"), "idle")
            return "done"

        desk = Desk(
            Turn(call("1", "look")), Turn(ContentDelta("ok")), tools=(tool("look", work, read_only=True),), queue=queue
        )
        assert await desk.execute() is RunEnd.COMPLETED
        assert [message.role for message in desk.memory.messages] == [
            Role.USER, Role.ASSISTANT, Role.TOOL, Role.USER, Role.ASSISTANT,
        ]  # fmt: skip
        assert len(desk.memory.of(UserMessageDelivered)) == 1
        assert [entry.message.text for entry in queue.entries] == ["afterwards"]

    async def test_one_that_comes_with_the_last_words_is_answered_in_the_same_run(self) -> None:
        queue = SteeringQueue()
        gate, reached = asyncio.Event(), asyncio.Event()
        desk = Desk(Turn(ContentDelta("a"), Wait(gate, reached)), Turn(ContentDelta("b")), queue=queue)
        running = desk.start()
        await reached.wait()
        queue.add(Message.user("wait"))
        gate.set()
        assert await running is RunEnd.COMPLETED
        assert prompts(desk) == ["go", "wait"]
        desk.provider.assert_finished()

    async def test_one_that_was_taken_back_while_a_hook_looked_is_not_delivered(self) -> None:
        queue = SteeringQueue()

        async def take_back(moment: UserPromptSubmit) -> None:
            if moment.prompt.text == "never mind":
                queue.remove(moment.prompt.id)

        queue.add(Message.user("never mind"))
        desk = Desk(Turn(ContentDelta("ok")), hooks=Hooks((take_back,)), queue=queue)
        assert await desk.execute() is RunEnd.COMPLETED
        assert prompts(desk) == ["go"]


class TestGuards:
    async def test_continue_injects_a_prompt_of_the_guards_own_until_its_iterations_are_used_up(self) -> None:
        async def more(_moment) -> GuardContinue:
            return GuardContinue("Are you sure?")

        guards = Guards((Guard("sure", more, max_iterations=2),))
        hooks_saw = []

        async def look(moment: UserPromptSubmit) -> None:
            hooks_saw.append(moment.prompt.text)

        desk = Desk(*(Turn(ContentDelta("yes")) for _ in range(3)), guards=guards, hooks=Hooks((look,)))
        assert await desk.execute() is RunEnd.COMPLETED
        assert prompts(desk) == ["go", "Are you sure?", "Are you sure?"]
        assert [message.injected_by for message in desk.memory.messages if message.role is Role.USER] == [
            None, "sure", "sure",
        ]  # fmt: skip
        assert [event.iteration for event in desk.memory.of(ContinuationInjected)] == [1, 2]
        assert (len(desk.memory.of(GuardAborted)), guards.list(), hooks_saw) == (1, (), [])

    @pytest.mark.parametrize(
        ("verdict", "end"), [(GuardStop(), RunEnd.COMPLETED), (GuardAbort("enough"), RunEnd.ABORTED)]
    )
    async def test_after_a_turn_a_guard_may_end_the_run_although_the_model_would_go_on(self, verdict, end) -> None:
        async def decide(_moment):
            return verdict

        desk = Desk(
            Turn(call("1", "look")),
            tools=(tool("look", read_only=True),),
            guards=Guards((Guard("g", decide, 1, at="turn_end"),)),
        )
        assert await desk.execute() is end
        assert len(desk.memory.results) == 1

    async def test_stop_at_the_end_of_a_turn_is_not_outvoted_at_the_end_of_the_run(self) -> None:
        async def stop(_moment) -> GuardStop:
            return GuardStop()

        async def more(_moment) -> GuardContinue:
            return GuardContinue("go on")

        guards = Guards((Guard("stop", stop, 1, at="turn_end"), Guard("more", more, 9)))
        desk = Desk(Turn(ContentDelta("done")), guards=guards)
        assert await desk.execute() is RunEnd.COMPLETED
        assert prompts(desk) == ["go"]

    async def test_a_guard_without_an_opinion_changes_nothing(self) -> None:
        async def look(_moment) -> GuardPass:
            return GuardPass()

        desk = Desk(Turn(ContentDelta("done")), guards=Guards((Guard("g", look, 1),)))
        assert await desk.execute() is RunEnd.COMPLETED


class TestInstructions:
    async def test_policies_and_the_mode_are_added_to_the_instructions_in_their_order(self) -> None:
        events = []
        policies = PromptPolicies(emit=events.append)
        policies.install(PromptPolicy(id="late", text="Be kind.", precedence=200))
        policies.install(PromptPolicy(id="once", text="Be quick.", scope="next_turn", precedence=1))
        desk = Desk(
            Turn(call("1", "look")), Turn(ContentDelta("ok")), tools=(tool("look", read_only=True),), policies=policies
        )
        desk.modes.set_by_person("plan")
        assert await desk.execute() is RunEnd.COMPLETED
        first, second = (request.config.system_prompt or "" for request in desk.provider.requests)
        plan = desk.modes.current.addendum
        assert first == f"Be quick.\n\nBe kind.\n\n{plan}"
        assert second == f"Be kind.\n\n{plan}"
        assert [event.ids for event in events if isinstance(event, PolicyApplied)] == [("once", "late"), ("late",)]

    async def test_what_the_agent_asks_for_is_announced_at_one_edge_and_holds_from_the_next(self) -> None:
        desk = Desk(*(Turn(call(str(n), "look")) for n in range(2)), Turn(), tools=(tool("look", read_only=True),))
        desk.modes.request_by_agent("plan")
        assert await desk.execute() is RunEnd.COMPLETED
        kinds = [
            type(event)
            for event in desk.memory.events
            if isinstance(event, TurnStarted | ModeChanged | ModeChangeRequested)
        ]
        assert kinds == [ModeChangeRequested, TurnStarted, ModeChanged, TurnStarted, TurnStarted]


class TestLimits:
    @pytest.mark.parametrize(
        ("limits", "which"),
        [
            (Limits(turns=2), "turns"),
            (Limits(tool_iterations=2), "tool rounds"),
            (Limits(tokens=20), "tokens"),
            (Limits(cost=0.02), "cost"),
            (Limits(characters=300), "what one run may pile up in memory"),
        ],
    )
    async def test_each_ends_the_run_between_two_turns_and_says_which(self, limits: Limits, which: str) -> None:
        used = UsageUpdate(Usage(total_tokens=10, cost=0.01))
        desk = Desk(
            *(Turn(call(str(n), "look", str(n)), used) for n in range(2)),
            tools=(tool("look", read_only=True),),
            limits=limits,
        )
        assert await desk.execute() is RunEnd.LIMIT
        assert [event.which for event in desk.memory.of(LimitReached)] == [which]
        assert len(desk.memory.results) == 2
        desk.provider.assert_finished()

    async def test_what_the_run_costs_is_told_turn_by_turn(self) -> None:
        used = UsageUpdate(Usage(cost=0.25))
        desk = Desk(Turn(call("1", "look"), used), Turn(used), tools=(tool("look", read_only=True),))
        await desk.execute()
        assert [event.cost for event in desk.memory.of(CostUpdated)] == [0.25, 0.5]

    async def test_time_ends_it_in_the_middle_and_closes_what_is_open(self) -> None:
        async def never(_word: str) -> str:
            await asyncio.Event().wait()
            return ""

        desk = Desk(Turn(call("1", "look")), tools=(tool("look", never, read_only=True),), limits=Limits(seconds=0.05))
        assert await desk.execute() is RunEnd.LIMIT
        assert [event.which for event in desk.memory.of(LimitReached)] == ["time"]
        assert [str(outcome) for outcome in desk.memory.outcomes] == ["limit"]

    async def test_an_answer_that_never_ends_is_cut_and_kept_as_interrupted(self) -> None:
        desk = Desk(Turn(*(ContentDelta("x" * 9) for _ in range(100))), limits=Limits(answer_characters=55))
        assert await desk.execute() is RunEnd.LIMIT
        assert [event.which for event in desk.memory.of(LimitReached)] == ["the length of one answer"]
        assert (desk.memory.messages[-1].text, str(desk.memory.messages[-1].state)) == ("x" * 45, "interrupted")


class TestManual:
    async def test_the_run_ends_with_the_calls_and_leaves_them_open(self) -> None:
        desk = Desk(Turn(ContentDelta("Let me look."), call("1", "look")), manual=True)
        assert await desk.execute() is RunEnd.AWAITING_RESULTS
        assert [event.id for event in desk.memory.of(ToolCallPending)] == ["1"]
        assert desk.memory.messages[-1].tool_uses
        assert desk.memory.results == []


SMALL = (ModelInfo("m", capabilities=Capabilities(context_window=1_000)),)


def long_talk(desk: Desk, tokens: int) -> None:
    """A conversation whose last answer read so much."""
    answer = Message.assistant("A long answer.")
    desk.memory.messages[:] = [
        Message.user("first question"),
        answer.model_copy(update={"usage": Usage(input_tokens=tokens, output_tokens=0)}),
        Message.user("and now?"),
    ]


class TestCompaction:
    async def test_a_full_window_is_summarised_before_the_question(self) -> None:
        desk = Desk(
            Turn(Expect("the summary is asked for", lambda request: not request.tools), ContentDelta("In short.")),
            Turn(ContentDelta("Now.")),
            models=SMALL,
        )
        long_talk(desk, 900)
        assert await desk.execute() is RunEnd.COMPLETED
        (event,) = desk.memory.of(ContextCompacted)
        assert (event.summary, event.tokens_before) == ("In short.", 900)
        assert event.first_kept_id == desk.memory.messages[2].id
        sent = desk.provider.requests[1].messages
        assert not any(isinstance(block, Summary) for message in sent for block in message.blocks)
        assert "In short." in sent[0].text
        assert sent[-1].text.endswith("and now?")
        assert len(desk.memory.messages) == 5, "everything that was said is still there"

    async def test_with_room_nothing_is_summarised(self) -> None:
        desk = Desk(Turn(ContentDelta("Now.")), models=SMALL)
        long_talk(desk, 700)
        await desk.execute()
        assert desk.memory.of(ContextCompacted) == []

    async def test_what_its_server_finds_too_long_is_summarised_and_asked_once_more(self) -> None:
        desk = Desk(Turn(ContextLengthExceeded("too long")), Turn(ContentDelta("In short.")), Turn(ContentDelta("ok")))
        long_talk(desk, 10)
        assert await desk.execute() is RunEnd.COMPLETED
        assert len(desk.memory.of(TurnStarted)) == 1

    async def test_when_that_does_not_help_it_is_said(self) -> None:
        desk = Desk(
            Turn(ContextLengthExceeded("too long")), Turn(ContentDelta("In short.")), Turn(ContextLengthExceeded("no"))
        )
        long_talk(desk, 10)
        assert await desk.execute() is RunEnd.FAILED
        assert [event.kind for event in desk.memory.of(ErrorOccurred)] == ["context_length"]
        desk.provider.assert_finished()


async def test_calls_of_a_refused_answer_are_closed_before_a_message_that_waits_comes_in() -> None:
    queue = SteeringQueue()
    gate, reached = asyncio.Event(), asyncio.Event()
    refused = MessageDelta(StopReason.REFUSAL)
    desk = Desk(Turn(call("1", "look"), Wait(gate, reached), refused, Done()), Turn(ContentDelta("ok")), queue=queue)
    running = desk.start()
    await reached.wait()
    queue.add(Message.user("why?"))
    gate.set()
    assert await running is RunEnd.COMPLETED
    assert [str(message.role) for message in desk.memory.messages] == ["user", "assistant", "tool", "user", "assistant"]


async def test_a_message_that_was_changed_while_a_hook_refused_it_is_judged_anew_and_not_handed_back() -> None:
    queue = SteeringQueue()

    async def refuse(moment: UserPromptSubmit) -> HookDeny | None:
        if moment.prompt.text != "rude":
            return None
        queue.edit(moment.prompt.id, Message.user("polite").blocks)
        return HookDeny("rude")

    queue.add(Message.user("rude"))
    desk = Desk(Turn(ContentDelta("ok")), hooks=Hooks((refuse,)), queue=queue)
    assert await desk.execute() is RunEnd.COMPLETED
    assert desk.memory.of(UserMessageReturned) == []
    assert prompts(desk) == ["go", "polite"]


async def test_a_server_that_was_removed_while_a_hook_looked_gets_nothing() -> None:
    queue, is_there = SteeringQueue(), True

    async def remove(_moment: UserPromptSubmit) -> None:
        nonlocal is_there
        is_there = False

    async def opened(_model: str) -> Provider:
        if is_there:
            return desk.provider
        raise WrongUse("This server was removed.")

    queue.add(Message.user("for nobody"))
    desk = Desk(Turn(ContentDelta("ok")), hooks=Hooks((remove,)), queue=queue)
    desk.run = Run(replace(desk.context, open_provider=opened), desk.settings)
    assert await desk.execute() is RunEnd.FAILED
    assert desk.provider.requests == []
    assert prompts(desk) == ["go", "for nobody"]


async def test_where_a_limit_was_reached_no_summary_is_paid_for() -> None:
    used = UsageUpdate(Usage(input_tokens=900, output_tokens=0, total_tokens=900))
    desk = Desk(
        Turn(call("1", "look"), used), tools=(tool("look", read_only=True),), models=SMALL, limits=Limits(tokens=500)
    )
    assert await desk.execute() is RunEnd.LIMIT
    assert len(desk.provider.requests) == 1


@pytest.mark.parametrize("reason", [StopReason.PAUSE_TURN, StopReason.CONTINUATION])
async def test_nothing_comes_between_an_answer_that_pauses_and_the_rest_of_it(reason: StopReason) -> None:
    queue, policies = SteeringQueue(), PromptPolicies()
    policies.install(PromptPolicy(id="once", text="Be quick.", scope="next_turn"))
    gone, arrived = asyncio.Event(), asyncio.Event()
    desk = Desk(
        Turn(ContentDelta("half"), Wait(gone, arrived), MessageDelta(reason), Done()),
        Turn(ContentDelta(" and half")),
        Turn(ContentDelta("answer")),
        queue=queue,
        policies=policies,
    )
    running = desk.start()
    await arrived.wait()
    queue.add(Message.user("steer"))
    desk.modes.request_by_agent("plan")
    gone.set()
    assert await running is RunEnd.COMPLETED
    texts = [message.text for message in desk.memory.messages]
    assert texts == ["go", "half", " and half", "steer", "answer"]
    first, second, third = (request.config.system_prompt for request in desk.provider.requests)
    assert first == second == "Be quick."
    assert third is None
    assert len(desk.memory.of(ModeChangeRequested)) == 1
