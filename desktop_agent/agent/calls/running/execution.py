"""Running one call: nothing of a tool is trusted, and what does not heed a cancel is left behind after the grace."""

import asyncio
import logging
from collections.abc import Coroutine
from time import monotonic
from typing import Any, TypeVar

from desktop_agent.agent.calls.call import Call
from desktop_agent.agent.calls.fence import Fault
from desktop_agent.agent.calls.judging.showing import LOOKING, checked_copy, own_arguments
from desktop_agent.agent.calls.results import taken
from desktop_agent.agent.calls.running.broken_off import Account, words_of_stop, words_of_timeout
from desktop_agent.agent.calls.running.progress import Progress
from desktop_agent.agent.calls.running.start import Gone, MustAsk, NotRun, Start, note_end, took_effect
from desktop_agent.agent.calls.scope import Scope
from desktop_agent.permissions.gate import Allowed
from desktop_agent.permissions.hook_running import after_call
from desktop_agent.tools.tool import AnyTool, RunningCall
from desktop_agent.vocabulary.blocks import Outcome, ResultPart, Text, ToolResult
from desktop_agent.vocabulary.conduct.checkpoints import Checkpoint
from desktop_agent.vocabulary.conduct.hooks import PostToolUse
from desktop_agent.vocabulary.engine_events import OutsideContentArrived
from desktop_agent.vocabulary.errors import ToolFailed
from desktop_agent.vocabulary.tool_calls import UntrustedSource

T = TypeVar("T")
_log = logging.getLogger(__name__)

_KEPT_OUT = "A hook failed after the call, so that its result was kept out. The call itself took place."

_UNHEARD = "Its result was kept out: it was stopped before the hooks had ruled on it."

_Parts = tuple[ResultPart, ...]
# How the tool ended, and what it gave back, which may be anything.
_Given = tuple[Outcome, object]


