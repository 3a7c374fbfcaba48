"""The turn: ask the model, run what it calls, ask again. The only loop there is."""

import asyncio
import logging
from dataclasses import replace
from typing import Literal

from desktop_agent.agent.calls import CallRound
from desktop_agent.agent.question import Question
from desktop_agent.agent.request import RequestSettings
from desktop_agent.agent.retry import long_wait
from desktop_agent.agent.surroundings import Surroundings
from desktop_agent.conversation.answer_builder import AnswerBuilder
from desktop_agent.providers.provider import Provider
from desktop_agent.vocabulary.blocks import Outcome
from desktop_agent.vocabulary.engine_events import (
    ErrorOccurred,
    LimitReached,
    RunEnd,
    RunFinished,
    RunStarted,
    ToolResultsReceived,
    TurnStarted,
)
from desktop_agent.vocabulary.errors import AgentError
from desktop_agent.vocabulary.messages import Message, MessageState, new_id, now
from desktop_agent.vocabulary.provider_events import CUT_SHORT, StopReason

_log = logging.getLogger(__name__)

# After Stop the tools get this long to end by themselves, in seconds.
STOP_GRACE = 2.0
# The model is not finished, it only paused: the runtime goes on by itself.
_UNFINISHED = {StopReason.PAUSE_TURN, StopReason.CONTINUATION}
# A server that only ever pauses must not be asked for ever.
MOST_PAUSES = 20
_CUT_IN_TWO = CUT_SHORT | {StopReason.MALFORMED_TOOL_CALL}
# Calls of an answer that was withheld, refused or cut are not acted upon.
_NOT_ACTED_UPON = CUT_SHORT | {StopReason.REFUSAL}


