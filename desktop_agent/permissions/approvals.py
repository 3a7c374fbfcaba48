"""Approvals that wait for a person: opened by the run, answered by any face, taken back by Stop."""

import asyncio
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from desktop_agent.permissions.gate import Allowed
from desktop_agent.tools.tool import AnyTool
from desktop_agent.vocabulary.blocks import JsonObject, ToolUse
from desktop_agent.vocabulary.errors import WrongUse
from desktop_agent.vocabulary.messages import new_id
from desktop_agent.vocabulary.tool_calls import AllowForConversation, AllowOnce, Decision, Preview


@dataclass(frozen=True, slots=True)
class Resolution:
    """How an approval ended. `decision` is None when Stop took it back.

    `input` and `digest` are what the decision is about: the edited arguments where there are any.
    """

    decision: Decision | None
    by: Literal["person", "stop"]
    input: JsonObject
    digest: str
    edited: bool = False

    @property
    def allows(self) -> bool:
        """Whether the call may run."""
        return isinstance(self.decision, AllowOnce | AllowForConversation)

    @property
    def verdict(self) -> Allowed | None:
        """What the last look before the start compares with, or None when the call may not run."""
        return Allowed(self.digest, "person") if self.allows else None


class Approval:
    """One question to a person about one call, bound to the digest of its tool and arguments."""

    def __init__(
        self,
        approval_id: str,
        tool_use: ToolUse,
        tool: AnyTool,
        preview: Preview | None,
        agent_path: tuple[str, ...],
    ) -> None:
        self.approval_id = approval_id
        self.tool_use = tool_use
        self.tool = tool
        self.digest = tool.digest(tool_use.input)
        self.preview = preview
        self.agent_path = agent_path
        self._ended: asyncio.Future[Resolution] = asyncio.get_running_loop().create_future()

    async def resolution(self) -> Resolution:
        """Wait for the end. Cancelling the wait leaves the approval open."""
        return await asyncio.shield(self._ended)

    def decided(self, decision: Decision) -> Resolution:
        """What a decision about this call means. Raises ToolInputInvalid when edited arguments do not fit."""
        edited = decision.edited_input if isinstance(decision, AllowOnce | AllowForConversation) else None
        if edited is None:
            return Resolution(decision, "person", self.tool_use.input, self.digest)
        self.tool.checked(edited)
        return Resolution(decision, "person", edited, self.tool.digest(edited), edited=True)

    def end(self, resolution: Resolution) -> None:
        """Tell whoever waits. Once only."""
        self._ended.set_result(resolution)


class AnswerStatus(StrEnum):
    """What became of an answer."""

    TAKEN = "taken"
    ALREADY_DECIDED = "already_decided"
    WITHDRAWN = "withdrawn"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class AnswerReport:
    """What became of an answer; `stands` is how the approval really ended, where it has."""

    approval_id: str
    status: AnswerStatus
    stands: Resolution | None = None

    @property
    def accepted(self) -> bool:
        """Whether this answer is the one that counts."""
        return self.status is AnswerStatus.TAKEN


class ApprovalBroker:
    """Holds the approvals of one conversation. Lives on the event loop; not for other threads."""

    def __init__(self) -> None:
        self._open: dict[str, Approval] = {}
        self._ended: dict[str, Resolution] = {}

    @property
    def open_approvals(self) -> tuple[Approval, ...]:
        """Those that wait, in call order."""
        return tuple(self._open.values())

    def open(
        self,
        tool_use: ToolUse,
        tool: AnyTool,
        preview: Preview | None = None,
        *,
        agent_path: tuple[str, ...] = (),
        approval_id: str | None = None,
    ) -> Approval:
        """Ask about a call.

        `approval_id` is given when a question from before a restart is asked again. Raises WrongUse for one in use.
        """
        approval_id = approval_id or new_id()
        if approval_id in self._open or approval_id in self._ended:
            raise WrongUse("This approval was opened before.")
        approval = Approval(approval_id, tool_use, tool, preview, agent_path)
        self._open[approval_id] = approval
        return approval

    def answer(self, approval_id: str, decision: Decision) -> AnswerReport:
        """Decide. The first decision counts; a later one changes nothing and is told what stands.

        Raises ToolInputInvalid when edited arguments do not fit the tool; the approval stays open then.
        """
        approval = self._open.get(approval_id)
        if approval is None:
            return self._too_late(approval_id)
        resolution = approval.decided(decision)
        self._close(approval, resolution)
        return AnswerReport(approval_id, AnswerStatus.TAKEN, resolution)

    def withdraw_all(self) -> tuple[Approval, ...]:
        """Take back all that wait, for Stop; returns them in call order."""
        waiting = self.open_approvals
        for approval in waiting:
            self._close(approval, Resolution(None, "stop", approval.tool_use.input, approval.digest))
        return waiting

    def _too_late(self, approval_id: str) -> AnswerReport:
        stands = self._ended.get(approval_id)
        if stands is None:
            return AnswerReport(approval_id, AnswerStatus.UNKNOWN)
        status = AnswerStatus.WITHDRAWN if stands.by == "stop" else AnswerStatus.ALREADY_DECIDED
        return AnswerReport(approval_id, status, stands)

    def _close(self, approval: Approval, resolution: Resolution) -> None:
        del self._open[approval.approval_id]
        self._ended[approval.approval_id] = resolution
        approval.end(resolution)
