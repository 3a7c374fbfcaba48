"""The journal queue: the writes of one conversation, in order, retried after a failure, never made twice."""

from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Unpack, cast

from desktop_agent.storage.conversation_rows import RuleRows
from desktop_agent.storage.file_lock import RetakeResult
from desktop_agent.storage.journal_rows import written_elsewhere_error
from desktop_agent.storage.locks.conversation_locks import ConversationLock
from desktop_agent.storage.records import ConversationChanges, ConversationRecord, ConversationState
from desktop_agent.storage.store import Store
from desktop_agent.storage.write_behind import WriteBehind
from desktop_agent.types.engine_events import Envelope, RunFinished
from desktop_agent.types.errors import StorageFailed
from desktop_agent.types.messages import Message, Role
from desktop_agent.types.permissions import Rule
from desktop_agent.types.pieces import Piece, append_text, text_key, text_of
from desktop_agent.types.provider_events import ThinkingDelta, ToolArgsDelta


class _PendingRows:
    """Rows to be written. Neighbouring pieces of the same text are one row: they are joined once, at the end."""

    def __init__(self) -> None:
        self._rows: list[Envelope] = []
        self._key: Hashable = None  # of the text that the last row is a piece of
        self._pieces: list[str] = []
        self._newest: Envelope | None = None  # whose piece is the last

    def add(self, envelope: Envelope) -> None:
        event, key = envelope.event, text_key(envelope.event)
        if key is None or (envelope.run_id, envelope.turn_id, key) != self._key:
            self._join()
            self._rows.append(envelope)
            self._key = None if key is None else (envelope.run_id, envelope.turn_id, key)
            return
        self._pieces.append(text_of(cast("Piece", event)))
        self._newest = envelope
        last = self._rows[-1]
        if isinstance(event, ToolArgsDelta) and isinstance(last.event, ToolArgsDelta) and not last.event.name:
            # The name of a call may come late.
            self._rows[-1] = replace(last, event=replace(last.event, name=event.name))

    def rows(self) -> list[Envelope]:
        self._join()
        return self._rows

    def _join(self) -> None:
        if self._newest is not None:
            last, newest = self._rows[-1], self._newest
            # Of thinking the earlier moment counts: its time is measured from its first piece.
            moment = last.at if isinstance(last.event, ThinkingDelta) else newest.at
            event = append_text(cast("Piece", last.event), "".join(self._pieces))
            self._rows[-1] = replace(last, seq=newest.seq, at=moment, event=event)
            self._pieces.clear()
            self._newest = None


@dataclass(frozen=True, slots=True)
class _CommitMessages:
    """Messages, and the rows that were to be written just before them."""

    messages: tuple[Message, ...]
    journal: _PendingRows | None = None


@dataclass(frozen=True, slots=True)
class _FinishRun:
    run_id: str


@dataclass(frozen=True, slots=True)
class _ChangeRecord:
    changes: ConversationChanges


@dataclass(frozen=True, slots=True)
class _DeleteMessages:
    root_id: str
    changes: ConversationChanges


@dataclass(frozen=True, slots=True)
class _ChangeRules:
    make: Callable[[RuleRows], Awaitable[None]]


_Write = _PendingRows | _CommitMessages | _FinishRun | _ChangeRecord | _DeleteMessages | _ChangeRules


class _OwnerLock:
    """The lock of a conversation that is written here; `lock` is None where nobody competes."""

    def __init__(self, store: Store | None, record: ConversationRecord, lock: ConversationLock | None) -> None:
        self._store = store
        self._conversation_id = record.id
        self._lock = lock
        # The heads that this process may have written.
        self.own_heads = {record.head_message_id}
        self._is_in_doubt = False

    async def acquire(self) -> None:
        if self._lock is not None:
            await self._lock.acquire()

    async def release(self) -> None:
        if self._lock is not None:
            await self._lock.release()

    def note_changes(self, changes: ConversationChanges) -> None:
        """Note the head that these changes set, before they are made."""
        if "head_message_id" in changes:
            self.own_heads.add(changes["head_message_id"])

    async def retake(self) -> None:
        """Retake a removed lock. Where another process may have written meanwhile, this one must not write any more."""
        if self._lock is None or self._store is None:
            return
        retaken = await self._lock.retake()
        if retaken is RetakeResult.REFUSED:
            raise written_elsewhere_error("its lock was removed and is held by another process")
        self._is_in_doubt = self._is_in_doubt or retaken is RetakeResult.DONE
        if self._is_in_doubt:
            if (await self._store.record(self._conversation_id)).head_message_id not in self.own_heads:
                raise written_elsewhere_error("its lock was removed and it has another newest message")
            self._is_in_doubt = False


