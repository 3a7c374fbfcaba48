"""Chat loop and two-phase agent: the model asks for calls, the caller runs them and submits the results."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Self, Unpack

from desktop_agent.api.caller_tools import validate_results
from desktop_agent.api.client import to_options
from desktop_agent.api.controls import Controls
from desktop_agent.api.conversation import ConversationRunner, to_prompt
from desktop_agent.api.responses import EventStream, close_soon
from desktop_agent.api.run_events import BlockCollector, RunEvents
from desktop_agent.conversation.history import unanswered_calls
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
    """The model waits for the results of these, and said `content` before. A call that is `malformed` wants one too."""

    tool_calls: tuple[ToolUse, ...]
    content: str = ""


@dataclass(frozen=True, slots=True)
class LoopDone:
    """The last step: what was said last, what all turns used together, and every call that was made.

    `finish_reason` is the model's own, None where it gave none; `end` is how the loop ended.
    """

    content: str
    finish_reason: StopReason | None
    total_usage: Usage | None
    all_tool_calls: tuple[ToolUse, ...]
    end: RunEnd


LoopStep = ThinkingDelta | ContentDelta | ToolCallsRequested | ToolResultsReceived | ErrorOccurred | LoopDone


class ChatLoopHandle(AsyncIterator[LoopStep]):
    """`async for step in handle`; at ToolCallsRequested give the results with `submit_tool_results` and read on.

    Pieces of text and of thinking, and errors, are the events that a stream has for them. It waits where nobody has
    submitted yet, so another task may do that, or the same one after a time limit. An error before the model began
    to answer is raised; one in the middle is a step, and LoopDone follows. Leaving the loop does not end it:
    `cancel` does, and so does cancelling a step while the model answers. One task reads at a time: another one that
    asks for a step meanwhile gets WrongUse. `controls` reads and changes its modes, rules, guards, prompt policies
    and queue at any moment; it goes on with what waits in the queue before LoopDone.
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
        """The results of exactly the calls that were requested, in any order, once.

        Raises WrongUse otherwise, and changes nothing then.
        """
        waiting = [call.id for call in self._conversation.pending_calls]
        if not self._is_active or not waiting:
            raise WrongUse("No call waits for a result.", "Submit results when ToolCallsRequested has come.")
        sound = validate_results(results)
        missing = ", ".join(sorted(set(waiting) - {result.tool_use_id for result in sound}))
        if missing:
            raise WrongUse(f"Results are missing: {missing}.", "Submit the results of all calls together.")
        self._conversation.add_results(*sound)
        self._result_count = len(sound)
        self._submitted.set()

    def cancel(self) -> None:
        """End it at once and close the connection. Idempotent; what was said stays in `history`.

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
        """End it, and wait until everything is closed."""
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
                # Who gives up waiting here has broken nothing off.
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

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __del__(self) -> None:
        # A history that is none leaves a handle that was never made.
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
            # It came too late for the run before.
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
                # A message that waited for the end of this run has begun the next one.
                follow_up = None if self._is_cancelled else self._conversation.take_follow_up()
                if follow_up is None:
                    self._finish(event.reason)
                else:
                    self._run = follow_up
            case _:
                pass

    def _finish(self, end: RunEnd) -> None:
        self._is_active = False
        finished = self._collector
        content, calls = "".join(self._text), tuple(self._calls)
        self._steps.append(LoopDone(content, finished.stop_reason, finished.usage, calls, end))


class StreamingResponse:
    """The model answers: iterate over `events`.

    It may ask for calls behind its words: then `needs` has them when the events are at their end, else None.
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
    """The model asks for these calls. `messages` is everything so far, its answer with the calls last."""

    tool_calls: tuple[ToolUse, ...]
    messages: tuple[Message, ...]


AgentResponse = StreamingResponse | NeedsToolExecution


class TwoPhaseAgent:
    """One agent, or one of its specialists by name, asked in two phases; any number of rounds.

    Close it with `async with` or `aclose`. Raises WrongUse for options that do not fit together, and for a specialist
    that is not there. `controls` reads and changes its modes, rules, guards, prompt policies and queue at any moment,
    and stops it.
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
        """What the last answer asks for, once it has ended. Raises SpecialistHasNoTools."""
        if self._run is None or self._run.end is not RunEnd.AWAITING_RESULTS:
            return None
        options = self._conversation.options
        if self._specialist is not None and not options.tools and not options.specialists:
            raise SpecialistHasNoTools(f"The specialist “{self._specialist}” has no tools, but asked for one.")
        return NeedsToolExecution(self._conversation.pending_calls, self.history)

    async def process(self, prompt: str | Message, *, context: Sequence[Message] = ()) -> AgentResponse:
        """Ask. `context` is put behind what was said so far, before the prompt.

        Returns when the model says its first word, or asks for calls without one. Raises what keeps it from
        answering, and SpecialistHasNoTools when a specialist without tools asks for one.
        """
        if context:
            await self._conversation.replace_history(lambda history: (*history, *context))
        return await self._respond(to_prompt(prompt))

    async def process_with_results(self, messages: Sequence[Message]) -> AgentResponse:
        """Go on with the results: the messages of NeedsToolExecution and one with the results, or only that one.

        The tools are still offered. Raises WrongUse unless exactly the calls that were asked for have results.
        """
        given = tuple(messages)
        if not given or given[-1].role is not Role.TOOL:
            raise WrongUse("The results are missing.", "Put Message.tool_results([...]) at the end.")
        before = given[:-1]
        results = [block for block in given[-1].blocks if isinstance(block, ToolResult)]
        if before and before != self.history:
            # Checked before anything is changed.
            _check_results(before, results)
            await self._conversation.replace_history(lambda _: before)
        _check_results(self.history, results)
        self._conversation.add_results(*results)
        return await self._respond(None)

    async def aclose(self) -> None:
        """Stop, and close all connections. Idempotent."""
        await self._conversation.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __del__(self) -> None:
        # Options that do not fit leave an agent that was never made.
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
    waiting = {call.id for call in unanswered_calls(history)}
    missing = ", ".join(sorted(waiting - {result.tool_use_id for result in results}))
    if missing:
        raise WrongUse(f"Results are missing: {missing}.", "Give the results of all calls together.")
