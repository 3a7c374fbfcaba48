"""The limits of a run are those of all of it, however many processes it took: real SQLite, opened again."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from desktop_agent.agent.run_context import PriorUse
from desktop_agent.engine.recovery import recover
from desktop_agent.storage.records import read_state, state_to_json
from desktop_agent.storage.store import Store
from desktop_agent.types.blocks import Outcome, Summary, ToolResult, ToolUse
from desktop_agent.types.engine_events import (
    ApprovalRequested,
    ApprovalResolved,
    ContextCompacted,
    CostUpdated,
    Envelope,
    GuardAborted,
    LimitReached,
    QuestionAnswered,
    QuestionAsked,
    RetryScheduled,
    RunEnd,
    RunFinished,
    RunStarted,
    ToolFinished,
    ToolResultsReceived,
    ToolStarted,
    TurnStarted,
)
from desktop_agent.types.messages import Message, Role, now
from desktop_agent.types.policies import Guard, GuardContinue, GuardMoment, Limits, Specialist
from desktop_agent.types.provider_events import ContentDelta, Usage, UsageUpdate
from desktop_agent.types.tool_calls import AllowOnce
from tests.desktop_agent.engine.test_resuming import Life, copied
from tests.fakes.agent_run import call
from tests.fakes.scripted_provider import Turn, Wait
from tests.fakes.session import Shaky, results_of, shaky_store

FINDER = Specialist(name="finder", description="Finds.", system_prompt="You find.", tools=("look",), share=1.0)
FIND = ToolUse(id="f", name="finder", input={"task": "t"})


def used(tokens: int, cost: float | None = None) -> UsageUpdate:
    return UsageUpdate(Usage(total_tokens=tokens, cost=cost))


class Limited(Life):
    """A process with a specialist, and with limits."""

    def __init__(self, store: Store, limits: Limits, *turns: Turn) -> None:
        super().__init__(store, *turns)
        setup = replace(self.session._runs._setup, specialists=lambda: (FINDER,), limits=lambda: limits)
        self.session._runs._setup = self.session._runs.run_factory._setup = setup

    async def delegated(self) -> None:
        """Wait until a specialist's work is over and stored, and a call waits for the person."""
        await self.stage.until(lambda: self.stage.of(RunFinished))
        await self.waiting()
        await self.session._writer.flush()

    @property
    def reached(self) -> list[str]:
        return [event.which for event in self.stage.of(LimitReached)]

    @property
    def end(self) -> RunEnd:
        return self.stage.of(RunFinished)[-1].reason


@pytest.fixture
async def shaky(tmp_path: Path) -> AsyncIterator[Shaky]:
    async with shaky_store(tmp_path / "first") as shaky:
        yield shaky


LIMITS = {
    "tokens": (Limits(tokens=100), "tokens"),
    "cost": (Limits(cost=1.0), "cost"),
    "turns": (Limits(turns=2), "turns"),
    "rounds": (Limits(tool_iterations=2), "tool rounds"),
}


