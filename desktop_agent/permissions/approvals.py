"""Approvals that wait for a person: opened by the run, answered by any face, taken back by Stop."""

import asyncio
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, cached_property
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from desktop_agent.permissions.gate import Allowed, Ask, validate_edited_arguments
from desktop_agent.tools.foreign_code import deep_copy
from desktop_agent.tools.tool import AnyTool
from desktop_agent.vocabulary.blocks import JsonObject, ToolUse
from desktop_agent.vocabulary.conduct.rules import ArgumentsPattern, Rule, RuleEffect, RuleScope
from desktop_agent.vocabulary.errors import WrongUse
from desktop_agent.vocabulary.messages import new_id
from desktop_agent.vocabulary.tool_calls import (
    AllowAlways,
    AllowForConversation,
    AllowOnce,
    Decision,
    Deny,
    DenyAndStop,
    Effect,
    Preview,
)

# Tools that can do nearly anything: allowing one for a conversation allows only what the call shows.
_FAR_REACHING = frozenset({Effect.EXECUTE, Effect.NETWORK})
_AllowDecision = AllowOnce | AllowForConversation | AllowAlways
# So many ended approvals are remembered, to tell a decision that comes late what stands.
_MAX_REMEMBERED = 200


@dataclass(frozen=True, slots=True)
class Resolution:
    """How an approval ended. `decision` is None when Stop took it back.

    `input` and `digest` are what the decision is about: the edited arguments where there are any. `rule` is what
    holds from now on, where the person decided about more than this call; whoever asked adds it to the standing.
    """

    decision: Decision | None
    by: Literal["person", "rule", "stop"]
    input: JsonObject
    digest: str
    edited: bool = False
    rule: Rule | None = None

    @property
    def allows(self) -> bool:
        """Whether the call may run."""
        return isinstance(self.decision, _AllowDecision)

    @property
    def verdict(self) -> Allowed | None:
        """What the last look before the start compares with, or None when the call may not run."""
        if not self.allows:
            return None
        trusts = self.rule is not None and self.rule.trusts
        return Allowed(self.digest, "person" if self.by == "person" else "rule", trusts=trusts)


