"""One turn's tool calls: gates, approvals, execution, and a result for each, in call order."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from time import monotonic
from typing import Literal

from desktop_agent.agent.recorder import Recorder
from desktop_agent.conversation.repair import missing_result
from desktop_agent.permissions.approvals import Approval, ApprovalBroker, Resolution
from desktop_agent.permissions.gate import Allowed, Ask, Refused, Verdict, still_allowed
from desktop_agent.permissions.standing import Standing
from desktop_agent.tools.registry import ToolRegistry
from desktop_agent.tools.tool import AnyTool
from desktop_agent.vocabulary.blocks import JsonObject, Outcome, ResultPart, Text, ToolResult, ToolUse
from desktop_agent.vocabulary.engine_events import (
    ApprovalRequested,
    ApprovalResolved,
    ToolCallPending,
    ToolFinished,
    ToolProgress,
    ToolStarted,
)
from desktop_agent.vocabulary.errors import StorageFailed, ToolFailed
from desktop_agent.vocabulary.tool_calls import (
    AllowForConversation,
    AllowOnce,
    Deny,
    DenyAndStop,
    Preview,
    TextPreview,
    ToolClass,
)

_log = logging.getLogger(__name__)

PARALLEL_READS = 20
# A result longer than this is cut, with a word about it, before it reaches history, journal and model.
LONGEST_RESULT = 400_000
_NOT_STARTED: dict[Outcome, str] = {
    Outcome.CANCELLED: "The call was cancelled before it was started.",
    Outcome.LIMIT: "The call was not run: a limit was reached.",
}
_NOT_AS_SHOWN = "Not run: what the call would do changed after the person allowed it. Read again, then call again."
_STARTED = "The call was stopped while it was running. It may have taken effect."


@dataclass(slots=True)
class _Call:
    """A call on its way to its result."""

    use: ToolUse
    tool: AnyTool | None
    verdict: Verdict
    approval: Approval | None = None
    result: ToolResult | None = None
    started_at: float | None = None


class CallRound:
    """The calls of one answer. `run` works through them; `close` answers what is still open, whatever happened."""

    def __init__(
        self,
        uses: Sequence[ToolUse],
        tools: ToolRegistry,
        approvals: ApprovalBroker,
        standing: Standing,
        recorder: Recorder,
    ) -> None:
        self._approvals = approvals
        self._standing = standing
        self._recorder = recorder
        self._denied_for_good = False
        self._closed = False
        self._reads = asyncio.Semaphore(PARALLEL_READS)
        self._calls = [
            _Call(use, tool := tools.get(use.name), standing.verdict(use, tool, tools.names)) for use in uses
        ]

    async def run(self) -> bool:
        """Answer every call; False when the person denied one and wants to stop."""
        for call in self._calls:
            tool_class = call.tool.tool_class if call.tool else ToolClass.MUTATING
            self._recorder.emit(ToolCallPending(call.use.id, call.use.name, call.use.input, tool_class))
        for call in self._calls:
            await self._request_approval(call)
        # Neighbouring reads run together; a mutating call waits for all before it and holds up all behind it.
        for read_only, group in groupby(self._calls, key=_is_read_only):
            if read_only:
                await self._run_together(list(group))
            else:
                for call in group:
                    await self._answer(call)
        return not self._denied_for_good

    def stop(self) -> None:
        """Start nothing more, even if a running tool does not heed that it was cancelled."""
        self._closed = True
        self._approvals.withdraw_all()

    def close(self, outcome: Literal[Outcome.CANCELLED, Outcome.LIMIT]) -> list[ToolResult]:
        """All results in call order; calls without one get `outcome`. Nothing starts after this."""
        self.stop()
        for call in self._calls:
            if call.result is None:
                why = _NOT_STARTED[outcome] if call.started_at is None else _STARTED
                self._finish(call, missing_result(call.use, outcome, why))
        return [call.result for call in self._calls if call.result is not None]

    async def _request_approval(self, call: _Call) -> None:
        if not isinstance(call.verdict, Ask) or call.tool is None:
            return
        approval = self._approvals.open(call.use, call.tool, await _preview(call.tool, call.use.input))
        call.approval = approval
        self._recorder.emit(ApprovalRequested(approval.approval_id, call.use.id, approval.digest))

    async def _run_together(self, calls: list[_Call]) -> None:
        async with asyncio.TaskGroup() as group:
            for call in calls:
                group.create_task(self._answer_in_turn(call))

    async def _answer_in_turn(self, call: _Call) -> None:
        async with self._reads:
            await self._answer(call)

    async def _answer(self, call: _Call) -> None:
        if self._closed:
            return
        verdict, tool = call.verdict, call.tool
        if isinstance(verdict, Refused) or tool is None:
            why = str(verdict.sentence) if isinstance(verdict, Refused) else "There is no such tool."
            self._finish(call, missing_result(call.use, Outcome.FAILED, why))
            return
        arguments = call.use.input
        if call.approval is not None:
            resolution = await self._resolution(call, call.approval)
            if resolution.verdict is None:
                return
            verdict, arguments = resolution.verdict, resolution.input
            if not resolution.edited and await self._does_something_else(call, tool, call.approval):
                self._finish(call, missing_result(call.use, Outcome.FAILED, _NOT_AS_SHOWN))
                return
        if self._closed:
            return
        if not still_allowed(verdict, tool, arguments):
            self._finish(call, missing_result(call.use, Outcome.DENIED, "The call changed after it was allowed."))
            return
        await self._execute(call, tool, arguments)

    async def _does_something_else(self, call: _Call, tool: AnyTool, approval: Approval) -> bool:
        """Whether it would do something else by now than what the person was shown, and allowed only that."""
        if approval.preview is None or isinstance(self._standing.verdict(call.use, tool, ()), Allowed):
            return False
        return await _preview(tool, call.use.input) != approval.preview

    async def _resolution(self, call: _Call, approval: Approval) -> Resolution:
        """Wait for the person; a denial is answered here."""
        resolution = await approval.resolution()
        decision = resolution.decision
        message = decision.message if isinstance(decision, Deny | DenyAndStop) else ""
        word = decision.type if decision is not None else "withdrawn"
        edited = resolution.input if resolution.edited else None
        self._recorder.emit(ApprovalResolved(approval.approval_id, call.use.id, word, resolution.by, edited, message))
        if isinstance(decision, AllowForConversation):
            self._allow_from_now_on(approval)
        if isinstance(decision, Deny | DenyAndStop):
            if isinstance(decision, DenyAndStop):
                self._denied_for_good = True
                self.stop()
            said = f"The person denied this call and said: {message}" if message else "The person denied this call."
            self._finish(call, missing_result(call.use, Outcome.DENIED, said))
        return resolution

    def _allow_from_now_on(self, approval: Approval) -> None:
        """Later calls of this tool run unasked, and those that wait beside it are allowed with it."""
        self._standing.allow(approval.tool)
        for other in self._approvals.open_approvals:
            if other.tool.identity == approval.tool.identity:
                self._approvals.answer(other.approval_id, AllowOnce())

    async def _execute(self, call: _Call, tool: AnyTool, arguments: JsonObject) -> None:
        self._recorder.emit(ToolStarted(call.use.id, arguments))
        try:
            await self._recorder.settle()
        except StorageFailed as error:
            self._finish(call, missing_result(call.use, Outcome.FAILED, f"Not run: {error}"))
            return
        if self._closed:
            return
        call.started_at = monotonic()
        outcome, parts = await self._run_tool(call, tool, arguments)
        if call.result is None:
            self._finish(call, ToolResult(tool_use_id=call.use.id, content=parts, outcome=outcome))

    async def _run_tool(
        self, call: _Call, tool: AnyTool, arguments: JsonObject
    ) -> tuple[Outcome, tuple[ResultPart, ...]]:
        def progress(text: str) -> None:
            if not self._closed:
                self._recorder.emit(ToolProgress(call.use.id, text))

        try:
            async with asyncio.timeout(tool.timeout):
                parts = await tool.run(tool.checked(arguments), progress)
            return Outcome.SUCCEEDED, _bounded(parts)
        except TimeoutError:
            return Outcome.TIMED_OUT, (Text(text=f"The call took longer than {tool.timeout:g} s and was stopped."),)
        except ToolFailed as error:
            return Outcome.FAILED, (Text(text=f"{error} {error.remedy}"),)
        except Exception as error:  # noqa: BLE001 - a fault in a tool is a failed call, not the end of the run
            _log.exception("tool %s failed", tool.name)
            return Outcome.FAILED, (Text(text=f"The tool failed inside ({type(error).__name__})."),)

    def _finish(self, call: _Call, result: ToolResult) -> None:
        call.result = result
        seconds = 0.0 if call.started_at is None else monotonic() - call.started_at
        self._recorder.emit(ToolFinished(call.use.id, result, seconds))


async def _preview(tool: AnyTool, arguments: JsonObject) -> Preview | None:
    """What the call would do; a preview that cannot be made says why instead of hiding the call."""
    if tool.preview is None:
        return None
    try:
        return await tool.preview(tool.checked(arguments))
    except ToolFailed as error:
        return TextPreview(str(error))
    except Exception as error:  # noqa: BLE001 - a fault in a preview must not keep the call from the person
        _log.exception("the preview of tool %s failed", tool.name)
        return TextPreview(f"What it would do cannot be shown ({type(error).__name__}).")


def _is_read_only(call: _Call) -> bool:
    return call.tool is not None and call.tool.tool_class is ToolClass.READ_ONLY


def _bounded(parts: tuple[ResultPart, ...]) -> tuple[ResultPart, ...]:
    """Long texts cut, with a word about it."""
    return tuple(
        Text(text=f"{part.text[:LONGEST_RESULT]}\n[cut: {len(part.text):,} characters in all]")
        if isinstance(part, Text) and len(part.text) > LONGEST_RESULT
        else part
        for part in parts
    )
