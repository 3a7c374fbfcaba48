"""Runs one tool call: the last checks before its start, the tool at work, its result, the hooks after it."""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Coroutine
from time import monotonic
from typing import Any, TypeVar

from desktop_agent.agent.hooks import run_post_tool_hooks
from desktop_agent.agent.tool_calls.tool_execution import (
    LIMIT_REACHED,
    BatchContext,
    CallStatus,
    ToolExecution,
    stop_text,
    timeout_text,
)
from desktop_agent.agent.tool_calls.tool_gate import TOOL_QUERY_TIMEOUT, ToolGate, checked_arguments
from desktop_agent.agent.tool_calls.tool_results import validated_content
from desktop_agent.permissions.gate import Allowed, Denied, Verdict
from desktop_agent.processes.foreign_code import Fault, call_foreign, safe_traceback
from desktop_agent.processes.worker_threads import run_by_size
from desktop_agent.tools.tool import AnyTool, RunningCall
from desktop_agent.types.blocks import Outcome, ResultPart, Text, ToolResult
from desktop_agent.types.checkpoints import Checkpoint
from desktop_agent.types.engine_events import CheckpointCreated, OutsideContentArrived, ToolProgress, ToolStarted
from desktop_agent.types.errors import AgentError, StorageFailed, ToolFailed
from desktop_agent.types.policies import PostToolUse
from desktop_agent.types.tool_calls import FileChanges, UntrustedSource

_log = logging.getLogger(__name__)

_PREVIEW_CHANGED = "Not run: what the call would do changed after the person allowed it. Read again, then call again."
_ARGUMENTS_CHANGED = "The call changed after it was allowed."
_NO_LONGER_ALLOWED = "Not run: what may run unasked changed just before the start. Call again if it is still needed."
_NO_CHECKPOINT = "Not run: the files that the call would change could not be saved first."
_HOOK_FAILED = "A hook failed after the call, so that its result was kept out. The call itself took place."
_STOPPED_BEFORE_HOOKS = "Its result was kept out: it was stopped before the hooks had ruled on it."

T = TypeVar("T")
# How the tool ended, and the parts of its result.
_ToolOutput = tuple[Outcome, tuple[ResultPart, ...]]


