"""Answers approvals where no window does."""

import asyncio
import logging

from desktop_agent.permissions.approvals import Approval, ApprovalBroker
from desktop_agent.tools.foreign_code import Fault, call_foreign, safe_traceback, type_name
from desktop_agent.vocabulary.engine_events import ApprovalRequested, ApprovalResolved, Envelope
from desktop_agent.vocabulary.errors import AgentError
from desktop_agent.vocabulary.options import Approver
from desktop_agent.vocabulary.tool_calls import AllowOnce, Decision, Deny

_log = logging.getLogger(__name__)
_NO_APPROVER = "Nobody is there to approve this call."


class ApprovalResponder:
    """Asks the caller's approver about each approval, also about those of specialists. One that raises denies."""

    def __init__(self, approvals: ApprovalBroker, approver: Approver) -> None:
        self._approvals = approvals
        self._approver = approver
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def handle(self, envelope: Envelope) -> None:
        """Every event."""
        event = envelope.event
        if self._approver == "wait":
            # Whoever lists the approvals answers them.
            return
        if isinstance(event, ApprovalRequested):
            task = asyncio.get_running_loop().create_task(self._decide(event.approval_id))
            self._tasks[event.approval_id] = task
            task.add_done_callback(lambda _: self._tasks.pop(event.approval_id, None))
        elif isinstance(event, ApprovalResolved) and event.approval_id in self._tasks:
            # Decided without it: by Stop, or by a rule.
            self._tasks[event.approval_id].cancel()

    async def aclose(self) -> None:
        """Ask nobody any more."""
        tasks = tuple(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _decide(self, approval_id: str) -> None:
        approval = next((each for each in self._approvals.open_approvals if each.approval_id == approval_id), None)
        if approval is None:
            return  # decided meanwhile
        decision = await self._decision(approval)
        try:
            self._approvals.answer(approval_id, decision)
        except AgentError as error:
            self._approvals.answer(approval_id, Deny(message=f"The approver's decision could not be taken: {error}"))
        except BaseException as error:  # noqa: BLE001 - it may be anything that calls itself a decision
            _log.error("a decision could not be taken: %s", safe_traceback(error))
            words = f"The approver's decision could not be taken ({type_name(error)})."
            self._approvals.answer(approval_id, Deny(message=words))

    async def _decision(self, approval: Approval) -> Decision:
        approver = self._approver
        if isinstance(approver, str):
            return AllowOnce() if approver == "always" else Deny(message=_NO_APPROVER)
        made = await call_foreign(lambda: approver(approval))
        if not isinstance(made, Fault):
            return made
        _log.error("the approver failed: %s", made.trace)
        return Deny(message=f"The approver failed ({made.kind}).")
