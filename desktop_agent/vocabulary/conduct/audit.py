"""What became of each call that a model made: who decided, and how it ended."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from desktop_agent.vocabulary.blocks import JsonObject, Outcome

AuditState = Literal["allowed", "denied", "stopped", "waiting"]
DecisionSource = Literal["", "person", "rule", "mode", "default", "program"]


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One call. `at` is when it was made, `decided_at` when that was decided.

    `input` is what ran, or would have run. `decision` is the word of the person's decision, where one decided.
    `reason` is why it was asked about, `message` what the person said to the model. `by` program: it was refused
    before anybody was asked, or Stop came first. `outcome` None: it has not ended, or nobody knows.
    """

    conversation_id: str
    conversation_title: str
    at: datetime
    tool: str
    input: JsonObject
    agent_path: tuple[str, ...] = ()
    state: AuditState = "waiting"
    by: DecisionSource = ""
    decision: str = ""
    decided_at: datetime | None = None
    was_edited: bool = False
    reason: str = ""
    message: str = ""
    rule_id: str | None = None
    outcome: Outcome | None = None
