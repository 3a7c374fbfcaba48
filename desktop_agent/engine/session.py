"""One open conversation and its single writer."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Unpack

from desktop_agent.agent.run_context import token_count
from desktop_agent.conversation.history import compacted_view, normalised_history, summary_of, unanswered_calls
from desktop_agent.conversation.transcript import Transcript
from desktop_agent.conversation.transcript_notices import last_message_but_undo_notes
from desktop_agent.engine.checkpoints import Checkpoints, RestoreListeners
from desktop_agent.engine.recovery import OpenCalls, close_calls
from desktop_agent.engine.session_controls import RuntimeControls, SessionSetup
from desktop_agent.engine.session_runs import ActiveRun, RunFactory, RunRecorder, SessionRun
from desktop_agent.engine.session_writer import ChangeListener, EventListener, SessionWriter
from desktop_agent.processes.foreign_code import validate_message, validate_messages
from desktop_agent.providers.catalogue.catalogue import estimate_text_tokens, estimate_tokens
from desktop_agent.storage.records import ConversationChanges, ConversationRecord
from desktop_agent.storage.write_behind import OVERTAKEN, UnsavedConversation, conversation_closed_error
from desktop_agent.types.engine_events import ErrorOccurred, RunEnd, UserMessageQueued
from desktop_agent.types.errors import AgentError, StorageFailed, TurnMismatch, WrongUse
from desktop_agent.types.messages import Message, MessageState, Role
from desktop_agent.types.policies import Interrupt, StopSession, StopTool, StopTurn, When
from desktop_agent.types.provider_events import StopReason, Usage
from desktop_agent.types.providers import ModelRequest
from desktop_agent.types.tool_calls import ToolSpec


class SessionView:
    """The reading half of a session."""

    def __init__(self, writer: SessionWriter) -> None:
        self._writer = writer

    @property
    def record(self) -> ConversationRecord:
        """The conversation as it is listed."""
        return self._writer.record

    @property
    def is_new(self) -> bool:
        """Whether nothing of it was kept yet."""
        return self._writer.journal_queue.is_new

    @property
    def transcript(self) -> Transcript:
        """What is shown."""
        return self._writer.transcript

    @property
    def usage(self) -> Usage | None:
        """What the last answer used; its sum is how full the model's context is."""
        return self._writer.usage

    @property
    def history(self) -> tuple[Message, ...]:
        """All messages of the branch, oldest first."""
        return self._writer.history()

    def subscribe(self, on_changes: ChangeListener | None = None, on_event: EventListener | None = None) -> None:
        """Be told of changes to the transcript, of events, or both. Called in the loop's thread."""
        self._writer.subscribe(on_changes, on_event)

    def unsubscribe(self, listener: ChangeListener | EventListener) -> None:
        """Stop telling this one."""
        self._writer.unsubscribe(listener)

    async def flush(self) -> None:
        """Return when everything so far is on the disk. Raises StorageFailed, and goes on trying."""
        await self._writer.flush()

    async def write_all(self) -> None:
        """Try to write what waits; `unsaved` says what the disk refused."""
        await self._writer.journal_queue.write_all()

    async def write_at_once(self) -> None:
        """The same on another loop, when the usual one does not go on any more. Raises StorageFailed."""
        await self._writer.journal_queue.write_at_once()

    @property
    def unsaved(self) -> UnsavedConversation | None:
        """The conversation where the disk refused some of it; None where all is kept, or on its way."""
        refused = self._writer.journal_queue.unwritten
        return refused and UnsavedConversation(self.record, self.history, *refused)


TITLE_LENGTH = 60


def title_of(message: Message) -> str:
    """The first line of the first prompt, cut at a word."""
    line = next((line.strip() for line in message.text.splitlines() if line.strip()), "")
    if not line:
        return "Picture"
    if len(line) <= TITLE_LENGTH:
        return line
    return line[:TITLE_LENGTH].rsplit(" ", 1)[0] + "…"


