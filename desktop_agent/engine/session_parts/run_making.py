"""Makes the runs of a session from what it is set up with and from how it stands."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from desktop_agent.agent.budget import NOTHING_USED, Budget, Used
from desktop_agent.agent.calls.left_over import LeftOver
from desktop_agent.agent.conduct.ask_user import ask_user
from desktop_agent.agent.conduct.change_mode import change_mode
from desktop_agent.agent.request import Prepared, RunSettings
from desktop_agent.agent.run import Run
from desktop_agent.agent.surroundings import Surroundings
from desktop_agent.conversation.picture_fitting import PictureFitter
from desktop_agent.engine.checkpoints import Checkpoints
from desktop_agent.engine.session_parts.compacting import CompactingRun
from desktop_agent.engine.session_parts.conduct import Conduct
from desktop_agent.engine.session_parts.recorder import RunRecorder
from desktop_agent.engine.session_parts.setup import SessionSetup
from desktop_agent.storage.records import ConversationRecord
from desktop_agent.tools.file_keeper import FileKeeper
from desktop_agent.tools.registry import ToolRegistry
from desktop_agent.tools.tool import AnyTool
from desktop_agent.tools.workspace import Workspace
from desktop_agent.vocabulary.conduct.interrupts import Interrupt
from desktop_agent.vocabulary.engine_events import RunEnd
from desktop_agent.vocabulary.messages import Message


class Work(Protocol):
    """What a session does at one time: a run, or the summarising of older messages."""

    @property
    def turn_id(self) -> str | None:
        """The turn that runs, or ran last."""
        ...

    async def execute(self, prompt: Message | None = None, *, left: LeftOver | None = None) -> RunEnd:
        """From its first event to its last. Raises nothing."""
        ...

    def interrupt(self, target: Interrupt | None = None) -> bool:
        """Stop it, or one of its calls; False when there is no such call."""
        ...


class RunMaking:
    """Makes the runs of one session."""

    def __init__(
        self,
        setup: SessionSetup,
        conduct: Conduct,
        checkpoints: Checkpoints | None,
        record: Callable[[], ConversationRecord],
    ) -> None:
        self._setup = setup
        self._conduct = conduct
        self._checkpoints = checkpoints
        self._record = record
        self._fitter = PictureFitter()
        self._prepared = Prepared()

    def run(self, recorder: RunRecorder, used: Used = NOTHING_USED) -> Run:
        """A run that is ready to start. Raises WrongUse where something it needs is gone, and StorageFailed where the
        conversations can only be read.

        `used` is what one that is gone on with had used before.
        """
        settings = self._settings()
        budget = Budget(settings.limits, used=used)
        return Run(self._around(recorder, budget), settings, budget)

    def compacting(self, recorder: RunRecorder) -> CompactingRun:
        """A run that only summarises. Raises the same."""
        settings = self._settings()
        budget = Budget(settings.limits)
        return CompactingRun(self._around(recorder, budget), settings, budget)

    def _around(self, recorder: RunRecorder, budget: Budget) -> Surroundings:
        setup, conduct = self._setup, self._conduct
        tools, files, record = self._tools(recorder, budget), self._files(), self._record()
        # In one moment with the tools: rules of one folder never decide about tools of another.
        conduct.standing.move_to(record.workspace)
        return Surroundings(
            # Of one moment with the model: another server that is chosen while it runs is for the next run.
            open_provider=lambda model: setup.open_provider(record, model),
            tools_ready=lambda: setup.tools_ready(record),
            recorder=recorder,
            tools=tools,
            approvals=conduct.approvals,
            standing=conduct.standing,
            modes=conduct.modes,
            read_picture=setup.read_picture,
            hooks=setup.hooks,
            queue=conduct.queue,
            policies=conduct.policies,
            guards=conduct.guards,
            specialists=setup.specialists(),
            files=files,
            fitter=self._fitter,
            prepared=self._prepared,
        )

    def _settings(self) -> RunSettings:
        record, setup = self._record(), self._setup
        if setup.store is not None and setup.store.read_only is not None:
            raise setup.store.read_only
        setup.refuse_removed(record)
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
            own.append(ask_user(self._conduct.questions, recorder.emit, waiting=budget.pausing))
        if self._setup.mode_requests:
            own.append(change_mode(self._conduct.modes))
        return self._setup.tools_for(self._record()).with_tools(*own)

    def _files(self) -> FileKeeper | None:
        record = self._record()
        if self._setup.files_for is not None:
            return self._setup.files_for(record)
        if self._checkpoints is None:
            return None
        return self._checkpoints.keeper(Workspace(Path(record.workspace)) if record.workspace else None)
