"""The runs of a session: made by the run factory, recorded, one active at a time; also those that only compact."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from desktop_agent.agent.model_request import PreparedHistory, RunSettings
from desktop_agent.agent.modes import change_mode
from desktop_agent.agent.questions import ask_user
from desktop_agent.agent.run import Run
from desktop_agent.agent.run_context import NO_PRIOR_USE, Budget, PriorUse, RunContext
from desktop_agent.agent.tool_calls.tool_execution import RecoveredCalls
from desktop_agent.conversation.picture_preparation import PictureFitter
from desktop_agent.engine.checkpoints import Checkpoints
from desktop_agent.engine.history_loader import HistoryLoader
from desktop_agent.engine.session_controls import RuntimeControls, SessionSetup
from desktop_agent.engine.session_writer import SessionWriter
from desktop_agent.engine.titles import TitleMaker
from desktop_agent.storage.records import ConversationRecord
from desktop_agent.storage.store import Store
from desktop_agent.tools.checkpoints.checkpointer import Checkpointer
from desktop_agent.tools.tool import AnyTool, ToolRegistry
from desktop_agent.tools.workspace import Workspace
from desktop_agent.types.engine_events import (
    AnswerAwaited,
    EngineEvent,
    Envelope,
    Event,
    RunEnd,
    RunFinished,
    TurnStarted,
)
from desktop_agent.types.errors import AgentError, StorageFailed
from desktop_agent.types.folders import Folder
from desktop_agent.types.messages import Message, new_id, now
from desktop_agent.types.policies import Hooks, Interrupt, StopTurn


class RunRecorder:
    """The recorder of one run. After RunFinished it ignores events: late reports of tools change nothing.

    `run_id`, `seq` and `turn_id` are the last ones of a run of a dead process that is resumed.
    """

    def __init__(
        self,
        writer: SessionWriter,
        run_id: str | None = None,
        seq: int = 0,
        turn_id: str | None = None,
        *,
        parent_run_id: str | None = None,
    ) -> None:
        self._writer = writer
        self.run_id = run_id or new_id()
        self._seq = seq
        self._turn_id = turn_id
        self._parent_run_id = parent_run_id
        self._nested: list[NestedRecorder] = []
        self._ended_nested_ids: list[str] = []
        self.finished = False
        """Whether the run has ended for every listener."""
        self.is_left_to_next_process = False
        """Whether the next process goes on with it: nothing more of it is written here."""

    @property
    def run_ids(self) -> tuple[str, ...]:
        """Return the ids of this run and of the runs below it."""
        working = (run_id for nested in self._nested for run_id in nested.run_ids)
        return (self.run_id, *self._ended_nested_ids, *working)

    def emit(self, event: Event, pieces: Sequence[Event] = ()) -> None:
        """Number the event and hand it to the writer. Transient events have no number of their own.

        Of `pieces` that are joined in the event each has one, and the event has that of the last.
        """
        if self.finished:
            return
        if isinstance(event, TurnStarted):
            self._turn_id = event.turn_id
        elif isinstance(event, RunFinished):
            self._finish_nested()
            self.finished = True
        if self.is_left_to_next_process:
            return
        seq = 0
        if not isinstance(event, AnswerAwaited):
            seq = self._seq = self._seq + (len(pieces) or 1)
        self._writer.write_event(Envelope(seq, self.run_id, self._parent_run_id, self._turn_id, now(), event), pieces)

    async def flush(self) -> None:
        """Return when everything so far is durable. Raises StorageFailed."""
        await self._writer.flush()

    async def commit(self, *messages: Message) -> None:
        """Add finished messages to the history."""
        if not self.finished and not self.is_left_to_next_process:
            await self._writer.commit(*messages)

    def history(self) -> tuple[Message, ...]:
        """Return the committed messages, oldest first: those that the model reads, or more."""
        return self._writer.history()

    def nested(self) -> "NestedRecorder":
        """Return a recorder for a run that a call of this one starts."""
        nested = NestedRecorder(self._writer, self)
        if self.finished:
            nested.silence()
        else:
            self._nested.append(nested)
        return nested

    def on_nested_end(self, nested: "NestedRecorder") -> None:
        """Keep only the ids of a nested run that has ended, and of those below it."""
        self._nested.remove(nested)
        self._ended_nested_ids.extend(nested.run_ids)

    def _finish_nested(self) -> None:
        """End nested runs that were left behind after Stop, so that their last event does not come after ours."""
        for nested in tuple(self._nested):
            nested.emit(RunFinished(RunEnd.CANCELLED))


class NestedRecorder(RunRecorder):
    """The recorder of a specialist's run: its messages are kept in memory while it works."""

    def __init__(self, writer: SessionWriter, parent: RunRecorder) -> None:
        super().__init__(writer, parent_run_id=parent.run_id)
        self._parent = parent
        self._messages: list[Message] = []

    def emit(self, event: Event, pieces: Sequence[Event] = ()) -> None:
        """As in RunRecorder; the run above drops one that has ended."""
        is_end = isinstance(event, RunFinished) and not self.finished
        super().emit(event, pieces)
        if is_end:
            self._parent.on_nested_end(self)

    async def commit(self, *messages: Message) -> None:
        """Remember the messages."""
        if not self.finished:
            self._messages.extend(messages)

    def history(self) -> tuple[Message, ...]:
        """Return the messages of this run alone."""
        return tuple(self._messages)

    def silence(self) -> None:
        """Ignore all further events: the run above has ended."""
        self.finished = True


