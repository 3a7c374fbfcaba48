"""The last looks before a call starts: Stop, limits, rules and mode as they are now, the digest, and what was shown."""

import logging
from collections.abc import Awaitable, Callable
from typing import Any, cast

from desktop_agent.agent.calls.call import Call
from desktop_agent.agent.calls.fence import Fault
from desktop_agent.agent.calls.judging.gates import Gates
from desktop_agent.agent.calls.judging.showing import LOOKING, checked_copy, preview_of
from desktop_agent.agent.calls.scope import Scope
from desktop_agent.permissions.gate import Allowed, Refused, Verdict
from desktop_agent.tools.answers import plain
from desktop_agent.tools.file_keeper import FileKeeper
from desktop_agent.tools.foreign_code import trace_of
from desktop_agent.tools.tool import AnyTool
from desktop_agent.vocabulary.blocks import Outcome
from desktop_agent.vocabulary.conduct.checkpoints import Checkpoint
from desktop_agent.vocabulary.engine_events import CheckpointCreated, ToolStarted
from desktop_agent.vocabulary.errors import AgentError, StorageFailed

_log = logging.getLogger(__name__)

_NOT_AS_SHOWN = "Not run: what the call would do changed after the person allowed it. Read again, then call again."
_CHANGED = "The call changed after it was allowed."
_NO_LONGER_ALLOWED = "Not run: what may run unasked changed just before the start. Call again if it is still needed."
_USED_UP = "The call was not run: a limit was reached."
_NOT_SAVED = "Not run: the files that the call would change could not be saved first."


class NotRun(Exception):
    """The call does not start; this is its result."""

    def __init__(self, outcome: Outcome, why: str) -> None:
        super().__init__(why)
        self.outcome = outcome
        self.why = why


class MustAsk(Exception):
    """The call may not start before a person has decided, or not where it stands."""


class Gone(Exception):
    """Stop came first, or the call has its result."""


class Start:
    """Brings a call from its turn to the moment before its effect."""

    def __init__(self, scope: Scope, gates: Gates) -> None:
        self._scope = scope
        self._gates = gates

    async def clear(self, call: Call) -> None:
        """Return when it may start as things are now. Quick where nothing changed since the last time.

        Raises NotRun, MustAsk and Gone.
        """
        scope = self._scope
        self._check_open(call)
        while call.cleared_at != scope.version or not self._gates.is_offered(call):
            at = scope.version
            verdict = await self._gates.judge(call)
            self._check_open(call)
            if at == scope.version:
                call.permit = self._permit(call, verdict)
                if call.is_out_of_place:
                    raise self._not_now(call)
                call.cleared_at = at

    def is_clear(self, call: Call, digest: str) -> bool:
        """The very last look, after which nothing is waited for. Raises NotRun for other arguments than allowed.

        `digest` is that of the arguments which will run.
        """
        if call.permit is None or call.cleared_at != self._scope.version or not self._gates.is_offered(call):
            return False
        if call.permit.digest != digest:
            raise NotRun(Outcome.DENIED, _CHANGED)
        return True

    async def save_files(self, call: Call, tool: AnyTool) -> Checkpoint | None:
        """Save what the call will change, and what undoing it takes, durably. Raises NotRun."""
        keeper, changes = self._scope.around.files, tool.changes
        if keeper is None or (changes is None and tool.undo is None):
            return None
        paths = () if changes is None else await self._paths(call, tool, changes)
        arguments = None if tool.undo is None else call.input
        try:
            checkpoint = await keeper.before(
                call.use.id, self._scope.message_id, paths, tool=tool.identity, arguments=arguments
            )
        except AgentError as error:
            raise NotRun(Outcome.FAILED, f"{_NOT_SAVED} {error.whole}") from error
        except Exception as error:
            _log.error("the files of a call of tool %s could not be saved: %s", tool.name, trace_of(error))
            raise NotRun(Outcome.FAILED, f"{_NOT_SAVED} ({type(error).__name__})") from error
        if checkpoint is not None:
            saved = tuple(file.path for file in checkpoint.files)
            self._scope.emit(CheckpointCreated(checkpoint.id, call.use.id, saved))
        return checkpoint

    async def look_again(self, call: Call, tool: AnyTool) -> None:
        """Whether it would still do what the person was shown, where they allowed no more than that. Raises NotRun."""
        if call.preview is None or not call.only_as_shown or call.permit is not call.allowance:
            return
        if await preview_of(call, tool, self._scope.fence) != call.preview:
            raise NotRun(Outcome.FAILED, _NOT_AS_SHOWN)

    async def journal(self, call: Call) -> None:
        """From here on the call may have had its effect, whatever happens to this process. Raises NotRun."""
        call.is_journalled = True
        permit = call.permit
        by, rule_id = ("", None) if permit is None else (permit.by, permit.rule_id)
        self._scope.emit(ToolStarted(call.use.id, call.input, by, rule_id))
        try:
            await self._scope.around.recorder.settle()
        except StorageFailed as error:
            raise NotRun(Outcome.FAILED, f"Not run: {error}") from error

    def _check_open(self, call: Call) -> None:
        if self._scope.is_closed or not call.is_open:
            raise Gone
        if self._scope.is_used_up:
            raise NotRun(Outcome.LIMIT, _USED_UP)

    def _permit(self, call: Call, verdict: Verdict) -> Allowed:
        if isinstance(verdict, Refused):
            raise NotRun(verdict.outcome, str(verdict.sentence))
        # What a person allowed is not held to reading because nobody has to ask about it any more.
        if call.allowance is not None and call.allowance.digest == verdict.digest:
            return call.allowance
        if isinstance(verdict, Allowed):
            return verdict
        raise self._not_now(call)

    def _not_now(self, call: Call) -> NotRun | MustAsk:
        # Where the journal says that it started, to ask now would be a question out of order.
        return NotRun(Outcome.DENIED, _NO_LONGER_ALLOWED) if call.is_journalled else MustAsk()

    async def _paths(
        self, call: Call, tool: AnyTool, changes: Callable[[Any], Awaitable[tuple[str, ...]]]
    ) -> tuple[str, ...]:
        async def look() -> tuple[str, ...]:
            given = cast("object", await changes(await checked_copy(call, tool)))
            if not isinstance(given, tuple | list):
                raise NotRun(Outcome.FAILED, f"{_NOT_SAVED} The tool does not say which they are.")
            return tuple([plain(str(path)) for path in cast("tuple[object, ...] | list[object]", given)])

        paths = await self._scope.fence.value(look, LOOKING)
        if not isinstance(paths, Fault):
            return paths
        if isinstance(paths.error, NotRun):
            raise paths.error
        raise NotRun(Outcome.FAILED, f"{_NOT_SAVED} {paths.words}")


def took_effect(call: Call, outcome: Outcome | None) -> bool | None:
    """By how its tool ended: None where it was broken off, so that nobody knows."""
    if call.began_at is None or outcome is Outcome.FAILED:
        return False
    return True if outcome is Outcome.SUCCEEDED else None


async def note_end(keeper: FileKeeper | None, checkpoint: Checkpoint | None, *, succeeded: bool | None) -> None:
    """How the call ended, and how it left the files that were saved for it."""
    if keeper is None or checkpoint is None:
        return
    try:
        await keeper.after(checkpoint, succeeded=succeeded)
    except Exception as error:  # noqa: BLE001 - the call took place; only its files may have to be asked about
        _log.error("it could not be noted how a call left its files: %s", trace_of(error))