class _StoreWriter:
    def __init__(self, store: Store, conversation_id: str, owner_lock: _OwnerLock) -> None:
        self._store = store
        self._id = conversation_id
        self._owner_lock = owner_lock
        self._has_lost_an_answer = False

    async def write(self, write: _Write) -> tuple[_Write, ...]:
        """Make one write. Where it has to be made in parts, return these, in order, and write nothing."""
        store = self._store
        match write:
            case _PendingRows():
                await store.append_journal(self._id, self._rows_of(write))
            case _CommitMessages():
                # Before the write: one that fails and is retried may have reached the disk.
                self._owner_lock.own_heads.update(message.id for message in write.messages)
                return await self._commit(write)
            case _ChangeRecord():
                self._owner_lock.note_changes(write.changes)
                await store.update_conversation(self._id, **write.changes)
            case _DeleteMessages():
                self._owner_lock.note_changes(write.changes)
                await store.branches.delete(self._id, write.root_id, **write.changes)
            case _FinishRun():
                if not self._has_lost_an_answer:
                    await store.finish_run(self._id, write.run_id)
            case _ChangeRules():
                await write.make(store.rules)
        return ()

    async def _commit(self, write: _CommitMessages) -> tuple[_Write, ...]:
        if write.journal is None:
            await self._store.commit(self._id, *write.messages)
            return ()
        try:
            await self._store.commit(self._id, *write.messages, envelopes=self._rows_of(write.journal))
        except StorageFailed:
            raise
        except Exception:  # noqa: BLE001 - which of the two can never be written shows when each is tried alone
            return write.journal, _CommitMessages(write.messages)
        return ()

    def on_lost(self, write: _Write) -> None:
        messages = write.messages if isinstance(write, _CommitMessages) else ()
        self._has_lost_an_answer |= any(message.role is Role.ASSISTANT for message in messages)

    def _rows_of(self, journal: _PendingRows) -> list[Envelope]:
        """Return the rows; without RunFinished once an answer is lost.

        Its streamed pieces are the only copy then, and the next opening reads the journal of unfinished runs alone.
        """
        rows = journal.rows()
        return [row for row in rows if not isinstance(row.event, RunFinished)] if self._has_lost_an_answer else rows


