"""Tool calls in the transcript, from the first letter of their arguments to their result, and runs below them."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from desktop_agent.conversation.items import CallState, Change, ItemList, NoticeItem, Removed, ToolCallItem, Updated
from desktop_agent.conversation.transcript_notices import limit_sentence, retry_sentence
from desktop_agent.types.blocks import JsonObject, Outcome, ToolResult, ToolUse
from desktop_agent.types.checkpoints import CheckpointedCall
from desktop_agent.types.engine_events import (
    ApprovalRequested,
    ApprovalResolved,
    CheckpointCreated,
    CheckpointRestored,
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
    ToolProgress,
    ToolStarted,
)
from desktop_agent.types.errors import Sentence
from desktop_agent.types.provider_events import ToolArgsDelta
from desktop_agent.types.tool_calls import FileChanges, tool_title


class CallItems:
    """The items of calls, by the call's id."""

    def __init__(self, items: ItemList) -> None:
        self._items = items
        self._calls: dict[str, ToolCallItem] = {}
        self._indexes: dict[str, int] = {}  # by item id
        self._items_by_checkpoint: dict[str, ToolCallItem] = {}
        self._notices: dict[str, NoticeItem] = {}  # notices of an undo, by message
        self._notice_messages: dict[str, str] = {}  # ids of these messages, by checkpoint

    def find(self, call_id: str) -> ToolCallItem | None:
        """Return the newest item of this call."""
        return self._calls.get(call_id)

    def update_of(self, item: ToolCallItem, what: Literal["text", "state"] = "state") -> Updated:
        """Return the change that announces a change of this item."""
        return Updated(self._indexes[item.id], what)

    def add(self, block: ToolUse, message_id: str) -> Change:
        """Add a whole call of a committed message."""
        return self._add(ToolCallItem(self._items.new_id(), message_id, block.id, block.name, block.input), done=True)

    def write(self, event: ToolArgsDelta | ToolUse, message_id: str) -> list[Change]:
        """Show a call while the model writes it, or once it is written."""
        item = self._calls.get(event.id)
        changes: list[Change] = []
        # An id that a server used in an earlier message names a new call here.
        if item is None or item.message_id != message_id:
            item = ToolCallItem(self._items.new_id(), message_id, event.id, event.name or "")
            changes.append(self._add(item))
        if isinstance(event, ToolUse):
            item.name, item.input, item.state = event.name, event.input, CallState.PENDING
        else:
            item.name = item.name or event.name or ""
            item.arguments.append(event.fragment)
        return changes or [self.update_of(item)]

    def advance(self, event: ApprovalRequested | ApprovalResolved | ToolStarted | ToolProgress) -> list[Change]:
        """Show that a call waits, was decided, runs, or has output."""
        by_approval = isinstance(event, (ApprovalRequested, ApprovalResolved))
        item = self._calls.get(event.tool_use_id if by_approval else event.id)
        if item is None:
            return []
        match event:
            case ApprovalRequested():
                item.state, item.approval_id = CallState.WAITING, event.approval_id
            case ApprovalResolved():
                item.state, item.approval_id = CallState.PENDING, None
                item.effective_input = event.effective_input
            case ToolStarted():
                item.state = CallState.RUNNING
            case ToolProgress():
                item.output.append(event.text)
                return [self.update_of(item, "text")]
        return [self.update_of(item)]

    def finish(self, result: ToolResult, seconds: float | None, changes: FileChanges | None = None) -> list[Change]:
        """Show the result of a call, and what it changed."""
        item = self._calls.get(result.tool_use_id)
        if item is None:
            return []
        item.state, item.result, item.seconds, item.approval_id = CallState.ENDED, result, seconds, None
        item.effective_input = item.effective_input if result.ran_with is None else result.ran_with
        if changes is not None:
            item.lines = changes.lines
            if _is_nothing(changes):
                item.changed_nothing = True
                self.drop_checkpoints(item, tuple(item.checkpoints))
        return [self.update_of(item)]

    def on_checkpoint(self, event: CheckpointCreated | CheckpointRestored) -> list[Change]:
        """Show a checkpoint of a call, or that one was restored."""
        return self.save(event) if isinstance(event, CheckpointCreated) else self._on_restored(event)

    def save(self, event: CheckpointCreated, item: ToolCallItem | None = None) -> list[Change]:
        """Show that a checkpoint was saved; `item` is the call that it is shown under, when it is another one."""
        item = item or self._calls.get(event.tool_use_id)
        if item is None:
            return []
        item.checkpoints[event.checkpoint_id], self._items_by_checkpoint[event.checkpoint_id] = False, item
        return [self.update_of(item)]

    def drop_checkpoints(self, item: ToolCallItem, ids: Iterable[str]) -> None:
        """Forget checkpoints of what changed nothing: there is nothing to undo."""
        for id_ in ids:
            item.checkpoints.pop(id_, None)
            self._items_by_checkpoint.pop(id_, None)

    def _on_restored(self, event: CheckpointRestored) -> list[Change]:
        item = self._items_by_checkpoint.get(event.checkpoint_id)
        if item is None:
            return []
        marks = item.redos if event.checkpoint_id in item.redos else item.checkpoints
        marks[event.checkpoint_id] = restored = not (event.conflicts or event.failed or event.not_undone)
        return [self.update_of(item), *self._mark_notice(event.checkpoint_id, restored=restored)]

    def forget_from(self, index: int) -> None:
        """Forget the items from this index on: they were removed."""
        removed = {id_ for id_, item_index in self._indexes.items() if item_index >= index}
        for by_key in (self._calls, self._items_by_checkpoint):
            for key in [key for key, item in by_key.items() if item.id in removed]:
                del by_key[key]
        for id_ in removed:
            del self._indexes[id_]

    def take_prepended(self, count: int) -> None:
        """Take in so many items that were prepended, and move all indexes by their number."""
        self._indexes = {id_: index + count for id_, index in self._indexes.items()}
        # An id that occurs again names the newer call.
        for index in range(count - 1, -1, -1):
            item = self._items.items[index]
            if isinstance(item, ToolCallItem):
                self._indexes[item.id] = index
                self._calls.setdefault(item.tool_use_id, item)
            elif isinstance(item, NoticeItem) and item.message_id:
                self._notices[item.message_id] = item

    def link_notice(self, message_id: str) -> None:
        """Link the last item, a notice of an undo, to the message in which the model reads of it."""
        item = self._items.items[-1]
        if isinstance(item, NoticeItem):
            item.message_id, self._notices[message_id] = message_id, item

    def _mark_notice(self, checkpoint_id: str, *, restored: bool) -> list[Change]:
        note = self._notices.get(self._notice_messages.get(checkpoint_id, ""))
        if note is None or note.redos.get(checkpoint_id) == restored:
            return []
        note.redos[checkpoint_id] = restored
        # A prompt before it may have been removed: then its index has changed.
        return [Updated(index, "state") for index, item in enumerate(self._items.items) if item is note]

    def mark_saved(self, saved: Iterable[CheckpointedCall]) -> list[Change]:
        """Show checkpoints known from the disk."""
        calls = (item for item in self._items.items if isinstance(item, ToolCallItem))
        items = {(item.message_id, item.tool_use_id): item for item in calls}
        changes: dict[str, Change] = {}
        for call in saved:
            item = items.get((call.message_id, call.tool_use_id))
            if item is None:
                continue
            if call.lines is not None and call.lines != item.lines:
                item.lines = call.lines
                changes[item.id] = self.update_of(item)
            if call.changed_nothing:
                if not item.changed_nothing:
                    item.changed_nothing = True
                    self.drop_checkpoints(item, (call.checkpoint_id,))
                    changes[item.id] = self.update_of(item)
                continue
            if call.is_redo:
                self._notice_messages[call.checkpoint_id] = call.note_id
                for change in self._mark_notice(call.checkpoint_id, restored=call.restored):
                    changes[call.note_id] = change
            marks = item.redos if call.is_redo else item.checkpoints
            if marks.get(call.checkpoint_id) != call.restored:
                marks[call.checkpoint_id], self._items_by_checkpoint[call.checkpoint_id] = call.restored, item
                changes[item.id] = self.update_of(item)
        return list(changes.values())

    @property
    def saved(self) -> list[CheckpointedCall]:
        """Return what `mark_saved` needs to mark other items of these calls."""
        return [
            CheckpointedCall(
                item.message_id,
                item.tool_use_id,
                id_,
                (item.redos if id_ in item.redos else item.checkpoints)[id_],
                id_ in item.redos,
                self._notice_messages.get(id_, ""),
                item.lines,
            )
            for id_, item in self._items_by_checkpoint.items()
        ]

    def drop_unwritten(self) -> list[Change]:
        """Remove calls that were still being written."""
        changes: list[Change] = []
        while (index := self._items.last_model_index()) is not None:
            last = self._items.items[index]
            if not isinstance(last, ToolCallItem) or last.state is not CallState.WRITING:
                break
            del self._items.items[index]
            self._calls.pop(last.tool_use_id, None)
            self._indexes.pop(last.id, None)
            changes.append(Removed(index, 1))
        return changes

    def _add(self, item: ToolCallItem, *, done: bool = False) -> Change:
        if done:
            item.state = CallState.PENDING
        self._calls[item.tool_use_id] = item
        added = self._items.add(item)
        self._indexes[item.id] = added.index
        return added


