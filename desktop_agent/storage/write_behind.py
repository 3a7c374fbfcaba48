"""Writes made soon, in order, retried after the disk refused; and a readable file of what was never stored.

The file is Markdown: for each conversation its messages, for people, and after them one fenced block of JSON lines
with all that is needed to restore it: a line `{"conversation": …}`, a line `{"message": …}` for each message of the
branch, and a line `{"event": …}` for each journal row that was not written. The draft comes at the end; where there
are pictures in it, a block with one line `{"draft": …}`, a message, has them.
"""

import asyncio
import json
import logging
import re
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from desktop_agent.processes.foreign_code import notify, safe_traceback
from desktop_agent.storage.records import ConversationRecord, event_to_json, message_to_json
from desktop_agent.types.blocks import Block, Image, Json, Summary, Text, Thinking, ToolResult, ToolUse
from desktop_agent.types.engine_events import Envelope
from desktop_agent.types.errors import DatabaseReplaced, Sentence, StorageFailed, WrittenElsewhere, WrongUse
from desktop_agent.types.messages import Message

_log = logging.getLogger(__name__)
Write = TypeVar("Write")

# Streamed text reaches the disk at least this often, in seconds: twice as often as promised.
FLUSH_INTERVAL = 0.25
# What the disk refused is tried again after so many seconds, or with the next write.
RETRY_SECONDS = 3.0
# After these a conversation writes nothing more; it has to be opened again.
OVERTAKEN = (WrittenElsewhere, DatabaseReplaced)


def conversation_closed_error() -> WrongUse:
    """Return the error for a use of a closed conversation."""
    return WrongUse("This conversation is closed.", "Open it again, and go on there.")


def _permanent_failure(error: Exception) -> StorageFailed:
    _log.error("a part of the conversation could not be written: %s", safe_traceback(error))
    kind = type(error).__name__
    return StorageFailed(Sentence("A part of the conversation could not be written ({kind}).", {"kind": kind}))


