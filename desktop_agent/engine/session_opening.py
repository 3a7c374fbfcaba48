"""The ways to open a session besides a new one: stored, followed while another process writes it, in memory only."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Unpack

from desktop_agent.engine.recovery import mark_run_ended, recover
from desktop_agent.engine.session import Session
from desktop_agent.engine.session_controls import SessionSetup
from desktop_agent.engine.session_writer import SessionWriter
from desktop_agent.storage.conversation_locks import ConversationLock
from desktop_agent.storage.journal_queue import JournalQueue
from desktop_agent.storage.journal_rows import NewRows, ReadPosition
from desktop_agent.storage.records import ConversationChanges, ConversationRecord
from desktop_agent.storage.store import Store
from desktop_agent.storage.write_behind import conversation_closed_error
from desktop_agent.types.engine_events import (
    ApprovalRequested,
    ApprovalResolved,
    Envelope,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnStarted,
)
from desktop_agent.types.errors import DatabaseBusy, DatabaseReplaced, RemedyAction, Sentence, StorageFailed, WrongUse
from desktop_agent.types.messages import Message, new_id, now
from desktop_agent.types.permissions import Rule


class InMemoryJournal:
    """Takes all that a ledger takes and keeps none of it; it is never in trouble."""

    def __init__(self, record: ConversationRecord, *, is_new: bool = True) -> None:
        self.record = record
        self._is_new = is_new
        self._is_closed = False

    @property
    def is_new(self) -> bool:
        """Whether nothing was said yet."""
        return self._is_new

    @property
    def is_flushed(self) -> bool:
        """Always: nothing waits."""
        return True

    @property
    def unwritten(self) -> None:
        """Nothing is refused."""

    async def write_all(self) -> None:
        """Return at once."""

    async def write_at_once(self) -> None:
        """Return at once."""

    def on_trouble(self, listener: Callable[[StorageFailed | None], None]) -> None:
        """There is none."""

    def on_pending_change(self, watcher: Callable[[], None]) -> None:
        """There is none."""

    def add_event(self, envelope: Envelope) -> None:
        """Nothing reads a journal that no process outlives."""

    async def flush(self) -> None:
        """Return at once."""

    async def commit(self, *messages: Message) -> None:
        """The writer remembers them."""
        self.add_messages(*messages)

    def add_messages(self, *messages: Message) -> None:
        """The writer remembers them."""
        self._is_new = self._is_new and not messages

    async def finish_run(self, run_id: str) -> None:
        """There are no pieces."""

    def finish_run_soon(self, run_id: str) -> None:
        """There are no pieces."""

    def change_record(self, **changes: Unpack[ConversationChanges]) -> None:
        """Hold it while the conversation is open."""
        self.record = replace(self.record, **changes)

    def save_rule(self, rule: Rule) -> None:  # noqa: ARG002
        """The standing holds it while the conversation is open. Raises WrongUse after that."""
        self._refuse_when_closed()

    def delete_rule(self, rule_id: str) -> None:  # noqa: ARG002
        """The standing has forgotten it. Raises WrongUse when the conversation is closed."""
        self._refuse_when_closed()

    def mark_rule_used(self, rule_id: str, at: datetime) -> None:
        """Nobody will ask."""

    async def close(self) -> None:
        """Nothing is left to write."""
        self._is_closed = True

    def _refuse_when_closed(self) -> None:
        if self._is_closed:
            raise conversation_closed_error()


def in_memory_session(setup: SessionSetup, *, model: str, messages: Sequence[Message] = ()) -> Session:
    """A conversation in memory, with these messages to begin with, which are looked at before. For faces."""
    moment = now()
    record = ConversationRecord(id=new_id(), title="", created_at=moment, updated_at=moment, model=model)
    return Session(SessionWriter(InMemoryJournal(record), messages), setup)


# Seconds between two looks; a look at which nothing was written asks the database one question.
POLL_SECONDS = 0.3
_CALL_EVENTS = ApprovalRequested | ApprovalResolved | ToolStarted | ToolProgress | ToolFinished


class ConversationFollower:
    """Shows what another process writes. `session` is closed to every change; what it raises then says why."""

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
        """Show what comes, until the conversation has to be opened anew, or `stop`.

        Its owner is gone or another one, or what is there now does not go on from what is shown, also in another file;
        where nothing could be written, it can be now. Raises StorageFailed, and WrongUse when the conversation was
        removed.
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
        """Show nothing more."""
        self._is_stopped = True

    def _apply(self, news: NewRows) -> None:
        self._position = news.position
        self._writer.journal_queue.change_record(title=news.record.title)
        new = list(news.messages)
        committed = [message.id for message in new]
        for envelope in news.envelopes:
            event = envelope.event
            if isinstance(event, TurnStarted) and envelope.parent_run_id is None:
                # What was said before an answer stands before it.
                until = committed.index(event.message_id) if event.message_id in committed else len(committed)
                count = len(new) - (len(committed) - until)
                self._writer.adopt_messages(new[: max(count, 0)])
                del new[: max(count, 0)]
            self._writer.replay(envelope)
        self._writer.adopt_messages(new)


