"""Limits of a run. Reaching one ends it in order: open calls are closed, an event says which, Continue is offered."""

from pydantic import BaseModel, ConfigDict, Field


class Limits(BaseModel):
    """None is no limit. `seconds` is time at work: waiting for a person does not count.

    `characters` bounds what a run may pile up in memory: answers, arguments and results together;
    `answer_characters` bounds one answer. `calls_per_turn`: further calls of one answer are not run. `depth`: how
    deep specialists may nest; the root agent is 0.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    turns: int = Field(default=250, ge=1)
    tool_iterations: int = Field(default=50, ge=1, le=1000)
    tokens: int | None = Field(default=None, ge=1)
    cost: float | None = Field(default=None, gt=0)
    seconds: float | None = Field(default=None, gt=0)
    characters: int = Field(default=64_000_000, ge=1)
    answer_characters: int = Field(default=16_000_000, ge=1)
    result_characters: int = Field(default=400_000, ge=1)
    calls_per_turn: int = Field(default=100, ge=1)
    depth: int = Field(default=3, ge=0, le=3)
