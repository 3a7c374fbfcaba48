"""One conversation behind a face of the library: starts runs on the engine's session, one after the other."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Unpack

from desktop_agent.conversation.repair import unanswered
from desktop_agent.faces.backing.answer_format import AnswerFormat
from desktop_agent.faces.backing.results import GivenResults, sound_results
from desktop_agent.faces.backing.run_events import RunEvents
from desktop_agent.faces.backing.stopping import Stopping
from desktop_agent.permissions.foreign_messages import sound, sound_messages
from desktop_agent.tools.foreign_code import copied
from desktop_agent.vocabulary.blocks import Image, Text, ToolResult, ToolUse
from desktop_agent.vocabulary.conduct.interrupts import Interrupt, StopTool, StopTurn
from desktop_agent.vocabulary.conduct.modes import Mode
from desktop_agent.vocabulary.conduct.queue import When
from desktop_agent.vocabulary.engine_events import Envelope, RunFinished, RunStarted
from desktop_agent.vocabulary.errors import AgentError, WrongUse
from desktop_agent.vocabulary.messages import Message, Role
from desktop_agent.vocabulary.options import AgentOptions, OptionValues

if TYPE_CHECKING:
    from desktop_agent.engine.session import Session
    from desktop_agent.faces.backing.opening import Opened

Listener = Callable[[Envelope], None]


class Conversing:
    """Opened when it is first needed, in the loop that runs then. `history` is what was said before.

    `begins_with` are the options with what was changed before it was opened. `run` is the one that is read; runs that
    waiting messages begin by themselves are read next (see `begin`).
    """

    def __init__(
        self, options: AgentOptions, history: Sequence[Message] = (), listener: Listener | None = None
    ) -> None:
        self.options = options
        self.begins_with = options
        self.answer_format = AnswerFormat()
        self.run: RunEvents | None = None
        # The one that hears the events, and those that nobody reads yet.
        self._newest: RunEvents | None = None
        self._next_to_read = deque[RunEvents]()
        self.stopping = Stopping(self.interrupt)
        self._first = sound_messages(history)
        self._listener = listener
        self.loop: asyncio.AbstractEventLoop | None = None
        self._opened: Opened | None = None
        self._results = GivenResults()
        # Held while a run is being started or the history replaced.
        self._beginning = asyncio.Lock()
        self._stop_before_start = False
        self._stopping = False
        self._stopped_waiting = False
        self.on_stopped_waiting: Callable[[], object] = lambda: None
        """Called when Stop ends the wait for results."""
        self.is_closed = False

    @property
    def history(self) -> tuple[Message, ...]:
        """All messages, oldest first."""
        return self._first if self._opened is None else self._opened.session.history

    @property
    def is_open(self) -> bool:
        """Whether something must be closed."""
        return self._opened is not None and not self.is_closed

    @property
    def session(self) -> "Session | None":
        """The engine's session, once there is one."""
        return None if self._opened is None else self._opened.session

    @property
    def opened_session(self) -> "Session":
        """The same. Raises WrongUse before the first question."""
        if self._opened is None:
            raise WrongUse("Nothing was asked yet.", "Ask first, with send() for example.")
        return self._opened.session

    @property
    def waiting_calls(self) -> tuple[ToolUse, ...]:
        """Calls that the caller has to answer, as copies."""
        return () if self._working else copied(self._results.missing(self.history))

    async def begin(self, prompt: Message | None) -> RunEvents:
        """Start a run on this prompt, or go on from the history with the results that were given.

        A run that was stopped, or whose reader went away, is waited for; so is the one whose calls have results, which
        are gone on with. Raises WrongUse while another one is under way, and when calls wait for results and there is
        no prompt. What broke the answer off that was waited for is raised unless it was read; the next call goes on.
        Without a prompt, a run that a waiting message began by itself is the answer, where there is one.
        """
        if prompt is None and (follow_up := self.follow_up()) is not None:
            return follow_up
        goes_on = prompt is None and self._results.has_given
        self._refuse_if_busy(waits=goes_on)
        self._stop_before_start = False
        async with self._beginning:
            session = (await self._open()).session
            await session.wait_idle()
            if goes_on and self.run is not None and (error := self.run.take_unread_error()) is not None:
                raise error
            return self._started(session, prompt)

    def give(self, *results: ToolResult) -> None:
        """Results of calls, also while the rest of the answer streams. Raises WrongUse for ids that wait for none."""
        if self.options.auto_execute_tools:
            raise WrongUse(
                "The runtime runs these tools itself.", "Make the options with auto_execute_tools=False, or do not."
            )
        self._results.give(self.history, *sound_results(results))

    def steer(self, message: Message, when: When, expected_turn: str | None) -> None:
        """Queue a message. Raises TurnMismatch, and WrongUse."""
        self._refuse_if_closed()
        self.opened_session.steer(message, when, expected_turn)

    def begin_with(self, **changes: Unpack[OptionValues]) -> None:
        """Change what it begins with, before it is opened. Raises WrongUse for what does not fit together, and once it
        is closed."""
        self._refuse_if_closed()
        self.begins_with = self.begins_with.with_values(**changes)

    def set_mode(self, mode: str | Mode) -> None:
        """Change it at once; one of the caller's own becomes one of those that can be chosen. Raises WrongUse."""
        self._refuse_if_closed()
        name = mode if isinstance(mode, str) else mode.name
        changes: OptionValues = {}
        if isinstance(mode, Mode):
            others = tuple(each for each in self.begins_with.modes if each.name != name)
            changes["modes"] = (*others, mode)
        if self._opened is None:
            self.begin_with(**{**changes, "mode": name})
            return
        if changes:
            self.begin_with(**changes)
            self._opened.session.modes.follow()
        self._opened.session.modes.set_by_person(name)

    def interrupt(self, target: Interrupt | None = None) -> bool:
        """Stop at once what is under way, also waiting for results; False when there is nothing to stop."""
        if self._beginning.locked():
            self._stop_before_start = True
        if self._opened is not None and (self._working or isinstance(target, StopTool)):
            if not isinstance(target, StopTool):
                self._stopping = True
                # Whoever has calls of this answer goes on with their results: the model is not asked then either.
                self._stopped_waiting = not self.options.auto_execute_tools and self._results.has_handed_out
            return self._opened.session.interrupt(target)
        if self._waits_for_results:
            # Whoever runs the calls now goes on with their results; the model is not asked again then.
            self._stopped_waiting = True
            self.on_stopped_waiting()
        if self._opened is not None:
            self._opened.session.interrupt(target)
        return self._waits_for_results or self._stop_before_start

    def abandon(self, run: RunEvents) -> None:
        """Its reader went away: stop this run, and not one that was begun since."""
        if self.expects_end_of(run) and self._opened is not None:
            self._opened.session.interrupt()

    def expects_end_of(self, run: RunEvents) -> bool:
        """Whether it goes on; if so it will be stopped, and what is begun next waits for that."""
        goes_on = run is self.run and run.end is None
        self._stopping = self._stopping or goes_on
        return goes_on

    async def replace_history(self, change: Callable[[tuple[Message, ...]], Sequence[Message]]) -> None:
        """Another history from now on. Raises WrongUse while a run is under way, and for what is no messages."""
        self._refuse_if_busy()
        await self._replaced(change)

    async def clear(self) -> None:
        """Stop, wait until nothing is left of the old run, and begin anew with the same options."""
        self.interrupt()
        await self._replaced(lambda _: ())
        if self.run is not None:
            self.run = self.run.without_events()

    async def aclose(self) -> None:
        """Stop, and close what was opened. Idempotent."""
        self.interrupt()
        self.is_closed = True
        async with self._beginning:
            if self._opened is not None:
                await self._opened.aclose()

    @property
    def _working(self) -> bool:
        return self._opened is not None and self._opened.session.working

    @property
    def _waits_for_results(self) -> bool:
        return not self.options.auto_execute_tools and bool(unanswered(self.history))

    def _refuse_if_busy(self, *, waits: bool = False) -> None:
        """Also binds this to the loop that runs; whatever is open lives there."""
        loop = asyncio.get_running_loop()
        self._refuse_if_closed()
        if self.loop not in {None, loop}:
            raise WrongUse("This belongs to another event loop.", "Make a new one in each loop, and close each.")
        self.loop = loop
        self.stopping.bind(loop)
        self.stopping.settle()
        if self._beginning.locked() or (self._working and not self._stopping and not waits):
            raise WrongUse(
                "The answer before is not finished.", "Read it to its end, or stop it with interrupt() first."
            )

    def _refuse_if_closed(self) -> None:
        if self.is_closed:
            raise WrongUse("This is closed.", "Make a new one.")

    async def _open(self) -> "Opened":
        if self._opened is None:
            # The engine takes a while to load, and the loop is the caller's.
            await asyncio.to_thread(import_module, "desktop_agent.faces.backing.opening")
            from desktop_agent.faces.backing.opening import connected, opened

            connection = await connected(self.options)
            # In one go: what is changed from now on is changed in the session.
            self._opened = opened(
                self.begins_with,
                connection,
                self._first,
                modes=lambda: self.begins_with.modes,
                config=lambda: self.answer_format.apply(self.options.run_config),
            )
            self._opened.session.subscribe(on_event=self._hear)
            self._opened.begin_with(self.begins_with)
        return self._opened

    async def _replaced(self, change: Callable[[tuple[Message, ...]], Sequence[Message]]) -> None:
        async with self._beginning:
            self._refuse_if_closed()
            if self._opened is None:
                self._first = sound_messages(change(self._first), self._first)
            else:
                session = self._opened.session
                await session.wait_idle()
                session.edit_history(change(session.history))
            self._results.forget()
            # Nobody reads the answers of a history that is gone.
            self._next_to_read.clear()
            self._newest = None
            self._stopped_waiting = False

    def _started(self, session: "Session", prompt: Message | None) -> RunEvents:
        stopped = self._stop_before_start or (self._stopped_waiting and prompt is None)
        missing = self._results.missing(session.history)
        if prompt is None and missing and not stopped:
            names = ", ".join(call.id for call in missing)
            raise WrongUse(f"These calls have no result yet: {names}.", "Give every call its result first.")
        before, self.run = self.run, RunEvents(self._failure, is_stopped_at_once=stopped)
        before_newest, self._newest = self._newest, self.run
        try:
            history = self._results.applied(session.history)
            if history is not session.history:
                session.edit_history(history)
            if prompt is None:
                session.go_on()
            else:
                session.send(prompt)
        except BaseException:
            self.run, self._newest = before, before_newest
            raise
        # What nobody has asked to read, nobody will.
        self._next_to_read.clear()
        self._stopping = self._stopped_waiting = False
        self._results.forget()
        if stopped:
            # It is a run all the same: its prompt is in the history, and whoever listens hears its end. What was queued
            # while calls waited for results is sent behind it.
            session.interrupt(None if self._stop_before_start else StopTurn())
        return self.run

    def _failure(self) -> AgentError | None:
        return None if self._opened is None else self._opened.failure

    def follow_up(self) -> RunEvents | None:
        """The next run that a waiting message began by itself, to be read from now on; None where there is none."""
        if self._working and (self._newest is None or self._newest.end is not None):
            # Its first event is still to come.
            self._await_next()
        if not self._next_to_read:
            return None
        self.run = self._next_to_read.popleft()
        return self.run

    def _await_next(self) -> None:
        self._newest = RunEvents(self._failure)
        self._next_to_read.append(self._newest)

    def _hear(self, envelope: Envelope) -> None:
        is_root = envelope.parent_run_id is None
        begins = is_root and isinstance(envelope.event, RunStarted)
        if begins and (self._newest is None or self._newest.end is not None):
            self._await_next()
        if self._newest is not None:
            self._newest.hear(envelope)
        if is_root:
            self._results.handle(envelope.event)
            # What is begun by itself from now on was not stopped.
            self._stopping = self._stopping and not isinstance(envelope.event, RunFinished)
        if self._listener is not None:
            self._listener(envelope)


def as_prompt(prompt: object) -> Message:
    """Words become a prompt. Raises WrongUse for what is none, or says nothing."""
    message = sound(Message.user(prompt) if isinstance(prompt, str) else prompt)
    if message.role is not Role.USER:
        raise WrongUse("Only a message of the user can be asked.", "Make it with Message.user(…), or give a string.")
    if any(not isinstance(block, Text | Image) for block in message.blocks):
        raise WrongUse("A prompt holds text and pictures, nothing else.", "Give results with add_tool_result().")
    if all(isinstance(block, Text) and not block.text.strip() for block in message.blocks):
        raise WrongUse("The prompt says nothing.", "Write something.")
    return message
