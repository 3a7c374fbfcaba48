"""Folds one turn's provider events into the blocks of its message, live and again from the journal."""

from dataclasses import dataclass, field
from datetime import datetime

from desktop_agent.types.blocks import Block, Image, JsonObject, ServerStep, Text, Thinking, ToolUse, Unknown
from desktop_agent.types.engine_events import Event, RetryScheduled
from desktop_agent.types.errors import Sentence
from desktop_agent.types.messages import Message, MessageState, Role, now
from desktop_agent.types.provider_events import (
    AnswerNamed,
    AnswerStarted,
    ContentDelta,
    MessageDelta,
    Origin,
    RequestAdjusted,
    StopReason,
    TextClosed,
    ThinkingBlock,
    ThinkingDelta,
    Usage,
    UsageUpdate,
)


@dataclass(slots=True, eq=False)
class _OpenPart:
    """A growing text or thought; `block` is set when it is finished."""

    number: int
    is_thinking: bool
    since: datetime
    pieces: list[str] = field(default_factory=list[str])
    block: Text | Thinking | None = None


def add_usage(first: Usage | None, second: Usage | None) -> Usage | None:
    """Return the sum; one that is unknown does not count."""
    return first or second if first is None or second is None else first + second


class AnswerUsage:
    """What one answer used, failed attempts at it included. Feed it the events of its turn."""

    def __init__(self) -> None:
        self._attempt: Usage | None = None
        self._failed: Usage | None = None

    @property
    def total(self) -> Usage | None:
        """Return the usage; None while nothing is known."""
        return add_usage(self._failed, self._attempt)

    def feed(self, event: Event) -> None:
        """Take in one event; those that say nothing of usage are ignored."""
        match event:
            case UsageUpdate():
                self._attempt = event.usage if self._attempt is None else self._attempt.merge_max(event.usage)
            case AnswerStarted() | RetryScheduled():
                # Another address is asked without a word, and not every provider says that its answer starts.
                self._failed, self._attempt = self.total, None
            case _:
                pass


class AnswerBuilder:
    """Builds a message from events fed in order; ask for it at any moment. Without `at`, an event comes now.

    Parts may grow side by side. When none is open any more, they are in the order of their numbers.
    """

    def __init__(self, message_id: str, model: str) -> None:
        self.message_id = message_id
        self.model = model
        self.stop_reason: StopReason | None = None
        self.stop_details: JsonObject | None = None
        self._origin: Origin | None = None
        self._usage = AnswerUsage()
        self._adjustments: dict[str, Sentence] = {}
        self._blocks: list[Block] = []
        self._open: dict[int, _OpenPart] = {}
        self._unsettled: list[_OpenPart] = []  # in the order in which they began

    @property
    def has_content(self) -> bool:
        """Return whether any content came; after that the request is never repeated automatically."""
        return bool(self._blocks or self._unsettled)

    @property
    def total_usage(self) -> Usage | None:
        """Return the usage, that of failed attempts included."""
        return self._usage.total

    def feed(self, event: Event, at: datetime | None = None) -> None:
        """Take in one event; those of tools and approvals are ignored."""
        match event:
            case ContentDelta() | ThinkingDelta():
                is_thinking = type(event) is ThinkingDelta
                part = self._open.get(event.part)
                if part is None or part.is_thinking is not is_thinking:
                    part = self._begin(event.part, at, is_thinking=is_thinking)
                part.pieces.append(event.text)
            case TextClosed():
                self._finish_text(event, at)
            case ThinkingBlock():
                self._finish_thinking(event, at)
            case ToolUse() | ServerStep() | Image() | Unknown():
                self.close_parts(at)
                self._blocks.append(event)
            case _:
                self._apply_metadata(event)

    def _apply_metadata(self, event: Event) -> None:
        """Take in an event that is about the answer and not part of it."""
        self._usage.feed(event)
        match event:
            case MessageDelta():
                self.stop_reason, self.stop_details = event.stop_reason, _details(event)
            case AnswerStarted():
                self._origin = event.origin
                self.stop_reason = self.stop_details = None
                self._add_adjustments(event.adjustments)
            case RequestAdjusted():
                self._add_adjustments(event.adjustments)
            case RetryScheduled():
                self.stop_reason = self.stop_details = None
            case AnswerNamed() if self._origin is not None:
                self._origin = self._origin.model_copy(update={"response_id": event.response_id})
            case _:
                pass

    def close_parts(self, at: datetime | None = None) -> None:
        """Finish all open parts as they are."""
        for part in list(self._open.values()):
            self._finish(part, at)

    def message(self, state: MessageState, at: datetime) -> Message:
        """Return everything so far as a message; reasoning without its closing state is for display only."""
        self.close_parts(at)
        return Message(
            id=self.message_id,
            role=Role.ASSISTANT,
            blocks=tuple(self._blocks),
            state=state,
            model=self.model,
            usage=self.total_usage,
            stop_reason=self.stop_reason or (StopReason.CANCELLED if state is MessageState.INTERRUPTED else None),
            stop_details=self.stop_details,
            origin=self._origin,
            adjustments=tuple(self._adjustments.values()),
        )

    def _add_adjustments(self, adjustments: tuple[Sentence, ...]) -> None:
        for adjustment in adjustments:
            self._adjustments.setdefault(str(adjustment), adjustment)

    def _begin(self, number: int, at: datetime | None, *, is_thinking: bool) -> _OpenPart:
        """Begin a part; an open one of the same number is finished."""
        if number in self._open:
            self._finish(self._open[number], at)
        part = self._open[number] = _OpenPart(number, is_thinking, at or now())
        self._unsettled.append(part)
        return part

    def _finish_text(self, end: TextClosed, at: datetime | None) -> None:
        part = self._open.get(end.part)
        if part is None or part.is_thinking:
            part = self._begin(end.part, at, is_thinking=False)
        block = Text(
            text="".join(part.pieces), citations=end.citations, provider=end.provider, metadata=dict(end.metadata)
        )
        self._finish(part, at, block)

    def _finish_thinking(self, end: ThinkingBlock, at: datetime | None) -> None:
        part = self._open.get(end.part)
        seconds = None
        if part is None or not part.is_thinking:
            part = self._begin(end.part, at, is_thinking=True)
        else:
            seconds = _seconds(part.since, at)
        block = Thinking(text=end.text, provider=end.provider, metadata=dict(end.metadata), seconds=seconds)
        self._finish(part, at, block)

    def _finish(self, part: _OpenPart, at: datetime | None, block: Text | Thinking | None = None) -> None:
        """Finish a part; the last open one settles the order of all."""
        text = "".join(part.pieces)
        if block is None and text:
            # No provider name: a summary that broke off has no replay state, so no dialect may send it.
            block = (
                Thinking(text=text, provider="", seconds=_seconds(part.since, at))
                if part.is_thinking
                else Text(text=text)
            )
        part.block = block
        del self._open[part.number]
        if not self._open:
            self._unsettled.sort(key=lambda part_: part_.number)
            self._blocks += [part_.block for part_ in self._unsettled if part_.block is not None]
            self._unsettled.clear()


def _seconds(since: datetime, at: datetime | None) -> float:
    """Return the seconds since then, 0 where the machine's clock was set back meanwhile."""
    return max(0.0, ((at or now()) - since).total_seconds())


def _details(end: MessageDelta) -> JsonObject | None:
    """Return the details, with an unknown stop reason kept among them, so that it can be shown again."""
    if end.stop_reason is not StopReason.UNKNOWN or end.raw is None:
        return end.details
    return {"raw": end.raw, **(end.details or {})}