class WriteBehind(ABC, Generic[Write]):
    """A queue of writes. What the disk refuses is kept in memory and retried with the next write, and after a moment.

    After WrittenElsewhere nothing is written any more: it would mix with what another process writes. Nor after
    DatabaseReplaced: the new file does not hold what it would continue. Unless `is_stored`, nothing is ever written.
    """

    def __init__(self, *, is_stored: bool = True) -> None:
        self.is_stored = is_stored
        self._pending: deque[Write] = deque()
        self._current_write: Write | None = None
        """What is being written just now."""
        self._lock = asyncio.Lock()
        self._flush_timer: asyncio.TimerHandle | None = None
        self._retry_timer: asyncio.TimerHandle | None = None
        self._flushing: asyncio.Task[None] | None = None
        self.trouble: StorageFailed | None = None
        """The last error of the disk, or why something can never be written; None while writing works."""
        self.lost_write_error: StorageFailed | None = None
        """Why something can never be written, from the first such write on."""
        self._lost_writes = self._reported_losses = 0
        self._overtaken: WrittenElsewhere | DatabaseReplaced | None = None
        self._is_closed = False
        self._trouble_listeners: list[Callable[[StorageFailed | None], None]] = []
        self._watchers: list[Callable[[], None]] = []

    @property
    def is_flushed(self) -> bool:
        return not self._pending and not self._lock.locked()

    def on_trouble(self, listener: Callable[[StorageFailed | None], None]) -> None:
        """Call `listener` when writing begins to fail, when it ends for good (OVERTAKEN), and with None at recovery."""
        self._trouble_listeners.append(listener)

    def on_pending_change(self, watcher: Callable[[], None]) -> None:
        """Call `watcher` when something waits to be written, and after each attempt to write it."""
        self._watchers.append(watcher)

    async def flush(self) -> None:
        """Return when everything so far is durable. Raises StorageFailed, also for what was lost since the last time.

        Every caller that waits while something is lost gets the error: an effect of each may rest on it. When the
        caller is cancelled, the writing goes on: half a write would be made twice.
        """
        known = self._reported_losses
        trouble = await self._write_shielded()
        lost = self.lost_write_error if self._lost_writes > known else None
        self._reported_losses = self._lost_writes
        if (fault := trouble or lost) is not None:
            raise fault

    async def write_all(self) -> None:
        """Write what waits; a refusal is reported to the listeners for trouble, not raised."""
        await self._write_shielded()

    async def write_at_once(self) -> None:
        """Write on any loop, without taking turns: the program ends, and its own loop has stopped.

        A write in progress is repeated, which is harmless: only the other loop would receive its result. Raises
        StorageFailed, and what else makes a write impossible.
        """
        if self._current_write is not None:
            self._pending.appendleft(self._current_write)
            self._current_write = None
        while self._pending:
            try:
                await self._prepare(self._pending[0])
            except OVERTAKEN:
                raise  # somebody else writes there now
            except Exception:  # noqa: BLE001, S110 - what the other loop had prepared or handed to the disk is done already
                pass
            write = self._pending.popleft()
            try:
                await self._write(write)
            except BaseException:
                self._pending.appendleft(write)
                raise

    async def _write_shielded(self) -> StorageFailed | None:
        if not self.is_stored:
            return None
        writing = asyncio.create_task(self._write_in_turn())
        writing.add_done_callback(lambda _: self._notify_watchers())
        return await asyncio.shield(writing)

    async def close(self) -> None:
        """Write what is left and stop the timer; later writes raise WrongUse. Harmless when repeated."""
        self._stop_timer()
        if self._flushing is not None:
            await self._flushing
        await self.write_all()
        self._is_closed = True

    def _append(self, write: Write) -> None:
        """Queue a write for the next attempt. Raises WrongUse when it is closed."""
        if self._is_closed:
            raise conversation_closed_error()
        if self._overtaken is not None or not self.is_stored:
            return
        self._pending.append(write)
        if len(self._pending) == 1:
            self._notify_watchers()

    def _schedule_write(self) -> None:
        if self._flush_timer is None:
            self._flush_timer = asyncio.get_running_loop().call_later(FLUSH_INTERVAL, self._write_now)

    def _write_soon(self, write: Write) -> None:
        self._append(write)
        if self._pending:
            self._write_now()

    def _write_now(self) -> None:
        self._stop_timer()
        if self._flushing is None or self._flushing.done():
            self._flushing = asyncio.create_task(self.write_all())
        else:
            # It may have checked for the last time already.
            self._schedule_write()

    def _stop_timer(self) -> None:
        if self._flush_timer is not None:
            self._flush_timer.cancel()
            self._flush_timer = None
        if self._retry_timer is not None:
            self._retry_timer.cancel()
            self._retry_timer = None

    def _notify_watchers(self) -> None:
        for watcher in tuple(self._watchers):
            notify(watcher)

    async def _write_in_turn(self) -> StorageFailed | None:
        async with self._lock:
            trouble: StorageFailed | None = self._overtaken
            try:
                trouble = await self._write_pending() or trouble
            except OVERTAKEN as error:
                trouble = self._overtaken = self.lost_write_error = error
                self._pending.clear()
            except StorageFailed as error:
                trouble = error
            except Exception as error:  # noqa: BLE001 - callers that wait for the writing get every error the same way
                trouble = _permanent_failure(error)
            self._update_trouble(trouble)
            if self._pending and trouble is not None and not self._is_closed and self._retry_timer is None:
                self._retry_timer = asyncio.get_running_loop().call_later(RETRY_SECONDS, self._write_now)
            return trouble

    def _update_trouble(self, trouble: StorageFailed | None) -> None:
        # A later write that succeeds does not save what can never be written.
        before, self.trouble = self.trouble, trouble or self.lost_write_error
        # Being overtaken is the end, whatever the disk refused before.
        is_the_end = isinstance(self.trouble, OVERTAKEN) and self.trouble is not before
        if is_the_end or (self.trouble is None) != (before is None):
            for listener in tuple(self._trouble_listeners):
                notify(listener, self.trouble)

    async def _write_pending(self) -> StorageFailed | None:
        """Write all that waits. What can never be written does not hold up the rest; its error is returned last."""
        trouble: StorageFailed | None = None
        while self._pending:
            await self._prepare(self._pending[0])
            # Taken out first, so that events noted meanwhile are not joined to what is being written.
            write = self._current_write = self._pending.popleft()
            try:
                await self._write(write)
            except (StorageFailed, asyncio.CancelledError):
                self._pending.appendleft(write)
                raise
            except Exception as error:  # noqa: BLE001 - see above
                self._on_write_lost(write)
                # The next caller of flush must get it: its next effect may rest on it.
                self._lost_writes += 1
                trouble = self.lost_write_error = _permanent_failure(error)
            finally:
                self._current_write = None
        return trouble

    @abstractmethod
    async def _prepare(self, write: Write) -> None:
        """Do what must be done before this write. Raises StorageFailed."""

    @abstractmethod
    async def _write(self, write: Write) -> None:
        """Make one write. Raises StorageFailed where it is worth a retry."""

    @abstractmethod
    def _on_write_lost(self, write: Write) -> None:
        """Handle a write that can never be made."""


