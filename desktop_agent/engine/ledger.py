"""Keeps one conversation on disk: in order, again after a failure, never twice."""

import asyncio
import dataclasses
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypedDict, Unpack

from desktop_agent.storage.records import ConversationChanges, ConversationRecord
from desktop_agent.storage.store import Store
from desktop_agent.vocabulary.engine_events import Envelope, ToolProgress
from desktop_agent.vocabulary.errors import StorageFailed
from desktop_agent.vocabulary.messages import Message
from desktop_agent.vocabulary.provider_events import ContentDelta, ThinkingDelta, ToolArgsDelta
from desktop_agent.vocabulary.requests import Reasoning

_log = logging.getLogger(__name__)

# Streamed text reaches the disk at least this often, in seconds: twice as often as promised.
FLUSH_INTERVAL = 0.25


@dataclass(slots=True)
class _Journal:
    envelopes: list[Envelope]


@dataclass(frozen=True, slots=True)
class _Commit:
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class _FinishRun:
    run_id: str


@dataclass(frozen=True, slots=True)
class _ChangeRecord:
    changes: ConversationChanges


_Write = _Journal | _Commit | _FinishRun | _ChangeRecord


class Ledger:
    """The writes of one conversation. What the disk refuses is kept in memory and tried again with the next write.

    `on_trouble` is told once when writing begins to fail, and with None when it works again.
    """

    def __init__(
        self,
        store: Store,
        record: ConversationRecord,
        *,
        is_new: bool,
        on_trouble: Callable[[StorageFailed | None], None],
    ) -> None:
        self._store = store
        self.record = record
        self._is_new = is_new
        self._on_trouble = on_trouble
        self._pending: deque[_Write] = deque()
        self._lock = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._flushing: asyncio.Task[None] | None = None
        self._in_trouble = False
        self._has_lost_messages = False

    @property
    def is_new(self) -> bool:
        """Whether the conversation was never written yet."""
        return self._is_new

    def note(self, envelope: Envelope) -> None:
        """Journal this soon. Neighbouring pieces of text are joined."""
        last = self._pending[-1] if self._pending else None
        if not isinstance(last, _Journal):
            last = _Journal([])
            self._pending.append(last)
        joined = _joined(last.envelopes[-1], envelope) if last.envelopes else None
        if joined is not None:
            last.envelopes[-1] = joined
        else:
            last.envelopes.append(envelope)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(FLUSH_INTERVAL, self._flush_soon)

    def _flush_soon(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._flushing is None or self._flushing.done():
            self._flushing = asyncio.create_task(self._flush_quietly())
        else:
            # It may have looked for the last time already.
            self._timer = asyncio.get_running_loop().call_later(FLUSH_INTERVAL, self._flush_soon)

    async def _flush_quietly(self) -> None:
        try:
            await self.settle()
        except StorageFailed:
            return  # on_trouble has been told; the writes are kept

    async def settle(self) -> None:
        """Return when everything so far is durable. Raises StorageFailed.

        A caller that is cancelled leaves the writing to go on: half a write would be written twice.
        """
        trouble = await asyncio.shield(asyncio.create_task(self._write_in_turn()))
        if trouble is not None:
            raise trouble

    async def _write_in_turn(self) -> StorageFailed | None:
        async with self._lock:
            trouble: StorageFailed | None = None
            try:
                await self._write_pending()
            except StorageFailed as error:
                trouble = error
            except Exception as error:  # noqa: BLE001 - what can never be written must not hold up what can
                _log.exception("a part of the conversation could not be written")
                trouble = StorageFailed(f"A part of the conversation could not be written ({type(error).__name__}).")
            if (trouble is not None) != self._in_trouble:
                self._in_trouble = trouble is not None
                self._on_trouble(trouble)
            return trouble

    async def commit(self, *messages: Message) -> None:
        """Write finished messages; a refusal of the disk is told to `on_trouble`, not raised."""
        self._pending.append(_Commit(messages))
        await self._flush_quietly()

    async def finish_run(self, run_id: str) -> None:
        """The run is over: its pieces of text are no longer needed."""
        self._pending.append(_FinishRun(run_id))
        await self._flush_quietly()

    def change_record(self, **changes: Unpack[ConversationChanges]) -> None:
        """Change what is listed; written with whatever comes next, or right away when the conversation exists."""
        self.record = dataclasses.replace(self.record, **changes)
        if not self._is_new:
            self._pending.append(_ChangeRecord(changes))
            self._flush_soon()

    async def close(self) -> None:
        """Write what is left and stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._flushing is not None:
            await self._flushing
        await self._flush_quietly()

    async def _write_pending(self) -> None:
        if self._is_new and self._pending:
            await self._create()
        while self._pending:
            # Taken out first: what is noted meanwhile goes behind, not into, what is being written just now.
            write = self._pending.popleft()
            try:
                await self._write(write)
            except (StorageFailed, asyncio.CancelledError):
                self._pending.appendleft(write)
                raise
            except Exception:
                # The streamed pieces are then the only copy on disk.
                self._has_lost_messages = self._has_lost_messages or isinstance(write, _Commit)
                raise

    async def _create(self) -> None:
        record = self.record
        await self._store.create_conversation(id_=record.id, **_listed(record))
        self._is_new = False
        if self.record != record:
            self._pending.append(_ChangeRecord({**_listed(self.record)}))

    async def _write(self, write: _Write) -> None:
        match write:
            case _Journal():
                await self._store.append_journal(self.record.id, write.envelopes)
            case _Commit():
                await self._store.commit(self.record.id, *write.messages)
            case _ChangeRecord():
                await self._store.update_conversation(self.record.id, **write.changes)
            case _FinishRun() if self._has_lost_messages:
                return
            case _FinishRun():
                await self._store.finish_run(self.record.id, write.run_id)


class _Listed(TypedDict):
    title: str
    title_is_automatic: bool
    endpoint_id: str | None
    model: str | None
    workspace: str | None
    reasoning: Reasoning | None


def _listed(record: ConversationRecord) -> _Listed:
    return _Listed(
        title=record.title,
        title_is_automatic=record.title_is_automatic,
        endpoint_id=record.endpoint_id,
        model=record.model,
        workspace=record.workspace,
        reasoning=record.reasoning,
    )


def _joined(before: Envelope, after: Envelope) -> Envelope | None:
    """Two pieces of the same text as one event with the later number, or None."""
    a, b = before.event, after.event
    if before.turn_id != after.turn_id or before.run_id != after.run_id:
        return None
    if isinstance(a, ContentDelta) and isinstance(b, ContentDelta):
        is_one = a.phase == b.phase
        return dataclasses.replace(after, event=ContentDelta(a.text + b.text, a.phase)) if is_one else None
    if isinstance(a, ThinkingDelta) and isinstance(b, ThinkingDelta):
        # The earlier moment counts: thinking time is measured from its first piece.
        return dataclasses.replace(before, seq=after.seq, event=ThinkingDelta(a.text + b.text))
    if isinstance(a, ToolProgress) and isinstance(b, ToolProgress) and a.id == b.id:
        return dataclasses.replace(after, event=ToolProgress(a.id, a.text + b.text))
    if isinstance(a, ToolArgsDelta) and isinstance(b, ToolArgsDelta) and a.id == b.id:
        return dataclasses.replace(after, event=ToolArgsDelta(a.id, a.name or b.name, a.fragment + b.fragment))
    return None