async def follow_conversation(
    store: Store, conversation_id: str, setup: SessionSetup, held: StorageFailed, lock: ConversationLock
) -> ConversationFollower:
    """Begin to follow; nothing is written. Raises WrongUse and StorageFailed."""
    loaded, position = await store.begin_following(conversation_id)
    writer = SessionWriter(InMemoryJournal(loaded.record, is_new=False), loaded.messages, is_followed=True)
    for envelope in _unfinished_turn(loaded.messages, loaded.journal):
        writer.replay(envelope)
    return ConversationFollower(store, Session(writer, setup, held=held), writer, lock, position)


def _unfinished_turn(messages: Sequence[Message], journal: Sequence[Envelope]) -> Iterator[Envelope]:
    """Of the turn that goes on: all of an answer that is not committed, of one that is what became of its calls."""
    turns = [each for each in journal if isinstance(each.event, TurnStarted) and each.parent_run_id is None]
    if not turns or not isinstance(turns[-1].event, TurnStarted):
        return
    turn = turns[-1]
    is_committed = turns[-1].event.message_id in {message.id for message in messages}
    yield turn
    for envelope in sorted(journal, key=lambda each: each.at):
        if envelope.run_id == turn.run_id and envelope.seq <= turn.seq:
            continue
        if envelope.at < turn.at and envelope.parent_run_id is not None:
            continue
        if envelope.run_id == turn.run_id and is_committed and not isinstance(envelope.event, _CALL_EVENTS):
            continue
        yield envelope


MESSAGE_WAITS = Sentence("A message waits to be sent.")


async def reopen_session(
    store: Store,
    conversation_id: str,
    setup: SessionSetup,
    busy: set[Session] | None = None,
    lock: ConversationLock | None = None,
) -> Session:
    """The conversation, with its open calls where it can be gone on with. Raises WrongUse and StorageFailed.

    Where other processes may be at work `lock` is held: a run is put in order only when nobody works on it any more.
    """
    loaded = await store.load(conversation_id)
    if loaded.record.deleted_at is not None:
        # Emptying the trash looks at no locks: nobody is at work in there.
        raise WrongUse("This conversation is in the trash.", "Restore it first.")
    recovery = recover(loaded.messages, loaded.journal, loaded.record.state.stopped_run, loaded.below)
    journal_queue = JournalQueue(store, loaded.record, is_new=False, lock=lock)
    writer = SessionWriter(journal_queue, (*loaded.messages, *recovery.messages))
    # By the writer: a disk that refuses keeps nobody from reading, and is tried again.
    await writer.write(*recovery.messages)
    for last in recovery.ended:
        mark_run_ended(writer, last)
    for envelope in recovery.open_calls.shown_events if recovery.open_calls is not None else ():
        writer.replay(envelope)
    session = Session(writer, setup, open_calls=recovery.open_calls, busy=busy)
    if session.queue.entries and not session.can_resume:
        writer.show_notice(MESSAGE_WAITS, RemedyAction.RETRY)
    await journal_queue.write_all()
    return session