@pytest.mark.parametrize("name", LIMITS)
@pytest.mark.parametrize("is_over", [True, False])
async def test_what_was_used_before_the_crash_counts(shaky: Shaky, tmp_path: Path, name: str, is_over: bool) -> None:
    """By the run and by its specialist, whose work was over, or under way, when the process died."""
    limits, which = LIMITS[name]
    hangs = Wait(asyncio.Event(), asyncio.Event())
    one = Turn(call("0", "look"), used(10, 0.1))
    two = Turn(*((FIND, call("1", "act")) if is_over else (call("1", "act"), FIND)), used(10, 0.1))
    work = Turn(ContentDelta("found"), used(60, 0.6), *(() if is_over else (hangs,)))
    first = Limited(shaky.store, Limits(), one, two, work)
    first.session.send(Message.user("go"))
    if is_over:
        await first.delegated()
    else:
        await first.waiting()
        first.decide(AllowOnce())
        assert hangs.reached is not None
        await hangs.reached.wait()
        await first.session._writer.flush()
    async with copied(shaky.store, tmp_path / "second") as store:
        life = Limited(store, limits, Turn(call("2", "look"), used(25, 0.25)), Turn(ContentDelta("too much")))
        await life.reopen(first.session.record.id)
        assert life.session.resume()
        if is_over:
            await life.waiting()
            life.decide(AllowOnce())
        await life.idle()
        assert (life.reached, life.end) == ([which], RunEnd.LIMIT)
        spent = {"tokens": 1, "cost": 1, "turns": 0, "rounds": 0}[name]
        assert len(life.stage.provider.requests) == spent
        results = results_of(life.session.history)
        assert results["1"].outcome is Outcome.SUCCEEDED
        assert results["f"].outcome is (Outcome.SUCCEEDED if is_over else Outcome.UNKNOWN)
        assert spent == 0 or results["2"].outcome is Outcome.LIMIT
        await life.session.close()
    hangs.until.set()
    await first.session.close()


async def test_a_limit_that_was_reached_before_the_crash_runs_no_more_calls(shaky: Shaky, tmp_path: Path) -> None:
    limits = Limits(tokens=100)
    first = Limited(shaky.store, Limits(), Turn(FIND, call("1", "act"), used(10)), Turn(ContentDelta("x"), used(90)))
    first.session.send(Message.user("go"))
    await first.delegated()
    async with copied(shaky.store, tmp_path / "second") as store:
        life = Limited(store, limits)
        await life.reopen(first.session.record.id)
        life.session.resume()
        await life.idle()
        assert (life.reached, life.end, life.ran) == (["tokens"], RunEnd.LIMIT, [])
        outcomes = {id_: result.outcome for id_, result in results_of(life.session.history).items()}
        assert outcomes == {"f": Outcome.SUCCEEDED, "1": Outcome.LIMIT}
        await life.session.close()
        assert (await store.load(life.session.record.id)).journal == ()
    await first.session.close()


async def test_a_second_crash_forgets_nothing(shaky: Shaky, tmp_path: Path) -> None:
    first = Limited(shaky.store, Limits(), Turn(FIND, call("1", "act"), used(10)), Turn(ContentDelta("x"), used(30)))
    first.session.send(Message.user("go"))
    await first.delegated()
    async with copied(shaky.store, tmp_path / "second") as store:
        second = Limited(store, Limits(), Turn(FIND, call("2", "act"), used(10)), Turn(ContentDelta("y"), used(30)))
        await second.reopen(first.session.record.id)
        second.session.resume()
        await second.waiting()
        second.decide(AllowOnce())
        await second.delegated()
        async with copied(store, tmp_path / "third") as third:
            loaded = await third.load(first.session.record.id)
            recovery = recover(loaded.messages, loaded.journal, below=loaded.below)
            assert recovery.open_calls is not None
            total = recovery.open_calls.prior_use
            assert (total.turns, total.tool_batches, total.tokens, total.cost) == (2, 1, 80, None)
        await second.session.close()
    await first.session.close()


async def test_what_specialists_used_is_kept_with_the_conversation(shaky: Shaky) -> None:
    turns = Turn(FIND, used(10)), Turn(ContentDelta("x"), used(30, 0.25)), Turn(ContentDelta("done"), used(5))
    life = Limited(shaky.store, Limits(), *turns)
    life.session.send(Message.user("go"))
    await life.idle()
    await life.session.close()
    record = await shaky.store.record(life.session.record.id)
    assert record.state.specialist_usage == Usage(total_tokens=30, cost=0.25)
    assert read_state(state_to_json(record.state)) == record.state


