"""Conversations that are kept nowhere: what a library uses that asks without a data folder."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Unpack

from desktop_agent.engine.session import Session, SessionSetup
from desktop_agent.engine.session_parts.write_behind import conversation_closed_error
from desktop_agent.engine.writer import SessionWriter
from desktop_agent.storage.records import ConversationChanges, ConversationRecord
from desktop_agent.vocabulary.conduct.rules import Rule
from desktop_agent.vocabulary.engine_events import Envelope
from desktop_agent.vocabulary.errors import StorageFailed
from desktop_agent.vocabulary.messages import Message, new_id, now


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
