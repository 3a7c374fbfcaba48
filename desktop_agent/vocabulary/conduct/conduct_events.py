"""What the engine tells about modes, guards, policies, questions and where content came from."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

Authority = Literal["person", "agent"]


@dataclass(frozen=True, slots=True)
class ModeChanged:
    """The mode is now another one."""

    from_mode: str
    to_mode: str
    authority: Authority
    type: Literal["mode_changed"] = "mode_changed"


@dataclass(frozen=True, slots=True)
class ModeChangeRequested:
    """The agent asks for another mode; applied one turn later unless the person objects."""

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
    """A prompt policy is in force."""

    id: str
    type: Literal["policy_installed"] = "policy_installed"


@dataclass(frozen=True, slots=True)
class PolicyRemoved:
    """A prompt policy is gone."""

    id: str
    type: Literal["policy_removed"] = "policy_removed"


@dataclass(frozen=True, slots=True)
class PolicyApplied:
    """These policies shaped this turn's prompt."""

    turn_id: str
    ids: tuple[str, ...]
    type: Literal["policy_applied"] = "policy_applied"


@dataclass(frozen=True, slots=True)
class DoomLoopSuspected:
    """The same call came three times in a row."""

    tool_use_id: str
    count: int
    type: Literal["doom_loop_suspected"] = "doom_loop_suspected"


@dataclass(frozen=True, slots=True)
class QuestionAsked:
    """The agent asks the person. `several` choices may be taken; `free_text`: words of their own are an answer too."""

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

    Told once for each such source, until the person trusts it; what was allowed for good is asked about meanwhile.
    """

    tool_use_id: str
    kind: Literal["web", "mcp", "file"]
    name: str
    type: Literal["outside_content_arrived"] = "outside_content_arrived"
