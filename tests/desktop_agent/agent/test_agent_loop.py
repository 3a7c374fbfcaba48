"""The agent loop: answers, tool calls, Stop, retries and limits."""

import asyncio
from dataclasses import replace

import pytest

from desktop_agent.agent.run import Run
from desktop_agent.types.blocks import Base64Source, Image, Outcome, StoredSource, Text, ToolUse
from desktop_agent.types.engine_events import (
    ApprovalRequested,
    ApprovalResolved,
    ErrorOccurred,
    LimitReached,
    RetryScheduled,
    RunEnd,
    ToolCallPending,
    ToolFinished,
    ToolStarted,
    TurnStarted,
)
from desktop_agent.types.errors import ConnectionFailed, ImageRefused, QuotaExhausted, RateLimited
from desktop_agent.types.messages import Message, MessageState, Role
from desktop_agent.types.provider_events import ContentDelta, Done, MessageDelta, StopReason
from desktop_agent.types.tool_calls import AllowForConversation, AllowOnce, Deny, DenyAndStop
from tests.fakes.agent_run import Desk, call, tool
from tests.fakes.scripted_provider import Turn, Wait


async def test_an_answer_is_streamed_and_committed() -> None:
    desk = Desk(Turn(ContentDelta("Hel"), ContentDelta("lo")))
    assert await desk.execute() is RunEnd.COMPLETED
    assert desk.memory.messages[-1].text == "Hello"
    assert desk.memory.messages[-1].state is MessageState.COMPLETE
    assert desk.provider.requests[0].messages[0].text == "go"
    desk.provider.assert_finished()


async def test_a_reading_call_runs_unasked_and_its_result_goes_back() -> None:
    desk = Desk(Turn(call("1", "look", "sea")), Turn(ContentDelta("I saw it.")), tools=(tool("look", read_only=True),))
    assert await desk.execute() is RunEnd.COMPLETED
    assert [message.role for message in desk.memory.messages] == [Role.USER, Role.ASSISTANT, Role.TOOL, Role.ASSISTANT]
    assert desk.memory.results[0].content == (Text(text="sea"),)
    assert desk.provider.requests[1].messages[-1].role is Role.TOOL
    assert desk.provider.requests[1].tools  # offered again: more than one round is possible
    assert not desk.memory.of(ApprovalRequested)


async def test_events_of_a_call_come_in_their_order_and_the_start_is_journalled_first() -> None:
    desk = Desk(Turn(call("1", "act")), Turn(), tools=(tool("act"),))
    running = desk.start()
    await desk.approvals_open()
    desk.decide(AllowOnce())
    await running
    kinds = (ToolUse, ToolCallPending, ApprovalRequested, ApprovalResolved, ToolStarted, ToolFinished)
    positions = [desk.memory.events.index(desk.memory.of(kind)[0]) for kind in kinds]
    assert positions == sorted(positions)
    started = desk.memory.events.index(desk.memory.of(ToolStarted)[0])
    assert any(started < settled <= positions[-1] for settled in desk.memory.settled)


async def test_edited_arguments_are_what_runs() -> None:
    desk = Desk(Turn(call("1", "act", "old")), Turn(), tools=(tool("act"),))
    running = desk.start()
    await desk.approvals_open()
    desk.decide(AllowOnce(edited_input={"word": "new"}))
    await running
    assert desk.memory.of(ToolStarted)[0].input == {"word": "new"}
    assert desk.memory.of(ApprovalResolved)[0].effective_input == {"word": "new"}
    note = 'The person changed the arguments of this call before it ran. It ran with {"word": "new"}'
    assert desk.memory.results[0].content == (Text(text=f"{note}\n\nnew"),)


async def test_a_denial_reaches_the_model_with_the_persons_words() -> None:
    desk = Desk(Turn(call("1", "act")), Turn(ContentDelta("All right.")), tools=(tool("act"),))
    running = desk.start()
    await desk.approvals_open()
    desk.decide(Deny(message="not on a Sunday"))
    assert await running is RunEnd.COMPLETED
    (result,) = desk.memory.results
    assert result.outcome is Outcome.DENIED
    assert "not on a Sunday" in str(result.content)
    assert not desk.memory.of(ToolStarted)


async def test_deny_and_stop_ends_the_run_and_answers_every_call() -> None:
    desk = Desk(
        Turn(call("1", "act"), call("2", "act"), call("3", "look")), tools=(tool("act"), tool("look", read_only=True))
    )
    running = desk.start()
    await desk.approvals_open(2)
    desk.decide(DenyAndStop())
    assert await running is RunEnd.CANCELLED
    assert desk.memory.outcomes == [Outcome.DENIED, Outcome.CANCELLED, Outcome.CANCELLED]
    assert not desk.approvals.open_approvals
    desk.provider.assert_finished()


