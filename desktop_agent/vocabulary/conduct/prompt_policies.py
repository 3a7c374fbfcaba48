"""Prompt policies: texts that are added to the instructions. They change text, never authority."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

PolicyScope = Literal["next_turn", "until_removed", "persistent"]


class PolicyTrigger(BaseModel):
    """When a policy applies; all that is named must be so. Nothing named: in every turn.

    `mode`: this mode holds. `tool`: the turn before called this tool. `word`: the newest prompt contains it, upper
    and lower case alike.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    mode: str | None = None
    tool: str | None = None
    word: str | None = None


class PromptPolicy(BaseModel):
    """One policy. Lower precedence goes first; among equals, the one that was installed first.

    next_turn: applies once, then it is gone. until_removed: while the conversation is open. persistent: kept with it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(min_length=1)
    text: str = Field(min_length=1)
    scope: PolicyScope = "until_removed"
    precedence: int = 100
    trigger: PolicyTrigger = PolicyTrigger()
