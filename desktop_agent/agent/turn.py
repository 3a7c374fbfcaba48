"""The turn: ask the model, run what it calls, ask again. The only loop there is."""

import asyncio
from collections.abc import Callable
from typing import Literal

from desktop_agent.agent.answer_size import AnswerTooLong
from desktop_agent.agent.budget import Budget
from desktop_agent.agent.calls.left_over import LeftOver
from desktop_agent.agent.calls.round import CallRound, RoundEnd
from desktop_agent.agent.edge import Edge
from desktop_agent.agent.question import Question
from desktop_agent.agent.request import RunSettings
from desktop_agent.agent.surroundings import Surroundings
from desktop_agent.conversation.answer_builder import AnswerBuilder
from desktop_agent.providers.provider import Provider
from desktop_agent.vocabulary.blocks import Outcome
from desktop_agent.vocabulary.engine_events import (
    CostUpdated,
    LimitReached,
    RunEnd,
    ToolCallPending,
    ToolResultsReceived,
    TurnStarted,
)
from desktop_agent.vocabulary.errors import ContextLengthExceeded
from desktop_agent.vocabulary.messages import Message, MessageState, new_id, now
from desktop_agent.vocabulary.provider_events import CUT_SHORT, StopReason

# The model is not finished, it only paused: the runtime goes on by itself.
_UNFINISHED = {StopReason.PAUSE_TURN, StopReason.CONTINUATION}
# A server that only ever pauses must not be asked for ever.
MOST_PAUSES = 20
_CUT_IN_TWO = CUT_SHORT | {StopReason.MALFORMED_TOOL_CALL}
# Calls of an answer that was withheld, refused or cut are not acted upon.
_NOT_ACTED_UPON = CUT_SHORT | {StopReason.REFUSAL}


