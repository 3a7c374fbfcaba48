"""Build text and thinking from pieces, split reasoning tags off, and drop what a server repeats.

Reasoning tags count only at the very start of an answer. Repetitions are searched only in answers of servers that are
not a vendor's own.
"""

from collections.abc import Callable
from typing import Any, Protocol

from desktop_agent.providers.transport.json_codec import SurrogateJoiner, repair_json
from desktop_agent.types.blocks import Citation, JsonObject
from desktop_agent.types.errors import Sentence
from desktop_agent.types.provider_events import ContentDelta, ProviderEvent, TextClosed, ThinkingBlock, ThinkingDelta

# What models write, by vLLM's reasoning parsers (vllm/reasoning: deepseek_r1 and qwen3 `think`, seedoss `seed:think`,
# mistral `[THINK]`, cohere_command `<|START_THINKING|>`) and by the tags that Open WebUI searches
# (open_webui/utils/middleware.py, DEFAULT_REASONING_TAGS: the names beside `think`, OpenThinker's and Kimi-VL's).
_TAG_NAMES = ("think", "thinking", "reasoning", "reason", "thought", "seed:think")
_TAG_PAIRS = (
    *((f"<{name}>", f"</{name}>") for name in _TAG_NAMES),
    ("[think]", "[/think]"),
    ("<|start_thinking|>", "<|end_thinking|>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("◁think▷", "◁/think▷"),
)
_MAX_TAG_LENGTH = max(len(opening) for opening, _ in _TAG_PAIRS)


class ThinkTags:
    """Splits the text of one answer into thought and text; tags may be cut anywhere."""

    def __init__(self) -> None:
        self.is_decided = False
        self._pending = ""
        self._closing = ""
        self._after = False

    def feed(self, piece: str) -> list[tuple[bool, str]]:
        """Return parts in order: (is thought, text). `is_decided` becomes true when no tag can follow any more."""
        self._pending += piece
        parts: list[tuple[bool, str]] = []
        if not self._closing and not self._after and not self._opens():
            return self.flush() if self.is_decided else []
        if self._closing:
            parts = self._split_inside()
        if self._after:
            self._pending = self._pending.lstrip()
            if self._pending:
                self.is_decided = True
                parts += self.flush()
        return parts

    def drop_blanks(self) -> None:
        """Drop white space that is pending before thinking."""
        self._pending = "" if self._pending.isspace() else self._pending

    def flush(self) -> list[tuple[bool, str]]:
        """Return what is pending, unchanged."""
        pending, self._pending = self._pending, ""
        return [(bool(self._closing), pending)] if pending else []

    def _opens(self) -> bool:
        """Whether the thought has begun; sets `is_decided` when it cannot begin any more."""
        start = self._pending.lstrip()
        word = start[:_MAX_TAG_LENGTH].lower()
        for opening, closing in _TAG_PAIRS:
            if word.startswith(opening):
                self._pending = start[len(opening) :]
                self._closing = closing
                return True
        if len(start) < _MAX_TAG_LENGTH and any(opening.startswith(word) for opening, _ in _TAG_PAIRS):
            return False
        self.is_decided = True
        return False

    def _split_inside(self) -> list[tuple[bool, str]]:
        lowered = self._pending.lower()
        searched = lowered if len(lowered) == len(self._pending) else self._pending
        position = searched.find(self._closing)
        if position >= 0:
            thought, self._pending = self._pending[:position], self._pending[position + len(self._closing) :]
            self._closing, self._after = "", True
            return [(True, thought)] if thought else []
        end = len(self._pending) - _overlap(lowered, self._closing)
        thought, self._pending = self._pending[:end], self._pending[end:]
        return [(True, thought)] if thought else []


def _overlap(text: str, tag: str) -> int:
    """Return how many characters at the end of the text may be the start of the tag."""
    return next((size for size in range(min(len(text), len(tag) - 1), 0, -1) if text.endswith(tag[:size])), 0)


_SURE_LENGTH = 12  # so many repeated characters are no coincidence
_LIKELY_LENGTH = 4


class RepeatFilter:
    """Returns what is new in each piece of one text.

    `has_repeats`: something was repeated. `differs`: a whole text was received that differs from the pieces.
    """

    def __init__(self) -> None:
        self.has_repeats = False
        self.differs = False
        self._pieces: list[str] = []
        self._length = 0
        self._pending = ""  # a piece that begins with all before it: the next one decides
        self._is_growing = False

    def fresh(self, piece: str, *, may_be_all: bool = False) -> str:
        """Return the part of this piece that is new. `may_be_all`: the piece may repeat the whole text."""
        if self._pending:
            pending, self._pending = self._pending, ""
            has_grown_twice = len(piece) > len(pending) and _has_letters(piece)
            if piece.startswith(pending) and (has_grown_twice or self._is_significant(_SURE_LENGTH)):
                self._is_growing = True
                return self._new_end(piece)
            return self._record(pending) + self.fresh(piece, may_be_all=may_be_all)
        if len(piece) < self._length and not self._is_growing:
            self._pieces.append(piece)
            self._length += len(piece)
            return piece
        text = self._all_text()
        if not text or not piece.startswith(text):
            self._is_growing = False
            return self._record(piece)
        if self._is_growing or (may_be_all and self._is_significant(_SURE_LENGTH)):
            return self._new_end(piece)
        if len(piece) > self._length:
            self._pending = piece
            return ""
        return self._record(piece)

    def missing_text(self, whole: str) -> str:
        """Return the part of the whole text that the pieces lacked; it arrives with or after them."""
        before = self.flush()
        if not whole.strip():
            return before
        text, whole = self._all_text(), whole.lstrip()
        if not text.strip():
            return before + self._record(whole)
        for known in (text.lstrip(), _without_thinking(text)):
            if known.strip() and whole.startswith(known):
                self.has_repeats = True
                return before + self._record(whole[len(known) :])
        self.has_repeats = True
        self.differs = self.differs or whole.strip() not in text
        return before

    def flush(self) -> str:
        """Return what is pending, at the end."""
        pending, self._pending = self._pending, ""
        if pending and self._is_significant(_LIKELY_LENGTH):
            return self._new_end(pending)
        return self._record(pending)

    def _new_end(self, piece: str) -> str:
        """Return the new end of a piece that begins with all the text so far."""
        self.has_repeats = True
        return self._record(piece[self._length :])

    def _record(self, piece: str) -> str:
        if piece:
            self._pieces.append(piece)
            self._length += len(piece)
        return piece

    def _all_text(self) -> str:
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0] if self._pieces else ""

    def _is_significant(self, min_length: int) -> bool:
        """Whether the text so far is too long to be repeated by chance: words, not only digits or signs."""
        text = self._all_text().strip()
        return len(text) >= min_length and _has_letters(text)


