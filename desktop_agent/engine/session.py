"""One open conversation and its single writer."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Unpack

from desktop_agent.conversation.folding.undo_notes import last_said
from desktop_agent.conversation.repair import unanswered
from desktop_agent.engine.checkpoints import Checkpoints, Telling
from desktop_agent.engine.session_parts.conduct import Conduct
from desktop_agent.engine.session_parts.context_size import ContextSize
from desktop_agent.engine.session_parts.reading import Reading
from desktop_agent.engine.session_parts.recorder import RunRecorder
from desktop_agent.engine.session_parts.recovery import OpenCalls, close_calls
from desktop_agent.engine.session_parts.run_making import RunMaking, Work
from desktop_agent.engine.session_parts.setup import SessionSetup
from desktop_agent.engine.session_parts.titles import title_of
from desktop_agent.engine.session_parts.under_way import UnderWay
from desktop_agent.engine.session_parts.write_behind import OVERTAKEN, closed
from desktop_agent.engine.writer import Writer
from desktop_agent.permissions.foreign_messages import sound, sound_messages
from desktop_agent.storage.records import ConversationChanges
from desktop_agent.vocabulary.conduct.interrupts import Interrupt, StopSession, StopTool, StopTurn
from desktop_agent.vocabulary.conduct.queue import When
from desktop_agent.vocabulary.engine_events import ErrorOccurred, RunEnd, UserMessageQueued
from desktop_agent.vocabulary.errors import StorageFailed, TurnMismatch, WrongUse
from desktop_agent.vocabulary.messages import Message, MessageState, Role
from desktop_agent.vocabulary.provider_events import StopReason

# After these the next message that waits would meet the same: a server that is down.
_KEEPS_WAITING = frozenset({RunEnd.FAILED})
_TO_BE_GONE_ON_WITH = {StopReason.PAUSE_TURN, StopReason.CONTINUATION}


class Session(Reading):
    """Send, steer, stop, decide. All methods belong to the event loop's thread.

    `approvals`, `questions`, `queue`, `modes`, `policies`, `guards` and `standing` may be used at any time, also while
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
        writer: Writer,
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
        self._stopped: RunRecorder | None = None
        self.is_closed = False
        self._under_way = UnderWay(writer, self._hold)
        self._conduct = Conduct(writer, setup, self._under_way.tell)
        self.approvals = self._conduct.approvals
        self.questions = self._conduct.questions
        self.queue = self._conduct.queue
        self.modes = self._conduct.modes
        self.policies = self._conduct.policies
        self.guards = self._conduct.guards
        self.standing = self._conduct.standing
        self.returned = self._conduct.returned
        self.checkpoints = _checkpoints_of(writer, setup, self._refuse_while_working, self._close_open_calls)
        self.context_size = ContextSize(setup, writer)
        self._making = RunMaking(setup, self._conduct, self.checkpoints, lambda: self.record)
        writer.ledger.on_work(self._hold)
        writer.ledger.on_trouble(self._on_trouble)
        self._held = held
        if held is not None:
            self.is_closed = True
            self._conduct.close()

    @property
    def working(self) -> bool:
        """Whether a run is under way. From its RunFinished on it is not, and the next prompt may be sent."""
        return self._under_way.recorder is not None

    @property
    def resumable(self) -> bool:
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
        return self._under_way.turn_id

    def retry(self) -> None:
        """Ask again with the history as it is. Raises WrongUse while working, when closed, or with nothing to ask."""
        self._refuse_while_working()
        if not self.history:
            raise WrongUse("There is nothing to try again.")
        if _is_whole(self.history):
            raise WrongUse(
                "The last answer is complete, so there is nothing to try again.", "Write what you want next."
            )
        self._start(self._making.run)

    def go_on(self) -> None:
        """Go on without a new prompt: after a limit, with results that were added, with a message that waits.

        Raises WrongUse while working, when closed, or with nothing to go on with.
        """
        self._refuse_while_working()
        if self.queue.entries and (not self.history or _is_whole(self.history)):
            self._start(self._making.run, self._conduct.take_next)
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
        run = self._making.run(recorder, self._open_calls.used)
        left, self._open_calls = self._open_calls.left, None
        self._under_way.start(run, recorder, partial(self._after, _KEEPS_WAITING), left=left)
        return True

    def steer(self, message: Message, when: When = "soon", expected_turn_id: str | None = None) -> None:
        """Queue a message while the agent works: delivered at its next edge, or when idle. When it is idle, send it.

        Where the caller has calls that wait for results, it waits until they have been answered. Raises TurnMismatch
        when the turn is not the expected one, and WrongUse when closed and as `send` does.
        """
        self._refuse_when_closed()
        if expected_turn_id is not None and expected_turn_id != self._under_way.turn_id:
            raise TurnMismatch("The agent is at another turn by now.")
        if not self.working and not self._awaits_results:
            self._send(message, when)
            return
        message = sound(message)
        self._conduct.check(message)
        self.queue.add(message, when)
        self._under_way.tell(UserMessageQueued(message.id))

    def interrupt(self, target: Interrupt | None = None) -> bool:
        """Stop a call, this run, or this run and what waits (the default): waiting messages are handed back then.

        False when there is nothing to stop, as when closed.
        """
        target = target or StopSession()
        recorder = self._under_way.recorder
        if recorder is None:
            # What waits in a conversation that is being closed is kept, not handed back.
            if isinstance(target, StopSession) and not self.is_closed:
                self._conduct.hand_back()
            return False
        if isinstance(target, StopSession):
            self._stopped = recorder
        if not isinstance(target, StopTool):
            self._conduct.note_stop(recorder.run_id)
        return self._under_way.interrupt(target)

    def compact(self) -> None:
        """Summarise older messages for the model now. Raises WrongUse while working, closed, or with nothing said."""
        self._refuse_while_working()
        if not self.history:
            raise WrongUse("There is nothing to summarise yet.")
        # Whether it comes to anything says nothing about what waits.
        self._start(self._making.compacting, keeps_waiting=frozenset())

    def edit_history(self, messages: Sequence[Message]) -> None:
        """Go on from these messages; those that were said stay on the disk.

        Raises WrongUse while working, when closed, and for messages that cannot be kept.
        """
        self._refuse_while_working()
        messages = sound_messages(messages, self.history)
        self._close_open_calls()
        self._writer.replace_history(messages)

    def change_record(self, **changes: Unpack[ConversationChanges]) -> None:
        """Change what ConversationChanges names. What a run goes by holds from the next run on, also what may run.

        Raises WrongUse when closed.
        """
        self._refuse_when_closed()
        self._writer.ledger.change_record(**changes)
        if not self.working:
            self.standing.move_to(self.record.workspace)

    async def wait_idle(self) -> None:
        """Return when no run is under way and what the last one left is written."""
        await self._under_way.wait_idle()

    async def close(self) -> None:
        """Stop what runs, write what is left. Messages that wait are kept, also one that hooks still look at.

        Harmless when repeated.
        """
        self.is_closed = True
        self._conduct.keep_undecided()
        self.interrupt(StopTurn())
        await self.wait_idle()
        self._conduct.close()
        await self._writer.ledger.close()
        self._hold()

    def _on_trouble(self, trouble: StorageFailed | None) -> None:
        """Where another process writes too, or another file is there, nothing more is done here: the event says why."""
        if isinstance(trouble, OVERTAKEN):
            self.is_closed = True
            self._under_way.tell(ErrorOccurred.of(trouble))
            self.interrupt(StopTurn())

    def _send(self, message: Message, when: When = "soon") -> None:
        message = sound(message)
        self._conduct.check(message)
        self._start(self._making.run, lambda: self._conduct.take_next(message, when))

    @property
    def _awaits_results(self) -> bool:
        """Whether whoever asked runs the calls, and has not given all results yet."""
        return not self._setup.execute_tools and bool(unanswered(self.history))

    def _refuse_when_closed(self) -> None:
        if self.is_closed:
            raise self._held or closed()

    def _refuse_while_working(self) -> None:
        self._refuse_when_closed()
        if self.working:
            raise WrongUse("The model is still working.", "Wait, or press Stop first.")

    def _start(
        self,
        make: Callable[[RunRecorder], Work],
        take_prompt: Callable[[], Message | None] = lambda: None,
        keeps_waiting: frozenset[RunEnd] = _KEEPS_WAITING,
    ) -> None:
        """Begin a run: what can be refused is refused before anything is shown or taken out.

        After an end among `keeps_waiting`, what waits goes on waiting.
        """
        self._refuse_while_working()
        if self.checkpoints is not None:
            self.checkpoints.refuse_meanwhile()
        recorder = RunRecorder(self._writer)
        work = make(recorder)
        self._close_open_calls()
        prompt = take_prompt()
        if prompt is not None:
            if not self.history and self.record.title_is_automatic:
                self.change_record(title=title_of(prompt), title_is_automatic=True)
            self._conduct.begin(prompt, is_judged=bool(self._setup.hooks.user_prompt_submit))
            self._writer.show(prompt)
        self._under_way.start(work, recorder, partial(self._after, keeps_waiting), prompt)

    def _after(
        self, keeps_waiting: frozenset[RunEnd], recorder: RunRecorder, prompt: Message | None, end: RunEnd
    ) -> None:
        """A run is over. The next message that waits is sent, unless all was stopped or calls wait for results."""
        self._conduct.settle(prompt)
        if recorder is self._stopped and not self.is_closed:
            self._conduct.hand_back()
        elif (
            self.queue.entries
            and end not in keeps_waiting
            and not self.is_closed
            and not self._awaits_results
            and self._under_way.is_last(recorder)
        ):
            try:
                self._start(self._making.run, self._conduct.take_next)
            except WrongUse as error:
                self._writer.tell_between_runs(ErrorOccurred.of(error))

    def _close_open_calls(self) -> None:
        """What a dead process left is not gone on with: its calls get their results, its run is over."""
        if self._open_calls is not None:
            close_calls(self._writer, self._open_calls)
            self._open_calls = None

    def _hold(self) -> None:
        ledger = self._writer.ledger
        # What can never be written stands here alone.
        if self._under_way.is_idle and ledger.is_settled and ledger.unwritten is None:
            self._busy.discard(self)
        else:
            self._busy.add(self)


def _checkpoints_of(
    writer: Writer, setup: SessionSetup, refuse: Callable[[], None], close_open_calls: Callable[[], None]
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
        tell=writer.tell_between_runs,
        telling=Telling(note, lambda saved: writer.tell_changes(writer.transcript.mark(saved))),
        tools=lambda: setup.tools_for(writer.record),
        specialists=lambda: tuple(each.name for each in setup.specialists()),
    )


def _is_whole(history: Sequence[Message]) -> bool:
    """Whether the last word is the model's, and all of it."""
    last = last_said(history)
    if last is None:
        return False
    is_complete = last.state is MessageState.COMPLETE and last.stop_reason not in _TO_BE_GONE_ON_WITH
    return last.role is Role.ASSISTANT and is_complete and not last.tool_uses and bool(last.blocks)
