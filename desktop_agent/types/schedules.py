"""Scheduled prompts: what is sent, when, and what became of each run."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, time
from typing import Annotated, Literal

from pydantic import AwareDatetime, Field, field_validator

from desktop_agent.types.frozen_model import FrozenModel
from desktop_agent.types.messages import new_id, now

MAX_TITLE = 200
MAX_PROMPT = 200_000
MAX_CRON_LINE = 200
MAX_INTERVAL = 366 * 24 * 60
"""Minutes."""
LAST_TIME = datetime(9998, 12, 31, 23, 59)  # noqa: DTZ001  the wall clock
"""The latest time of the wall clock with which time zones and their changes can still be computed."""
LAST_DAY = 0
"""Stands for the last day of each month."""
WEEKDAYS = (0, 1, 2, 3, 4)
"""Monday to Friday, counted as `date.weekday` does."""

MissedPolicy = Literal["run_once", "skip"]
"""What becomes of runs whose time passed while nothing could run: one run for all of them, or none."""
ScheduleTarget = Literal["new", "same"]
"""Whether each run begins a conversation of its own, or all go on in one."""


class Once(FrozenModel):
    """Once, at a time of the wall clock."""

    type: Literal["once"] = "once"
    at: datetime

    @field_validator("at")
    @classmethod
    def _check_at(cls, value: datetime) -> datetime:
        if value.tzinfo is not None:
            raise ValueError("a time of the wall clock has no time zone")
        return min(value.replace(second=0, microsecond=0, fold=0), LAST_TIME)


class Weekly(FrozenModel):
    """On these days of each week, Monday being 0; every day with all seven."""

    type: Literal["weekly"] = "weekly"
    days: tuple[Annotated[int, Field(ge=0, le=6)], ...] = Field(min_length=1, max_length=7)
    at: time

    @field_validator("days")
    @classmethod
    def _sort_days(cls, value: Sequence[int]) -> tuple[int, ...]:
        return tuple(sorted(set(value)))


class Monthly(FrozenModel):
    """On one day of each month that has it; LAST_DAY is the last one."""

    type: Literal["monthly"] = "monthly"
    day: int = Field(ge=LAST_DAY, le=31)
    at: time


class Interval(FrozenModel):
    """Every so many minutes, counted from `start`: by the time that passes, not by the wall clock."""

    type: Literal["interval"] = "interval"
    minutes: int = Field(ge=1, le=MAX_INTERVAL)
    start: AwareDatetime = Field(default_factory=now)


class Cron(FrozenModel):
    """At the minutes that a cron line of five fields names, on the wall clock."""

    type: Literal["cron"] = "cron"
    line: str = Field(min_length=1, max_length=MAX_CRON_LINE)


Timing = Annotated[Once | Weekly | Monthly | Interval | Cron, Field(discriminator="type")]


class ScheduledPrompt(FrozenModel):
    """A prompt that is sent by itself.

    `mode` is the name of the mode that the person set; a run never has a wider one. Without an `endpoint_id` and a
    `model` those of new conversations count. `workspace` is the folder, if there is one.
    """

    id: str = Field(default_factory=new_id)
    title: str = Field(min_length=1, max_length=MAX_TITLE)
    prompt: str = Field(min_length=1, max_length=MAX_PROMPT)
    timing: Timing
    workspace: str | None = None
    endpoint_id: str | None = None
    model: str | None = None
    mode: str = "default"
    missed: MissedPolicy = "run_once"
    target: ScheduleTarget = "new"
    is_on: bool = True

    @field_validator("title", "prompt")
    @classmethod
    def _replace_surrogates(cls, value: str) -> str:
        # A lone surrogate cannot be stored.
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


RunState = Literal["claimed", "started", "ended"]
"""`claimed`: its prompt is not stored yet. `started`: its prompt is stored, and is never sent again."""
RunResult = Literal["", "completed", "failed", "limit", "cancelled", "interrupted", "refused", "missed"]
"""`interrupted`: its process died. `refused`: it could not begin. `missed`: its time passed, and it was skipped."""


@dataclass(frozen=True, slots=True)
class ScheduledRun:
    """One run of a scheduled prompt. `slot` is the time that it is for; no two runs of a prompt have the same.

    `message_id` is that of its prompt, chosen before it is sent.
    """

    schedule_id: str
    slot: str
    conversation_id: str
    message_id: str
    state: RunState
    result: RunResult
    claimed_at: datetime


@dataclass(frozen=True, slots=True)
class StoredSchedule:
    """A scheduled prompt as it is stored. Times up to `checked_until` are dealt with.

    `revision` counts the person's changes. `conversation_id` is the conversation that all runs go on in, if they do.
    """

    prompt: ScheduledPrompt
    checked_until: datetime
    revision: int
    conversation_id: str | None = None
    last_run: ScheduledRun | None = None

    @property
    def has_open_run(self) -> bool:
        """Whether its last run has not ended."""
        return self.last_run is not None and self.last_run.state != "ended"
