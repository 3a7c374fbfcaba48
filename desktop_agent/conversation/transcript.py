"""The transcript in memory: folds events into items, and returns the changes that each event makes."""

from collections.abc import Container, Iterable, Iterator, Sequence
from datetime import UTC, datetime

from desktop_agent.conversation.history import summary_of
from desktop_agent.conversation.items import (
    AnswerItem,
    Change,
    Item,
    ItemList,
    NoticeItem,
    PictureItem,
    Prepended,
    Removed,
    ServerStepItem,
    TextItems,
    ThinkingItem,
    ToolCallItem,
    UnknownItem,
    Updated,
    UserItem,
)
from desktop_agent.conversation.transcript_calls import CallItems, SubRunItems
from desktop_agent.conversation.transcript_notices import (
    MERGE_AUTHOR,
    FailureNotices,
    NoticeText,
    PassingNotices,
    compacted_notice,
    continued_notice,
    explain_ending,
    is_undo_note,
    merged_notice,
    notice_for,
    undo_notice,
)
from desktop_agent.types.blocks import Block, Image, ServerStep, Text, Thinking, ToolResult, ToolUse, Unknown
from desktop_agent.types.checkpoints import CheckpointedCall
from desktop_agent.types.engine_events import (
    AnswerAwaited,
    ApprovalRequested,
    ApprovalResolved,
    CheckpointCreated,
    CheckpointRestored,
    Envelope,
    ErrorOccurred,
    Event,
    RetryScheduled,
    RunEnd,
    RunFinished,
    RunStarted,
    ToolFinished,
    ToolProgress,
    ToolStarted,
    TurnStarted,
    UserMessageQueued,
    UserMessageReturned,
)
from desktop_agent.types.errors import RemedyAction, Sentence
from desktop_agent.types.messages import Message, MessageState, Role
from desktop_agent.types.provider_events import (
    TRUNCATED_STOP_REASONS,
    AnswerStarted,
    ContentDelta,
    MessageDelta,
    RequestAdjusted,
    TextClosed,
    ThinkingBlock,
    ThinkingDelta,
    ToolArgsDelta,
)

INTERRUPTED = Sentence("This answer was interrupted.")
# Not AnswerStarted: an answer that breaks off before its first word is one more failure.
_ANSWER = (
    ContentDelta,
    ThinkingDelta,
    ThinkingBlock,
    ToolArgsDelta,
    ToolUse,
    ServerStep,
    Image,
    Unknown,
    MessageDelta,
)
# The moment at which a stored text is closed: it does not matter.
_NO_TIME = datetime.min.replace(tzinfo=UTC)