class Turns:
    """The turns of one run. What is open at any moment is closed by `close`, whatever ended the work."""

    def __init__(
        self, around: Surroundings, settings: RunSettings, budget: Budget, is_stopped: Callable[[], bool]
    ) -> None:
        self._around = around
        self._recorder = around.recorder
        self._settings = settings
        self._budget = budget
        self._is_stopped = is_stopped
        self._edge = Edge(around, settings, budget)
        self._answer: AnswerBuilder | None = None
        self._round: CallRound | None = None
        self._pauses = 0
        self._count = 0
        self.turn_id: str | None = None
        self.answer_text = ""

    def take_over(self, left: LeftOver) -> None:
        """The calls that a dead process left are open from now on: also where the work never begins, they end."""
        answer = next((each for each in reversed(self._recorder.history()) if each.tool_uses), None)
        if answer is not None:
            self._round = self._calls_of(answer, left)

    async def work(self, prompt: Message | None, left: LeftOver | None) -> RunEnd:
        """Until the model is done, a limit is reached, or a person or a guard ends it. Raises AgentError."""
        self._around.guards.begin_run(left and left.iterations)
        if left is not None and (end := await self._finish_left_over()) is not None:
            return end
        if prompt is not None and not await self._edge.admit(prompt):
            return RunEnd.ABORTED
        await self._around.open_provider(self._settings.model)
        await self._around.tools_ready()
        while True:
            # Anew for each turn: its server may have been removed meanwhile, or given another key.
            provider = await self._around.open_provider(self._settings.model)
            if self._budget.exceeded is None:
                await self._edge.cross(provider)
                # Hooks and a summary may have taken their time.
                provider = await self._around.open_provider(self._settings.model)
            which = self._budget.exceeded
            if which is not None:
                return self._limit(which)
            try:
                answer = await self._ask(provider)
            except AnswerTooLong:
                return self._limit("the length of one answer")
            end = await self._act_upon(answer)
            if end is not None:
                return end

    async def _act_upon(self, answer: Message) -> RunEnd | None:
        """Do what the answer asks for. None: the model is to be asked again."""
        if answer.tool_uses and answer.stop_reason not in _NOT_ACTED_UPON:
            self._pauses = 0
            return await self._answer_calls(answer)
        if answer.stop_reason in _UNFINISHED:
            self._pauses += 1
            return self._limit("pauses of the server in a row") if self._pauses > MOST_PAUSES else None
        end = self._end_of(answer)
        if end is not RunEnd.COMPLETED:
            return end
        if self._round is not None:
            # Calls of an answer that was refused get their results before anybody says more.
            await self._finish_round(self._round, Outcome.CANCELLED)
        return await self._edge.end(answer, self._count)

    async def _answer_calls(self, answer: Message) -> RunEnd | None:
        if not self._settings.execute_tools:
            # Whoever asked runs them, and goes on with their results.
            self._round = None
            for use in answer.tool_uses:
                tool_class = self._around.tools.class_of(use.name)
                self._recorder.emit(ToolCallPending(use.id, use.name, use.input, tool_class))
            return RunEnd.AWAITING_RESULTS
        used_up = self._budget.exceeded_by_use
        if used_up is not None:
            # The answer itself reached it: its calls are closed, not run.
            return self._limit(used_up)
        if not await self._run_calls(len(answer.tool_uses)):
            return RunEnd.CANCELLED
        if not self._around.tools:
            # None was offered, so asking again would be billed and get the same answer.
            return RunEnd.COMPLETED
        return await self._edge.end_of_turn(answer, self._count)

    def _end_of(self, answer: Message) -> RunEnd:
        """The model says no more."""
        if answer.stop_reason is StopReason.MAX_TOKENS:
            return self._limit("the longest answer that the model may give")
        # The transcript says it, and to go on as it is would not help.
        too_long = answer.stop_reason is StopReason.CONTEXT_WINDOW_EXCEEDED
        return RunEnd.LIMIT if too_long else RunEnd.COMPLETED

    async def _ask(self, provider: Provider) -> Message:
        """One question and its whole answer, committed."""
        if self._is_stopped():
            # A tool may have swallowed the cancellation; nothing new starts all the same.
            raise asyncio.CancelledError
        turn_id = self._begin_turn()
        answer = AnswerBuilder(new_id(), self._settings.model)
        self._answer = answer
        self._recorder.emit(TurnStarted(turn_id, answer.message_id, self._settings.model))
        addenda = self._edge.addenda(turn_id)
        question = Question(provider, self._around, self._settings, addenda)
        try:
            await self._answered(question, answer, provider)
        finally:
            self._budget.add_usage(answer.total_usage)
            self._budget.add_characters(question.characters)
        if self._is_stopped():
            # A server that did not heed it: what came is kept, and is no whole answer.
            raise asyncio.CancelledError
        if self._budget.cost is not None:
            self._recorder.emit(CostUpdated(self._budget.cost))
        state = MessageState.INTERRUPTED if answer.stop_reason in _CUT_IN_TWO else MessageState.COMPLETE
        return await self._commit_answer(answer, state)

    async def _answered(self, question: Question, answer: AnswerBuilder, provider: Provider) -> None:
        """What is too long for the model is made shorter once."""
        try:
            await question.ask(answer)
        except ContextLengthExceeded:
            if answer.has_content or not await self._edge.compact(provider):
                raise
            await question.ask(answer)

    def _begin_turn(self) -> str:
        self._budget.take_turn()
        self._count += 1
        self.turn_id = new_id()
        return self.turn_id

    async def _commit_answer(self, answer: AnswerBuilder, state: MessageState) -> Message:
        """From here on its calls are open: whatever happens, they get their results."""
        message = answer.message(state, now())
        self._answer = None
        self._round = self._calls_of(message)
        self.answer_text = message.text
        try:
            await self._recorder.commit(message)
        finally:
            # Stopped while it is being written, it is in the history all the same.
            self._edge.answered()
        return message

    async def _finish_left_over(self) -> RunEnd | None:
        """The calls that were open when the program ended."""
        if self._round is None:
            return None
        used_up = self._budget.exceeded_by_use
        if used_up is not None:
            return self._limit(used_up)
        return None if await self._run_calls(self._round.count) else RunEnd.CANCELLED

    async def _run_calls(self, count: int) -> bool:
        """Answer every call; False when the person denied one and stopped."""
        self._budget.take_round()
        calls = self._round
        end = RoundEnd.STOPPED if calls is None else await calls.run()
        if calls is None or calls is not self._round:
            # A tool outlived the grace after Stop; its calls were answered meanwhile.
            return False
        await self._finish_round(calls, Outcome.CANCELLED)
        self._recorder.emit(ToolResultsReceived(count))
        return end is RoundEnd.ANSWERED

    def _calls_of(self, answer: Message, left: LeftOver | None = None) -> CallRound:
        calls = CallRound(answer.tool_uses, self._around, self._budget, self._settings.limits, left)
        if self._is_stopped():
            calls.stop()
        return calls

    def _limit(self, which: str) -> RunEnd:
        self._recorder.emit(LimitReached(which))
        return RunEnd.LIMIT

    def stop(self) -> None:
        """Nothing starts after this."""
        if self._round is not None:
            self._round.stop()

    def stop_call(self, tool_use_id: str) -> bool:
        """One call ends as cancelled; False when it is none of the open ones."""
        return self._round is not None and self._round.stop_call(tool_use_id)

    async def close(self, end: RunEnd, prompt: Message | None = None) -> None:
        """Commit what is still to be: the prompt, what was streamed, and a result of every open call."""
        if prompt is not None:
            await self._edge.keep(prompt)
        answer, self._answer = self._answer, None
        if answer is not None and answer.has_content:
            await self._commit_answer(answer, MessageState.INTERRUPTED)
        if end is RunEnd.CANCELLED and not self._settings.execute_tools:
            # Whoever asked has them and may have run them: their results come, as they do behind a whole answer.
            self._round = None
        if self._round is not None:
            await self._finish_round(self._round, Outcome.LIMIT if end is RunEnd.LIMIT else Outcome.CANCELLED)

    async def _finish_round(self, calls: CallRound, outcome: Literal[Outcome.CANCELLED, Outcome.LIMIT]) -> None:
        self._round = None
        results = calls.close(outcome)
        if results:
            await self._recorder.commit(Message.tool_results(results))
