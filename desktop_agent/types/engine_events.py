"""Events of the engine besides the provider's, and the envelope that carries both."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal

from desktop_agent.types.blocks import JsonObject, Outcome, ToolResult
from desktop_agent.types.errors import AgentError, ProviderError, RemedyAction, Sentence
from desktop_agent.types.provider_events import ProviderEvent, Usage
from desktop_agent.types.tool_calls import FileChanges, ToolClass

Authority = Literal["person", "agent"]


@dataclass(frozen=True, slots=True)
class ModeChanged:
    """The mode changed."""

    from_mode: str
    to_mode: str
    authority: Authority
    type: Literal["mode_changed"] = "mode_changed"


@dataclass(frozen=True, slots=True)
class ModeChangeRequested:
    """The agent asks for another mode; it is applied one turn later unless the person objects."""

    from_mode: str
    to_mode: str
    requested_at: datetime
    type: Literal["mode_change_requested"] = "mode_change_requested"


@dataclass(frozen=True, slots=True)
class ContinuationInjected:
    """A guard made the model go on."""

    guard_name: str
    iteration: int
    type: Literal["continuation_injected"] = "continuation_injected"


@dataclass(frozen=True, slots=True)
class GuardAborted:
    """A guard ended the run, raised, or used up its iterations; it is removed."""

    guard_name: str
    reason: str
    type: Literal["guard_aborted"] = "guard_aborted"


@dataclass(frozen=True, slots=True)
class PolicyInstalled:
    """A prompt policy was installed."""

    id: str
    type: Literal["policy_installed"] = "policy_installed"


@dataclass(frozen=True, slots=True)
class PolicyRemoved:
    """A prompt policy was removed."""

    id: str
    type: Literal["policy_removed"] = "policy_removed"


@dataclass(frozen=True, slots=True)
class PolicyApplied:
    """These policies are in the prompt of this turn."""

    turn_id: str
    ids: tuple[str, ...]
    type: Literal["policy_applied"] = "policy_applied"


@dataclass(frozen=True, slots=True)
class DoomLoopSuspected:
    """The model made the same call three times in a row, or more often."""

    tool_use_id: str
    count: int
    type: Literal["doom_loop_suspected"] = "doom_loop_suspected"


@dataclass(frozen=True, slots=True)
class QuestionAsked:
    """The agent asks the person. `several` choices may be taken; `free_text`: any text is an answer too."""

    question_id: str
    question: str
    choices: tuple[str, ...] = ()
    several: bool = False
    free_text: bool = True
    type: Literal["question_asked"] = "question_asked"


@dataclass(frozen=True, slots=True)
class QuestionAnswered:
    """The person answered, or time ran out (None)."""

    question_id: str
    answer: str | None
    type: Literal["question_answered"] = "question_answered"


@dataclass(frozen=True, slots=True)
class OutsideContentArrived:
    """The result of a call came from outside: from a site, an MCP server, or a file from elsewhere.

    Reported once for each source. Until the person trusts it, calls that standing rules allow are asked about.
    """

    tool_use_id: str
    kind: Literal["web", "mcp", "file"]
    name: str
    type: Literal["outside_content_arrived"] = "outside_content_arrived"


class RunEnd(StrEnum):
    """Why a run ended. `awaiting_results`: the caller runs the calls itself, then the run goes on."""

    COMPLETED = "completed"
    CANCELLED = "cancelled"
    FAILED = "failed"
    LIMIT = "limit"
    ABORTED = "aborted"
    AWAITING_RESULTS = "awaiting_results"


@dataclass(frozen=True, slots=True)
class RunStarted:
    """A run begins: on this prompt, or on the last message of the history. `resumed`: after the program died.

    A specialist's run names it in `agent`, and in `call_id` the call of the run above that it answers.
    """

    message_id: str
    resumed: bool = False
    agent: str = ""
    call_id: str = ""
    type: Literal["run_started"] = "run_started"


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """A request to the model begins; `message_id` is the answer's."""

    turn_id: str
    message_id: str
    model: str
    type: Literal["turn_started"] = "turn_started"


