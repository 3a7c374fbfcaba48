"""Rules or mode changed: whatever has not started is judged again, at once."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from desktop_agent.agent.calls.call import Call
from desktop_agent.agent.calls.judging.asking import Asking, needs_a_person
from desktop_agent.agent.calls.judging.gates import Gates
from desktop_agent.agent.calls.scope import Scope
from desktop_agent.permissions.gate import Allowed, Refused

# So many calls are judged again before others have their turn on the event loop.
_AT_ONCE = 50


class Again:
    """Judges the calls of one round again."""

    def __init__(self, scope: Scope, gates: Gates, asking: Asking) -> None:
        self._scope = scope
        self._gates = gates
        self._asking = asking
        self._judging: set[asyncio.Task[None]] = set()

    def standing_changed(self) -> None:
        """Rules or mode are others now: whatever has not started is judged again."""
        self._scope.version += 1
        self._judge(self._judge_again(self._scope.version))

    def end(self) -> None:
        """Nothing is judged again."""
        for task in self._judging:
            task.cancel()

    async def _judge_again(self, version: int) -> None:
        for position, call in enumerate(self._scope.calls, start=1):
            if self._is_outdated(version):
                return
            if position % _AT_ONCE == 0:
                await asyncio.sleep(0)
            if not self._may_be_judged_again(call):
                continue
            if call.tool is not None and call.tool.subjects is not None:
                # Its tool may take its time to say what the call is about; the others do not wait for that.
                self._judge(self._reconsider(call, version))
            else:
                await self._reconsider(call, version)

    async def _reconsider(self, call: Call, version: int) -> None:
        verdict = await self._gates.judge(call)
        if self._is_outdated(version) or not self._may_be_judged_again(call):
            return
        broker, approval = self._scope.around.approvals, call.approval
        if approval is not None:
            approval.tool = call.tool or approval.tool
            if isinstance(verdict, Allowed):
                broker.resolve_by_rule(approval.approval_id, allow=True)
            elif isinstance(verdict, Refused):
                broker.resolve_by_rule(approval.approval_id, allow=False, why=str(verdict.sentence))
        elif isinstance(verdict, Refused):
            self._scope.answer(call, verdict.outcome, str(verdict.sentence))
        elif needs_a_person(call, verdict):
            await self._asking.ask(call)

    def _judge(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._scope.spawn(work)
        self._judging.add(task)
        task.add_done_callback(self._judging.discard)

    def _is_outdated(self, version: int) -> bool:
        """Whether a later change came, which judges everything by itself; or Stop."""
        return version != self._scope.version or self._scope.is_closed

    def _may_be_judged_again(self, call: Call) -> bool:
        """Not before its gates, nor once its own start looks at what holds now."""
        return call.is_open and call.is_gated and not call.is_starting and not call.is_stopped
