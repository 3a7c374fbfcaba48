"""Writes that are made soon, in order, and again after the disk refused; and the readable file for what it never took.

The file is Markdown: for each conversation what was said, for people, and behind it one fenced block of JSON lines with
all that is needed to restore it: a line `{"conversation": …}`, a line `{"message": …}` for each message of the branch,
and a line `{"event": …}` for each row of the journal that was not written. What was being written stands at the end;
where there are pictures in it, a block with one line `{"draft": …}`, a message, has them.
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
from desktop_agent.types.errors import DatabaseReplaced, StorageFailed, WrittenElsewhere, WrongUse
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
    """For whoever still wants something of a conversation that was closed."""
    return WrongUse("This conversation is closed.", "Open it again, and go on there.")


def _permanent_failure(error: Exception) -> StorageFailed:
    _log.error("a part of the conversation could not be written: %s", safe_traceback(error))
    return StorageFailed(f"A part of the conversation could not be written ({type(error).__name__}).")


class WriteBehind(ABC, Generic[Write]):
    """What waits to be written. What the disk refuses is kept in memory and tried again with the next write,
    and after a moment.

    After WrittenElsewhere nothing is written any more: it would go between what another process writes. Nor after
    DatabaseReplaced: the file that is there now does not hold what it would go on from.
    """

    def __init__(self) -> None:
        self._pending: deque[Write] = deque()
        self._current_write: Write | None = None
        """What is being written just now."""
        self._lock = asyncio.Lock()
        self._flush_timer: asyncio.TimerHandle | None = None
        self._retry_timer: asyncio.TimerHandle | None = None
        self._flushing: asyncio.Task[None] | None = None
        self.trouble: StorageFailed | None = None
        """What the disk said last, or why something can never be written; None while writing works."""
        self.lost_write_error: StorageFailed | None = None
        """Why something can never be written, from the first such write on."""
        self._lost_writes = self._reported_losses = 0
        self._overtaken: WrittenElsewhere | DatabaseReplaced | None = None
        self._is_closed = False
        self._trouble_listeners: list[Callable[[StorageFailed | None], None]] = []
        self._watchers: list[Callable[[], None]] = []

    @property
    def is_flushed(self) -> bool:
        """Whether nothing waits to be written."""
        return not self._pending and not self._lock.locked()

    def on_trouble(self, listener: Callable[[StorageFailed | None], None]) -> None:
        """Be told when writing begins to fail, when it ends for good (OVERTAKEN), and with None when it works again."""
        self._trouble_listeners.append(listener)

    def on_pending_change(self, watcher: Callable[[], None]) -> None:
        """Be told when something waits to be written, and after each attempt to write it."""
        self._watchers.append(watcher)

    async def flush(self) -> None:
        """Return when everything so far is durable. Raises StorageFailed, also for what was lost since the last time.

        Whoever waits while something is lost hears of it: an effect of each may rest on that.
        A caller that is cancelled leaves the writing to go on: half a write would be written twice.
        """
        known = self._reported_losses
        trouble = await self._write_shielded()
        lost = self.lost_write_error if self._lost_writes > known else None
        self._reported_losses = self._lost_writes
        if (fault := trouble or lost) is not None:
            raise fault

    async def write_all(self) -> None:
        """Write what waits; a refusal of the disk is told to who listens for trouble, not raised."""
        await self._write_shielded()

    async def write_at_once(self) -> None:
        """The same on any loop, without taking turns: the program ends, and its own loop does not go on any more.

        What was being written just then is written again, which is harmless: only the other loop would hear what became
        of it. Raises StorageFailed, and what else makes a write impossible.
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
        writing = asyncio.create_task(self._write_in_turn())
        writing.add_done_callback(lambda _: self._notify_watchers())
        return await asyncio.shield(writing)

    async def close(self) -> None:
        """Write what is left and stop the timer; what comes later raises WrongUse. Harmless when repeated."""
        self._stop_timer()
        if self._flushing is not None:
            await self._flushing
        await self.write_all()
        self._is_closed = True

    def _append(self, write: Write) -> None:
        """Written with whatever is written next. Raises WrongUse when it is closed."""
        if self._is_closed:
            raise conversation_closed_error()
        if self._overtaken is not None:
            return
        self._pending.append(write)
        if len(self._pending) == 1:
            self._notify_watchers()

    def _schedule_write(self) -> None:
        if self._flush_timer is None:
            self._flush_timer = asyncio.get_running_loop().call_later(FLUSH_INTERVAL, self._write_now)

    def _write_soon(self, write: Write) -> None:
        self._append(write)
        self._write_now()

    def _write_now(self) -> None:
        self._stop_timer()
        if self._flushing is None or self._flushing.done():
            self._flushing = asyncio.create_task(self.write_all())
        else:
            # It may have looked for the last time already.
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
            except Exception as error:  # noqa: BLE001 - who waits for the writing hears of it in one way only
                trouble = _permanent_failure(error)
            self._update_trouble(trouble)
            if self._pending and trouble is not None and not self._is_closed and self._retry_timer is None:
                self._retry_timer = asyncio.get_running_loop().call_later(RETRY_SECONDS, self._write_now)
            return trouble

    def _update_trouble(self, trouble: StorageFailed | None) -> None:
        # What can never be written is not saved when something else is.
        before, self.trouble = self.trouble, trouble or self.lost_write_error
        # Being overtaken is the end, whatever the disk refused before.
        is_the_end = isinstance(self.trouble, OVERTAKEN) and self.trouble is not before
        if is_the_end or (self.trouble is None) != (before is None):
            for listener in tuple(self._trouble_listeners):
                notify(listener, self.trouble)

    async def _write_pending(self) -> StorageFailed | None:
        """Write all that waits; what can never be written does not hold up what can, and is told at the end."""
        trouble: StorageFailed | None = None
        while self._pending:
            await self._prepare(self._pending[0])
            # Taken out first: what is noted meanwhile goes behind, not into, what is being written just now.
            write = self._current_write = self._pending.popleft()
            try:
                await self._write(write)
            except (StorageFailed, asyncio.CancelledError):
                self._pending.appendleft(write)
                raise
            except Exception as error:  # noqa: BLE001 - see above
                self._on_write_lost(write)
                # Whoever asks next whether all is durable must hear it: the next effect may rest on it.
                self._lost_writes += 1
                trouble = self.lost_write_error = _permanent_failure(error)
            finally:
                self._current_write = None
        return trouble

    @abstractmethod
    async def _prepare(self, write: Write) -> None:
        """Do what must be done before this one can be written. Raises StorageFailed."""

    @abstractmethod
    async def _write(self, write: Write) -> None:
        """One write. Raises StorageFailed where it is worth trying again."""

    @abstractmethod
    def _on_write_lost(self, write: Write) -> None:
        """This one can never be written."""


_SPEAKER_NAMES = {"user": "You", "assistant": "Model", "tool": "Tools", "system": "Program"}
_BACKTICKS = re.compile("`+")


@dataclass(frozen=True, slots=True)
class UnsavedConversation:
    """One conversation: all messages of its branch, and the rows of its journal that still wait.

    `reason` is what the disk said last.
    """

    record: ConversationRecord
    messages: tuple[Message, ...]
    events: tuple[Envelope, ...]
    reason: StorageFailed


def unsaved_as_markdown(unsaved: Sequence[UnsavedConversation], draft: Message | None = None) -> str:
    """The file. `draft` is what was being written and could not be kept either."""
    parts = [part for each in unsaved for part in _conversation_parts(each)]
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
        case Text():
            return block.text
        case Thinking():
            return "\n".join(f"> {line}" for line in block.text.splitlines())
        case ToolUse():
            return f"Tool call `{block.name}`: {_to_json(block.input)}"
        case ToolResult():
            return "\n".join(filter(None, map(_block_text, block.content)))
        case Image():
            return f"(a picture: {block.name or 'without a name'})"
        case Summary():
            return block.text
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