class ContextSize:
    """Counts with what the last answer used, where its server says that, and estimates the rest."""

    def __init__(self, setup: SessionSetup, writer: SessionWriter) -> None:
        self._setup = setup
        self._writer = writer
        # Tokens by message, and of texts that are still being written: both are asked about again and again.
        self._message_weights: dict[str, int] = {}
        self._text_weights: dict[str, float] = {}
        self._fixed_part: tuple[object, int] | None = None

    def tokens(self, texts: Sequence[str] = ()) -> int:
        """Return about how many tokens the next request has if these texts are sent with it."""
        known, rest = self._counted_and_rest()
        self._text_weights = {text: self._text_weights.get(text) or estimate_text_tokens(text) for text in texts}
        written = math.ceil(sum(self._text_weights.values()))
        return (self._fixed_tokens() if known is None else known) + sum(map(self._message_tokens, rest)) + written

    def _counted_and_rest(self) -> tuple[int | None, Sequence[Message]]:
        """What the server counted up to its last answer, None where it did not, and the messages it has not read."""
        history = self._writer.history()
        for at in range(len(history) - 1, -1, -1):
            message = history[at]
            if summary_of(message) is not None:
                break
            if message.role is Role.ASSISTANT and message.usage is not None and (used := token_count(message.usage)):
                return used, history[at + 1 :]
        return None, compacted_view(normalised_history(history))

    def _message_tokens(self, message: Message) -> int:
        known = self._message_weights.get(message.id)
        if known is None:
            known = self._message_weights[message.id] = estimate_tokens(ModelRequest("", (message,))).tokens
        return known

    def _fixed_tokens(self) -> int:
        """Instructions and tools."""
        record = self._writer.record
        config = self._setup.config_for(record)
        key = (record.workspace, config.system_prompt)
        if self._fixed_part is None or self._fixed_part[0] != key:
            self._fixed_part = key, estimate_tokens(ModelRequest("", (), self._tools(), config=config)).tokens
        return self._fixed_part[1]

    def _tools(self) -> tuple[ToolSpec, ...]:
        try:
            return tuple(self._setup.tools_for(self._writer.record).specs())
        except AgentError:
            # Its folder is gone: sending says so.
            return ()


# After these the next message that waits would meet the same: a server that is down.
_KEEPS_QUEUE = frozenset({RunEnd.FAILED})
_UNFINISHED_STOPS = {StopReason.PAUSE_TURN, StopReason.CONTINUATION}


