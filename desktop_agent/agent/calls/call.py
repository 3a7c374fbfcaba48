"""One call of an answer on its way to its result."""

import asyncio
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from desktop_agent.permissions.approvals import Approval
from desktop_agent.permissions.gate import Allowed, Verdict
from desktop_agent.tools.tool import AnyTool
from desktop_agent.vocabulary.blocks import JsonObject, ToolResult, ToolUse
from desktop_agent.vocabulary.conduct.rules import Rule
from desktop_agent.vocabulary.engine_events import ApprovalRequested, ApprovalResolved
from desktop_agent.vocabulary.errors import Sentence
from desktop_agent.vocabulary.tool_calls import Effect, FileChanges, Preview, ToolClass, is_same_json


class CallKind(Enum):
    """With which neighbours it may run at once: its like, or none."""

    READING = auto()
    DELEGATING = auto()
    MUTATING = auto()


@dataclass(slots=True, eq=False)
class ToolExecution:
    """What is known of it so far. `input` is what would run: after the hooks, and as the person edited it.

    `digest` is that of the input, where it was made already. `asks` are reasons to ask a person, whatever rules and
    mode allow. `allowance` is the person's, and `is_bound_to_preview` whether it covers no more than the preview that
    they
    saw. `is_edited`: a person wrote other arguments. `started_as` says beside which neighbours it was begun. `shown` is
    the end of its live output, `so_far` what its tool says it has done until now, `changes` what it did to files.
    `was_abandoned`: the tool did not end in its grace. `ended` is the result that stands from the moment at which the
    tool ended, should Stop come before all is done about it.
    """

    use: ToolUse
    tool: AnyTool | None
    input: JsonObject
    is_reported: bool = True
    digest: str | None = None
    # What the journal of a dead process says.
    recovered_decision: ApprovalResolved | None = None
    recovered_request: ApprovalRequested | None = None
    is_lost: bool = False
    # Gates.
    verdict: Verdict | None = None
    evaluated_version: int = -1
    has_passed_gates: bool = False
    asks: list[Sentence] = field(default_factory=list[Sentence])
    repeat_count: int = 0
    repeated_use: ToolUse | None = None
    # Approval.
    preview: Preview | None = None
    proposals: tuple[Rule, ...] = ()
    is_preparing_approval: bool = False
    approval: Approval | None = None
    approval_task: asyncio.Task[None] | None = None
    approval_settled: asyncio.Event = field(default_factory=asyncio.Event)
    person_permit: Allowed | None = None
    is_bound_to_preview: bool = False
    is_edited: bool = False
    # Execution.
    started_as: CallKind = CallKind.MUTATING
    task: asyncio.Task[None] | None = None
    is_starting: bool = False
    checked_version: int = -1
    permit: Allowed | None = None
    is_journalled: bool = False
    started_at: float | None = None
    output_tail: str = ""
    reported_progress: str = ""
    changes: FileChanges | None = None
    was_abandoned: bool = False
    tool_task: asyncio.Task[Any] | None = None
    stop_signal: asyncio.Future[None] | None = None
    is_stopped: bool = False
    fallback_result: ToolResult | None = None
    result: ToolResult | None = None

    def __post_init__(self) -> None:
        self.approval_settled.set()

    @property
    def is_open(self) -> bool:
        """Whether it has no result yet."""
        return self.result is None

    @property
    def is_finishing(self) -> bool:
        """Whether its tool has ended and its result is being taken in."""
        is_done_about = self.task is not None and not self.task.done()
        return self.started_at is not None and not self.is_running and self.fallback_result is None and is_done_about

    @property
    def is_running(self) -> bool:
        """Whether its tool is at work, or about to be."""
        return self.tool_task is not None and not self.tool_task.done()

    @property
    def kind(self) -> CallKind:
        """What its tool says. One that changes something runs alone, even when it hands that on."""
        if self.tool is None or self.tool.tool_class is ToolClass.MUTATING:
            return CallKind.MUTATING
        return CallKind.DELEGATING if Effect.DELEGATE in self.tool.effects else CallKind.READING

    @property
    def must_run_alone(self) -> bool:
        """Whether it was begun beside others and is of another kind by now, so that it has to run alone."""
        return self.started_as is not CallKind.MUTATING and self.kind is not self.started_as

    @property
    def effective_use(self) -> ToolUse:
        """The call with the arguments that would run."""
        return self.use if self.input is self.use.input else self.use.model_copy(update={"input": self.input})

    @property
    def effective_input(self) -> JsonObject | None:
        """What would run, where it is not what the model asked for."""
        return None if is_same_json(self.input, self.use.input) else self.input

    def set_arguments(self, arguments: JsonObject, digest: str | None = None) -> None:
        """Run with these arguments instead."""
        self.input, self.digest = arguments, digest

    def cancel_tool(self) -> None:
        """Signal its tool, once: a second cancel would disturb the end of what heeds the first."""
        if self.tool_task is not None and self.stop_signal is not None and not self.stop_signal.done():
            self.stop_signal.set_result(None)
            self.tool_task.cancel()
