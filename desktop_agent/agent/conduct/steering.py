"""Messages that wait while the agent works: each is taken out once, to be delivered or to be handed back."""

from collections.abc import Callable, Iterable, Sequence

from desktop_agent.permissions.foreign_messages import validate_message
from desktop_agent.vocabulary.blocks import Block
from desktop_agent.vocabulary.conduct.queue import QueuedMessage, When
from desktop_agent.vocabulary.errors import WrongUse
from desktop_agent.vocabulary.messages import Message, Role


class SteeringQueue:
    """The queue of one conversation, in the order of delivery. Lives on the event loop; not for other threads.

    `on_change` is called after each change and must not raise. Whoever takes a message out commits it or returns it
    to the person.
    """

    def __init__(self, entries: Iterable[QueuedMessage] = (), on_change: Callable[[], None] = lambda: None) -> None:
        self._entries: list[QueuedMessage] = []
        self._on_change = on_change
        self._last_taken_id: str | None = None
        for entry in entries:
            self._append(entry)

    @property
    def entries(self) -> tuple[QueuedMessage, ...]:
        """All that wait, first to be delivered first."""
        return tuple(self._entries)

    def add(self, message: Message, when: When = "soon") -> None:
        """Put a prompt at the end.

        Raises WrongUse for one that is no prompt, says nothing, waits already or cannot be kept.
        """
        self._append(QueuedMessage(message=validate_message(message), when=when))
        self._on_change()

    def edit(self, message_id: str, blocks: Sequence[Block] | None = None, *, when: When | None = None) -> None:
        """Say something else instead, or at another moment; id and place stay.

        Raises WrongUse for an unknown id, no blocks, and what cannot be kept.
        """
        index = self._index(message_id)
        entry = self._entries[index]
        if blocks is not None:
            message = validate_message(entry.message.model_copy(update={"blocks": tuple(blocks)}))
            _validate_prompt(message)
            entry = entry.model_copy(update={"message": message})
        self._entries[index] = entry if when is None else entry.model_copy(update={"when": when})
        self._on_change()

    def move(self, message_id: str, position: int) -> None:
        """Put it at this position, counted from 0; beyond an end means at that end. Raises WrongUse."""
        entry = self._entries.pop(self._index(message_id))
        self._entries.insert(max(position, 0), entry)
        self._on_change()

    def remove(self, message_id: str) -> QueuedMessage:
        """Take this one out for the person. Raises WrongUse when it does not wait (any more)."""
        entry = self._entries.pop(self._index(message_id))
        self._on_change()
        return entry

    def take_next(self) -> Message | None:
        """Take out the first of any kind, for an agent that is idle; the caller commits it."""
        if not self._entries:
            return None
        entry = self._entries.pop(0)
        self._last_taken_id = entry.id
        self._on_change()
        return entry.message

    def was_taken_last(self, message_id: str) -> bool:
        """Whether this is the message that was taken out last to begin a run."""
        return self._last_taken_id == message_id

    def take_all(self) -> tuple[QueuedMessage, ...]:
        """Take out all; the caller returns them to the person."""
        taken = self.entries
        if taken:
            self._entries = []
            self._on_change()
        return taken

    def _append(self, entry: QueuedMessage) -> None:
        _validate_prompt(entry.message)
        if any(entry.id == other.id for other in self._entries):
            raise WrongUse("This message waits already.", "Edit the one that waits, or send a new one.")
        self._entries.append(entry)

    def _index(self, message_id: str) -> int:
        for index, entry in enumerate(self._entries):
            if entry.id == message_id:
                return index
        raise WrongUse("This message does not wait any more.", "Send it again as a new message if it is still needed.")


def _validate_prompt(message: Message) -> None:
    if message.role is not Role.USER:
        raise WrongUse("Only a prompt can wait.", "Send a message of the person.")
    if not message.blocks:
        raise WrongUse("The message says nothing.", "Write something, or delete it.")
