"""The rows of standing rules."""

import sqlite3
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Protocol, TypeVar

from desktop_agent.storage.database.connection import DatabaseConnection, text_of, text_or_none
from desktop_agent.storage.json_form import read_rule, read_rule_partially, rule_to_json
from desktop_agent.storage.records import StoredRules
from desktop_agent.vocabulary.conduct.rules import Rule, RuleScope

T = TypeVar("T")

# The conversation is named by its id: a rule may be made before the conversation is written.
RULES_TABLE = """
CREATE TABLE rules (
    number INTEGER PRIMARY KEY,
    mark INTEGER NOT NULL DEFAULT 108 CHECK (mark = 108),
    id TEXT NOT NULL UNIQUE,
    conversation TEXT,
    body TEXT NOT NULL,
    last_used_at TEXT
);
CREATE INDEX rules_by_conversation ON rules (conversation);
"""
_SELECT_RULES = "SELECT id, body, last_used_at FROM rules"
_SAVE_RULE = """
    INSERT INTO rules (id, conversation, body, last_used_at) VALUES (?, ?, ?, ?) ON CONFLICT (id) DO UPDATE
    SET conversation = excluded.conversation, body = excluded.body, last_used_at = excluded.last_used_at"""


class RunInDatabase(Protocol):
    """Runs work in the thread of the database and waits for it."""

    def __call__(self, work: Callable[[DatabaseConnection], T], /) -> Awaitable[T]:
        """Raises StorageFailed."""
        ...


class RuleRows:
    """The rules of every scope. All methods raise StorageFailed."""

    def __init__(self, run: RunInDatabase) -> None:
        self._run = run

    async def all(self) -> tuple[Rule, ...]:
        """Every rule that holds, oldest first; see StoredRules."""
        return (await self.load()).rules

    async def load(self) -> StoredRules:
        """Every rule, and how many of them this version understands in part or not at all."""
        return await self._run(lambda db: _read_rules(db.execute(f"{_SELECT_RULES} ORDER BY number")))

    async def save(self, rule: Rule) -> None:
        """Keep one; one of the same id is replaced."""
        conversation = rule.conversation_id if rule.scope is RuleScope.CONVERSATION else None
        used = None if rule.last_used_at is None else rule.last_used_at.isoformat()
        await self._run(lambda db: db.execute(_SAVE_RULE, (rule.id, conversation, rule_to_json(rule), used)))

    async def delete(self, rule_id: str) -> None:
        """Forget one. Harmless where there is none."""
        await self._run(lambda db: db.execute("DELETE FROM rules WHERE id = ?", (rule_id,)))

    async def used(self, rule_id: str, at: datetime) -> None:
        """Note when it last decided about a call."""
        row = (at.isoformat(), rule_id)
        await self._run(lambda db: db.execute("UPDATE rules SET last_used_at = ? WHERE id = ?", row))


def _read_rules(rows: sqlite3.Cursor) -> StoredRules:
    whole: list[Rule] = []
    stricter = lost = 0
    for id_, body, last_used_at in rows:
        rule = read_rule(text_of(body))
        if rule is None:
            rule = read_rule_partially(text_of(body), text_of(id_))
            stricter, lost = stricter + (rule is not None), lost + (rule is None)
        if rule is not None:
            whole.append(_with_last_use(rule, text_or_none(last_used_at)))
    return StoredRules(tuple(whole), stricter, lost)


def _with_last_use(rule: Rule, at: str | None) -> Rule:
    try:
        return rule if at is None else rule.model_copy(update={"last_used_at": datetime.fromisoformat(at)})
    except ValueError:  # carried over from a damaged page
        return rule
