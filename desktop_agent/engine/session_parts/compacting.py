"""Summarising older messages because the person wants it, while no run is under way."""

import asyncio
import logging

from desktop_agent.agent.budget import Budget
from desktop_agent.agent.calls.fence import Fault
from desktop_agent.agent.calls.left_over import RecoveredCalls
from desktop_agent.agent.edge import TurnBoundary
from desktop_agent.agent.request import RunSettings
from desktop_agent.agent.run import STOP_GRACE
from desktop_agent.agent.surroundings import RunContext
from desktop_agent.vocabulary.conduct.interrupts import Interrupt, StopTool
from desktop_agent.vocabulary.engine_events import ErrorOccurred, RunEnd, RunFinished, RunStarted
from desktop_agent.vocabulary.errors import AgentError, WrongUse
from desktop_agent.vocabulary.messages import Message

_log = logging.getLogger(__name__)


class CompactionRun:
    """A run without a turn: it asks for a summary, and ends."""

    turn_id: str | None = None

    def __init__(self, context: RunContext, settings: RunSettings, budget: Budget) -> None:
        self._context = context
        self._recorder = context.recorder
        self._settings = settings
        self._boundary = TurnBoundary(context, settings, budget)
        self._stop_requested = asyncio.Event()

    def interrupt(self, target: Interrupt | None = None) -> bool:
        """Stop asking. False: there are no calls to stop."""
        if isinstance(target, StopTool):
            return False
        self._stop_requested.set()
        return True

    async def execute(self, prompt: Message | None = None, *, left: RecoveredCalls | None = None) -> RunEnd:  # noqa: ARG002
        """Ask for the summary; there is neither a prompt nor anything left. Raises nothing."""
        history = self._recorder.history()
        self._recorder.emit(RunStarted(history[-1].id if history else ""))
        work, stopping = asyncio.create_task(self._guarded()), asyncio.create_task(self._stop_requested.wait())
        try:
            await asyncio.wait({work, stopping}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            # The program is closing: the same as Stop.
            self._stop_requested.set()
        finally:
            stopping.cancel()
        ended = work.done() and not work.cancelled()
        if not work.done():
            work.cancel()
            await asyncio.wait({work}, timeout=STOP_GRACE)
        end = work.result() if ended else RunEnd.CANCELLED
        self._recorder.emit(RunFinished(end))
        return end

    async def _guarded(self) -> RunEnd:
        try:
            provider = await self._context.open_provider(self._settings.model)
            if await self._boundary.compact(provider):
                return RunEnd.COMPLETED
            failure: AgentError = WrongUse(
                "Nothing could be summarised.", "Go on as it is, or begin a new conversation."
            )
        except AgentError as error:
            failure = error
        except Exception as error:  # noqa: BLE001 - a fault of ours must not take the conversation down
            _log.error("summarising failed: %s", Fault(error).trace)
            failure = AgentError(f"Something went wrong inside the program ({type(error).__name__}).")
        if self._stop_requested.is_set():
            # Stopping is what made it fail.
            return RunEnd.CANCELLED
        self._recorder.emit(ErrorOccurred.of(failure))
        return RunEnd.FAILED