_SPEAKER_NAMES = {"user": "You", "assistant": "Model", "tool": "Tools", "system": "Program"}
_BACKTICKS = re.compile("`+")


@dataclass(frozen=True, slots=True)
class UnsavedConversation:
    """One conversation: all messages of its branch, and the journal rows that still wait.

    `reason` is the disk's last error.
    """

    record: ConversationRecord
    messages: tuple[Message, ...]
    events: tuple[Envelope, ...]
    reason: StorageFailed


def unsaved_as_markdown(unsaved: Sequence[UnsavedConversation], draft: Message | None = None) -> str:
    """Return the file. `draft` is what was being written and could not be stored either."""
    parts = [part for conversation in unsaved for part in _conversation_parts(conversation)]
    if draft is not None:
        parts += ["# What was being written", *filter(None, map(_block_text, draft.blocks))]
        if any(isinstance(block, Image) for block in draft.blocks):
            parts.append(_fenced(f'{{"draft": {message_to_json(draft)}}}'))
    return "\n\n".join(parts) + "\n"


def _conversation_parts(unsaved: UnsavedConversation) -> Iterator[str]:
    yield f"# {unsaved.record.title}"
    for message in unsaved.messages:
        yield f"## {_SPEAKER_NAMES[message.role.value]}"
        yield from filter(None, map(_block_text, message.blocks))
    yield _fenced("\n".join(_json_lines(unsaved)))


def _fenced(lines: str) -> str:
    # A fence is longer than any run of backticks inside it (CommonMark, section 4.5).
    fence = "`" * max(3, 1 + max(map(len, _BACKTICKS.findall(lines)), default=0))
    return f"{fence}jsonl\n{lines}\n{fence}"


def _block_text(block: Block | Json) -> str:
    match block:
        case Text() | Summary():
            return block.text
        case Thinking():
            return "\n".join(f"> {line}" for line in block.text.splitlines())
        case ToolUse():
            return f"Tool call `{block.name}`: {_to_json(block.input)}"
        case ToolResult():
            return "\n".join(filter(None, map(_block_text, block.content)))
        case Image():
            return f"(a picture: {block.name or 'without a name'})"
        case Json():
            return _to_json(block.value)
        case _:
            return ""


def _json_lines(unsaved: UnsavedConversation) -> Iterator[str]:
    record = unsaved.record
    about = {"id": record.id, "title": record.title, "model": record.model, "workspace": record.workspace}
    yield _to_json({"conversation": about})
    for message in unsaved.messages:
        yield f'{{"message": {message_to_json(message)}}}'
    for row in unsaved.events:
        place = {"run": row.run_id, "seq": row.seq, "at": row.at.isoformat()}
        yield f'{{"event": {event_to_json(row.event)}, "place": {_to_json(place)}}}'


def _to_json(value: Any) -> str:
    return json.dumps(value, default=str)
