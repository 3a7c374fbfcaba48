"""How answers end, and how the run goes on then."""

import pytest

from desktop_agent.agent.agent_loop import MAX_PAUSES
from desktop_agent.agent.guards import Guards
from desktop_agent.types.blocks import Outcome, Text
from desktop_agent.types.engine_events import (
    CostUpdated,
    LimitReached,
    RetryScheduled,
    RunEnd,
    ToolStarted,
    TurnStarted,
)
from desktop_agent.types.errors import InvalidRequest, Sentence
from desktop_agent.types.messages import Message, MessageState, Role
from desktop_agent.types.policies import Guard, GuardContinue, GuardMoment, GuardVerdict
from desktop_agent.types.provider_events import (
    AnswerNamed,
    AnswerStarted,
    ContentDelta,
    Done,
    MessageDelta,
    Origin,
    StopReason,
    ThinkingDelta,
    Usage,
    UsageUpdate,
)
from tests.fakes.agent_run import Desk, call, tool
from tests.fakes.scripted_provider import Turn

PAUSE = MessageDelta(StopReason.PAUSE_TURN)
MISWRITTEN = MessageDelta(StopReason.MALFORMED_TOOL_CALL, "MALFORMED_FUNCTION_CALL", {"finishMessage": "print("})
WORDS = Sentence("Temperature was left out.")


def used(tokens: int) -> UsageUpdate:
    return UsageUpdate(Usage(input_tokens=tokens))


async def test_where_it_came_from_and_what_was_adjusted_stay_with_the_answer() -> None:
    origin = Origin(provider="p", account="a", prefix="x")
    desk = Desk(Turn(AnswerStarted(origin, (WORDS, WORDS)), AnswerNamed("r1"), ContentDelta("Hi")))
    await desk.execute()
    answer = desk.memory.messages[-1]
    assert answer.origin == origin.model_copy(update={"response_id": "r1"})
    assert answer.adjustments == (WORDS,)
    assert desk.memory.of(AnswerStarted)[0].adjustments == (WORDS, WORDS)


@pytest.mark.parametrize("reason", [StopReason.PAUSE_TURN, StopReason.CONTINUATION])
async def test_a_server_that_only_ever_pauses_is_not_asked_for_ever(reason: StopReason) -> None:
    turns = [Turn(ContentDelta("…"), MessageDelta(reason), Done()) for _ in range(MAX_PAUSES + 1)]
    desk = Desk(*turns, iterations=2)
    assert await desk.execute() is RunEnd.LIMIT
    assert len(desk.provider.requests) == MAX_PAUSES + 1
    assert "pauses" in desk.memory.of(LimitReached)[0].which


async def test_pauses_are_no_tool_rounds_and_are_counted_in_a_row() -> None:
    pauses = [Turn(ContentDelta("…"), PAUSE, Done()) for _ in range(MAX_PAUSES)]
    look = tool("look", read_only=True)
    desk = Desk(*pauses, Turn(call("1", "look")), *pauses, Turn(ContentDelta("Done.")), tools=(look,), iterations=2)
    assert await desk.execute() is RunEnd.COMPLETED
    desk.provider.assert_finished()


async def test_a_whole_answer_ends_a_row_of_pauses() -> None:
    async def once_more(_moment: GuardMoment) -> GuardVerdict:
        return GuardContinue("And the rest?")

    pauses = [Turn(ContentDelta("…"), PAUSE, Done()) for _ in range(MAX_PAUSES)]
    guards = Guards((Guard("more", once_more, 1),))
    desk = Desk(*pauses, Turn(ContentDelta("a")), *pauses, Turn(ContentDelta("b")), guards=guards)
    assert await desk.execute() is RunEnd.COMPLETED
    desk.provider.assert_finished()


async def test_a_pause_without_tools_ends_well() -> None:
    desk = Desk(Turn(ContentDelta("a"), PAUSE, Done()), Turn(ContentDelta("b")))
    assert await desk.execute() is RunEnd.COMPLETED
    last = desk.provider.requests[1].messages[-1]
    assert (last.role, last.text, last.state) == (Role.ASSISTANT, "a", MessageState.COMPLETE)