class ToolRunner:
    """Runs the calls of one batch, each at most once."""

    def __init__(self, batch: BatchContext, gate: ToolGate) -> None:
        self._batch = batch
        self._gate = gate

    async def run(self, call: ToolExecution) -> None:
        """Start the call and run it to its end. It is PENDING again where it must be approved, or must wait, first."""
        call.advance(CallStatus.STARTING)
        call.checked_version = -1
        await self._run(call)
        if not self._batch.is_closed:
            call.advance(CallStatus.PENDING)

    async def _run(self, call: ToolExecution) -> None:
        tool = await self._check(call)
        if tool is None:
            return
        checkpoint = await self._save_checkpoint(call, tool)
        output: _ToolOutput | None = None
        try:
            if await self._is_as_shown(call, tool) and await self._check(call) and await self._journal_start(call):
                while output is None and (checked := await self._check(call)) is not None:
                    tool = checked
                    output = await self._run_tool(call, tool)
        finally:
            if output is None:
                await self._wait_through(self._record_outcome(call, checkpoint, None))
        if output is not None:
            await self._finish(call, tool, output, checkpoint)

    async def _check(self, call: ToolExecution) -> AnyTool | None:
        """Return the tool when the call may start as things are now. Quick where nothing changed since the last time.

        None: it may not. Then it has its result, must be approved or wait first, or its batch is closed.
        """
        batch = self._batch
        while self._may_go_on(call):
            if call.checked_version == batch.version and self._gate.is_offered(call):
                return call.tool
            version = batch.version
            verdict = await self._gate.evaluate(call)
            if version != batch.version or not self._may_go_on(call):
                continue
            if not self._apply_verdict(call, verdict):
                return None
            call.checked_version = version
        return None

    def _may_go_on(self, call: ToolExecution) -> bool:
        if self._batch.is_closed or not call.is_open:
            return False
        if self._batch.is_limit_reached:
            self._batch.answer(call, Outcome.LIMIT, LIMIT_REACHED)
        return call.is_open

    def _apply_verdict(self, call: ToolExecution, verdict: Verdict) -> bool:
        """Return whether the call may start now; else it gets its result, or must be approved, or wait, first."""
        call.permit = _permit_for(call, verdict)
        if isinstance(verdict, Denied):
            self._batch.answer(call, verdict.outcome, str(verdict.sentence))
        elif call.permit is not None and not call.must_run_alone:
            return True
        elif call.status is CallStatus.JOURNALLED:
            # An approval after the journalled start would be out of order.
            self._batch.answer(call, Outcome.DENIED, _NO_LONGER_ALLOWED)
        return False

    async def _save_checkpoint(self, call: ToolExecution, tool: AnyTool) -> Checkpoint | None:
        """Save what the call will change, and what its undo needs, durably. If that fails, the call gets its result."""
        batch, checkpointer, changes = self._batch, self._batch.context.checkpointer, tool.changes
        if checkpointer is None or (changes is None and tool.undo is None):
            return None
        paths: tuple[str, ...] = ()
        if changes is not None:

            async def changed_paths() -> tuple[str, ...]:
                return tuple(await changes(await checked_arguments(call, tool)))

            result = await batch.supervisor.run(changed_paths, TOOL_QUERY_TIMEOUT)
            if isinstance(result, Fault):
                batch.answer(call, Outcome.FAILED, f"{_NO_CHECKPOINT} {result.description}")
                return None
            paths = result
        arguments = None if tool.undo is None else call.input
        try:
            checkpoint = await checkpointer.create_checkpoint(
                call.use.id, batch.message_id, paths, tool=tool.identity, arguments=arguments
            )
        except Exception as error:  # noqa: BLE001 - whatever keeps them from being saved keeps the call from running
            if not isinstance(error, AgentError):
                _log.error("the files of a call of tool %s could not be saved: %s", tool.name, safe_traceback(error))
            why = error.whole if isinstance(error, AgentError) else f"({type(error).__name__})"
            batch.answer(call, Outcome.FAILED, f"{_NO_CHECKPOINT} {why}")
            return None
        if checkpoint is not None:
            saved = tuple(file.path for file in checkpoint.files)
            batch.emit(CheckpointCreated(checkpoint.id, call.use.id, saved))
        return checkpoint

    async def _is_as_shown(self, call: ToolExecution, tool: AnyTool) -> bool:
        """Return False if the person allowed only what the preview showed, and the preview has changed."""
        if call.preview is None or not call.is_bound_to_preview or call.permit is not call.person_permit:
            return True
        if await self._gate.preview(call, tool) != call.preview:
            self._batch.answer(call, Outcome.FAILED, _PREVIEW_CHANGED)
        return call.is_open

    async def _journal_start(self, call: ToolExecution) -> bool:
        """Journal the start: from here on the call may have had its effect. Return False where the disk refuses."""
        call.advance(CallStatus.JOURNALLED)
        permit = call.permit
        by, rule_id = ("", None) if permit is None else (permit.by, permit.rule_id)
        self._batch.emit(ToolStarted(call.use.id, call.input, by, rule_id))
        try:
            await self._batch.context.recorder.flush()
        except StorageFailed as error:
            self._batch.answer(call, Outcome.FAILED, f"Not run: {error}")
        return call.is_open

    async def _run_tool(self, call: ToolExecution, tool: AnyTool) -> _ToolOutput | None:
        """Return how the tool ended; None where a change kept it from starting, or Stop broke it off."""
        batch = self._batch

        async def work() -> _ToolOutput | None:
            raw_input = call.input
            digest, arguments = await run_by_size(lambda: (tool.digest(raw_input), tool.checked(raw_input)), raw_input)
            if not self._is_still_allowed(call, tool, digest):
                return None
            call.started_at = monotonic()
            call.advance(CallStatus.RUNNING)
            return Outcome.SUCCEEDED, await tool.run(arguments, self._running_call(call))

        call.stop_signal = asyncio.get_running_loop().create_future()
        call.tool_task = task = batch.supervisor.start(work)
        was_halted = is_late = False
        try:
            await asyncio.wait({task, call.stop_signal}, timeout=tool.timeout, return_when=asyncio.FIRST_COMPLETED)
            was_halted = call.stop_signal.done()
            is_late = not was_halted and not task.done()
            if not task.done():
                await self._end_tool(call, tool, task)
        except asyncio.CancelledError:
            # The result of a tool that had ended in the same moment counts.
            was_halted = call.stop_signal.done()
            if was_halted or not task.done():
                raise
        finally:
            call.cancel_tool()
        if was_halted and call.status is CallStatus.STOPPING:
            return Outcome.CANCELLED, _text_parts(stop_text(call))
        if is_late:
            return Outcome.TIMED_OUT, _text_parts(timeout_text(call, tool.timeout))
        value = Fault(asyncio.CancelledError()) if not task.done() or task.cancelled() else task.result()
        if not isinstance(value, Fault):
            return value
        # Where Stop made it fail, the batch sets the result.
        return None if was_halted else _failure(tool, value)

    def _is_still_allowed(self, call: ToolExecution, tool: AnyTool, digest: str) -> bool:
        """Check for the last time, without awaiting. `digest` is that of the arguments which will run."""
        if call.tool is not tool or call.checked_version != self._batch.version or not self._gate.is_offered(call):
            return False
        if call.permit is None or call.permit.digest != digest:
            self._batch.answer(call, Outcome.DENIED, _ARGUMENTS_CHANGED)
        return call.is_open

    def _running_call(self, call: ToolExecution) -> RunningCall:
        def set_progress(text: str) -> None:
            call.reported_progress = text[:_MAX_REPORT]

        def set_changes(changes: FileChanges) -> None:
            call.changes = changes

        return RunningCall(
            call.use.id,
            LiveOutput(self._batch, call),
            self._batch.context.agent_path,
            set_progress,
            set_changes,
            self._batch.add_usage,
            is_read_only=call.permit is not None and call.permit.by == "default",
            conversation_id=self._batch.conversation_id,
        )

    async def _end_tool(
        self, call: ToolExecution, tool: AnyTool, task: "asyncio.Task[_ToolOutput | Fault | None]"
    ) -> None:
        call.cancel_tool()
        await asyncio.wait({task}, timeout=self._batch.grace)
        if not task.done():
            _log.warning("tool %s did not end within %s s and was left behind", tool.name, self._batch.grace)
            self._batch.supervisor.abandon(task)

    async def _finish(
        self, call: ToolExecution, tool: AnyTool, output: _ToolOutput, checkpoint: Checkpoint | None
    ) -> None:
        """Set the result. The tool has ended, so from here on Stop loses nothing of it."""
        batch = self._batch
        call.ended_at = monotonic()
        if call.status is not CallStatus.STOPPING:
            call.advance(CallStatus.FINISHING)
        if call.permit is not None and call.permit.rule_id is not None:
            batch.context.permission_policy.mark_used(call.permit.rule_id)
        is_for_hooks = call.status is CallStatus.FINISHING and bool(batch.context.hooks.post_tool_use)
        accepting = self._accept_result(call, tool, output, checkpoint, is_for_hooks=is_for_hooks)
        try:
            result = await self._wait_through(accepting)
            if call.status is not CallStatus.FINISHING or batch.is_closed:
                result = call.fallback_result or result
            elif is_for_hooks:
                result = await self._run_post_hooks(call, result)
            batch.finish(call, result)
        except asyncio.CancelledError:
            if call.fallback_result is not None:
                batch.finish(call, call.fallback_result)
            raise

    async def _accept_result(
        self,
        call: ToolExecution,
        tool: AnyTool,
        output: _ToolOutput,
        checkpoint: Checkpoint | None,
        *,
        is_for_hooks: bool,
    ) -> ToolResult:
        """Return the call's result, before hooks."""
        (outcome, content), limit = output, self._batch.limits.result_characters
        valid = await call_foreign(lambda: validated_content(content, limit))
        if isinstance(valid, Fault):
            outcome, content = _failure(tool, valid)
            valid = await validated_content(content, limit)
        result = ToolResult(tool_use_id=call.use.id, content=valid, outcome=outcome)
        await self._mark_untrusted(call, tool)
        call.fallback_result = _result_without_hooks(result) if is_for_hooks else result
        await self._record_outcome(call, checkpoint, output[0])
        return result

    async def _mark_untrusted(self, call: ToolExecution, tool: AnyTool) -> None:
        """Note that untrusted content came in, before anybody acts on it; failed calls bring some too."""
        brings = tool.brings
        if brings is None or call.started_at is None:
            return

        async def find_source() -> UntrustedSource | None:
            return brings(await checked_arguments(call, tool))

        source = await self._batch.supervisor.run(find_source, TOOL_QUERY_TIMEOUT)
        if isinstance(source, Fault):
            _log.error("tool %s cannot say where its result comes from: %s", tool.name, source.trace)
            source = UntrustedSource("web", tool.name)
        if source is None:
            return
        is_trusted = call.permit is not None and call.permit.trusts
        if self._batch.context.permission_policy.mark_untrusted(source, is_trusted=is_trusted) and not is_trusted:
            self._batch.emit(OutsideContentArrived(call.use.id, source.kind, source.name))

    async def _record_outcome(
        self, call: ToolExecution, checkpoint: Checkpoint | None, outcome: Outcome | None
    ) -> None:
        """Record how the call ended, and how it left the files that were saved for it. None: it was interrupted."""
        checkpointer = self._batch.context.checkpointer
        if checkpointer is None or checkpoint is None:
            return
        took_effect = True if outcome is Outcome.SUCCEEDED else None
        if call.started_at is None or outcome is Outcome.FAILED:
            took_effect = False
        try:
            completed = await checkpointer.complete_checkpoint(checkpoint, succeeded=took_effect)
            # What the tool itself must undo is in no file.
            call.changes = call.changes or (None if completed.needs_undo else completed.changes)
        except Exception as error:  # noqa: BLE001 - the call took place; only its files are uncertain
            _log.error("it could not be noted how a call left its files: %s", safe_traceback(error))

    async def _run_post_hooks(self, call: ToolExecution, result: ToolResult) -> ToolResult:
        batch = self._batch
        path = batch.context.agent_path
        moment = PostToolUse(call.use.id, call.use.name, call.input, result, agent_path=path)

        async def run_hooks() -> ToolResult:
            ruling = await run_post_tool_hooks(batch.context.hooks, moment, history=batch.hook_history)
            content = await validated_content(ruling.content, batch.limits.result_characters)
            return ToolResult(tool_use_id=call.use.id, content=content, outcome=ruling.outcome)

        ruling = await batch.supervisor.run(run_hooks)
        if not isinstance(ruling, Fault):
            return ruling
        _log.error("the hooks after a call failed: %s", ruling.trace)
        return ToolResult(tool_use_id=call.use.id, content=_text_parts(_HOOK_FAILED), outcome=Outcome.FAILED)

    async def _wait_through(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for the work. When cancelled, wait for at most half of the grace, and abandon the work."""
        task = asyncio.create_task(work)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            await asyncio.wait({task}, timeout=self._batch.grace / 2)
            raise


def _permit_for(call: ToolExecution, verdict: Verdict) -> Allowed | None:
    """Return the permit to start the call; None where nobody has allowed exactly these arguments."""
    if isinstance(verdict, Denied):
        return None
    # A call that a person allowed is not restricted to reading because rules allow it by now.
    if call.person_permit is not None and call.person_permit.digest == verdict.digest:
        return call.person_permit
    return verdict if isinstance(verdict, Allowed) else None


def _failure(tool: AnyTool, fault: Fault) -> _ToolOutput:
    if not isinstance(fault.error, ToolFailed):
        _log.error("tool %s failed: %s", tool.name, fault.trace)
    return Outcome.FAILED, _text_parts(fault.description)


def _result_without_hooks(result: ToolResult) -> ToolResult:
    """Return the result that holds should Stop come before the hooks have seen the real one."""
    succeeded = result.outcome is Outcome.SUCCEEDED
    how = "The call took effect." if succeeded else "The call had ended; it may have taken effect."
    outcome = Outcome.CANCELLED if succeeded else result.outcome
    return result.model_copy(update={"content": _text_parts(f"{how} {_STOPPED_BEFORE_HOOKS}"), "outcome": outcome})


def _text_parts(text: str) -> tuple[ResultPart, ...]:
    return (Text(text=text),)


# Characters of what a tool reports with `RunningCall.report_partial_result`.
_MAX_REPORT = 10_000
# What one piece counts at least, so that a flood of empty ones ends too.
_MIN_PIECE_COST = 16
MAX_OUTPUT_TAIL = 4_000
"""Characters kept of the end of the live output, for the result of a call that is interrupted."""
_OUTPUT_CUT = "[more output is not shown]"


class LiveOutput:
    """Emits a tool's live output, no more than a result may have; nothing before its start, after its end or Stop."""

    def __init__(self, batch: BatchContext, call: ToolExecution) -> None:
        self._batch = batch
        self._call = call
        self._remaining = batch.limits.result_characters
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()

    def __call__(self, text: str) -> None:
        """Show this much more; may be called from any thread."""
        if threading.get_ident() == self._thread:
            self._emit(text)
        elif self._remaining > 0:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody reads the output
                self._loop.call_soon_threadsafe(self._emit, text)

    def _emit(self, text: str) -> None:
        call = self._call
        is_accepted = call.is_running and call.status is CallStatus.RUNNING and not self._batch.is_closed
        if not is_accepted or self._remaining <= 0:
            return
        accepted = text[: self._remaining]
        self._remaining -= max(len(text), _MIN_PIECE_COST)
        call.output_tail = (call.output_tail + accepted)[-MAX_OUTPUT_TAIL:]
        self._batch.emit(ToolProgress(call.use.id, accepted))
        if self._remaining <= 0:
            self._batch.emit(ToolProgress(call.use.id, _OUTPUT_CUT))
