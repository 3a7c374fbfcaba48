"""A two-way loop: the model asks for calls, the caller runs them and submits the results, the model goes on."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Self

from desktop_agent.faces.backing.conversing import ConversationRunner
from desktop_agent.faces.backing.finished_blocks import BlockCollector
from desktop_agent.faces.backing.leaving import close_soon
from desktop_agent.faces.backing.results import validate_results
from desktop_agent.faces.backing.run_events import RunEvents
from desktop_agent.faces.controls import Controls
from desktop_agent.vocabulary.blocks import ToolResult, ToolUse
from desktop_agent.vocabulary.engine_events import (
    ErrorOccurred,
    Event,
    RunEnd,
    RunFinished,
    ToolResultsReceived,
    TurnStarted,
)
from desktop_agent.vocabulary.errors import WrongUse
from desktop_agent.vocabulary.messages import Message
from desktop_agent.vocabulary.options import AgentOptions
from desktop_agent.vocabulary.provider_events import ContentDelta, StopReason, ThinkingDelta
from desktop_agent.vocabulary.usage import Usage


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
