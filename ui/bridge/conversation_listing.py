"""The list of conversations of one folder, of the archive or of the trash, read page by page as the person scrolls."""

from collections.abc import Sequence
from dataclasses import replace

from PySide6.QtCore import QObject, Signal

from desktop_agent.storage.records import TRASH_RETENTION, ListedConversation, ListPlace, ListScope
from desktop_agent.storage.store import Store
from desktop_agent.types.errors import WrongUse
from desktop_agent.types.folders import FolderLevel
from ui.bridge.desktop.notifications import is_active, on_application_state
from ui.bridge.event_loop import BackgroundTasks, in_background

PAGE = 2000
"""Rows that are read at first, and with each further page."""


class ConversationListing(QObject):
    """`listed` carries a sequence of ListedConversation: those that are pinned, then the last written first."""

    listed = Signal(object)
    level_read = Signal(FolderLevel)
    """Before `listed`: the folders around these conversations."""
    folders_found = Signal(dict)
    """Maps ids of conversations to the id of the folder of this level that each is in, at any depth."""
    titles_found = Signal(str, object)
    """The query, and the ListedConversations that have it in their titles, the last written first."""

    def __init__(self, store: "Store", tasks: BackgroundTasks, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._store = store
        self._tasks = tasks
        self._rows: Sequence[ListedConversation] = ()
        self._next: ListPlace | None = None
        self._is_reading_on = False
        self._refreshes = 0
        self._folder: str | None = None
        self._is_archive = False
        on_application_state(self._on_application_state)

    @property
    def folder(self) -> str | None:
        """The id of the folder that is listed; None for the top and for the archive."""
        return self._folder

    def has(self, conversation_id: str) -> bool:
        """Return whether this conversation is in the rows read so far."""
        return any(row.id == conversation_id for row in self._rows)

    def open_folder(self, folder: str | None) -> None:
        """List this folder, or the top."""
        self._folder, self._is_archive = folder, False
        self._start_anew()

    def open_archive(self) -> None:
        """List archived conversations."""
        self._folder, self._is_archive = None, True
        self._start_anew()

    async def refresh(self) -> None:
        """Read again as much as was read before. Raises StorageFailed."""
        self._refreshes += 1
        number = self._refreshes
        level = await self._store.folders.level(self._folder)
        if self._folder is not None and not level.path and number == self._refreshes:
            # Deleted, perhaps by another process.
            self._folder = None
        try:
            rows, following = await self._store.list_page(PAGE, scope=self._scope)
            # In pages: messages of active runs must get to the disk in between.
            while following is not None and len(rows) < len(self._rows) and number == self._refreshes:
                page, following = await self._store.list_page(PAGE, following, self._scope)
                rows += page
        except WrongUse:
            # The folder was deleted between the two queries.
            await self.refresh()
            return
        if number == self._refreshes:
            self._rows, self._next = rows, following
            self.level_read.emit(replace(level, is_archive=self._is_archive))
            self.listed.emit(self._rows)

    @in_background
    async def find_folders(self, conversation_ids: Sequence[str]) -> None:
        """Find which folder of this level each of these is in; `folders_found` answers."""
        self.folders_found.emit(await self._store.folders.around(self._folder, conversation_ids))

    @in_background
    async def find_titles(self, typed: str) -> None:
        """Look for these words in the titles of all conversations; `titles_found` answers. "" finds the newest."""
        rows, _ = await self._store.list_page(PAGE, None, ListScope(title=typed))
        self.titles_found.emit(typed, rows)

    def read_on(self) -> None:
        """Read a page more, unless there is none or it is on its way; harmless when repeated."""
        if self._next is not None and not self._is_reading_on:
            self._is_reading_on = True
            self._tasks.start(self._read_on())

    @property
    def _scope(self) -> "ListScope":
        return ListScope(folder=self._folder, archived=self._is_archive)

    def _on_application_state(self) -> None:
        """List what other processes wrote meanwhile, such as `ask` in a terminal."""
        if is_active() and self._refreshes:
            self._tasks.start(self.refresh())

    def _start_anew(self) -> None:
        self._rows, self._next = (), None
        self._tasks.start(self.refresh())

    async def _read_on(self) -> None:
        after = self._next
        try:
            page, following = await self._store.list_page(PAGE, after, self._scope)
        except WrongUse:
            await self.refresh()
            return
        finally:
            self._is_reading_on = False
        # If the list was read again meanwhile, a view that is still at the end asks again.
        if self._next is after:
            self._rows, self._next = (*self._rows, *page), following
            self.listed.emit(self._rows)


_IN_TRASH = ListScope(in_trash=True)


class Trash(QObject):
    """Conversations that were deleted and can be restored."""

    listed = Signal(list, bool)
    """The ListedConversations read so far, the last deleted first; whether there are more."""

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
        """The days after which a conversation in the trash is deleted for good."""
        return TRASH_RETENTION.days

    def list(self) -> None:
        """Read the trash; `listed` answers."""
        self._tasks.start(self.refresh())

    def read_on(self) -> None:
        """Read a page more, unless there is none or it is on its way; harmless when repeated."""
        if self._next is not None and not self._is_reading_on:
            self._is_reading_on = True
            self._tasks.start(self._read_on())

    @in_background
    async def purge(self, conversation_id: str) -> None:
        """Delete a conversation in the trash for good."""
        try:
            await self._store.purge_conversation(conversation_id)
        finally:
            await self.refresh()
        self.purged.emit([conversation_id])

    @in_background
    async def empty(self) -> None:
        """Delete everything in the trash for good."""
        ids = [record.id for record in await self._store.list_conversations(in_trash=True)]
        try:
            await self._store.empty_trash()
        finally:
            await self.refresh()
        self.purged.emit(ids)

    async def refresh(self) -> None:
        """Read the trash again. Raises StorageFailed."""
        self._show(*await self._store.list_page(max(PAGE, len(self._rows)), None, _IN_TRASH))

    async def _read_on(self) -> None:
        after = self._next
        try:
            page, following = await self._store.list_page(PAGE, after, _IN_TRASH)
        finally:
            self._is_reading_on = False
        # As in ConversationListing.
        if self._next is after:
            self._show((*self._rows, *page), following)

    def _show(self, rows: Sequence[ListedConversation], following: ListPlace | None) -> None:
        self._rows, self._next = rows, following
        self.listed.emit([*rows], following is not None)
