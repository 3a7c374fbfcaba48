"""The trash for the screens: listed, and emptied for good."""

from PySide6.QtCore import QObject, Signal

from desktop_agent.storage.records import TRASH_RETENTION, ConversationRecord
from desktop_agent.storage.store import Store
from ui.bridge.event_loop import BackgroundTasks

_MAX_LISTED = 2000


class Trash(QObject):
    """Conversations that were deleted and can be restored."""

    listed = Signal(list)
    """The conversations, the last deleted first."""

    def __init__(self, store: Store, tasks: BackgroundTasks, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._store = store
        self._tasks = tasks

    @property
    def days(self) -> int:
        """After so many days it is deleted for good."""
        return TRASH_RETENTION.days

    def list(self) -> None:
        """Read the trash; `listed` answers."""
        self._tasks.start(self.refresh())

    def purge(self, conversation_id: str) -> None:
        """Delete a conversation in the trash for good."""
        self._tasks.start(self._purge(conversation_id))

    def empty(self) -> None:
        """Delete everything in the trash for good."""
        self._tasks.start(self._empty())

    async def refresh(self) -> None:
        """Read the trash again. Raises StorageFailed."""
        records: tuple[ConversationRecord, ...] = await self._store.list_conversations(_MAX_LISTED, in_trash=True)
        self.listed.emit([*records])

    async def _purge(self, conversation_id: str) -> None:
        try:
            await self._store.purge_conversation(conversation_id)
        finally:
            await self.refresh()

    async def _empty(self) -> None:
        try:
            await self._store.empty_trash()
        finally:
            await self.refresh()
