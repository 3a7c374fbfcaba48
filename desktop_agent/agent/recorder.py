"""What the turn needs from whoever keeps the conversation."""

from typing import Protocol

from desktop_agent.vocabulary.engine_events import Event
from desktop_agent.vocabulary.messages import Message


class Recorder(Protocol):
    """Shows and keeps what one run does. The session's is the one that runs in the app."""

    @property
    def run_id(self) -> str:
        """The run's."""
        ...

    def emit(self, event: Event) -> None:
        """Show this now and journal it soon."""
        ...

    async def flush(self) -> None:
        """Return when everything emitted so far is durable. Raises StorageFailed."""
        ...

    async def commit(self, *messages: Message) -> None:
        """Add finished messages to the history; kept in memory and tried again when the disk refuses."""
        ...

    def history(self) -> tuple[Message, ...]:
        """All committed messages of the branch, oldest first."""
        ...

    def nested(self) -> "Recorder":
        """For a run that a call of this one starts: its events name this run as their parent.

        Its messages are its own: they are kept in memory while it works, and are not part of the conversation.
        """
        ...
