"""Calls that wait for a decision, as the screens see them."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from desktop_agent.vocabulary.blocks import JsonObject
from desktop_agent.vocabulary.conduct.rules import Rule
from desktop_agent.vocabulary.errors import Sentence, ToolFailed
from desktop_agent.vocabulary.tool_calls import CommandPreview, Decision, Effect, Preview, TextPreview, ToolClass

if TYPE_CHECKING:
    from desktop_agent.engine.session import Session
    from desktop_agent.permissions.approvals import Approval
    from desktop_agent.tools.tool import AnyTool


_PREVIEW_SECONDS = 10.0
"""Seconds in which a tool must say what it would do."""


@dataclass(frozen=True)
class WaitingCall:
    """One call. `validate` answers with a sentence when arguments do not fit the tool, and with None when they do.

    `reasons` are why somebody is asked, where it is not the tool's default; `outsiders` are those outside whose content
    is one of them. `proposals` are the rules that may be made of it, with AllowAlways, each with what it matches.
    `undoable`: whether what it changes can be undone; None where it changes nothing.
    `server` is the MCP server that offers the tool, by its title, and `server_says` its own words about the tool.
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
        """In call order. Those outside whom they name are those who can be trusted from then on."""
        taint = self._session.permission_policy.untrusted_content
        why = taint.suspension.why
        names = tuple(each.name for each in taint.sources)
        found = tuple(
            _waiting_call(approval, names if why in approval.reasons else ())
            for approval in self._session.approvals.open_approvals
        )
        self._shown = names if any(each.outsiders for each in found) else ()
        return found

    def answer(self, approval_id: str, decision: Decision) -> None:
        """Decide. Raises ToolInputInvalid for an edit that does not fit, and WrongUse; the call waits on then."""
        self._session.approvals.answer(approval_id, decision)

    def trust(self) -> None:
        """Let pass what those outside brought whom the person was shown: what was allowed for good holds again."""
        shown, self._shown = self._shown, ()
        self._session.permission_policy.lift_suspension(shown)

    async def preview(self, approval_id: str, arguments: JsonObject) -> Preview | None:
        """What the call would do with these arguments; where that cannot be told, why."""
        # Late, here and below: what decides about calls comes with the first conversation.
        from desktop_agent.permissions.gate import validate_edited_arguments
        from desktop_agent.permissions.previews import copy_preview
        from desktop_agent.tools.answers import plain_text
        from desktop_agent.tools.foreign_code import type_name

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
    from desktop_agent.permissions.rule_words import describe_rule

    def validate(arguments: JsonObject) -> str | None:
        try:
            # Just as the decision will be looked at.
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
    """Without what the preview says too, beside the line that it is about."""
    from desktop_agent.permissions.hard_denies import UNCLEAR

    if isinstance(approval.preview, CommandPreview) and not approval.preview.understood:
        return tuple(each for each in approval.reasons if each.template != UNCLEAR)
    return approval.reasons


def _server_of(approval: "Approval") -> str:
    from desktop_agent.tools.schemas import JsonSchema

    tool = approval.tool
    # Tools of servers bring a JSON Schema and take the arguments as they are: to have them checked again, however
    # large they are, would hold up the window.
    if tool.brings is None or not isinstance(tool.schema, JsonSchema):
        return ""
    source = tool.brings(approval.input)
    return source.name if source is not None and source.kind == "mcp" else ""


def _undoable(tool: "AnyTool") -> bool | None:
    if tool.changes is not None or tool.undo is not None:
        return True
    # What a specialist does is asked about call by call.
    changes = tool.tool_class is not ToolClass.READ_ONLY and Effect.DELEGATE not in tool.effects
    return False if changes or {Effect.EXECUTE, Effect.NETWORK} & tool.effects else None
