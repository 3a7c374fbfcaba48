"""The rule book that all open conversations share, the audit of tool calls from their journals, and the dry run."""

import json
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Protocol
from weakref import WeakSet

from pydantic_core import to_jsonable_python

from desktop_agent.processes.listeners import Listeners
from desktop_agent.storage.records import ConversationRecord, JournalEntry, StoredRules
from desktop_agent.storage.store import Store
from desktop_agent.tools.tool import ToolRegistry
from desktop_agent.types.blocks import JsonObject, Outcome, ToolUse
from desktop_agent.types.engine_events import (
    ApprovalRequested,
    ApprovalResolved,
    Envelope,
    ToolCallPending,
    ToolFinished,
    ToolStarted,
)
from desktop_agent.types.errors import Sentence
from desktop_agent.types.permissions import AuditEntry, AuditState, Rule, RuleScope

if TYPE_CHECKING:
    from desktop_agent.permissions.gate import Verdict
    from desktop_agent.permissions.policy import PermissionPolicy


class RuleFollower(Protocol):
    """The permission policy of an open conversation, notified of rules that others add and revoke."""

    def add_shared_rule(self, rule: Rule) -> None:
        """Another conversation added this rule."""
        ...

    def remove_shared_rule(self, rule_id: str) -> None:
        """Somebody else revoked this rule."""
        ...


def unreadable_rule_notices(stored: StoredRules) -> tuple[Sentence, ...]:
    """Return notices about rules that this version does not understand."""
    notices: list[Sentence] = []
    if stored.stricter:
        what = Sentence(
            "Rules that deny or ask and are only partly understood: {count}. They now apply to more calls than "
            "before. Check your rules, and add them again as you want them.",
            {"count": str(stored.stricter)},
        )
        notices.append(what)
    if stored.lost:
        what = Sentence(
            "Rules that cannot be read and no longer apply: {count}. Check your rules, and add what is missing again.",
            {"count": str(stored.lost)},
        )
        notices.append(what)
    return tuple(notices)