class Transcript:
    """A list of items. The session is its single writer; everybody else reads.

    One that will be put before another takes the next `ids` of that, and repeats none of its `sentences`.
    """

    def __init__(
        self,
        messages: Iterable[Message] = (),
        *,
        ids: Iterator[str] | None = None,
        sentences: set[str] | None = None,
    ) -> None:
        self._item_list = ItemList(ids)
        self._items = self._item_list.items
        self._text = TextItems(self._item_list)
        self._calls = CallItems(self._item_list)
        self._sub_runs = SubRunItems(self._calls)
        self._message_id = ""
        self._added_sentences: set[str] = set() if sentences is None else sentences
        self._passing = PassingNotices(self._item_list)
        self._failures = FailureNotices(self._item_list)
        self.offer_continue = self._passing.offer_continue
        self.end_remedied = self._failures.end_remedied
        for message in messages:
            self.add_message(message)

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, index: int) -> Item:
        return self._items[index]

    def __iter__(self) -> Iterator[Item]:
        return iter(self._items)

    def add_message(self, message: Message) -> list[Change]:
        """Show a committed message whole. Of system messages only a summary is shown, as a notice that opens."""
        return self._passing.end_waiting() + self._passing.end_offer() + self._add_message(message)

    def _add_message(self, message: Message) -> list[Change]:
        match message.role:
            case Role.USER if is_undo_note(message):
                return self._add_notice_text(undo_notice(message), message.id)
            case Role.USER if message.injected_by == MERGE_AUTHOR:
                return self._add_notice_text(merged_notice(message), message.id)
            case Role.USER if message.injected_by is not None:
                return self._add_notice_text(continued_notice(message.injected_by))
            case Role.USER:
                images = tuple(block for block in message.blocks if isinstance(block, Image))
                prompt = UserItem(self._item_list.new_id(), message.id, message.text, images)
                return [*self._passing.retire_remedies(), self._item_list.add(prompt)]
            case Role.TOOL:
                results = [block for block in message.blocks if isinstance(block, ToolResult)]
                return [change for result in results for change in self._calls.finish(result, None)]
            case Role.SYSTEM:
                summary = summary_of(message)
                return [] if summary is None else self._add_text(compacted_notice(summary.text))
            case Role.ASSISTANT:
                return self._add_answer(message)

    def prepend(self, messages: Sequence[Message]) -> list[Change]:
        """Show messages that come before all others. The results of their calls are among them."""
        earlier = Transcript(messages, ids=self._item_list.ids, sentences=self._added_sentences)
        count = len(earlier)
        if not count:
            return []
        self._items[:0] = earlier
        self._text.move(count)
        self._calls.take_prepended(count)
        return [Prepended(count)]

    def cut_after(self, kept: Iterable[Message]) -> list[Change]:
        """Remove the items after the last of these messages. No run is active then."""
        ids: set[str] = set()
        summaries: set[str] = set()
        for message in kept:
            ids.add(message.id)
            if (summary := summary_of(message)) is not None:
                summaries.add(summary.text)
        first = len(self._items)
        while first and not _shows(self._items[first - 1], ids, summaries):
            first -= 1
        removed = self._items[first:]
        if not removed:
            return []
        del self._items[first:]
        self._calls.forget_from(first)
        notices = [item for item in removed if isinstance(item, NoticeItem)]
        self._added_sentences -= {str(notice.sentence) for notice in notices}
        self._passing.forget(notices)
        return [Removed(first, len(removed))]

    def add_notice(
        self,
        sentence: Sentence,
        remedy: Sentence | None = None,
        action: RemedyAction = RemedyAction.NONE,
        *,
        error: bool = False,
    ) -> list[Change]:
        """Add a notice at the end."""
        return self._add_text(NoticeText(sentence, remedy, action), error=error)

    def _add_text(self, notice: NoticeText, *, error: bool = False) -> list[Change]:
        level = "error" if error else "notice"
        texts = (notice.sentence, notice.remedy, notice.action, notice.detail, notice.folded)
        return [self._item_list.add(NoticeItem(self._item_list.new_id(), level, *texts))]

    def resolve_notice(self, notice: NoticeItem, instead: Sentence) -> list[Change]:
        """Remove a notice that no longer holds, or replace its text where something follows it."""
        for index in reversed(range(len(self._items))):
            if self._items[index] is notice:
                break
        else:
            return []
        if all(isinstance(item, NoticeItem) for item in self._items[index:]):
            del self._items[index]
            return [Removed(index, 1)]
        notice.level, notice.sentence, notice.remedy = "notice", instead, None
        return [Updated(index, "state")]

    def mark_saved_calls(self, saved: Iterable[CheckpointedCall]) -> list[Change]:
        """Mark shown calls with the checkpoints they have."""
        return self._calls.mark_saved(saved)

    @property
    def saved_calls(self) -> list[CheckpointedCall]:
        """Return the checkpoints of all shown calls."""
        return self._calls.saved

    def apply(self, envelope: Envelope) -> list[Change]:
        """Fold one event in. Events that show nothing change nothing."""
        event = envelope.event
        if envelope.parent_run_id is not None:
            return self._sub_runs.fold(envelope)
        if isinstance(event, AnswerAwaited):
            return self._passing.show_waiting(event)
        ended = self._passing.end_waiting() if self._passing.is_waiting else []
        if self._failures.are_open and isinstance(event, _ANSWER):
            ended += self._failures.end()
        if isinstance(event, ContentDelta):
            return ended + self._text.grow(event.text, AnswerItem, self._message_id, envelope.at, event.part)
        return ended + self._apply(envelope)

    def _apply(self, envelope: Envelope) -> list[Change]:
        event = envelope.event
        match event:
            case ThinkingDelta():
                return self._text.grow(event.text, ThinkingItem, self._message_id, envelope.at, event.part)
            case TextClosed():
                return self._text.end_part(event.citations, event.part)
            case ThinkingBlock() | ToolArgsDelta() | ToolUse() | ServerStep() | Image() | Unknown():
                return self._apply_part(event, envelope.at)
            case MessageDelta():
                # No text follows. What was cut short is marked.
                closed = self._text.close(envelope.at, interrupted=event.stop_reason in TRUNCATED_STOP_REASONS)
                return closed + self._explain_end(event)
            case TurnStarted():
                self._message_id = event.message_id
                return []
            case _:
                return self._apply_engine_event(event, envelope.at)

    def _apply_part(
        self, event: ThinkingBlock | ToolArgsDelta | ToolUse | ServerStep | Image | Unknown, at: datetime
    ) -> list[Change]:
        match event:
            case ThinkingBlock():
                return self._text.end(event.part, at)
            case ToolArgsDelta():  # may grow beside a text
                return self._text.end(0, at) + self._calls.write(event, self._message_id)
            case ToolUse():
                return self._text.close(at) + self._calls.write(event, self._message_id)
            case ServerStep() | Image() | Unknown():
                return self._text.close(at) + self._add_block(event, self._message_id)

    def _apply_engine_event(self, event: Event, at: datetime) -> list[Change]:
        match event:
            case ApprovalRequested() | ApprovalResolved() | ToolStarted() | ToolProgress():
                return self._calls.advance(event)
            case ToolFinished():
                return self._calls.finish(event.result, event.seconds, event.changes)
            case ErrorOccurred():
                return self._close_open(at, interrupted=True) + self._failures.add_error(event)
            case RetryScheduled():
                return self._close_open(at, interrupted=True) + self._failures.add_retry(event)
            case AnswerStarted() | RequestAdjusted():
                return self._add_once(event.adjustments)
            case RunFinished():
                return self._close_open(at, interrupted=event.reason is not RunEnd.COMPLETED)
            case UserMessageReturned() | UserMessageQueued():
                # Returned, or queued again: in either case it is not sent yet.
                return self._remove_prompt(event.message_id)
            case CheckpointCreated() | CheckpointRestored():
                changed = self._calls.on_checkpoint(event)
            case RunStarted():
                changed = self._passing.end_offer()
            case _:
                changed = []
        return changed + self._add_notice_text(notice_for(event))

    def _add_notice_text(self, notice: NoticeText | None, message_id: str = "") -> list[Change]:
        last = self._items[-1] if self._items else None
        # Once is enough: several calls may have changed one file.
        is_shown = isinstance(last, NoticeItem) and notice == NoticeText(
            last.sentence, last.remedy, last.action, last.detail, last.folded
        )
        if notice is None or (is_shown and not message_id):
            return []
        changes = self._add_text(notice)
        if message_id:
            self._calls.link_notice(message_id)
        return changes

    def _remove_prompt(self, message_id: str) -> list[Change]:
        """Remove a prompt that was not delivered.

        Only notices can follow it, and a prompt that was sent when its run ended.
        """
        for index in reversed(range(len(self._items))):
            item = self._items[index]
            if not isinstance(item, UserItem | NoticeItem):
                break
            if isinstance(item, UserItem) and item.message_id == message_id:
                del self._items[index]
                return [Removed(index, 1)]
        return []

    def _add_answer(self, message: Message) -> list[Change]:
        changes = self._add_once(message.adjustments)
        count = len(changes)
        for block in message.blocks:
            changes += self._add_block(block, message.id)
        changes += self._text.close(_NO_TIME)
        if message.state is MessageState.INTERRUPTED:
            last = self._items[-1] if len(changes) > count else None
            # Not after empty thinking, which ended the text before the answer broke off.
            if isinstance(last, AnswerItem) and isinstance(message.blocks[-1], Text):
                last.interrupted = True
            elif (
                not isinstance(last, ToolCallItem) and explain_ending(message.stop_reason, message.stop_details) is None
            ):
                changes += self.add_notice(INTERRUPTED)
        return changes + self._explain_end(message)

    def _add_block(self, block: Block, message_id: str) -> list[Change]:
        match block:
            case Text() | Thinking():
                return self._text.add(block, message_id, _NO_TIME)
            case ToolUse():
                return [*self._text.close(_NO_TIME), self._calls.add(block, message_id)]
            case ServerStep():
                item = ServerStepItem(self._item_list.new_id(), message_id, block.name, block.text)
            case Image():
                item = PictureItem(self._item_list.new_id(), message_id, block)
            case Unknown():
                item = UnknownItem(self._item_list.new_id(), message_id, block.raw)
            case _:
                return []
        return [*self._text.close(_NO_TIME), self._item_list.add(item)]

    def _explain_end(self, end: MessageDelta | Message) -> list[Change]:
        """Explain an answer that ends in silence, was withheld or refused."""
        if isinstance(end, Message):
            explained = explain_ending(end.stop_reason, end.stop_details)
        else:
            explained = explain_ending(end.stop_reason, end.details, end.raw)
        return [] if explained is None else self._add_text(explained)

    def _add_once(self, sentences: tuple[Sentence, ...]) -> list[Change]:
        """Show adjustments of the request the first time, not in every turn."""
        changes: list[Change] = []
        for sentence in sentences:
            if str(sentence) not in self._added_sentences:
                self._added_sentences.add(str(sentence))
                changes += self.add_notice(sentence)
        return changes

    def _close_open(self, at: datetime, *, interrupted: bool) -> list[Change]:
        """Close what is open; calls that were still being written are removed."""
        return self._text.close(at, interrupted=interrupted) + self._calls.drop_unwritten()


def _shows(item: Item, ids: Container[str], summaries: Container[str]) -> bool:
    """Return whether the item shows one of these messages, or one of these summaries."""
    if item.message_id in ids:
        return True
    return isinstance(item, NoticeItem) and any(isinstance(line, str) and line in summaries for line in item.folded)
