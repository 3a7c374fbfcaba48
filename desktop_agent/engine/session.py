"""One open conversation and its single writer."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Unpack

from desktop_agent.agent.pictures import ReadPicture
from desktop_agent.agent.request import RequestSettings
from desktop_agent.agent.surroundings import Surroundings
from desktop_agent.agent.turn import Run
from desktop_agent.conversation.picture_fitting import PictureFitter
from desktop_agent.conversation.transcript import Transcript
from desktop_agent.engine.writer import ChangeListener, EventListener, RunRecorder, Writer
from desktop_agent.permissions.approvals import Approval, ApprovalBroker
from desktop_agent.permissions.standing import Standing
from desktop_agent.providers.provider import Provider
from desktop_agent.storage.records import ConversationChanges, ConversationRecord
from desktop_agent.tools.registry import ToolRegistry
from desktop_agent.vocabulary.errors import WrongUse
from desktop_agent.vocabulary.messages import Message, MessageState, Role
from desktop_agent.vocabulary.requests import ProviderConfig
from desktop_agent.vocabulary.tool_calls import Decision
from desktop_agent.vocabulary.usage import Usage

TITLE_LENGTH = 60


@dataclass(frozen=True)
class SessionSetup:
    """What a run is made with; read afresh at the start of each run, so changes hold from the next prompt on."""

    open_provider: Callable[[ConversationRecord], Awaitable[Provider]]
    read_picture: ReadPicture
    tools_for: Callable[[ConversationRecord], ToolRegistry]
    config_for: Callable[[ConversationRecord], ProviderConfig]
    max_tool_iterations: Callable[[], int]


class Session:
    """Send, stop, decide; read the transcript. All methods belong to the event loop's thread."""

    def __init__(self, writer: Writer, setup: SessionSetup) -> None:
        self._writer = writer
        self._setup = setup
        self._approvals = ApprovalBroker()
        self._standing = Standing()
        self._fitter = PictureFitter()
        self._run: Run | None = None
        self._recorder: RunRecorder | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def record(self) -> ConversationRecord:
        """The conversation as it is listed."""
        return self._writer.record

    @property
    def is_new(self) -> bool:
        """Whether nothing of it was kept yet."""
        return self._writer.is_new

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

    @property
    def working(self) -> bool:
        """Whether a run is under way. From its RunFinished on it is not, and the next prompt may be sent."""
        return self._recorder is not None and not self._recorder.finished

    def subscribe(self, on_changes: ChangeListener | None = None, on_event: EventListener | None = None) -> None:
        """Be told of changes to the transcript, of events, or both. Called in the loop's thread."""
        self._writer.subscribe(on_changes, on_event)

    def unsubscribe(self, listener: ChangeListener | EventListener) -> None:
        """Stop telling this one."""
        self._writer.unsubscribe(listener)

    def send(self, message: Message) -> None:
        """Start a run with this prompt. Raises WrongUse while one is under way, or when its folder is gone."""
        _refuse_while(self.working)
        prepared = self._prepared()
        if not self.history and self.record.title_is_automatic:
            self.change_record(title=_title_of(message), title_is_automatic=True)
        self._writer.show(message)
        self._start(prepared, message.id, (message,))

    def retry(self) -> None:
        """Ask again with the history as it is. Raises WrongUse while working or with nothing to ask."""
        _refuse_while(self.working)
        if not self.history:
            raise WrongUse("There is nothing to try again.")
        last = self.history[-1]
        is_whole = last.state is MessageState.COMPLETE and not last.tool_uses
        if last.role is Role.ASSISTANT and is_whole and last.blocks:
            raise WrongUse(
                "The last answer is complete, so there is nothing to try again.", "Write what you want next."
            )
        self._start(self._prepared(), self.history[-1].id, ())

    def interrupt(self) -> None:
        """Stop at once. A no-op when idle."""
        if self._run is not None and self.working:
            self._run.stop()
            self._approvals.withdraw_all()

    def answer(self, approval_id: str, decision: Decision) -> bool:
        """Decide on a waiting call; False when it was decided before. Raises ToolInputInvalid for a bad edit."""
        return self._approvals.answer(approval_id, decision).accepted

    def open_approvals(self) -> tuple[Approval, ...]:
        """Calls that wait for a decision, in call order."""
        return self._approvals.open_approvals

    def change_record(self, **changes: Unpack[ConversationChanges]) -> None:
        """Another title, model, endpoint or workspace; holds from the next prompt on."""
        self._writer.change_record(**changes)

    async def wait_idle(self) -> None:
        """Return when no run is under way and what the last one left is written."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def close(self) -> None:
        """Stop what runs, write what is left."""
        self.interrupt()
        await self.wait_idle()
        await self._writer.close()

    def _prepared(self) -> tuple[Run, RunRecorder]:
        """A run that is ready to start: what can be refused is refused before anything is shown."""
        recorder = RunRecorder(self._writer)
        around = Surroundings(
            open_provider=lambda: self._setup.open_provider(self.record),
            recorder=recorder,
            tools=self._setup.tools_for(self.record),
            approvals=self._approvals,
            standing=self._standing,
            read_picture=self._setup.read_picture,
            fitter=self._fitter,
        )
        settings = RequestSettings(
            model=self.record.model or "",
            config=self._setup.config_for(self.record),
            conversation_id=self.record.id,
            max_tool_iterations=self._setup.max_tool_iterations(),
        )
        return Run(around, settings), recorder

    def _start(self, prepared: tuple[Run, RunRecorder], message_id: str, new_messages: tuple[Message, ...]) -> None:
        self._run, self._recorder = prepared
        task = asyncio.create_task(self._work(*prepared, message_id, new_messages))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _work(self, run: Run, recorder: RunRecorder, message_id: str, new_messages: tuple[Message, ...]) -> None:
        await recorder.commit(*new_messages)
        await run.execute(message_id)
        await self._writer.finish_run(recorder.run_id)


def _refuse_while(working: bool) -> None:  # noqa: FBT001 - reads as a sentence
    if working:
        raise WrongUse("The model is still working.", "Wait, or press Stop first.")


def _title_of(message: Message) -> str:
    """The first line of the first prompt, cut at a word."""
    line = next((line.strip() for line in message.text.splitlines() if line.strip()), "")
    if not line:
        return "Picture"
    if len(line) <= TITLE_LENGTH:
        return line
    return line[:TITLE_LENGTH].rsplit(" ", 1)[0] + "…"
