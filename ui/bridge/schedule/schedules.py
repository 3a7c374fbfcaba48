"""The scheduled prompts of the data folder, and the scheduler that runs them."""

import asyncio
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from desktop_agent.engine.engine import Engine
from desktop_agent.tools.replaced_folders import resolve_chosen
from desktop_agent.types.errors import AgentError, Sentence
from desktop_agent.types.schedules import RunResult, ScheduledPrompt, ScheduledRun
from desktop_agent.types.spending import BudgetReached
from ui.bridge.event_loop import BackgroundTasks
from ui.bridge.library import ConversationLibrary, subscribe_library

if TYPE_CHECKING:
    from desktop_agent.engine.session import Session
    from desktop_agent.schedule.scheduler import Scheduler


@dataclass(frozen=True, slots=True)
class ListedSchedule:
    """A scheduled prompt in the list. `next_run` is in local time; None if there is none.

    `waits`: a call of its last run, or a server's request for it, waits for the person. `budget`: which budget is used
    up, if a due run waits for it.
    """

    prompt: ScheduledPrompt
    next_run: datetime | None = None
    last_run: ScheduledRun | None = None
    waits: bool = False
    budget: Sentence | None = None

    @property
    def name(self) -> str:
        """Its id."""
        return self.prompt.id


class ScheduledPrompts(QObject):
    """Lists, changes and runs the prompts. They run from `start` on, until `close`."""

    listed = Signal(list)
    """The ListedSchedules, oldest first."""
    budget_waited_for = Signal(Sentence)
    """Due runs begin to wait: a Sentence about the used-up budget. Emitted once, until no run waits any more."""

    def __init__(
        self, engine: Engine, library: ConversationLibrary, tasks: BackgroundTasks, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._engine = engine
        self._library = library
        self._tasks = tasks
        self._scheduler: Scheduler | None = None
        self._work: asyncio.Task[None] | None = None
        self._saving = asyncio.Lock()
        """Locked from reading a prompt until it is saved."""
        library.waiting.changed.connect(self.refresh)
        library.requests.changed.connect(self.refresh)

    def start(self) -> None:
        """Begin to run due prompts. Call it late: it imports libraries that the start does not need."""
        if self._scheduler is None:
            from desktop_agent.schedule.scheduler import Scheduler

            self._scheduler = Scheduler(self._engine, _Listener(self, self._library, self._tasks))
            self._work = asyncio.create_task(self._scheduler.run())
            self._work.add_done_callback(self._on_end)

    async def close(self) -> None:
        """Begin no more runs. The engine ends active ones."""
        if self._work is not None:
            self._work.cancel()
            await asyncio.wait([self._work])

    def refresh(self) -> None:
        """Read the list again."""
        if self._scheduler is not None:
            self._tasks.start(self._refresh(self._scheduler))

    def save(self, prompt: ScheduledPrompt) -> None:
        """Store a new prompt, or a changed one, which stays on or off."""
        if self._scheduler is not None:
            self._tasks.start(self._save(self._scheduler, prompt))

    def switch(self, schedule_id: str, is_on: bool) -> None:  # noqa: FBT001  a slot
        """Switch a prompt on or off; other changes of it meanwhile stay."""
        if self._scheduler is not None:
            self._tasks.start(self._switch(self._scheduler, schedule_id, is_on=is_on))

    def delete(self, schedule_id: str) -> None:
        """Delete a prompt; its conversations stay."""
        if self._scheduler is not None:
            self._tasks.start(self._scheduler.delete(schedule_id))

    def run_now(self, schedule_id: str) -> None:
        """Begin a run at once."""
        if self._scheduler is not None:
            self._tasks.start(self._scheduler.run_now(schedule_id))

    def _on_end(self, work: "asyncio.Task[None]") -> None:
        if not work.cancelled() and (error := work.exception()) is not None:
            kind = type(error).__name__
            self._tasks.report(AgentError(Sentence("Scheduled prompts have stopped ({kind}).", {"kind": kind})))

    async def _save(self, scheduler: "Scheduler", prompt: ScheduledPrompt) -> None:
        async with self._saving:
            previous = await _stored(scheduler, prompt.id)
            is_chosen = prompt.workspace is not None and (previous is None or prompt.workspace != previous.workspace)
            # A link is resolved when the folder is chosen, and never again. A missing folder stays: runs report it.
            real = await asyncio.to_thread(resolve_chosen, Path(prompt.workspace or "")) if is_chosen else None
            if real is not None:
                prompt = prompt.model_copy(update={"workspace": str(real)})
            await scheduler.save(prompt if previous is None else prompt.model_copy(update={"is_on": previous.is_on}))

    async def _switch(self, scheduler: "Scheduler", schedule_id: str, *, is_on: bool) -> None:
        async with self._saving:
            prompt = await _stored(scheduler, schedule_id)
            if prompt is not None:
                await scheduler.save(prompt.model_copy(update={"is_on": is_on}))

    async def _refresh(self, scheduler: "Scheduler") -> None:
        waiting = {call.conversation_id for call in self._library.waiting.rows}
        waiting |= {request.request.conversation_id for request in self._library.requests.waiting}
        rows: list[ListedSchedule] = []
        for stored in await scheduler.schedules():
            slot, last = scheduler.next_slot(stored.prompt), stored.last_run
            waits = last is not None and last.state == "started" and last.conversation_id in waiting
            budget = scheduler.budget_waited_for(stored.prompt.id)
            wall, sentence = None if slot is None else slot.wall, None if budget is None else budget.sentence
            rows.append(ListedSchedule(stored.prompt, wall, last, waits, sentence))
        self.listed.emit(rows)


async def _stored(scheduler: "Scheduler", schedule_id: str) -> ScheduledPrompt | None:
    prompts = (stored.prompt for stored in await scheduler.schedules())
    return next((prompt for prompt in prompts if prompt.id == schedule_id), None)


class _Listener:
    """Passes the events of the scheduler to the screens."""

    def __init__(self, schedules: ScheduledPrompts, library: ConversationLibrary, tasks: BackgroundTasks) -> None:
        self._schedules = schedules
        self._library = library
        self._tasks = tasks

    def on_changed(self) -> None:
        self._schedules.refresh()

    def on_run_begun(self, session: "Session") -> None:
        subscribe_library(self._library, session)

    def on_run_ended(self, prompt: ScheduledPrompt, run: ScheduledRun, result: RunResult) -> None:
        """Do nothing: the activity of its conversation already shows it."""

    def on_budget_wait(self, error: BudgetReached) -> None:
        self._schedules.budget_waited_for.emit(error.sentence)

    def on_error(self, error: AgentError) -> None:
        self._tasks.report(error)

    def release(self, session: "Session") -> None:
        self._library.leave(session)