async def test_all_cards_of_a_turn_appear_together_and_allowing_for_the_conversation_covers_them() -> None:
    desk = Desk(Turn(call("1", "act"), call("2", "act", "y")), Turn(call("3", "act")), Turn(), tools=(tool("act"),))
    running = desk.start()
    await desk.approvals_open(2)
    desk.decide(AllowForConversation())
    assert await running is RunEnd.COMPLETED
    assert desk.memory.outcomes == [Outcome.SUCCEEDED] * 3
    assert len(desk.memory.of(ApprovalRequested)) == 2


async def test_reads_run_together_and_a_mutating_call_alone() -> None:
    now_running: set[str] = set()
    groups: list[tuple[str, ...]] = []

    async def work(word: str) -> str:
        now_running.add(word)
        await asyncio.sleep(0.01)
        groups.append(tuple(sorted(now_running)))
        now_running.discard(word)
        return word

    desk = Desk(
        Turn(call("1", "look", "a"), call("2", "look", "b"), call("3", "act", "c"), call("4", "look", "d")),
        Turn(),
        tools=(tool("look", work, read_only=True), tool("act", work)),
    )
    running = desk.start()
    await desk.approvals_open()
    desk.decide(AllowOnce())
    await running
    assert groups[0] == ("a", "b")
    assert ("c",) in groups
    assert groups[-1] == ("d",)
    assert [result.tool_use_id for result in desk.memory.results] == ["1", "2", "3", "4"]


async def test_bad_calls_are_failed_results_and_the_rest_runs() -> None:
    malformed = ToolUse(id="1", name="look", malformed='{"word": ')
    desk = Desk(
        Turn(malformed, call("2", "nothing"), ToolUse(id="3", name="look", input={"word": 5}), call("4", "look")),
        Turn(),
        tools=(tool("look", read_only=True),),
    )
    assert await desk.execute() is RunEnd.COMPLETED
    assert desk.memory.outcomes == [Outcome.FAILED, Outcome.FAILED, Outcome.FAILED, Outcome.SUCCEEDED]


async def test_a_raising_tool_and_a_slow_one_leave_the_run_alive() -> None:
    async def burst(word: str) -> str:
        raise ZeroDivisionError(word)

    async def sleep(word: str) -> str:
        await asyncio.sleep(60)
        return word

    tools = (tool("burst", burst, read_only=True), tool("sleep", sleep, read_only=True, timeout=0.01))
    desk = Desk(Turn(call("1", "burst"), call("2", "sleep")), Turn(ContentDelta("ok")), tools=tools)
    assert await desk.execute() is RunEnd.COMPLETED
    assert desk.memory.outcomes == [Outcome.FAILED, Outcome.TIMED_OUT]


async def test_nothing_runs_when_the_start_cannot_be_journalled() -> None:
    ran: list[str] = []

    async def work(word: str) -> str:
        ran.append(word)
        return word

    desk = Desk(Turn(call("1", "look")), Turn(), tools=(tool("look", work, read_only=True),))
    desk.memory.refuse = True
    await desk.execute()
    assert desk.memory.outcomes == [Outcome.FAILED]
    assert ran == []


