"""Folds one turn's provider events into the blocks of its message, live and again from the journal."""

from datetime import datetime

from desktop_agent.vocabulary.blocks import Block, Text, Thinking, ToolUse
from desktop_agent.vocabulary.engine_events import Event
from desktop_agent.vocabulary.messages import Message, MessageState, Role
from desktop_agent.vocabulary.provider_events import (
    ContentDelta,
    MessageDelta,
    StopReason,
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
        self._blocks: list[Block] = []
        self._text: list[str] = []
        self._thinking: list[str] = []
        self._thinking_since: datetime | None = None

    @property
    def has_content(self) -> bool:
        """Whether anything was said yet; after that the request is never repeated by itself."""
        return bool(self._blocks or self._text or self._thinking)

    def feed(self, event: Event, at: datetime) -> None:
        """Take one event; those of tools and approvals are none of its business."""
        match event:
            case ContentDelta():
                self._close_thinking(at)
                self._text.append(event.text)
            case ThinkingDelta():
                self._close_text()
                self._thinking_since = self._thinking_since or at
                self._thinking.append(event.text)
            case ThinkingBlock():
                self._close_text()
                self._finish_thinking(event.text, event.provider, dict(event.metadata), at)
            case ToolUse():
                self._close_thinking(at)
                self._close_text()
                self._blocks.append(event)
            case UsageUpdate():
                self.usage = event.usage if self.usage is None else self.usage.merge_max(event.usage)
            case MessageDelta():
                self.stop_reason = event.stop_reason
            case _:
                pass

    def message(self, state: MessageState, at: datetime) -> Message:
        """Everything so far as a message; reasoning without its closing state is kept for display only."""
        self._close_thinking(at)
        self._close_text()
        return Message(
            id=self.message_id,
            role=Role.ASSISTANT,
            blocks=tuple(self._blocks),
            state=state,
            model=self.model,
            usage=self.usage,
            stop_reason=self.stop_reason or (StopReason.CANCELLED if state is MessageState.INTERRUPTED else None),
        )

    def _close_text(self) -> None:
        if self._text:
            self._blocks.append(Text(text="".join(self._text)))
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
