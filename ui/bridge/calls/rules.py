"""The rules that stand and what was decided, for the screens."""

from dataclasses import dataclass
from datetime import datetime

from PySide6.QtCore import QObject, Signal

from desktop_agent.engine.audit import AuditTrail, to_json_lines
from desktop_agent.engine.engine import Engine
from desktop_agent.vocabulary.blocks import JsonObject
from desktop_agent.vocabulary.conduct.audit import AuditEntry
from desktop_agent.vocabulary.conduct.rules import Rule, RuleEffect, RuleScope
from desktop_agent.vocabulary.errors import AgentError, Sentence
from ui.bridge.tasks import BackgroundTasks


@dataclass(frozen=True)
class RuleSummary:
    """A rule in words. `place` is the folder or the conversation that it holds in; empty for everywhere."""

    rule_id: str
    effect: RuleEffect
    words: Sentence
    scope: RuleScope
    place: str
    origin: str
    created_at: datetime
    last_used_at: datetime | None
    expires_at: datetime | None


class PermissionRules(QObject):
    """`changed`: look again. `dry_run_finished` answers a dry run, `read` a page of what was decided."""

    changed = Signal()
    tools_found = Signal(object)
    """The names of a conversation's tools."""
    dry_run_finished = Signal(object)
    """A Sentence: what would become of the call."""
    read = Signal(object, bool)
    """The AuditEntry items so far, newest first, and whether that is all."""

    def __init__(self, engine: Engine, tasks: BackgroundTasks, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._engine = engine
        self._tasks = tasks
        self._trail: AuditTrail | None = None

    def all(self) -> tuple[RuleSummary, ...]:
        """Newest first."""
        return tuple(self._summary(rule) for rule in reversed(self._engine.rules))

    def revoke(self, rule_id: str) -> None:
        """Take a rule back everywhere."""
        self._tasks.start(self._revoke(rule_id))

    def find_tools(self, conversation_id: str) -> None:
        """Find out which tools a conversation has."""
        self._tasks.start(self._find_tools(conversation_id))

    def dry_run(self, conversation_id: str, tool: str, arguments: JsonObject) -> None:
        """Find out what would become of such a call, without making it."""
        self._tasks.start(self._dry_run(conversation_id, tool, arguments))

    def read_newest(self) -> None:
        """Read what was decided, from the newest on."""
        self._trail = self._engine.permission_inspector.audit()
        self.read_more()

    def read_more(self) -> None:
        """One page more."""
        if self._trail is not None:
            self._tasks.start(self._read(self._trail))

    def as_json_lines(self) -> str:
        """All that was read, for other programs."""
        return "".join(to_json_lines(self._entries))

    @property
    def _entries(self) -> tuple[AuditEntry, ...]:
        return () if self._trail is None else self._trail.entries

    async def _find_tools(self, conversation_id: str) -> None:
        self.tools_found.emit(await self._engine.permission_inspector.tool_names(conversation_id))

    async def _revoke(self, rule_id: str) -> None:
        try:
            await self._engine.revoke_rule(rule_id)
        finally:
            # Also when it failed: what is shown then is what holds.
            self.changed.emit()

    async def _dry_run(self, conversation_id: str, tool: str, arguments: JsonObject) -> None:
        try:
            verdict = await self._engine.permission_inspector.verdict_for(conversation_id, tool, arguments)
        except AgentError as error:
            self.dry_run_finished.emit(error.sentence)
            return
        # Late, here and below: what decides about calls comes with the first conversation.
        from desktop_agent.permissions.gate import Allowed, Denied

        match verdict:
            case Allowed(by="rule"):
                sentence = Sentence("It would run without asking: a rule allows it.")
            case Allowed(by="mode"):
                sentence = Sentence("It would run without asking: the mode allows it.")
            case Allowed():
                sentence = Sentence("It would run without asking: it only reads.")
            case Denied():
                sentence = Sentence("It would not run: {why}", {"why": verdict.sentence})
            case _ if verdict.reasons:
                sentence = Sentence("You would be asked: {why}", {"why": verdict.reasons[0]})
            case _:
                sentence = Sentence("You would be asked.")
        self.dry_run_finished.emit(sentence)

    async def _read(self, trail: AuditTrail) -> None:
        await trail.load_more()
        if trail is self._trail:
            self.read.emit(trail.entries, trail.is_complete)

    def _summary(self, rule: Rule) -> RuleSummary:
        from desktop_agent.permissions.rule_words import describe_rule

        place = rule.workspace or "" if rule.scope is RuleScope.WORKSPACE else ""
        return RuleSummary(
            rule.id,
            rule.effect,
            describe_rule(rule),
            rule.scope,
            place,
            rule.origin,
            rule.created_at,
            rule.last_used_at,
            rule.expires_at,
        )
