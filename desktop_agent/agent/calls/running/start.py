"""The last looks before a call starts: Stop, limits, rules and mode as they are now, the digest, and what was shown."""

import logging
from collections.abc import Awaitable, Callable
from typing import Any, cast

from desktop_agent.agent.calls.call import ToolExecution
from desktop_agent.agent.calls.fence import Fault
from desktop_agent.agent.calls.judging.gates import ToolGate
from desktop_agent.agent.calls.judging.showing import TOOL_QUERY_TIMEOUT, build_preview, validated_arguments
from desktop_agent.agent.calls.scope import BatchContext
from desktop_agent.permissions.gate import Allowed, Denied, Verdict
from desktop_agent.tools.answers import plain_text
from desktop_agent.tools.file_keeper import Checkpointer
from desktop_agent.tools.foreign_code import safe_traceback
from desktop_agent.tools.tool import AnyTool
from desktop_agent.vocabulary.blocks import Outcome
from desktop_agent.vocabulary.conduct.checkpoints import Checkpoint
from desktop_agent.vocabulary.engine_events import CheckpointCreated, ToolStarted
from desktop_agent.vocabulary.errors import AgentError, StorageFailed

_log = logging.getLogger(__name__)

_PREVIEW_CHANGED = "Not run: what the call would do changed after the person allowed it. Read again, then call again."
_ARGUMENTS_CHANGED = "The call changed after it was allowed."
_NO_LONGER_ALLOWED = "Not run: what may run unasked changed just before the start. Call again if it is still needed."
_LIMIT_REACHED = "The call was not run: a limit was reached."
_NO_CHECKPOINT = "Not run: the files that the call would change could not be saved first."


class CallRejected(Exception):
    """The call does not start; this is its result."""

    def __init__(self, outcome: Outcome, why: str) -> None:
        super().__init__(why)
        self.outcome = outcome
        self.why = why


class NeedsApproval(Exception):
    """The call may not start before a person has decided, or not where it stands."""


class CallClosed(Exception):
    """Stop came first, or the call has its result."""