class Session(SessionView):
    """Send, steer, stop, decide. All methods belong to the event loop's thread.

    `approvals`, `questions`, `queue`, `modes`, `policies`, `guards` and `permission_policy` may be used at any time,
    also while
    a run works; `checkpoints` is None where nothing is kept. `returned` answers, once, the whole message that an event
    UserMessageReturned named. `open_calls` are what a dead process left. Whoever opened the session finds it in `busy`
    while something of it is under way or unwritten; otherwise it lives as long as somebody holds it.

    `held` says which other process is the writer, or that nothing can be written: then this one is closed from its
    beginning on.

    Closed (`is_closed`, from the beginning of `close` on), it can still be read, and `interrupt`, `wait_idle` and
    `close` are harmless; all else that would do or change something raises WrongUse. Through the seven named first, it
    does so from the end of `close` on, and changes nothing: until then the run that is being stopped may need them, and
    what they take is kept.
    """

    def __init__(
        self,
        writer: SessionWriter,
        setup: SessionSetup,
        *,
        open_calls: OpenCalls | None = None,
        busy: "set[Session] | None" = None,
        held: StorageFailed | None = None,
    ) -> None:
        super().__init__(writer)
        self._setup = setup
        self._open_calls = open_calls
        self._busy: set[Session] = set() if busy is None else busy
        self._stopped_recorder: RunRecorder | None = None
        self.is_closed = False
        self._active_run = ActiveRun(writer, self._update_busy)
        self._controls = RuntimeControls(writer, setup, self._active_run.emit)
        self.approvals = self._controls.approvals
        self.questions = self._controls.questions
        self.queue = self._controls.queue
        self.modes = self._controls.modes
        self.policies = self._controls.policies
        self.guards = self._controls.guards
        self.permission_policy = self._controls.permission_policy
        self.returned = self._controls.returned
        self.checkpoints = _create_checkpoints(writer, setup, self._refuse_while_working, self._close_open_calls)
        self.context_size = ContextSize(setup, writer)
        self._run_factory = RunFactory(setup, self._controls, self.checkpoints, lambda: self.record)
        writer.journal_queue.on_pending_change(self._update_busy)
        writer.journal_queue.on_trouble(self._on_write_error)
        self._blocked_by = held
        if held is not None:
            self.is_closed = True
            self._controls.close()

    @property
    def working(self) -> bool:
        """Whether a run is under way. From its RunFinished on it is not, and the next prompt may be sent."""
        return self._active_run.recorder is not None

    @property
    def can_resume(self) -> bool:
        """Whether a dead process left calls that `resume` goes on with."""
        return self._open_calls is not None

    def send(self, message: Message) -> None:
        """Start a run with this prompt; messages that wait already go before it.

        Raises WrongUse while a run is under way, when closed, when its folder is gone, for a message that is no prompt,
        and for one that was sent before.
        """
        self._refuse_while_working()
        self._send(message)

    @property
    def turn_id(self) -> str | None:
        """The turn that runs; None when none does."""
        return self._active_run.turn_id

    def retry(self) -> None:
        """Ask again with the history as it is. Raises WrongUse while working, when closed, or with nothing to ask."""
        self._refuse_while_working()
        if not self.history:
            raise WrongUse("There is nothing to try again.")
        if _is_answered(self.history):
            raise WrongUse(
                "The last answer is complete, so there is nothing to try again.", "Write what you want next."
            )
        self._start(self._run_factory.create_run)

    def continue_run(self) -> None:
        """Go on without a new prompt: after a limit, with results that were added, with a message that waits.

        Raises WrongUse while working, when closed, or with nothing to go on with.
        """
        self._refuse_while_working()
        if self.queue.entries and (not self.history or _is_answered(self.history)):
            self._start(self._run_factory.create_run, self._controls.take_next)
        else:
            self.retry()

    def resume(self) -> bool:
        """Go on with the run that a dead process left, if there is one.

        Raises WrongUse when closed, and when its folder is gone.
        """
        self._refuse_when_closed()
        if self._open_calls is None:
            return False
        last = self._open_calls.last
        recorder = RunRecorder(self._writer, last.run_id, last.seq, last.turn_id)
        run = self._run_factory.create_run(recorder, self._open_calls.prior_use)
        left, self._open_calls = self._open_calls.recovered_calls, None
        self._active_run.start(run, recorder, partial(self._on_run_end, _KEEPS_QUEUE), left=left)
        return True

    def steer(self, message: Message, when: When = "soon", expected_turn_id: str | None = None) -> None:
        """Queue a message while the agent works: delivered at its next edge, or when idle. When it is idle, send it.

        Where the caller has calls that wait for results, it waits until they have been answered. Raises TurnMismatch
        when the turn is not the expected one, and WrongUse when closed and as `send` does.
        """
        self._refuse_when_closed()
        if expected_turn_id is not None and expected_turn_id != self._active_run.turn_id:
            raise TurnMismatch("The agent is at another turn by now.")
        if not self.working and not self._awaits_results:
            self._send(message, when)
            return
        message = validate_message(message)
        self._controls.check(message)
        self.queue.add(message, when)
        self._active_run.emit(UserMessageQueued(message.id))

    def interrupt(self, target: Interrupt | None = None) -> bool:
        """Stop a call, this run, or this run and what waits (the default): waiting messages are handed back then.

        False when there is nothing to stop, as when closed.
        """
        target = target or StopSession()
        recorder = self._active_run.recorder
        if recorder is None:
            # What waits in a conversation that is being closed is kept, not handed back.
            if isinstance(target, StopSession) and not self.is_closed:
                self._controls.return_queued()
            return False
        if isinstance(target, StopSession):
            self._stopped_recorder = recorder
        if not isinstance(target, StopTool):
            self._controls.note_stop(recorder.run_id)
        return self._active_run.interrupt(target)

    def compact(self) -> None:
        """Summarise older messages for the model now. Raises WrongUse while working, closed, or with nothing said."""
        self._refuse_while_working()
        if not self.history:
            raise WrongUse("There is nothing to summarise yet.")
        # Whether it comes to anything says nothing about what waits.
        self._start(self._run_factory.create_compaction_run, keeps_waiting=frozenset())

    def edit_history(self, messages: Sequence[Message]) -> None:
        """Go on from these messages; those that were said stay on the disk.

        Raises WrongUse while working, when closed, and for messages that cannot be kept.
        """
        self._refuse_while_working()
        messages = validate_messages(messages, self.history)
        self._close_open_calls()
        self._writer.replace_history(messages)

    def change_record(self, **changes: Unpack[ConversationChanges]) -> None:
        """Change what ConversationChanges names. What a run goes by holds from the next run on, also what may run.

        Raises WrongUse when closed.
        """
        self._refuse_when_closed()
        self._writer.journal_queue.change_record(**changes)
        if not self.working:
            self.permission_policy.set_workspace(self.record.workspace)

    async def wait_idle(self) -> None:
        """Return when no run is under way and what the last one left is written."""
        await self._active_run.wait_idle()

    async def close(self) -> None:
        """Stop what runs, write what is left. Messages that wait are kept, also one that hooks still look at.

        Harmless when repeated.
        """
        self.is_closed = True
        self._controls.requeue_undecided()
        self.interrupt(StopTurn())
        await self.wait_idle()
        self._controls.close()
        await self._writer.journal_queue.close()
        self._update_busy()

    def _on_write_error(self, trouble: StorageFailed | None) -> None:
        """Where another process writes too, or another file is there, nothing more is done here: the event says why."""
        if isinstance(trouble, OVERTAKEN):
            self.is_closed = True
            self._active_run.emit(ErrorOccurred.of(trouble))
            self.interrupt(StopTurn())

    def _send(self, message: Message, when: When = "soon") -> None:
        message = validate_message(message)
        self._controls.check(message)
        self._start(self._run_factory.create_run, lambda: self._controls.take_next(message, when))

    @property
    def _awaits_results(self) -> bool:
        """Whether whoever asked runs the calls, and has not given all results yet."""
        return not self._setup.execute_tools and bool(unanswered_calls(self.history))

    def _refuse_when_closed(self) -> None:
        if self.is_closed:
            raise self._blocked_by or conversation_closed_error()

    def _refuse_while_working(self) -> None:
        self._refuse_when_closed()
        if self.working:
            raise WrongUse("The model is still working.", "Wait, or press Stop first.")

    def _start(
        self,
        make: Callable[[RunRecorder], SessionRun],
        take_prompt: Callable[[], Message | None] = lambda: None,
        keeps_waiting: frozenset[RunEnd] = _KEEPS_QUEUE,
    ) -> None:
        """Begin a run: what can be refused is refused before anything is shown or taken out.

        After an end among `keeps_waiting`, what waits goes on waiting.
        """
        self._refuse_while_working()
        if self.checkpoints is not None:
            self.checkpoints.refuse_while_restoring()
        recorder = RunRecorder(self._writer)
        work = make(recorder)
        self._close_open_calls()
        prompt = take_prompt()
        if prompt is not None:
            if not self.history and self.record.title_is_automatic:
                self.change_record(title=title_of(prompt), title_is_automatic=True)
            self._controls.begin(prompt, is_judged=bool(self._setup.hooks.user_prompt_submit))
            self._writer.show(prompt)
        self._active_run.start(work, recorder, partial(self._on_run_end, keeps_waiting), prompt)

    def _on_run_end(
        self, keeps_waiting: frozenset[RunEnd], recorder: RunRecorder, prompt: Message | None, end: RunEnd
    ) -> None:
        """A run is over. The next message that waits is sent, unless all was stopped or calls wait for results."""
        self._controls.finish_prompt(prompt)
        if recorder is self._stopped_recorder and not self.is_closed:
            self._controls.return_queued()
        elif (
            self.queue.entries
            and end not in keeps_waiting
            and not self.is_closed
            and not self._awaits_results
            and self._active_run.is_latest(recorder)
        ):
            try:
                self._start(self._run_factory.create_run, self._controls.take_next)
            except WrongUse as error:
                self._writer.emit_between_runs(ErrorOccurred.of(error))

    def _close_open_calls(self) -> None:
        """What a dead process left is not gone on with: its calls get their results, its run is over."""
        if self._open_calls is not None:
            close_calls(self._writer, self._open_calls)
            self._open_calls = None

    def _update_busy(self) -> None:
        journal_queue = self._writer.journal_queue
        # What can never be written stands here alone.
        if self._active_run.is_idle and journal_queue.is_flushed and journal_queue.unwritten is None:
            self._busy.discard(self)
        else:
            self._busy.add(self)


def _create_checkpoints(
    writer: SessionWriter, setup: SessionSetup, refuse: Callable[[], None], close_open_calls: Callable[[], None]
) -> Checkpoints | None:
    """Those of the writer's conversation; None where nothing is kept."""

    def note(message: Message) -> None:
        # Nothing stands between a call and its result.
        close_open_calls()
        writer.add(message)

    return setup.store and Checkpoints(
        setup.store,
        writer.record.id,
        history=writer.history,
        refuse=refuse,
        emit=writer.emit_between_runs,
        listeners=RestoreListeners(
            note, lambda saved: writer.notify_changes(writer.transcript.mark_saved_calls(saved))
        ),
        tools=lambda: setup.tools_for(writer.record),
        specialists=lambda: tuple(each.name for each in setup.specialists()),
    )


def _is_answered(history: Sequence[Message]) -> bool:
    """Whether the last word is the model's, and all of it."""
    last = last_message_but_undo_notes(history)
    if last is None:
        return False
    is_complete = last.state is MessageState.COMPLETE and last.stop_reason not in _UNFINISHED_STOPS
    return last.role is Role.ASSISTANT and is_complete and not last.tool_uses and bool(last.blocks)
