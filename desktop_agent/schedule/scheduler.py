"""The scheduler: begins the runs of scheduled prompts when their times come, each once."""

import asyncio
import logging
from collections.abc import Awaitable, Coroutine
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol

from desktop_agent.engine.engine import Engine
from desktop_agent.processes.worker_threads import CancelToken, finish, run_in_thread
from desktop_agent.schedule.timing import GRACE, Clock, Slot, newest_slot, slots_after
from desktop_agent.storage.file_lock import FileLock, Holder, RetakeResult, lock_path
from desktop_agent.storage.locks.conversation_locks import Program
from desktop_agent.types.engine_events import Envelope, RunEnd, RunFinished
from desktop_agent.types.errors import AgentError, ConversationInUse, StorageFailed, WrongUse
from desktop_agent.types.messages import Message
from desktop_agent.types.schedules import RunResult, ScheduledPrompt, ScheduledRun, StoredSchedule
from desktop_agent.types.spending import BudgetReached

if TYPE_CHECKING:
    from desktop_agent.engine.session import Session

_log = logging.getLogger(__name__)
LONGEST_SLEEP = 15.0
"""Seconds between two checks of the clock: it may be set, and the machine may sleep."""
_SHORTEST_SLEEP = 0.2
_LOCK_SECONDS = 5.0
_BACK_TOLERANCE = timedelta(seconds=1)
_RESULTS: dict[RunEnd, RunResult] = {
    RunEnd.COMPLETED: "completed",
    RunEnd.CANCELLED: "cancelled",
    RunEnd.FAILED: "failed",
    RunEnd.LIMIT: "limit",
    RunEnd.ABORTED: "interrupted",
    RunEnd.AWAITING_RESULTS: "interrupted",
}


class SchedulerListener(Protocol):
    """Receives what the scheduler does, in the loop's thread."""

    def on_changed(self) -> None:
        """Prompts or their runs have changed."""

    def on_run_begun(self, session: "Session") -> None:
        """A run begins, or goes on, in this session."""

    def on_run_ended(self, prompt: ScheduledPrompt, run: ScheduledRun, result: RunResult) -> None:
        """A run has ended, or could not begin."""

    def on_budget_wait(self, error: BudgetReached) -> None:
        """Runs that are due begin to wait for a budget. Called once, until none waits any more."""

    def on_error(self, error: AgentError) -> None:
        """Something went wrong that no run can show."""

    def release(self, session: "Session") -> None:
        """The scheduler does not need a session any more: it may be closed, unless somebody else uses it."""


class BudgetWaits:
    """Which prompts wait for a budget: no due run is begun while a budget that would stop it is used up."""

    def __init__(self, engine: Engine, listener: SchedulerListener) -> None:
        self._engine = engine
        self._listener = listener
        self.reached: dict[str, BudgetReached] = {}
        """The budget that each prompt waits for, by its id."""

    async def check(self, schedule: StoredSchedule) -> bool:
        """Return whether a budget would stop a run of this prompt, and note it. Raises StorageFailed."""
        prompt, record = schedule.prompt, None
        if prompt.target == "same" and schedule.conversation_id is not None:
            with suppress(WrongUse):  # it is gone, or in the trash
                record = await self._engine.record(schedule.conversation_id)
        endpoint_id = record.endpoint_id if record else prompt.endpoint_id
        default_id = self._engine.preferences.providers.endpoint_id
        before, is_first = self.reached.get(prompt.id), not self.reached
        try:
            await self._engine.spending.check(endpoint_id or default_id, record.id if record else "")
        except BudgetReached as error:
            self.reached[prompt.id] = error
            if before is None or before.sentence != error.sentence:
                self._listener.on_changed()
            if is_first:
                self._listener.on_budget_wait(error)
            return True
        if self.reached.pop(prompt.id, None) is not None:
            self._listener.on_changed()
        return False

    def keep(self, schedule_ids: set[str]) -> None:
        """Forget all others: they are off or deleted by now."""
        self.reached = {id_: error for id_, error in self.reached.items() if id_ in schedule_ids}


