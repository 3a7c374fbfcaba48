"""The one place that assembles what arrives in pieces: text, thinking with its replay state, and the end.

A dialect identifies fragments and calls these methods; `take` hands over the canonical events so far. Calls are
assembled in `call_builder`. Everything here depends on the order of fragments alone, never on how bytes were cut.
"""

from collections.abc import Callable
from typing import Any

from desktop_agent.providers.call_builder import LONGEST_NAME, CallBuilder
from desktop_agent.providers.think_tags import ThinkTags
from desktop_agent.providers.transport.json_text import SurrogateJoiner, mended, mended_json
from desktop_agent.vocabulary.blocks import Citation, JsonObject, ServerStep, Unknown
from desktop_agent.vocabulary.messages import new_id
from desktop_agent.vocabulary.provider_events import (
    CUT_SHORT,
    AnswerNamed,
    ContentDelta,
    MessageDelta,
    ProviderEvent,
    StopReason,
    TextClosed,
    ThinkingBlock,
    ThinkingDelta,
    UsageUpdate,
)
from desktop_agent.vocabulary.usage import Usage

_CORRECTED = frozenset({StopReason.END_TURN, StopReason.TOOL_USE, StopReason.STOP_SEQUENCE, StopReason.UNKNOWN})


def new_call_id() -> str:
    """An id for a call whose server gave none; random, so unique in any conversation."""
    return f"call_{new_id()[:24]}"


