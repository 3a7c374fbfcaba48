"""What the journal of a dead process says about the calls that it left open."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from desktop_agent.agent.calls.call import ToolExecution
from desktop_agent.vocabulary.blocks import ToolResult
from desktop_agent.vocabulary.engine_events import ApprovalRequested, ApprovalResolved


@dataclass(frozen=True)
class RecoveredCalls:
    """By the id of the call. `waiting` are those that were asked about and not decided, `announced` all told of.

    `iterations` is how often each guard, by name, had made the run go on.
    """

    finished: Mapping[str, ToolResult] = field(default_factory=dict[str, ToolResult])
    started: frozenset[str] = frozenset()
    decided: Mapping[str, ApprovalResolved] = field(default_factory=dict[str, ApprovalResolved])
    waiting: Mapping[str, ApprovalRequested] = field(default_factory=dict[str, ApprovalRequested])
    announced: frozenset[str] = frozenset()
    guard_iterations: Mapping[str, int] = field(default_factory=dict[str, int])

    def apply_to(self, call: ToolExecution) -> None:
        """Put down at the call what is known of it. What was finished or started is never run again."""
        id_ = call.use.id
        call.result = self.finished.get(id_)
        call.is_lost = call.result is None and id_ in self.started
        call.recovered_decision = self.decided.get(id_)
        call.recovered_request = None if call.recovered_decision else self.waiting.get(id_)

    def has_record_of(self, call: ToolExecution) -> bool:
        """Whether anything of it was journalled after the model had asked for it."""
        id_ = call.use.id
        known = (self.announced, self.finished, self.started, self.decided, self.waiting)
        return any(id_ in each for each in known)
