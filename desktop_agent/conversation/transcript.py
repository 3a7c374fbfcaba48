"""The transcript in memory: folds events into items, and answers each with the small change it made."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import count
from typing import Literal

from desktop_agent.conversation.items import (
    Added,
    AnswerItem,
    CallState,
    Change,
    Item,
    NoticeItem,
    Removed,
    StreamedText,
    ThinkingItem,
    ToolCallItem,
    UnknownItem,
    Updated,
    UserItem,
)
from desktop_agent.vocabulary.blocks import Block, Image, Text, Thinking, ToolResult, ToolUse, Unknown
from desktop_agent.vocabulary.engine_events import (
    ApprovalRequested,
    ApprovalResolved,
    Envelope,
    ErrorOccurred,
    LimitReached,
    RetryScheduled,
    RunEnd,
    RunFinished,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnStarted,
)
from desktop_agent.vocabulary.errors import RemedyAction, Sentence
from desktop_agent.vocabulary.messages import Message, MessageState, Role
from desktop_agent.vocabulary.provider_events import (
    CUT_SHORT,
    ContentDelta,
    MessageDelta,
    StopReason,
    ThinkingBlock,
    ThinkingDelta,
    ToolArgsDelta,
)

INTERRUPTED = Sentence("This answer was interrupted.")
EMPTY = Sentence("The model ended its answer without saying anything.")
WITHHELD = Sentence("The provider's content filter withheld the rest of this answer.")


class Transcript:
    """A list of items. The single writer is the session; everybody else reads."""

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        self._items: list[Item] = []
        self._calls: dict[str, ToolCallItem] = {}
        self._places: dict[str, int] = {}  # of calls, by item
        self._message_id = ""
        self._ids = (f"item-{number}" for number in count(1))
        self._thinking_since: datetime | None = None
        for message in messages:
            self.add_message(message)

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index: int) -> Item:
        return self._items[index]

    def __iter__(self) -> Iterator[Item]:
        return iter(self._items)

    def add_message(self, message: Message) -> list[Change]:
        """Show a committed message whole. A system message is not shown."""
        if message.role is Role.USER:
            return [self._add_user(message)]
        if message.role is Role.TOOL:
            return [
                change
                for block in message.blocks
                if isinstance(block, ToolResult)
                for change in self._finish_call(block, None)
            ]
        if message.role is Role.SYSTEM:
            return []
        return self._add_answer(message)

    def add_notice(
        self,
        sentence: Sentence,
        remedy: Sentence | None = None,
        action: RemedyAction = RemedyAction.NONE,
        *,
        error: bool = False,
        detail: str = "",
    ) -> list[Change]:
        """Say something in place."""
        level = "error" if error else "notice"
        return [self._add(NoticeItem(next(self._ids), level, sentence, remedy, action, detail))]

    def apply(self, envelope: Envelope) -> list[Change]:
        """Fold one event in. Events that show nothing change nothing."""
        event = envelope.event
        match event:
            case ContentDelta():
                return self._grow(event.text, AnswerItem, envelope.at)
            case ThinkingDelta():
                return self._grow(event.text, ThinkingItem, envelope.at)
            case ThinkingBlock():
                return self._close_open(envelope.at)
            case ToolArgsDelta() | ToolUse():
                return self._close_open(envelope.at) + self._write_call(event)
            case MessageDelta():
                return self._explain_end(event, envelope.at)
            case TurnStarted():
                self._message_id = event.message_id
                return []
            case _:
                return self._apply_engine_event(envelope)

    def _apply_engine_event(self, envelope: Envelope) -> list[Change]:
        event = envelope.event
        match event:
            case ApprovalRequested() | ApprovalResolved() | ToolStarted() | ToolProgress():
                return self._advance_call(event)
            case ToolFinished():
                return self._finish_call(event.result, event.seconds)
            case ErrorOccurred():
                ended = self._end(envelope.at, interrupted=True)
                shown = self.add_notice(event.sentence, event.remedy, event.action, error=True, detail=event.detail)
                return ended + shown
            case RetryScheduled():
                values = {"why": event.why, "seconds": f"{event.after:.0f}"}
                begun = self._end(envelope.at, interrupted=True)
                return begun + self.add_notice(Sentence("{why} Trying again in {seconds} s.", values))
            case LimitReached():
                sentence = Sentence("A limit was reached: {which}.", {"which": event.which})
                return self.add_notice(sentence, action=RemedyAction.CONTINUE)
            case RunFinished():
                return self._end(envelope.at, interrupted=event.reason is not RunEnd.COMPLETED)
            case _:
                return []

    def _explain_end(self, event: MessageDelta, at: datetime) -> list[Change]:
        """No text follows. What was cut short is marked; an answer that ends in silence, or was withheld, says so."""
        closed = self._close_open(at, interrupted=event.stop_reason in CUT_SHORT)
        if event.details and event.details.get("empty"):
            return closed + self.add_notice(EMPTY, action=RemedyAction.RETRY)
        if event.stop_reason is StopReason.CONTENT_FILTER:
            return closed + self.add_notice(WITHHELD)
        return closed

    def _add(self, item: Item) -> Added:
        self._items.append(item)
        if isinstance(item, ToolCallItem):
            self._places[item.id] = len(self._items) - 1
        return Added(len(self._items) - 1)

    def _add_user(self, message: Message) -> Added:
        images = tuple(block for block in message.blocks if isinstance(block, Image))
        return self._add(UserItem(next(self._ids), message.id, message.text, images))

    def _add_answer(self, message: Message) -> list[Change]:
        changes: list[Change] = []
        for block in message.blocks:
            item = self._item_of(block, message.id)
            if item is not None:
                changes.append(self._add(item))
            if isinstance(item, ToolCallItem):
                self._calls[item.tool_use_id] = item
        if message.state is MessageState.INTERRUPTED:
            last = self._items[-1] if changes else None
            if isinstance(last, AnswerItem):
                last.interrupted = True
            elif not isinstance(last, ToolCallItem):
                changes += self.add_notice(INTERRUPTED)
        return changes

    def _item_of(self, block: Block, message_id: str) -> Item | None:
        new_id = next(self._ids)
        match block:
            case Text():
                return AnswerItem(new_id, message_id, StreamedText(block.text), finished=True)
            case Thinking(text=""):
                return None
            case Thinking():
                text = StreamedText(block.text)
                return ThinkingItem(new_id, message_id, text, finished=True, seconds=block.seconds)
            case ToolUse():
                state = CallState.PENDING
                return ToolCallItem(new_id, message_id, block.id, block.name, block.input, state=state)
            case Unknown():
                return UnknownItem(new_id, message_id, block.raw)
            case _:
                return None

    def _grow(self, text: str, kind: type[AnswerItem] | type[ThinkingItem], at: datetime) -> list[Change]:
        """Append to the open item of this kind, or open one."""
        index = _last_of_the_model(self._items)
        last = self._items[index] if index is not None else None
        if index is not None and isinstance(last, kind) and not last.finished:
            last.text.append(text)
            return [Updated(index, "text")]
        closed = self._close_open(at)
        if kind is ThinkingItem:
            self._thinking_since = at
        return [*closed, self._add(kind(next(self._ids), self._message_id, StreamedText(text)))]

    def _close_open(self, at: datetime, *, interrupted: bool = False) -> list[Change]:
        """Finish the open text, if any: from now on it never changes."""
        index = _last_of_the_model(self._items)
        last = self._items[index] if index is not None else None
        if index is None or not isinstance(last, (AnswerItem, ThinkingItem)) or last.finished:
            return []
        last.finished = True
        if isinstance(last, AnswerItem):
            last.interrupted = interrupted
        elif self._thinking_since is not None:
            # The clock of the machine may have been set back meanwhile.
            last.seconds = max(0.0, (at - self._thinking_since).total_seconds())
        return [Updated(index, "state")]

    def _end(self, at: datetime, *, interrupted: bool) -> list[Change]:
        """Close what is open; calls that were still being written never came to be."""
        changes = self._close_open(at, interrupted=interrupted)
        while (index := _last_of_the_model(self._items)) is not None:
            last = self._items[index]
            if not isinstance(last, ToolCallItem) or last.state is not CallState.WRITING:
                break
            del self._items[index]
            self._calls.pop(last.tool_use_id, None)
            changes.append(Removed(index, 1))
        return changes

    def _write_call(self, event: ToolArgsDelta | ToolUse) -> list[Change]:
        item = self._calls.get(event.id)
        changes: list[Change] = []
        # An id that a server used in an earlier message names a new call here.
        if item is None or item.message_id != self._message_id:
            item = ToolCallItem(next(self._ids), self._message_id, event.id, event.name or "")
            self._calls[event.id] = item
            changes.append(self._add(item))
        if isinstance(event, ToolUse):
            item.name, item.input, item.state = event.name, event.input, CallState.PENDING
        else:
            item.name = item.name or event.name or ""
            item.arguments.append(event.fragment)
        return changes or [self._updated(item)]

    def _advance_call(self, event: ApprovalRequested | ApprovalResolved | ToolStarted | ToolProgress) -> list[Change]:
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
                return [self._updated(item, "text")]
        return [self._updated(item)]

    def _finish_call(self, result: ToolResult, seconds: float | None) -> list[Change]:
        item = self._calls.get(result.tool_use_id)
        if item is None:
            return []
        item.state, item.result, item.seconds, item.approval_id = CallState.ENDED, result, seconds, None
        return [self._updated(item)]

    def _updated(self, item: ToolCallItem, what: Literal["text", "state"] = "state") -> Updated:
        # Only what stands at the end is ever removed, so a call stays where it was added.
        return Updated(self._places[item.id], what)


def _last_of_the_model(items: list[Item]) -> int | None:
    """Where its last item stands. A notice that came in between neither ends nor splits what it was writing."""
    index = len(items) - 1
    while index >= 0 and isinstance(items[index], NoticeItem):
        index -= 1
    return index if index >= 0 else None
