"""Questions to a person about calls: opened together, watched, taken back by Stop."""

from collections.abc import Callable, Iterable

from desktop_agent.agent.calls.call import Call
from desktop_agent.agent.calls.judging.doom_loop import is_same
from desktop_agent.agent.calls.judging.gates import words_of_denial
from desktop_agent.agent.calls.judging.showing import preview_of, proposals_for
from desktop_agent.agent.calls.scope import Scope
from desktop_agent.permissions.approvals import Approval, Resolution
from desktop_agent.permissions.gate import Ask, Verdict
from desktop_agent.tools.tool import AnyTool
from desktop_agent.vocabulary.blocks import Outcome, ToolUse
from desktop_agent.vocabulary.engine_events import ApprovalRequested, ApprovalResolved, DoomLoopSuspected
from desktop_agent.vocabulary.errors import WrongUse
from desktop_agent.vocabulary.tool_calls import (
    AllowAlways,
    AllowForConversation,
    AllowOnce,
    Deny,
    DenyAndStop,
    is_same_json,
)

_TAKEN_BACK = "The call was stopped before it was started."


class Asking:
    """The approvals of one round."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        # Set by whoever judges again.
        self.suspicion_lifted: Callable[[], None] = lambda: None

    async def prepare(self, call: Call) -> None:
        """Get ready what the person will be shown."""
        if call.tool is not None:
            scope = self._scope
            call.preview = await preview_of(call, call.tool, scope.fence)
            call.proposals = await proposals_for(call, call.tool, scope.fence, scope.around.standing)

    def open_together(self, calls: Iterable[Call]) -> None:
        """Ask about those that need it and are prepared, in call order."""
        for call in calls:
            if call.is_open and not self._scope.is_closed and needs_a_person(call, call.verdict):
                self._open(call)

    async def ask(self, call: Call) -> None:
        """Ask about one that nobody had to be asked about before."""
        if call.is_asking:
            return
        call.is_asking = True
        call.answered.clear()
        try:
            await self.prepare(call)
        finally:
            call.is_asking = False
            call.answered.set()
        if call.is_open and not self._scope.is_closed:
            self._open(call)

    def withdraw(self, call: Call) -> None:
        """Take its question back; a decision that was made and not yet heard of counts all the same."""
        approval = call.approval
        if approval is None:
            return
        broker = self._scope.around.approvals
        broker.withdraw(approval.approval_id)
        if call.watcher is not None:
            call.watcher.cancel()
        # It has ended one way or the other; asking once more changes nothing and tells how.
        stands = broker.resolve_by_rule(approval.approval_id, allow=False).stands
        if stands is not None:
            self._resolved(call, approval, stands)

    def _open(self, call: Call) -> None:
        tool, verdict = call.tool, call.verdict
        if tool is None or not isinstance(verdict, Ask):
            return
        if call.repeats and call.asked_before is None:
            self._scope.emit(DoomLoopSuspected(call.use.id, call.repeats))
        reopened = self._reopened(call, tool, verdict)
        approval = reopened or self._opened(call, tool, verdict)
        call.asked_before = None
        call.approval = approval
        call.answered.clear()
        self._scope.clock.begin_waiting()
        if reopened is None:
            path, digest = self._scope.around.agent_path, approval.digest
            self._scope.emit(
                ApprovalRequested(approval.approval_id, call.use.id, digest, path, verdict.reason, call.effective_input)
            )
        call.watcher = self._scope.spawn(self._watch(call, approval))

    def _reopened(self, call: Call, tool: AnyTool, verdict: Ask) -> Approval | None:
        """The card from before the program died, which is still there."""
        if call.asked_before is None:
            return None
        try:
            return self._opened(call, tool, verdict, call.asked_before.approval_id)
        except WrongUse:
            return None

    def _opened(self, call: Call, tool: AnyTool, verdict: Ask, approval_id: str | None = None) -> Approval:
        return self._scope.around.approvals.open(
            call.use,
            tool,
            call.preview,
            arguments=call.effective_input,
            verdict=verdict,
            proposals=call.proposals,
            agent_path=self._scope.around.agent_path,
            approval_id=approval_id,
        )

    async def _watch(self, call: Call, approval: Approval) -> None:
        resolution = await approval.resolution()
        if call.approval is approval:
            self._resolved(call, approval, resolution)

    def _resolved(self, call: Call, approval: Approval, resolution: Resolution) -> None:
        """Tell it, and do what it means. Everything in one go: nothing can start in between."""
        call.approval = None
        self._scope.clock.end_waiting()
        self._tell(call, approval, resolution)
        if resolution.rule is not None:
            self._scope.around.standing.add(resolution.rule)
        if resolution.allows:
            self._allowed(call, resolution)
        else:
            self._not_allowed(call, resolution)
        call.answered.set()

    def _tell(self, call: Call, approval: Approval, resolution: Resolution) -> None:
        decision = resolution.decision
        message = decision.message if isinstance(decision, Deny | DenyAndStop) else ""
        word = decision.type if decision is not None else "withdrawn"
        changed = None if is_same_json(resolution.input, call.use.input) else resolution.input
        self._scope.emit(
            ApprovalResolved(
                approval.approval_id, call.use.id, word, resolution.by, changed, message, resolution.digest
            )
        )

    def _allowed(self, call: Call, resolution: Resolution) -> None:
        if resolution.by != "person":
            # What the rules say is looked at again before the start.
            return
        call.allowance = resolution.verdict
        call.is_edited = resolution.edited and not is_same_json(resolution.input, call.input)
        call.take(resolution.input, resolution.digest)
        decision = resolution.decision
        call.only_as_shown = isinstance(decision, AllowOnce) and not resolution.edited
        if call.loop is not None and isinstance(decision, AllowForConversation | AllowAlways):
            self._no_longer_suspect(call.loop)

    def _no_longer_suspect(self, loop: ToolUse) -> None:
        """Who allows it from now on has seen that it goes round in circles."""
        for other in self._scope.calls:
            if other.loop is not None and is_same(other.loop, loop):
                other.repeats = 0
        self.suspicion_lifted()

    def _not_allowed(self, call: Call, resolution: Resolution) -> None:
        decision = resolution.decision
        if isinstance(decision, Deny | DenyAndStop):
            words = words_of_denial(decision.message, by_person=resolution.by == "person")
            self._scope.answer(call, Outcome.DENIED, words)
            if isinstance(decision, DenyAndStop):
                self._scope.stop()
        elif not self._scope.is_closed:
            self._scope.answer(call, Outcome.CANCELLED, _TAKEN_BACK)


def needs_a_person(call: Call, verdict: Verdict | None) -> bool:
    """Whether nobody has allowed exactly what would run."""
    if not isinstance(verdict, Ask) or call.approval is not None or call.tool is None:
        return False
    return call.allowance is None or call.allowance.digest != verdict.digest
