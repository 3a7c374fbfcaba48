"""Specialists: agents that another agent calls like tools, which of them may work at once, and their results."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Protocol

from pydantic import BaseModel, ConfigDict, Field

from desktop_agent.agent.guards import Guards
from desktop_agent.agent.model_request import PreparedHistory, RunSettings
from desktop_agent.agent.prompt_policies import PromptPolicies
from desktop_agent.agent.run_context import Budget, Recorder, RunContext, no_instructions
from desktop_agent.agent.steering_queue import SteeringQueue
from desktop_agent.tools.checkpoints.checkpointer import Checkpointer
from desktop_agent.tools.tool import AnyTool, ModelSchema, RunningCall, Tool, ToolSubset
from desktop_agent.types.blocks import Image, JsonObject, Outcome, ResultPart, Text
from desktop_agent.types.engine_events import (
    ErrorOccurred,
    Event,
    LimitReached,
    RunEnd,
    RunStarted,
    ToolCallPending,
    ToolFinished,
    ToolStarted,
)
from desktop_agent.types.errors import Sentence, SpecialistHasNoTools, ToolFailed
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.permissions import Mode
from desktop_agent.types.policies import Interrupt, Specialist, StopSession
from desktop_agent.types.tool_calls import Effect, ToolClass


@dataclass(eq=False)
class _Holder:
    """One task that holds the lock, or waits for it."""

    is_writer: bool
    released: asyncio.Event = field(default_factory=asyncio.Event)


class ReadWriteLock:
    """Readers hold it together, a writer holds it alone; in the order of arrival."""

    def __init__(self) -> None:
        self._holders: list[_Holder] = []

    @asynccontextmanager
    async def hold(self, *, is_writer: bool) -> AsyncGenerator[None]:
        """Wait for earlier holders that must not overlap with this one, then hold the lock inside the block."""
        earlier = [holder for holder in self._holders if is_writer or holder.is_writer]
        own = _Holder(is_writer)
        self._holders.append(own)
        try:
            for holder in earlier:
                await holder.released.wait()
            yield
        finally:
            self._holders.remove(own)
            own.released.set()


_MAX_CALLS = 40
# Characters of arguments, and of the result text of a call that failed.
_MAX_ARGUMENTS = 160
_MAX_FAILURE_TEXT = 1_500
_NO_CALLS = "It had called no tool."
_OUTCOME_TEXTS = {
    Outcome.SUCCEEDED: "done",
    Outcome.FAILED: "failed",
    Outcome.DENIED: "not run, denied",
    Outcome.CANCELLED: "broken off",
    Outcome.TIMED_OUT: "took too long and was broken off",
    Outcome.LIMIT: "not run or broken off, at a limit",
    Outcome.UNKNOWN: "nobody knows what became of it",
}


@dataclass(slots=True)
class _CallLine:
    name: str
    arguments: str
    state: str = "not started"
    failure_text: str = ""


class CallSummary:
    """Summarises, from the events of one run, what became of each of its calls."""

    def __init__(self) -> None:
        self._calls: dict[str, _CallLine] = {}

    def on_event(self, event: Event) -> bool:
        """Take in an event; return whether the summary changed."""
        match event:
            case ToolCallPending():
                self._calls[event.id] = _CallLine(event.name, _short_arguments(event.input))
            case ToolStarted() if event.id in self._calls:
                self._calls[event.id].state = "begun, not finished"
            case ToolFinished() if event.id in self._calls:
                call = self._calls[event.id]
                call.state = _OUTCOME_TEXTS[event.outcome]
                if event.outcome in (Outcome.CANCELLED, Outcome.TIMED_OUT):
                    call.failure_text = " ".join(part.text for part in event.result.content if isinstance(part, Text))[
                        :_MAX_FAILURE_TEXT
                    ]
            case _:
                return False
        return True

    def __str__(self) -> str:
        """One line for each call, the last ones where there are many."""
        if not self._calls:
            return _NO_CALLS
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        calls = tuple(self._calls.values())
        yield "Its calls until then:"
        if len(calls) > _MAX_CALLS:
            yield f"- {len(calls) - _MAX_CALLS:,} earlier ones"
        for call in calls[-_MAX_CALLS:]:
            output = "".join(f"\n  {line}" for line in call.failure_text.splitlines())
            yield f"- {call.name} {call.arguments}: {call.state}{output}"


def _short_arguments(arguments: JsonObject) -> str:
    text = json.dumps(arguments, ensure_ascii=False)
    return text if len(text) <= _MAX_ARGUMENTS else f"{text[:_MAX_ARGUMENTS]}…"


# In characters. Of longer text the end is kept, which matters most.
MAX_ANSWERS_TEXT = 20_000


class SpecialistRecorder:
    """A recorder that passes everything on; its RunStarted names the call whose work this is.

    `report_summary` receives the summary of the calls whenever it changes.
    """

    def __init__(self, recorder: Recorder, call_id: str, report_summary: Callable[[str], None]) -> None:
        self._calls = CallSummary()
        self._report_summary = report_summary
        report_summary(str(self._calls))
        self._recorder = recorder
        self._call_id = call_id
        self.error: Sentence | None = None
        self.limit: Sentence | None = None
        self.called_tools = False

    @property
    def run_id(self) -> str:
        return self._recorder.run_id

    @property
    def answers_text(self) -> str:
        """Return the text of its answers so far."""
        texts = (message.text.strip() for message in self.history() if message.role is Role.ASSISTANT)
        return "\n\n".join(text for text in texts if text)[-MAX_ANSWERS_TEXT:]

    def emit(self, event: Event, pieces: Sequence[Event] = ()) -> None:
        """Pass the event on."""
        match event:
            case RunStarted():
                event = replace(event, call_id=self._call_id)
            case ErrorOccurred():
                self.error = event.sentence
            case LimitReached():
                self.limit = event.sentence or Sentence("{which}", {"which": event.which})
            case ToolCallPending():
                self.called_tools = True
            case _:
                pass
        self._recorder.emit(event, pieces)
        if self._calls.on_event(event):
            self._report_summary(str(self._calls))

    async def flush(self) -> None:
        """Return when everything so far is durable. Raises StorageFailed."""
        await self._recorder.flush()

    async def commit(self, *messages: Message) -> None:
        """Add finished messages to its history."""
        await self._recorder.commit(*messages)

    def history(self) -> tuple[Message, ...]:
        """Return its messages, oldest first."""
        return self._recorder.history()

    def nested(self) -> Recorder:
        """Return a recorder for a run that one of its calls starts."""
        return self._recorder.nested()


# Seconds. A specialist's own limits end its work; they pause while it waits for a person, this does not.
# Timers of the window's event loop take no more than 24 days.
MAX_WORK_SECONDS = 20 * 24 * 3600.0
_SEES_NOTHING = (
    "It sees nothing of this conversation: write everything that it must know into the task and the context."
)
_REMEDY = "Go on without it, or call it again with another task."
# What the person set holds for the whole team, unless a specialist has its own.
_INHERITED_SETTINGS = ("timeouts", "caching", "show_reasoning")


class SpecialistRun(Protocol):
    """A run that works on a specialist's task."""

    @property
    def last_answer(self) -> Message | None: ...

    async def execute(self, prompt: Message | None = None) -> RunEnd:
        """Work until it is done. Raises nothing."""
        ...

    def interrupt(self, target: Interrupt | None = None) -> bool:
        """Stop the run, or one of its calls."""
        ...