class Approval:
    """One question to a person about one call, bound to the digest of its tool and arguments.

    `tool_use` and `input` are copies: whoever is asked may do to them what they like. `arguments` are what would run,
    where a hook made others of them. `verdict` is the gate's that asks, about just these arguments; without `reasons`
    it is the tool's default. `proposals` are the rules that the person may make of it, shown with the question.
    """

    def __init__(
        self,
        approval_id: str,
        tool_use: ToolUse,
        tool: AnyTool,
        preview: Preview | None = None,
        *,
        arguments: JsonObject | None = None,
        verdict: Ask | None = None,
        proposals: tuple[Rule, ...] = (),
        agent_path: tuple[str, ...] = (),
    ) -> None:
        self.approval_id = approval_id
        self.tool = tool
        self.preview = preview
        self.reasons = () if verdict is None else verdict.reasons
        self._asked_by = () if verdict is None else verdict.rules
        self.proposals = proposals
        self.agent_path = agent_path
        self._use = tool_use
        self._arguments = tool_use.input if arguments is None else arguments
        self.digest = tool.digest(self._arguments) if verdict is None else verdict.digest
        self._ended: asyncio.Future[Resolution] = asyncio.get_running_loop().create_future()

    @property
    def reason(self) -> str:
        """Why it is asked, in English."""
        return " ".join(map(str, self.reasons))

    @cached_property
    def tool_use(self) -> ToolUse:
        """The call, as the model made it."""
        return deep_copy(self._use)

    @cached_property
    def input(self) -> JsonObject:
        """The arguments that are asked about."""
        return deep_copy(self._arguments)

    async def resolution(self) -> Resolution:
        """Wait for the end. Cancelling the wait leaves the approval open."""
        return await asyncio.shield(self._ended)

    def decided(self, decision: Decision) -> Resolution:
        """What a decision about this call means.

        Raises ToolInputInvalid when edited arguments do not fit, and WrongUse for a rule that was not proposed.
        """
        edited = decision.edited_input if isinstance(decision, _AllowDecision) else None
        arguments, digest = self._arguments, self.digest
        if edited is not None:
            arguments = validate_edited_arguments(edited, self.tool)
            digest = self.tool.digest(arguments)
        return Resolution(decision, "person", arguments, digest, edited is not None, self._rule(decision, digest))

    def settled(self, *, allow: bool, why: str = "") -> Resolution:
        """What it means that a rule or a mode decides now."""
        return Resolution(AllowOnce() if allow else Deny(message=why), "rule", self._arguments, self.digest)

    def withdrawn(self) -> Resolution:
        """What Stop makes of it."""
        return Resolution(None, "stop", self._arguments, self.digest)

    def end(self, resolution: Resolution) -> None:
        """Tell whoever waits. Once only."""
        self._ended.set_result(resolution)

    def _rule(self, decision: Decision, digest: str) -> Rule | None:
        if isinstance(decision, AllowAlways):
            for proposal in self.proposals:
                if proposal.id == decision.rule_id:
                    return proposal.model_copy(update={"answers": self._asked_by})
            raise WrongUse("This rule was not proposed for this call.", "Choose one of the rules that were shown.")
        if isinstance(decision, AllowForConversation):
            return self._conversation_rule(digest)
        return None

    def _conversation_rule(self, digest: str) -> Rule:
        """The whole tool; of one that reaches far only what the call showed."""
        pattern = None
        if self.tool.effects & _FAR_REACHING:
            as_shown = digest == self.digest and self.proposals
            pattern = self.proposals[0].pattern if as_shown else ArgumentsPattern(digest=digest)
        scope = RuleScope.CONVERSATION
        allow, answers = RuleEffect.ALLOW, self._asked_by
        return Rule(effect=allow, tool=self.tool.identity, pattern=pattern, scope=scope, answers=answers)


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
        """Those that wait, in the order in which they were opened."""
        return tuple(self._open.values())

    def open(
        self,
        tool_use: ToolUse,
        tool: AnyTool,
        preview: Preview | None = None,
        *,
        arguments: JsonObject | None = None,
        verdict: Ask | None = None,
        proposals: tuple[Rule, ...] = (),
        agent_path: tuple[str, ...] = (),
        approval_id: str | None = None,
    ) -> Approval:
        """Ask about a call; what the parameters mean is said at Approval.

        `approval_id` is given when a question from before a restart is asked again. Raises WrongUse for one in use.
        """
        approval_id = approval_id or new_id()
        if approval_id in self._open or approval_id in self._ended:
            raise WrongUse("This approval was opened before.")
        approval = Approval(
            approval_id,
            tool_use,
            tool,
            preview,
            arguments=arguments,
            verdict=verdict,
            proposals=proposals,
            agent_path=agent_path,
        )
        self._open[approval_id] = approval
        return approval

    def answer(self, approval_id: str, decision: Decision) -> AnswerReport:
        """Decide. The first decision counts; a later one changes nothing and is told what stands.

        Raises ToolInputInvalid when edited arguments do not fit the tool, and WrongUse for a rule that was not
        proposed and for what is no decision; the approval stays open then.
        """
        decision = _validate_decision(decision)
        approval = self._open.get(approval_id)
        if approval is None:
            return self._too_late(approval_id)
        return self._close(approval, approval.decided(decision))

    def resolve_by_rule(self, approval_id: str, *, allow: bool, why: str = "") -> AnswerReport:
        """A rule or a mode changed and decides instead of the person. Never over a decision that was made."""
        approval = self._open.get(approval_id)
        if approval is None:
            return self._too_late(approval_id)
        return self._close(approval, approval.settled(allow=allow, why=why))

    def withdraw(self, approval_id: str) -> Approval | None:
        """Take back one, for Stop; None when it does not wait."""
        approval = self._open.get(approval_id)
        if approval is not None:
            self._close(approval, approval.withdrawn())
        return approval

    def _too_late(self, approval_id: str) -> AnswerReport:
        stands = self._ended.get(approval_id)
        if stands is None:
            return AnswerReport(approval_id, AnswerStatus.UNKNOWN)
        status = AnswerStatus.WITHDRAWN if stands.by == "stop" else AnswerStatus.ALREADY_DECIDED
        return AnswerReport(approval_id, status, stands)

    def _close(self, approval: Approval, resolution: Resolution) -> AnswerReport:
        del self._open[approval.approval_id]
        self._ended[approval.approval_id] = resolution
        if len(self._ended) > _MAX_REMEMBERED:
            del self._ended[next(iter(self._ended))]
        approval.end(resolution)
        return AnswerReport(approval.approval_id, AnswerStatus.TAKEN, resolution)


@cache
def _decisions() -> TypeAdapter[Decision]:
    return TypeAdapter(Decision)


def _validate_decision(decision: object) -> Decision:
    """As our own, whoever made it and how. Raises WrongUse."""
    if isinstance(decision, _AllowDecision | Deny | DenyAndStop):
        try:
            return _decisions().validate_python(dict(vars(decision)))
        except ValidationError:
            pass
    raise WrongUse("This is no decision.", "Answer with one that allows or denies.")
