"""Chat loop and two-phase agent: the model asks for calls, the caller runs them and submits the results."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Unpack

from desktop_agent.api.caller_tools import validate_results
from desktop_agent.api.client import to_options
from desktop_agent.api.controls import Controls
from desktop_agent.api.conversation import ConversationRunner, to_prompt
from desktop_agent.api.responses import EventStream, close_soon
from desktop_agent.api.run_events import AsyncCloseable, BlockCollector, RunEvents
from desktop_agent.conversation.history import unanswered_calls
from desktop_agent.processes.foreign_code import validate_messages
from desktop_agent.types.blocks import ToolResult, ToolUse
from desktop_agent.types.engine_events import (
    ErrorOccurred,
    Event,
    RunEnd,
    RunFinished,
    ToolResultsReceived,
    TurnStarted,
)
from desktop_agent.types.errors import SpecialistHasNoTools, WrongUse
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.options import AgentOptions, OptionValues
from desktop_agent.types.provider_events import ContentDelta, StopReason, ThinkingDelta, Usage


@dataclass(frozen=True, slots=True)
class ToolCallsRequested:
    """The model waits for the results of these calls, also of a `malformed` one. `content` is its text before them."""

    tool_calls: tuple[ToolUse, ...]
    content: str = ""


@dataclass(frozen=True, slots=True)
class LoopDone:
    """The last step: the last text, the usage of all turns together, and every call.

    `finish_reason` is the model's own, None where it gave none; `end` is how the loop ended.
    """

    content: str
    finish_reason: StopReason | None
    total_usage: Usage | None
    all_tool_calls: tuple[ToolUse, ...]
    end: RunEnd


LoopStep = ThinkingDelta | ContentDelta | ToolCallsRequested | ToolResultsReceived | ErrorOccurred | LoopDone


class ChatLoopHandle(AsyncCloseable, AsyncIterator[LoopStep]):
    """`async for step in handle`; at ToolCallsRequested give the results with `submit_tool_results` and read on.

    Pieces of text and of thinking, and errors, are the events of a stream. The loop waits until the results are
    submitted, so another task may do that, or the same one after a time limit. An error before the model begins to
    answer is raised; a later one is a step, and LoopDone follows. Leaving the loop does not end it: `cancel` does, and
    so does cancelling a step while the model answers. One task reads at a time: another one that asks for a step
    meanwhile gets WrongUse. `controls` reads and changes its modes, rules, guards, prompt policies and queue at any
    moment; queued messages are answered before LoopDone.
    """

    def __init__(self, options: AgentOptions, history: Sequence[Message]) -> None:
        self._conversation = ConversationRunner(options, history)
        self.controls = Controls(self._conversation)
        self._run: RunEvents | None = None
        self._collector = BlockCollector()
        self._calls: list[ToolUse] = []
        self._text: list[str] = []
        self._steps = deque[LoopStep]()
        self._submitted = asyncio.Event()
        self._conversation.on_wait_stopped = self._submitted.set
        self._result_count = 0
        self._is_active = True
        self._is_cancelled = False
        self._has_begun = False
        self._is_being_read = False
        self._awaits_results = False

    @property
    def is_active(self) -> bool:
        """Whether more steps come."""
        return self._is_active

    @property
    def history(self) -> tuple[Message, ...]:
        """All messages, oldest first."""
        return self._conversation.history

    def submit_tool_results(self, results: Sequence[ToolResult]) -> None:
        """Submit the results of exactly the calls that were requested, in any order, once.

        Raises WrongUse otherwise, and changes nothing then.
        """
        open_ids = [call.id for call in self._conversation.pending_calls]
        if not self._is_active or not open_ids:
            raise WrongUse("No call waits for a result.", "Submit results when ToolCallsRequested has come.")
        validated = validate_results(results)
        missing = ", ".join(sorted(set(open_ids) - {result.tool_use_id for result in validated}))
        if missing:
            raise WrongUse(f"Results are missing: {missing}.", "Submit the results of all calls together.")
        self._conversation.add_results(*validated)
        self._result_count = len(validated)
        self._submitted.set()

    def cancel(self) -> None:
        """End the loop at once and close the connection. Idempotent; the messages so far stay in `history`.

        Before the first step nothing is asked: LoopDone is the only step then.
        """
        if not self._is_active:
            return
        if not self._has_begun:
            self._finish(RunEnd.CANCELLED)
            return
        self._is_cancelled = True
        self._conversation.interrupt()
        self._submitted.set()

    async def aclose(self) -> None:
        """End the loop, and wait until everything is closed."""
        self._is_active = False
        self._submitted.set()
        await self._conversation.aclose()

    async def __anext__(self) -> LoopStep:
        if self._is_being_read:
            raise WrongUse("Another task reads these steps already.", "Read them in one task.")
        self._is_being_read = True
        try:
            return await self._next()
        finally:
            self._is_being_read = False

    async def _next(self) -> LoopStep:
        while not self._steps:
            if not self._is_active:
                raise StopAsyncIteration
            if self._awaits_results:
                # A reader that gives up waiting here interrupts nothing.
                await self._submitted.wait()
            try:
                await self._advance()
            except BaseException:
                await self.aclose()
                raise
        step = self._steps.popleft()
        if isinstance(step, LoopDone):
            await self.aclose()
        return step

    def __del__(self) -> None:
        # An invalid history leaves a handle without a conversation.
        if hasattr(self, "_conversation"):
            close_soon(self._conversation)

    async def _advance(self) -> None:
        if self._awaits_results:
            await self._continue()
            return
        if self._run is None:
            self._has_begun = True
            self._run = await self._conversation.start_run(None)
        event = await self._run.next()
        if event is None:
            self._awaits_results = True
        else:
            self._handle_event(event)

    async def _continue(self) -> None:
        self._awaits_results = False
        self._submitted.clear()
        if not self._is_active:
            return
        if self._is_cancelled:
            # The cancel came too late for the run before.
            self._conversation.interrupt()
        self._run = await self._conversation.start_run(None)
        if not self._run.is_stopped_at_once:
            self._steps.append(ToolResultsReceived(self._result_count))

    def _handle_event(self, event: Event) -> None:
        blocks = self._collector.feed(event)
        if isinstance(event, TurnStarted):
            self._text.clear()
        elif isinstance(event, ContentDelta):
            self._text.append(event.text)
        self._calls += [block for block in blocks if isinstance(block, ToolUse)]
        match event:
            case ThinkingDelta() | ContentDelta() | ErrorOccurred():
                self._steps.append(event)
            case RunFinished(reason=RunEnd.AWAITING_RESULTS):
                self._steps.append(ToolCallsRequested(self._conversation.pending_calls, "".join(self._text)))
            case RunFinished():
                # A queued message may have begun the next run.
                follow_up = None if self._is_cancelled else self._conversation.take_follow_up()
                if follow_up is None:
                    self._finish(event.reason)
                else:
                    self._run = follow_up
            case _:
                pass

    def _finish(self, end: RunEnd) -> None:
        self._is_active = False
        collector = self._collector
        content, calls = "".join(self._text), tuple(self._calls)
        self._steps.append(LoopDone(content, collector.stop_reason, collector.usage, calls, end))


class StreamingResponse:
    """The model answers: iterate over `events`.

    Calls may follow the text: then `needs` has them after the last event, else None.
    """

    def __init__(self, events: EventStream, agent: "TwoPhaseAgent") -> None:
        self.events = events
        self._agent = agent

    @property
    def needs(self) -> "NeedsToolExecution | None":
        """What must be run before the model goes on. Read `events` to their end first.

        Raises SpecialistHasNoTools as `process` does.
        """
        return self._agent.needs


@dataclass(frozen=True, slots=True)
class NeedsToolExecution:
    """The model requests these calls. `messages` is the history so far, its answer with the calls last."""

    tool_calls: tuple[ToolUse, ...]
    messages: tuple[Message, ...]


AgentResponse = StreamingResponse | NeedsToolExecution


class TwoPhaseAgent(AsyncCloseable):
    """One agent, or one of its specialists by name, asked in two phases; any number of rounds.

    Close it with `async with` or `aclose`. Raises WrongUse for options that do not fit together, and for an unknown
    specialist. `controls` reads and changes its modes, rules, guards, prompt policies and queue at any moment, and
    stops it.
    """

    def __init__(
        self,
        options: AgentOptions | None = None,
        *,
        specialist: str | None = None,
        **values: Unpack[OptionValues],
    ) -> None:
        chosen = to_options(options, {**values, "auto_execute_tools": False})
        self._specialist = specialist
        self._conversation = ConversationRunner(chosen if specialist is None else chosen.for_specialist(specialist))
        self._run: RunEvents | None = None
        self.controls = Controls(self._conversation)

    @property
    def history(self) -> tuple[Message, ...]:
        """All messages, oldest first."""
        return self._conversation.history

    @property
    def needs(self) -> NeedsToolExecution | None:
        """The calls of the last answer, once it has ended. Raises SpecialistHasNoTools."""
        if self._run is None or self._run.end is not RunEnd.AWAITING_RESULTS:
            return None
        options = self._conversation.options
        if self._specialist is not None and not options.tools and not options.specialists:
            raise SpecialistHasNoTools(f"The specialist “{self._specialist}” has no tools, but asked for one.")
        return NeedsToolExecution(self._conversation.pending_calls, self.history)

    async def process(self, prompt: str | Message, *, context: Sequence[Message] = ()) -> AgentResponse:
        """Ask. `context` is added to the history before the prompt.

        Returns when the model writes its first text, or requests calls without any. Raises what keeps it from
        answering, and SpecialistHasNoTools when a specialist without tools requests one.
        """
        message = to_prompt(prompt)
        if context:
            await self._conversation.replace_history(lambda history: (*history, *context))
        return await self._respond(message)

    async def process_with_results(self, messages: Sequence[Message]) -> AgentResponse:
        """Go on with the results: the messages of NeedsToolExecution and one with the results, or only that one.

        The tools are still offered. Raises WrongUse unless exactly the requested calls have results.
        """
        submitted = validate_messages(messages, self.history)
        if not submitted or submitted[-1].role is not Role.TOOL:
            raise WrongUse("The results are missing.", "Put Message.tool_results([...]) at the end.")
        history = submitted[:-1]
        results = [block for block in submitted[-1].blocks if isinstance(block, ToolResult)]
        if history and history != self.history:
            # Checked before anything is changed.
            _check_results(history, results)
            await self._conversation.replace_history(lambda _: history)
        _check_results(self.history, results)
        self._conversation.add_results(*results)
        return await self._respond(None)

    async def aclose(self) -> None:
        """Stop, and close all connections. Idempotent."""
        await self._conversation.aclose()

    def __del__(self) -> None:
        # Invalid options leave an agent without a conversation.
        if hasattr(self, "_conversation"):
            close_soon(self._conversation)

    async def _respond(self, prompt: Message | None) -> AgentResponse:
        run = self._run = await self._conversation.start_run(prompt)
        try:
            await run.wait_for_text()
        except asyncio.CancelledError:
            self._conversation.abandon(run)
            raise
        needs = self.needs
        if needs is None:
            return StreamingResponse(EventStream(self._conversation, None, run, keep=self), self)
        return needs


def _check_results(history: Sequence[Message], results: Sequence[ToolResult]) -> None:
    open_ids = {call.id for call in unanswered_calls(history)}
    missing = ", ".join(sorted(open_ids - {result.tool_use_id for result in results}))
    if missing:
        raise WrongUse(f"Results are missing: {missing}.", "Give the results of all calls together.")
