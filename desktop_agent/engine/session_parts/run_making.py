"""Makes the runs of a session from what it is set up with and from how it stands."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from desktop_agent.agent.budget import NO_PRIOR_USE, Budget, PriorUse
from desktop_agent.agent.calls.left_over import RecoveredCalls
from desktop_agent.agent.conduct.ask_user import ask_user
from desktop_agent.agent.conduct.change_mode import change_mode
from desktop_agent.agent.request import PreparedHistory, RunSettings
from desktop_agent.agent.run import Run
from desktop_agent.agent.surroundings import RunContext
from desktop_agent.conversation.picture_fitting import PictureFitter
from desktop_agent.engine.checkpoints import Checkpoints
from desktop_agent.engine.session_parts.compacting import CompactionRun
from desktop_agent.engine.session_parts.conduct import RuntimeControls
from desktop_agent.engine.session_parts.recorder import RunRecorder
from desktop_agent.engine.session_parts.setup import SessionSetup
from desktop_agent.storage.records import ConversationRecord
from desktop_agent.tools.file_keeper import Checkpointer
from desktop_agent.tools.registry import ToolRegistry
from desktop_agent.tools.tool import AnyTool
from desktop_agent.tools.workspace import Workspace
from desktop_agent.vocabulary.conduct.interrupts import Interrupt
from desktop_agent.vocabulary.engine_events import RunEnd
from desktop_agent.vocabulary.messages import Message


class SessionRun(Protocol):
    """What a session does at one time: a run, or the summarising of older messages."""

    @property
    def turn_id(self) -> str | None:
        """The turn that runs, or ran last."""
        ...

    async def execute(self, prompt: Message | None = None, *, left: RecoveredCalls | None = None) -> RunEnd:
        """From its first event to its last. Raises nothing."""
        ...

    def interrupt(self, target: Interrupt | None = None) -> bool:
        """Stop it, or one of its calls; False when there is no such call."""
        ...


class RunFactory:
    """Makes the runs of one session."""

    def __init__(
        self,
        setup: SessionSetup,
        controls: RuntimeControls,
        checkpoints: Checkpoints | None,
        record: Callable[[], ConversationRecord],
    ) -> None:
        self._setup = setup
        self._controls = controls
        self._checkpoints = checkpoints
        self._record = record
        self._picture_fitter = PictureFitter()
        self._prepared_history = PreparedHistory()

    def create_run(self, recorder: RunRecorder, used: PriorUse = NO_PRIOR_USE) -> Run:
        """A run that is ready to start. Raises WrongUse where something it needs is gone, and StorageFailed where the
        conversations can only be read.

        `used` is what one that is gone on with had used before.
        """
        settings = self._settings()
        budget = Budget(settings.limits, used=used)
        return Run(self._context(recorder, budget), settings, budget)

    def create_compaction_run(self, recorder: RunRecorder) -> CompactionRun:
        """A run that only summarises. Raises the same."""
        settings = self._settings()
        budget = Budget(settings.limits)
        return CompactionRun(self._context(recorder, budget), settings, budget)

    def _context(self, recorder: RunRecorder, budget: Budget) -> RunContext:
        setup, controls = self._setup, self._controls
        tools, files, record = self._tools(recorder, budget), self._file_keeper(), self._record()
        # In one moment with the tools: rules of one folder never decide about tools of another.
        controls.permission_policy.set_workspace(record.workspace)
        return RunContext(
            # Of one moment with the model: another server that is chosen while it runs is for the next run.
            open_provider=lambda model: setup.open_provider(record, model),
            tools_ready=lambda: setup.tools_ready(record),
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
            files=files,
            fitter=self._picture_fitter,
            prepared_history=self._prepared_history,
        )

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
            compact_at=setup.compact_at,
        )

    def _tools(self, recorder: RunRecorder, budget: Budget) -> ToolRegistry:
        own: list[AnyTool] = []
        if self._setup.questions:
            own.append(ask_user(self._controls.questions, recorder.emit, waiting=budget.paused))
        if self._setup.mode_requests:
            own.append(change_mode(self._controls.modes))
        return self._setup.tools_for(self._record()).with_tools(*own)

    def _file_keeper(self) -> Checkpointer | None:
        record = self._record()
        if self._setup.file_keeper_for is not None:
            return self._setup.file_keeper_for(record)
        if self._checkpoints is None:
            return None
        return self._checkpoints.file_keeper(Workspace(Path(record.workspace)) if record.workspace else None)