class TestStop:
    """Stop at each point where a run waits."""

    async def test_while_the_text_streams(self) -> None:
        gate, reached = asyncio.Event(), asyncio.Event()
        desk = Desk(Turn(ContentDelta("Half"), Wait(gate, reached), ContentDelta("never")))
        running = desk.start()
        await reached.wait()
        desk.run.interrupt()
        assert await running is RunEnd.CANCELLED
        last = desk.memory.messages[-1]
        assert (last.text, last.state, last.stop_reason) == ("Half", MessageState.INTERRUPTED, StopReason.CANCELLED)
        assert desk.provider.closed_early == 1

    async def test_before_the_first_word(self) -> None:
        gate, reached = asyncio.Event(), asyncio.Event()
        desk = Desk(Turn(Wait(gate, reached)))
        running = desk.start()
        await reached.wait()
        desk.run.interrupt()
        assert await running is RunEnd.CANCELLED
        assert len(desk.memory.messages) == 1

    async def test_before_it_began(self) -> None:
        desk = Desk(Turn(ContentDelta("never")))
        desk.run.interrupt()
        assert await desk.execute() is RunEnd.CANCELLED
        assert desk.provider.requests == []

    async def test_while_a_card_waits(self) -> None:
        desk = Desk(Turn(call("1", "act")), tools=(tool("act"),))
        running = desk.start()
        await desk.approvals_open()
        desk.run.interrupt()
        assert await running is RunEnd.CANCELLED
        assert desk.memory.outcomes == [Outcome.CANCELLED]
        assert not desk.memory.of(ToolStarted)
        assert not desk.approvals.open_approvals

    async def test_while_a_tool_runs(self) -> None:
        inside, ended = asyncio.Event(), asyncio.Event()

        async def work(word: str) -> str:
            inside.set()
            try:
                await asyncio.sleep(60)
            finally:
                ended.set()
            return word

        desk = Desk(Turn(call("1", "look"), call("2", "act")), tools=(tool("look", work, read_only=True), tool("act")))
        running = desk.start()
        await inside.wait()
        desk.run.interrupt()
        assert await running is RunEnd.CANCELLED
        assert ended.is_set()
        assert desk.memory.outcomes == [Outcome.CANCELLED, Outcome.CANCELLED]

    async def test_a_tool_that_will_not_end_is_left_behind_and_its_late_words_count_for_nothing(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("desktop_agent.agent.run.STOP_GRACE", 0.02)
        inside, gate = asyncio.Event(), asyncio.Event()

        async def stubborn(word: str) -> str:
            inside.set()
            while not gate.is_set():
                try:
                    await gate.wait()
                except asyncio.CancelledError:
                    continue
            return "late"

        desk = Desk(Turn(call("1", "look")), tools=(tool("look", stubborn, read_only=True),))
        running = desk.start()
        await inside.wait()
        desk.run.interrupt()
        assert await running is RunEnd.CANCELLED
        assert desk.memory.outcomes == [Outcome.CANCELLED]
        gate.set()
        await asyncio.sleep(0.01)
        assert len(desk.memory.of(ToolFinished)) == 1

    async def test_while_waiting_to_try_again(self) -> None:
        desk = Desk(Turn(RateLimited("slow", retry_after=60)))
        running = desk.start()
        while not desk.memory.of(RetryScheduled):
            await asyncio.sleep(0.001)
        desk.run.interrupt()
        assert await running is RunEnd.CANCELLED

    async def test_a_second_stop_changes_nothing(self) -> None:
        gate, reached = asyncio.Event(), asyncio.Event()
        desk = Desk(Turn(ContentDelta("a"), Wait(gate, reached)))
        running = desk.start()
        await reached.wait()
        desk.run.interrupt()
        desk.run.interrupt()
        assert await running is RunEnd.CANCELLED
        desk.run.interrupt()

    async def test_when_the_program_closes(self) -> None:
        gate, reached = asyncio.Event(), asyncio.Event()
        desk = Desk(Turn(ContentDelta("Half"), Wait(gate, reached)))
        running = asyncio.create_task(desk.run.execute())
        await reached.wait()
        running.cancel()
        assert await running is RunEnd.CANCELLED
        assert desk.memory.messages[-1].text == "Half"


class TestRetry:
    """A request is sent again only before the first content."""

    async def test_a_refused_connection_is_tried_again(self) -> None:
        desk = Desk(Turn(ConnectionFailed("nobody")), Turn(ContentDelta("hi")))
        assert await desk.execute() is RunEnd.COMPLETED
        assert len(desk.memory.of(RetryScheduled)) == 1
        assert len(desk.memory.of(TurnStarted)) == 1

    async def test_it_gives_up_and_says_so(self) -> None:
        desk = Desk(*(Turn(ConnectionFailed("nobody")) for _ in range(3)))
        assert await desk.execute() is RunEnd.FAILED
        assert len(desk.memory.of(RetryScheduled)) == 2
        assert desk.memory.of(ErrorOccurred)[0].kind == "connection"
        desk.provider.assert_finished()

    async def test_what_waiting_cannot_mend_is_not_tried_again(self) -> None:
        desk = Desk(Turn(QuotaExhausted("no credit", status=429)))
        assert await desk.execute() is RunEnd.FAILED
        assert not desk.memory.of(RetryScheduled)

    async def test_a_hint_longer_than_two_minutes_is_left_to_the_person(self) -> None:
        desk = Desk(Turn(RateLimited("later", retry_after=121)))
        assert await desk.execute() is RunEnd.FAILED
        assert not desk.memory.of(RetryScheduled)

    async def test_after_the_first_word_the_rest_is_kept_and_nothing_is_sent_again(self) -> None:
        desk = Desk(Turn(ContentDelta("Half"), ConnectionFailed("cut")))
        assert await desk.execute() is RunEnd.FAILED
        assert (desk.memory.messages[-1].text, desk.memory.messages[-1].state) == ("Half", MessageState.INTERRUPTED)
        desk.provider.assert_finished()


class TestLimits:
    """Limits end every run."""

    async def test_rounds_are_counted_and_open_calls_answered(self) -> None:
        desk = Desk(
            *(Turn(call(str(number), "look", str(number))) for number in range(3)),
            tools=(tool("look", read_only=True),),
            iterations=3,
        )
        assert await desk.execute() is RunEnd.LIMIT
        assert len(desk.memory.results) == 3
        assert desk.memory.of(LimitReached)

    async def test_a_cut_answer_is_not_marked_final_and_its_calls_do_not_run(self) -> None:
        desk = Desk(
            Turn(ContentDelta("Once"), call("1", "look"), MessageDelta(StopReason.MAX_TOKENS, "length"), Done()),
            tools=(tool("look", read_only=True),),
        )
        assert await desk.execute() is RunEnd.LIMIT
        assert desk.memory.messages[1].state is MessageState.INTERRUPTED
        assert desk.memory.outcomes == [Outcome.LIMIT]

    async def test_a_pause_is_continued_by_the_runtime(self) -> None:
        desk = Desk(Turn(ContentDelta("a"), MessageDelta(StopReason.PAUSE_TURN), Done()), Turn(ContentDelta("b")))
        assert await desk.execute() is RunEnd.COMPLETED
        assert len(desk.provider.requests) == 2


async def test_a_fault_of_ours_is_an_event_and_not_the_end(caplog: pytest.LogCaptureFixture) -> None:
    desk = Desk(Turn(ContentDelta("x")))

    async def broken(_model: str) -> None:
        raise KeyError("inside")

    desk.run = Run(replace(desk.context, open_provider=broken), desk.settings)  # type: ignore[arg-type]
    assert await desk.execute() is RunEnd.FAILED
    (event,) = desk.memory.of(ErrorOccurred)
    assert "KeyError" in str(event.sentence)
    assert "a run failed" in caplog.text


async def test_stored_pictures_go_out_as_bytes_and_lost_ones_as_words() -> None:
    desk = Desk(Turn(), Turn())
    source = StoredSource(digest="0" * 64, media_type="image/png", size=68, width=1, height=1)
    desk.memory.messages = [Message.user_with_blocks([Image(source=source)])]
    await desk.execute()
    (block,) = desk.provider.requests[0].messages[0].blocks
    assert isinstance(block, Image)
    assert isinstance(block.source, Base64Source)

    second = Desk(Turn())
    second.memory.messages = [Message.user_with_blocks([Image(source=source)])]

    async def missing(_: StoredSource) -> bytes:
        raise ImageRefused.unreadable("cat.png")

    second.run = Run(replace(second.context, read_picture=missing), second.settings)
    await second.execute()
    (block,) = second.provider.requests[0].messages[0].blocks
    assert isinstance(block, Text)
    assert "cat.png" in block.text


async def test_an_answer_that_broke_off_is_not_sent_when_it_is_asked_for_again() -> None:
    half = Message.assistant("Half").model_copy(update={"state": MessageState.INTERRUPTED})
    desk = Desk(Turn(ContentDelta("Whole")))
    desk.memory.messages = [Message.user("go"), half]
    await desk.execute()
    assert [message.text for message in desk.provider.requests[0].messages] == ["go"]
    assert [message.text for message in desk.memory.messages] == ["go", "Half", "Whole"]

    later = Desk(Turn())
    later.memory.messages = [Message.user("go"), half, Message.assistant("Whole"), Message.user("more")]
    await later.execute()
    assert [message.text for message in later.provider.requests[0].messages] == ["go", "Whole", "more"]

    on_from_it = Desk(Turn())
    on_from_it.memory.messages = [Message.user("go"), half, Message.user("Continue.")]
    await on_from_it.execute()
    assert [message.text for message in on_from_it.provider.requests[0].messages] == ["go", "Half", "Continue."]


async def test_a_call_where_no_tool_was_offered_is_answered_but_not_asked_about_again() -> None:
    desk = Desk(Turn(call("1", "imagined")))
    assert await desk.execute() is RunEnd.COMPLETED
    assert desk.memory.outcomes == [Outcome.FAILED]
    assert len(desk.provider.requests) == 1