_MAX_ARGUMENTS_LENGTH = 160
_OUTCOMES = {
    Outcome.FAILED: Sentence("Failed"),
    Outcome.DENIED: Sentence("Denied"),
    Outcome.CANCELLED: Sentence("Cancelled"),
    Outcome.TIMED_OUT: Sentence("Timed out"),
    Outcome.LIMIT: Sentence("Limit reached"),
    Outcome.UNKNOWN: Sentence("Unknown"),
}
_RUN_ENDS = {
    RunEnd.COMPLETED: Sentence("Done"),
    RunEnd.CANCELLED: Sentence("Stopped"),
    RunEnd.FAILED: Sentence("Failed"),
    RunEnd.LIMIT: Sentence("Ended at a limit"),
    RunEnd.ABORTED: Sentence("Interrupted"),
    RunEnd.AWAITING_RESULTS: Sentence("Waits for results"),
}


@dataclass(slots=True)
class _SubRun:
    """The item under which a run is folded. `waiting` are the open approvals below it, with the run of each.

    `agents` is empty for the specialist that the call asked, and the path to one below it. `checkpoints` are those of
    its calls.
    """

    item: ToolCallItem
    agents: tuple[str, ...] = ()
    waiting: dict[str, str] = field(default_factory=dict[str, str])
    names: dict[str, str] = field(default_factory=dict[str, str])
    checkpoints: dict[str, str] = field(default_factory=dict[str, str])