class Task(BaseModel):
    """What a specialist is asked to do."""

    model_config = ConfigDict(extra="forbid")

    task: str = Field(min_length=1, description="What to do, and what to answer with.")
    context: str = Field(default="", description="What it must know for that.")


@dataclass(frozen=True)
class SpecialistDelegation:
    """The delegation of one run to its specialists.

    `sub_run` makes a run below it, which interrupts reach inside the block. `stop` ends the calling run: a person who
    denies a call of a specialist and stops wants all of it to stop. `lock`: those that only read work together, one
    that may change something works alone.
    """

    context: RunContext
    settings: RunSettings
    budget: Budget
    sub_run: Callable[[RunContext, RunSettings, Budget], AbstractContextManager[SpecialistRun]]
    stop: Callable[[], object]
    lock: ReadWriteLock = field(default_factory=ReadWriteLock)

    def tool(self, specialist: Specialist) -> AnyTool:
        """Return the specialist as a tool. Its actions are gated call by call, so calling it is harmless by itself."""

        async def run(task: Task, call: RunningCall) -> tuple[ResultPart, ...]:
            return await self._result(specialist, task, call)

        return Tool(
            name=specialist.name,
            description=f"{specialist.description}\n{_SEES_NOTHING}",
            schema=ModelSchema(Task),
            run=run,
            tool_class=ToolClass.READ_ONLY,
            effects=frozenset({Effect.DELEGATE}),
            timeout=MAX_WORK_SECONDS,
        )

    async def _result(self, specialist: Specialist, task: Task, call: RunningCall) -> tuple[ResultPart, ...]:
        """Return its final text and pictures. Raises ToolFailed with its text so far where it came to no end."""
        if self.budget.depth >= self.budget.limits.depth:
            sentence = Sentence(
                "“{name}” was not called: agents may call each other {depth} deep at most.",
                {"name": specialist.name, "depth": str(self.budget.limits.depth)},
            )
            raise ToolFailed(sentence, "Do it yourself.")
        mode, tools = self._mode_for(specialist), self._tools_for(specialist)
        is_writer = any(tool.tool_class is ToolClass.MUTATING for tool in tools)
        async with self.lock.hold(is_writer=is_writer):
            recorder = SpecialistRecorder(self.context.recorder.nested(), call.tool_use_id, call.report_partial_result)
            context = replace(
                self._context_for(specialist, recorder, mode, tools), checkpointer=self._checkpointer_for(call)
            )
            budget = self.budget.nested(specialist.limits, specialist.share)
            with self.sub_run(context, self._settings_for(specialist, budget), budget) as run:
                end = await _run_specialist(run, self._prompt(task))
            return self._parts(specialist.name, end, run, recorder, has_tools=bool(tools or context.specialists))

    def _parts(
        self, name: str, end: RunEnd, run: SpecialistRun, recorder: SpecialistRecorder, *, has_tools: bool
    ) -> tuple[ResultPart, ...]:
        if recorder.called_tools and not has_tools:
            what = Sentence("The specialist “{name}” has no tools, but asked for one.", {"name": name})
            raise SpecialistHasNoTools(_with_answers(what, recorder.answers_text))
        parts = _answer_parts(run.last_answer, recorder.answers_text)
        if end is RunEnd.COMPLETED and parts:
            return parts
        if end is RunEnd.CANCELLED:
            self.stop()
        raise ToolFailed(_with_answers(_specialist_failure(name, end, recorder), recorder.answers_text), _REMEDY)

    def _context_for(
        self, specialist: Specialist, recorder: SpecialistRecorder, mode: Mode | None, tools: tuple[AnyTool, ...]
    ) -> RunContext:
        context = self.context
        callable_specialists = tuple(other for other in context.specialists if other.name in specialist.specialists)
        names = {tool.name for tool in tools} | {other.name for other in callable_specialists}
        permission_policy = context.permission_policy.nested(mode=mode, names=frozenset(names))
        return replace(
            context,
            recorder=recorder,
            tools=ToolSubset(context.tools, (tool.name for tool in tools)),
            permission_policy=permission_policy,
            modes=context.modes.nested(permission_policy, recorder.emit),
            # Its task is the runtime's own, no prompt that anybody submitted.
            hooks=replace(context.hooks, user_prompt_submit=()),
            queue=SteeringQueue(),
            policies=PromptPolicies(),
            more_instructions=no_instructions,
            guards=Guards(),
            specialists=callable_specialists,
            prepared_history=PreparedHistory(),
            agent_path=(*context.agent_path, specialist.name),
        )

    def _checkpointer_for(self, call: RunningCall) -> Checkpointer | None:
        checkpointer, id_ = self.context.checkpointer, call.tool_use_id
        if checkpointer is None:
            return None
        history = reversed(self.context.recorder.history())
        message = next((message for message in history if any(use.id == id_ for use in message.tool_uses)), None)
        return checkpointer if message is None else checkpointer.nested(message.id, id_)

    def _mode_for(self, specialist: Specialist) -> Mode | None:
        """Return its own mode; None: it follows its caller. Raises ToolFailed for an unknown mode."""
        if specialist.mode is None:
            return None
        mode = next((mode_ for mode_ in self.context.modes.modes if mode_.name == specialist.mode), None)
        if mode is None:
            values = {"name": specialist.name, "mode": specialist.mode}
            raise ToolFailed(
                Sentence("“{name}” was not called: its mode “{mode}” does not exist.", values), "Go on without it."
            )
        return mode

    def _tools_for(self, specialist: Specialist) -> tuple[AnyTool, ...]:
        tools = (self.context.tools.get(name) for name in dict.fromkeys(specialist.tools))
        return tuple(tool for tool in tools if tool is not None)

    def _settings_for(self, specialist: Specialist, budget: Budget) -> RunSettings:
        own, caller = specialist.config, self.settings.config
        inherited = {name: getattr(caller, name) for name in _INHERITED_SETTINGS if name not in own.model_fields_set}
        return replace(
            self.settings,
            model=specialist.model or self.settings.model,
            config=own.model_copy(update={**inherited, "system_prompt": specialist.system_prompt}),
            limits=budget.limits,
            execute_tools=True,
        )

    def _prompt(self, task: Task) -> Message:
        text = f"{task.task}\n\nContext:\n{task.context}" if task.context.strip() else task.task
        sender = self.context.agent_path[-1] if self.context.agent_path else "agent"
        return Message.user(text).model_copy(update={"injected_by": sender})


