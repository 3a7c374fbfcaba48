"""The queue of messages that the person sent while the agent works, until they are delivered."""

from collections.abc import Callable, Iterable, Sequence

from desktop_agent.processes.foreign_code import validate_message
from desktop_agent.types.blocks import Block
from desktop_agent.types.errors import WrongUse
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.policies import QueuedMessage, When


class SteeringQueue:
    """The message queue of one conversation, in the order of delivery. Lives on the event loop; not thread-safe.

    `on_change` is called after each change and must not raise. Whoever takes a message out commits it or returns it
    to the person. `refuse_when_closed` raises before any change once the conversation is closed.
    """

    def __init__(
        self,
        entries: Iterable[QueuedMessage] = (),
        on_change: Callable[[], None] = lambda: None,
        refuse_when_closed: Callable[[], None] = lambda: None,
    ) -> None:
        self._entries: list[QueuedMessage] = []
        self._on_change = on_change
        self._refuse_when_closed = refuse_when_closed
        self._last_taken_id: str | None = None
        for entry in entries:
            self._append(entry)

    @property
    def entries(self) -> tuple[QueuedMessage, ...]:
        return tuple(self._entries)

    def add(self, message: Message, when: When = "soon") -> None:
        """Append a prompt.

        Raises WrongUse for a message that is no prompt, is empty, waits already or cannot be stored.
        """
        self._refuse_when_closed()
        self._append(QueuedMessage(message=validate_message(message), when=when))
        self._on_change()

    def edit(self, message_id: str, blocks: Sequence[Block] | None = None, *, when: When | None = None) -> None:
        """Change the blocks or the delivery time of a message; its id and position stay.

        Raises WrongUse for an unknown id, no blocks, and blocks that cannot be stored.
        """
        self._refuse_when_closed()
        index = self._index(message_id)
        entry = self._entries[index]
        if blocks is not None:
            message = validate_message(entry.message.model_copy(update={"blocks": tuple(blocks)}))
            _validate_prompt(message)
            entry = entry.model_copy(update={"message": message})
        self._entries[index] = entry if when is None else entry.model_copy(update={"when": when})
        self._on_change()

    def move(self, message_id: str, position: int) -> None:
        """Move a message to a position, counted from 0 and clamped to the ends. Raises WrongUse for an unknown id."""
        self._refuse_when_closed()
        index = self._index(message_id)
        entries = self._entries[:index] + self._entries[index + 1 :]
        entries.insert(max(position, 0), self._entries[index])
        self._entries = entries
        self._on_change()

    def remove(self, message_id: str) -> QueuedMessage:
        """Remove and return a message for the person. Raises WrongUse when it does not wait (any more)."""
        self._refuse_when_closed()
        entry = self._entries.pop(self._index(message_id))
        self._on_change()
        return entry

    def take_next(self) -> Message | None:
        """Take out the first message of any kind, for an idle agent; the caller commits it."""
        self._refuse_when_closed()
        if not self._entries:
            return None
        entry = self._entries.pop(0)
        self._last_taken_id = entry.id
        self._on_change()
        return entry.message

    def was_taken_last(self, message_id: str) -> bool:
        """Return whether this message was the last one taken out to begin a run."""
        return self._last_taken_id == message_id

    def take_all(self) -> tuple[QueuedMessage, ...]:
        """Take out all messages; the caller returns them to the person."""
        self._refuse_when_closed()
        entries = self.entries
        if entries:
            self._entries = []
            self._on_change()
        return entries

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
    if message.is_blank:
        raise WrongUse("The message is empty.", "Write something, or delete it.")