@dataclass(frozen=True, slots=True)
class ToolCallPending:
    """The model's turn ended with this call; its gates come next."""

    id: str
    name: str
    input: JsonObject
    tool_class: ToolClass
    agent_path: tuple[str, ...] = ()
    type: Literal["tool_call_pending"] = "tool_call_pending"


@dataclass(frozen=True, slots=True)
class ApprovalRequested:
    """A person must decide. The preview is fetched by approval id: it may be large and is not journalled.

    `reason` is why somebody must be asked, where it is not the tool's default. `effective_input` has the arguments as a
    hook changed them.
    """

    approval_id: str
    tool_use_id: str
    digest: str
    agent_path: tuple[str, ...] = ()
    reason: str = ""
    effective_input: JsonObject | None = None
    type: Literal["approval_requested"] = "approval_requested"


@dataclass(frozen=True, slots=True)
class ApprovalResolved:
    """A call was decided. `by` rule: a rule or the mode changed meanwhile. `effective_input` is what runs if it was
    edited.

    `digest` is of what was decided; after a crash it is compared before anything runs.
    """

    approval_id: str
    tool_use_id: str
    decision: str
    by: Literal["person", "rule", "stop"]
    effective_input: JsonObject | None = None
    message: str = ""
    digest: str = ""
    type: Literal["approval_resolved"] = "approval_resolved"


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A call starts; journalled before its effect. `input` is what really runs.

    `by` is what allowed it: the tool's default, a rule, the mode, or a person; `rule_id` names the rule. Both are empty
    in journals of older versions.
    """

    id: str
    input: JsonObject
    by: Literal["", "default", "rule", "mode", "person"] = ""
    rule_id: str | None = None
    type: Literal["tool_started"] = "tool_started"


@dataclass(frozen=True, slots=True)
class ToolProgress:
    """Live output of a running tool."""

    id: str
    text: str
    type: Literal["tool_progress"] = "tool_progress"


@dataclass(frozen=True, slots=True)
class ToolFinished:
    """The call has its result.

    `changes` are the changes to files, of a tool that looks for them afterwards, and of one whose files were saved.
    """

    id: str
    result: ToolResult
    seconds: float = 0.0
    changes: FileChanges | None = None
    type: Literal["tool_finished"] = "tool_finished"

    @property
    def outcome(self) -> Outcome:
        return self.result.outcome


@dataclass(frozen=True, slots=True)
class ToolResultsReceived:
    """All calls of the turn have results."""

    count: int
    type: Literal["tool_results_received"] = "tool_results_received"


@dataclass(frozen=True, slots=True)
class UserMessageQueued:
    """A message waits while the agent works."""

    message_id: str
    type: Literal["user_message_queued"] = "user_message_queued"


@dataclass(frozen=True, slots=True)
class UserMessageDelivered:
    """A queued message reached the model's history."""

    message_id: str
    type: Literal["user_message_delivered"] = "user_message_delivered"


@dataclass(frozen=True, slots=True)
class UserMessageReturned:
    """A queued message was not delivered: it is handed back whole to whoever sent it."""

    message_id: str
    reason: str = ""
    type: Literal["user_message_returned"] = "user_message_returned"


@dataclass(frozen=True, slots=True)
class AnswerAwaited:
    """The model has not begun to answer for so many seconds; repeated every second."""

    seconds: float
    type: Literal["answer_awaited"] = "answer_awaited"


@dataclass(frozen=True, slots=True)
class RetryScheduled:
    """The same request will be sent again after `after` seconds; attempt numbers begin with 1.

    `sentence` is `why` for a screen that translates it.
    """

    after: float
    why: str
    attempt: int = 1
    sentence: Sentence | None = None
    type: Literal["retry_scheduled"] = "retry_scheduled"


@dataclass(frozen=True, slots=True)
class ContextCompacted:
    """Older messages are summarised for the model; the store keeps them. `usage` is of the request for the summary."""

    first_kept_id: str
    summary: str = ""
    tokens_before: int | None = None
    usage: Usage | None = None
    type: Literal["context_compacted"] = "context_compacted"


