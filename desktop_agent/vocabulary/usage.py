"""Tokens and money. Unknown is None, never 0."""

from collections.abc import Callable
from typing import Self

from pydantic import BaseModel, ConfigDict, Field


class Usage(BaseModel):
    """What one answer, or several, consumed.

    `input_tokens` is the whole prompt with its cached part; `output_tokens` includes reasoning.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    input_tokens: int | None = Field(default=None, ge=0)
    output_tokens: int | None = Field(default=None, ge=0)
    cache_read_tokens: int | None = Field(default=None, ge=0)
    cache_write_tokens: int | None = Field(default=None, ge=0)
    reasoning_tokens: int | None = Field(default=None, ge=0)
    total_tokens: int | None = Field(default=None, ge=0)
    cost: float | None = Field(default=None, ge=0, description="US dollars")

    def merge_max(self, other: Self) -> Self:
        """Two reports of the same turn: servers repeat a growing total, so the larger one counts."""
        return self._combine(other, max)

    def __add__(self, other: Self) -> Self:
        return self._combine(other, lambda a, b: a + b)

    def _combine(self, other: Self, how: Callable[[float, float], float]) -> Self:
        """Known beats unknown; two known values are combined."""
        values: dict[str, float | None] = {}
        for name in type(self).model_fields:
            mine: float | None = getattr(self, name)
            theirs: float | None = getattr(other, name)
            values[name] = theirs if mine is None else mine if theirs is None else how(mine, theirs)
        return type(self).model_validate(values)