class PartBuilder:
    """Folds the fragments of one answer.

    `provider` is what thinking blocks are marked with. `tags` watches the start of the text for `<think>`; None where
    a server never sends such tags. `call_id` makes ids for calls that have none. `keeps_arguments`: arguments go
    back as the text that they came as, so calls keep it.
    """

    def __init__(
        self,
        provider: str,
        *,
        tags: ThinkTags | None = None,
        call_id: Callable[[], str] = new_call_id,
        keeps_arguments: bool = False,
    ) -> None:
        self.calls = CallBuilder(provider, call_id, keeps_arguments=keeps_arguments)
        self.said_anything = False
        self.usage: Usage | None = None  # the last report counts and is yielded at the end
        self.phase: str | None = None  # of the text that comes
        self.provider = provider
        self._tags = tags
        self._is_plain = False  # text follows text: nothing to close, nothing held back
        self._out: list[ProviderEvent] = []
        self._joiner = SurrogateJoiner()
        self._thought_joiner = SurrogateJoiner()
        self._thought: list[str] = []
        self._metadata: JsonObject | None = None
        self._is_named = False
        self._text_is_open = False
        self._citations: list[Citation] = []

    def take(self) -> list[ProviderEvent]:
        """The events since the last call."""
        out = self._out
        self._out = []
        return out

    def text(self, piece: str) -> None:
        """Visible text. An empty piece is nothing; a single space is something."""
        if self._is_plain and piece.isascii():
            if piece:
                self._out.append(ContentDelta(piece, self.phase))
            return
        if not piece:
            return
        if self._tags is None:
            self._show(piece)
            return
        for is_thought, part in self._tags.feed(piece):
            if is_thought:
                self._think(part, {"field": "content.think"})
            else:
                self._show(part)
        if self._tags.settled:
            self._tags = None

    def thinking(self, piece: str, **metadata: Any) -> None:
        """A piece of shown reasoning; `metadata` is what the finished block will carry (the last value counts).

        A piece may be empty: that opens a block which only has state.
        """
        self._tags = None  # a server with a field for reasoning does not use tags
        self._think(piece, metadata)

    def end_thinking(self, **metadata: Any) -> None:
        """Close the open block, if there is one; with metadata, open one if need be."""
        if metadata:
            self._think("", metadata)
        if self._metadata is None:
            return
        rest = self._thought_joiner.flush()
        if rest:
            self._add_thought(rest)
        text = "".join(self._thought)
        self._out.append(ThinkingBlock(text, self.provider, mended_json(self._metadata)))
        self._thought = []
        self._metadata = None

    @property
    def is_thinking(self) -> bool:
        """Whether a thinking block is open."""
        return self._metadata is not None

    @property
    def thinking_field(self) -> Any:
        """The `field` of the open block's metadata, or None."""
        return None if self._metadata is None else self._metadata.get("field")

    def end_text(self, citations: tuple[Citation, ...] = (), **metadata: Any) -> None:
        """Close the open text as a part of its own, with what goes back with it. Nothing where no text is open."""
        self._end_tags()
        self._flush_text()
        self._is_plain = False
        self._citations.extend(citations)
        if self._text_is_open:
            self._text_is_open = False
            self._out.append(TextClosed(self.provider, mended_json(metadata), citations))

    def block(self, block: ServerStep | Unknown) -> None:
        """A whole block in its place: a step of the server's own, or something nobody here knows."""
        self.close_parts()
        self.said_anything = True
        self._out.append(block)

    def named(self, response_id: Any) -> None:
        """The server's own id of the answer; the first one counts."""
        if isinstance(response_id, str) and response_id and not self._is_named:
            self._is_named = True
            self._out.append(AnswerNamed(mended(response_id[:LONGEST_NAME])))

    def call_fragment(self, **fragment: Any) -> None:
        """A piece of a call, for CallBuilder.fragment; closes the text or thinking before it."""
        self.close_parts()
        self._out.extend(self.calls.fragment(**fragment))

    def call_state(self, call_id: str | None, **metadata: Any) -> None:
        """Replay state that belongs to one call; its block stands right before the call."""
        self.calls.attach(call_id, metadata)

    def end_calls(self, *, cut: bool = False, index: int | None = None) -> int:
        """Yield the open calls, or the one with this index, and return how many: for dialects that end them singly.

        After a cut (length, filter) what is no whole JSON object was never a call.
        """
        ended = self.calls.end(cut=cut, index=index)
        for metadata, call in ended:
            if metadata is not None:
                state = {**metadata, "call_id": call.id}
                self._out.append(ThinkingBlock("", self.provider, mended_json(state)))
            self._out.append(call)
        return len(ended)

    def close_parts(self) -> None:
        """Close open text and thinking: a call, an error or the end comes next."""
        self._end_tags()
        self._flush_text()
        self._is_plain = False
        self._text_is_open = False
        self.end_thinking()

    def end(self, reason: StopReason, raw: str | None, details: dict[str, Any] | None = None) -> None:
        """The clean end: calls, MessageDelta, UsageUpdate. `Done` is the dialect's last word, by `done`.

        What came is believed over what was said: any call means TOOL_USE unless the answer was cut or refused, and
        TOOL_USE without a call is END_TURN. An answer without text and calls says `empty` in its details.
        """
        self.close_parts()
        count = self.end_calls(cut=reason in CUT_SHORT)
        if reason in _CORRECTED and (count or self.calls.ended):
            reason = StopReason.TOOL_USE
        elif reason is StopReason.TOOL_USE:
            reason = StopReason.END_TURN
        if reason is StopReason.END_TURN and not self.said_anything:
            details = {**(details or {}), "empty": True}
        if self._citations:
            details = {**(details or {}), "citations": [each.model_dump(exclude_none=True) for each in self._citations]}
        self._out.append(
            MessageDelta(reason, mended(raw) if raw is not None else None, details and mended_json(details))
        )
        if self.usage is not None:
            self._out.append(UsageUpdate(self.usage))

    def _end_tags(self) -> None:
        if self._tags is not None:
            for is_thought, part in self._tags.flush():
                if is_thought:
                    self._think(part, {"field": "content.think"})
                else:
                    self._show(part)
            self._tags = None

    def _show(self, piece: str) -> None:
        if self._metadata is not None:
            self.end_thinking()
        piece = self._joiner.feed(piece)
        self._text_is_open = True
        if piece:
            self.said_anything = True
            self._out.append(ContentDelta(piece, self.phase))
        self._is_plain = self._tags is None and self.said_anything and not self._joiner.is_waiting

    def _flush_text(self) -> None:
        rest = self._joiner.flush()
        if rest:
            self._out.append(ContentDelta(rest, self.phase))

    def _think(self, piece: str, metadata: JsonObject) -> None:
        if self._metadata is None:
            self._metadata = {}
            self._is_plain = False
            self._flush_text()
            self._text_is_open = False
        self._metadata.update(metadata)
        piece = self._thought_joiner.feed(piece)
        if piece:
            self._add_thought(piece)

    def _add_thought(self, piece: str) -> None:
        self._thought.append(piece)
        self._out.append(ThinkingDelta(piece))
