"""Runs one tool call: the last checks before its start, the tool at work, its result."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from time import monotonic
from typing import Any, TypeVar, cast

from desktop_agent.agent.tool_calls.tool_execution import (
    BatchContext,
    CallStatus,
    LiveOutput,
    ToolExecution,
    ToolReport,
    stop_text,
    timeout_text,
)
from desktop_agent.agent.tool_calls.tool_gate import (
    TOOL_QUERY_TIMEOUT,
    ToolGate,
    arguments_with_digest,
    build_preview,
    validated_arguments,
)
from desktop_agent.agent.tool_calls.tool_results import validated_content
from desktop_agent.permissions.gate import Allowed, Denied, Verdict
from desktop_agent.permissions.hooks import run_post_tool_hooks
from desktop_agent.processes.foreign_code import Fault, plain_text, safe_traceback
from desktop_agent.tools.checkpoints.checkpointer import Checkpointer
from desktop_agent.tools.tool import AnyTool, RunningCall
from desktop_agent.types.blocks import Outcome, ResultPart, Text, ToolResult
from desktop_agent.types.checkpoints import Checkpoint
from desktop_agent.types.engine_events import CheckpointCreated, OutsideContentArrived, ToolStarted
from desktop_agent.types.errors import AgentError, StorageFailed, ToolFailed
from desktop_agent.types.policies import PostToolUse
from desktop_agent.types.tool_calls import UntrustedSource

_log = logging.getLogger(__name__)

_PREVIEW_CHANGED = "Not run: what the call would do changed after the person allowed it. Read again, then call again."
_ARGUMENTS_CHANGED = "The call changed after it was allowed."
_NO_LONGER_ALLOWED = "Not run: what may run unasked changed just before the start. Call again if it is still needed."
_LIMIT_REACHED = "The call was not run: a limit was reached."
_NO_CHECKPOINT = "Not run: the files that the call would change could not be saved first."


class CallRejected(Exception):
    """The call does not start; the outcome and text of its result."""

    def __init__(self, outcome: Outcome, why: str) -> None:
        super().__init__(why)
        self.outcome = outcome
        self.why = why


class NeedsApproval(Exception):
    """The call may not start before a person has decided, or has to wait for others."""


class CallClosed(Exception):
    """Stop came first, or the call has its result."""


class PreflightCheck:
    """The checks and records between a call's turn and the moment before its effect."""

    def __init__(self, batch: BatchContext, gate: ToolGate) -> None:
        self._batch = batch
        self._gate = gate

    async def check(self, call: ToolExecution) -> None:
        """Return when the call may start as things are now. Quick where nothing changed since the last time.

        Raises CallRejected, NeedsApproval and CallClosed.
        """
        batch = self._batch
        self._check_open(call)
        while call.checked_version != batch.version or not self._gate.is_offered(call):
            version = batch.version
            verdict = await self._gate.evaluate(call)
            self._check_open(call)
            if version == batch.version:
                call.permit = self._permit_for(call, verdict)
                if call.must_run_alone:
                    raise self._not_allowed_now(call)
                call.checked_version = version

    def is_still_allowed(self, call: ToolExecution, digest: str) -> bool:
        """Check for the last time, without awaiting. Raises CallRejected for other arguments than those allowed.

        `digest` is that of the arguments which will run.
        """
        if call.permit is None or call.checked_version != self._batch.version or not self._gate.is_offered(call):
            return False
        if call.permit.digest != digest:
            raise CallRejected(Outcome.DENIED, _ARGUMENTS_CHANGED)
        return True

    async def save_checkpoint(self, call: ToolExecution, tool: AnyTool) -> Checkpoint | None:
        """Save what the call will change, and what undoing it takes, durably. Raises CallRejected."""
        keeper, changes = self._batch.context.files, tool.changes
        if keeper is None or (changes is None and tool.undo is None):
            return None
        paths = () if changes is None else await self._changed_paths(call, tool, changes)
        arguments = None if tool.undo is None else call.input
        try:
            checkpoint = await keeper.save_before(
                call.use.id, self._batch.message_id, paths, tool=tool.identity, arguments=arguments
            )
        except AgentError as error:
            raise CallRejected(Outcome.FAILED, f"{_NO_CHECKPOINT} {error.whole}") from error
        except Exception as error:
            _log.error("the files of a call of tool %s could not be saved: %s", tool.name, safe_traceback(error))
            raise CallRejected(Outcome.FAILED, f"{_NO_CHECKPOINT} ({type(error).__name__})") from error
        if checkpoint is not None:
            saved = tuple(file.path for file in checkpoint.files)
            self._batch.emit(CheckpointCreated(checkpoint.id, call.use.id, saved))
        return checkpoint

    async def recheck_preview(self, call: ToolExecution, tool: AnyTool) -> None:
        """Raise CallRejected if the person allowed only what the preview showed, and the preview has changed."""
        if call.preview is None or not call.is_bound_to_preview or call.permit is not call.person_permit:
            return
        if await build_preview(call, tool, self._batch.supervisor) != call.preview:
            raise CallRejected(Outcome.FAILED, _PREVIEW_CHANGED)

    async def journal(self, call: ToolExecution) -> None:
        """Journal the start: from here on the call may have had its effect. Raises CallRejected."""
        call.advance(CallStatus.STARTED)
        permit = call.permit
        by, rule_id = ("", None) if permit is None else (permit.by, permit.rule_id)
        self._batch.emit(ToolStarted(call.use.id, call.input, by, rule_id))
        try:
            await self._batch.context.recorder.flush()
        except StorageFailed as error:
            raise CallRejected(Outcome.FAILED, f"Not run: {error}") from error

    def _check_open(self, call: ToolExecution) -> None:
        if self._batch.is_closed or not call.is_open:
            raise CallClosed
        if self._batch.is_limit_reached:
            raise CallRejected(Outcome.LIMIT, _LIMIT_REACHED)

    def _permit_for(self, call: ToolExecution, verdict: Verdict) -> Allowed:
        if isinstance(verdict, Denied):
            raise CallRejected(verdict.outcome, str(verdict.sentence))
        # A call that a person allowed is not restricted to reading because rules allow it by now.
        if call.person_permit is not None and call.person_permit.digest == verdict.digest:
            return call.person_permit
        if isinstance(verdict, Allowed):
            return verdict
        raise self._not_allowed_now(call)

    def _not_allowed_now(self, call: ToolExecution) -> CallRejected | NeedsApproval:
        # An approval after the journalled start would be out of order.
        is_started = call.status is CallStatus.STARTED
        return CallRejected(Outcome.DENIED, _NO_LONGER_ALLOWED) if is_started else NeedsApproval()

    async def _changed_paths(
        self, call: ToolExecution, tool: AnyTool, changes: Callable[[Any], Awaitable[tuple[str, ...]]]
    ) -> tuple[str, ...]:
        async def look() -> tuple[str, ...]:
            paths = cast("object", await changes(await validated_arguments(call, tool)))
            if not isinstance(paths, tuple | list):
                raise CallRejected(Outcome.FAILED, f"{_NO_CHECKPOINT} The tool does not say which they are.")
            return tuple([plain_text(str(path)) for path in cast("tuple[object, ...] | list[object]", paths)])

        paths = await self._batch.supervisor.run(look, TOOL_QUERY_TIMEOUT)
        if not isinstance(paths, Fault):
            return paths
        if isinstance(paths.error, CallRejected):
            raise paths.error
        raise CallRejected(Outcome.FAILED, f"{_NO_CHECKPOINT} {paths.description}")