class Execution:
    """Runs the calls of one round, each at most once."""

    def __init__(self, scope: Scope, start: Start) -> None:
        self._scope = scope
        self._start = start

    async def run(self, call: Call) -> bool:
        """Start the call and see it to its end. False: not started, for a person must be asked, or it must wait."""
        call.is_starting, call.cleared_at = True, -1
        try:
            await self._run(call)
        except MustAsk:
            return False
        except NotRun as refusal:
            self._scope.answer(call, refusal.outcome, refusal.why)
        except Gone:
            pass
        finally:
            call.is_starting = False
        return True

    async def _run(self, call: Call) -> None:
        start = self._start
        await start.clear(call)
        tool = _tool_of(call)
        checkpoint = await start.save_files(call, tool)
        try:
            await start.look_again(call, tool)
            await start.clear(call)
            await start.journal(call)
            given = None
            while given is None:
                await start.clear(call)
                tool = _tool_of(call)
                given = await self._work(call, tool)
        except BaseException:
            await self._seen_through(note_end(self._scope.around.files, checkpoint, succeeded=took_effect(call, None)))
            raise
        await self._conclude(call, tool, given, checkpoint)

    async def _conclude(self, call: Call, tool: AnyTool, given: _Given, checkpoint: Checkpoint | None) -> None:
        """The tool has ended. From here on Stop takes nothing back: what the call gave is taken in all the same."""
        seconds = 0.0 if call.began_at is None else monotonic() - call.began_at
        self._count_use(call.permit)
        was_stopped = call.is_stopped
        taking = self._take_in(call, tool, given, checkpoint, hears=not was_stopped)
        try:
            result = await self._seen_through(taking)
            if not was_stopped and not call.is_stopped and not self._scope.is_closed:
                result = await self._through_hooks(call, result)
            else:
                result = call.ended or result
            self._scope.finish(call, result, seconds)
        except asyncio.CancelledError:
            if call.ended is not None:
                self._scope.finish(call, call.ended, seconds)
            raise

    async def _seen_through(self, work: Coroutine[Any, Any, T]) -> T:
        """To its end, also where the call is cancelled meanwhile: then for a part of the grace, and left behind."""
        task = asyncio.create_task(work)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            await asyncio.wait({task}, timeout=self._scope.grace / 2)
            raise

    async def _take_in(
        self, call: Call, tool: AnyTool, given: _Given, checkpoint: Checkpoint | None, *, hears: bool
    ) -> ToolResult:
        """The call's result, before hooks. `hears`: they are to hear of it."""
        outcome, value = given
        succeeded = took_effect(call, outcome)
        made = await self._scope.fence.here(lambda: taken(value, self._scope.limits.result_characters))
        if isinstance(made, Fault):
            outcome, made = self._failed(tool, made)
            made = await taken(made, self._scope.limits.result_characters)
        result = ToolResult(tool_use_id=call.use.id, content=made, outcome=outcome)
        await self._mark(call, tool)
        call.ended = _unheard(result) if hears and self._scope.around.hooks.post_tool_use else result
        await note_end(self._scope.around.files, checkpoint, succeeded=succeeded)
        return result

    async def _mark(self, call: Call, tool: AnyTool) -> None:
        """Note that content came in from outside, before anybody acts on it; a call that failed brings some too."""
        brings = tool.brings
        if brings is None or call.began_at is None:
            return

        async def told() -> UntrustedSource | None:
            return brings(await checked_copy(call, tool))

        source = await self._scope.fence.value(told, LOOKING)
        if isinstance(source, Fault):
            _log.error("tool %s cannot say where its result comes from: %s", tool.name, source.trace)
            source = UntrustedSource("web", tool.name)
        standing = self._scope.around.standing
        if source is not None and call.permit is not None and call.permit.trusts:
            standing.trust(source)
        elif source is not None and standing.mark(source):
            self._scope.emit(OutsideContentArrived(call.use.id, source.kind, source.name))

    async def _work(self, call: Call, tool: AnyTool) -> _Given | None:
        """How the tool ended. None: it was not begun, because something changed in the last moment. Raises Gone."""
        progress = Progress(self._scope, call)

        async def work() -> _Given | None:
            digest, arguments = await own_arguments(call, tool)
            if call.tool is not tool or not self._start.is_clear(call, digest):
                return None
            call.began_at = monotonic()
            account, path = Account(call), self._scope.around.agent_path
            reads = call.permit is not None and call.permit.by == "default"
            spend = self._scope.spend
            running = RunningCall(call.use.id, progress, path, account.so_far, account.changed, spend, reads)
            return Outcome.SUCCEEDED, await tool.run(arguments, running)

        call.halted = asyncio.get_running_loop().create_future()
        call.work = task = self._scope.fence.start(work)
        out_of_time = False
        try:
            await asyncio.wait({task, call.halted}, timeout=tool.timeout, return_when=asyncio.FIRST_COMPLETED)
            was_halted = call.halted.done()
            out_of_time = not was_halted and not task.done()
            if not task.done():
                await self._end(call, tool, task)
        except asyncio.CancelledError:
            # Of one that had ended in the same moment the result counts.
            was_halted = call.halted.done()
            if was_halted or not task.done():
                raise
        finally:
            call.halt()
            call.work = None
        if was_halted and call.is_stopped:
            return Outcome.CANCELLED, _text(words_of_stop(call))
        if out_of_time:
            return Outcome.TIMED_OUT, _text(words_of_timeout(call, tool.timeout))
        return self._given(tool, _value(task), was_halted=was_halted)

    def _given(self, tool: AnyTool, value: "_Given | Fault | None", *, was_halted: bool) -> _Given | None:
        if not isinstance(value, Fault):
            return value
        if isinstance(value.error, NotRun):
            raise value.error
        if was_halted:
            # Stopping is what made it fail; whoever stops the round says what became of it.
            raise Gone
        return self._failed(tool, value)

    async def _end(self, call: Call, tool: AnyTool, task: "asyncio.Task[_Given | Fault | None]") -> None:
        """Signal the tool, and wait for it a little."""
        call.halt()
        await asyncio.wait({task}, timeout=self._scope.grace)
        if not task.done():
            call.is_left = True
            _log.warning("tool %s did not end within %s s and was left behind", tool.name, self._scope.grace)
            self._scope.fence.forget(task)

    def _failed(self, tool: AnyTool, fault: Fault) -> tuple[Outcome, _Parts]:
        if not isinstance(fault.error, ToolFailed):
            _log.error("tool %s failed: %s", tool.name, fault.trace)
        return Outcome.FAILED, _text(fault.words)

    def _count_use(self, permit: Allowed | None) -> None:
        if permit is not None and permit.rule_id is not None:
            self._scope.around.standing.used(permit.rule_id)

    async def _through_hooks(self, call: Call, result: ToolResult) -> ToolResult:
        scope, hooks = self._scope, self._scope.around.hooks
        if not hooks.post_tool_use:
            return result
        path = scope.around.agent_path
        moment = PostToolUse(call.use.id, call.use.name, call.input, result, agent_path=path)

        async def ruled() -> ToolResult:
            made = await after_call(hooks, moment, history=scope.for_hooks)
            content = await taken(made.content, scope.limits.result_characters)
            return ToolResult(tool_use_id=call.use.id, content=content, outcome=made.outcome)

        made = await scope.fence.value(ruled)
        if not isinstance(made, Fault):
            return made
        _log.error("the hooks after a call failed: %s", made.trace)
        return ToolResult(tool_use_id=call.use.id, content=_text(_KEPT_OUT), outcome=Outcome.FAILED)


def _tool_of(call: Call) -> AnyTool:
    """As it was cleared."""
    if call.tool is None:
        raise Gone
    return call.tool


def _value(task: "asyncio.Task[_Given | Fault | None]") -> "_Given | Fault | None":
    """What the task ended with; one that is left behind, or cancelled itself, has none."""
    if not task.done() or task.cancelled():
        return Fault(asyncio.CancelledError())
    return task.result()


def _unheard(result: ToolResult) -> ToolResult:
    """What stands should Stop come before the hooks have seen the result."""
    succeeded = result.outcome is Outcome.SUCCEEDED
    how = "The call took effect." if succeeded else "The call had ended; it may have taken effect."
    outcome = Outcome.CANCELLED if succeeded else result.outcome
    return result.model_copy(update={"content": _text(f"{how} {_UNHEARD}"), "outcome": outcome})


def _text(words: str) -> _Parts:
    return (Text(text=words),)
