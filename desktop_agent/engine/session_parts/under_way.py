"""What a session does just now: one run at a time, begun, stopped, and followed by what comes after it."""

import asyncio
from collections.abc import Callable

from desktop_agent.agent.calls.left_over import RecoveredCalls
from desktop_agent.engine.session_parts.recorder import RunRecorder
from desktop_agent.engine.session_parts.run_making import SessionRun
from desktop_agent.engine.writer import SessionWriter
from desktop_agent.vocabulary.conduct.interrupts import Interrupt
from desktop_agent.vocabulary.engine_events import EngineEvent, RunEnd
from desktop_agent.vocabulary.messages import Message

OnRunEnd = Callable[[RunRecorder, Message | None, RunEnd], None]


class ActiveRun:
    """The run that works, if one does. `on_change` hears when work begins and when all of it is written."""

    def __init__(self, writer: SessionWriter, on_change: Callable[[], None]) -> None:
        self._writer = writer
        self._on_change = on_change
        self._work: SessionRun | None = None
        self._recorder: RunRecorder | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def recorder(self) -> RunRecorder | None:
        """Of the run that works; None when none does. From its RunFinished on none does."""
        return None if self._recorder is None or self._recorder.finished else self._recorder

    @property
    def turn_id(self) -> str | None:
        """The turn that runs."""
        return None if self._work is None or self.recorder is None else self._work.turn_id

    @property
    def is_idle(self) -> bool:
        """Whether also what the last run left is written."""
        return not self._tasks

    def start(
        self,
        work: SessionRun,
        recorder: RunRecorder,
        after: OnRunEnd,
        prompt: Message | None = None,
        left: RecoveredCalls | None = None,
    ) -> None:
        """Begin it; `after` hears of its end at once, with the prompt, and may begin the next."""
        self._work, self._recorder = work, recorder
        task = asyncio.create_task(self._run(work, recorder, after, prompt, left))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: self._on_change())
        self._on_change()

    def is_latest(self, recorder: RunRecorder) -> bool:
        """Whether no other run was begun since."""
        return recorder is self._recorder

    def interrupt(self, target: Interrupt) -> bool:
        """Stop it, or one of its calls; False when there is nothing to stop."""
        return self.recorder is not None and self._work is not None and self._work.interrupt(target)

    def emit(self, event: EngineEvent) -> None:
        """Into the run that works, or between two."""
        recorder = self.recorder
        if recorder is None:
            self._writer.emit_between_runs(event)
        else:
            recorder.emit(event)

    async def wait_idle(self) -> None:
        """Return when no run is under way and what the last one left is written."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def _run(
        self,
        work: SessionRun,
        recorder: RunRecorder,
        after: OnRunEnd,
        prompt: Message | None,
        left: RecoveredCalls | None,
    ) -> None:
        end = await work.execute(prompt, left=left)
        after(recorder, prompt, end)
        for run_id in recorder.run_ids:
            await self._writer.journal_queue.finish_run(run_id)
