"""What was decided about every call, as it lies in the journals of all conversations."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict

from pydantic_core import to_jsonable_python

from desktop_agent.conversation.audit import audit_entries
from desktop_agent.storage.records import JournalEntry
from desktop_agent.storage.store import Store
from desktop_agent.vocabulary.conduct.audit import AuditEntry

PAGE_SIZE = 1_000
"""Events that are read at once; a call has two to five."""


class AuditTrail:
    """The entries, newest first, as far as they were read. Conversations in the trash are left out."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._rows: list[JournalEntry] = []
        self._before: int | None = None
        self.is_complete = False
        self.entries: tuple[AuditEntry, ...] = ()

    async def load_more(self) -> None:
        """Read on, into the past. Raises StorageFailed."""
        if self.is_complete:
            return
        rows, self._before = await self._store.load_call_entries(self._before, PAGE_SIZE)
        self.is_complete = self._before is None
        self._rows[:0] = rows
        known = audit_entries((row.conversation_id, row.title, row.envelope) for row in self._rows)
        self.entries = tuple(reversed(known))


def to_json_lines(entries: Iterable[AuditEntry]) -> Iterator[str]:
    """One JSON object a line, for other programs."""
    for entry in entries:
        yield json.dumps(to_jsonable_python(asdict(entry)), ensure_ascii=False) + "\n"
