"""Continuation guards: whether an agent that wants to end may end."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from desktop_agent.processes.foreign_code import Fault, HistoryCopy, OutOfTime, call_within
from desktop_agent.types.engine_events import ContinuationInjected, EngineEvent, GuardAborted
from desktop_agent.types.errors import Sentence, WrongUse
from desktop_agent.types.messages import Message
from desktop_agent.types.policies import (
    Guard,
    GuardAbort,
    GuardContinue,
    GuardMoment,
    GuardPass,
    GuardStop,
    GuardVerdict,
)
from desktop_agent.types.provider_events import StopReason

_log = logging.getLogger(__name__)

# Seconds that one guard may take, and that a cancelled one has to end; one that ignores the cancellation is abandoned.
TIME_LIMIT = 60.0
CANCEL_GRACE = 0.5
EmitEvent = Callable[[EngineEvent], None]


@dataclass(frozen=True, slots=True)
class GuardOutcome:
    """The combined verdict of all guards. `prompt` is set for "continue"; `guard_name` names who decided."""

    kind: Literal["pass", "continue", "stop", "abort"] = "pass"
    prompt: str = ""
    guard_name: str = ""


class Guards:
    """The guards of one conversation, in order. Lives on the event loop.

    `refuse_when_closed` raises before any change once the conversation is closed.
    """

    def __init__(self, guards: Iterable[Guard] = (), refuse_when_closed: Callable[[], None] = lambda: None) -> None:
        self._guards: dict[str, Guard] = {}
        self._iterations: dict[str, int] = {}
        self._refuse_when_closed = refuse_when_closed
        for guard in guards:
            self.add(guard)

    def add(self, guard: Guard) -> None:
        """Add a guard after the others. Raises WrongUse for a name in use."""
        self._refuse_when_closed()
        if guard.name in self._guards:
            raise WrongUse(
                Sentence("A guard “{name}” is there already.", {"name": guard.name[:80]}),
                "Remove it first, or choose another name.",
            )
        self._guards[guard.name] = guard

    def remove(self, name: str) -> None:
        """Remove a guard. Raises WrongUse when there is none of this name."""
        self._refuse_when_closed()
        if self._guards.pop(name, None) is None:
            raise WrongUse(Sentence("There is no guard “{name}”.", {"name": name[:80]}), "Look at the list.")

    def list(self) -> tuple[Guard, ...]:
        """Return all guards, in the order in which they are asked."""
        return tuple(self._guards.values())

    def begin_run(self, iterations: Mapping[str, int] | None = None) -> None:
        """Begin a run: count iterations from 0, or from the counts of the run that is resumed."""
        self._iterations = dict(iterations or {})

    async def consult(
        self,
        moment: Literal["turn_end", "session_stop"],
        *,
        history: Sequence[Message],
        stop_reason: StopReason | None,
        turns: int,
        emit: EmitEvent,
    ) -> GuardOutcome:
        """Ask all guards of this moment, one after the other. Abort wins over stop, stop over continue.

        A guard that aborts, raises, takes too long or has used up its iterations is removed, with an event. No guard
        can make this raise.
        """
        history_copy = HistoryCopy(tuple(history))
        verdicts: list[tuple[Guard, GuardVerdict]] = []
        for guard in self.list():
            if guard.at != moment or not self._has(guard):
                continue
            ask = partial(self._ask, guard, history_copy, stop_reason, turns)
            verdict = await self._ask_within_time(guard, ask, emit)
            if self._has(guard):
                verdicts.append((guard, verdict))
        return self._strictest(verdicts, emit)

    def _has(self, guard: Guard) -> bool:
        return self._guards.get(guard.name) is guard

    async def _ask(
        self, guard: Guard, history_copy: HistoryCopy, stop_reason: StopReason | None, turns: int
    ) -> GuardVerdict:
        iteration = self._iterations.get(guard.name, 0)
        return _checked_verdict(
            await guard.check(GuardMoment(await history_copy.copied(), stop_reason, iteration, turns))
        )

    async def _ask_within_time(
        self, guard: Guard, ask: Callable[[], Awaitable[GuardVerdict]], emit: EmitEvent
    ) -> GuardVerdict:
        verdict = await call_within(ask, TIME_LIMIT, CANCEL_GRACE, f"guard {guard.name}")
        if not isinstance(verdict, Fault):
            return verdict
        match verdict.error:
            case _InvalidVerdict() as error:
                reason = str(error)
            case OutOfTime():
                reason = f"It gave no answer within {TIME_LIMIT:g} seconds."
            case asyncio.CancelledError():
                reason = "It was cancelled from within."
            case _:
                _log.error("guard %s failed: %s", guard.name, verdict.trace)
                # The text of a foreign exception may hold anything; only our own sentences go to the person.
                reason = verdict.message or f"It failed with {verdict.kind}."
        self._remove_and_report(guard, reason, emit)
        return GuardPass()

    def _strictest(self, verdicts: "Sequence[tuple[Guard, GuardVerdict]]", emit: EmitEvent) -> GuardOutcome:
        aborts = [(guard, verdict) for guard, verdict in verdicts if isinstance(verdict, GuardAbort)]
        for guard, verdict in aborts:
            self._remove_and_report(guard, verdict.reason, emit)
        if aborts:
            return GuardOutcome("abort", guard_name=aborts[0][0].name)
        for guard, verdict in verdicts:
            if isinstance(verdict, GuardStop):
                return GuardOutcome("stop", guard_name=guard.name)
        prompts = [
            (guard.name, verdict.prompt)
            for guard, verdict in verdicts
            if isinstance(verdict, GuardContinue) and self._count_iteration(guard, emit)
        ]
        if not prompts:
            return GuardOutcome()
        return GuardOutcome(
            "continue", "\n\n".join(prompt for _, prompt in prompts), ", ".join(name for name, _ in prompts)
        )

    def _count_iteration(self, guard: Guard, emit: EmitEvent) -> bool:
        # Counts stay when a guard is removed: one that is added again under its name in the same run gets no new ones.
        iteration = self._iterations.get(guard.name, 0) + 1
        if iteration > guard.max_iterations:
            self._remove_and_report(
                guard, f"It has made the agent go on {guard.max_iterations} times, which is its limit.", emit
            )
            return False
        self._iterations[guard.name] = iteration
        emit(ContinuationInjected(guard.name, iteration))
        return True

    def _remove_and_report(self, guard: Guard, reason: str, emit: EmitEvent) -> None:
        if self._has(guard):
            del self._guards[guard.name]
        emit(GuardAborted(guard.name, reason))


class _InvalidVerdict(Exception):
    """A guard gave no usable verdict; the text is for the person."""


def _checked_verdict(verdict: GuardVerdict | None) -> GuardVerdict:
    """Raises _InvalidVerdict."""
    if verdict is None:
        return GuardPass()
    if not isinstance(verdict, GuardVerdict):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise _InvalidVerdict("It answered with something that is no verdict.")
    if isinstance(verdict, GuardContinue) and not verdict.prompt.strip():
        raise _InvalidVerdict("It wanted the agent to go on without a prompt.")
    return verdict
