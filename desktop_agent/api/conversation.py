"""The conversation behind Client, chat loop and two-phase agent: its runs, how they stop, and their output type."""

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Unpack, cast, get_origin

from pydantic import PydanticUserError, TypeAdapter
from pydantic_core import from_json, to_json

from desktop_agent.api.caller_tools import SubmittedResults, validate_results
from desktop_agent.api.run_events import RunEvents
from desktop_agent.conversation.history import unanswered_calls
from desktop_agent.processes.foreign_code import deep_copy, validate_message, validate_messages
from desktop_agent.processes.worker_threads import runs_to_its_end
from desktop_agent.types.blocks import Image, JsonObject, Text, ToolResult, ToolUse
from desktop_agent.types.engine_events import Envelope, Event, RunFinished, RunStarted
from desktop_agent.types.errors import AgentError, WrongUse
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.options import AgentOptions, OptionValues
from desktop_agent.types.permissions import Mode
from desktop_agent.types.policies import Interrupt, StopTool, StopTurn, When
from desktop_agent.types.providers import JsonFormat, ProviderConfig

if TYPE_CHECKING:
    from desktop_agent.api.session_factory import OpenedSession
    from desktop_agent.engine.session import Session
    from desktop_agent.engine.session_branches import SessionBranches


class InterruptHandle:
    """Stops an agent from any thread and from signal handlers; it may be kept and used again.

    Stopping twice is stopping once; where nothing runs it does nothing, and it never raises.
    """

    def __init__(self, stop_request: "StopRequest") -> None:
        self._stop_request = stop_request

    def interrupt(self) -> None:
        """Stop what runs now: the loop does it next, and before it begins anything else."""
        self._stop_request.request()

    __call__ = interrupt


class StopRequest:
    """A requested stop, until the loop has carried it out."""

    def __init__(self, interrupt: Callable[[], object]) -> None:
        self._interrupt = interrupt
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_requested = False

    def bind(self, loop: asyncio.AbstractEventLoop) -> None:
        """Set the loop in which there may be something to stop."""
        self._loop = loop

    def request(self) -> None:
        """Ask for a stop, from any thread; does nothing where nothing runs."""
        loop = self._loop
        if loop is None:
            return
        self._is_requested = True
        try:
            # Never directly: a signal handler may run in the middle of anything.
            loop.call_soon_threadsafe(self.run_pending)
        except RuntimeError:
            # The loop is closed, so nothing is under way.
            self._is_requested = False

    def run_pending(self) -> None:
        """Stop if that was requested. Called in the loop before anything new begins, which nobody meant to stop."""
        if self._is_requested:
            self._is_requested = False
            self._interrupt()


_SCHEMA_PROMPT = "Answer with JSON of this schema and nothing else, without a code fence:\n{schema}"

_WRAPPER_KEY = "answer"


class OutputType:
    """The type of an answer: a model, a dataclass, a TypedDict, a list or a union of these, and the like.

    Servers bind answers to objects only, so any other type is wrapped as the `answer` of one. Raises WrongUse for a
    type that has no JSON Schema.
    """

    def __init__(self, output_type: Any) -> None:
        try:
            self._adapter = TypeAdapter[Any](output_type)
            schema: JsonObject = self._adapter.json_schema()
        except PydanticUserError as error:
            raise WrongUse(
                f"This cannot be the type of an answer. {str(error).splitlines()[0].rstrip('.')}.",
                "Give a pydantic model, a dataclass, a TypedDict, or a list or a union of these.",
            ) from error
        definitions: JsonObject = schema.pop("$defs", {})
        reference = schema.get("$ref")
        if isinstance(reference, str):
            schema = dict(definitions[reference.rpartition("/")[2]])  # a type that contains itself
        self._is_wrapped = schema.get("type") != "object"
        if self._is_wrapped:
            schema = {"type": "object", "properties": {_WRAPPER_KEY: schema}}
        if definitions:
            schema["$defs"] = definitions
        is_strict = _close_objects(schema)
        is_named = isinstance(output_type, type) and get_origin(output_type) is None
        name = output_type.__name__ if is_named else ""
        self.name = "".join(letter for letter in name if letter.isascii() and letter.isalnum())[:64] or _WRAPPER_KEY
        self.format = JsonFormat(json_schema=schema, name=self.name, strict=is_strict)

    def bind(self, config: ProviderConfig) -> ProviderConfig:
        """Return the configuration with which a server binds its answer to this type."""
        return config.model_copy(update={"response_format": self.format})

    def describe(self, config: ProviderConfig) -> ProviderConfig:
        """Return one with the schema in the instructions, for a server that cannot bind answers."""
        words = _SCHEMA_PROMPT.format(schema=json.dumps(self.format.json_schema))
        prompt = words if config.system_prompt is None else f"{config.system_prompt}\n\n{words}"
        return config.model_copy(update={"system_prompt": prompt})

    def parse(self, text: str) -> Any:
        """Parse and validate an answer. Raises ValidationError."""
        text = _strip_code_fence(text)
        if self._is_wrapped:
            try:
                value = from_json(text)
            except ValueError:
                pass  # raised with details below
            else:
                if isinstance(value, dict) and cast("dict[str, Any]", value).keys() == {_WRAPPER_KEY}:
                    return self._adapter.validate_json(to_json(value[_WRAPPER_KEY]))
        return self._adapter.validate_json(text)