class ConversationFolders:
    """The folders that a conversation is in; what is in memory alone is in none.

    `instructions` are those of the folders, outermost first. They are read anew each time, because folders and places
    may be changed at any time.
    """

    def __init__(self, writer: SessionWriter, store: Store | None) -> None:
        self._writer = writer
        self._store = store
        self._is_read = False
        self.last_instructions: tuple[str, ...] = ()
        """Those that were read last."""

    def begin_in(self, folder: str) -> None:
        """Store a new conversation in this folder. Later it is moved as any other."""
        self._writer.journal_queue.begin_in(folder)

    async def with_instructions(self) -> tuple[Folder, ...]:
        """Return those that have instructions, from the top down. Raises StorageFailed."""
        record = self._writer.record
        return () if self._store is None else await self._store.folders.with_instructions(record.id, record.folder)

    async def instructions(self) -> tuple[str, ...]:
        """Return the instructions; where the disk refuses, those that were read last.

        Raises StorageFailed where there may be some and they were never read.
        """
        try:
            folders = await self.with_instructions()
        except StorageFailed:
            if not self._is_read and self._writer.record.folder is not None:
                raise
        else:
            self._is_read = True
            self.last_instructions = tuple(folder.instructions for folder in folders)
        return self.last_instructions


class RunFactory:
    """Makes the runs of one session."""

    def __init__(
        self,
        setup: SessionSetup,
        controls: RuntimeControls,
        checkpoints: Checkpoints | None,
        record: Callable[[], ConversationRecord],
        history_loader: HistoryLoader,
        folders: "ConversationFolders",
    ) -> None:
        self._setup = setup
        self._folders = folders
        self._history_loader = history_loader
        self._controls = controls
        self._checkpoints = checkpoints
        self._record = record
        self._picture_fitter = PictureFitter()
        self._prepared_history = PreparedHistory()

    def create_run(self, recorder: RunRecorder, used: PriorUse = NO_PRIOR_USE, *, only_compacts: bool = False) -> Run:
        """Return a run that is ready to start. Raises WrongUse where something it needs is gone; StorageFailed when
        read-only.

        `used` is what a resumed run had used before.
        """
        settings = self._settings()
        budget = Budget(settings.limits, used=used)
        return Run(self._context(recorder, budget), settings, budget, only_compacts=only_compacts)

    def _context(self, recorder: RunRecorder, budget: Budget) -> RunContext:
        setup, controls = self._setup, self._controls
        tools, record = self._tools(recorder, budget), self._record()
        checkpointer = self._checkpointer(record.workspace)
        # Together with the tools: rules of one folder never decide about tools of another.
        controls.permission_policy.set_workspace(record.workspace)
        return RunContext(
            # Of the same record as the model: a server that is chosen while the run works is for the next run.
            open_provider=lambda model: setup.open_provider(record, model),
            history_ready=self._load_history,
            tools_ready=lambda: setup.tools_ready(record),
            more_instructions=self._folders.instructions,
            count_answer=partial(setup.count_answer, record),
            recorder=recorder,
            tools=tools,
            approvals=controls.approvals,
            permission_policy=controls.permission_policy,
            modes=controls.modes,
            read_picture=setup.read_picture,
            hooks=setup.hooks,
            queue=controls.queue,
            policies=controls.policies,
            guards=controls.guards,
            specialists=setup.specialists(),
            checkpointer=checkpointer,
            fitter=self._picture_fitter,
            prepared_history=self._prepared_history,
        )

    async def _load_history(self) -> None:
        # Code of the caller may read all of it.
        if self._setup.guards or self._setup.hooks != Hooks():
            await self._history_loader.load_all()
        else:
            await self._history_loader.load_for_request()

    def _settings(self) -> RunSettings:
        record, setup = self._record(), self._setup
        if setup.store is not None and setup.store.read_only is not None:
            raise setup.store.read_only
        setup.require_endpoint(record)
        return RunSettings(
            model=record.model or "",
            config=setup.config_for(record),
            conversation_id=record.id,
            limits=setup.limits(),
            execute_tools=setup.execute_tools,
        )

    def _tools(self, recorder: RunRecorder, budget: Budget) -> ToolRegistry:
        own: list[AnyTool] = []
        if self._setup.questions:
            own.append(ask_user(self._controls.questions, recorder.emit, waiting=budget.paused))
        if self._setup.mode_requests:
            own.append(change_mode(self._controls.modes))
        return self._setup.tools_for(self._record()).with_tools(*own)

    def _checkpointer(self, workspace: str | None) -> Checkpointer | None:
        if self._checkpoints is None:
            return None
        return self._checkpoints.checkpointer(Workspace(Path(workspace)) if workspace else None)