def took_effect(call: ToolExecution, outcome: Outcome | None) -> bool | None:
    """Return whether the call took effect, by how its tool ended; None where it was interrupted: not known."""
    if call.started_at is None or outcome is Outcome.FAILED:
        return False
    return True if outcome is Outcome.SUCCEEDED else None


async def record_outcome(keeper: Checkpointer | None, checkpoint: Checkpoint | None, *, succeeded: bool | None) -> None:
    """Record how the call ended, and how it left the files that were saved for it."""
    if keeper is None or checkpoint is None:
        return
    try:
        await keeper.record_after(checkpoint, succeeded=succeeded)
    except Exception as error:  # noqa: BLE001 - the call took place; only its files are uncertain
        _log.error("it could not be noted how a call left its files: %s", safe_traceback(error))


T = TypeVar("T")

_HOOK_FAILED = "A hook failed after the call, so that its result was kept out. The call itself took place."

_STOPPED_BEFORE_HOOKS = "Its result was kept out: it was stopped before the hooks had ruled on it."

_Parts = tuple[ResultPart, ...]
# How the tool ended, and its return value, which may be anything.
_ToolOutput = tuple[Outcome, object]


class ToolRunner:
    """Runs the calls of one batch, each at most once."""

    def __init__(self, batch: BatchContext, preflight: PreflightCheck) -> None:
        self._batch = batch
        self._preflight = preflight

    async def run(self, call: ToolExecution) -> bool:
        """Start the call and run it to its end. Return False where it must be approved, or must wait, first."""
        call.advance(CallStatus.STARTING)
        call.checked_version = -1
        try:
            await self._run(call)
        except NeedsApproval:
            call.advance(CallStatus.PENDING)
            return False
        except CallRejected as refusal:
            self._batch.answer(call, refusal.outcome, refusal.why)
        except CallClosed:
            pass
        return True

    async def _run(self, call: ToolExecution) -> None:
        preflight = self._preflight
        await preflight.check(call)
        tool = _tool_of(call)
        checkpoint = await preflight.save_checkpoint(call, tool)
        try:
            await preflight.recheck_preview(call, tool)
            await preflight.check(call)
            await preflight.journal(call)
            output = None
            while output is None:
                await preflight.check(call)
                tool = _tool_of(call)
                output = await self._run_tool(call, tool)
        except BaseException:
            await self._wait_through(
                record_outcome(self._batch.context.files, checkpoint, succeeded=took_effect(call, None))
            )
            raise
        await self._finish(call, tool, output, checkpoint)

    async def _finish(
        self, call: ToolExecution, tool: AnyTool, output: _ToolOutput, checkpoint: Checkpoint | None
    ) -> None:
        """Set the result. The tool has ended, so from here on Stop loses nothing of it."""
        seconds = 0.0 if call.started_at is None else monotonic() - call.started_at
        self._count_rule_use(call.permit)
        was_stopped = call.is_stopped
        taking = self._accept_result(call, tool, output, checkpoint, hears=not was_stopped)
        try:
            result = await self._wait_through(taking)
            if not was_stopped and not call.is_stopped and not self._batch.is_closed:
                result = await self._run_post_hooks(call, result)
            else:
                result = call.fallback_result or result
            self._batch.finish(call, result, seconds)
        except asyncio.CancelledError:
            if call.fallback_result is not None:
                self._batch.finish(call, call.fallback_result, seconds)
            raise

    async def _wait_through(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for the work, even when cancelled meanwhile: then for a part of the grace, and it is left behind."""
        task = asyncio.create_task(work)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            await asyncio.wait({task}, timeout=self._batch.grace / 2)
            raise

    async def _accept_result(
        self, call: ToolExecution, tool: AnyTool, output: _ToolOutput, checkpoint: Checkpoint | None, *, hears: bool
    ) -> ToolResult:
        """Return the call's result, before hooks. `hears`: the hooks will see it."""
        outcome, value = output
        succeeded = took_effect(call, outcome)
        content = await self._batch.supervisor.run_inline(
            lambda: validated_content(value, self._batch.limits.result_characters)
        )
        if isinstance(content, Fault):
            outcome, content = self._failure(tool, content)
            content = await validated_content(content, self._batch.limits.result_characters)
        result = ToolResult(tool_use_id=call.use.id, content=content, outcome=outcome)
        await self._mark_untrusted(call, tool)
        call.fallback_result = (
            _result_without_hooks(result) if hears and self._batch.context.hooks.post_tool_use else result
        )
        await record_outcome(self._batch.context.files, checkpoint, succeeded=succeeded)
        return result

    async def _mark_untrusted(self, call: ToolExecution, tool: AnyTool) -> None:
        """Note that untrusted content came in, before anybody acts on it; failed calls bring some too."""
        brings = tool.brings
        if brings is None or call.started_at is None:
            return

        async def told() -> UntrustedSource | None:
            return brings(await validated_arguments(call, tool))

        source = await self._batch.supervisor.run(told, TOOL_QUERY_TIMEOUT)
        if isinstance(source, Fault):
            _log.error("tool %s cannot say where its result comes from: %s", tool.name, source.trace)
            source = UntrustedSource("web", tool.name)
        permission_policy = self._batch.context.permission_policy
        if source is not None and call.permit is not None and call.permit.trusts:
            permission_policy.trust_source(source)
        elif source is not None and permission_policy.mark_untrusted(source):
            self._batch.emit(OutsideContentArrived(call.use.id, source.kind, source.name))

    async def _run_tool(self, call: ToolExecution, tool: AnyTool) -> _ToolOutput | None:
        """Return how the tool ended; None where it was not started, as something just changed. Raises CallClosed."""
        progress = LiveOutput(self._batch, call)

        async def work() -> _ToolOutput | None:
            digest, arguments = await arguments_with_digest(call, tool)
            if call.tool is not tool or not self._preflight.is_still_allowed(call, digest):
                return None
            call.started_at = monotonic()
            account, path = ToolReport(call), self._batch.context.agent_path
            reads = call.permit is not None and call.permit.by == "default"
            spend = self._batch.add_usage
            running = RunningCall(call.use.id, progress, path, account.set_progress, account.set_changes, spend, reads)
            return Outcome.SUCCEEDED, await tool.run(arguments, running)

        call.stop_signal = asyncio.get_running_loop().create_future()
        call.tool_task = task = self._batch.supervisor.start(work)
        out_of_time = False
        try:
            await asyncio.wait({task, call.stop_signal}, timeout=tool.timeout, return_when=asyncio.FIRST_COMPLETED)
            was_halted = call.stop_signal.done()
            out_of_time = not was_halted and not task.done()
            if not task.done():
                await self._stop_tool(call, tool, task)
        except asyncio.CancelledError:
            # Of one that had ended in the same moment the result counts.
            was_halted = call.stop_signal.done()
            if was_halted or not task.done():
                raise
        finally:
            call.cancel_tool()
            call.tool_task = None
        if was_halted and call.is_stopped:
            return Outcome.CANCELLED, _text_parts(stop_text(call))
        if out_of_time:
            return Outcome.TIMED_OUT, _text_parts(timeout_text(call, tool.timeout))
        return self._output_of(tool, _task_value(task), was_halted=was_halted)

    def _output_of(self, tool: AnyTool, value: "_ToolOutput | Fault | None", *, was_halted: bool) -> _ToolOutput | None:
        if not isinstance(value, Fault):
            return value
        if isinstance(value.error, CallRejected):
            raise value.error
        if was_halted:
            # Stop made it fail; the batch sets the result.
            raise CallClosed
        return self._failure(tool, value)

    async def _stop_tool(
        self, call: ToolExecution, tool: AnyTool, task: "asyncio.Task[_ToolOutput | Fault | None]"
    ) -> None:
        call.cancel_tool()
        await asyncio.wait({task}, timeout=self._batch.grace)
        if not task.done():
            call.was_abandoned = True
            _log.warning("tool %s did not end within %s s and was left behind", tool.name, self._batch.grace)
            self._batch.supervisor.abandon(task)

    def _failure(self, tool: AnyTool, fault: Fault) -> tuple[Outcome, _Parts]:
        if not isinstance(fault.error, ToolFailed):
            _log.error("tool %s failed: %s", tool.name, fault.trace)
        return Outcome.FAILED, _text_parts(fault.description)

    def _count_rule_use(self, permit: Allowed | None) -> None:
        if permit is not None and permit.rule_id is not None:
            self._batch.context.permission_policy.mark_used(permit.rule_id)

    async def _run_post_hooks(self, call: ToolExecution, result: ToolResult) -> ToolResult:
        batch, hooks = self._batch, self._batch.context.hooks
        if not hooks.post_tool_use:
            return result
        path = batch.context.agent_path
        moment = PostToolUse(call.use.id, call.use.name, call.input, result, agent_path=path)

        async def ruled() -> ToolResult:
            ruling = await run_post_tool_hooks(hooks, moment, history=batch.hook_history)
            content = await validated_content(ruling.content, batch.limits.result_characters)
            return ToolResult(tool_use_id=call.use.id, content=content, outcome=ruling.outcome)

        ruling = await batch.supervisor.run(ruled)
        if not isinstance(ruling, Fault):
            return ruling
        _log.error("the hooks after a call failed: %s", ruling.trace)
        return ToolResult(tool_use_id=call.use.id, content=_text_parts(_HOOK_FAILED), outcome=Outcome.FAILED)


def _tool_of(call: ToolExecution) -> AnyTool:
    if call.tool is None:
        raise CallClosed
    return call.tool


def _task_value(task: "asyncio.Task[_ToolOutput | Fault | None]") -> "_ToolOutput | Fault | None":
    """Return what the task ended with; a Fault for one that is abandoned, or cancelled itself."""
    if not task.done() or task.cancelled():
        return Fault(asyncio.CancelledError())
    return task.result()


def _result_without_hooks(result: ToolResult) -> ToolResult:
    """Return the result that holds should Stop come before the hooks have seen the real one."""
    succeeded = result.outcome is Outcome.SUCCEEDED
    how = "The call took effect." if succeeded else "The call had ended; it may have taken effect."
    outcome = Outcome.CANCELLED if succeeded else result.outcome
    return result.model_copy(update={"content": _text_parts(f"{how} {_STOPPED_BEFORE_HOOKS}"), "outcome": outcome})


def _text_parts(text: str) -> _Parts:
    return (Text(text=text),)
