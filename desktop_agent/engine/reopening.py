"""Opens a stored conversation; what a dead process left is put in order first."""

from desktop_agent.engine.ledger import JournalQueue
from desktop_agent.engine.session import Session
from desktop_agent.engine.session_parts.recovery import mark_run_ended, recover
from desktop_agent.engine.session_parts.setup import SessionSetup
from desktop_agent.engine.writer import SessionWriter
from desktop_agent.storage.conversation_locks import ConversationLock
from desktop_agent.storage.store import Store
from desktop_agent.vocabulary.errors import RemedyAction, Sentence, WrongUse

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
