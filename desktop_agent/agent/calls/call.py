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


class Kind(Enum):
    """With which neighbours it may run at once: its like, or none."""

    READING = auto()
    DELEGATING = auto()
    MUTATING = auto()


@dataclass(slots=True, eq=False)
class Call:
    """What is known of it so far. `input` is what would run: after the hooks, and as the person edited it.

    `digest` is that of the input, where it was made already. `asks` are reasons to ask a person, whatever rules and
    mode allow. `allowance` is the person's, and `only_as_shown` whether it covers no more than the preview that they
    saw. `is_edited`: a person wrote other arguments. `begun_as` says beside which neighbours it was begun. `shown` is
    the end of its live output, `so_far` what its tool says it has done until now, `changes` what it did to files.
    `is_left`: the tool did not end in its grace. `ended` is the result that stands from the moment at which the tool
    ended, should Stop come before all is done about it.
    """

    use: ToolUse
    tool: AnyTool | None
    input: JsonObject
    is_told: bool = True
    digest: str | None = None
    # What the journal of a dead process says.
    decided_before: ApprovalResolved | None = None
    asked_before: ApprovalRequested | None = None
    is_lost: bool = False
    # Gates.
    verdict: Verdict | None = None
    judged_at: int = -1
    is_gated: bool = False
    asks: list[Sentence] = field(default_factory=list[Sentence])
    repeats: int = 0
    loop: ToolUse | None = None
    # Approval.
    preview: Preview | None = None
    proposals: tuple[Rule, ...] = ()
    is_asking: bool = False
    approval: Approval | None = None
    watcher: asyncio.Task[None] | None = None
    answered: asyncio.Event = field(default_factory=asyncio.Event)
    allowance: Allowed | None = None
    only_as_shown: bool = False
    is_edited: bool = False
    # Execution.
    begun_as: Kind = Kind.MUTATING
    doing: asyncio.Task[None] | None = None
    is_starting: bool = False
    cleared_at: int = -1
    permit: Allowed | None = None
    is_journalled: bool = False
    began_at: float | None = None
    shown: str = ""
    so_far: str = ""
    changes: FileChanges | None = None
    is_left: bool = False
    work: asyncio.Task[Any] | None = None
    halted: asyncio.Future[None] | None = None
    is_stopped: bool = False
    ended: ToolResult | None = None
    result: ToolResult | None = None

    def __post_init__(self) -> None:
        self.answered.set()

    @property
    def is_open(self) -> bool:
        """Whether it has no result yet."""
        return self.result is None

    @property
    def is_settling(self) -> bool:
        """Whether its tool has ended and its result is being taken in."""
        is_done_about = self.doing is not None and not self.doing.done()
        return self.began_at is not None and not self.is_running and self.ended is None and is_done_about

    @property
    def is_running(self) -> bool:
        """Whether its tool is at work, or about to be."""
        return self.work is not None and not self.work.done()

    @property
    def kind(self) -> Kind:
        """What its tool says. One that changes something runs alone, even when it hands that on."""
        if self.tool is None or self.tool.tool_class is ToolClass.MUTATING:
            return Kind.MUTATING
        return Kind.DELEGATING if Effect.DELEGATE in self.tool.effects else Kind.READING

    @property
    def is_out_of_place(self) -> bool:
        """Whether it was begun beside others and is of another kind by now, so that it has to run alone."""
        return self.begun_as is not Kind.MUTATING and self.kind is not self.begun_as

    @property
    def effective_use(self) -> ToolUse:
        """The call with the arguments that would run."""
        return self.use if self.input is self.use.input else self.use.model_copy(update={"input": self.input})

    @property
    def effective_input(self) -> JsonObject | None:
        """What would run, where it is not what the model asked for."""
        return None if is_same_json(self.input, self.use.input) else self.input

    def take(self, arguments: JsonObject, digest: str | None = None) -> None:
        """Run with these arguments instead."""
        self.input, self.digest = arguments, digest

    def halt(self) -> None:
        """Signal its tool, once: a second cancel would disturb the end of what heeds the first."""
        if self.work is not None and self.halted is not None and not self.halted.done():
            self.halted.set_result(None)
            self.work.cancel()
