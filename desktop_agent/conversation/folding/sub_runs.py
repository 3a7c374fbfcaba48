"""Runs of specialists: they fold under the call that started them, a line for each step."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from desktop_agent.conversation.folding.calls import CallItems
from desktop_agent.conversation.items import CallState, Change, ToolCallItem
from desktop_agent.vocabulary.blocks import JsonObject, Outcome
from desktop_agent.vocabulary.engine_events import (
    ApprovalRequested,
    ApprovalResolved,
    CheckpointCreated,
    Envelope,
    ErrorOccurred,
    Event,
    LimitReached,
    RetryScheduled,
    RunEnd,
    RunFinished,
    RunStarted,
    ToolCallPending,
    ToolFinished,
)

_MAX_LINE = 160
_OUTCOME_TEXTS = {
    Outcome.FAILED: "Failed",
    Outcome.DENIED: "Denied",
    Outcome.CANCELLED: "Cancelled",
    Outcome.TIMED_OUT: "Timed out",
    Outcome.LIMIT: "Limit reached",
    Outcome.UNKNOWN: "Unknown",
}
_RUN_END_TEXTS = {
    RunEnd.COMPLETED: "Done",
    RunEnd.CANCELLED: "Stopped",
    RunEnd.FAILED: "Failed",
    RunEnd.LIMIT: "Ended at a limit",
    RunEnd.ABORTED: "Broken off",
    RunEnd.AWAITING_RESULTS: "Waits for results",
}


@dataclass(slots=True)
class _SubRun:
    """Where a run folds. `waiting` are the approvals that wait below this item, with the run of each."""

    item: ToolCallItem
    prefix: str = ""
    waiting: dict[str, str] = field(default_factory=dict[str, str])
    names: dict[str, str] = field(default_factory=dict[str, str])


class SubRunItems:
    """Knows under which call each run folds; what specialists of specialists do folds under the same call."""

    def __init__(self, calls: CallItems) -> None:
        self._calls = calls
        self._sub_runs: dict[str, _SubRun] = {}

    def fold(self, envelope: Envelope) -> list[Change]:
        """Take one event of a run that has a run above it."""
        if isinstance(envelope.event, RunStarted):
            return self._begin(envelope, envelope.event)
        place = self._sub_runs.get(envelope.run_id)
        if place is None:
            return []
        if isinstance(envelope.event, CheckpointCreated):
            return self._calls.save(envelope.event, place.item)
        changes = self._add_step(place, envelope.event) if place.item.state is not CallState.ENDED else []
        if isinstance(envelope.event, ApprovalRequested | ApprovalResolved | RunFinished):
            changes += self._update_waiting(place, envelope.run_id, envelope.event)
        if isinstance(envelope.event, RunFinished):
            del self._sub_runs[envelope.run_id]
        return changes

    def _begin(self, envelope: Envelope, event: RunStarted) -> list[Change]:
        above = self._sub_runs.get(envelope.parent_run_id or "")
        if above is not None:
            prefix = f"{above.prefix}{event.agent} / "
            self._sub_runs[envelope.run_id] = _SubRun(above.item, prefix, above.waiting)
            return []
        item = self._calls.find(event.call_id)
        if item is None:
            return []
        item.delegated = True
        self._sub_runs[envelope.run_id] = _SubRun(item)
        return [self._calls.update_of(item)]

    def _add_step(self, place: _SubRun, event: Event) -> list[Change]:
        line = _step_line(place, event)
        if not line:
            return []
        place.item.output.append(f"{place.prefix}{line}\n")
        return [self._calls.update_of(place.item, "text")]

    def _update_waiting(
        self, place: _SubRun, run_id: str, event: ApprovalRequested | ApprovalResolved | RunFinished
    ) -> list[Change]:
        """The call waits while any of the calls below it waits; the oldest is shown."""
        match event:
            case ApprovalRequested():
                place.waiting[event.approval_id] = run_id
            case ApprovalResolved():
                place.waiting.pop(event.approval_id, None)
            case RunFinished():
                for approval_id in [each for each, owner in place.waiting.items() if owner == run_id]:
                    del place.waiting[approval_id]
        item, shown = place.item, next(iter(place.waiting), None)
        if item.state is CallState.ENDED or shown == item.approval_id:
            return []
        item.approval_id = shown
        item.state = CallState.RUNNING if shown is None else CallState.WAITING
        return [self._calls.update_of(item)]


def _step_line(place: _SubRun, event: Event) -> str:
    """What a step says, on one line; nothing where it is none."""
    match event:
        case ToolCallPending():
            place.names[event.id] = event.name
            return _one_line((event.name, *_argument_texts(event.input)))
        case ToolFinished() if event.outcome is not Outcome.SUCCEEDED:
            return _one_line((f"{place.names.get(event.id, event.id)}:", _OUTCOME_TEXTS[event.outcome]))
        case ErrorOccurred():
            return _one_line((str(event.sentence),))
        case RetryScheduled():
            return _one_line((event.why,))
        case LimitReached():
            return _one_line(("Limit reached:", event.which))
        case RunFinished():
            return _RUN_END_TEXTS[event.reason]
        case _:
            return ""


def _argument_texts(arguments: JsonObject) -> Iterable[str]:
    for name, value in arguments.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        yield f"· {name}: {text[:_MAX_LINE]}"


def _one_line(words: Iterable[str]) -> str:
    line = " ".join(" ".join(words).split())
    return line if len(line) <= _MAX_LINE else line[: _MAX_LINE - 1] + "…"
