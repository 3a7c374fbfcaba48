"""Folds one turn's provider events into the blocks of its message, live and again from the journal."""

from datetime import datetime

from desktop_agent.vocabulary.blocks import Block, JsonObject, ServerStep, Text, Thinking, ToolUse, Unknown
from desktop_agent.vocabulary.engine_events import Event, RequestAdjusted
from desktop_agent.vocabulary.errors import Sentence
from desktop_agent.vocabulary.messages import Message, MessageState, Role
from desktop_agent.vocabulary.provider_events import (
    AnswerNamed,
    AnswerStarted,
    ContentDelta,
    MessageDelta,
    Origin,
    StopReason,
    TextClosed,
    ThinkingBlock,
    ThinkingDelta,
    UsageUpdate,
)
from desktop_agent.vocabulary.usage import Usage


class AnswerBuilder:
    """Feed it events in order; ask for the message at any moment."""

    def __init__(self, message_id: str, model: str) -> None:
        self.message_id = message_id
        self.model = model
        self.usage: Usage | None = None
        self.stop_reason: StopReason | None = None
        self.stop_details: JsonObject | None = None
        self._origin: Origin | None = None
        self._spent: Usage | None = None
        self._adjustments: dict[str, Sentence] = {}
        self._blocks: list[Block] = []
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._thinking_since: datetime | None = None

    @property
    def has_content(self) -> bool:
        """Whether anything was said yet; after that the request is never repeated by itself."""
        return bool(self._blocks or self._text or self._thinking)

    @property
    def total_usage(self) -> Usage | None:
        """With what answers that came to nothing used."""
        if self._spent is None or self.usage is None:
            return self.usage or self._spent
        return self._spent + self.usage

    def feed(self, event: Event, at: datetime) -> None:
        """Take one event; those of tools and approvals are none of its business."""
        match event:
            case ContentDelta():
                self._close_thinking(at)
                self._text.append(event.text)
            case TextClosed():
                self._close_text(event)
            case ThinkingDelta():
                self._close_text()
                self._thinking_since = self._thinking_since or at
                self._thinking.append(event.text)
            case ThinkingBlock():
                self._close_text()
                self._finish_thinking(event.text, event.provider, dict(event.metadata), at)
            case ToolUse() | ServerStep() | Unknown():
                self._close_thinking(at)
                self._close_text()
                self._blocks.append(event)
            case _:
                self._note(event)

    def _note(self, event: Event) -> None:
        """What is about the answer and not in it."""
        match event:
            case UsageUpdate():
                self.usage = event.usage if self.usage is None else self.usage.merge_max(event.usage)
            case MessageDelta():
                self.stop_reason, self.stop_details = event.stop_reason, _details(event)
            case AnswerStarted():
                self._origin = event.origin
                self._adjust(event.adjustments)
            case RequestAdjusted():
                self._adjust(event.adjustments)
            case AnswerNamed() if self._origin is not None:
                self._origin = self._origin.model_copy(update={"response_id": event.response_id})
            case _:
                pass

    def begin_again(self) -> None:
        """The same question is asked once more after an answer that came to nothing; what it used still counts."""
        if self.usage is not None:
            self._spent = self.usage if self._spent is None else self._spent + self.usage
        self.usage = self.stop_reason = self.stop_details = None

    def close_open(self, at: datetime) -> None:
        """Nothing more comes to what is open: it is finished as it is."""
        self._close_thinking(at)
        self._close_text()

    def message(self, state: MessageState, at: datetime) -> Message:
        """Everything so far as a message; reasoning without its closing state is kept for display only."""
        self.close_open(at)
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

    def _adjust(self, adjustments: tuple[Sentence, ...]) -> None:
        for each in adjustments:
            self._adjustments.setdefault(str(each), each)

    def _close_text(self, end: TextClosed | None = None) -> None:
        text = "".join(self._text)
        if end is not None:
            self._blocks.append(
                Text(text=text, citations=end.citations, provider=end.provider, metadata=dict(end.metadata))
            )
        elif text:
            self._blocks.append(Text(text=text))
        self._text.clear()

    def _close_thinking(self, at: datetime) -> None:
        # No provider name: a summary that broke off has no replay state, so no dialect may send it.
        if self._thinking:
            self._finish_thinking("".join(self._thinking), "", {}, at)

    def _finish_thinking(self, text: str, provider: str, metadata: dict[str, object], at: datetime) -> None:
        # The clock of the machine may have been set back meanwhile.
        seconds = max(0.0, (at - self._thinking_since).total_seconds()) if self._thinking_since else None
        self._blocks.append(Thinking(text=text, provider=provider, metadata=metadata, seconds=seconds))
        self._thinking.clear()
        self._thinking_since = None


def _details(end: MessageDelta) -> JsonObject | None:
    """A word that nobody here knows is kept beside them, so that it can be shown again."""
    if end.stop_reason is not StopReason.UNKNOWN or end.raw is None:
        return end.details
    return {"raw": end.raw, **(end.details or {})}
