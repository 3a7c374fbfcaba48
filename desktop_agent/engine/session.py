"""One open conversation and its single writer."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Unpack

from desktop_agent.agent.run import Run
from desktop_agent.conversation.history import unanswered_calls
from desktop_agent.conversation.transcript import Transcript
from desktop_agent.conversation.transcript_notices import last_message_but_undo_notes
from desktop_agent.engine.checkpoints import Checkpoints, RestoreListeners
from desktop_agent.engine.context_size import ContextSize
from desktop_agent.engine.history_loader import BranchLoader, HistoryLoader
from desktop_agent.engine.recovery import OpenCalls, close_calls
from desktop_agent.engine.session_branches import SessionBranches
from desktop_agent.engine.session_controls import RuntimeControls, SessionSetup
from desktop_agent.engine.session_runs import ActiveRun, ConversationFolders, RunFactory, RunRecorder
from desktop_agent.engine.session_writer import ChangeListener, EventListener, PieceListener, SessionWriter
from desktop_agent.engine.titles import TitleMaker, title_of
from desktop_agent.processes.foreign_code import validate_message, validate_messages
from desktop_agent.storage.records import ConversationChanges, ConversationRecord
from desktop_agent.storage.write_behind import OVERTAKEN, UnsavedConversation, conversation_closed_error
from desktop_agent.types.engine_events import ErrorOccurred, RunEnd, UserMessageQueued
from desktop_agent.types.errors import AgentError, StorageFailed, TurnMismatch, WrongUse
from desktop_agent.types.messages import Message, MessageState, Role
from desktop_agent.types.policies import Interrupt, StopSession, StopTool, StopTurn, When
from desktop_agent.types.provider_events import StopReason, Usage

# After these the queued messages go on waiting: the server may be down, and each of them would fail too.
_KEEPS_QUEUE = frozenset({RunEnd.FAILED})
_UNFINISHED_STOPS = {StopReason.PAUSE_TURN, StopReason.CONTINUATION}


class RunStarter:
    """Begins the runs of one session, one after the other, and decides what follows each.

    `refuse` raises WrongUse while none may begin. `open_calls` are those of a dead process, until somebody resumes
    them or another run begins.
    """

    def __init__(
        self,
        writer: SessionWriter,
        setup: SessionSetup,
        controls: RuntimeControls,
        active_run: ActiveRun,
        open_calls: OpenCalls | None,
        refuse: Callable[[], None],
        is_closed: Callable[[], bool],
    ) -> None:
        self._writer = writer
        self._setup = setup
        self._controls = controls
        self._active_run = active_run
        self._refuse = refuse
        self._is_closed = is_closed
        self._stopped_recorder: RunRecorder | None = None
        self.open_calls = open_calls
        self.history_loader = HistoryLoader(writer, setup.store)
        self.checkpoints = self._create_checkpoints()
        self.folders = ConversationFolders(writer, setup.store)
        self.run_factory = RunFactory(
            setup, controls, self.checkpoints, lambda: writer.record, self.history_loader, self.folders
        )

    @property
    def awaits_results(self) -> bool:
        """Return whether the caller executes the calls, and has not given all results yet."""
        return not self._setup.execute_tools and bool(unanswered_calls(self._writer.history()))

    def start(self, take_prompt: Callable[[], Message | None] = lambda: None) -> None:
        """Begin a run. Raises WrongUse before anything is shown or taken out."""
        self._start(self.run_factory.create_run, take_prompt, _KEEPS_QUEUE)

    def start_compaction(self) -> None:
        """Begin a compaction. Raises WrongUse."""
        # Its outcome says nothing about the queue.
        self._start(partial(self.run_factory.create_run, only_compacts=True), lambda: None, frozenset())

    def resume(self, open_calls: OpenCalls) -> None:
        """Resume the run of a dead process. Raises WrongUse when its folder is gone."""
        last = open_calls.last
        recorder = RunRecorder(self._writer, last.run_id, last.seq, last.turn_id)
        run = self.run_factory.create_run(recorder, open_calls.prior_use)
        self.open_calls = None
        after = partial(self._on_run_end, _KEEPS_QUEUE)
        self._active_run.start(run, recorder, after, recovered=open_calls.recovered_calls)

    def note_stop_of_all(self, recorder: RunRecorder) -> None:
        """Note that the person stopped this run and the queue."""
        self._stopped_recorder = recorder

    def override_budget(self) -> None:
        """Let the run that works exceed budgets, to its end."""
        if self._setup.spending is not None:
            self._setup.spending.override_budget(self._writer.record.id)

    def close_open_calls(self) -> None:
        """Close the calls of a dead process that nobody resumes: they get their results, their run is over."""
        if self.open_calls is not None:
            close_calls(self._writer, self.open_calls)
            self.open_calls = None

    def _start(
        self,
        create: Callable[[RunRecorder], Run],
        take_prompt: Callable[[], Message | None],
        keeps_queue: frozenset[RunEnd],
    ) -> None:
        """Begin a run. After an end among `keeps_queue`, the queued messages go on waiting."""
        self._refuse()
        if self.checkpoints is not None:
            self.checkpoints.refuse_while_restoring()
        recorder = RunRecorder(self._writer)
        run = create(recorder)
        self.close_open_calls()
        prompt = take_prompt()
        if prompt is not None:
            if self._writer.head is None and self._writer.record.title_is_automatic:
                self._writer.journal_queue.change_record(title=title_of(prompt), title_is_automatic=True)
            self._controls.begin(prompt, is_judged=bool(self._setup.hooks.user_prompt_submit))
            self._writer.show(prompt)
        self._active_run.start(run, recorder, partial(self._on_run_end, keeps_queue), prompt)

    def _on_run_end(
        self, keeps_queue: frozenset[RunEnd], recorder: RunRecorder, prompt: Message | None, end: RunEnd
    ) -> None:
        """Send the next message that waits, unless all was stopped or calls wait for results."""
        self._controls.finish_prompt(prompt)
        if self._setup.spending is not None:
            self._setup.spending.end_budget_override(self._writer.record.id)
        if recorder is self._stopped_recorder and not self._is_closed():
            self._controls.return_queued()
        elif not self._is_closed() and not self.awaits_results and self._active_run.is_latest(recorder):
            if self._controls.queue.entries and end not in keeps_queue:
                try:
                    self.start(self._controls.take_next)
                except WrongUse as error:
                    self._writer.emit_between_runs(ErrorOccurred.of(error))
            elif end is RunEnd.COMPLETED:
                self._active_run.titles.start()

    def _create_checkpoints(self) -> Checkpoints | None:
        writer, setup = self._writer, self._setup

        def note(message: Message) -> None:
            # Nothing may come between a call and its result.
            self.close_open_calls()
            writer.add(message)

        return setup.store and Checkpoints(
            setup.store,
            writer.record.id,
            history=writer.history,
            refuse=self._refuse,
            emit=writer.emit_between_runs,
            listeners=RestoreListeners(
                note, lambda saved: writer.notify_changes(writer.transcript.mark_saved_calls(saved))
            ),
            tools=lambda: setup.tools_for(writer.record),
            specialists=lambda: tuple(specialist.name for specialist in setup.specialists()),
        )


BeforeClosing = Callable[[], Awaitable[None]]


class Session:
    """One open conversation: send, steer, stop, decide. All methods belong to the event loop's thread.

    `approvals`, `questions`, `queue`, `modes`, `policies`, `guards` and `permission_policy` may be used at any time,
    also while a run works; `checkpoints` is None where nothing is stored. `returned` returns, once, the whole message
    that an event UserMessageReturned named. `open_calls` are those of a dead process. The session is in `busy` while
    something of it is active or unwritten.

    `held` says who else is the writer, or that nothing can be written: then this session is closed from the beginning.
    `is_in_memory`: it is the person's, and nothing of it is ever stored, apart from standing rules.

    Once closed (`is_closed`, from the beginning of `close` on), and while it is `blocked_by` an error, it can be read,
    and `interrupt`, `wait_idle` and `close` are harmless; all else raises WrongUse. The seven named first do so only
    from the end of `close` on: until then the run that is being stopped may need them, and their changes are stored.
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
        self._writer = writer
        self._busy: set[Session] = set() if busy is None else busy
        self.is_closed = held is not None
        self.is_in_memory = not writer.journal_queue.is_stored and held is None
        self._active_run = ActiveRun(writer, TitleMaker(writer, setup), self._update_busy)
        self._controls = controls = RuntimeControls(writer, setup, self._active_run.emit)
        self._active_run.titles.on_usage = controls.add_title_usage
        self.approvals, self.permission_policy = controls.approvals, controls.permission_policy
        self.queue, self.returned, self.guards = controls.queue, controls.returned, controls.guards
        self.modes, self.policies, self.questions = controls.modes, controls.policies, controls.questions
        refuse, self.can_wait_for_next_process = self._refuse_while_working, self._active_run.can_wait_for_next_process
        self._runs = RunStarter(
            writer, setup, controls, self._active_run, open_calls, refuse=refuse, is_closed=lambda: self.is_closed
        )
        self.checkpoints, self.history_loader = self._runs.checkpoints, self._runs.history_loader
        self.branches = SessionBranches(
            writer,
            BranchLoader(writer, setup.store, self.history_loader),
            self.checkpoints,
            controls,
            refuse=refuse,
            close_calls=self._runs.close_open_calls,
            validate=self._valid_prompt,
            start=self._runs.start,
        )
        self.context_size, self.folders = ContextSize(setup, writer, self._runs.folders), self._runs.folders
        writer.journal_queue.on_pending_change(self._update_busy)
        writer.journal_queue.on_trouble(self._on_write_error)
        self.blocked_by: AgentError | None = held
        if held is not None:
            self._controls.close()

    @property
    def record(self) -> ConversationRecord:
        return self._writer.record

    @property
    def is_new(self) -> bool:
        return self._writer.journal_queue.is_new

    @property
    def transcript(self) -> Transcript:
        return self._writer.transcript

    @property
    def usage(self) -> Usage | None:
        """Return what the last answer used; its sum is how full the model's context is."""
        return self._writer.usage

    @property
    def history(self) -> tuple[Message, ...]:
        """Return the messages of the branch, oldest first; `history_loader` has those that are not in memory."""
        return self._writer.history()

    def subscribe(
        self,
        on_changes: ChangeListener | None = None,
        on_event: EventListener | None = None,
        on_pieces: PieceListener | None = None,
        *,
        pieces: bool = True,
    ) -> None:
        """Subscribe to changes of the transcript, to events, or both. Called in the loop's thread.

        Without `pieces` there is no event for each piece of a text: they come by the thousand. `on_pieces` gets those
        that came together in one call.
        """
        self._writer.subscribe(on_changes, on_event, on_pieces, pieces=pieces)

    def unsubscribe(self, listener: ChangeListener | EventListener) -> None:
        """Stop calling this listener."""
        self._writer.unsubscribe(listener)

    async def flush(self) -> None:
        """Return when everything so far is on the disk. Raises StorageFailed, and goes on trying."""
        await self._writer.flush()

    async def write_all(self) -> None:
        """Try to write what waits; `unsaved` says what the disk refused."""
        await self._writer.journal_queue.write_all()

    async def write_at_once(self) -> None:
        """Write what waits on another loop, when the usual one has stopped. Raises StorageFailed."""
        await self._writer.journal_queue.write_at_once()

    @property
    def unsaved(self) -> UnsavedConversation | None:
        """Return the conversation where the disk refused some of it; None where all is stored, or on its way."""
        refused = self._writer.journal_queue.unwritten
        return refused and UnsavedConversation(self.record, self.history, *refused)

    @property
    def working(self) -> bool:
        """Return whether a run is active. From its RunFinished on it is not, and the next prompt may be sent."""
        return self._active_run.recorder is not None

    @property
    def error(self) -> AgentError | None:
        """Return why the newest run failed, if it did."""
        return self._active_run.error

    @property
    def can_resume(self) -> bool:
        """Return whether a dead process left calls that `resume` continues."""
        return self._runs.open_calls is not None

    def send(self, message: Message) -> None:
        """Start a run with this prompt; messages that wait already go before it.

        Raises WrongUse while a run is active, when closed, when its folder is gone, for a message that is no prompt,
        and for one that was sent before.
        """
        self._refuse_while_working()
        self._send(message)

    @property
    def turn_id(self) -> str | None:
        """Return the current turn; None when no run is active."""
        return self._active_run.turn_id

    def retry(self) -> None:
        """Ask again with the history as it is. Raises WrongUse while working, when closed, or with nothing to ask."""
        self._refuse_while_working()
        if not self.history:
            raise WrongUse("There is nothing to try again.", "Write what you want next.")
        if _is_answered(self.history):
            raise WrongUse(
                "The last answer is complete, so there is nothing to try again.", "Write what you want next."
            )
        self._runs.start()

    def continue_run(self, *, over_budget: bool = False) -> None:
        """Continue without a new prompt: after a limit, with added results, with a message that waits.

        `over_budget` lets this run exceed a budget. Raises WrongUse while working, when closed, or with nothing to do.
        """
        self._refuse_while_working()
        if self.queue.entries and (not self.history or _is_answered(self.history)):
            self._runs.start(self._controls.take_next)
        else:
            self.retry()
        if over_budget:
            self._runs.override_budget()

    def resume(self) -> bool:
        """Resume the run of a dead process; return whether there was one.

        Raises WrongUse when closed, and when its folder is gone.
        """
        self._refuse_when_closed()
        if self._runs.open_calls is None:
            return False
        self._runs.resume(self._runs.open_calls)
        return True

    def steer(self, message: Message, when: When = "soon", expected_turn_id: str | None = None) -> None:
        """Queue a message while the agent works, for its next turn boundary or when idle; send it when idle now.

        Where the caller executes calls, it waits for their results. Raises TurnMismatch when the turn is not the
        expected one, and WrongUse when closed and as `send` does.
        """
        self._refuse_when_closed()
        if expected_turn_id is not None and expected_turn_id != self._active_run.turn_id:
            raise TurnMismatch("The agent is at another turn by now.")
        if not self.working and not self._runs.awaits_results:
            self._send(message, when)
            return
        message = validate_message(message)
        self._controls.check(message)
        self.queue.add(message, when)
        self._active_run.emit(UserMessageQueued(message.id))

    def interrupt(self, target: Interrupt | None = None) -> bool:
        """Stop a call, this run, or this run and the queue (the default), whose messages are returned then.

        Return False when there is nothing to stop, as when closed.
        """
        target = target or StopSession()
        recorder = self._active_run.recorder
        if recorder is None:
            # Queued messages of a conversation that is being closed are stored, not returned.
            if isinstance(target, StopSession) and not self.is_closed:
                self._controls.return_queued()
            return False
        if isinstance(target, StopSession):
            self._runs.note_stop_of_all(recorder)
        if not isinstance(target, StopTool):
            self._controls.note_stop(recorder.run_id)
        return self._active_run.interrupt(target)

    def compact(self) -> None:
        """Summarise older messages for the model now. Raises WrongUse while working, when closed, or when empty."""
        self._refuse_while_working()
        if not self.history:
            raise WrongUse("There is nothing to summarise yet.", "Write a message first.")
        self._runs.start_compaction()

    def edit_history(self, messages: Sequence[Message]) -> None:
        """Continue from these messages; the previous ones stay on the disk.

        Raises WrongUse while working, when closed, and for messages that cannot be stored.
        """
        self._refuse_while_working()
        messages = validate_messages(messages, self.history)
        self._runs.close_open_calls()
        self._writer.replace_history(messages)

    def change_record(self, **changes: Unpack[ConversationChanges]) -> None:
        """Change what ConversationChanges names. It holds from the next run on, permissions included.

        Raises WrongUse when closed.
        """
        self._refuse_when_closed()
        self._writer.change_record(**changes)
        if not self.working:
            self.permission_policy.set_workspace(self.record.workspace)

    async def wait_idle(self) -> None:
        """Return when no run is active and what the last one left is written."""
        await self._active_run.wait_idle()

    async def close(self, before: BeforeClosing | None = None, *, keeps_approvals: bool = False) -> None:
        """Stop the run, write what is left. Messages that wait are stored, also one that hooks still judge.

        `before` is awaited when the run has stopped; where it raises StorageFailed, this does, and it stays open. With
        `keeps_approvals` the next process goes on with a run that only waits for the person. Harmless when repeated.
        """
        self.is_closed = self._controls.requeues_undecided = True
        if not (keeps_approvals and self._active_run.leave_to_next_process()):
            self.interrupt(StopTurn())
        await self._active_run.titles.close()
        await self.wait_idle()
        try:
            if before is not None:
                await before()
        except StorageFailed:
            self.is_closed = self._controls.requeues_undecided = False
            self._writer.show_waiting(self.queue.entries)
            raise
        self._controls.close()
        await self._writer.close()
        self._update_busy()

    def _on_write_error(self, trouble: StorageFailed | None) -> None:
        """Close where another process writes too, or the database file was replaced: the event says why."""
        if isinstance(trouble, OVERTAKEN):
            self.is_closed = True
            self._active_run.emit(ErrorOccurred.of(trouble))
            self.interrupt(StopTurn())

    def _send(self, message: Message, when: When = "soon") -> None:
        message = self._valid_prompt(message)
        self._runs.start(lambda: self._controls.take_next(message, when))

    def _valid_prompt(self, message: Message) -> Message:
        message = validate_message(message)
        self._controls.check(message)
        return message

    def _refuse_when_closed(self) -> None:
        if self.is_closed or self.blocked_by is not None:
            raise self.blocked_by or conversation_closed_error()

    def _refuse_while_working(self) -> None:
        self._refuse_when_closed()
        if self.working:
            raise WrongUse("The model is still working.", "Wait, or press Stop first.")

    def _update_busy(self) -> None:
        journal_queue = self._writer.journal_queue
        # Content that can never be written exists only in memory.
        if self._active_run.is_idle and journal_queue.is_flushed and journal_queue.unwritten is None:
            self._busy.discard(self)
        else:
            self._busy.add(self)


def _is_answered(history: Sequence[Message]) -> bool:
    """Return whether the last message is the model's, and complete."""
    last = last_message_but_undo_notes(history)
    if last is None:
        return False
    is_complete = last.state is MessageState.COMPLETE and last.stop_reason not in _UNFINISHED_STOPS
    return last.role is Role.ASSISTANT and is_complete and not last.tool_uses and bool(last.blocks)