class JournalQueue(WriteBehind[_Write]):
    """The writes of one conversation. `lock` is held from the first write to the last; None where nobody competes.

    Without a `store` the conversation is in memory alone: nothing is written.
    """

    def __init__(
        self, store: Store | None, record: ConversationRecord, *, is_new: bool, lock: ConversationLock | None = None
    ) -> None:
        super().__init__(is_stored=store is not None)
        self._store = store
        self._owner_lock = _OwnerLock(store, record, lock)
        self._writer = None if store is None else _StoreWriter(store, record.id, self._owner_lock)
        self.record = record
        self.is_new = is_new
        """Whether the conversation was never written yet."""

    @property
    def unwritten(self) -> tuple[tuple[Envelope, ...], StorageFailed] | None:
        """Return the journal rows that the disk refused, and its last error; None where it refused nothing."""
        reason = self.lost_write_error or (self.trouble if self._pending else None)
        if reason is None:
            return None
        journals = [write.journal if isinstance(write, _CommitMessages) else write for write in self._pending]
        rows = [row for journal in journals if isinstance(journal, _PendingRows) for row in journal.rows()]
        return tuple(rows), reason

    def add_event(self, envelope: Envelope) -> None:
        """Journal the event soon. Neighbouring pieces of text are joined."""
        if not self.is_stored:
            return
        last = self._pending[-1] if self._pending else None
        if not isinstance(last, _PendingRows):
            last = _PendingRows()
            self._append(last)
        last.add(envelope)
        if self._flush_timer is None:
            self._schedule_write()

    async def commit(self, *messages: Message) -> None:
        """Write finished messages; a refusal is reported to the listeners for trouble, not raised."""
        self._append(self._commit_with_rows(messages))
        await self.write_all()

    async def finish_run(self, run_id: str) -> None:
        """Delete the streamed pieces of a run that is over."""
        self._append(_FinishRun(run_id))
        await self.write_all()

    def change_record(self, **changes: Unpack[ConversationChanges]) -> None:
        """Change the record; written with the next write, or right away when the conversation exists.

        A queued message is written right away in any case: it may be the only copy.
        """
        if "title" in changes:
            # As the store reads it.
            changes.setdefault("title_is_automatic", False)
        self.record = replace(self.record, **changes)
        has_begun = not self.is_new or any(not isinstance(write, _ChangeRules) for write in self._pending)
        if has_begun or self.record.state.queue:
            self._write_soon(_ChangeRecord(changes))

    def begin_in(self, folder: str) -> None:
        """Store the conversation in this folder, once it is stored."""
        self.record = replace(self.record, folder=folder)

    def delete_messages(self, root_id: str, **changes: Unpack[ConversationChanges]) -> None:
        """Delete soon a message with all that follow it on every branch, and make these changes with it."""
        self.record = replace(self.record, **changes)
        self._write_soon(_DeleteMessages(root_id, changes))

    def add_messages(self, *messages: Message) -> None:
        """Write finished messages soon."""
        self._write_soon(self._commit_with_rows(messages))

    def _commit_with_rows(self, messages: tuple[Message, ...]) -> _CommitMessages:
        """Write pending journal rows in the same transaction: each transaction waits for the disk."""
        if not self.is_stored:
            self.is_new = self.is_new and not messages
        last = self._pending[-1] if self._pending else None
        if not isinstance(last, _PendingRows):
            return _CommitMessages(messages)
        self._pending.pop()
        return _CommitMessages(messages, last)

    def finish_run_soon(self, run_id: str) -> None:
        """Delete the streamed pieces of a run soon."""
        self._write_soon(_FinishRun(run_id))

    def save_rule(self, rule: Rule) -> None:
        """Store a rule soon."""
        self._write_soon(_ChangeRules(lambda rules: rules.save(rule)))

    def delete_rule(self, rule_id: str) -> None:
        """Delete a rule soon."""
        self._write_soon(_ChangeRules(lambda rules: rules.delete(rule_id)))

    def mark_rule_used(self, rule_id: str, at: datetime) -> None:
        """Note soon when a rule last decided."""
        self._write_soon(_ChangeRules(lambda rules: rules.mark_used(rule_id, at)))

    async def flush(self) -> None:
        """As in WriteBehind. Once closed, it releases the lock when all is written."""
        await super().flush()
        if self._is_closed:
            await self._owner_lock.release()

    async def close(self) -> None:
        """As in WriteBehind. While something is left that cannot be written, the lock is held."""
        await super().close()
        if self.is_flushed:
            await self._owner_lock.release()

    async def _prepare(self, write: _Write) -> None:
        if not self.is_new:
            await self._owner_lock.retake()
            return
        # A rule needs no conversation on the disk, and an empty one would be listed.
        if self._store is None or isinstance(write, _ChangeRules):
            return
        record = self.record
        # Before another process can find it in the list.
        await self._owner_lock.acquire()
        await self._store.create_conversation(id_=record.id, folder=record.folder, **_listed_fields(record))
        self.is_new = False
        if self.record != record or self.record.state != ConversationState():
            self._pending.append(_ChangeRecord({**_listed_fields(self.record), "state": self.record.state}))

    async def _write(self, write: _Write) -> None:
        if self._writer is None:
            return
        self._pending.extendleft(reversed(await self._writer.write(write)))
        # The loop that was creating the conversation may have stopped before it noted that: it is there by now.
        self.is_new = self.is_new and isinstance(write, _ChangeRules)

    def _on_write_lost(self, write: _Write) -> None:
        if self._writer is not None:
            self._writer.on_lost(write)


def _listed_fields(record: ConversationRecord) -> ConversationChanges:
    return ConversationChanges(
        title=record.title,
        title_is_automatic=record.title_is_automatic,
        endpoint_id=record.endpoint_id,
        model=record.model,
        workspace=record.workspace,
        reasoning=record.reasoning,
        parameters=record.parameters,
    )
