"""The ways to open a session besides a new one: stored, followed while another process writes it, in memory only."""

import asyncio
from collections.abc import Iterator, Sequence

from desktop_agent.conversation.answer_builder import add_usage
from desktop_agent.engine.history_loader import FIRST_PART
from desktop_agent.engine.recovery import mark_run_ended, recover
from desktop_agent.engine.session import Session
from desktop_agent.engine.session_controls import SessionSetup
from desktop_agent.engine.session_writer import SessionWriter
from desktop_agent.storage.journal_queue import JournalQueue
from desktop_agent.storage.journal_rows import NewRows, ReadPosition
from desktop_agent.storage.locks.conversation_locks import ConversationLock
from desktop_agent.storage.records import ConversationRecord
from desktop_agent.storage.store import Store
from desktop_agent.types.conversation_tree import ConversationTree
from desktop_agent.types.engine_events import (
    ApprovalRequested,
    ApprovalResolved,
    Envelope,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnStarted,
)
from desktop_agent.types.errors import DatabaseBusy, DatabaseReplaced, StorageFailed, WrongUse
from desktop_agent.types.messages import Message, new_id, now


def in_memory_session(setup: SessionSetup, *, model: str, messages: Sequence[Message] = ()) -> Session:
    """Return a conversation in memory, beginning with these messages, which the caller has validated."""
    moment = now()
    record = ConversationRecord(id=new_id(), title="", created_at=moment, updated_at=moment, model=model)
    return Session(SessionWriter(JournalQueue(None, record, is_new=True), messages), setup)


def new_in_memory_session(record: ConversationRecord, store: Store, setup: SessionSetup) -> Session:
    """Return a new conversation in memory; of its standing rules `store` gets those that hold beyond it."""
    rules = JournalQueue(store, record, is_new=True)
    return Session(SessionWriter(JournalQueue(None, record, is_new=True), rule_queue=rules), setup)


async def store_session(store: Store, session: Session) -> None:
    """Store a conversation that was in memory alone, all or nothing, and close the session.

    It refuses changes meanwhile. Raises WrongUse while it works, and StorageFailed; it stays as it is then.
    """
    if session.working:
        raise WrongUse("The model is still working.", "Wait, or press Stop first.")
    if store.read_only is not None:
        raise store.read_only
    record = session.record
    session.blocked_by = WrongUse("This conversation is being stored just now.", "Wait a moment.")
    try:
        await store.import_tree(
            session.branches.tree,
            endpoint_id=record.endpoint_id,
            reasoning=record.reasoning,
            parameters=record.parameters,
            state=record.state,
        )
        await session.close()
    finally:
        session.blocked_by = None


def read_only_session(setup: SessionSetup, tree: ConversationTree, held: StorageFailed) -> Session:
    """Return a conversation in memory that shows any of its branches, and is closed to all else: `held` says why."""
    record = ConversationRecord(
        id=tree.id,
        title=tree.title,
        created_at=tree.created_at,
        updated_at=tree.updated_at,
        model=tree.model,
        workspace=tree.workspace,
        origin=tree.origin,
    )
    queue = JournalQueue(None, record, is_new=True)
    writer = SessionWriter(queue, tree.branch(), tree.branch_points(), nodes=tree.messages, is_followed=True)
    return Session(writer, setup, held=held)


# Seconds between two polls; a poll without news costs one query.
POLL_SECONDS = 0.3
_CALL_EVENTS = ApprovalRequested | ApprovalResolved | ToolStarted | ToolProgress | ToolFinished


class ConversationFollower:
    """Shows a conversation that another process writes. `session` is closed to every change; its WrongUse says why."""

    def __init__(
        self, store: Store, session: Session, writer: SessionWriter, lock: ConversationLock, position: ReadPosition
    ) -> None:
        self.session = session
        self._store = store
        self._writer = writer
        self._lock = lock
        self._position = position
        self._is_stopped = False

    async def run_until_free(self) -> None:
        """Show new events until the conversation must be opened anew, or `stop`.

        Its owner is gone or another one, what is stored does not continue what is shown, the file was replaced, or a
        read-only folder can be written now. Raises StorageFailed, and WrongUse when the conversation was removed.
        """
        owner = await self._lock.holder()
        while not self._is_stopped:
            await asyncio.sleep(POLL_SECONDS)
            try:
                news = await self._store.news(self._writer.record.id, self._position)
            except DatabaseReplaced:
                return
            except DatabaseBusy:
                continue
            if self._is_stopped or (news is not None and not news.is_continued):
                return
            if news is not None:
                self._apply(news)
            now = await self._lock.holder()
            if (now is not None and now != owner) or await self._is_free():
                return

    async def _is_free(self) -> bool:
        if self._store.read_only is not None:
            return False
        try:
            return await self._lock.is_free()
        except StorageFailed:
            return False

    def stop(self) -> None:
        """Stop following."""
        self._is_stopped = True

    def _apply(self, news: NewRows) -> None:
        self._position = news.position
        self._writer.journal_queue.change_record(title=news.record.title)
        new = list(news.messages)
        committed = [message.id for message in new]
        for envelope in news.envelopes:
            event = envelope.event
            if isinstance(event, TurnStarted) and envelope.parent_run_id is None:
                # Messages before an answer come before it.
                until = committed.index(event.message_id) if event.message_id in committed else len(committed)
                count = len(new) - (len(committed) - until)
                self._writer.adopt_messages(new[: max(count, 0)])
                del new[: max(count, 0)]
            self._writer.show_event(envelope)
        self._writer.adopt_messages(new)