def _answer_parts(answer: Message | None, earlier_text: str) -> tuple[ResultPart, ...]:
    """Return the text and the pictures of an answer, without the state that only its own model may get back."""
    blocks = () if answer is None else answer.blocks
    pictures = (block for block in blocks if isinstance(block, Image))
    text = ("" if answer is None else answer.text.strip()) or earlier_text
    return (
        *((Text(text=text),) if text else ()),
        *(picture.model_copy(update={"provider": "", "metadata": {}}) for picture in pictures),
    )


async def _run_specialist(run: SpecialistRun, prompt: Message) -> RunEnd:
    """Wait for the run. A cancel stops it, waits until it has closed what it opened, and only then is passed on."""
    working = asyncio.create_task(run.execute(prompt))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        run.interrupt(StopSession())
        while not working.done():
            try:
                await asyncio.wait({working})
            except asyncio.CancelledError:
                # Cancelled a second time: the run ends by itself after its grace.
                continue
        raise


def _specialist_failure(name: str, end: RunEnd, recorder: SpecialistRecorder) -> Sentence:
    match end:
        case RunEnd.LIMIT:
            values = {"name": name, "which": recorder.limit or Sentence("what its model can read")}
            return Sentence("The specialist “{name}” stopped at a limit: {which}.", values)
        case RunEnd.CANCELLED:
            return Sentence("The specialist “{name}” was stopped by the person.", {"name": name})
        case RunEnd.COMPLETED:
            return Sentence("The specialist “{name}” ended without saying anything.", {"name": name})
        case _:
            if recorder.error is None:
                return Sentence("The specialist “{name}” did not finish.", {"name": name})
            return Sentence("The specialist “{name}” failed: {why}", {"name": name, "why": recorder.error})


def _with_answers(what: Sentence, answers: str) -> Sentence:
    if not answers:
        return what
    return Sentence("{what} What it said so far:\n{said}\n\n", {"what": what, "said": answers})