async def test_what_was_paid_for_no_answer_is_reported_too() -> None:
    desk = Desk(Turn(UsageUpdate(Usage(cost=0.25)), InvalidRequest("no")))
    assert await desk.execute() is RunEnd.FAILED
    assert desk.memory.of(CostUpdated) == [CostUpdated(0.25)]


class TestMiswritten:
    """A call that its own server could not read."""

    async def test_it_is_asked_for_once_more_and_what_it_used_counts(self) -> None:
        desk = Desk(Turn(MISWRITTEN, used(5), Done()), Turn(ContentDelta("Hi"), used(7)))
        assert await desk.execute() is RunEnd.COMPLETED
        (retry,) = desk.memory.of(RetryScheduled)
        assert retry.after == 0
        assert len(desk.memory.of(MessageDelta)) == len(desk.memory.of(Done)) == len(desk.memory.of(TurnStarted)) == 1
        assert desk.memory.of(UsageUpdate) == [used(5), used(7)]
        answer = desk.memory.messages[-1]
        assert (answer.text, answer.state, answer.stop_reason) == ("Hi", MessageState.COMPLETE, StopReason.END_TURN)
        assert answer.usage == Usage(input_tokens=12)

    async def test_only_once(self) -> None:
        desk = Desk(*(Turn(MISWRITTEN, used(5), Done()) for _ in range(2)))
        assert await desk.execute() is RunEnd.COMPLETED
        assert desk.memory.of(MessageDelta) == [MISWRITTEN]
        answer = desk.memory.messages[-1]
        assert (answer.state, answer.stop_details) == (MessageState.INTERRUPTED, MISWRITTEN.details)
        assert answer.usage == Usage(input_tokens=10)
        desk.provider.assert_finished()

    @pytest.mark.parametrize("delta", [ContentDelta("Let me"), ThinkingDelta("Hm")])
    async def test_not_after_anything_was_said(self, delta: ContentDelta | ThinkingDelta) -> None:
        desk = Desk(Turn(delta, MISWRITTEN, Done()))
        assert await desk.execute() is RunEnd.COMPLETED
        assert not desk.memory.of(RetryScheduled)
        assert desk.memory.messages[-1].state is MessageState.INTERRUPTED


@pytest.mark.parametrize(
    ("reason", "end", "outcome"),
    [
        (StopReason.REFUSAL, RunEnd.COMPLETED, Outcome.CANCELLED),
        (StopReason.CONTENT_FILTER, RunEnd.COMPLETED, Outcome.CANCELLED),
        (StopReason.CONTEXT_WINDOW_EXCEEDED, RunEnd.LIMIT, Outcome.LIMIT),
        (StopReason.MAX_TOKENS, RunEnd.LIMIT, Outcome.LIMIT),
    ],
)
async def test_calls_of_such_answers_are_answered_but_not_acted_upon(
    reason: StopReason, end: RunEnd, outcome: Outcome
) -> None:
    desk = Desk(Turn(call("1", "look"), MessageDelta(reason), Done()), tools=(tool("look", read_only=True),))
    assert await desk.execute() is end
    assert desk.memory.outcomes == [outcome]
    assert not desk.memory.of(ToolStarted)


@pytest.mark.parametrize(
    "message",
    [
        Message.system("Be brief."),
        Message(role=Role.ASSISTANT, blocks=(Text(text="Ha"),), state=MessageState.INTERRUPTED),
    ],
)
async def test_a_conversation_in_which_nothing_was_asked_reaches_no_server(message: Message) -> None:
    desk = Desk()
    desk.memory.messages[:] = [message]
    assert await desk.execute() is RunEnd.FAILED
    assert "nothing to answer" in str(desk.run.error)
    assert desk.provider.requests == []


async def test_an_answer_without_anything_in_it_is_not_sent() -> None:
    desk = Desk(Turn(ContentDelta("Hi")))
    desk.memory.messages = [Message.user("go"), Message(role=Role.ASSISTANT)]
    await desk.execute()
    assert [message.blocks for message in desk.provider.requests[0].messages] == [(Text(text="go"),)]