@dataclass(frozen=True, slots=True)
class CheckpointCreated:
    """The files that a tool will change were saved."""

    checkpoint_id: str
    tool_use_id: str
    paths: tuple[str, ...] = ()
    type: Literal["checkpoint_created"] = "checkpoint_created"


@dataclass(frozen=True, slots=True)
class CheckpointRestored:
    """Files were restored, except `conflicts`, which were changed since, and `failed`, where it was not possible.

    `undone` is the tool's own report of what it undid; `not_undone` is why it did not.
    """

    checkpoint_id: str
    conflicts: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    undone: str = ""
    not_undone: str = ""
    type: Literal["checkpoint_restored"] = "checkpoint_restored"


@dataclass(frozen=True, slots=True)
class LimitReached:
    """A limit ended the run; `which` names it in words for people, and `sentence` for a screen that translates them."""

    which: str
    sentence: Sentence | None = None
    type: Literal["limit_reached"] = "limit_reached"

    @classmethod
    def of(cls, which: Sentence) -> "LimitReached":
        """Return the event for a limit."""
        return cls(str(which), which)


@dataclass(frozen=True, slots=True)
class CostUpdated:
    """US dollars spent in this run so far."""

    cost: float
    type: Literal["cost_updated"] = "cost_updated"


@dataclass(frozen=True, slots=True)
class ConversationTitled:
    """A model was asked for a title, beside the runs. `title` is the one that the conversation has now.

    `usage` is what the request used; None: unknown.
    """

    title: str
    usage: Usage | None = None
    type: Literal["conversation_titled"] = "conversation_titled"


@dataclass(frozen=True, slots=True)
class ErrorOccurred:
    """Something failed; the session goes on. Has what the person needs, never a traceback or a secret."""

    kind: str
    message: str
    sentence: Sentence
    remedy: Sentence
    action: RemedyAction = RemedyAction.NONE
    detail: str = ""
    type: Literal["error"] = "error"

    @classmethod
    def of(cls, error: AgentError) -> "ErrorOccurred":
        """Return the event for an error; `message` is the server's own text where a server spoke."""
        message = error.message if isinstance(error, ProviderError) else str(error)
        return cls(error.kind, message, error.sentence, error.remedy, error.action, error.detail)


@dataclass(frozen=True, slots=True)
class RunFinished:
    """The last event of every run."""

    reason: RunEnd
    type: Literal["run_finished"] = "run_finished"


EngineEvent = (
    RunStarted
    | TurnStarted
    | ModeChanged
    | ModeChangeRequested
    | ContinuationInjected
    | GuardAborted
    | PolicyInstalled
    | PolicyRemoved
    | PolicyApplied
    | ToolCallPending
    | ApprovalRequested
    | ApprovalResolved
    | ToolStarted
    | ToolProgress
    | ToolFinished
    | ToolResultsReceived
    | UserMessageQueued
    | UserMessageDelivered
    | UserMessageReturned
    | AnswerAwaited
    | RetryScheduled
    | ContextCompacted
    | CheckpointCreated
    | CheckpointRestored
    | LimitReached
    | DoomLoopSuspected
    | OutsideContentArrived
    | QuestionAsked
    | QuestionAnswered
    | CostUpdated
    | ConversationTitled
    | ErrorOccurred
    | RunFinished
)
Event = ProviderEvent | EngineEvent


@dataclass(frozen=True, slots=True)
class Envelope:
    """An event with its place: `seq` has no gaps inside a run.

    Events between runs (a mode is changed, a checkpoint restored) have an empty `run_id` and seq 0, and are never
    journalled; nor is what holds only for the moment (AnswerAwaited), with seq 0 in its run. `parent_run_id` is the run
    that called the specialist whose run this is.
    """

    seq: int
    run_id: str
    parent_run_id: str | None
    turn_id: str | None
    at: datetime
    event: Event
