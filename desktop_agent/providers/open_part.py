"""Text and thinking that come one after the other: a whole answer, or one item of an answer whose items come mixed."""

from collections.abc import Callable
from typing import Any, Protocol

from desktop_agent.providers.repeated_text import RepeatFilter
from desktop_agent.providers.think_tags import ThinkTags
from desktop_agent.providers.transport.json_text import SurrogateJoiner, repair_json
from desktop_agent.vocabulary.blocks import Citation, JsonObject
from desktop_agent.vocabulary.errors import Sentence
from desktop_agent.vocabulary.provider_events import (
    ContentDelta,
    ProviderEvent,
    TextClosed,
    ThinkingBlock,
    ThinkingDelta,
)


class AnswerState(Protocol):
    """What the parts of one answer share. `tags` belong to the part whose text comes first."""

    provider: str
    has_content: bool
    tags: ThinkTags | None
    citations: list[Citation]
    may_repeat: bool

    def adjusted(self, sentence: Sentence) -> None:
        """Say what was made to fit."""
        ...


_REPEATED = Sentence("The server said parts of its answer again and again. They are shown once.")
_DIFFERS = Sentence("At the end the server said something else than before. What it said first is shown.")


class TextBuilder:
    """Shows pieces as they come, marked with the number of the part; see ContentDelta."""

    def __init__(self, answer: AnswerState, show: Callable[[ProviderEvent], None], number: int = 0) -> None:
        self.phase: str | None = None  # of the text that comes
        self.number = number
        self.may_repeat_all = False  # the next piece may say all again
        self.is_whole = False  # the next piece says all, beside what was lost
        self._answer = answer
        self._out = show
        self._tags: ThinkTags | None = None
        self._is_plain = False  # text follows text: nothing to close, nothing held back
        self._repeated = RepeatFilter() if answer.may_repeat else None
        self._repeated_thought = RepeatFilter() if answer.may_repeat else None
        self._joiner = SurrogateJoiner()
        self._thought_joiner = SurrogateJoiner()
        self._thought: list[str] = []
        self._metadata: JsonObject | None = None
        self._text_is_open = False

    @property
    def is_thinking(self) -> bool:
        """Whether a thinking block is open."""
        return self._metadata is not None

    @property
    def has_repeated(self) -> bool:
        """Whether the server was found to say its text again and again."""
        return self._repeated is not None and self._repeated.has_repeats

    @property
    def thinking_field(self) -> Any:
        """The `field` of the open block's metadata, or None."""
        return None if self._metadata is None else self._metadata.get("field")

    def text(self, piece: str) -> None:
        """Visible text. An empty piece is nothing; a single space is something."""
        if self._repeated is not None:
            piece = self._without_repeats(self._repeated, piece)
        if self._is_plain and piece.isascii():
            if piece:
                self._out(ContentDelta(piece, self.phase, self.number))
            return
        if not piece:
            return
        if self._answer.tags is not None:
            self._tags, self._answer.tags = self._answer.tags, None
        if self._tags is None:
            self._emit_text(piece)
            return
        self._add_split(self._tags.feed(piece))
        if self._tags.is_settled:
            self._tags = None
            self._is_plain = self._text_is_open and not self._joiner.is_waiting

    def thinking(self, piece: str, **metadata: Any) -> None:
        """A piece of shown reasoning; `metadata` is what the finished block will carry (the last value counts).

        A piece may be empty: that opens a block which only has state.
        """
        if self._repeated_thought is not None and piece:
            piece = self._without_repeats(self._repeated_thought, piece)
            if not piece and self._metadata is None and not set(metadata) - {"field"}:
                return  # nothing new, and no state
        self._answer.tags = None  # a server with a field for reasoning does not use tags
        if self._tags is not None:
            self._tags.drop_blanks()
            self._end_tags()
        self._emit_thinking(piece, metadata)

    def end_thinking(self, whole: str | None = None, **metadata: Any) -> None:
        """Close the open block, if there is one; with metadata, open one if need be.

        `whole` is its text where the pieces came in another order.
        """
        if metadata:
            self._emit_thinking("", metadata)
        if self._metadata is None:
            return
        if self._repeated_thought is not None and (rest := self._repeated_thought.flush()):
            self._emit_thinking(rest, {})
        rest = self._thought_joiner.flush()
        if rest:
            self._add_thought(rest)
        text = "".join(self._thought) if whole is None else whole
        self._out(ThinkingBlock(text, self._answer.provider, repair_json(self._metadata), self.number))
        self._thought = []
        self._metadata = None

    def end_text(self, citations: tuple[Citation, ...] = (), **metadata: Any) -> None:
        """Close the open text as a part of its own, with what goes back with it. Nothing where no text is open."""
        self._release_held_text()
        self._end_tags()
        self._flush_text()
        self._is_plain = False
        self._answer.citations.extend(citations)
        if self._text_is_open:
            self._text_is_open = False
            self._out(TextClosed(self._answer.provider, repair_json(metadata), citations, self.number))

    def close(self) -> None:
        """Nothing more comes: what is open is finished as it is."""
        self._release_held_text()
        self._end_tags()
        self._flush_text()
        self._is_plain = False
        self._text_is_open = False
        self.end_thinking()

    def _without_repeats(self, repeated: RepeatFilter, piece: str) -> str:
        fresh = repeated.missing_text(piece) if self.is_whole else repeated.fresh(piece, may_be_all=self.may_repeat_all)
        if fresh is not piece and repeated.has_repeats:
            self._answer.adjusted(_DIFFERS if repeated.differs else _REPEATED)
        return fresh

    def _release_held_text(self) -> None:
        """What was held back to see whether the server repeats itself."""
        if self._repeated is not None and (rest := self._repeated.flush()):
            self._emit_text(rest)

    def _add_split(self, parts: list[tuple[bool, str]]) -> None:
        for is_thought, part in parts:
            if is_thought:
                self._emit_thinking(part, {"field": "content.think"})
            else:
                self._emit_text(part)

    def _end_tags(self) -> None:
        if self._tags is not None:
            self._add_split(self._tags.flush())
            self._tags = None

    def _emit_text(self, piece: str) -> None:
        if self._metadata is not None:
            self.end_thinking()
        piece = self._joiner.feed(piece)
        self._text_is_open = True
        if piece:
            self._answer.has_content = True
            self._out(ContentDelta(piece, self.phase, self.number))
        self._is_plain = self._tags is None and not self._joiner.is_waiting

    def _flush_text(self) -> None:
        rest = self._joiner.flush()
        if rest:
            self._out(ContentDelta(rest, self.phase, self.number))

    def _emit_thinking(self, piece: str, metadata: JsonObject) -> None:
        if self._metadata is None:
            self._release_held_text()
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
        self._out(ThinkingDelta(piece, self.number))