@pytest.mark.parametrize("is_over", [True, False])
async def test_what_specialists_used_before_a_crash_is_counted_once(
    shaky: Shaky, tmp_path: Path, *, is_over: bool
) -> None:
    hangs = Wait(asyncio.Event(), asyncio.Event())
    work = Turn(ContentDelta("x"), used(30, 0.25), *([] if is_over else [hangs]))
    first = Limited(shaky.store, Limits(), Turn(FIND, call("1", "act"), used(10)), work)
    first.session.send(Message.user("go"))
    if is_over:
        await first.delegated()
    else:
        assert hangs.reached is not None
        await hangs.reached.wait()
    await first.session.flush()
    async with copied(shaky.store, tmp_path / "second") as store:
        for _ in range(2):
            life = Limited(store, Limits())
            await life.reopen(first.session.record.id)
            assert life.session.record.state.specialist_usage == Usage(total_tokens=30, cost=0.25)
            await life.session.close()
    hangs.until.set()
    await first.session.close()


def answer(id_: str, usage: Usage, *calls: ToolUse) -> Message:
    return Message(id=id_, role=Role.ASSISTANT, blocks=calls, usage=usage)


class Journal:
    """Rows of a run and of those below it, a second apart unless said otherwise."""

    def __init__(self) -> None:
        self.rows: list[Envelope] = []
        self.at = now()

    def add(self, event: Any, turn: str | None = None, run: str = "run", *, seconds: float = 1.0) -> None:
        self.at += timedelta(seconds=seconds)
        parent = None if run == "run" else "run"
        seq = sum(row.run_id == run for row in self.rows) + 1
        self.rows.append(Envelope(seq, run, parent, turn, self.at, event))

    def used(self, *messages: Message, below: tuple[Envelope, ...] = ()) -> PriorUse:
        recovery = recover(messages, self.rows, below=below)
        assert recovery.open_calls is not None
        return recovery.open_calls.prior_use


def test_what_is_written_nowhere_else_is_read_from_the_journal() -> None:
    """An answer that came to nothing, a summary, a summary that failed, and what the servers said meanwhile."""
    cut = Message(
        role=Role.SYSTEM, blocks=(Summary(text="In short.", first_kept_id="p"),), usage=Usage(total_tokens=7, cost=0.7)
    )
    journal = Journal()
    journal.add(RunStarted("p"))
    journal.add(TurnStarted("t0", "nothing", "m"), "t0")
    journal.add(used(1, 0.1), "t0")
    journal.add(used(3, 0.3), "t0")
    journal.add(ContextCompacted("p", "In short."), "t0")
    journal.add(TurnStarted("t1", "a1", "m"), "t1")
    journal.add(used(4, 0.4), "t1")
    journal.add(ToolResultsReceived(1), "t1")
    journal.add(TurnStarted("t2", "a2", "m"), "t2")
    journal.add(used(5, 0.5), "t2")
    usages = Usage(total_tokens=40, cost=4.0), Usage(total_tokens=5, cost=0.5)
    history = (
        Message.user("p"),
        cut,
        answer("another run's", Usage(total_tokens=1_000, cost=100.0)),
        answer("a1", usages[0]),
        answer("a2", usages[1], call("1", "act")),
    )
    use = journal.used(*history)
    assert (use.turns, use.tool_batches, use.tokens) == (3, 1, 3 + 7 + 40 + 5)
    assert use.cost == pytest.approx(0.3 + 0.7 + 4.0 + 0.5)
    # The summaries of specialists are in no message.
    journal.add(ContextCompacted("q", "Shorter.", usage=Usage(total_tokens=2, cost=0.2)), "s", "sub")
    assert journal.used(*history).tokens == 3 + 7 + 40 + 5 + 2
    journal.add(CostUpdated(9.0), "t2")
    assert journal.used(*history).cost == 9.0


def test_each_attempt_at_an_answer_that_never_came_counts() -> None:
    journal = Journal()
    journal.add(RunStarted("p"))
    journal.add(TurnStarted("t0", "nothing", "m"), "t0")
    for number in range(2):
        journal.add(used(3, 0.3), "t0")
        journal.add(RetryScheduled(0.0, "busy", number), "t0")
    journal.add(TurnStarted("t1", "a1", "m"), "t1")
    use = journal.used(Message.user("p"), answer("a1", Usage(total_tokens=1), call("1", "act")))
    assert (use.tokens, use.cost) == (7, pytest.approx(0.6))


