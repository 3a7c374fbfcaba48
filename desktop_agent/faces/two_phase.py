"""In two phases: the model answers or asks for calls; whoever runs them comes back with the results."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, Unpack

from desktop_agent.conversation.repair import unanswered_calls
from desktop_agent.faces.backing.conversing import ConversationRunner, to_prompt
from desktop_agent.faces.backing.leaving import close_soon
from desktop_agent.faces.backing.run_events import RunEvents
from desktop_agent.faces.backing.streaming import EventStream
from desktop_agent.faces.client import to_options
from desktop_agent.faces.controls import Controls
from desktop_agent.vocabulary.blocks import ToolResult, ToolUse
from desktop_agent.vocabulary.engine_events import RunEnd
from desktop_agent.vocabulary.errors import SpecialistHasNoTools, WrongUse
from desktop_agent.vocabulary.messages import Message, Role
from desktop_agent.vocabulary.options import AgentOptions, OptionValues


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
