"""All conversations for the screens: list, open, create, rename, delete, restore."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from PySide6.QtCore import QObject, Signal

from desktop_agent.engine.engine import Engine
from desktop_agent.storage.records import ConversationChanges, ListScope
from desktop_agent.tools.replaced_folders import resolve_chosen
from desktop_agent.types.engine_events import (
    ConversationTitled,
    Envelope,
    ErrorOccurred,
    RunFinished,
    RunStarted,
    TurnStarted,
    UserMessageReturned,
)
from desktop_agent.types.errors import ConversationInUse, Sentence, StorageFailed, WrittenElsewhere, WrongUse
from ui.bridge.activity import ConversationActivity
from ui.bridge.conversation import OpenConversation
from ui.bridge.conversation_listing import ConversationListing, Trash
from ui.bridge.drafts import DraftStore
from ui.bridge.event_loop import BackgroundTasks, FrameClock, in_background
from ui.bridge.found_histories import FoundConversations, is_found_id
from ui.bridge.mcp.requests import McpRequests
from ui.bridge.search import SearchAsYouType
from ui.bridge.storage import PictureStore
from ui.bridge.unstored import UnstoredConversations
from ui.bridge.waiting_calls import WaitingCalls

if TYPE_CHECKING:
    from desktop_agent.engine.session import Session
    from desktop_agent.engine.session_opening import ConversationFollower
    from desktop_agent.storage.store import Store


@dataclass(eq=False)
class _DemoRequest:
    """A request for an empty conversation with the demo. A request for a new one while it starts is joined with it."""

    is_starting: bool = True
    in_memory: bool = False


class SideViews:
    """The conversations in windows beside the main one. A session that any window shows stays open."""

    def __init__(self, library: "ConversationLibrary", engine: Engine) -> None:
        self._library = library
        self._engine = engine
        self._sessions: dict[OpenConversation, Session] = {}
        self._last_model: tuple[str | None, str | None] = None, None
        """The server and model of the last conversation in the main window that had a server."""

    def leave_main_window(self, conversation: OpenConversation) -> None:
        """Detach a conversation that the main window no longer shows."""
        self._note_model(conversation)
        conversation.detach()
        conversation.deleteLater()

    def _note_model(self, conversation: OpenConversation) -> None:
        if conversation.endpoint_id is not None:
            self._last_model = conversation.endpoint_id, conversation.model

    def add(self, conversation: OpenConversation, session: "Session") -> None:
        """Keep a session open while another window shows its conversation, and handle its events."""
        self._sessions[conversation] = session
        subscribe_library(self._library, session)
        conversation.record_changed.connect(self._library.refresh)
        self.share_branches(conversation)

    def remove(self, conversation: OpenConversation) -> None:
        """Detach a conversation that its window no longer shows, and let its session end when it is idle."""
        session = self._sessions.pop(conversation)
        conversation.detach()
        conversation.deleteLater()
        self._library.leave(session)

    def create(self, endpoint_id: str | None = None, model: str | None = None, *, in_memory: bool = False) -> "Session":
        """Return an empty conversation, which takes over the workspace of the one in the main window."""
        current = self._library.current
        workspace = current.workspace if current is not None and endpoint_id is None else None
        create = self._library.unstored.create if in_memory else self._engine.new_session
        session = create(endpoint_id=endpoint_id, model=model, workspace=workspace)
        if session.record.endpoint_id is None:
            # Without a default server, use the last one, such as the demo, which is never the default.
            if current is not None:
                self._note_model(current)
            endpoint_id, model = self._last_model
            session.change_record(endpoint_id=endpoint_id, model=model)
        return session

    def shows(self, session: "Session") -> bool:
        """Return whether a window beside the main one shows this session."""
        return session in self._sessions.values()

    def share_branches(self, conversation: OpenConversation) -> None:
        """Notify the other windows that show it of each change of its branches."""
        conversation.branches.changed.connect(partial(self._notify_others, conversation))

    def _notify_others(self, changed: OpenConversation) -> None:
        for conversation in (*self._sessions, self._library.current):
            if conversation is not None and conversation is not changed and conversation.id == changed.id:
                conversation.branches.changed_elsewhere.emit()

    def notify_record_changed(self, conversation_id: str) -> None:
        """Notify the windows that show this conversation that its record was changed elsewhere."""
        for conversation in self._sessions:
            if conversation.id == conversation_id:
                conversation.record_changed.emit()


class ConversationLibrary(QObject):
    """`opened` carries the conversation to show, `deleted` offers an undo; for the list see `listing`."""

    opened = Signal(OpenConversation)
    deleted = Signal(str, str, bool)
    restored = Signal(str)

    def __init__(
        self,
        engine: Engine,
        clock: FrameClock,
        tasks: BackgroundTasks,
        pictures: PictureStore,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._engine = engine
        self._clock = clock
        self._tasks = tasks
        self.drafts = DraftStore(engine.store, pictures)
        self.trash = Trash(engine.store, tasks, self)
        self.unstored = UnstoredConversations(engine, self.drafts, self)
        self.search = SearchAsYouType(engine.store.search, tasks, self)
        self.quick_search = SearchAsYouType(engine.store.search, tasks, self, retry_seconds=0.2)  # lets it go first
        self._open: OpenConversation | None = None
        self._session: Session | None = None
        self._follower: ConversationFollower | None = None
        self.side_views = SideViews(self, engine)
        # The last choice: an id, or an object that equals nothing else. Results of earlier choices are not shown.
        self._requested: object = None
        self.waiting = WaitingCalls(engine, tasks, self)
        self.requests = McpRequests(self)
        self.activity = ConversationActivity(self.requests, self)
        self.listing = ConversationListing(engine.store, tasks, self)
        self.found = FoundConversations(engine, tasks, self)
        engine.store.on_replaced(lambda _: self._tasks.start(self._show_new_file()))

    @property
    def current(self) -> OpenConversation | None:
        return self._open

    @property
    def working_sessions(self) -> "list[Session]":
        return self._engine.working_sessions

    def refresh(self) -> None:
        """Read the list again."""
        self._tasks.start(self._refresh())

    def open(self, conversation_id: str, *, anew: bool = False) -> None:
        """Show a conversation, unless another is chosen while it loads. `anew`: another program's is read once more."""
        self._requested = conversation_id
        if anew or not self._shows(conversation_id):
            self._tasks.start(self._open_requested(conversation_id))

    def new(self, *, endpoint_id: str | None = None, model: str | None = None, in_memory: bool = False) -> None:
        """Show an empty conversation; it is saved from its first prompt on, or never if `in_memory`."""
        if isinstance(self._requested, _DemoRequest) and self._requested.is_starting and endpoint_id is None:
            self._requested.in_memory = in_memory
            if self._open is not None:  # a text that is written there until then is its draft too
                self.replace_shown(self._open.id)
            return
        self._requested = None
        self._show(self.side_views.create(endpoint_id, model, in_memory=in_memory))

    def close_unstored(self, conversation_id: str) -> None:
        """Forget a conversation that is not stored, without asking."""
        self._tasks.start(self.unstored.discard(conversation_id))
        self.replace_shown(conversation_id)
        self.activity.removed.emit(conversation_id)

    @in_background
    async def store_unstored(self, conversation_id: str) -> None:
        """Store it as an ordinary conversation after all."""
        stored = await self.unstored.store(conversation_id)
        self._show(stored) if self._shows(conversation_id) else self._engine.release_session(stored)
        await self._refresh()

    def replace_shown(self, conversation_id: str) -> None:
        """If this conversation is shown, show an empty one instead; a chosen one that still loads is shown later."""
        if self._shows(conversation_id):
            self._show(self.side_views.create())

    def begin_choice(self) -> Callable[[], bool]:
        """Begin a choice that is not ready yet; return a function that says whether nothing else was chosen since."""
        request = self._requested = object()
        return lambda: self._requested is request

    def new_demo(self) -> None:
        """Show an empty conversation with the offline demo."""
        request = self._requested = _DemoRequest()

        async def work() -> None:
            try:
                session = await self._engine.new_demo_session()
            finally:
                request.is_starting = False
            if self._requested is request:
                self._show(session)
                if request.in_memory:
                    self._show(self.side_views.create(in_memory=True))

        self._tasks.start(work())

    def open_last(self, last: str, otherwise: Callable[[], None]) -> None:
        """Open the conversation of this id, or else the newest; if there is none, call `otherwise`."""
        self._tasks.start(self._open_last(last, otherwise, self.begin_choice()))

    def rename(self, conversation_id: str, title: str) -> None:
        """Set a title. From then on the conversation is not titled automatically."""
        self._tasks.start(self._change(conversation_id, {"title": title, "title_is_automatic": False}))

    def change(self, conversation_id: str, **changes: Unpack[ConversationChanges]) -> None:
        """Change the record of a conversation, at once if it is shown.

        If another process works in it, it is not changed, and an error names that process. If it is just being closed,
        it is changed when it is open again.
        """
        shown = self._open
        if shown is not None and shown.id == conversation_id and shown.held_by is None and not shown.is_closed:
            shown.change(**changes)
            self.side_views.notify_record_changed(conversation_id)
        else:
            self._tasks.start(self._change(conversation_id, changes))

    def delete(self, conversation_id: str) -> None:
        """Move it to the trash; `deleted` then offers an undo. One that is not stored is closed, see `unstored`."""
        if conversation_id in self.unstored:
            self.unstored.close_requested.emit(conversation_id)
            return
        self._tasks.start(self._delete(conversation_id))

    def restore(self, conversation_id: str, *, shows: bool = True) -> None:
        """Take a conversation out of the trash, and show it if `shows`."""
        if shows:
            self._requested = conversation_id
        self._tasks.start(self._restore(conversation_id))

    def close(self) -> None:
        """Stop emitting signals. The engine ends what runs in the open conversation."""
        if self._open is not None:
            self._open.detach()
            self._open = self._session = None

    async def put_into_trash(self, conversation_id: str) -> None:
        """Delete a conversation, showing no other one. Raises as Engine.delete_conversation; it then stays shown."""
        try:
            await self._engine.delete_conversation(conversation_id)
            self.waiting.forget_interrupted(conversation_id)
            self.side_views.notify_record_changed(conversation_id)
            self.activity.removed.emit(conversation_id)
        except StorageFailed:
            if self._shows(conversation_id) and self._session is not None and self._session.is_closed:
                # Another process writes there.
                await self._open_stored(conversation_id, lambda: self._shows(conversation_id))
            raise

    def _is_shown(self, session: "Session") -> bool:
        return session is self._session or self.side_views.shows(session)

    def _shows(self, conversation_id: str) -> bool:
        return self._open is not None and self._open.id == conversation_id

    def _show(self, session: "Session", held_by: Sentence | None = None) -> None:
        if self._follower is not None and self._follower.session is not session:
            self._follower.stop()
            self._follower = None
        if self._open is not None:
            self.side_views.leave_main_window(self._open)
        previous, self._session = self._session, session
        if previous is not None:
            self.leave(previous)
        self._open = OpenConversation(session, self._clock, self, held_by)
        self._open.record_changed.connect(self.unstored.changed if session.is_in_memory else self.refresh)
        self.side_views.share_branches(self._open)
        subscribe_library(self, session)
        self.opened.emit(self._open)

    def leave(self, session: "Session") -> None:
        """Let a session end when it is idle, unless a window shows it."""
        if self._is_shown(session):
            return
        if session.record.id in self.unstored:
            self._tasks.start(self.unstored.discard_empty(session.record.id))
        elif not session.is_closed:
            self._engine.release_session(session)

    def on_event(self, session: "Session", envelope: Envelope) -> None:
        """Handle an event of a conversation that was opened in this window."""
        if not self._is_shown(session) and self._open is None:
            return
        self.activity.on_event(session, envelope)
        self.waiting.on_event(session, envelope)
        if envelope.parent_run_id is not None:
            return
        match envelope.event:
            case RunStarted() | RunFinished() | ConversationTitled():
                self.unstored.changed.emit() if session.is_in_memory else self.refresh()
            case ErrorOccurred(kind=WrittenElsewhere.kind) if session is self._session:
                # This session no longer writes; show what is on the disk instead.
                self._tasks.start(self._reopen(session))
            case TurnStarted() if not (session.is_in_memory or self.listing.has(session.record.id)):
                # Its first prompt is on the disk by now: list it, so that the person can come back to it.
                self.refresh()
            case UserMessageReturned(message_id=id_) if not self._is_shown(session) and (sent := session.returned(id_)):
                self._tasks.start(self.drafts.add_message(session.record.id, sent))
            case _:
                pass

    async def _refresh(self) -> None:
        if self._session is not None:
            # The new title of the open conversation may not be on the disk yet.
            await self._session.write_all()
        await self.listing.refresh()

    async def _open_requested(self, conversation_id: str) -> None:
        if is_found_id(conversation_id):
            await self.found.open(conversation_id, lambda: self._requested == conversation_id, self._show)
            return
        try:
            await self._open_stored(
                conversation_id, lambda: self._requested == conversation_id and not self._shows(conversation_id)
            )
        except WrongUse:
            # Another process may have deleted it: the list must not show it any longer.
            await self._refresh()
            raise

    async def _open_last(self, last: str, otherwise: Callable[[], None], is_wanted: Callable[[], bool]) -> None:
        first = await find_first_shown(self._engine.store, last)
        if is_wanted():
            self.open(first) if first else otherwise()

    async def _reopen(self, session: "Session") -> None:
        await self._open_stored(session.record.id, lambda: self._session is session)

    async def _open_stored(self, conversation_id: str, is_wanted: Callable[[], bool]) -> None:
        try:
            session = await self._engine.session(conversation_id, whole=False)
        except StorageFailed as error:
            # A conversation that cannot be written can still be read.
            follower = await self._engine.follow_conversation(conversation_id, error)
            if not is_wanted():
                follower.stop()
                return
            self._show(follower.session, _why_held(error))
            self._follower = follower
            self._tasks.start(self._follow(follower))
            return
        await self.waiting.read_times(session)
        if not is_wanted():
            self.leave(session)
            return
        self._show(session)
        self.waiting.resume(session)

    async def _show_new_file(self) -> None:
        """Show the content of a database file that was replaced, also of the open conversation."""
        await self._refresh()
        await self.trash.refresh()
        if (shown := self._session) is None or shown.is_new or shown.is_in_memory:
            return
        try:
            await self._reopen(shown)
        except WrongUse:
            self.replace_shown(shown.record.id)

    async def _follow(self, follower: "ConversationFollower") -> None:
        await follower.run_until_free()
        if self._follower is follower:
            await self._reopen(follower.session)
            await self._refresh()

    async def _change(self, conversation_id: str, changes: ConversationChanges) -> None:
        _refuse_found(conversation_id)
        session = await self._engine.session(conversation_id, whole=False)
        if self._open is not None and session is self._session:
            self._open.change(**changes)
        else:
            session.change_record(**changes)
            await session.write_all()
            self.leave(session)
        self.side_views.notify_record_changed(conversation_id)
        await self._refresh()

    async def _delete(self, conversation_id: str) -> None:
        _refuse_found(conversation_id)
        title, was_shown = (await self._engine.record(conversation_id)).title, self._shows(conversation_id)
        await self.put_into_trash(conversation_id)
        self.replace_shown(conversation_id)
        await self._refresh()
        await self.trash.refresh()
        self.deleted.emit(conversation_id, title, was_shown)

    async def _restore(self, conversation_id: str) -> None:
        await self._engine.store.restore_conversation(conversation_id)
        self.restored.emit(conversation_id)
        await self._open_requested(conversation_id)
        await self._refresh()
        await self.trash.refresh()


