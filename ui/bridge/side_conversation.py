"""The conversation of a window beside the main one. The engine has one session for all windows that show it."""

from typing import TYPE_CHECKING, Unpack

from PySide6.QtCore import QObject, Signal

from desktop_agent.engine.engine import Engine
from desktop_agent.storage.records import ConversationChanges
from ui.bridge.conversation import OpenConversation
from ui.bridge.drafts import DraftStore
from ui.bridge.event_loop import BackgroundTasks, FrameClock
from ui.bridge.library import ConversationLibrary

if TYPE_CHECKING:
    from desktop_agent.engine.session import Session


class SideConversation(QObject):
    """What a page needs of the library, for one window. Another conversation is opened in the main window."""

    opened = Signal(OpenConversation)
    failed = Signal()
    """It could not be opened; the error is reported separately."""

    def __init__(self, library: ConversationLibrary, engine: Engine, clock: FrameClock, tasks: BackgroundTasks) -> None:
        super().__init__(library)
        self._library = library
        self._engine = engine
        self._clock = clock
        self._tasks = tasks
        self._open: OpenConversation | None = None
        self._is_closed = False
        self._new_ids: set[str] = set()
        """Conversations that began here: each has its own draft, other new conversations share one."""

    @property
    def current(self) -> OpenConversation | None:
        return self._open

    @property
    def drafts(self) -> DraftStore:
        return self._library.drafts

    def new(self, *, in_memory: bool = False) -> None:
        """Show an empty conversation, with the model that new ones have."""
        session = self._library.side_views.create(in_memory=in_memory)
        if not in_memory:
            self._new_ids.add(session.record.id)
            self.drafts.hold_in_memory(session.record.id)
        self._show(session)

    def open(self, conversation_id: str, *, anew: bool = False) -> None:
        """Show a conversation here, or in the main window if another one is shown here."""
        if self._open is None:
            self._tasks.start(self._open_stored(conversation_id))
        elif self._open.id != conversation_id:
            self._library.open(conversation_id, anew=anew)

    def change(self, conversation_id: str, **changes: Unpack[ConversationChanges]) -> None:
        """Change the record of a conversation, in all windows."""
        self._library.change(conversation_id, **changes)

    def close(self) -> None:
        """Detach the conversation. Its session ends when no window shows it and it is idle."""
        self._is_closed = True
        if self._open is not None:
            self._library.side_views.remove(self._open)
            self._open = None

    async def store_drafts(self) -> None:
        """Store what was written in conversations that began here. Raises StorageFailed."""
        while self._new_ids:
            await self.drafts.store_from_memory(self._new_ids.pop())

    async def _open_stored(self, conversation_id: str) -> None:
        try:
            session = await self._engine.session(conversation_id, whole=False)
            await self._library.waiting.read_times(session)
        except Exception:
            if not self._is_closed:
                self.failed.emit()
            raise
        if self._is_closed:
            self._library.leave(session)
            return
        self._show(session)
        self._library.waiting.resume(session)

    def _show(self, session: "Session") -> None:
        previous, self._open = self._open, OpenConversation(session, self._clock, self)
        self._library.side_views.add(self._open, session)
        if previous is not None:
            self._library.side_views.remove(previous)
        self.opened.emit(self._open)


ConversationSource = ConversationLibrary | SideConversation
"""The source of a page's conversation, in the main window or in a window beside it."""
