"""The trash for the screens: listed, and emptied for good."""

from collections.abc import Sequence

from PySide6.QtCore import QObject, Signal

from desktop_agent.storage.records import TRASH_RETENTION, ListedConversation, ListPlace, ListScope
from desktop_agent.storage.store import Store
from ui.bridge.event_loop import BackgroundTasks

PAGE = 2000
"""So many are read at first, and with each page."""
_SCOPE = ListScope(in_trash=True)


class Trash(QObject):
    """Conversations that were deleted and can be restored."""

    listed = Signal(list, bool)
    """The ListedConversations as far as they are read, the last deleted first; whether there are more."""

    purged = Signal(list)
    """The ids of conversations that were deleted for good."""

    def __init__(self, store: Store, tasks: BackgroundTasks, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._store = store
        self._tasks = tasks
        self._rows: Sequence[ListedConversation] = ()
        self._next: ListPlace | None = None
        self._is_reading_on = False

    @property
    def days(self) -> int:
        """After so many days it is deleted for good."""
        return TRASH_RETENTION.days

    def list(self) -> None:
        """Read the trash; `listed` answers."""
        self._tasks.start(self.refresh())

    def read_on(self) -> None:
        """Read a page more, unless there is none or it is on its way; harmless when repeated."""
        if self._next is not None and not self._is_reading_on:
            self._is_reading_on = True
            self._tasks.start(self._read_on())

    def purge(self, conversation_id: str) -> None:
        """Delete a conversation in the trash for good."""
        self._tasks.start(self._purge(conversation_id))

    def empty(self) -> None:
        """Delete everything in the trash for good."""
        self._tasks.start(self._empty())

    async def refresh(self) -> None:
        """Read the trash again. Raises StorageFailed."""
        self._show(*await self._store.list_page(max(PAGE, len(self._rows)), None, _SCOPE))

    async def _read_on(self) -> None:
        after = self._next
        try:
            page, following = await self._store.list_page(PAGE, after, _SCOPE)
        finally:
            self._is_reading_on = False
        # Read anew meanwhile: whoever is still at the end asks again.
        if self._next is after:
            self._show((*self._rows, *page), following)

    def _show(self, rows: Sequence[ListedConversation], following: ListPlace | None) -> None:
        self._rows, self._next = rows, following
        self.listed.emit([*rows], following is not None)

    async def _purge(self, conversation_id: str) -> None:
        try:
            await self._store.purge_conversation(conversation_id)
        finally:
            await self.refresh()
        self.purged.emit([conversation_id])

    async def _empty(self) -> None:
        ids = [record.id for record in await self._store.list_conversations(in_trash=True)]
        try:
            await self._store.empty_trash()
        finally:
            await self.refresh()
        self.purged.emit(ids)