@dataclass(frozen=True)
class _EventListener:
    """Hands the events of a session to the library. Two for one session are equal, so that one replaces the other."""

    library: ConversationLibrary
    session: "Session"

    def __call__(self, envelope: Envelope) -> None:
        self.library.on_event(self.session, envelope)


def subscribe_library(library: ConversationLibrary, session: "Session") -> None:
    """Let the library handle the events of a session, shown or not. Harmless when repeated."""
    listener = _EventListener(library, session)
    session.unsubscribe(listener)
    session.subscribe(on_event=listener, pieces=False)


def _refuse_found(conversation_id: str) -> None:
    """Raise WrongUse for a conversation of another program."""
    if is_found_id(conversation_id):
        raise WrongUse("This conversation of another program is only read here.", "Continue it here, then change it.")


def _why_held(error: StorageFailed) -> Sentence:
    """Return why nothing can be sent, and what the person can do meanwhile."""
    if not isinstance(error, ConversationInUse):
        return error.whole
    template = "{who} What it writes is shown here; you can send again when it has ended."
    return Sentence(template, {"who": error.sentence})


async def resolve_workspace(folder: Path) -> Path | None:
    """Return the folder that is stored for one that a person chooses, as `resolve_chosen`; it may be on a slow disk."""
    return await asyncio.to_thread(resolve_chosen, folder)


async def find_first_shown(store: "Store", last: str) -> str:
    """Return the conversation that a start shows: `last` if it is still there, else the newest; "" if there is none."""
    try:
        if last and (await store.record(last)).deleted_at is None:
            return last
    except WrongUse:
        pass  # It is gone for good.
    records = await store.list_conversations(1, scope=ListScope(archived=False))
    return records[0].id if records else ""
