"""Approvals of one conversation, also those that were open when the program ended."""

from collections.abc import Callable
from typing import Any

from desktop_agent.permissions.approvals import Approval, ApprovalBroker
from desktop_agent.tools.tool import AnyTool
from desktop_agent.vocabulary.blocks import ToolUse
from desktop_agent.vocabulary.engine_events import ApprovalRequested, EngineEvent
from desktop_agent.vocabulary.tool_calls import is_same_json


class SessionApprovalBroker(ApprovalBroker):
    """Says so when a question from before a restart is asked again: the journal has it, but nobody here heard it."""

    def __init__(self, emit: Callable[[EngineEvent], None]) -> None:
        super().__init__()
        self._emit = emit

    def open(self, tool_use: ToolUse, tool: AnyTool, *given: Any, **named: Any) -> Approval:
        """As in ApprovalBroker."""
        approval = super().open(tool_use, tool, *given, **named)
        if named.get("approval_id") is not None:
            edited = None if is_same_json(approval.input, tool_use.input) else approval.input
            self._emit(
                ApprovalRequested(
                    approval.approval_id,
                    tool_use.id,
                    approval.digest,
                    approval.agent_path,
                    approval.reason,
                    edited,
                )
            )
        return approval
