"""Conversations that are never stored: only in memory, and open until the person closes them."""

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from desktop_agent.engine.engine import Engine
from desktop_agent.types.conversation_tree import ConversationTree
from ui.bridge.drafts import DraftStore

if TYPE_CHECKING:
    from desktop_agent.engine.session import Session


@dataclass(frozen=True, slots=True)
class UnstoredRow:
    """A conversation as it is listed. `title` is "" before its first prompt."""

    id: str
    title: str


class UnstoredConversations(QObject):
    """Holds these conversations: nothing else keeps one open that is not shown."""

    changed = Signal()
    close_requested = Signal(str)
    """The person wants to close the conversation with this id; its content would be lost."""

    def __init__(self, engine: Engine, drafts: DraftStore, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._engine = engine
        self._drafts = drafts
        self._sessions: dict[str, Session] = {}
        self._lock = asyncio.Lock()

    @property
    def rows(self) -> tuple[UnstoredRow, ...]:
        """The conversations, the newest first."""
        sessions = reversed(self._sessions.values())
        return tuple(
            UnstoredRow(session.record.id, session.record.title if session.transcript else "") for session in sessions
        )

    def __contains__(self, conversation_id: object) -> bool:
        return conversation_id in self._sessions

    @property
    def with_content(self) -> tuple[UnstoredRow, ...]:
        """The conversations with content that would be lost, the newest first."""
        return tuple(row for row in self.rows if self.has_content(row.id))

    def has_content(self, conversation_id: str) -> bool:
        """Return whether there is a message or a draft in it."""
        session = self._sessions.get(conversation_id)
        if session is None:
            return False
        return (
            bool(session.transcript or session.queue.entries) or self._drafts.in_memory(session.record.id) is not None
        )

    def create(self, *, endpoint_id: str | None, model: str | None, workspace: str | None) -> "Session":
        """Return the session of a new, empty conversation."""
        session = self._engine.new_session(endpoint_id=endpoint_id, model=model, workspace=workspace, in_memory=True)
        self._sessions[session.record.id] = session
        self._drafts.hold_in_memory(session.record.id)
        self.changed.emit()
        return session

    def tree(self, conversation_id: str) -> ConversationTree | None:
        """Return an unstored conversation with all its branches; None for any other conversation."""
        session = self._sessions.get(conversation_id)
        return None if session is None else session.branches.tree

    async def discard_empty(self, conversation_id: str) -> None:
        """Discard a conversation that the window left, if it is empty."""
        # Its draft is saved only after the window has left it.
        await asyncio.sleep(0)
        if not self.has_content(conversation_id):
            await self.discard(conversation_id)

    async def discard(self, conversation_id: str) -> None:
        """Stop a conversation and forget all of it."""
        session = self._sessions.pop(conversation_id, None)
        if session is None:
            return
        self._drafts.discard_in_memory(conversation_id)
        self.changed.emit()
        await session.close()

    async def store(self, conversation_id: str, *, stop: bool = False) -> "Session":
        """Store it as an ordinary conversation; return its session. Raises WrongUse while it works, and StorageFailed.

        `stop`: stop its run first.
        """
        from desktop_agent.engine.session_opening import store_session

        async with self._lock:
            session = self._sessions.get(conversation_id)
            if session is None:  # requested twice
                return await self._engine.session(conversation_id)
            if stop:
                session.interrupt()
                await session.wait_idle()
            if not session.is_closed:  # it could be stored before, but not be opened
                await store_session(self._engine.store, session)
            stored = await self._engine.session(conversation_id)
            self._sessions.pop(conversation_id, None)
        await self._drafts.store_from_memory(conversation_id)
        self.changed.emit()
        return stored