class Run:
    """One run, from a prompt to its single RunFinished. Make one for each prompt."""

    def __init__(self, around: Surroundings, settings: RequestSettings) -> None:
        self._around = around
        self._recorder = around.recorder
        self._settings = settings
        self._answer: AnswerBuilder | None = None
        self._round: CallRound | None = None
        self._work: asyncio.Task[RunEnd] | None = None
        self._stop_asked = asyncio.Event()

    def stop(self) -> None:
        """End it at once: the connection closes, tools are signalled, nothing new starts. Idempotent."""
        self._stop_asked.set()
        if self._round is not None:
            self._round.stop()
        if self._work is not None and not self._work.done():
            self._work.cancel()

    async def execute(self, message_id: str) -> RunEnd:
        """Work until the model is done, the person stops it, a limit is reached or it fails. Raises nothing."""
        self._recorder.emit(RunStarted(message_id))
        self._work = asyncio.create_task(self._guarded())
        if self._stop_asked.is_set():
            self._work.cancel()
        end = await self._outcome(self._work)
        await self._close_open_ends(end)
        self._recorder.emit(RunFinished(end))
        return end

    async def _outcome(self, work: asyncio.Task[RunEnd]) -> RunEnd:
        """Wait for the work; once stopped, only for the grace."""
        stopping = asyncio.create_task(self._stop_asked.wait())
        try:
            await asyncio.wait({work, stopping}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            # The program is closing: the same as Stop, and what is open is still closed in order.
            self.stop()
        finally:
            stopping.cancel()
        await asyncio.wait({work}, timeout=STOP_GRACE)
        if not work.done():
            _log.warning("a tool did not end within %s s of Stop and was left behind", STOP_GRACE)
            return RunEnd.CANCELLED
        return RunEnd.CANCELLED if work.cancelled() else work.result()

    async def _guarded(self) -> RunEnd:
        """The turns; whatever fails in them becomes an event, so that the session stays usable."""
        try:
            return await self._turns()
        except AgentError as error:
            if self._stop_asked.is_set():
                # Stopping is what made it fail.
                return RunEnd.CANCELLED
            occurred = ErrorOccurred.of(error)
            self._recorder.emit(replace(occurred, remedy=long_wait(error) or occurred.remedy))
        except Exception as error:  # noqa: BLE001 - a fault of ours must not take the conversation down
            _log.exception("a run failed")
            internal = AgentError(f"Something went wrong inside the program ({type(error).__name__}).")
            self._recorder.emit(ErrorOccurred.of(internal))
        return RunEnd.FAILED

    async def _turns(self) -> RunEnd:
        provider = await self._around.open_provider()
        rounds = pauses = 0
        while rounds < self._settings.max_tool_iterations:
            answer = await self._ask(provider)
            if answer.tool_uses and answer.stop_reason not in _NOT_ACTED_UPON:
                if not await self._run_calls(answer):
                    return RunEnd.CANCELLED
                if not self._around.tools:
                    # None was offered, so asking again would be billed and get the same answer.
                    return RunEnd.COMPLETED
                rounds, pauses = rounds + 1, 0
            elif answer.stop_reason in _UNFINISHED:
                pauses += 1
                if pauses > MOST_PAUSES:
                    return self._limit("pauses of the server in a row")
            else:
                return self._ended(answer.stop_reason)
        return self._limit("tool rounds")

    def _ended(self, reason: StopReason | None) -> RunEnd:
        """The model says no more."""
        if reason is StopReason.MAX_TOKENS:
            return self._limit("the longest answer that the model may give")
        # The transcript says it, and to go on as it is would not help.
        return RunEnd.LIMIT if reason is StopReason.CONTEXT_WINDOW_EXCEEDED else RunEnd.COMPLETED

    async def _ask(self, provider: Provider) -> Message:
        """One question and its whole answer, committed."""
        if self._stop_asked.is_set():
            # A tool may have swallowed the cancellation; nothing new starts all the same.
            raise asyncio.CancelledError
        turn_id = new_id()
        answer = AnswerBuilder(new_id(), self._settings.model)
        self._answer = answer
        self._recorder.emit(TurnStarted(turn_id, answer.message_id, self._settings.model))
        await Question(provider, self._around, self._settings).ask(answer)
        state = MessageState.INTERRUPTED if answer.stop_reason in _CUT_IN_TWO else MessageState.COMPLETE
        message = answer.message(state, now())
        self._answer = None
        self._round = self._calls_of(message)
        await self._recorder.commit(message)
        return message

    async def _run_calls(self, answer: Message) -> bool:
        """Answer every call; False when the person denied one and stopped."""
        calls = self._round
        go_on = calls is not None and await calls.run()
        if calls is None or calls is not self._round:
            # A tool outlived the grace after Stop; its calls were answered meanwhile.
            return False
        await self._finish_round(calls, Outcome.CANCELLED)
        self._recorder.emit(ToolResultsReceived(len(answer.tool_uses)))
        return go_on

    def _calls_of(self, answer: Message) -> CallRound:
        around = self._around
        calls = CallRound(answer.tool_uses, around.tools, around.approvals, around.standing, self._recorder)
        if self._stop_asked.is_set():
            calls.stop()
        return calls

    def _limit(self, which: str) -> RunEnd:
        self._recorder.emit(LimitReached(which))
        return RunEnd.LIMIT

    async def _close_open_ends(self, end: RunEnd) -> None:
        """Commit what was streamed, and give every open call a result."""
        if self._answer is not None and self._answer.has_content:
            message = self._answer.message(MessageState.INTERRUPTED, now())
            self._round = self._calls_of(message)
            await self._recorder.commit(message)
        self._answer = None
        if self._round is not None:
            await self._finish_round(self._round, Outcome.LIMIT if end is RunEnd.LIMIT else Outcome.CANCELLED)

    async def _finish_round(self, calls: CallRound, outcome: Literal[Outcome.CANCELLED, Outcome.LIMIT]) -> None:
        self._round = None
        results = calls.close(outcome)
        if results:
            await self._recorder.commit(Message.tool_results(results))
