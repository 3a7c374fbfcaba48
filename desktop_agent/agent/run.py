"""The life of one run: started once, stopped at any moment, ended once; then nothing of it is open."""

import asyncio
import logging
from collections.abc import Coroutine, Generator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from desktop_agent.agent.agent_loop import AgentLoop
from desktop_agent.agent.model_request import RunSettings
from desktop_agent.agent.retry import long_retry_remedy
from desktop_agent.agent.run_context import LESS_GRACE_PER_LEVEL, Budget, RunContext
from desktop_agent.agent.specialists import SpecialistDelegation
from desktop_agent.agent.tool_calls.tool_execution import RecoveredCalls
from desktop_agent.processes.foreign_code import safe_traceback
from desktop_agent.types.engine_events import ErrorOccurred, LimitReached, RunEnd, RunFinished, RunStarted
from desktop_agent.types.errors import AgentError, Sentence
from desktop_agent.types.messages import Message
from desktop_agent.types.policies import Interrupt, StopSession, StopTool

_log = logging.getLogger(__name__)

# After Stop the tools get this long to end by themselves, in seconds.
STOP_GRACE = 2.0
_MIN_WAIT = 0.05


class Run:
    """One run, from its RunStarted to its single RunFinished. Create one for each prompt.

    `only_compacts`: it only asks for a summary, and ends.
    """

    def __init__(
        self,
        context: RunContext,
        settings: RunSettings,
        budget: Budget | None = None,
        *,
        only_compacts: bool = False,
    ) -> None:
        self._budget = budget or Budget(settings.limits)
        self._only_compacts = only_compacts
        self._sub_runs: list[Run] = []
        if context.specialists:
            delegation = SpecialistDelegation(context, settings, self._budget, self._specialist_run, self.interrupt)
            context = replace(context, tools=context.tools.with_tools(*map(delegation.tool, context.specialists)))
        self._recorder = context.recorder
        self._agent_path = context.agent_path
        self._stop_requested = asyncio.Event()
        self._out_of_time = False
        self._is_stopped = False
        self._work: asyncio.Task[RunEnd] | None = None
        # Why it failed, if it did.
        self.error: AgentError | None = None
        self._loop = AgentLoop(context, settings, self._budget, self._stop_requested.is_set)

    @property
    def turn_id(self) -> str | None:
        return self._loop.turn_id

    @property
    def last_answer(self) -> Message | None:
        return self._loop.last_answer

    @property
    def only_waits(self) -> bool:
        """Return whether nothing is under way but calls that wait for the person."""
        return self._loop.only_waits and not self._sub_runs

    def interrupt(self, target: Interrupt | None = None) -> bool:
        """Stop one call, or the run: its connection closes, tools are signalled, nothing new starts. Idempotent.

        Return False where there is no such call.
        """
        target = target or StopSession()
        if isinstance(target, StopTool):
            return self._loop.stop_call(target.tool_use_id) or any(
                sub_run.interrupt(target) for sub_run in tuple(self._sub_runs)
            )
        self._is_stopped = self._is_stopped or self._work is None or not self._work.done()
        self._stop_requested.set()
        self._loop.stop()
        # Sub-runs stop in the same moment, not only once their cancelled calls reach them.
        for sub_run in tuple(self._sub_runs):
            sub_run.interrupt(target)
        if self._work is not None and not self._work.done():
            self._work.cancel()
        return True

    async def execute(self, prompt: Message | None = None, *, recovered: RecoveredCalls | None = None) -> RunEnd:
        """Work until the model is done, somebody stops it, a limit is reached or it fails. Raises nothing.

        Without a prompt it continues from the history; with `recovered`, first with the calls that a dead process left
        open.
        """
        history = self._recorder.history()
        begins_with = prompt.id if prompt is not None else (history[-1].id if history else "")
        agent = self._agent_path[-1] if self._agent_path else ""
        self._recorder.emit(RunStarted(begins_with, resumed=recovered is not None, agent=agent))
        end = RunEnd.FAILED
        try:
            if recovered is not None:
                self._loop.adopt_recovered_calls(recovered)
            self._work = asyncio.create_task(self._guarded(prompt, recovered))
            if self._stop_requested.is_set():
                self._work.cancel()
            end = await self._outcome(self._work)
            await _run_to_end(self._loop.close(end, prompt))
        except Exception as error:  # noqa: BLE001 - whatever fails in closing, nobody may wait for an end in vain
            _log_failure(error)
        self._recorder.emit(RunFinished(end))
        return end

    async def _outcome(self, work: asyncio.Task[RunEnd]) -> RunEnd:
        """Wait for the work; once stopped, only for the grace."""
        stopping = asyncio.create_task(self._stop_requested.wait())
        try:
            while not work.done() and not stopping.done():
                seconds_left = self._budget.seconds_left
                # While the run waits for a person, the seconds left do not decrease.
                wait = None if seconds_left is None else max(seconds_left, _MIN_WAIT)
                await asyncio.wait({work, stopping}, timeout=wait, return_when=asyncio.FIRST_COMPLETED)
                if self._budget.seconds_left == 0 and not work.done():
                    self._out_of_time = True
                    self.interrupt()
                    break
        except asyncio.CancelledError:
            # The program is closing: the same as Stop, and what is open is still closed in order.
            self.interrupt()
        finally:
            stopping.cancel()
        grace = STOP_GRACE - LESS_GRACE_PER_LEVEL * self._budget.depth
        await _run_to_end(asyncio.wait({work}, timeout=grace))
        if not work.done():
            _log.warning("a tool did not end within %s s of Stop and was left behind", grace)
        if self._out_of_time:
            self._recorder.emit(LimitReached.of(Sentence("time")))
            return RunEnd.LIMIT
        # A stopped run ends as cancelled, whatever its work still returned.
        return RunEnd.CANCELLED if self._is_stopped or work.cancelled() else work.result()

    async def _guarded(self, prompt: Message | None, recovered: RecoveredCalls | None) -> RunEnd:
        """Run the turns; whatever fails in them becomes an event, so that the session stays usable."""
        try:
            return await (self._loop.compact() if self._only_compacts else self._loop.run(prompt, recovered))
        except AgentError as error:
            if self._stop_requested.is_set():
                # Stopping is what made it fail.
                return RunEnd.CANCELLED
            error.remedy = long_retry_remedy(error) or error.remedy
            self.error = error
            self._recorder.emit(ErrorOccurred.of(error))
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError) and self._stop_requested.is_set():
                raise
            # No exception may end the conversation, nor end the run silently.
            _log_failure(error)
            kind = type(error).__name__
            self.error = AgentError(Sentence("Something went wrong inside the program ({kind}).", {"kind": kind}))
            self._recorder.emit(ErrorOccurred.of(self.error))
        return RunEnd.FAILED

    @contextmanager
    def _specialist_run(self, context: RunContext, settings: RunSettings, budget: Budget) -> "Generator[Run]":
        sub_run = Run(context, settings, budget)
        self._sub_runs.append(sub_run)
        try:
            if self._stop_requested.is_set():
                sub_run.interrupt()
            yield sub_run
        finally:
            self._sub_runs.remove(sub_run)


def _log_failure(error: BaseException) -> None:
    _log.error("a run failed: %s", safe_traceback(error))


async def _run_to_end(work: Coroutine[Any, Any, object]) -> None:
    """Wait for the work to end, however often the waiting task is cancelled."""
    task = asyncio.ensure_future(work)
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait({task})
    task.result()
