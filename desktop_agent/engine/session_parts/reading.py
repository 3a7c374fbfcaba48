"""What can be read of an open conversation, and who is told when it changes."""

from desktop_agent.conversation.transcript import Transcript
from desktop_agent.engine.unsaved import UnsavedConversation
from desktop_agent.engine.writer import ChangeListener, EventListener, SessionWriter
from desktop_agent.storage.records import ConversationRecord
from desktop_agent.vocabulary.messages import Message
from desktop_agent.vocabulary.usage import Usage


class SessionView:
    """The reading half of a session."""

    def __init__(self, writer: SessionWriter) -> None:
        self._writer = writer

    @property
    def record(self) -> ConversationRecord:
        """The conversation as it is listed."""
        return self._writer.record

    @property
    def is_new(self) -> bool:
        """Whether nothing of it was kept yet."""
        return self._writer.journal_queue.is_new

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

    def subscribe(self, on_changes: ChangeListener | None = None, on_event: EventListener | None = None) -> None:
        """Be told of changes to the transcript, of events, or both. Called in the loop's thread."""
        self._writer.subscribe(on_changes, on_event)

    def unsubscribe(self, listener: ChangeListener | EventListener) -> None:
        """Stop telling this one."""
        self._writer.unsubscribe(listener)

    async def flush(self) -> None:
        """Return when everything so far is on the disk. Raises StorageFailed, and goes on trying."""
        await self._writer.flush()

    async def write_all(self) -> None:
        """Try to write what waits; `unsaved` says what the disk refused."""
        await self._writer.journal_queue.write_all()

    async def write_at_once(self) -> None:
        """The same on another loop, when the usual one does not go on any more. Raises StorageFailed."""
        await self._writer.journal_queue.write_at_once()

    @property
    def unsaved(self) -> UnsavedConversation | None:
        """The conversation where the disk refused some of it; None where all is kept, or on its way."""
        refused = self._writer.journal_queue.unwritten
        return refused and UnsavedConversation(self.record, self.history, *refused)