async def follow_conversation(
    store: Store, conversation_id: str, setup: SessionSetup, held: StorageFailed, lock: ConversationLock
) -> ConversationFollower:
    """Begin to follow; nothing is written. Raises WrongUse and StorageFailed.

    Earlier messages may be left on the disk: see Session.history_loader.
    """
    loaded, position = await store.begin_following(conversation_id, FIRST_PART)
    journal_queue = JournalQueue(None, loaded.record, is_new=False)
    writer = SessionWriter(journal_queue, loaded.messages, above=loaded.part.above, is_followed=True)
    for envelope in _unfinished_turn(loaded.messages, loaded.journal):
        writer.show_event(envelope)
    return ConversationFollower(store, Session(writer, setup, held=held), writer, lock, position)


def _unfinished_turn(messages: Sequence[Message], journal: Sequence[Envelope]) -> Iterator[Envelope]:
    """Yield the events of the current turn: a whole uncommitted answer, or what became of a committed one's calls."""
    turns = [
        envelope for envelope in journal if isinstance(envelope.event, TurnStarted) and envelope.parent_run_id is None
    ]
    if not turns or not isinstance(turns[-1].event, TurnStarted):
        return
    turn = turns[-1]
    is_committed = turns[-1].event.message_id in {message.id for message in messages}
    yield turn
    for envelope in sorted(journal, key=lambda row: row.at):
        if envelope.run_id == turn.run_id and envelope.seq <= turn.seq:
            continue
        if envelope.at < turn.at and envelope.parent_run_id is not None:
            continue
        if envelope.run_id == turn.run_id and is_committed and not isinstance(envelope.event, _CALL_EVENTS):
            continue
        yield envelope


async def reopen_session(
    store: Store,
    conversation_id: str,
    setup: SessionSetup,
    busy: set[Session] | None = None,
    lock: ConversationLock | None = None,
    *,
    whole: bool = True,
) -> Session:
    """Return the stored conversation, with its open calls where they can be resumed. Raises WrongUse and
    StorageFailed.

    Unless it is wanted `whole`, its earlier messages may be left on the disk: see Session.history_loader.

    With other processes around, `lock` is held: a run is recovered only when nobody works on it any more.
    """
    loaded = await store.load(conversation_id, None if whole else FIRST_PART)
    if loaded.record.deleted_at is not None:
        # Emptying the trash ignores locks: nobody is at work in there.
        raise WrongUse("This conversation is in the trash.", "Restore it first.")
    stopped_run = loaded.record.state.stopped_run
    recovery = recover(loaded.messages, loaded.journal, stopped_run, loaded.below, loaded.earlier)
    journal_queue = JournalQueue(store, loaded.record, is_new=False, lock=lock)
    writer = SessionWriter(
        journal_queue, (*loaded.messages, *recovery.messages), loaded.part.branch_points, loaded.part.above
    )
    # By the writer: a disk that refuses prevents nobody from reading, and is retried.
    await writer.write(*recovery.messages)
    if setup.spending is not None:
        for message in recovery.messages:
            setup.spending.count_recovered(loaded.record, message.model, message.usage)
        setup.spending.count_recovered(loaded.record, None, recovery.specialist_usage)
    if recovery.specialist_usage is not None:
        used = add_usage(writer.record.state.specialist_usage, recovery.specialist_usage)
        journal_queue.change_record(state=writer.record.state.model_copy(update={"specialist_usage": used}))
    for last in recovery.ended:
        mark_run_ended(writer, last)
    for envelope in recovery.open_calls.shown_events if recovery.open_calls is not None else ():
        writer.show_event(envelope)
    session = Session(writer, setup, open_calls=recovery.open_calls, busy=busy)
    if not session.can_resume:
        writer.show_waiting(session.queue.entries)
    await journal_queue.write_all()
    return session
