"""Approvals, permission rules and the audit trail, for the screens."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from desktop_agent.engine.engine import Engine
from desktop_agent.engine.permission_records import AuditTrail, to_json_lines
from desktop_agent.types.blocks import JsonObject
from desktop_agent.types.errors import AgentError, Sentence, ToolFailed
from desktop_agent.types.permissions import AuditEntry, Rule, RuleEffect, RuleScope
from desktop_agent.types.tool_calls import CommandPreview, Decision, Effect, Preview, TextPreview, ToolClass
from ui.bridge.event_loop import BackgroundTasks

if TYPE_CHECKING:
    from desktop_agent.engine.session import Session
    from desktop_agent.permissions.approvals import Approval
    from desktop_agent.tools.tool import AnyTool


_PREVIEW_SECONDS = 10.0
"""Seconds that a tool has for its preview."""


@dataclass(frozen=True)
class WaitingCall:
    """One call that waits for approval. `validate` returns a sentence if arguments do not fit the tool, else None.

    `reasons` say why the person is asked, if it is not the tool's default; `outsiders` are the sources of untrusted
    content among them. `proposals` are the rules that AllowAlways may make, each with what it matches. `undoable`:
    whether its changes can be undone; None if it changes nothing. `server` is the title of the MCP server that offers
    the tool, and `server_says` that server's description of it.
    """

    approval_id: str
    tool: str
    arguments: JsonObject
    tool_class: ToolClass
    effects: frozenset[Effect]
    preview: Preview | None
    agent_path: tuple[str, ...]
    validate: Callable[[JsonObject], str | None]
    reasons: tuple[Sentence, ...] = ()
    outsiders: tuple[str, ...] = ()
    proposals: tuple[tuple[Rule, Sentence], ...] = ()
    undoable: bool | None = None
    server: str = ""
    server_says: str = ""


class Approvals:
    """The waiting calls of one session."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._shown: tuple[str, ...] = ()

    def waiting(self) -> tuple[WaitingCall, ...]:
        """Return the calls in order. The untrusted sources that they name can be trusted from then on."""
        content = self._session.permission_policy.untrusted_content
        why = content.suspension.why
        names = tuple(source.name for source in content.sources)
        calls = tuple(
            _waiting_call(approval, names if why in approval.reasons else ())
            for approval in self._session.approvals.open_approvals
        )
        self._shown = names if any(call.outsiders for call in calls) else ()
        return calls

    def answer(self, approval_id: str, decision: Decision) -> None:
        """Answer a call. Raises ToolInputInvalid for an edit that does not fit, and WrongUse; it then still waits."""
        self._session.approvals.answer(approval_id, decision)

    def trust(self) -> None:
        """Trust the sources that were shown: permanent rules apply to their content again."""
        shown, self._shown = self._shown, ()
        self._session.permission_policy.lift_suspension(shown)

    async def preview(self, approval_id: str, arguments: JsonObject) -> Preview | None:
        """Return what the call would do with these arguments, or why that is unknown."""
        # Late, here and below: the permissions are imported with the first conversation.
        from desktop_agent.permissions.approvals import copy_preview
        from desktop_agent.permissions.gate import validate_edited_arguments
        from desktop_agent.processes.foreign_code import plain_text, type_name

        for approval in self._session.approvals.open_approvals:
            if approval.approval_id == approval_id and approval.tool.preview is not None:
                try:
                    async with asyncio.timeout(_PREVIEW_SECONDS):
                        fitted = validate_edited_arguments(arguments, approval.tool)
                        return copy_preview(await approval.tool.preview(approval.tool.checked(fitted)))
                except ToolFailed as error:
                    return TextPreview(plain_text(str(error)))
                except Exception as error:  # noqa: BLE001 - whatever the code of a tool raises
                    return TextPreview(f"What it would do cannot be shown ({type_name(error)}).")
        return None