class PreflightCheck:
    """Brings a call from its turn to the moment before its effect."""

    def __init__(self, scope: BatchContext, gates: ToolGate) -> None:
        self._scope = scope
        self._gates = gates

    async def check(self, call: ToolExecution) -> None:
        """Return when it may start as things are now. Quick where nothing changed since the last time.

        Raises CallRejected, NeedsApproval and Gone.
        """
        scope = self._scope
        self._check_open(call)
        while call.checked_version != scope.version or not self._gates.is_offered(call):
            at = scope.version
            verdict = await self._gates.evaluate(call)
            self._check_open(call)
            if at == scope.version:
                call.permit = self._permit_for(call, verdict)
                if call.must_run_alone:
                    raise self._not_allowed_now(call)
                call.checked_version = at

    def is_still_allowed(self, call: ToolExecution, digest: str) -> bool:
        """The very last look, after which nothing is waited for. Raises CallRejected for other arguments than allowed.

        `digest` is that of the arguments which will run.
        """
        if call.permit is None or call.checked_version != self._scope.version or not self._gates.is_offered(call):
            return False
        if call.permit.digest != digest:
            raise CallRejected(Outcome.DENIED, _ARGUMENTS_CHANGED)
        return True

    async def save_checkpoint(self, call: ToolExecution, tool: AnyTool) -> Checkpoint | None:
        """Save what the call will change, and what undoing it takes, durably. Raises CallRejected."""
        keeper, changes = self._scope.context.files, tool.changes
        if keeper is None or (changes is None and tool.undo is None):
            return None
        paths = () if changes is None else await self._changed_paths(call, tool, changes)
        arguments = None if tool.undo is None else call.input
        try:
            checkpoint = await keeper.save_before(
                call.use.id, self._scope.message_id, paths, tool=tool.identity, arguments=arguments
            )
        except AgentError as error:
            raise CallRejected(Outcome.FAILED, f"{_NO_CHECKPOINT} {error.whole}") from error
        except Exception as error:
            _log.error("the files of a call of tool %s could not be saved: %s", tool.name, safe_traceback(error))
            raise CallRejected(Outcome.FAILED, f"{_NO_CHECKPOINT} ({type(error).__name__})") from error
        if checkpoint is not None:
            saved = tuple(file.path for file in checkpoint.files)
            self._scope.emit(CheckpointCreated(checkpoint.id, call.use.id, saved))
        return checkpoint

    async def recheck_preview(self, call: ToolExecution, tool: AnyTool) -> None:
        """Whether it would still do what the person was shown, where they allowed no more than that. Raises
        CallRejected.
        """
        if call.preview is None or not call.is_bound_to_preview or call.permit is not call.person_permit:
            return
        if await build_preview(call, tool, self._scope.supervisor) != call.preview:
            raise CallRejected(Outcome.FAILED, _PREVIEW_CHANGED)

    async def journal(self, call: ToolExecution) -> None:
        """From here on the call may have had its effect, whatever happens to this process. Raises CallRejected."""
        call.is_journalled = True
        permit = call.permit
        by, rule_id = ("", None) if permit is None else (permit.by, permit.rule_id)
        self._scope.emit(ToolStarted(call.use.id, call.input, by, rule_id))
        try:
            await self._scope.context.recorder.flush()
        except StorageFailed as error:
            raise CallRejected(Outcome.FAILED, f"Not run: {error}") from error

    def _check_open(self, call: ToolExecution) -> None:
        if self._scope.is_closed or not call.is_open:
            raise CallClosed
        if self._scope.is_limit_reached:
            raise CallRejected(Outcome.LIMIT, _LIMIT_REACHED)

    def _permit_for(self, call: ToolExecution, verdict: Verdict) -> Allowed:
        if isinstance(verdict, Denied):
            raise CallRejected(verdict.outcome, str(verdict.sentence))
        # What a person allowed is not held to reading because nobody has to ask about it any more.
        if call.person_permit is not None and call.person_permit.digest == verdict.digest:
            return call.person_permit
        if isinstance(verdict, Allowed):
            return verdict
        raise self._not_allowed_now(call)

    def _not_allowed_now(self, call: ToolExecution) -> CallRejected | NeedsApproval:
        # Where the journal says that it started, to ask now would be a question out of order.
        return CallRejected(Outcome.DENIED, _NO_LONGER_ALLOWED) if call.is_journalled else NeedsApproval()

    async def _changed_paths(
        self, call: ToolExecution, tool: AnyTool, changes: Callable[[Any], Awaitable[tuple[str, ...]]]
    ) -> tuple[str, ...]:
        async def look() -> tuple[str, ...]:
            given = cast("object", await changes(await validated_arguments(call, tool)))
            if not isinstance(given, tuple | list):
                raise CallRejected(Outcome.FAILED, f"{_NO_CHECKPOINT} The tool does not say which they are.")
            return tuple([plain_text(str(path)) for path in cast("tuple[object, ...] | list[object]", given)])

        paths = await self._scope.supervisor.run(look, TOOL_QUERY_TIMEOUT)
        if not isinstance(paths, Fault):
            return paths
        if isinstance(paths.error, CallRejected):
            raise paths.error
        raise CallRejected(Outcome.FAILED, f"{_NO_CHECKPOINT} {paths.description}")


def took_effect(call: ToolExecution, outcome: Outcome | None) -> bool | None:
    """By how its tool ended: None where it was broken off, so that nobody knows."""
    if call.started_at is None or outcome is Outcome.FAILED:
        return False
    return True if outcome is Outcome.SUCCEEDED else None


async def record_outcome(keeper: Checkpointer | None, checkpoint: Checkpoint | None, *, succeeded: bool | None) -> None:
    """How the call ended, and how it left the files that were saved for it."""
    if keeper is None or checkpoint is None:
        return
    try:
        await keeper.record_after(checkpoint, succeeded=succeeded)
    except Exception as error:  # noqa: BLE001 - the call took place; only its files may have to be asked about
        _log.error("it could not be noted how a call left its files: %s", safe_traceback(error))
