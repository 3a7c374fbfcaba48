"""Faults of calls: their gates, questions, starts and results."""

from dataclasses import replace
from typing import Any

from desktop_agent.agent.agent_loop import AgentLoop
from desktop_agent.agent.run import Run
from desktop_agent.agent.tool_calls import tool_batch, tool_runner
from desktop_agent.agent.tool_calls.tool_batch import ToolBatch
from desktop_agent.agent.tool_calls.tool_execution import ToolExecution
from desktop_agent.agent.tool_calls.tool_gate import ApprovalFlow
from desktop_agent.agent.tool_calls.tool_runner import ToolRunner
from desktop_agent.engine import recovery
from desktop_agent.engine.session_runs import RunRecorder
from desktop_agent.permissions import gate, policy
from desktop_agent.permissions.approvals import AnswerReport, AnswerStatus, ApprovalBroker
from desktop_agent.permissions.gate import Allowed
from desktop_agent.permissions.policy import PermissionPolicy
from desktop_agent.storage.journal_queue import JournalQueue
from desktop_agent.types.permissions import RuleEffect
from desktop_agent.types.provider_events import StopReason
from tests.invariants.seeded.fault import Fault, replaced, together


def _loses_a_result(real: Any) -> Any:
    return lambda self, outcome: real(self, outcome)[:-1]


def _leaves_refused_calls_open(real: Any) -> Any:
    async def act_upon(self: AgentLoop, answer: Any) -> Any:
        if answer.stop_reason is StopReason.REFUSAL:
            self._batch = None
        return await real(self, answer)

    return act_upon


def _knows_ids_of_other_answers(_real: Any) -> Any:
    return lambda _answer, journal: list(journal)


def _asks_nobody(real: Any) -> Any:
    async def verdict(*args: Any, **more: Any) -> Any:
        answer = await real(*args, **more)
        return Allowed(answer.digest, "default") if isinstance(answer, gate.Ask) else answer

    return verdict


def _hears_stop_late(real: Any) -> Any:
    def interrupt(self: Run, target: Any = None) -> bool:
        import asyncio

        asyncio.get_running_loop().call_later(0.05, real, self, target)
        return True

    return interrupt


def _runs_what_was_asked_for(real: Any) -> Any:
    def allowed(self: ApprovalFlow, call: ToolExecution, resolution: Any) -> None:
        asked_for = call.input
        real(self, call, resolution)
        call.input = asked_for

    return allowed


def _believes_any_digest(real: Any) -> Any:
    def permit(call: ToolExecution, verdict: Any) -> Any:
        is_asked = isinstance(verdict, gate.Ask) and call.person_permit is not None
        return call.person_permit if is_asked else real(call, verdict)

    return permit


def _is_always_clear(_real: Any) -> Any:
    return lambda self, call, tool, digest: True


async def _at_once(_self: Any) -> None:
    return None


def _forgets_what_started(real: Any) -> Any:
    return lambda turn: replace(real(turn), started=frozenset(), finished={})


def _starts_before_it_is_written(real: Any) -> Any:
    async def journal(self: ToolRunner, call: ToolExecution) -> bool:
        self._batch.spawn(real(self, call))
        return True

    return journal


def _looks_again_behind_the_effect(real: Any) -> Any:
    async def work(self: ToolRunner, call: ToolExecution, tool: Any) -> Any:
        before = self._batch.version
        result = await real(self, call, tool)
        return result if self._batch.version == before else None

    return work


def _ignores_denials(real: Any) -> Any:
    def decide(case: Any, rules: Any, mode: Any, **more: Any) -> Any:
        return real(case, [rule for rule in rules if rule.effect is not RuleEffect.DENY], mode, **more)

    return decide


def _own_rules(_real: Any) -> Any:
    return property(lambda self: self._rules)


def _decides_alone(real: Any) -> Any:
    def decided(self: PermissionPolicy, case: Any, grounds: Any) -> Any:
        above, mode, self._parent = self._parent, self.mode, None
        own, self._mode = self._mode, mode
        try:
            return real(self, case, grounds)
        finally:
            self._parent, self._mode = above, own

    return decided


def _does_not_keep_it(_real: Any) -> Any:
    return lambda self, rule: None


def _clears_once(real: Any) -> Any:
    async def clear(self: ToolRunner, call: ToolExecution) -> Any:
        if call.checked_version == -1:
            return await real(self, call)
        return call.tool if self._may_go_on(call) else None

    return clear


def _compares_only_the_digest(_real: Any) -> Any:
    return lambda self, call, tool, digest: call.permit is not None and call.permit.digest == digest


def _goes_by_the_first_verdict(_real: Any) -> Any:
    async def clear(self: ToolRunner, call: ToolExecution) -> Any:
        if not self._may_go_on(call):
            return None
        call.permit = call.person_permit or (call.verdict if isinstance(call.verdict, Allowed) else None)
        return call.permit and call.tool

    return clear


def _does_nothing(_real: Any) -> Any:
    return lambda self: None