def _has_letters(text: str) -> bool:
    return any(letter.isalpha() for letter in text)


def _without_thinking(text: str) -> str:
    """Return the visible part of text that may begin with reasoning in tags."""
    tags = ThinkTags()
    parts = tags.feed(text) + tags.flush()
    return "".join(text for is_thought, text in parts if not is_thought).lstrip()


class AnswerState(Protocol):
    """What the parts of one answer share. `tags` are used by the part whose text comes first."""

    provider: str
    has_content: bool
    tags: ThinkTags | None
    citations: list[Citation]
    may_repeat: bool

    def note_adjustment(self, sentence: Sentence) -> None:
        """Report what was adapted."""
        ...


_REPEATED = Sentence("The server repeated parts of its answer. They are shown once.")
_DIFFERS = Sentence("The server's final answer differs from what it sent before. The first version is shown.")


class TextBuilder:
    """Builds one part of an answer. Its events carry the number of the part; see ContentDelta."""

    def __init__(self, answer: AnswerState, show: Callable[[ProviderEvent], None], number: int = 0) -> None:
        self.phase: str | None = None  # of the next text
        self.number = number
        self.may_repeat_all = False  # the next piece may repeat everything
        self.is_whole = False  # the next piece is the whole text, with what was lost
        self._answer = answer
        self._out = show
        self._tags: ThinkTags | None = None
        self._is_plain = False  # text follows text: nothing to close, nothing pending
        self._repeated = RepeatFilter() if answer.may_repeat else None
        self._repeated_thought = RepeatFilter() if answer.may_repeat else None
        self._joiner = SurrogateJoiner()
        self._thought_joiner = SurrogateJoiner()
        self._thought: list[str] = []
        self._metadata: JsonObject | None = None
        self._text_is_open = False

    @property
    def is_thinking(self) -> bool:
        return self._metadata is not None

    @property
    def has_repeated(self) -> bool:
        return self._repeated is not None and self._repeated.has_repeats

    @property
    def thinking_field(self) -> Any:
        return None if self._metadata is None else self._metadata.get("field")

    def text(self, piece: str) -> None:
        """Add visible text. An empty piece is ignored; a single space is not."""
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
        if self._tags.is_decided:
            self._tags = None
            self._is_plain = self._text_is_open and not self._joiner.is_waiting

    def thinking(self, piece: str, **metadata: Any) -> None:
        """Add a piece of shown reasoning; `metadata` is what the finished block will carry (the last value counts).

        An empty piece opens a block that only has state.
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
        """Close the open block, if there is one; with metadata, open one if necessary.

        `whole` is its text if the pieces arrived in another order.
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
        """Close the open text as a part of its own, with metadata to send back. Does nothing if no text is open."""
        self._release_pending_text()
        self._end_tags()
        self._flush_text()
        self._is_plain = False
        self._answer.citations.extend(citations)
        if self._text_is_open:
            self._text_is_open = False
            self._out(TextClosed(self._answer.provider, repair_json(metadata), citations, self.number))

    def close(self) -> None:
        """Finish what is open: nothing more follows."""
        self._release_pending_text()
        self._end_tags()
        self._flush_text()
        self._is_plain = False
        self._text_is_open = False
        self.end_thinking()

    def _without_repeats(self, repeated: RepeatFilter, piece: str) -> str:
        fresh = repeated.missing_text(piece) if self.is_whole else repeated.fresh(piece, may_be_all=self.may_repeat_all)
        if fresh is not piece and repeated.has_repeats:
            self._answer.note_adjustment(_DIFFERS if repeated.differs else _REPEATED)
        return fresh

    def _release_pending_text(self) -> None:
        """Show the text that is pending in case it is a repetition."""
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
            self._release_pending_text()
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
