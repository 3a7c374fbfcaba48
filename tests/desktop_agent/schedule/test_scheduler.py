"""The scheduler: each run as chosen and none twice, over kills, set clocks, and two processes."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from desktop_agent.engine import session_lifecycle
from desktop_agent.engine.engine import Engine, RunDefaults
from desktop_agent.engine.session import Session
from desktop_agent.engine.spending import local_day
from desktop_agent.schedule.scheduler import Scheduler
from desktop_agent.schedule.timing import Clock
from desktop_agent.storage.file_lock import Holder, lock_path
from desktop_agent.types.errors import AgentError, ConversationInUse, WrongUse
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.permissions import CommandPattern, Mode, Rule, RuleEffect
from desktop_agent.types.preferences import ModePreferences, UsagePreferences
from desktop_agent.types.providers import Endpoint
from desktop_agent.types.schedules import (
    Cron,
    Interval,
    MissedPolicy,
    Once,
    RunResult,
    ScheduledPrompt,
    ScheduledRun,
    ScheduleTarget,
)
from desktop_agent.types.spending import BudgetReached, UsageFigures, UsageKey
from desktop_agent.types.tool_calls import AllowOnce
from tests.fakes.http_server import Loopback, Reply, chunk, sse
from tests.frame.patience import PATIENCE

START = datetime(2026, 11, 27, 8, 59, 30, tzinfo=UTC)
ANSWER = Reply(sse(chunk({"content": "Done."}), chunk(finish="stop")))


class Hands:
    """What a scheduler told, and the clock that it reads."""

    engine: Engine

    def __init__(self) -> None:
        self.time = START.timestamp()
        self.ends: list[tuple[str, RunResult]] = []
        self.errors: list[AgentError] = []
        self.budget_waits: list[str] = []
        self.sessions: list[Session] = []

    @property
    def clock(self) -> Clock:
        return Clock(lambda: self.time, UTC)

    def on_changed(self) -> None:
        """Nobody lists anything."""

    def on_run_begun(self, session: Session) -> None:
        self.sessions.append(session)

    def on_run_ended(self, prompt: ScheduledPrompt, run: ScheduledRun, result: RunResult) -> None:
        self.ends.append((run.slot, result))

    def on_budget_wait(self, error: BudgetReached) -> None:
        self.budget_waits.append(str(error.sentence))

    def on_error(self, error: AgentError) -> None:
        self.errors.append(error)

    def release(self, session: Session) -> None:
        self.engine.release_session(session)


class World:
    def __init__(self, engine: Engine, scheduler: Scheduler, hands: Hands) -> None:
        self.engine, self.scheduler, self.hands = engine, scheduler, hands

    async def set_time(self, moment: datetime) -> None:
        """Set the clock, and return when the scheduler has looked at it."""
        self.hands.time = moment.timestamp()
        await self.look()

    async def look(self) -> None:
        async with self.scheduler._one_at_a_time:
            await self.scheduler._check()

    async def until(self, fact: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not fact():
                await asyncio.sleep(0.01)

    async def prompts(self) -> list[str]:
        records = await self.engine.store.list_conversations()
        loaded = [await self.engine.store.load(record.id) for record in records]
        return sorted(m.text for each in loaded for m in each.messages if m.role is Role.USER)


@asynccontextmanager
async def world(
    folder: Path, url: str, hands: Hands | None = None, *, runs: bool = True, **defaults: Any
) -> AsyncIterator[World]:
    endpoint = Endpoint(id="loopback", title="Loopback", base_url=url)
    engine = await Engine.open(folder, RunDefaults(endpoint=endpoint, model="m", **{"toolset": "none", **defaults}))
    hands = hands or Hands()
    hands.engine = engine
    scheduler = Scheduler(engine, hands, hands.clock)
    work = asyncio.create_task(scheduler.run()) if runs else None
    there = World(engine, scheduler, hands)
    await there.until(lambda: scheduler._lock.is_held or not runs)
    try:
        yield there
    finally:
        if work is not None:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
        await engine.close(keeps_approvals=True)


def daily(**more: Any) -> ScheduledPrompt:
    return ScheduledPrompt(title="News", prompt="What is new?", timing=Cron(line="0 9 * * *"), **more)


async def test_a_prompt_is_sent_at_its_time_once_and_its_end_is_noted(tmp_path: Path) -> None:
    async with Loopback(ANSWER) as server, world(tmp_path, server.url) as there:
        await there.scheduler.save(daily(mode="plan"))
        await there.look()
        assert server.requests == []
        await there.set_time(START + timedelta(seconds=31))
        await there.until(lambda: bool(there.hands.ends))
        await there.look()
        assert there.hands.ends == [("2026-11-27T09:00", "completed")]
        assert len(server.requests) == 1
        (record,) = await there.engine.store.list_conversations()
        assert (record.title, record.state.mode) == ("News", "plan")
        (stored,) = await there.scheduler.schedules()
        assert stored.last_run is not None
        assert (stored.last_run.state, stored.last_run.result) == ("ended", "completed")
        assert stored.last_run.conversation_id == record.id


async def test_a_lock_that_is_taken_while_it_ends_is_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = threading.Event(), threading.Event()
    engine = await Engine.open(tmp_path)
    scheduler = Scheduler(engine, Hands())
    acquire = scheduler._lock.acquire

    def acquire_slowly(holder: Holder) -> bool:
        begun.set()
        assert go_on.wait(PATIENCE)
        return acquire(holder)

    monkeypatch.setattr(scheduler._lock, "acquire", acquire_slowly)
    work = asyncio.create_task(scheduler.run())
    assert await asyncio.to_thread(begun.wait, PATIENCE)
    work.cancel()
    await asyncio.sleep(0.05)
    go_on.set()
    await asyncio.gather(work, return_exceptions=True)
    await asyncio.to_thread(lambda: None)
    assert not scheduler._lock.is_held
    await engine.close()


async def test_runs_go_on_in_one_conversation_where_that_is_chosen_and_in_no_wider_mode(tmp_path: Path) -> None:
    async with Loopback(ANSWER) as server, world(tmp_path, server.url) as there:
        await there.scheduler.save(daily(target="same", mode="accept-edits"))
        for day in range(2):
            await there.set_time(START + timedelta(days=day, minutes=1))
            await there.until(lambda wanted=day + 1: len(there.hands.ends) == wanted)
            session = there.hands.sessions[-1]
            assert session.modes.current.name == ("accept-edits" if not day else "plan")
            if not session.is_closed:
                session.modes.set_by_person("plan")
                await session.flush()
        assert await there.prompts() == ["What is new?"] * 2
        assert len(await there.engine.store.list_conversations()) == 1


async def test_a_mode_that_lets_something_else_run_unasked_does_not_stay(tmp_path: Path) -> None:
    rule = Rule(effect=RuleEffect.ALLOW, tool="run_command", pattern=CommandPattern(words=("pytest",)))
    own = Mode(name="tests", title="Tests", rules=(rule,))
    async with Loopback(ANSWER) as server, world(tmp_path, server.url) as there:
        preferences = there.engine.preferences
        await there.engine.change_preferences(preferences.model_copy(update={"modes": ModePreferences(defined=(own,))}))
        await there.scheduler.save(daily(target="same", mode="tests"))
        for day in range(2):
            await there.set_time(START + timedelta(days=day, minutes=1))
            await there.until(lambda wanted=day + 1: len(there.hands.ends) == wanted)
            session = there.hands.sessions[-1]
            assert session.modes.current == own
            if not session.is_closed:
                session.modes.set_by_person("accept-edits")
                await session.flush()


async def test_what_was_missed_runs_once_or_is_skipped(tmp_path: Path) -> None:
    async with Loopback(ANSWER) as server, world(tmp_path, server.url) as there:
        await there.scheduler.save(daily())
        skipped = daily(missed="skip")
        await there.scheduler.save(skipped)
        await there.set_time(START + timedelta(days=5, hours=3))
        await there.until(lambda: bool(there.hands.ends))
        await there.look()
        assert there.hands.ends == [("2026-12-02T09:00", "completed")]
        last = {known.prompt.id: known.last_run for known in await there.scheduler.schedules()}[skipped.id]
        assert last is not None
        assert (last.slot, last.result) == ("2026-12-02T09:00", "missed")
        assert len(server.requests) == 1


async def test_a_clock_that_is_set_repeats_nothing_and_holds_up_nothing(tmp_path: Path) -> None:
    async with Loopback(ANSWER) as server, world(tmp_path, server.url) as there:
        await there.scheduler.save(daily())
        for moment in (
            START + timedelta(minutes=1),
            START - timedelta(hours=3),  # back, over the run
            START + timedelta(minutes=2),
            START + timedelta(days=400),  # far ahead, and back again
            START + timedelta(minutes=3),
            START + timedelta(days=1, minutes=1),
        ):
            await there.set_time(moment)
            await there.until(lambda: not there.scheduler._followed)
        await there.until(lambda: len(there.hands.ends) == 3)
        slots = [slot for slot, _ in there.hands.ends]
        assert slots == ["2026-11-27T09:00", "2027-12-31T09:00", "2026-11-28T09:00"]
        assert len(server.requests) == 3


async def test_runs_of_one_prompt_never_pile_up(tmp_path: Path) -> None:
    gate = asyncio.Event()
    held = Reply(sse(chunk({"content": "Do"}), done=False), hold=gate, late=sse(chunk(finish="stop")))
    async with Loopback(held, ANSWER) as server, world(tmp_path, server.url) as there:
        prompt = ScheduledPrompt(title="Often", prompt="go", timing=Interval(minutes=10, start=START))
        await there.scheduler.save(prompt)
        for minutes in (10, 20, 30):
            await there.set_time(START + timedelta(minutes=minutes))
        await there.until(lambda: len(server.requests) == 1)
        with pytest.raises(WrongUse, match="not ended"):
            await there.scheduler.run_now(prompt.id)
        gate.set()
        await there.until(lambda: len(there.hands.ends) == 2)
        assert [slot for slot, _ in there.hands.ends][1].startswith("2026-11-27T09:29:30")


async def test_what_was_claimed_and_not_sent_is_sent_once_by_the_next_process(tmp_path: Path) -> None:
    async with Loopback(ANSWER) as server:
        # A scheduler at work would take the claim for one of a process that is gone.
        async with world(tmp_path, server.url, runs=False) as there:
            await there.scheduler.save(daily())
            (stored,) = await there.scheduler.schedules()
            now = START + timedelta(seconds=30)
            # As a process leaves it that is killed right there.
            assert await there.engine.store.schedules.runs.claim(
                stored, "2026-11-27T09:00", "gone", "the id", now, is_due=True
            )
            assert not await there.engine.store.schedules.runs.claim(
                stored, "2026-11-27T09:00", "x", "y", now, is_due=True
            )
        hands = Hands()
        hands.time = (START + timedelta(minutes=1)).timestamp()
        async with world(tmp_path, server.url, hands) as there:
            await there.until(lambda: bool(hands.ends))
            await there.look()
            assert await there.prompts() == ["What is new?"]
            (record,) = await there.engine.store.list_conversations()
            assert (await there.engine.store.load(record.id)).messages[0].id == "the id"
        assert len(server.requests) == 1


async def test_the_transaction_that_stores_the_prompt_marks_its_run_as_started(tmp_path: Path) -> None:
    async with Loopback(ANSWER) as server, world(tmp_path, server.url) as there:
        await there.scheduler.save(daily())
        (stored,) = await there.scheduler.schedules()
        record = await there.engine.store.create_conversation(title="t")
        message = Message.user("What is new?")
        runs = there.engine.store.schedules.runs
        assert await runs.claim(stored, "2026-11-27T09:00", record.id, message.id, START, is_due=True)
        assert [run.state for run in await runs.unfinished()] == ["claimed"]
        await there.engine.store.commit(record.id, message)
        assert [run.state for run in await runs.unfinished()] == ["started"]


async def test_two_processes_on_one_folder_never_both_run_an_occurrence(tmp_path: Path) -> None:
    async with Loopback(ANSWER) as server, world(tmp_path, server.url) as there:
        await there.scheduler.save(daily())
        endpoint = Endpoint(id="loopback", title="Loopback", base_url=server.url)
        other = await Engine.open(tmp_path, RunDefaults(endpoint=endpoint, model="m", toolset="none"))
        hands = Hands()
        hands.engine = other
        second = Scheduler(other, hands, hands.clock)
        assert not await second._hold_lock()
        with pytest.raises(WrongUse, match="Another process"):
            await second.run_now((await second.schedules())[0].prompt.id)
        hands.time = there.hands.time = (START + timedelta(minutes=1)).timestamp()
        # Even without the lock, where both have seen the same.
        (known,) = await second.schedules()
        await asyncio.gather(*(each._check_schedule(known) for each in (there.scheduler, second)))
        await there.until(lambda: bool(there.hands.ends or hands.ends))
        assert len(there.hands.ends + hands.ends) == 1
        assert len(server.requests) == 1
        await there.until(lambda: not second._tasks)
        await other.close()


async def test_a_prompt_that_cannot_begin_says_so_and_is_not_tried_again(tmp_path: Path) -> None:
    async with Loopback(ANSWER) as server, world(tmp_path, server.url) as there:
        await there.scheduler.save(daily(mode="gone"))
        await there.set_time(START + timedelta(minutes=1))
        assert [result for _, result in there.hands.ends] == ["refused"]
        await there.look()
        assert (len(there.hands.ends), len(there.hands.errors), server.requests) == (1, 1, [])


async def test_a_conversation_that_the_disk_refuses_holds_up_no_other_prompt(tmp_path: Path) -> None:
    async with Loopback(ANSWER) as server:
        async with world(tmp_path, server.url) as there:
            await there.scheduler.save(daily(target="same"))
            await there.scheduler.save(ScheduledPrompt(title="Later", prompt="go", timing=Cron(line="5 9 * * *")))
            await there.set_time(START + timedelta(minutes=1))
            await there.until(lambda: len(there.hands.ends) == 1)
            (record,) = await there.engine.store.list_conversations()
        # As after a start by another user, whose files nobody else may open.
        lock = lock_path(tmp_path, f"conversation-{record.id}")
        lock.unlink()
        lock.mkdir()
        async with world(tmp_path, server.url) as there:
            await there.set_time(START + timedelta(days=1, minutes=1))
            await there.set_time(START + timedelta(days=1, minutes=6))
            await there.until(lambda: bool(there.hands.ends))
            assert there.hands.ends[0][0].endswith("09:05")
            lock.rmdir()
            await there.look()
            # It stayed due.
            await there.until(lambda: "2026-11-28T09:00" in dict(there.hands.ends))


async def test_a_claimed_run_that_the_disk_refuses_holds_up_no_other_prompt(tmp_path: Path) -> None:
    async with Loopback(ANSWER) as server, world(tmp_path, server.url) as there:
        async with there.scheduler._one_at_a_time:
            await there.scheduler.save(daily(target="same"))
            await there.scheduler.save(ScheduledPrompt(title="Later", prompt="go", timing=Cron(line="5 9 * * *")))
            stored, _ = await there.scheduler.schedules()
            session = there.engine.new_session()
            session.send(Message.user("hi"))
            await session.wait_idle()
            await session.flush()
            runs, id_ = there.engine.store.schedules.runs, session.record.id
            await session.close()
            lock = lock_path(tmp_path, f"conversation-{id_}")
            lock.unlink(missing_ok=True)
            lock.mkdir()
            assert await runs.claim(stored, "2026-11-27T08:00", id_, "the id", START, is_due=True)
        await there.set_time(START + timedelta(minutes=6))
        await there.until(lambda: bool(there.hands.ends))
        assert there.hands.ends == [("2026-11-27T09:05", "completed")]


async def test_a_run_begun_by_hand_says_that_another_process_works_in_its_conversation(tmp_path: Path) -> None:
    async with Loopback(ANSWER) as server:
        async with world(tmp_path, server.url) as there:
            await there.scheduler.save(daily(target="same"))
            await there.set_time(START + timedelta(minutes=1))
            await there.until(lambda: len(there.hands.ends) == 1)
            (stored,) = await there.scheduler.schedules()
        async with world(tmp_path, server.url) as there, world(tmp_path, server.url, runs=False) as other:
            assert stored.conversation_id is not None
            await other.engine.session(stored.conversation_id)
            with pytest.raises(ConversationInUse):
                await there.scheduler.run_now(stored.prompt.id)


async def test_once_is_once_and_what_is_paused_or_deleted_does_not_run(tmp_path: Path) -> None:
    async with Loopback(ANSWER) as server, world(tmp_path, server.url) as there:
        once = ScheduledPrompt(title="Once", prompt="once", timing=Once(at=datetime.fromisoformat("2026-11-27T09:00")))
        deleted = daily()
        for prompt in (once, daily(is_on=False), deleted):
            await there.scheduler.save(prompt)
        await there.scheduler.delete(deleted.id)
        for days in range(3):
            await there.set_time(START + timedelta(days=days, minutes=1))
            await there.until(lambda: not there.scheduler._followed)
        await there.until(lambda: len(there.hands.ends) == 1)
        assert len(server.requests) == 1
        assert there.scheduler.next_slot(once) is None


def asks_for_a_command() -> Reply:
    """An answer whose call waits for the person."""
    call = {"name": "run_command", "arguments": json.dumps({"command": "echo one >> effects.txt"})}
    made = {"index": 0, "id": "call", "type": "function", "function": call}
    return Reply(sse(chunk({"tool_calls": [made]}), chunk(finish="tool_calls")))


async def leave_waiting(folder: Path, url: str, **chosen: Any) -> None:
    """Let a run wait for the person, and end the process."""
    async with world(folder / "data", url, toolset="all") as there:
        await there.scheduler.save(daily(workspace=str(folder), **chosen))
        await there.set_time(START + timedelta(minutes=1))
        await there.until(lambda: bool(there.hands.sessions and there.hands.sessions[0].approvals.open_approvals))


async def test_a_run_that_waited_when_the_program_was_quit_waits_still_and_then_ends(tmp_path: Path) -> None:
    async with Loopback(asks_for_a_command(), ANSWER) as server:
        await leave_waiting(tmp_path, server.url)
        hands = Hands()
        hands.time = (START + timedelta(minutes=2)).timestamp()
        async with world(tmp_path / "data", server.url, hands, toolset="all") as there:
            (left,) = await there.engine.interrupted_conversations()
            (waiting,) = left.waiting_calls
            await there.look()
            session = await there.engine.session(left.conversation_id)
            assert session.resume()
            await there.until(lambda: bool(session.approvals.open_approvals))
            session.approvals.answer(waiting.approval_id, AllowOnce())
            await session.wait_idle()
            assert session.history[-1].text == "Done."
            assert (tmp_path / "effects.txt").read_text() == "one\n"
            await there.look()
            (stored,) = await there.scheduler.schedules()
            assert stored.last_run is not None
            assert (stored.last_run.state, stored.last_run.result) == ("ended", "completed")
    assert len(server.requests) == 2


async def test_a_run_that_waited_in_a_deleted_conversation_holds_up_no_other(tmp_path: Path) -> None:
    async with Loopback(asks_for_a_command(), ANSWER) as server:
        await leave_waiting(tmp_path, server.url)
        hands = Hands()
        hands.time = (START + timedelta(minutes=2)).timestamp()
        async with world(tmp_path / "data", server.url, hands, toolset="all") as there:
            await there.look()
            (record,) = await there.engine.store.list_conversations()
            await there.engine.delete_conversation(record.id)
            await there.set_time(START + timedelta(days=1, minutes=1))
            (stored,) = await there.scheduler.schedules()
            assert stored.last_run is not None
            assert stored.last_run.slot == "2026-11-28T09:00"
            await there.until(lambda: bool(hands.ends))
            assert hands.ends == [("2026-11-28T09:00", "completed")]


async def test_a_call_that_waits_is_still_listed_after_its_prompt_was_to_run_now(tmp_path: Path) -> None:
    async with Loopback(asks_for_a_command()) as server:
        await leave_waiting(tmp_path, server.url, target="same")
        async with world(tmp_path / "data", server.url, toolset="all") as there:
            (schedule,) = await there.scheduler.schedules()
            with pytest.raises(WrongUse, match="not ended"):
                await there.scheduler.run_now(schedule.prompt.id)
            (left,) = await there.engine.interrupted_conversations()
            assert left.waits_for_approval


async def test_a_conversation_in_which_the_person_is_at_work_is_closed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_lifecycle, "LINGER_SECONDS", 0.01)
    server = Loopback(ANSWER, asks_for_a_command(), ANSWER)
    async with server, world(tmp_path / "data", server.url, runs=False, toolset="all") as there:
        await there.scheduler.save(daily(target="same", workspace=str(tmp_path)))
        await there.set_time(START + timedelta(minutes=1))
        await there.until(lambda: bool(there.hands.ends))
        (record,) = await there.engine.store.list_conversations()
        session = await there.engine.session(record.id)
        session.send(Message.user("Do it"))
        await there.until(lambda: bool(session.approvals.open_approvals))
        there.engine.release_session(session)
        await there.set_time(START + timedelta(days=1, minutes=1))
        assert len(server.requests) == 2
        (schedule,) = await there.scheduler.schedules()
        assert await there.scheduler._hold_lock()
        with pytest.raises(WrongUse, match="Another answer in its conversation has not ended yet"):
            await there.scheduler.run_now(schedule.prompt.id)
        there.scheduler._lock.release()
        (waiting,) = session.approvals.open_approvals
        session.approvals.answer(waiting.approval_id, AllowOnce())
        await there.until(lambda: session.is_closed)


async def test_what_a_person_sends_after_a_run_was_refused_is_no_end_of_it(tmp_path: Path) -> None:
    async with Loopback(ANSWER) as server, world(tmp_path, server.url) as there:
        prompt = daily(target="same")
        await there.scheduler.save(prompt)
        await there.set_time(START + timedelta(minutes=1))
        await there.until(lambda: bool(there.hands.ends))
        (session,) = there.hands.sessions
        session.change_record(endpoint_id="gone")
        await there.set_time(START + timedelta(days=1, minutes=1))
        assert [result for _, result in there.hands.ends] == ["completed", "refused"]
        session = await there.engine.session(session.record.id)
        session.change_record(endpoint_id="loopback")
        session.send(Message.user("And now?"))
        await session.wait_idle()
        await there.look()
        assert [result for _, result in there.hands.ends] == ["completed", "refused"]


async def set_budget(there: World, tokens: int | None, used: int = 0) -> None:
    if used:
        await there.engine.store.usage.add({UsageKey(local_day(), "m", ""): UsageFigures(answers=1, tokens=used)})
    budgets = UsagePreferences(tokens_per_day=tokens)
    await there.engine.change_preferences(there.engine.preferences.model_copy(update={"usage": budgets}))


@pytest.mark.parametrize(("missed", "target"), [("run_once", "new"), ("run_once", "same"), ("skip", "new")])
async def test_what_is_due_waits_for_a_budget_that_is_used_up_and_then_runs_once(
    tmp_path: Path, missed: MissedPolicy, target: ScheduleTarget
) -> None:
    async with Loopback(ANSWER) as server, world(tmp_path, server.url) as there:
        timing = Interval(minutes=5, start=START)
        often = ScheduledPrompt(title="Often", prompt="go", timing=timing, missed=missed, target=target)
        await there.scheduler.save(often)
        await there.set_time(START + timedelta(minutes=5))
        await there.until(lambda: len(there.hands.ends) == 1)
        await set_budget(there, 1_000, used=1_000)
        for minutes in range(10, 300, 5):
            await there.set_time(START + timedelta(minutes=minutes))
        await there.set_time(START + timedelta(minutes=298))
        waited_for = there.scheduler.budget_waited_for(often.id)
        assert waited_for is not None
        assert (len(there.hands.ends), len(server.requests)) == (1, 1)
        assert there.hands.budget_waits == ["The budget of tokens for today is used up."]
        assert len(await there.engine.store.list_conversations()) == 1
        await set_budget(there, 2_000)
        await there.look()
        assert there.scheduler.budget_waited_for(often.id) is None
        runs = 1 if missed == "skip" else 2
        await there.until(lambda: len(there.hands.ends) == runs)
        await there.look()
        assert len(await there.prompts()) == runs
        await there.set_time(START + timedelta(minutes=300))
        await there.until(lambda: len(there.hands.ends) == runs + 1)
        assert {result for _, result in there.hands.ends} == {"completed"}


async def test_a_prompt_of_one_time_is_looked_at_again_while_it_waits_for_a_budget(tmp_path: Path) -> None:
    async with Loopback(ANSWER) as server, world(tmp_path, server.url) as there:
        await set_budget(there, 1, used=1)
        await there.scheduler.save(
            ScheduledPrompt(title="Once", prompt="go", timing=Once(at=datetime.fromisoformat("2026-11-27T09:00")))
        )
        there.hands.time = (START + timedelta(minutes=1)).timestamp()
        async with there.scheduler._one_at_a_time:
            # None: it would be forgotten until the next start.
            assert await there.scheduler._check() is not None
        await set_budget(there, None)
        await there.until(lambda: bool(there.hands.ends))
        assert len(server.requests) == 1


async def test_what_was_claimed_waits_for_the_budget_too_and_what_is_paused_waits_for_none(tmp_path: Path) -> None:
    async with Loopback(ANSWER) as server, world(tmp_path, server.url) as there:
        async with there.scheduler._one_at_a_time:
            await there.scheduler.save(daily())
            (stored,) = await there.scheduler.schedules()
            now = START + timedelta(seconds=30)
            runs = there.engine.store.schedules.runs
            assert await runs.claim(stored, "2026-11-27T09:00", "gone", "the id", now, is_due=True)
            await set_budget(there, 1, used=1)
        await there.set_time(START + timedelta(minutes=1))
        assert there.scheduler.budget_waited_for(stored.prompt.id) is not None
        await there.scheduler.save(stored.prompt.model_copy(update={"is_on": False}))
        await there.look()
        assert there.scheduler.budget_waited_for(stored.prompt.id) is None
        assert server.requests == []
