"""Approvals, permission rules and the audit log, for the screens."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from desktop_agent.engine.engine import Engine
from desktop_agent.engine.permission_records import AuditLog, to_json_lines
from desktop_agent.types.blocks import JsonObject
from desktop_agent.types.errors import AgentError, Sentence, ToolFailed
from desktop_agent.types.permissions import (
    ArgumentsPattern,
    CommandPattern,
    CommandsPattern,
    HostPattern,
    PathPattern,
    Rule,
)
from desktop_agent.types.tool_calls import (
    CommandPreview,
    Decision,
    DiffPreview,
    Effect,
    NetworkPreview,
    PicturePreview,
    Preview,
    TextPreview,
    ToolClass,
)
from ui.bridge.event_loop import BackgroundTasks, in_background

if TYPE_CHECKING:
    from desktop_agent.engine.session import Session
    from desktop_agent.permissions.approvals import Approval
    from desktop_agent.tools.tool import AnyTool


_PREVIEW_SECONDS = 10.0
"""Seconds that a tool has for its preview."""


_MAX_SUBJECT_LENGTH = 200
"""Characters."""
_FILE_EFFECTS = frozenset({Effect.READ, Effect.WRITE, Effect.EXECUTE})


@dataclass(frozen=True)
class RuleOffer:
    """A rule that can be made from a call, in words. It applies in the folder `workspace`, or everywhere."""

    rule_id: str
    words: Sentence
    workspace: str | None = None


@dataclass(frozen=True)
class PendingApproval:
    """A tool call that waits for the person's decision.

    `agent_path` names the specialists that lead to the call; empty is the main agent. `validate` returns a sentence
    when edited arguments do not fit the tool, and None when they do. `reasons` say why the person is asked, unless it
    is the tool's default; `untrusted_sources` are set if content from them is a reason. `offers` are the rules that
    AllowAlways can make, the narrowest first. `undoable`: whether what the call changes can be undone; None if it
    changes nothing. `server` is the title of the MCP server that offers the tool, and `server_description` what it
    says about the tool. `workspace` is the folder in which the tool works; empty if it reaches no files.
    `is_in_memory`: the conversation is never stored, but a rule would be. `is_always_asked`: no rule can allow it, also
    not for the conversation.
    """

    approval_id: str
    tool: str
    arguments: JsonObject
    agent_path: tuple[str, ...] = ()
    tool_class: ToolClass = ToolClass.MUTATING
    effects: frozenset[Effect] = frozenset()
    preview: Preview | None = None
    reasons: tuple[Sentence, ...] = ()
    untrusted_sources: tuple[str, ...] = ()
    offers: tuple[RuleOffer, ...] = ()
    undoable: bool | None = None
    server: str = ""
    server_description: str = ""
    workspace: str = ""
    is_in_memory: bool = False
    is_always_asked: bool = False
    validate: Callable[[JsonObject], Sentence | None] = field(default=lambda _: None, compare=False, repr=False)

    @property
    def subject(self) -> str:
        """What the call is about, on one line, to distinguish it from other calls of the same tool."""
        match self.preview:
            case (
                CommandPreview(line=text)
                | DiffPreview(path=text)
                | NetworkPreview(url=text)
                | PicturePreview(name=text)
            ):
                pass
            case _:
                text = next((value for value in self.arguments.values() if isinstance(value, str)), "")
        return " ".join(text[:_MAX_SUBJECT_LENGTH].split())


class Approvals:
    """The waiting calls of one session."""

    def __init__(self, session: "Session") -> None:
        self._session = session
        self._shown: tuple[str, ...] = ()

    def waiting(self) -> tuple[PendingApproval, ...]:
        """Return the calls in order. `trust` applies to the untrusted sources that they name."""
        content = self._session.permission_policy.untrusted_content
        suspension_reason = content.suspension.why
        names = tuple(source.name for source in content.sources)
        workspace = self._session.record.workspace or ""
        calls = tuple(
            _pending_approval(
                approval,
                names if suspension_reason in approval.reasons else (),
                workspace,
                is_in_memory=self._session.is_in_memory,
            )
            for approval in self._session.approvals.open_approvals
        )
        self._shown = names if any(call.untrusted_sources for call in calls) else ()
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
        from desktop_agent.permissions.approvals import explain_preview, preview_failed
        from desktop_agent.permissions.gate import validate_edited_arguments

        for approval in self._session.approvals.open_approvals:
            if approval.approval_id == approval_id and approval.tool.preview is not None:
                try:
                    async with asyncio.timeout(_PREVIEW_SECONDS):
                        validated = validate_edited_arguments(arguments, approval.tool)
                        return explain_preview(await approval.tool.preview(approval.tool.checked(validated)))
                except ToolFailed as error:
                    return TextPreview(error.sentence)
                except Exception as error:  # noqa: BLE001 - whatever the code of a tool raises
                    return preview_failed(type(error).__name__)
        return None


def _pending_approval(
    approval: "Approval", untrusted_sources: tuple[str, ...], workspace: str, *, is_in_memory: bool
) -> PendingApproval:
    from desktop_agent.permissions.gate import validate_edited_arguments

    def validate(arguments: JsonObject) -> Sentence | None:
        try:
            # The same check as for the decision.
            validate_edited_arguments(arguments, approval.tool)
        except ToolFailed as error:
            return error.sentence
        return None

    server = _server_of(approval)
    return PendingApproval(
        approval_id=approval.approval_id,
        tool=approval.tool.name,
        arguments=approval.input,
        tool_class=approval.tool.tool_class,
        effects=approval.tool.effects,
        preview=approval.preview,
        agent_path=approval.agent_path,
        validate=validate,
        reasons=_reasons(approval),
        untrusted_sources=untrusted_sources,
        # In memory, no file is saved before a change, and no call is recorded.
        undoable=_undoable(approval.tool) and not is_in_memory,
        server=server,
        server_description=approval.tool.description if server else "",
        workspace=workspace if approval.tool.effects & _FILE_EFFECTS else "",
        offers=offer_rules(approval.proposals),
        is_in_memory=is_in_memory,
        is_always_asked=approval.tool.always_asked is not None,
    )


def offer_rules(rules: Iterable[Rule]) -> tuple[RuleOffer, ...]:
    """Return the rules as offers, the narrowest first."""
    from desktop_agent.permissions.rule_proposals import describe_rule

    return tuple(RuleOffer(rule.id, describe_rule(rule), rule.workspace) for rule in sorted(rules, key=_rule_breadth))


def _rule_breadth(rule: Rule) -> tuple[bool, bool, int, int]:
    """Return a sort key that grows with what a rule allows: where, whether it trusts, which calls, how many tools."""
    match rule.pattern:
        case ArgumentsPattern() | CommandPattern(exact=True):
            calls = 0
        case CommandPattern() | PathPattern() | HostPattern():
            calls = 1
        case CommandsPattern():
            calls = 2
        case None:
            calls = 3
    return rule.workspace is None, rule.trusts, calls, len(rule.tools)


def _reasons(approval: "Approval") -> tuple[Sentence, ...]:
    """Return the reasons, without the one that the preview shows beside its line."""
    from desktop_agent.permissions.hard_denies import UNCLEAR

    if isinstance(approval.preview, CommandPreview) and not approval.preview.understood:
        return tuple(reason for reason in approval.reasons if reason != UNCLEAR)
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


class PermissionRules(QObject):
    """`changed`: read the rules again. `dry_run_finished` answers a dry run, `read` a page of the audit log."""

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
        self._log: AuditLog | None = None
        engine.rule_book.on_changed(self.changed.emit)

    def all(self) -> tuple[Rule, ...]:
        """Return the rules, newest first."""
        return tuple(reversed(self._engine.rules))

    def revoke(self, rule_id: str) -> None:
        """Revoke a rule everywhere."""
        self._tasks.start(self._engine.revoke_rule(rule_id))

    @in_background
    async def find_tools(self, conversation_id: str) -> None:
        """Find the tools of a conversation."""
        self.tools_found.emit(await self._engine.permission_inspector.tool_names(conversation_id))

    @in_background
    async def dry_run(self, conversation_id: str, tool: str, arguments: JsonObject) -> None:
        """Find what would become of a call, without making it."""
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

    def read_newest(self) -> None:
        """Read the newest page of the audit log."""
        self._log = self._engine.permission_inspector.audit_log()
        self.read_more()

    def read_more(self) -> None:
        """Read the next page."""
        if self._log is not None:
            self._tasks.start(self._read(self._log))

    def as_json_lines(self) -> str:
        """Return all pages read so far as JSON lines."""
        return "" if self._log is None else "".join(to_json_lines(self._log.entries))

    async def _read(self, log: AuditLog) -> None:
        await log.load_more()
        if log is self._log:
            self.read.emit(log.entries, log.is_complete)


_EVERY_TOOL = Sentence("every tool")


def rule_sentence(rule: Rule) -> Sentence:
    """Return what the rule matches, in the words of the approval dialog."""
    # Late: it imports the parser of shell commands.
    from desktop_agent.permissions.rule_proposals import describe_rule

    words = describe_rule(rule)
    if rule.tool == "*" and "tool" in words.values:
        return replace(words, values={**words.values, "tool": _EVERY_TOOL})
    return words
