"""The person's controls of an open conversation: mode, message queue, questions, undo of checkpoints."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from desktop_agent.conversation.items import NoticeItem, ToolCallItem, UserItem
from desktop_agent.types.blocks import Block, Image, Text
from desktop_agent.types.checkpoints import FileRestorePlan, RestorePlan
from desktop_agent.types.engine_events import (
    Event,
    ModeChanged,
    ModeChangeRequested,
    QuestionAnswered,
    QuestionAsked,
    RunFinished,
    RunStarted,
    UserMessageDelivered,
    UserMessageQueued,
    UserMessageReturned,
)
from desktop_agent.types.errors import Sentence, WrongUse
from desktop_agent.types.messages import label_attached, split_attached
from desktop_agent.types.permissions import Mode
from desktop_agent.types.policies import QueuedMessage, When
from desktop_agent.types.tool_calls import DiffPreview

if TYPE_CHECKING:
    from desktop_agent.engine.checkpoints import Checkpoints
    from desktop_agent.engine.session import Session
    from desktop_agent.tools.checkpoints.checkpointer import RestoreReport


@dataclass(frozen=True, slots=True)
class UndoRequest:
    """What to undo or redo: an item of the transcript, or only the checkpoints `ids`."""

    item_id: str
    is_redo: bool = False
    ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UndoResult:
    """The result of an undo. `files` were restored or removed; `messages` are the tools' own reports.

    `is_partial`: something was not undone. `checkpoint_ids` revert the undo.
    """

    files: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()
    is_partial: bool = False
    checkpoint_ids: tuple[str, ...] = ()


class CheckpointUndo:
    """Forecasts and performs undo and redo of items, which are named by their ids in the transcript.

    All methods raise WrongUse for what no longer exists, and StorageFailed.
    """

    def __init__(self, session: "Session") -> None:
        self._session = session

    async def show(self) -> None:
        """Mark the calls in the transcript that can be undone."""
        if self._session.checkpoints is not None:
            await self._session.checkpoints.publish_saved_calls()

    def prompt_at(self, index: int) -> UserItem | None:
        """Return the prompt at an index of the transcript, or the last one before it."""
        transcript = self._session.transcript
        items = (transcript[position] for position in range(min(index, len(transcript) - 1), -1, -1))
        return next((item for item in items if isinstance(item, UserItem)), None)

    def item(self, item_id: str) -> ToolCallItem | UserItem | NoticeItem | None:
        """Return the call, the prompt or the note of an undo with this id."""
        items = (item for item in self._session.transcript if isinstance(item, ToolCallItem | UserItem | NoticeItem))
        return next((item for item in items if item.id == item_id), None)

    async def forecast(self, request: UndoRequest) -> RestorePlan:
        """Return what an undo or redo would do; change nothing."""
        if request.is_redo:
            return await self._checkpoints.preview_redo(*(request.ids or self._redos(request.item_id)))
        if request.ids:
            return await self._checkpoints.preview(*request.ids)
        match self.item(request.item_id):
            case ToolCallItem() as call:
                return await self._checkpoints.preview(*(id_ for id_, done in call.checkpoints.items() if not done))
            case UserItem() as prompt:
                return await self._checkpoints.preview_since(prompt.message_id)
            case _:
                raise WrongUse("There is no such message in this conversation.", "Choose one that is shown.")

    def _redos(self, item_id: str) -> tuple[str, ...]:
        item = self.item(item_id)
        return () if item is None or isinstance(item, UserItem) else tuple(item.redos)

    async def difference(self, file: FileRestorePlan, *, replaced: bool) -> DiffPreview | Sentence:
        """Return the lines of a file that would change, or why there are none."""
        return await self._checkpoints.difference(file, replaced=replaced)

    async def undo(
        self,
        forecast: RestorePlan,
        replacing: Collection[FileRestorePlan] = (),
        on_progress: Callable[[int, int], None] = lambda _done, _total: None,
    ) -> UndoResult:
        """Undo or redo. Files in `replacing` are restored although they were changed since. `on_progress` gets the
        number of calls that are done, and of all.

        Raises WrongUse while the agent works.
        """
        return _undo_result(await self._checkpoints.restore_forecast(forecast, replacing, on_progress))

    @property
    def _checkpoints(self) -> "Checkpoints":
        checkpoints = self._session.checkpoints
        if checkpoints is None:
            raise WrongUse(
                "This conversation is not stored, so nothing in it can be undone.", "Change the files back by hand."
            )
        return checkpoints


def _undo_result(reports: "tuple[RestoreReport, ...]") -> UndoResult:
    return UndoResult(
        files=tuple(dict.fromkeys(path for report in reports for path in report.restored)),
        messages=tuple(report.undone for report in reports if report.is_new_undo),
        is_partial=any(report.skipped for report in reports),
        checkpoint_ids=tuple(report.saved.id for report in reports if report.saved is not None),
    )


@dataclass(frozen=True, slots=True)
class WaitingMessage:
    """A queued message: what was typed, the number of its pictures, and the names of texts that are attached."""

    id: str
    text: str
    when: When
    pictures: int = 0
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RemovedMessage:
    """A message that was taken out of the queue, and its index there."""

    entry: QueuedMessage
    index: int


class SessionControls(QObject):
    """Mode, message queue and questions; each signal says what to read again."""

    modes_changed = Signal()
    queue_changed = Signal()
    questions_changed = Signal()

    def __init__(self, session: "Session", parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session = session

    @property
    def mode(self) -> Mode:
        """The mode in force."""
        return self._session.modes.current

    @property
    def modes(self) -> tuple[Mode, ...]:
        """All modes to choose from."""
        return self._session.modes.modes

    @property
    def requested_mode(self) -> Mode | None:
        """The mode that the agent asks for, after it was announced."""
        request = self._session.modes.requested
        if request is None or not self._session.modes.is_announced:
            return None
        return next((mode for mode in self.modes if mode.name == request.to_mode), None)

    def set_mode(self, name: str) -> None:
        """Set the mode for every call that has not started. Raises WrongUse."""
        self._session.modes.set_by_person(name)
        self.modes_changed.emit()

    def reject_mode(self) -> None:
        """Reject the agent's request. Raises WrongUse when closed."""
        self._session.modes.cancel_request()
        self.modes_changed.emit()

    @property
    def queue(self) -> tuple[WaitingMessage, ...]:
        """The queued messages in order of delivery."""
        return tuple(_waiting_message(entry) for entry in self._session.queue.entries)

    def edit_queued_message(self, message_id: str, text: str) -> None:
        """Replace what was typed; all else stays. Raises WrongUse when it is no longer queued, or would be empty."""
        entry = self._entry(message_id)
        others: list[Block] = [block for block in entry.message.blocks if not isinstance(block, Text)] if entry else []
        _, attached = split_attached(entry.message.text if entry else "")
        text += "".join(map(label_attached, attached))
        blocks: list[Block] = [Text(text=text), *others] if text.strip() else others
        self._session.queue.edit(message_id, blocks)
        self.queue_changed.emit()

    def set_when(self, message_id: str, when: When) -> None:
        """Change when it is sent. Raises WrongUse when it is no longer queued."""
        self._session.queue.edit(message_id, when=when)
        self.queue_changed.emit()

    def move(self, message_id: str, index: int) -> None:
        """Move it to this index. Raises WrongUse when it is no longer queued."""
        self._session.queue.move(message_id, index)
        self.queue_changed.emit()

    def remove_message(self, message_id: str) -> RemovedMessage:
        """Remove it from the queue. Raises WrongUse when it is no longer queued."""
        queue = self._session.queue
        index = [entry.id for entry in queue.entries].index(message_id) if self._entry(message_id) else 0
        removed = RemovedMessage(queue.remove(message_id), index)
        self.queue_changed.emit()
        return removed

    def restore_message(self, removed: RemovedMessage) -> None:
        """Undo a removal, also after the conversation was reopened. Raises WrongUse."""
        self._session.queue.add(removed.entry.message, removed.entry.when)
        self._session.queue.move(removed.entry.id, removed.index)
        self.queue_changed.emit()

    @property
    def questions(self) -> tuple[QuestionAsked, ...]:
        """The unanswered questions, oldest first."""
        return tuple(question.asked for question in self._session.questions.open_questions)

    def answer(self, question_id: str, answer: Iterable[str]) -> None:
        """Answer a question; ignored if it has ended. Raises WrongUse for an invalid answer; it then stays open."""
        if self._session.questions.answer(question_id, answer):
            self.questions_changed.emit()

    def skip_question(self, question_id: str) -> None:
        """Let the agent go on without an answer."""
        self._session.questions.withdraw(question_id)
        self.questions_changed.emit()

    def on_event(self, event: Event) -> None:
        """Emit the signals for an event of the conversation."""
        match event:
            case ModeChanged() | ModeChangeRequested():
                self.modes_changed.emit()
            case UserMessageQueued() | UserMessageDelivered() | UserMessageReturned():
                self.queue_changed.emit()
            case QuestionAsked() | QuestionAnswered():
                self.questions_changed.emit()
            case RunStarted() | RunFinished():
                # A run delivers the next message, and drops a mode that was only requested.
                self.queue_changed.emit()
                self.modes_changed.emit()
            case _:
                pass

    def _entry(self, message_id: str) -> QueuedMessage | None:
        return next((entry for entry in self._session.queue.entries if entry.id == message_id), None)


def _waiting_message(entry: QueuedMessage) -> WaitingMessage:
    pictures = sum(isinstance(block, Image) for block in entry.message.blocks)
    typed, attached = split_attached(entry.message.text)
    return WaitingMessage(entry.id, typed, entry.when, pictures, tuple(file.title for file in attached))