WORKING = (Message.user("p"), answer("a1", Usage(total_tokens=1), call("1", "act")))


def test_time_at_work_leaves_out_the_person_and_what_lies_between_two_processes() -> None:
    journal = Journal()
    journal.add(RunStarted("p"))
    journal.add(TurnStarted("t1", "a1", "m"), "t1", seconds=2)
    journal.add(ApprovalRequested("x", "1", "d"), "t1", seconds=3)
    journal.add(ApprovalRequested("below", "2", "d"), "s", "sub", seconds=100)
    journal.add(RunStarted("p", resumed=True), "t1", seconds=10_000)
    journal.add(ApprovalResolved("x", "1", "allow_once", "person", digest="d"), "t1", seconds=1_000)
    journal.add(used(1), "t1", seconds=4)
    assert journal.used(*WORKING).seconds == 2 + 3 + 4


def test_time_between_two_processes_is_no_time_at_work_though_nothing_waits() -> None:
    journal = Journal()
    journal.add(RunStarted("p"))
    journal.add(TurnStarted("t1", "a1", "m"), "t1", seconds=2)
    journal.add(RunStarted("p", resumed=True), "t1", seconds=10_000)
    journal.add(used(1), "t1", seconds=4)
    assert journal.used(*WORKING).seconds == 2 + 4


def test_time_goes_on_while_a_call_runs_beside_one_that_is_asked_about() -> None:
    journal = Journal()
    journal.add(RunStarted("p"))
    journal.add(TurnStarted("t1", "a1", "m"), "t1", seconds=2)
    journal.add(ApprovalRequested("x", "1", "d"), "t1", seconds=3)
    journal.add(ToolStarted("0", {}), "t1", seconds=1_000)
    journal.add(ToolFinished("0", ToolResult(tool_use_id="0")), "t1", seconds=50)
    journal.add(ApprovalResolved("x", "1", "allow_once", "person", digest="d"), "t1", seconds=1_000)
    journal.add(used(1), "t1", seconds=4)
    assert journal.used(*WORKING).seconds == 2 + 3 + 50 + 4


def test_a_call_whose_specialist_asks_the_person_does_not_run_meanwhile() -> None:
    journal = Journal()
    journal.add(RunStarted("p"))
    journal.add(TurnStarted("t1", "a1", "m"), "t1", seconds=2)
    journal.add(ToolStarted("f", {}), "t1", seconds=3)
    journal.add(RunStarted("q", agent="finder", call_id="f"), None, "sub", seconds=1)
    journal.add(ApprovalRequested("below", "1", "d"), "s", "sub", seconds=5)
    journal.add(ToolStarted("0", {}), "t1", seconds=1_000)
    journal.add(ToolFinished("0", ToolResult(tool_use_id="0")), "t1", seconds=50)
    journal.add(ToolStarted("s0", {}), "s", "sub", seconds=1_000)
    journal.add(ToolFinished("s0", ToolResult(tool_use_id="s0")), "s", "sub", seconds=60)
    journal.add(ApprovalResolved("below", "1", "allow_once", "person", digest="d"), "s", "sub", seconds=1_000)
    journal.add(ToolFinished("f", ToolResult(tool_use_id="f")), "t1", seconds=4)
    assert journal.used(*WORKING).seconds == 2 + 3 + 1 + 5 + 50 + 60 + 4


def test_a_call_that_asks_the_person_something_does_not_run_meanwhile() -> None:
    journal = Journal()
    journal.add(RunStarted("p"))
    journal.add(TurnStarted("t1", "a1", "m"), "t1", seconds=2)
    journal.add(ToolStarted("q", {}), "t1", seconds=3)
    journal.add(QuestionAsked("x", "Which?"), "t1", seconds=1)
    journal.add(QuestionAnswered("x", "this"), "t1", seconds=1_000)
    journal.add(ToolFinished("q", ToolResult(tool_use_id="q")), "t1", seconds=4)
    assert journal.used(*WORKING).seconds == 2 + 3 + 1 + 4


