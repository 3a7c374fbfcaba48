"""A conversation that another process writes, or that nobody can write, read along."""

import asyncio
from collections.abc import Iterator, Sequence

from desktop_agent.engine.session import Session
from desktop_agent.engine.session_parts.setup import SessionSetup
from desktop_agent.engine.unkept import InMemoryJournal
from desktop_agent.engine.writer import SessionWriter
from desktop_agent.storage.conversation_locks import ConversationLock
from desktop_agent.storage.database.following import NewRows, ReadPosition
from desktop_agent.storage.store import Store
from desktop_agent.vocabulary.engine_events import (
    ApprovalRequested,
    ApprovalResolved,
    Envelope,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnStarted,
)
from desktop_agent.vocabulary.errors import DatabaseBusy, DatabaseReplaced, StorageFailed
from desktop_agent.vocabulary.messages import Message

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