OnRunEnd = Callable[[RunRecorder, Message | None, RunEnd], None]


class ActiveRun:
    """The run that works, if any. `on_change` is called when work begins and when all of it is written.

    `titles` are made between runs; each run cancels them.
    """

    def __init__(self, writer: SessionWriter, titles: TitleMaker, on_change: Callable[[], None]) -> None:
        self._writer = writer
        self.titles = titles
        titles.on_change = on_change
        self._on_change = on_change
        self._run: Run | None = None
        self._recorder: RunRecorder | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def recorder(self) -> RunRecorder | None:
        """Return the recorder of the run that works; None from its RunFinished on."""
        return None if self._recorder is None or self._recorder.finished else self._recorder

    @property
    def turn_id(self) -> str | None:
        return None if self._run is None or self.recorder is None else self._run.turn_id

    @property
    def error(self) -> AgentError | None:
        return None if self._run is None else self._run.error

    @property
    def is_idle(self) -> bool:
        """Return whether no run and no title is under way, and what the last run left is written."""
        return not self._tasks and self.titles.is_idle

    def start(
        self,
        run: Run,
        recorder: RunRecorder,
        after: OnRunEnd,
        prompt: Message | None = None,
        recovered: RecoveredCalls | None = None,
    ) -> None:
        """Begin the run; `after` is called at its end, with the prompt, and may begin the next."""
        self.titles.cancel()
        self._run, self._recorder = run, recorder
        task = asyncio.create_task(self._execute(run, recorder, after, prompt, recovered))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: self._on_change())
        self._on_change()

    def is_latest(self, recorder: RunRecorder) -> bool:
        """Return whether no other run was begun since."""
        return recorder is self._recorder

    def interrupt(self, target: Interrupt) -> bool:
        """Stop it, or one of its calls; return False when there is nothing to stop."""
        return self.recorder is not None and self._run is not None and self._run.interrupt(target)

    def can_wait_for_next_process(self) -> bool:
        """Return whether of the active run only calls are left that wait for the person, and it is stored."""
        is_active, run = self.recorder is not None, self._run
        return is_active and run is not None and run.only_waits and self._writer.journal_queue.is_stored

    def leave_to_next_process(self) -> bool:
        """End a run that can wait for the next process, which asks again, as if its process had died.

        Return False where there is no such run.
        """
        recorder, run = self.recorder, self._run
        if recorder is None or run is None or not self.can_wait_for_next_process():
            return False
        recorder.is_left_to_next_process = True
        return run.interrupt(StopTurn())

    def emit(self, event: EngineEvent) -> None:
        """Emit into the run that works, or between two."""
        recorder = self.recorder
        if recorder is None:
            self._writer.emit_between_runs(event)
        else:
            recorder.emit(event)

    async def wait_idle(self) -> None:
        """Return when no run is active and what the last one left is written."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def _execute(
        self,
        run: Run,
        recorder: RunRecorder,
        after: OnRunEnd,
        prompt: Message | None,
        recovered: RecoveredCalls | None,
    ) -> None:
        end = await run.execute(prompt, recovered=recovered)
        after(recorder, prompt, end)
        if recorder.is_left_to_next_process:
            return
        for run_id in recorder.run_ids:
            await self._writer.journal_queue.finish_run(run_id)