@pytest.mark.parametrize(
    "end",
    [
        (ToolStarted("1", {}), ToolFinished("1", ToolResult(tool_use_id="1"))),
        (ToolFinished("1", ToolResult(tool_use_id="1")),),
        (ToolResultsReceived(1),),
        (
            ApprovalRequested("new", "1", "other"),
            ApprovalResolved("new", "1", "allow_once", "person", digest="other"),
        ),
    ],
    ids=["started", "finished", "results", "asked again"],
)
def test_a_card_that_fits_its_call_no_more_stops_no_clock(end: tuple[Any, ...]) -> None:
    """Nobody resolves it: the same call is asked about again, or runs, or ends."""
    journal = Journal()
    journal.add(RunStarted("p"))
    journal.add(TurnStarted("t1", "a1", "m"), "t1", seconds=2)
    journal.add(ApprovalRequested("old", "1", "d"), "t1", seconds=3)
    journal.add(RunStarted("p", resumed=True), "t1", seconds=10_000)
    for event in end:
        journal.add(event, "t1", seconds=1_000)
    journal.add(used(1), "t1", seconds=4)
    works = 1_000 if isinstance(end[0], ToolStarted) else 0
    assert journal.used(*WORKING).seconds == 2 + 3 + works + 4


async def test_what_specialists_of_specialists_used_counts(shaky: Shaky) -> None:
    """Also where their runs are over, and those of other runs do not count."""
    about = await shaky.store.create_conversation(id_="c", title="t")
    over = RunFinished(RunEnd.COMPLETED)
    begin = [RunStarted("p"), TurnStarted("t", "a1", "m")]
    rows = [(event, "run", None) for event in begin]
    for run, parent, tokens in (("sub", "run", 10), ("deep", "sub", 20), ("deeper", "deep", 30), ("other", "x", 1_000)):
        summary = ContextCompacted("q", "In short.", usage=Usage(total_tokens=tokens // 10))
        rows += [(event, run, parent) for event in (RunStarted("q"), summary, used(tokens), over)]
    await shaky.store.commit(about.id, Message.user("p"), answer("a1", Usage(total_tokens=1), call("1", "act")))
    await shaky.store.append_journal(
        about.id,
        [
            Envelope(seq, run, above, f"t-{run}" if above else "t", now(), event)
            for seq, (event, run, above) in enumerate(rows, 1)
        ],
    )
    loaded = await shaky.store.load(about.id)
    recovery = recover(loaded.messages, loaded.journal, below=loaded.below)
    assert recovery.open_calls is not None
    assert recovery.open_calls.prior_use.tokens == 1 + 11 + 22 + 33


async def test_a_guard_gets_no_new_iterations(shaky: Shaky, tmp_path: Path) -> None:
    async def go_on(moment: GuardMoment) -> GuardContinue:
        iterations.append(moment.iteration)
        return GuardContinue("More.")

    iterations: list[int] = []
    guard = Guard("more", go_on, max_iterations=1)
    first = Life(shaky.store, Turn(ContentDelta("done")), Turn(call("1", "act")))
    first.session.guards.add(guard)
    first.session.send(Message.user("go"))
    await first.waiting()
    async with copied(shaky.store, tmp_path / "second") as store:
        life = Life(store, Turn(ContentDelta("done again")))
        await life.reopen(first.session.record.id)
        life.session.guards.add(guard)
        assert life.session.resume()
        await life.waiting()
        life.decide(AllowOnce())
        await life.idle()
        assert (iterations, [event.guard_name for event in life.stage.of(GuardAborted)]) == ([0, 1], ["more"])
        await life.session.close()
    first.session.interrupt()
    await first.idle()
    await first.session.close()