class RuleBook:
    """All stored rules. A rule that one conversation adds for all holds in the others at once."""

    def __init__(self, rules: Iterable[Rule] = ()) -> None:
        self._rules = {rule.id: rule for rule in rules}
        self._followers: WeakSet[RuleFollower] = WeakSet()
        self._changed = Listeners[[]]()
        self.on_changed = self._changed.add
        """Call a listener whenever `rules` has changed."""

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Return all rules, oldest first."""
        return tuple(self._rules.values())

    def for_conversation(self, conversation_id: str) -> tuple[Rule, ...]:
        """Return its own rules, and those bound to no conversation; the policy checks the workspace."""
        return tuple(
            rule
            for rule in self._rules.values()
            if rule.scope is not RuleScope.CONVERSATION or rule.conversation_id == conversation_id
        )

    def subscribe(self, follower: RuleFollower) -> None:
        """Notify this policy of what others add and revoke; it is held weakly."""
        self._followers.add(follower)

    def unsubscribe(self, follower: RuleFollower) -> None:
        """Stop notifying this policy."""
        self._followers.discard(follower)

    def add(self, rule: Rule, by: RuleFollower) -> None:
        """Add a rule, also for the others unless it is bound to one conversation."""
        self._rules[rule.id] = rule
        if rule.scope is not RuleScope.CONVERSATION:
            for follower in self._other_followers(by):
                follower.add_shared_rule(rule)
        self._changed.notify()

    def remove(self, rule_id: str, by: RuleFollower | None = None) -> None:
        """Remove a rule everywhere. Harmless where there is none."""
        self._rules.pop(rule_id, None)
        for follower in self._other_followers(by):
            follower.remove_shared_rule(rule_id)
        self._changed.notify()

    def replace(self, rule: Rule) -> None:
        """Replace a rule by its newer state."""
        if rule.id in self._rules:
            self._rules[rule.id] = rule
            self._changed.notify()

    def replace_all(self, rules: Iterable[Rule]) -> None:
        """Replace all rules."""
        new_rules = {rule.id: rule for rule in rules}
        for rule_id in self._rules.keys() - new_rules.keys():
            self.remove(rule_id)
        added = [rule for rule_id, rule in new_rules.items() if rule_id not in self._rules]
        self._rules = new_rules
        for rule in added:
            if rule.scope is not RuleScope.CONVERSATION:
                for follower in self._other_followers(None):
                    follower.add_shared_rule(rule)
        self._changed.notify()

    def _other_followers(self, by: RuleFollower | None) -> list[RuleFollower]:
        return [follower for follower in self._followers if follower is not by]


_DECISIONS: dict[str, AuditState] = {"deny": "denied", "deny_and_stop": "denied", "withdrawn": "stopped"}
# Ids of calls are the server's, and some servers use the same ones in each answer.
_Key = tuple[str, str, str | None, str]


def audit_entries(rows: Iterable[tuple[str, str, Envelope]]) -> tuple[AuditEntry, ...]:
    """Return the entries for events with the id and the title of their conversations, oldest first.

    Events about no call, or about one whose beginning is missing, are ignored.
    """
    entries: dict[_Key, AuditEntry] = {}
    for conversation_id, title, envelope in rows:
        event = envelope.event
        place = (conversation_id, envelope.run_id, envelope.turn_id)
        if isinstance(event, ToolCallPending):
            entries[*place, event.id] = AuditEntry(
                conversation_id, title, envelope.at, event.name, event.input, event.agent_path
            )
        elif (key := (*place, _call_id_of(envelope))) in entries:
            entries[key] = _apply(entries[key], envelope)
    return tuple(entries.values())


def _call_id_of(envelope: Envelope) -> str:
    match envelope.event:
        case ApprovalRequested(tool_use_id=id_) | ApprovalResolved(tool_use_id=id_):
            return id_
        case ToolStarted(id=id_) | ToolFinished(id=id_):
            return id_
        case _:
            return ""


def _apply(entry: AuditEntry, envelope: Envelope) -> AuditEntry:
    match envelope.event:
        case ApprovalRequested() as event:
            return replace(entry, reason=event.reason, input=event.effective_input or entry.input)
        case ApprovalResolved() as event:
            edited = event.effective_input
            return replace(
                entry,
                state=_DECISIONS.get(event.decision, "allowed"),
                by="program" if event.by == "stop" else event.by,
                decision=event.decision,
                decided_at=envelope.at,
                was_edited=edited is not None and edited != entry.input,
                input=entry.input if edited is None else edited,
                message=event.message,
            )
        case ToolStarted() as event:
            by = event.by or entry.by or "default"
            decided_at = entry.decided_at or envelope.at
            return replace(
                entry, state="allowed", by=by, rule_id=event.rule_id, input=event.input, decided_at=decided_at
            )
        case ToolFinished() as event:
            return _apply_finish(entry, envelope, event.outcome)
        case _:
            return entry


def _apply_finish(entry: AuditEntry, envelope: Envelope, outcome: Outcome) -> AuditEntry:
    if entry.state != "waiting":
        return replace(entry, outcome=outcome)
    # It never started, and no person was asked: a rule, the mode, a hook, the registry or Stop ended it.
    state: AuditState = "denied" if outcome is Outcome.DENIED else "stopped"
    return replace(entry, state=state, by="program", decided_at=envelope.at, outcome=outcome)


PAGE_SIZE = 1_000
"""Events that are read at once; a call has two to five."""


class AuditLog:
    """The entries read so far, newest first. Conversations in the trash are left out."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._rows: list[JournalEntry] = []
        self._before: int | None = None
        self.is_complete = False
        self.entries: tuple[AuditEntry, ...] = ()

    async def load_more(self) -> None:
        """Read the next older page. Raises StorageFailed."""
        if self.is_complete:
            return
        rows, self._before = await self._store.load_call_entries(self._before, PAGE_SIZE)
        self.is_complete = self._before is None
        self._rows[:0] = rows
        known = audit_entries((row.conversation_id, row.title, row.envelope) for row in self._rows)
        self.entries = tuple(reversed(known))


def to_json_lines(entries: Iterable[AuditEntry]) -> Iterator[str]:
    """Yield one JSON object a line, for other programs."""
    for entry in entries:
        yield json.dumps(to_jsonable_python(asdict(entry)), ensure_ascii=False) + "\n"


class JudgedSession(Protocol):
    """What a dry run needs of an open conversation."""

    @property
    def record(self) -> ConversationRecord: ...

    @property
    def permission_policy(self) -> "PermissionPolicy": ...


class PermissionInspector:
    """Answers what would be allowed, and what was decided, over all conversations. Changes nothing."""

    def __init__(
        self,
        store: Store,
        record: Callable[[str], Awaitable[ConversationRecord]],
        open_session: Callable[[str], Awaitable[JudgedSession]],
        tools_for: Callable[[ConversationRecord], ToolRegistry],
    ) -> None:
        self._store = store
        self._load_record = record
        self._open_session = open_session
        self._tools_for = tools_for

    async def tool_names(self, conversation_id: str) -> tuple[str, ...]:
        """Return the tools of a conversation. Raises WrongUse for an unknown one, and StorageFailed."""
        return self._tools_for(await self._load_record(conversation_id)).names

    async def verdict_for(self, conversation_id: str, tool: str, arguments: JsonObject) -> "Verdict":
        """Return what rules and mode would decide about such a call now, without making it. Hooks are not asked.

        Raises WrongUse for an unknown conversation, and StorageFailed.
        """
        session = await self._open_session(conversation_id)
        tools = self._tools_for(session.record)
        call = ToolUse(id="", name=tool, input=arguments)
        return await session.permission_policy.verdict(call, tools.get(tool), tools.names)

    def audit_log(self) -> AuditLog:
        """Return what was decided about every call so far, to be read page by page."""
        return AuditLog(self._store)