def _waiting_call(approval: "Approval", outsiders: tuple[str, ...]) -> WaitingCall:
    from desktop_agent.permissions.gate import validate_edited_arguments
    from desktop_agent.permissions.rule_proposals import describe_rule

    def validate(arguments: JsonObject) -> str | None:
        try:
            # The same check as for the decision.
            validate_edited_arguments(arguments, approval.tool)
        except ToolFailed as error:
            return str(error)
        return None

    server = _server_of(approval)
    return WaitingCall(
        approval_id=approval.approval_id,
        tool=approval.tool.name,
        arguments=approval.input,
        tool_class=approval.tool.tool_class,
        effects=approval.tool.effects,
        preview=approval.preview,
        agent_path=approval.agent_path,
        validate=validate,
        reasons=_reasons(approval),
        outsiders=outsiders,
        undoable=_undoable(approval.tool),
        server=server,
        server_says=approval.tool.description if server else "",
        proposals=tuple((rule, describe_rule(rule)) for rule in approval.proposals),
    )


def _reasons(approval: "Approval") -> tuple[Sentence, ...]:
    """Leave out what the preview says beside the line that it is about."""
    from desktop_agent.permissions.hard_denies import UNCLEAR

    if isinstance(approval.preview, CommandPreview) and not approval.preview.understood:
        return tuple(reason for reason in approval.reasons if reason.template != UNCLEAR)
    return approval.reasons


def _server_of(approval: "Approval") -> str:
    from desktop_agent.tools.json_schema import JsonSchema

    tool = approval.tool
    # MCP tools have a JSON Schema and take the arguments as they are: checking them again, however
    # large they are, would block the window.
    if tool.brings is None or not isinstance(tool.schema, JsonSchema):
        return ""
    source = tool.brings(approval.input)
    return source.name if source is not None and source.kind == "mcp" else ""


def _undoable(tool: "AnyTool") -> bool | None:
    if tool.changes is not None or tool.undo is not None:
        return True
    # A specialist's own calls are approved one by one.
    changes = tool.tool_class is not ToolClass.READ_ONLY and Effect.DELEGATE not in tool.effects
    return False if changes or {Effect.EXECUTE, Effect.NETWORK} & tool.effects else None


@dataclass(frozen=True)
class RuleSummary:
    """A rule in words. `place` is its folder or conversation; empty for everywhere."""

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
    """`changed`: read the rules again. `dry_run_finished` answers a dry run, `read` a page of the audit trail."""

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
        """Return the rules, newest first."""
        return tuple(self._summary(rule) for rule in reversed(self._engine.rules))

    def revoke(self, rule_id: str) -> None:
        """Revoke a rule everywhere."""
        self._tasks.start(self._revoke(rule_id))

    def find_tools(self, conversation_id: str) -> None:
        """Find the tools of a conversation."""
        self._tasks.start(self._find_tools(conversation_id))

    def dry_run(self, conversation_id: str, tool: str, arguments: JsonObject) -> None:
        """Find what would become of a call, without making it."""
        self._tasks.start(self._dry_run(conversation_id, tool, arguments))

    def read_newest(self) -> None:
        """Read the newest page of the audit trail."""
        self._trail = self._engine.permission_inspector.audit()
        self.read_more()

    def read_more(self) -> None:
        """Read the next page."""
        if self._trail is not None:
            self._tasks.start(self._read(self._trail))

    def as_json_lines(self) -> str:
        """Return all pages read so far as JSON lines."""
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
            # Also after a failure: the screen must show what is in force.
            self.changed.emit()

    async def _dry_run(self, conversation_id: str, tool: str, arguments: JsonObject) -> None:
        try:
            verdict = await self._engine.permission_inspector.verdict_for(conversation_id, tool, arguments)
        except AgentError as error:
            self.dry_run_finished.emit(error.sentence)
            return
        # Late, here and below: the permissions are imported with the first conversation.
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
        from desktop_agent.permissions.rule_proposals import describe_rule

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