def _strip_code_fence(text: str) -> str:
    stripped = text.strip()
    if not (stripped.startswith("```") and stripped.endswith("```")):
        return stripped
    return stripped.strip("`").removeprefix("json").strip()


def _close_objects(schema: Any) -> bool:
    """Close all objects, with all fields required, as strict servers want them; False where one must stay open."""
    if isinstance(schema, list):
        # Without short-circuit: all of them are closed, also after one that cannot be.
        return min(map(_close_objects, cast("list[Any]", schema)), default=True)
    if not isinstance(schema, dict):
        return True
    node = cast("dict[str, Any]", schema)
    is_closed = True
    if isinstance(properties := node.get("properties"), dict):
        node["additionalProperties"] = False
        node["required"] = list(cast("dict[str, Any]", properties))
        for field in cast("dict[str, Any]", properties).values():
            if isinstance(field, dict):
                cast("dict[str, Any]", field).pop("default", None)
    elif node.get("type") == "object":
        is_closed = False
    return min(map(_close_objects, node.values()), default=True) and is_closed


EnvelopeListener = Callable[[Envelope], None]


def unbound(config: ProviderConfig) -> ProviderConfig:
    """Leave the answers unbound."""
    return config


class ConversationRunner:
    """A conversation in memory, opened when it is first needed, in the running loop. It begins with `history`.

    `initial_options` are the options with changes that were made before it was opened. `run` is the run that is read;
    runs that queued messages begin are read next (see `take_follow_up`).
    """

    def __init__(
        self, options: AgentOptions, history: Sequence[Message] = (), listener: EnvelopeListener | None = None
    ) -> None:
        self.options = options
        self.initial_options = options
        self.bind_answers: Callable[[ProviderConfig], ProviderConfig] = unbound
        """Binds the next answers to a type."""
        self.run: RunEvents | None = None
        # The run that gets the events, and those that nobody reads yet.
        self._newest_run: RunEvents | None = None
        self._unread_runs = deque[RunEvents]()
        self.stop_request = StopRequest(self.interrupt)
        self._initial_history = validate_messages(history)
        self._listener = listener
        self.loop: asyncio.AbstractEventLoop | None = None
        self._opened: OpenedSession | None = None
        self._results = SubmittedResults()
        # Held while a run is being started or the history replaced.
        self._start_lock = asyncio.Lock()
        self._stop_before_start = False
        self._stopping = False
        self._wait_was_stopped = False
        self.on_wait_stopped: Callable[[], object] = lambda: None
        """Called when Stop ends the wait for results."""
        self.is_closed = False

    @property
    def history(self) -> tuple[Message, ...]:
        return self._initial_history if self._opened is None else self._opened.session.history

    @property
    def is_open(self) -> bool:
        """Whether something must be closed."""
        return self._opened is not None and not self.is_closed

    @property
    def session(self) -> "Session | None":
        return None if self._opened is None else self._opened.session

    @property
    def opened_session(self) -> "Session":
        """The engine's session. Raises WrongUse before the first question."""
        if self._opened is None:
            raise WrongUse("Nothing was asked yet.", "Ask first, with send() for example.")
        return self._opened.session

    @property
    def pending_calls(self) -> tuple[ToolUse, ...]:
        """Calls that the caller has to answer, as copies."""
        return () if self._working else deep_copy(self._results.missing(self.history))

    async def start_run(self, prompt: Message | None) -> RunEvents:
        """Start a run on this prompt, or go on from the history with the submitted results.

        It waits for a run that was stopped or whose reader went away, and for one whose calls have results. Raises
        WrongUse while another one goes on, and when calls wait for results and there is no prompt. The error of the run
        that was waited for is raised unless it was read; the next call goes on. Without a prompt, a run that a queued
        message began is returned, where there is one.
        """
        if prompt is None and (follow_up := self.take_follow_up()) is not None:
            return follow_up
        has_results = prompt is None and self._results.has_results
        self._require_idle(waits=has_results)
        self._stop_before_start = False
        async with self._start_lock:
            session = (await self._open()).session
            await session.wait_idle()
            if has_results and self.run is not None and (error := self.run.take_unread_error()) is not None:
                raise error
            return self._start(session, prompt)

    def add_results(self, *results: ToolResult) -> None:
        """Add results of calls, also while the rest of the answer streams. Raises WrongUse for unknown ids."""
        if self.options.auto_execute_tools:
            raise WrongUse(
                "The runtime runs these tools itself.", "Make the options with auto_execute_tools=False, or do not."
            )
        self._results.add(self.history, *validate_results(results))

    def steer(self, message: Message, when: When, expected_turn: str | None) -> None:
        """Queue a message. Raises TurnMismatch and WrongUse."""
        self._require_open()
        self.opened_session.steer(message, when, expected_turn)

    def change_initial_options(self, **changes: Unpack[OptionValues]) -> None:
        """Change the options before the session is opened. Raises WrongUse for what does not fit, and when closed."""
        self._require_open()
        self.initial_options = self.initial_options.with_values(**changes)

    def set_mode(self, mode: str | Mode) -> None:
        """Change the mode at once; one of the caller's own can be chosen from then on. Raises WrongUse."""
        self._require_open()
        name = mode if isinstance(mode, str) else mode.name
        changes: OptionValues = {}
        if isinstance(mode, Mode):
            others = tuple(known for known in self.initial_options.modes if known.name != name)
            changes["modes"] = (*others, mode)
        if self._opened is None:
            self.change_initial_options(**{**changes, "mode": name})
            return
        if changes:
            self.change_initial_options(**changes)
            self._opened.session.modes.refresh_modes()
        self._opened.session.modes.set_by_person(name)

    def interrupt(self, target: Interrupt | None = None) -> bool:
        """Stop at once, also the wait for results; False when there is nothing to stop."""
        if self._start_lock.locked():
            self._stop_before_start = True
        if self._opened is not None and (self._working or isinstance(target, StopTool)):
            if not isinstance(target, StopTool):
                self._stopping = True
                # A caller that has calls of this answer goes on with results: the model is not asked then either.
                self._wait_was_stopped = not self.options.auto_execute_tools and self._results.has_open_calls
            return self._opened.session.interrupt(target)
        if self._waits_for_results:
            # A caller that runs the calls now goes on with their results; the model is not asked again then.
            self._wait_was_stopped = True
            self.on_wait_stopped()
        if self._opened is not None:
            self._opened.session.interrupt(target)
        return self._waits_for_results or self._stop_before_start

    def abandon(self, run: RunEvents) -> None:
        """Stop this run because its reader went away, unless another one was begun since."""
        if self.will_stop(run) and self._opened is not None:
            self._opened.session.interrupt()

    def will_stop(self, run: RunEvents) -> bool:
        """Return whether the run goes on; if so the next start waits for its stop."""
        is_running = run is self.run and run.end is None
        self._stopping = self._stopping or is_running
        return is_running

    async def replace_history(self, change: Callable[[tuple[Message, ...]], Sequence[Message]]) -> None:
        """Replace the history. Raises WrongUse during a run, and for what is no messages."""
        self._require_idle()
        await self._replace(change)

    async def change_branches(self, change: "Callable[[SessionBranches], Awaitable[None]]") -> None:
        """Go to another branch, or delete a message. Raises WrongUse during a run, and what the change raises."""
        self._require_idle()
        async with self._start_lock:
            session = self.opened_session
            await session.wait_idle()
            await change(session.branches)
            self._forget_answers()

    async def clear(self) -> None:
        """Stop, wait until nothing is left of the old run, and begin anew with the same options."""
        self.interrupt()
        await self._replace(lambda _: ())
        if self.run is not None:
            self.run = self.run.ended_copy()

    @runs_to_its_end
    async def aclose(self) -> None:
        """Stop, and close what was opened. Idempotent."""
        self.interrupt()
        self.is_closed = True
        async with self._start_lock:
            if self._opened is not None:
                await self._opened.aclose()

    @property
    def _working(self) -> bool:
        return self._opened is not None and self._opened.session.working

    @property
    def _waits_for_results(self) -> bool:
        return not self.options.auto_execute_tools and bool(unanswered_calls(self.history))

    def _require_idle(self, *, waits: bool = False) -> None:
        """Raise WrongUse while a run goes on. Also binds this to the running loop, in which everything is opened."""
        loop = asyncio.get_running_loop()
        self._require_open()
        if self.loop not in {None, loop}:
            raise WrongUse("This belongs to another event loop.", "Make a new one in each loop, and close each.")
        self.loop = loop
        self.stop_request.bind(loop)
        self.stop_request.run_pending()
        if self._start_lock.locked() or (self._working and not self._stopping and not waits):
            raise WrongUse(
                "The answer before is not finished.", "Read it to its end, or stop it with interrupt() first."
            )

    def _require_open(self) -> None:
        if self.is_closed:
            raise WrongUse("This is closed.", "Make a new one.")

    async def _open(self) -> "OpenedSession":
        if self._opened is None:
            # The engine takes a while to load, and the loop is the caller's.
            await asyncio.to_thread(import_module, "desktop_agent.api.session_factory")
            from desktop_agent.api.session_factory import connect_provider, open_session

            connection = await connect_provider(self.options)
            # Without another await before the session is set: later changes are made in the session.
            self._opened = open_session(
                self.initial_options,
                connection,
                self._initial_history,
                modes=lambda: self.initial_options.modes,
                config=lambda: self.bind_answers(self.options.run_config),
            )
            session = self._opened.session
            session.subscribe(on_event=self._on_event, on_pieces=self._on_pieces, pieces=False)
            if self._listener is not None:
                session.subscribe(on_event=self._listener)
            self._opened.apply_options(self.initial_options)
        return self._opened

    async def _replace(self, change: Callable[[tuple[Message, ...]], Sequence[Message]]) -> None:
        async with self._start_lock:
            self._require_open()
            if self._opened is None:
                self._initial_history = validate_messages(change(self._initial_history), self._initial_history)
            else:
                session = self._opened.session
                await session.wait_idle()
                session.edit_history(change(session.history))
            self._forget_answers()

    def _forget_answers(self) -> None:
        """Forget what came in the history that was replaced: nobody reads it."""
        self._results.clear()
        self._unread_runs.clear()
        self._newest_run = None
        self._wait_was_stopped = False

    def _start(self, session: "Session", prompt: Message | None) -> RunEvents:
        is_stopped = self._stop_before_start or (self._wait_was_stopped and prompt is None)
        missing = self._results.missing(session.history)
        if prompt is None and missing and not is_stopped:
            names = ", ".join(call.id for call in missing)
            raise WrongUse(f"These calls have no result yet: {names}.", "Give every call its result first.")
        previous, self.run = self.run, RunEvents(self._failure, is_stopped_at_once=is_stopped)
        previous_newest, self._newest_run = self._newest_run, self.run
        try:
            history = self._results.apply_to(session.history)
            if history is not session.history:
                session.edit_history(history)
            if prompt is None:
                session.continue_run()
            else:
                session.send(prompt)
        except BaseException:
            self.run, self._newest_run = previous, previous_newest
            raise
        # Earlier runs that nobody has read are dropped.
        self._unread_runs.clear()
        self._stopping = self._wait_was_stopped = False
        self._results.clear()
        if is_stopped:
            # It is a run all the same: its prompt is in the history, and listeners get its end. Messages that were
            # queued while calls waited for results are sent after it.
            session.interrupt(None if self._stop_before_start else StopTurn())
        return self.run

    def _failure(self) -> AgentError | None:
        return None if self._opened is None else self._opened.session.error

    def take_follow_up(self) -> RunEvents | None:
        """Return the next run that a queued message began, to be read from now on; None where there is none."""
        if self._working and (self._newest_run is None or self._newest_run.end is not None):
            # Its first event is still to come.
            self._expect_run()
        if not self._unread_runs:
            return None
        self.run = self._unread_runs.popleft()
        return self.run

    def _expect_run(self) -> None:
        self._newest_run = RunEvents(self._failure)
        self._unread_runs.append(self._newest_run)

    def _on_event(self, envelope: Envelope) -> None:
        is_root = envelope.parent_run_id is None
        begins = is_root and isinstance(envelope.event, RunStarted)
        if begins and (self._newest_run is None or self._newest_run.end is not None):
            self._expect_run()
        if self._newest_run is not None:
            self._newest_run.handle(envelope)
        if is_root:
            self._results.handle(envelope.event)
            # A run that queued messages begin from now on was not stopped.
            self._stopping = self._stopping and not isinstance(envelope.event, RunFinished)

    def _on_pieces(self, envelope: Envelope, pieces: Sequence[Event]) -> None:
        if self._newest_run is not None:
            self._newest_run.handle(envelope, pieces)


def to_prompt(prompt: object) -> Message:
    """Return the prompt as a message. Raises WrongUse for what is none, or is empty."""
    message = validate_message(Message.user(prompt) if isinstance(prompt, str) else prompt)
    if message.role is not Role.USER:
        raise WrongUse("Only a message of the user can be asked.", "Make it with Message.user(…), or give a string.")
    if any(not isinstance(block, Text | Image) for block in message.blocks):
        raise WrongUse("A prompt holds text and pictures, nothing else.", "Give results with add_tool_result().")
    if message.is_blank:
        raise WrongUse("The prompt is empty.", "Write something.")
    return message
