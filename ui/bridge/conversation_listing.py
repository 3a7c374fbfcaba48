"""The list of conversations as far as it is read: from the newest on, a page more whenever somebody scrolls there."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from ui.bridge.event_loop import BackgroundTasks

if TYPE_CHECKING:
    from desktop_agent.storage.records import ListedConversation, ListPlace
    from desktop_agent.storage.store import Store

PAGE = 2000
"""So many are read at first, and with each page."""


class ConversationListing(QObject):
    """`listed` carries a sequence of ListedConversation, the last written first."""

    listed = Signal(object)

    def __init__(self, store: "Store", tasks: BackgroundTasks, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._store = store
        self._tasks = tasks
        self._rows: Sequence[ListedConversation] = ()
        self._next: ListPlace | None = None
        self._is_reading_on = False
        self._refreshes = 0

    def has(self, conversation_id: str) -> bool:
        """Return whether this one is in what was read."""
        return any(row.id == conversation_id for row in self._rows)

    async def refresh(self) -> None:
        """Read again as much as was read before. Raises StorageFailed."""
        self._refreshes += 1
        number = self._refreshes
        rows, following = await self._store.list_page(PAGE)
        # In pages: what is said meanwhile must get to the disk.
        while following is not None and len(rows) < len(self._rows) and number == self._refreshes:
            page, following = await self._store.list_page(PAGE, following)
            rows += page
        if number == self._refreshes:
            self._rows, self._next = rows, following
            self.listed.emit(self._rows)

    def read_on(self) -> None:
        """Read a page more, unless there is none or it is on its way; harmless when repeated."""
        if self._next is not None and not self._is_reading_on:
            self._is_reading_on = True
            self._tasks.start(self._read_on())

    async def _read_on(self) -> None:
        after = self._next
        try:
            page, following = await self._store.list_page(PAGE, after)
        finally:
            self._is_reading_on = False
        # Read anew meanwhile: whoever is still at the end asks again.
        if self._next is after:
            self._rows, self._next = (*self._rows, *page), following
            self.listed.emit(self._rows)