def _turned_round(real: Any) -> Any:
    return lambda self, outcome: list(reversed(real(self, outcome)))


def _all_at_once(_real: Any) -> Any:
    return lambda calls: iter([list(calls)] if calls else [])


def _takes_every_answer(real: Any) -> Any:
    def answer(self: ApprovalBroker, approval_id: str, decision: Any) -> AnswerReport:
        return replace(real(self, approval_id, decision), status=AnswerStatus.TAKEN)

    return answer


def _remembers_the_last(real: Any) -> Any:
    def answer(self: ApprovalBroker, approval_id: str, decision: Any) -> AnswerReport:
        report = real(self, approval_id, decision)
        if not report.accepted and report.resolution is not None and report.resolution.by == "person":
            self._ended[approval_id] = replace(report.resolution, decision=decision)
        return report

    return answer


def _goes_by_the_last(real: Any) -> Any:
    def resolved(self: ApprovalFlow, call: ToolExecution, approval: Any, resolution: Any) -> None:
        last = self._batch.context.approvals._ended.get(approval.approval_id, resolution)
        real(self, call, approval, last)

    return resolved


def _goes_on_watching(real: Any) -> Any:
    def withdraw(self: ApprovalFlow, call: ToolExecution) -> None:
        call.approval_task = None
        real(self, call)

    return withdraw


def _hears_twice(_real: Any) -> Any:
    async def watch(self: ApprovalFlow, call: ToolExecution, approval: Any) -> None:
        self._on_resolved(call, approval, await approval.resolution())

    return watch


_NO_LOOK = together(
    replaced(ToolRunner, "_check", _clears_once),
    replaced(ToolRunner, "_is_still_allowed", _compares_only_the_digest),
)
_NO_LOOK_AT_ALL = together(
    replaced(ToolRunner, "_check", _goes_by_the_first_verdict),
    replaced(ToolRunner, "_is_still_allowed", _compares_only_the_digest),
    replaced(ApprovalFlow, "policy_changed", _does_nothing),
)

OF_CALLS = (
    Fault("a result is lost", (1,), replaced(ToolBatch, "close", _loses_a_result)),
    Fault("calls of a refused answer stay open", (1,), replaced(AgentLoop, "_act_on", _leaves_refused_calls_open)),
    Fault(
        "an answer gets the results of another with the same ids",
        (1,),
        replaced(recovery, "_turn_of", _knows_ids_of_other_answers),
    ),
    Fault("nobody is asked", (2,), replaced(PermissionPolicy, "verdict", _asks_nobody)),
    Fault("Stop comes late", (2,), replaced(Run, "interrupt", _hears_stop_late)),
    Fault(
        "what the person edited is not what runs",
        (2,),
        together(
            replaced(ApprovalFlow, "_on_allowed", _runs_what_was_asked_for),
            replaced(tool_runner, "_permit_for", _believes_any_digest),
            replaced(ToolRunner, "_is_still_allowed", _is_always_clear),
        ),
    ),
    Fault("started is not written before the effect", (3,), replaced(RunRecorder, "flush", lambda _: _at_once)),
    Fault(
        "started is written beside the effect",
        (3,),
        replaced(ToolRunner, "_journal_start", _starts_before_it_is_written),
    ),
    Fault("what started is run again", (3,), replaced(recovery, "_recovered_calls", _forgets_what_started)),
    Fault(
        "the last look comes behind the effect", (3,), replaced(ToolRunner, "_run_tool", _looks_again_behind_the_effect)
    ),
    Fault("rules that deny are ignored", (4,), replaced(policy, "decide", _ignores_denials)),
    Fault(
        "a specialist has no rules above it",
        (4,),
        together(
            replaced(PermissionPolicy, "rules", _own_rules), replaced(PermissionPolicy, "_decide", _decides_alone)
        ),
    ),
    Fault("rules are not kept", (4,), replaced(JournalQueue, "save_rule", _does_not_keep_it)),
    # One look is for rules and for the mode: which of them changed, and to what, decides by what it is found.
    Fault("no look before the start", (2, 4, 8), _NO_LOOK),
    Fault("no look again between the verdict and the start", (2, 4, 8), _NO_LOOK_AT_ALL),
    Fault("results are turned round", (5,), replaced(ToolBatch, "close", _turned_round)),
    Fault("no barrier", (5,), replaced(tool_batch, "parallel_groups", _all_at_once)),
    Fault("every answer counts", (13,), replaced(ApprovalBroker, "answer", _takes_every_answer)),
    Fault(
        "the last decision counts",
        (13,),
        together(
            replaced(ApprovalBroker, "answer", _remembers_the_last),
            replaced(ApprovalFlow, "_on_resolved", _goes_by_the_last),
        ),
    ),
    Fault(
        "a decision is heard twice",
        (13,),
        together(
            replaced(ApprovalFlow, "withdraw", _goes_on_watching),
            replaced(ApprovalFlow, "_await_resolution", _hears_twice),
        ),
    ),
)