class Scheduler:
    """Runs the scheduled prompts of one data folder while `run` does. Of all processes, one at a time does so.

    It holds a lock on the folder, and claims each run in the database as well. Where its process dies, the next one
    sends a claimed prompt that was not sent; one that was sent is recovered as any other run, and not sent again.
    """

    def __init__(
        self,
        engine: Engine,
        listener: SchedulerListener,
        clock: Clock | None = None,
        program: Program = "window",
        longest_sleep: float = LONGEST_SLEEP,
    ) -> None:
        self._engine = engine
        self._listener = listener
        self.clock = clock or Clock()
        self._program: Program = program
        self._longest_sleep = longest_sleep
        self._rows = engine.store.schedules
        self._wake = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()
        """A claim that is not sent yet must not be taken for one that a dead process left."""
        self._lock = FileLock(lock_path(engine.folder, "schedule"), engine.folder)
        self._followed: dict[str, Session] = {}
        """The session of each run at work here, by the id of its prompt."""
        self._budget_waits = BudgetWaits(engine, listener)
        self._tasks: set[asyncio.Task[None]] = set()
        engine.on_preferences(lambda _: self.check_soon())

    async def run(self) -> None:
        """Work until cancelled."""
        try:
            while True:
                seconds: float | None = _LOCK_SECONDS
                self._wake.clear()
                if await self._hold_lock():
                    async with self._one_at_a_time:
                        seconds = await self._check()
                with suppress(TimeoutError):
                    async with asyncio.timeout(seconds):
                        await self._wake.wait()
        finally:
            for task in tuple(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await finish(asyncio.to_thread(self._lock.release))

    async def schedules(self) -> tuple[StoredSchedule, ...]:
        """Return all prompts with their last runs. Raises StorageFailed."""
        return await self._rows.all()

    def next_slot(self, prompt: ScheduledPrompt) -> Slot | None:
        """Return the next time of a prompt; None where it is off, or where none comes."""
        return next(slots_after(prompt.timing, self.clock, self.clock.now()), None) if prompt.is_on else None

    def budget_waited_for(self, schedule_id: str) -> BudgetReached | None:
        """Return the budget that a due run of this prompt waits for, if it does."""
        return self._budget_waits.reached.get(schedule_id)

    async def save(self, prompt: ScheduledPrompt) -> None:
        """Store a prompt; times that have passed are not made up for. Raises StorageFailed."""
        await self._rows.save(prompt, self.clock.now())
        self.check_soon()
        self._listener.on_changed()

    async def delete(self, schedule_id: str) -> None:
        """Delete a prompt; a run at work goes on. Raises StorageFailed."""
        await self._rows.delete(schedule_id)
        self._listener.on_changed()

    async def run_now(self, schedule_id: str) -> None:
        """Begin a run at once. Raises WrongUse while its conversation is at work, and StorageFailed."""
        if not self._lock.is_held:
            raise WrongUse("Another process runs the scheduled prompts.", "Close it, or begin the run there.")
        async with self._one_at_a_time:
            schedule = next((known for known in await self._rows.all() if known.prompt.id == schedule_id), None)
            now = self.clock.now()
            slot = Slot(f"now {now.isoformat()}", self.clock.wall(now), now, is_late=False)
            if schedule is None:
                return
            remedy = "Wait, or open its conversation and stop it."
            # Not to open a conversation in which a call waits: it would not be listed as waiting then.
            if schedule.has_open_run:
                raise WrongUse("Its last run has not ended yet.", remedy)
            if not await self._begin(schedule, slot, now, is_due=False):
                raise WrongUse("Another answer in its conversation has not ended yet.", remedy)

    def check_soon(self) -> None:
        """Check soon what is due."""
        self._wake.set()

    async def _hold_lock(self) -> bool:
        def acquire(_token: CancelToken) -> bool:
            holder = Holder.this_process(self._program)
            # Its file may have been removed, and another process may hold a new one.
            if self._lock.is_held and self._lock.retake(holder) is RetakeResult.REFUSED:
                self._lock.release()
            return self._lock.acquire(holder)

        try:
            # To its end, also when this is cancelled: a lock that was taken is released afterwards.
            return await run_in_thread(acquire)
        except StorageFailed as error:
            _log.info("scheduled prompts do not run: %s", error)
            return False

    async def _check(self) -> float | None:
        """Begin what is due; return the seconds until the next check, None where nothing will be due."""
        if self._engine.store.read_only is not None:
            return self._longest_sleep
        try:
            await self._settle_unfinished()
            schedules = await self._rows.all()
            checks = (self._check_schedule(schedule) for schedule in schedules if schedule.prompt.is_on)
            stays_due = [await _stays_due(check) for check in checks]
            self._budget_waits.keep({schedule.prompt.id for schedule in schedules if schedule.prompt.is_on})
        except StorageFailed as error:
            # The disk watch reports the trouble; what is due stays due.
            _log.warning("scheduled prompts wait for the disk: %s", error)
            return self._longest_sleep
        return self._seconds_until_next(schedules, stays_due=any(stays_due))

    def _seconds_until_next(self, schedules: tuple[StoredSchedule, ...], *, stays_due: bool) -> float | None:
        slots = [slot for schedule in schedules if (slot := self.next_slot(schedule.prompt)) is not None]
        if not slots and not stays_due and not any(schedule.has_open_run for schedule in schedules):
            return None
        now = self.clock.now()
        seconds = min([self._longest_sleep, *((slot.moment - now).total_seconds() for slot in slots)])
        return max(_SHORTEST_SLEEP, seconds)

    async def _check_schedule(self, schedule: StoredSchedule) -> bool:
        """Begin the run of a prompt if one is due; return whether one stays due."""
        now = self.clock.now()
        if now < schedule.checked_until - _BACK_TOLERANCE:
            # The clock was set back. The slots of past runs are stored, so that none runs again.
            await self._rows.runs.set_checked(schedule, now)
            return False
        if schedule.has_open_run:
            # Runs of one prompt never pile up.
            return False
        slot = newest_slot(schedule.prompt.timing, self.clock, schedule.checked_until, now)
        if slot is None and self.budget_waited_for(schedule.prompt.id) is None:
            return False
        waits = await self._budget_waits.check(schedule)
        if slot is None:
            return waits
        if slot.is_late and schedule.prompt.missed == "skip":
            if await self._rows.runs.skip(schedule, slot.key, now):
                self._listener.on_changed()
            return waits
        return waits or not await self._begin(schedule, slot, now, is_due=True)

    async def _begin(self, schedule: StoredSchedule, slot: Slot, now: datetime, *, is_due: bool) -> bool:
        """Claim the run that was found due at `now`, and send its prompt; return whether it was claimed.

        Raises StorageFailed, also where another process works in its conversation.
        """
        prompt, message = schedule.prompt, Message.user(schedule.prompt.prompt)
        session = await self._open_idle(prompt, schedule.conversation_id)
        if session is None:
            return False
        conversation_id = session.record.id
        if not await self._rows.runs.claim(schedule, slot.key, conversation_id, message.id, now, is_due=is_due):
            self._listener.release(session)
            return False
        run = ScheduledRun(prompt.id, slot.key, conversation_id, message.id, "claimed", "", now)
        await self._send(prompt, run, session, message)
        return True

    async def _open_idle(self, prompt: ScheduledPrompt, conversation_id: str | None) -> "Session | None":
        """Open the conversation of a run; None where another run is at work in it, or waits to go on."""
        session = await self._open(prompt, conversation_id)
        if session.working or session.can_resume:
            self._listener.release(session)
            return None
        return session

    async def _open(self, prompt: ScheduledPrompt, conversation_id: str | None) -> "Session":
        if prompt.target == "same" and conversation_id is not None:
            with suppress(WrongUse):  # it is gone, or in the trash
                return await self._engine.session(conversation_id)
        session = self._engine.new_session(
            endpoint_id=prompt.endpoint_id, model=prompt.model, workspace=prompt.workspace or None
        )
        session.change_record(title=prompt.title)
        return session

    async def _send(self, prompt: ScheduledPrompt, run: ScheduledRun, session: "Session", message: Message) -> None:
        self._listener.on_run_begun(session)
        try:
            _set_mode(session, prompt.mode)
            session.send(message)
        except AgentError as error:
            await self._rows.runs.end(run, "refused")
            self._listener.on_error(error)
            self._listener.on_run_ended(prompt, run, "refused")
            self._listener.release(session)
        else:
            self._follow(prompt, run, session)
        self._listener.on_changed()

    def _follow(self, prompt: ScheduledPrompt, run: ScheduledRun, session: "Session") -> None:
        """Note the end of a run that was begun, once it ends."""
        self._followed[prompt.id] = session

        def on_event(envelope: Envelope) -> None:
            if isinstance(envelope.event, RunFinished) and envelope.parent_run_id is None:
                session.unsubscribe(on_event)
                self._followed.pop(prompt.id, None)
                if not session.is_closed:
                    # Otherwise the program ends: the next start notes what became of the run.
                    self._start(self._end(prompt, run, session, _RESULTS[envelope.event.reason]))

        session.subscribe(on_event=on_event, pieces=False)

    async def _end(self, prompt: ScheduledPrompt, run: ScheduledRun, session: "Session", result: RunResult) -> None:
        try:
            await self._rows.runs.end(run, result)
        except StorageFailed as error:
            self._listener.on_error(error)
        self._listener.on_run_ended(prompt, run, result)
        self._listener.on_changed()
        await session.wait_idle()
        self._listener.release(session)
        self.check_soon()

    async def _settle_unfinished(self) -> None:
        """Send prompts that dead processes claimed; note the end of runs that ended without being followed."""
        unfinished = await self._rows.runs.unfinished()
        waiting = [run for run in unfinished if run.schedule_id not in self._followed]
        if not waiting:
            return
        schedules = {schedule.prompt.id: schedule for schedule in await self._rows.all()}
        interrupted = {runs.conversation_id: runs for runs in await self._engine.interrupted_conversations()}
        for run in waiting:
            schedule = schedules.get(run.schedule_id)
            if schedule is None:
                await self._rows.runs.end(run, "interrupted")
            elif run.state == "claimed":
                await _stays_due(self._send_claimed(schedule, run))
            elif (result := await self._rows.runs.outcome(run)) is not None:
                await self._rows.runs.end(run, result)
                self._listener.on_changed()
            elif run.conversation_id in interrupted and not interrupted[run.conversation_id].waits_for_approval:
                await self._recover(schedule.prompt, run)

    async def _send_claimed(self, schedule: StoredSchedule, run: ScheduledRun) -> bool:
        """Send the prompt of a run whose process died before that, under the id that it was claimed with.

        Return whether it stays due.
        """
        prompt, now = schedule.prompt, self.clock.now()
        if prompt.missed == "skip" and now - run.claimed_at > GRACE:
            await self._rows.runs.end(run, "missed")
            self._listener.on_changed()
            return False
        if await self._budget_waits.check(schedule):
            return True
        session = await self._open_idle(prompt, schedule.conversation_id)
        if session is None:
            return True
        await self._rows.runs.move(run, session.record.id)
        message = Message.user(prompt.prompt).model_copy(update={"id": run.message_id})
        await self._send(prompt, run, session, message)
        return False

    async def _recover(self, prompt: ScheduledPrompt, run: ScheduledRun) -> None:
        """Open the conversation of a run whose process died: the engine recovers it, or resumes its calls."""
        try:
            session = await self._engine.session(run.conversation_id, whole=False)
            self._listener.on_run_begun(session)
            if session.can_resume:
                session.resume()
                self._follow(prompt, run, session)
            else:
                self._listener.release(session)
        except AgentError as error:
            _log.info("a scheduled run cannot be recovered now: %s", error)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _stays_due(check: Awaitable[bool]) -> bool:
    """Return what the check of one prompt returns; True where its conversation cannot be opened now."""
    try:
        return await check
    except ConversationInUse:
        return True  # another process works there
    except StorageFailed as error:
        # The disk watch reports the trouble.
        _log.warning("a scheduled prompt waits for the disk: %s", error)
        return True


def _set_mode(session: "Session", name: str) -> None:
    """Set the mode of a run, unless its conversation has a narrower one by now.

    Raises WrongUse where the person removed it: another one might be wider.
    """
    mode = next((known for known in session.modes.modes if known.name == name), None)
    current = session.modes.current
    # Of two modes each may let something run that the other does not.
    is_narrower = mode is not None and mode.is_wider_than(current) and not current.is_wider_than(mode)
    if session.is_new or not is_narrower:
        session.modes.set_by_person(name)
