"""The gates before a call: names and registry, hooks, rules and mode, and whether it goes round in circles."""

import logging
from dataclasses import replace

from desktop_agent.agent.calls.call import Call
from desktop_agent.agent.calls.fence import Fault
from desktop_agent.agent.calls.judging.doom_loop import SUSPECT, DoomLoop
from desktop_agent.agent.calls.judging.showing import LOOKING, copied_call
from desktop_agent.agent.calls.scope import Scope
from desktop_agent.permissions.gate import Allowed, Ask, Refused, Verdict
from desktop_agent.permissions.hook_running import before_call
from desktop_agent.tools.in_thread import by_size
from desktop_agent.vocabulary.blocks import Outcome
from desktop_agent.vocabulary.conduct.hooks import PreToolUse
from desktop_agent.vocabulary.engine_events import ApprovalResolved
from desktop_agent.vocabulary.errors import Sentence
from desktop_agent.vocabulary.tool_calls import ToolClass

_log = logging.getLogger(__name__)

_DENIED_BY_HOOK = "A hook denied this call."
_HOOK_ASKS = Sentence("A hook wants a person to decide.")
_STOPPED_BEFORE = "The call was stopped before it was started."
_GONE = (
    "Not run: the tool “{name}” is no longer there. Either the server that offers it has ended. It is started when it "
    "is needed: call again. Or it was turned off or removed after the call was made: if it is missing then too, find "
    "another way, or have it turned on in the settings."
)
_ANOTHER = (
    "Not run: the tool “{name}” is another one now, it was changed after the call was made. Look at what it says "
    "of itself, then call again if it is still needed."
)


