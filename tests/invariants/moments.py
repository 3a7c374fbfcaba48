"""What goes on in a world just now, read from its events; and the check that nothing goes on for ever."""

import hashlib
from collections import Counter

from desktop_agent.agent.agent_loop import MAX_PAUSES
from desktop_agent.types.engine_events import (
    Envelope,
    RunFinished,
    RunStarted,
    ToolFinished,
    ToolResultsReceived,
    ToolStarted,
    TurnStarted,
)
from desktop_agent.types.provider_events import ContentDelta, MessageDelta, StopReason, ThinkingDelta, ToolUse
from tests.invariants.checks import require
from tests.invariants.opening import BELOW, GUARD_ITERATIONS, LIMITS

ASKED, STARTING, ACTING, BELOW_WORKS, SPEAKING = "asked", "starting", "acting", "a specialist works", "speaking"
MOMENTS = (ACTING, STARTING, ASKED, BELOW_WORKS, SPEAKING)


class Moments:
    """What goes on just now, over all lives of one world."""

    def __init__(self) -> None:
        self.starting: dict[str, str] = {}
        """Calls that are started in the journal and do not act yet: id to the name of the tool."""
        self.speaks = False
        self._above: dict[str, str | None] = {}
        self._below: set[str] = set()
        self._counted: dict[str, Counter[str]] = {}
        self._names: dict[str, str] = {}
        self._lived = hashlib.sha256()

    @property
    def digest(self) -> str:
        """The digest of all events and their steps: the same for the same world."""
        return self._lived.hexdigest()

    def begin_life(self) -> None:
        """Forget what went on in the life before."""
        self.starting.clear()
        self._below.clear()
        self.speaks = False

    def observe(self, envelope: Envelope, steps: int) -> None:
        """Follow an event. `steps` is how many the loop has made. Raise Broken if a run goes on for ever."""
        event, run = envelope.event, envelope.run_id
        self._lived.update(f"{steps} {envelope.seq} {event.type}\n".encode())
        match event:
            case ContentDelta() | ThinkingDelta():
                self.speaks = True
            case MessageDelta() | TurnStarted():
                self.speaks = False
            case ToolUse():
                self._names[event.id] = event.name
            case ToolStarted():
                self.starting[event.id] = self._names[event.id]
            case ToolFinished():
                self.starting.pop(event.id, None)
            case RunStarted():
                self._begin_run(envelope)
            case RunFinished():
                self._below.discard(run)
                self.starting.clear()
                self.speaks = False
            case _:
                pass
        if run in self._counted:
            self._count(envelope, self._counted[run])

    def works_below(self) -> bool:
        """Whether a specialist is at work."""
        return bool(self._below)

    def _begin_run(self, envelope: Envelope) -> None:
        # A run that is resumed after a crash has its limits anew.
        self._counted[envelope.run_id] = Counter()
        self._above[envelope.run_id] = above = envelope.parent_run_id
        if above is not None:
            self._below.add(envelope.run_id)
        depth = 0
        while above is not None:
            depth, above = depth + 1, self._above.get(above)
        require(depth <= LIMITS.depth, 12, f"a run is {depth} deep")

    def _count(self, envelope: Envelope, counted: Counter[str]) -> None:
        event, limits = envelope.event, LIMITS if envelope.parent_run_id is None else BELOW
        counted[event.type] += 1
        if isinstance(event, MessageDelta):
            counted["pauses"] = counted["pauses"] + 1 if event.stop_reason is StopReason.PAUSE_TURN else 0
        elif isinstance(event, ToolResultsReceived):
            # A server may pause with a call; then its result ends the row of pauses.
            counted["pauses"] = 0
        most = {
            "turn_started": limits.turns,
            "tool_results_received": limits.tool_iterations,
            "continuation_injected": GUARD_ITERATIONS,
            "pauses": MAX_PAUSES + 1,
        }
        over = [what for what, bound in most.items() if counted[what] > bound]
        require(not over, 12, f"a run goes on and on: {over}")
