"""From the journal's events about calls to one entry for each call."""

from collections.abc import Iterable
from dataclasses import replace

from desktop_agent.vocabulary.blocks import Outcome
from desktop_agent.vocabulary.conduct.audit import AuditEntry, AuditState
from desktop_agent.vocabulary.engine_events import (
    ApprovalRequested,
    ApprovalResolved,
    Envelope,
    ToolCallPending,
    ToolFinished,
    ToolStarted,
)

_DECISIONS: dict[str, AuditState] = {"deny": "denied", "deny_and_stop": "denied", "withdrawn": "stopped"}
# Ids of calls are the server's, and some servers use the same ones in each answer.
_Key = tuple[str, str, str | None, str]


class CallAudit:
    """Takes events in their order and has the entries of the calls that began in them."""

    def __init__(self) -> None:
        self._entries: dict[_Key, AuditEntry] = {}

    def add(self, conversation_id: str, title: str, envelope: Envelope) -> None:
        """One event more; what is no event about a call, or about one whose beginning is not there, says nothing."""
        event = envelope.event
        if isinstance(event, ToolCallPending):
            key = (conversation_id, envelope.run_id, envelope.turn_id, event.id)
            self._entries[key] = AuditEntry(
                conversation_id, title, envelope.at, event.name, event.input, event.agent_path
            )
            return
        id_ = _call_id_of(envelope)
        key = (conversation_id, envelope.run_id, envelope.turn_id, id_)
        if key in self._entries:
            self._entries[key] = _apply(self._entries[key], envelope)

    @property
    def entries(self) -> tuple[AuditEntry, ...]:
        """Oldest first."""
        return tuple(self._entries.values())


def audit_entries(rows: Iterable[tuple[str, str, Envelope]]) -> tuple[AuditEntry, ...]:
    """Entries for events with the id and the title of their conversations, oldest first."""
    audit = CallAudit()
    for conversation_id, title, envelope in rows:
        audit.add(conversation_id, title, envelope)
    return audit.entries


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