class Gates:
    """Judges the calls of one round."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._doom = DoomLoop(scope.history, [call.use for call in scope.calls])

    async def enter(self, call: Call) -> None:
        """Take a call through all gates, once. Afterwards it has a verdict to run or to ask, or its result."""
        repeats = self._doom.count(call.use)
        if not await self._recall(call):
            if repeats >= SUSPECT:
                call.repeats, call.loop = repeats, call.use
            await self._through_hooks(call)
        if not call.is_open:
            return
        verdict = await self.judge(call)
        self._settle_old_question(call, verdict)
        if isinstance(verdict, Refused):
            self._scope.answer(call, verdict.outcome, str(verdict.sentence))

    async def judge(self, call: Call) -> Verdict:
        """By names, registry, rules and mode as they are now; and never less than a hook or a doom loop demands."""
        at = self._scope.version
        verdict = await self._standing_says(call)
        reasons = list(call.asks)
        if call.repeats >= SUSPECT:
            template = "The agent made this very call {count} times in a row."
            reasons.append(Sentence(template, {"count": str(call.repeats)}))
        if reasons and not isinstance(verdict, Refused):
            own = verdict if isinstance(verdict, Ask) else Ask(verdict.digest)
            verdict = replace(own, reasons=(*own.reasons, *reasons))
        if at >= call.judged_at:
            call.judged_at, call.verdict = at, verdict
        return verdict

    async def _standing_says(self, call: Call) -> Verdict:
        around, arguments = self._scope.around, call.input
        # A copy: to check arguments is the tool's own code, which may change what it is given.
        copy = await copied_call(call.effective_use)

        if (refused := self._take_up(call)) is not None:
            return refused

        async def verdict() -> Verdict:
            return await around.standing.verdict(copy, call.tool, around.tools.names, digest=call.digest)

        waits = call.tool is not None and call.tool.subjects is not None
        fence = self._scope.fence
        said = await (fence.value(verdict, LOOKING) if waits else fence.here(verdict))
        if not isinstance(said, Fault):
            if not isinstance(said, Refused) and call.input is arguments:
                call.digest = said.digest
            return said
        _log.error("a call of tool %s could not be judged: %s", call.use.name, said.trace)
        return Refused(Outcome.FAILED, Sentence("The call could not be judged. {words}", {"words": said.words}))

    def is_offered(self, call: Call) -> bool:
        """Whether the tool that was judged is the one that its name stands for now."""
        return call.tool is not None and self._scope.around.tools.get(call.use.name) == call.tool

    def _take_up(self, call: Call) -> Refused | None:
        """The tool as it is now: the person may have set it up otherwise. Another one was never asked for."""
        if call.tool is None or self.is_offered(call):
            return None
        tool = self._scope.around.tools.get(call.use.name)
        if tool is None or tool.identity != call.tool.identity:
            return Refused(Outcome.FAILED, Sentence(_GONE if tool is None else _ANOTHER, {"name": call.use.name}))
        call.tool = tool
        return None

    async def _through_hooks(self, call: Call) -> None:
        """They come after names and registry, and before rules and mode."""
        scope, hooks = self._scope, self._scope.around.hooks
        if not hooks.pre_tool_use or await self._is_stopped_before_hooks(call):
            return
        tool_class = call.tool.tool_class if call.tool else ToolClass.MUTATING
        path = scope.around.agent_path
        moment = PreToolUse(call.use.id, call.use.name, call.use.input, tool_class, agent_path=path)
        ruling = await scope.fence.value(lambda: before_call(hooks, moment, call.tool, history=scope.for_hooks))
        if isinstance(ruling, Fault):
            _log.error("the hooks before a call failed: %s", ruling.trace)
            scope.answer(call, Outcome.DENIED, f"Not run: the hooks failed ({type(ruling.error).__name__}).")
        elif ruling.verdict == "deny":
            scope.answer(call, Outcome.DENIED, f"Not run: {ruling.reason or _DENIED_BY_HOOK}")
        else:
            if ruling.edited:
                call.take(ruling.input)
            if ruling.verdict == "ask":
                call.asks.append(Sentence("{why}", {"why": ruling.reason}) if ruling.reason else _HOOK_ASKS)

    async def _is_stopped_before_hooks(self, call: Call) -> bool:
        """Whether a name that may not be used, no such tool or wrong arguments refuse it: no hook hears of it."""
        verdict = await self._standing_says(call)
        if not isinstance(verdict, Refused):
            return False
        # What rules deny, a hook may make something else of.
        if verdict.outcome is Outcome.DENIED and self._scope.around.standing.admits(call.use.name):
            return False
        self._scope.answer(call, verdict.outcome, str(verdict.sentence))
        return True

    async def _recall(self, call: Call) -> bool:
        """Take up what was decided, or asked, before the program died. False: begin at the first gate."""
        if call.decided_before is not None:
            return await self._recall_decision(call, call.decided_before)
        asked = call.asked_before
        if asked is None or call.tool is None:
            return False
        arguments = call.use.input if asked.effective_input is None else asked.effective_input
        if await self._digest(call, arguments) != asked.digest:
            call.asked_before = None
            return False
        call.take(arguments, asked.digest)
        if asked.reason:
            call.asks.append(Sentence("{why}", {"why": asked.reason}))
        return True

    async def _recall_decision(self, call: Call, decided: ApprovalResolved) -> bool:
        scope = self._scope
        if decided.decision == "withdrawn":
            scope.answer(call, Outcome.CANCELLED, _STOPPED_BEFORE)
        elif decided.decision in {"deny", "deny_and_stop"}:
            scope.answer(call, Outcome.DENIED, words_of_denial(decided.message, by_person=decided.by == "person"))
            if decided.decision == "deny_and_stop":
                scope.stop()
        else:
            arguments = call.use.input if decided.effective_input is None else decided.effective_input
            if call.tool is None or await self._digest(call, arguments) != decided.digest:
                return False
            call.take(arguments, decided.digest)
            if decided.by == "person":
                call.allowance = Allowed(decided.digest, "person")
                call.is_edited = decided.effective_input is not None
        return True

    def _settle_old_question(self, call: Call, verdict: Verdict) -> None:
        """A card from before the program died that nobody has to answer any more."""
        asked = call.asked_before
        if asked is None or isinstance(verdict, Ask):
            return
        call.asked_before = None
        word = "allow_once" if isinstance(verdict, Allowed) else "deny"
        message = str(verdict.sentence) if isinstance(verdict, Refused) else ""
        resolved = ApprovalResolved(
            asked.approval_id, call.use.id, word, "rule", call.effective_input, message, asked.digest
        )
        self._scope.emit(resolved)

    async def _digest(self, call: Call, arguments: dict[str, object]) -> str | None:
        tool = call.tool
        try:
            return await by_size(lambda: tool.digest(arguments), arguments) if tool is not None else None
        except (TypeError, ValueError, RecursionError):
            return None


def words_of_denial(message: str, *, by_person: bool) -> str:
    """For the model."""
    if not by_person:
        return message or "This call is denied."
    return f"The person denied this call and said: {message}" if message else "The person denied this call."
