"""From the call to its result: which events, in which order, and which calls run in parallel."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from desktop_agent.agent.run_context import MAX_PARALLEL_DELEGATES, MAX_PARALLEL_READS, Budget, ToolSlots
from desktop_agent.agent.tool_calls.tool_execution import WorkClock
from desktop_agent.tools.tool import AnyTool, RunningCall
from desktop_agent.types.blocks import Outcome, Text, ToolUse
from desktop_agent.types.engine_events import (
    ApprovalRequested,
    ApprovalResolved,
    LimitReached,
    ToolCallPending,
    ToolFinished,
    ToolStarted,
)
from desktop_agent.types.permissions import ACCEPT_EDITS_MODE
from desktop_agent.types.policies import Limits
from desktop_agent.types.tool_calls import AllowOnce, Deny, DenyAndStop, Effect, ToolClass
from tests.fakes.tool_batch import Desk, call, tool, until


class Watch:
    """Records which calls run at the same time."""

    def __init__(self) -> None:
        self.now: list[str] = []
        self.seen: list[tuple[str, ...]] = []

    async def work(self, word: str, _call: RunningCall) -> str:
        self.now.append(word)
        await asyncio.sleep(0.002)
        self.seen.append(tuple(self.now))
        self.now.remove(word)
        return word

    @property
    def most(self) -> int:
        return max(map(len, self.seen))


async def test_a_reading_call_runs_unasked() -> None:
    desk = Desk(call("1", "look", "sea"), tools=[tool("look", reads=True)])
    assert await desk.run()
    assert desk.results[0].content == (Text(text="sea"),)
    assert desk.memory.about("1") == ["tool_call_pending", "tool_started", "tool_finished"]


async def test_events_of_a_call_come_in_their_order_and_the_start_is_durable_before_the_effect() -> None:
    settled: list[bool] = []

    async def work(word: str, _call: RunningCall) -> str:
        started = desk.memory.events.index(desk.memory.of(ToolStarted)[0])
        settled.append(any(count > started for count in desk.memory.settled))
        return word

    desk = Desk(call("1", "act"), tools=[tool("act", work)])
    running = desk.start()
    await desk.asked()
    desk.decide(AllowOnce())
    await running
    assert settled == [True]
    expected = ["tool_call_pending", "approval_requested", "approval_resolved", "tool_started", "tool_finished"]
    assert desk.memory.about("1") == expected


async def test_all_cards_appear_together_in_call_order_after_every_call_was_announced() -> None:
    uses = [call(str(number), "act", str(number)) for number in range(5)]
    desk = Desk(*uses, tools=[tool("act")])
    running = desk.start()
    await desk.asked(5)
    kinds = [type(event) for event in desk.memory.events]
    assert kinds == [ToolCallPending] * 5 + [ApprovalRequested] * 5
    assert [event.tool_use_id for event in desk.memory.of(ApprovalRequested)] == ["0", "1", "2", "3", "4"]
    for _ in uses:
        desk.decide(AllowOnce())
    assert await running


async def test_neighbours_that_read_run_together_and_what_changes_something_runs_alone() -> None:
    watch = Watch()
    look, act = tool("look", watch.work, reads=True), tool("act", watch.work)
    desk = Desk(
        *(call("1", "look", "a"), call("2", "look", "b"), call("3", "act", "c"), call("4", "look", "d")),
        *(call("5", "act", "e"), call("6", "act", "f")),
        tools=[look, act],
    )
    running = desk.start()
    await desk.asked(3)
    for _ in range(3):
        desk.decide(AllowOnce(), -1)
    await running
    assert watch.seen == [("a", "b"), ("b",), ("c",), ("d",), ("e",), ("f",)]
    assert desk.words == ["a", "b", "c", "d", "e", "f"]


async def test_at_most_twenty_read_at_once() -> None:
    watch = Watch()
    desk = Desk(*(call(str(n), "look", str(n)) for n in range(50)), tools=[tool("look", watch.work, reads=True)])
    await desk.run()
    assert watch.most == MAX_PARALLEL_READS == 20


async def test_a_tool_says_how_many_of_its_calls_may_run_at_once_and_holds_nobody_else_up() -> None:
    few, many = Watch(), Watch()
    tools = [tool("few", few.work, reads=True, concurrency=2), tool("many", many.work, reads=True)]
    uses = [call(f"{name}{n}", name, str(n)) for n in range(12) for name in ("few", "many")]
    desk = Desk(*uses, tools=tools)
    await desk.run()
    assert few.most == 2
    assert many.most == 12


async def test_who_waits_for_a_person_holds_no_slot_and_no_call_that_does_not_wait() -> None:
    fetch = tool("fetch", reads=True, effects=frozenset({Effect.NETWORK}))
    uses = [call(f"f{n}", "fetch", str(n)) for n in range(30)] + [call(f"l{n}", "look", str(n)) for n in range(30)]
    desk = Desk(*uses, tools=[fetch, tool("look", reads=True)])
    running = desk.start()
    await until(lambda: len(desk.memory.of(ToolFinished)) == 30)
    assert len(desk.approvals.open_approvals) == 30
    while desk.approvals.open_approvals:
        desk.decide(AllowOnce(), -1)
    await running
    assert set(desk.outcomes) == {Outcome.SUCCEEDED}


async def test_a_call_that_waits_holds_up_what_comes_after_it_but_not_what_came_before() -> None:
    desk = Desk(
        *(call("1", "look"), call("2", "act"), call("3", "look", "y")),
        tools=[tool("look", reads=True), tool("act")],
    )
    running = desk.start()
    await until(lambda: desk.finished("1"))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not desk.finished("3")
    desk.decide(AllowOnce())
    await running
    assert [event.id for event in desk.memory.of(ToolStarted)] == ["1", "2", "3"]


async def test_a_decision_is_told_at_once_even_when_the_calls_turn_is_far_off() -> None:
    desk = Desk(call("1", "act"), call("2", "act", "y"), tools=[tool("act")])
    running = desk.start()
    await desk.asked(2)
    desk.decide(Deny(message="no"), 1)
    await until(lambda: desk.finished("2"))
    assert [event.tool_use_id for event in desk.memory.of(ApprovalResolved)] == ["2"]
    desk.decide(AllowOnce())
    assert await running
    assert desk.outcomes == [Outcome.SUCCEEDED, Outcome.DENIED]


async def test_a_denial_reaches_the_model_with_the_persons_words_and_the_rest_goes_on() -> None:
    desk = Desk(call("1", "act"), call("2", "look"), tools=[tool("act"), tool("look", reads=True)])
    running = desk.start()
    await desk.asked()
    desk.decide(Deny(message="not on a Sunday"))
    assert await running
    assert desk.outcomes == [Outcome.DENIED, Outcome.SUCCEEDED]
    assert "not on a Sunday" in desk.words[0]


async def test_deny_and_stop_ends_the_round_and_what_runs_beside_it() -> None:
    async def long(word: str, _call: RunningCall) -> str:
        await asyncio.sleep(60)
        return word

    fetch = tool("fetch", reads=True, effects=frozenset({Effect.NETWORK}))
    desk = Desk(
        *(call("1", "look"), call("2", "fetch"), call("3", "fetch", "y"), call("4", "act")),
        tools=[tool("look", long, reads=True), fetch, tool("act")],
    )
    running = desk.start()
    await desk.asked(3)
    await until(lambda: desk.memory.of(ToolStarted))
    desk.decide(DenyAndStop(message="enough"))
    assert not await running
    assert desk.outcomes == [Outcome.CANCELLED, Outcome.DENIED, Outcome.CANCELLED, Outcome.CANCELLED]
    assert not desk.approvals.open_approvals


async def test_bad_calls_are_failed_results_and_the_rest_runs() -> None:
    malformed = ToolUse(id="1", name="look", malformed='{"word": ')
    desk = Desk(
        *(malformed, call("2", "nothing"), ToolUse(id="3", name="look", input={"word": 5}), call("4", "look")),
        tools=[tool("look", reads=True)],
    )
    assert await desk.run()
    assert desk.outcomes == [Outcome.FAILED, Outcome.FAILED, Outcome.FAILED, Outcome.SUCCEEDED]
    assert "look" in desk.words[1]


async def test_a_second_call_of_the_same_id_is_answered_for_itself_and_does_not_touch_the_first() -> None:
    ran: list[str] = []

    async def work(word: str, _call: RunningCall) -> str:
        ran.append(word)
        return word

    desk = Desk(call("1", "look", "a"), call("1", "look", "b"), tools=[tool("look", work, reads=True)])
    await desk.run()
    assert ran == ["a"]
    assert desk.outcomes == [Outcome.SUCCEEDED, Outcome.FAILED]
    assert desk.memory.about("1") == ["tool_call_pending", "tool_started", "tool_finished"]


async def test_more_calls_than_one_answer_may_have_are_not_run_and_that_is_said_once() -> None:
    uses = [call(str(number), "look", str(number)) for number in range(5)]
    desk = Desk(*uses, tools=[tool("look", reads=True)], limits=Limits(calls_per_turn=3))
    assert await desk.run()
    assert desk.outcomes == [Outcome.SUCCEEDED] * 3 + [Outcome.LIMIT] * 2
    assert len(desk.memory.of(LimitReached)) == 1
    assert desk.memory.about("4") == ["tool_call_pending", "tool_finished"]


async def test_results_that_use_up_the_memory_of_a_run_let_nothing_more_start() -> None:
    async def much(_word: str, _call: RunningCall) -> str:
        return "x" * 600

    act = tool("act", much)
    desk = Desk(*(call(str(n), "act", str(n)) for n in range(4)), tools=[act], limits=Limits(characters=1000))
    running = desk.start()
    await desk.asked(4)
    for _ in range(4):
        desk.decide(AllowOnce())
    assert await running
    assert desk.outcomes == [Outcome.SUCCEEDED, Outcome.SUCCEEDED, Outcome.LIMIT, Outcome.LIMIT]


@pytest.mark.parametrize("size", [1, 600])
async def test_the_calls_of_the_last_turn_run_until_another_limit_is_reached(size: int) -> None:
    async def much(_word: str, _call: RunningCall) -> str:
        return "x" * size

    act = tool("act", much)
    limits = Limits(turns=1, characters=500)
    desk = Desk(call("1", "act"), call("2", "act"), tools=[act], limits=limits, mode=ACCEPT_EDITS_MODE)
    desk.budget.count_turn()
    assert str(desk.budget.exceeded_limit) == "turns"
    assert await desk.run()
    assert desk.outcomes == [Outcome.SUCCEEDED, Outcome.SUCCEEDED if size == 1 else Outcome.LIMIT]


def test_the_time_of_a_person_is_not_the_time_of_the_run() -> None:
    async def scenario() -> list[bool]:
        inside, gate = asyncio.Event(), asyncio.Event()

        async def work(word: str, _call: RunningCall) -> str:
            inside.set()
            await gate.wait()
            return word

        fetch = tool("fetch", reads=True, effects=frozenset({Effect.NETWORK}))
        desk = Desk(call("1", "look"), call("2", "fetch"), tools=[tool("look", work, reads=True), fetch])
        running = desk.start()
        await desk.asked()
        await inside.wait()
        stood = [desk.budget._working_since is None]
        gate.set()
        await until(lambda: desk.finished("1"))
        await asyncio.sleep(0)
        stood.append(desk.budget._working_since is None)
        desk.decide(AllowOnce())
        await running
        return [*stood, desk.budget._working_since is None]

    assert asyncio.run(scenario()) == [False, True, False]


def test_the_time_of_the_run_stands_while_a_call_waits_and_none_works() -> None:
    budget = Budget(Limits())
    clock = WorkClock(budget)
    states: list[bool] = [budget.is_working]

    def look() -> None:
        states.append(budget.is_working)

    with clock.working():
        look()
        with clock.working():
            clock.begin_waiting()
            look()
        look()
    look()
    clock.begin_waiting()
    clock.end_waiting()
    look()
    with clock.delegating():
        clock.end_waiting()
        look()
    look()
    assert states == [True, True, True, True, False, False, False, True]
    with pytest.raises(ValueError, match="broke"), clock.working(), clock.delegating():
        raise ValueError("it broke")
    clock.begin_waiting()
    assert not budget.is_working
    clock.end_waiting()
    assert budget.is_working


@pytest.mark.parametrize("tool_class", list(ToolClass))
async def test_an_unknown_tool_counts_as_mutating(tool_class: ToolClass) -> None:
    desk = Desk(
        call("1", "none"), call("2", "some"), tools=[replace(tool("some"), tool_class=tool_class, effects=frozenset())]
    )
    running = desk.start()
    await until(lambda: desk.finished("1"))
    classes = {event.id: event.tool_class for event in desk.memory.of(ToolCallPending)}
    assert classes == {"1": ToolClass.MUTATING, "2": tool_class}
    desk.round.stop()
    await running


class TestDelegates:
    """Tools that hand work on to a round below."""

    @staticmethod
    def nesting(widths: tuple[int, ...], watch: Watch, **more: Any) -> AnyTool:
        """Return a tool whose calls each run a round of so many calls of itself, and three reads, level by level."""
        slots = ToolSlots()
        desks: list[Desk] = []

        async def hand_on(word: str, running: RunningCall) -> str:
            level = int(word.partition(".")[0])
            if level == len(widths):
                return "bottom"
            uses = [call(str(n), "hand", f"{level + 1}.{n}") for n in range(widths[level])]
            uses += [call(f"r{n}", "look", f"{len(desks)}-{n}") for n in range(3)]
            path = (*running.agent_path, "hand")
            below = Desk(*uses, tools=[hand, look], slots=slots, agent_path=path)
            desks.append(below)
            await below.run()
            return str(len([outcome for outcome in below.outcomes if outcome is Outcome.SUCCEEDED]))

        look = tool("look", watch.work, reads=True)
        hand = tool("hand", hand_on, reads=True, effects=frozenset({Effect.DELEGATE}), timeout=60.0, **more)
        return hand

    async def test_thirty_at_once_three_deep_never_wait_for_each_other(self) -> None:
        watch = Watch()
        hand = self.nesting((4, 3, 2), watch)
        uses = [call(str(n), "hand", f"0.{n}") for n in range(30)]
        desk = Desk(*uses, tools=[hand])
        assert await desk.run()
        assert desk.words == ["7"] * 30
        assert watch.most <= MAX_PARALLEL_READS

    async def test_one_at_a_time_is_counted_for_each_answer_so_that_a_child_does_not_wait_for_its_parent(self) -> None:
        watch = Watch()
        hand = self.nesting((2, 2, 2), watch, concurrency=1)
        desk = Desk(call("1", "hand", "0"), call("2", "hand", "0"), tools=[hand])
        assert await desk.run()
        assert desk.words == ["5", "5"]

    async def test_neighbours_that_hand_on_run_together_and_apart_from_those_that_read(self) -> None:
        watch = Watch()
        hand = tool("hand", watch.work, reads=True, effects=frozenset({Effect.DELEGATE}))
        desk = Desk(
            *(call("1", "hand", "a"), call("2", "hand", "b"), call("3", "look", "c"), call("4", "hand", "d")),
            tools=[hand, tool("look", watch.work, reads=True)],
        )
        await desk.run()
        assert watch.seen == [("a", "b"), ("b",), ("c",), ("d",)]


async def test_of_one_answer_only_so_many_calls_hand_work_on_at_once() -> None:
    watch = Watch()
    hand = tool("hand", watch.work, reads=True, effects=frozenset({Effect.DELEGATE}))
    desk = Desk(*(call(str(n), "hand", str(n)) for n in range(20)), tools=[hand])
    await desk.run()
    assert desk.outcomes == [Outcome.SUCCEEDED] * 20
    assert watch.most == MAX_PARALLEL_DELEGATES
