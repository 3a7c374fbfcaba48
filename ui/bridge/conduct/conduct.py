"""Mode, waiting messages and open questions of one conversation; each can change while the agent works."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from desktop_agent.vocabulary.blocks import Block, Image, Text
from desktop_agent.vocabulary.conduct.modes import Mode
from desktop_agent.vocabulary.conduct.queue import QueuedMessage, When
from desktop_agent.vocabulary.engine_events import (
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

if TYPE_CHECKING:
    from desktop_agent.engine.session import Session


@dataclass(frozen=True, slots=True)
class WaitingMessage:
    """A message that waits. `pictures` is how many go with it."""

    id: str
    text: str
    when: When
    pictures: int = 0


@dataclass(frozen=True, slots=True)
class RemovedMessage:
    """A message that does not wait any more, and its place among the others."""

    entry: QueuedMessage
    place: int


@dataclass(frozen=True, slots=True)
class OpenQuestion:
    """A question of the agent. `several` choices may be taken; `free_text`: own words are an answer too."""

    id: str
    question: str
    choices: tuple[str, ...] = ()
    several: bool = False
    free_text: bool = True


class SessionControls(QObject):
    """Reads and changes them; a signal says that one of them is to be read again."""

    modes_changed = Signal()
    waiting_changed = Signal()
    questions_changed = Signal()

    def __init__(self, session: "Session", parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session = session

    @property
    def mode(self) -> Mode:
        """The mode that holds."""
        return self._session.modes.current

    @property
    def modes(self) -> tuple[Mode, ...]:
        """All that can be chosen."""
        return self._session.modes.modes

    @property
    def requested_mode(self) -> Mode | None:
        """What the agent asks for, once it was announced."""
        request = self._session.modes.requested
        if request is None or not request.announced:
            return None
        return next((mode for mode in self.modes if mode.name == request.to_mode), None)

    def set_mode(self, name: str) -> None:
        """Apply at once, to every call that has not started. Raises WrongUse."""
        self._session.modes.set_by_person(name)
        self.modes_changed.emit()

    def reject_mode(self) -> None:
        """Let the agent's request come to nothing. Raises WrongUse when closed."""
        self._session.modes.cancel_request()
        self.modes_changed.emit()

    @property
    def waiting(self) -> tuple[WaitingMessage, ...]:
        """First to be delivered first."""
        return tuple(_waiting_message(entry) for entry in self._session.queue.entries)

    def edit_message(self, message_id: str, text: str) -> None:
        """Say something else; pictures stay. Raises WrongUse when it does not wait any more, or says nothing."""
        entry = self._entry(message_id)
        others: list[Block] = [block for block in entry.message.blocks if not isinstance(block, Text)] if entry else []
        blocks: list[Block] = [Text(text=text), *others] if text.strip() else others
        self._session.queue.edit(message_id, blocks)
        self.waiting_changed.emit()

    def set_when(self, message_id: str, when: When) -> None:
        """Send it at another moment. Raises WrongUse when it does not wait any more."""
        self._session.queue.edit(message_id, when=when)
        self.waiting_changed.emit()

    def move(self, message_id: str, position: int) -> None:
        """Put it at this place, counted from 0. Raises WrongUse when it does not wait any more."""
        self._session.queue.move(message_id, position)
        self.waiting_changed.emit()

    def remove_message(self, message_id: str) -> RemovedMessage:
        """Send it never. Raises WrongUse when it does not wait any more."""
        queue = self._session.queue
        place = [entry.id for entry in queue.entries].index(message_id) if self._entry(message_id) else 0
        removed = RemovedMessage(queue.remove(message_id), place)
        self.waiting_changed.emit()
        return removed

    def restore_message(self, removed: RemovedMessage) -> None:
        """Undo that, also where the conversation was closed and opened again meanwhile. Raises WrongUse."""
        self._session.queue.add(removed.entry.message, removed.entry.when)
        self._session.queue.move(removed.entry.id, removed.place)
        self.waiting_changed.emit()

    @property
    def questions(self) -> tuple[OpenQuestion, ...]:
        """Those that wait for an answer, oldest first."""
        return tuple(
            OpenQuestion(each.question_id, each.question, each.choices, each.several, each.free_text)
            for each in self._session.questions.open_questions
        )

    def answer(self, question_id: str, answer: Iterable[str]) -> None:
        """Nothing happens where it has ended by then. Raises WrongUse for what is no answer; it stays open then."""
        if self._session.questions.answer(question_id, answer):
            self.questions_changed.emit()

    def skip_question(self, question_id: str) -> None:
        """The agent goes on without an answer."""
        self._session.questions.withdraw(question_id)
        self.questions_changed.emit()

    def on_event(self, event: Event) -> None:
        """What happens in the conversation."""
        match event:
            case ModeChanged() | ModeChangeRequested():
                self.modes_changed.emit()
            case UserMessageQueued() | UserMessageDelivered() | UserMessageReturned():
                self.waiting_changed.emit()
            case QuestionAsked() | QuestionAnswered():
                self.questions_changed.emit()
            case RunStarted() | RunFinished():
                # A run takes the next message with it, and leaves a mode that was only asked for behind.
                self.waiting_changed.emit()
                self.modes_changed.emit()
            case _:
                pass

    def _entry(self, message_id: str) -> QueuedMessage | None:
        return next((each for each in self._session.queue.entries if each.id == message_id), None)


def _waiting_message(entry: QueuedMessage) -> WaitingMessage:
    pictures = sum(isinstance(block, Image) for block in entry.message.blocks)
    return WaitingMessage(entry.id, entry.message.text, entry.when, pictures)