def _is_nothing(changes: FileChanges | None) -> bool:
    """Return whether a call is known to have changed no file."""
    return changes is not None and not changes.count and not changes.is_cut


class SubRunItems:
    """Knows under which call each run is folded; specialists of specialists are folded under the same call."""

    def __init__(self, calls: CallItems) -> None:
        self._calls = calls
        self._sub_runs: dict[str, _SubRun] = {}

    def fold(self, envelope: Envelope) -> list[Change]:
        """Take in one event of a nested run."""
        if isinstance(envelope.event, RunStarted):
            return self._begin(envelope, envelope.event)
        sub_run = self._sub_runs.get(envelope.run_id)
        if sub_run is None:
            return []
        if isinstance(envelope.event, CheckpointCreated):
            sub_run.checkpoints[envelope.event.tool_use_id] = envelope.event.checkpoint_id
            return self._calls.save(envelope.event, sub_run.item)
        if isinstance(envelope.event, ToolFinished) and _is_nothing(envelope.event.changes):
            self._calls.drop_checkpoints(sub_run.item, (sub_run.checkpoints.pop(envelope.event.id, ""),))
        changes = self._add_step(sub_run, envelope.event) if sub_run.item.state is not CallState.ENDED else []
        if isinstance(envelope.event, ApprovalRequested | ApprovalResolved | RunFinished):
            changes += self._update_waiting(sub_run, envelope.run_id, envelope.event)
        if isinstance(envelope.event, RunFinished):
            del self._sub_runs[envelope.run_id]
        return changes

    def _begin(self, envelope: Envelope, event: RunStarted) -> list[Change]:
        parent = self._sub_runs.get(envelope.parent_run_id or "")
        if parent is not None:
            agents = (*parent.agents, event.agent)
            self._sub_runs[envelope.run_id] = _SubRun(parent.item, agents, parent.waiting)
            return []
        item = self._calls.find(event.call_id)
        if item is None:
            return []
        item.delegated = True
        self._sub_runs[envelope.run_id] = _SubRun(item)
        return [self._calls.update_of(item)]

    def _add_step(self, sub_run: _SubRun, event: Event) -> list[Change]:
        step = _step_sentence(sub_run, event)
        if step is None:
            return []
        if sub_run.agents:
            step = Sentence("{agent} / {step}", {"agent": " / ".join(sub_run.agents), "step": step})
        sub_run.item.steps.append(step)
        return [self._calls.update_of(sub_run.item, "text")]

    def _update_waiting(
        self, sub_run: _SubRun, run_id: str, event: ApprovalRequested | ApprovalResolved | RunFinished
    ) -> list[Change]:
        """Show the call as waiting while any call below it waits; the oldest approval is shown."""
        match event:
            case ApprovalRequested():
                sub_run.waiting[event.approval_id] = run_id
            case ApprovalResolved():
                sub_run.waiting.pop(event.approval_id, None)
            case RunFinished():
                for approval_id in [waiting_id for waiting_id, owner in sub_run.waiting.items() if owner == run_id]:
                    del sub_run.waiting[approval_id]
        item, approval_id = sub_run.item, next(iter(sub_run.waiting), None)
        if item.state is CallState.ENDED or approval_id == item.approval_id:
            return []
        item.approval_id = approval_id
        item.state = CallState.RUNNING if approval_id is None else CallState.WAITING
        return [self._calls.update_of(item)]


def _step_sentence(sub_run: _SubRun, event: Event) -> Sentence | None:
    """Return what a step did, or None for an event that is none."""
    match event:
        case ToolCallPending():
            sub_run.names[event.id] = event.name
            title, arguments = tool_title(event.name), _arguments_text(event.input)
            if not arguments:
                return Sentence("{tool}", {"tool": title})
            return Sentence("{tool} · {arguments}", {"tool": title, "arguments": arguments})
        case ToolFinished() if event.outcome is not Outcome.SUCCEEDED:
            title = tool_title(sub_run.names.get(event.id, event.id))
            return Sentence("{tool}: {outcome}", {"tool": title, "outcome": _OUTCOMES[event.outcome]})
        case ErrorOccurred():
            return event.sentence
        case RetryScheduled():
            return retry_sentence(event)
        case LimitReached():
            return limit_sentence(event)
        case RunFinished():
            return _RUN_ENDS[event.reason]
        case _:
            return None


def _arguments_text(arguments: JsonObject) -> str:
    parts: list[str] = []
    for name, value in arguments.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        parts.append(f"{name}: {text[:_MAX_ARGUMENTS_LENGTH]}")
    return " ".join(" · ".join(parts).split())[:_MAX_ARGUMENTS_LENGTH]
