"""The turn: ask the model, execute the tools that it calls, ask again. The only such loop.

`AgentLoop` is the loop; `ModelCall` is one request and its answer, retried where that is safe and may help.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing

from desktop_agent.agent.model_request import BuiltRequest, PictureSupport, RunSettings, build_request
from desktop_agent.agent.provider_stream import AnswerSize, AnswerTooLong, validated_events
from desktop_agent.agent.run_context import Budget, RunContext
from desktop_agent.agent.tool_calls.tool_batch import ToolBatch
from desktop_agent.agent.tool_calls.tool_execution import RecoveredCalls
from desktop_agent.agent.turn_boundary import TurnBoundary
from desktop_agent.conversation.answer_builder import AnswerBuilder
from desktop_agent.providers.provider import Provider
from desktop_agent.types.blocks import Outcome, ToolResult
from desktop_agent.types.engine_events import (
    CostUpdated,
    LimitReached,
    RetryScheduled,
    RunEnd,
    ToolCallPending,
    ToolResultsReceived,
    TurnStarted,
)
from desktop_agent.types.errors import AgentError, ContextLengthExceeded, Sentence, WrongUse
from desktop_agent.types.messages import Message, MessageState, new_id, now
from desktop_agent.types.provider_events import (
    TRUNCATED_STOP_REASONS,
    MessageDelta,
    RequestAdjusted,
    StopReason,
    UsageUpdate,
)

_MALFORMED_CALL = Sentence("The model wrote a call that its own server could not read.")


class ModelCall:
    """One request and its answer. Each attempt builds the request afresh; once content came, nothing is retried.

    `addenda` are added to the instructions of this turn.
    """

    def __init__(
        self, provider: Provider, context: RunContext, settings: RunSettings, addenda: Sequence[str] = ()
    ) -> None:
        self._provider = provider
        self._context = context
        self._recorder = context.recorder
        self._settings = settings
        self._addenda = addenda
        self._size = AnswerSize(settings.limits.answer_characters)

    @property
    def characters(self) -> int:
        return self._size.characters

    async def run(self, answer: AnswerBuilder) -> None:
        """Fill the answer. Raises AgentError, also AnswerTooLong; what came before the error stays in it."""
        attempt = 1
        while True:
            try:
                if await self._attempt(answer, may_repeat=attempt == 1):
                    return
                delay, why = 0.0, _MALFORMED_CALL
            except AgentError as error:
                wait = None if answer.has_content else self._context.retry.delay(error, attempt)
                if wait is None:
                    raise
                delay, why = wait, error.sentence
            retry = RetryScheduled(delay, str(why), attempt, why)
            answer.feed(retry)
            self._recorder.emit(retry)
            await asyncio.sleep(delay)
            self._provider = await self._context.open_provider(self._settings.model)
            attempt += 1

    async def _attempt(self, answer: AnswerBuilder, *, may_repeat: bool) -> bool:
        """Ask once. Return False where only a malformed call came, so that a second attempt may help."""
        built = await self._build_request()
        if built.adjustments:
            adjusted = RequestAdjusted(built.adjustments)
            self._size.add(adjusted)
            answer.feed(adjusted)
            self._recorder.emit(adjusted)
        events = validated_events(self._provider.stream(built.request), self._size, self._recorder.emit)
        async with aclosing(events):
            async for event, pieces in events:
                if may_repeat and type(event) is MessageDelta and _is_malformed_call(event) and not answer.has_content:
                    async for late_event, _ in events:
                        # Nothing of the rest is shown, but what it used counts.
                        if isinstance(late_event, UsageUpdate):
                            answer.feed(late_event)
                            self._recorder.emit(late_event)
                    return False
                answer.feed(event)
                self._recorder.emit(event, pieces)
        return True

    async def _build_request(self) -> BuiltRequest:
        context = self._context
        limits = self._provider.picture_limits(self._settings.model)
        sees = self._provider.model_info(self._settings.model).capabilities.images is not False
        pictures = PictureSupport(context.read_picture, context.fitter, limits, sees)
        history = self._recorder.history()
        specs = context.tools.specs()
        return await build_request(history, self._settings, specs, pictures, self._addenda, context.prepared_history)


def _is_malformed_call(end: MessageDelta) -> bool:
    return end.stop_reason is StopReason.MALFORMED_TOOL_CALL


# The model is not finished, it only paused: the runtime continues by itself.
_UNFINISHED = {StopReason.PAUSE_TURN, StopReason.CONTINUATION}
# A server that only ever pauses must not be asked for ever.
MAX_PAUSES = 20
_INTERRUPTED_ENDS = TRUNCATED_STOP_REASONS | {StopReason.MALFORMED_TOOL_CALL}
# Calls of an answer that was withheld, refused or cut are not acted upon.
_CALLS_IGNORED = TRUNCATED_STOP_REASONS | {StopReason.REFUSAL}


class AgentLoop:
    """The turns of one run. `close` ends what is open, whatever ended the work."""

    def __init__(
        self, context: RunContext, settings: RunSettings, budget: Budget, is_stopped: Callable[[], bool]
    ) -> None:
        self._context = context
        self._recorder = context.recorder
        self._settings = settings
        self._budget = budget
        self._is_stopped = is_stopped
        self._boundary = TurnBoundary(context, settings, budget)
        self._answer: AnswerBuilder | None = None
        self._batch: ToolBatch | None = None
        self._pauses = 0
        self._more_instructions: tuple[str, ...] = ()
        self._count = 0
        self.turn_id: str | None = None
        self.last_answer: Message | None = None

    def adopt_recovered_calls(self, recovered: RecoveredCalls) -> None:
        """Take over the open calls of a dead process, so that they end even where the work never begins."""
        answer = next((message for message in reversed(self._recorder.history()) if message.tool_uses), None)
        if answer is not None:
            self._batch = self._batch_for(answer, recovered)

    async def run(self, prompt: Message | None, recovered: RecoveredCalls | None) -> RunEnd:
        """Run until the model is done, a limit is reached, or a person or a guard ends it. Raises AgentError."""
        await self._context.history_ready()
        self._context.guards.begin_run(recovered and recovered.guard_iterations)
        if recovered is not None and (end := await self._finish_recovered_calls()) is not None:
            return end
        if prompt is not None and not await self._boundary.admit_prompt(prompt):
            return RunEnd.ABORTED
        await self._context.open_provider(self._settings.model)
        await self._context.tools_ready()
        while True:
            # Opened for each turn: the model's server may have been removed meanwhile, or have another key.
            provider = await self._context.open_provider(self._settings.model)
            # Nothing comes between an answer that the server only paused and the rest of it.
            if self._budget.exceeded_limit is None and not self._pauses:
                await self._boundary.before_turn(provider)
                # Hooks and a summary may have taken long, and the server may have changed.
                provider = await self._context.open_provider(self._settings.model)
            exceeded = self._budget.exceeded_limit
            if exceeded is not None:
                return self._stop_at_limit(exceeded)
            try:
                answer = await self._ask_model(provider)
            except AnswerTooLong:
                return self._stop_at_limit(Sentence("the length of one answer"))
            end = await self._act_on(answer)
            if end is not None:
                return end

    async def compact(self) -> RunEnd:
        """Only summarise older messages, without a turn. Raises AgentError, also where nothing could be summarised."""
        await self._context.history_ready()
        provider = await self._context.open_provider(self._settings.model)
        if await self._boundary.compact(provider):
            return RunEnd.COMPLETED
        raise WrongUse("Nothing could be summarised.", "Go on as it is, or begin a new conversation.")

    async def _act_on(self, answer: Message) -> RunEnd | None:
        """Act on the answer. Return None where the model is to be asked again."""
        calls_tools = bool(answer.tool_uses) and answer.stop_reason not in _CALLS_IGNORED
        if answer.stop_reason in _UNFINISHED and not calls_tools:
            self._pauses += 1
            if self._pauses <= MAX_PAUSES:
                return None
            return self._stop_at_limit(Sentence("pauses of the server in a row"))
        self._pauses = 0
        if calls_tools:
            return await self._run_tool_calls(answer)
        end = self._end_for(answer)
        if end is not RunEnd.COMPLETED:
            return end
        if self._batch is not None:
            # Calls of a refused answer get their results before anything else.
            await self._commit_results(self._batch.close(Outcome.CANCELLED))
        return await self._boundary.after_final_answer(answer, self._count)

    async def _run_tool_calls(self, answer: Message) -> RunEnd | None:
        if not self._settings.execute_tools:
            # The caller executes them, and continues with their results.
            self._batch = None
            for use in answer.tool_uses:
                tool_class = self._context.tools.class_of(use.name)
                self._recorder.emit(ToolCallPending(use.id, use.name, use.input, tool_class))
            return RunEnd.AWAITING_RESULTS
        exceeded = self._budget.exceeded_shared_limit
        if exceeded is not None:
            # The answer itself reached the limit: its calls are closed, not run.
            return self._stop_at_limit(exceeded)
        if not await self._run_batch(len(answer.tool_uses)):
            return RunEnd.CANCELLED
        if not self._context.tools:
            # No tool was offered: asking again would be billed and get the same answer.
            return RunEnd.COMPLETED
        return await self._boundary.after_tool_calls(answer, self._count)

    def _end_for(self, answer: Message) -> RunEnd:
        if answer.stop_reason is StopReason.MAX_TOKENS:
            return self._stop_at_limit(Sentence("the longest answer that the model may give"))
        # The transcript explains a full context window; to continue unchanged would not help.
        too_long = answer.stop_reason is StopReason.CONTEXT_WINDOW_EXCEEDED
        return RunEnd.LIMIT if too_long else RunEnd.COMPLETED

    async def _ask_model(self, provider: Provider) -> Message:
        """Ask the model once; return its whole answer, committed."""
        if not self._pauses:
            self._more_instructions = await self._context.more_instructions()
        if self._is_stopped():
            # A tool may have swallowed the cancellation; nothing new starts all the same.
            raise asyncio.CancelledError
        turn_id = self._begin_turn()
        answer = AnswerBuilder(new_id(), self._settings.model)
        self._answer = answer
        self._recorder.emit(TurnStarted(turn_id, answer.message_id, self._settings.model))
        addenda = (*self._more_instructions, *self._boundary.instruction_addenda(turn_id))
        model_call = ModelCall(provider, self._context, self._settings, addenda)
        try:
            await self._call_model(model_call, answer, provider)
        finally:
            self._budget.add_usage(answer.total_usage)
            self._context.count_answer(provider, answer)
            self._budget.add_characters(model_call.characters)
            # Also an attempt that came to nothing is billed.
            if self._budget.cost is not None:
                self._recorder.emit(CostUpdated(self._budget.cost))
        if self._is_stopped():
            # The provider swallowed the cancellation: what came is kept, as an incomplete answer.
            raise asyncio.CancelledError
        state = MessageState.INTERRUPTED if answer.stop_reason in _INTERRUPTED_ENDS else MessageState.COMPLETE
        return await self._commit_answer(answer, state)

    async def _call_model(self, model_call: ModelCall, answer: AnswerBuilder, provider: Provider) -> None:
        """Call the model; a history that is too long for it is compacted once."""
        try:
            await model_call.run(answer)
        except ContextLengthExceeded:
            if answer.has_content or not await self._boundary.compact(provider):
                raise
            await model_call.run(answer)

    def _begin_turn(self) -> str:
        self._budget.count_turn()
        self._count += 1
        self.turn_id = new_id()
        return self.turn_id

    async def _commit_answer(self, answer: AnswerBuilder, state: MessageState) -> Message:
        """Commit the answer. From here on its calls are open: whatever happens, they get their results."""
        message = answer.message(state, now())
        self._answer = None
        self._batch = self._batch_for(message)
        self.last_answer = message
        try:
            await self._recorder.commit(message)
        finally:
            # Even when the commit is cancelled, the answer is in the history.
            if message.stop_reason not in _UNFINISHED or message.tool_uses:
                self._boundary.on_answer_committed()
        return message

    async def _finish_recovered_calls(self) -> RunEnd | None:
        if self._batch is None:
            return None
        exceeded = self._budget.exceeded_shared_limit
        if exceeded is not None:
            return self._stop_at_limit(exceeded)
        await self._batch.find_tools()
        return None if await self._run_batch(self._batch.count) else RunEnd.CANCELLED

    async def _run_batch(self, count: int) -> bool:
        """Answer every call; return False when the person denied one and stopped."""
        self._budget.count_tool_batch()
        batch = self._batch
        was_answered = batch is not None and await batch.run()
        if batch is None or batch is not self._batch:
            # A tool outlived the grace after Stop, and `close` answered the calls meanwhile.
            return False
        await self._commit_results(batch.close(Outcome.CANCELLED))
        self._recorder.emit(ToolResultsReceived(count))
        return was_answered

    def _batch_for(self, answer: Message, recovered: RecoveredCalls | None = None) -> ToolBatch:
        batch = ToolBatch(answer.tool_uses, self._context, self._budget, self._settings, recovered)
        if self._is_stopped():
            batch.stop()
        return batch

    def _stop_at_limit(self, limit: Sentence) -> RunEnd:
        self._recorder.emit(LimitReached.of(limit))
        return RunEnd.LIMIT

    def stop(self) -> None:
        """Start nothing more."""
        if self._batch is not None:
            self._batch.stop()

    @property
    def only_waits(self) -> bool:
        return self._batch is not None and self._batch.only_waits

    def stop_call(self, tool_use_id: str) -> bool:
        """End one call as cancelled; return False when it is none of the open ones."""
        return self._batch is not None and self._batch.stop_call(tool_use_id)

    async def close(self, end: RunEnd, prompt: Message | None = None) -> None:
        """Commit what is still open: the prompt, what was streamed, and a result of every open call."""
        if prompt is not None:
            await self._boundary.commit_sent_prompt(prompt)
        answer, self._answer = self._answer, None
        if answer is not None and answer.has_content:
            await self._commit_answer(answer, MessageState.INTERRUPTED)
        if end is RunEnd.CANCELLED and not self._settings.execute_tools:
            # The caller has the calls and may have executed them: results follow, as after a complete answer.
            self._batch = None
        if self._batch is not None:
            outcome = Outcome.LIMIT if end is RunEnd.LIMIT else Outcome.CANCELLED
            await self._commit_results(self._batch.close(outcome))

    async def _commit_results(self, results: list[ToolResult]) -> None:
        self._batch = None
        if results:
            await self._recorder.commit(Message.tool_results(results))
