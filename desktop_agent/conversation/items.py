"""The items of a transcript, one for each part that a person sees as a thing of its own; and how text grows in them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from itertools import count
from typing import Any, Literal

from desktop_agent.types.blocks import Citation, Image, JsonObject, Outcome, Text, Thinking, ToolResult
from desktop_agent.types.errors import RemedyAction, Sentence


class StreamedText:
    """Text that grows at its end. Appending costs what the piece costs; the pieces are joined on reading."""

    __slots__ = ("_pieces", "length")

    def __init__(self, text: str = "") -> None:
        self._pieces = [text] if text else []
        self.length = len(text)

    def append(self, piece: str) -> None:
        """Add a piece at the end."""
        self._pieces.append(piece)
        self.length += len(piece)

    @property
    def last(self) -> str:
        return self._pieces[-1][-1:] if self._pieces else ""

    def __str__(self) -> str:
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0] if self._pieces else ""

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other) if isinstance(other, StreamedText) else NotImplemented

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __repr__(self) -> str:
        return f"StreamedText({str(self)!r})"


@dataclass(slots=True)
class UserItem:
    """What the person said: "You said"."""

    id: str
    message_id: str
    text: str
    images: tuple[Image, ...] = ()


@dataclass(slots=True)
class AnswerItem:
    """Visible text of the assistant: "Assistant said". `finished` text never changes again.

    `citations` name the sources of its claims; their offsets are into the whole text.
    """

    id: str
    message_id: str
    text: StreamedText = field(default_factory=StreamedText)
    finished: bool = False
    interrupted: bool = False
    citations: tuple[Citation, ...] = ()


@dataclass(slots=True)
class ThinkingItem:
    """A reasoning summary in its true place: "Thinking". `seconds` is None while it runs or when unknown."""

    id: str
    message_id: str
    text: StreamedText = field(default_factory=StreamedText)
    finished: bool = False
    seconds: float | None = None


class CallState(StrEnum):
    """The state of a call. `writing`: the model is still writing its arguments."""

    WRITING = "writing"
    PENDING = "pending"
    WAITING = "waiting"
    RUNNING = "running"
    ENDED = "ended"


@dataclass(slots=True)
class ToolCallItem:
    """A call and its outcome: "Tool call: NAME". `outcome` is set when the state is ended.

    `delegated`: a specialist works on it, in `steps`, and an approval that one of its calls waits for is shown here.
    `checkpoints` are its own and those of calls below it: whether each was restored. `redos` are those made by undoing
    them. `lines` are how many lines it added and removed, where that is known; `changed_nothing`: it certainly left
    all files as they were.
    """

    id: str
    message_id: str
    tool_use_id: str
    name: str
    input: JsonObject = field(default_factory=dict[str, Any])
    arguments: StreamedText = field(default_factory=StreamedText)
    state: CallState = CallState.WRITING
    approval_id: str | None = None
    effective_input: JsonObject | None = None
    output: StreamedText = field(default_factory=StreamedText)
    result: ToolResult | None = None
    seconds: float | None = None
    delegated: bool = False
    steps: list[Sentence] = field(default_factory=list[Sentence])
    checkpoints: dict[str, bool] = field(default_factory=dict[str, bool])
    redos: dict[str, bool] = field(default_factory=dict[str, bool])
    lines: tuple[int, int] | None = None
    changed_nothing: bool = False

    @property
    def changed_lines(self) -> tuple[int, int] | None:
        """Return how many lines it added and removed; None where that is not known."""
        return (0, 0) if self.changed_nothing else self.lines

    @property
    def has_run(self) -> bool:
        """Return whether it is over, and may have done something."""
        return self.state is CallState.ENDED and self.outcome not in {Outcome.DENIED, Outcome.LIMIT}

    @property
    def can_be_redone(self) -> bool:
        return self.state is CallState.ENDED and not all(self.redos.values())

    @property
    def is_undone(self) -> bool:
        return bool(self.checkpoints) and all(self.checkpoints.values())

    @property
    def can_be_undone(self) -> bool:
        """Return whether it may have changed something that can be undone. One that failed changed nothing."""
        may_have_changed = self.has_run and (self.delegated or self.outcome is not Outcome.FAILED)
        return may_have_changed and bool(self.checkpoints) and not self.is_undone

    @property
    def outcome(self) -> Outcome | None:
        return self.result.outcome if self.result else None


@dataclass(slots=True)
class ServerStepItem:
    """A step that the provider took on its own servers: "Server step: NAME". `text` says in words what it did."""

    id: str
    message_id: str
    name: str
    text: str = ""


@dataclass(slots=True)
class PictureItem:
    """A picture that the model made: "Picture"."""

    id: str
    message_id: str
    image: Image


@dataclass(slots=True)
class NoticeItem:
    """An error in place, or a fact about the conversation: "Error" or "Notice".

    `folded` are the lines of a longer text behind it, in Markdown, which can be opened. `redos`, where it is about an
    undo in the message `message_id`: the checkpoints that redo it, and whether each was restored. `times`: how often
    it happened, one attempt after another.
    """

    id: str
    level: Literal["error", "notice"]
    sentence: Sentence
    remedy: Sentence | None = None
    action: RemedyAction = RemedyAction.NONE
    detail: str = ""
    folded: tuple[Sentence | str, ...] = ()
    message_id: str = ""
    redos: dict[str, bool] = field(default_factory=dict[str, bool])
    times: int = 1

    @property
    def can_be_redone(self) -> bool:
        return not all(self.redos.values())


@dataclass(slots=True)
class UnknownItem:
    """Content that this version does not know; shown as such."""

    id: str
    message_id: str
    raw: Any


Item = UserItem | AnswerItem | ThinkingItem | ToolCallItem | ServerStepItem | PictureItem | NoticeItem | UnknownItem


@dataclass(frozen=True, slots=True)
class Added:
    """An item was inserted at `index`."""

    index: int


@dataclass(frozen=True, slots=True)
class Prepended:
    """`count` items were inserted at the beginning: they are older than all others, and nothing new was said."""

    count: int


@dataclass(frozen=True, slots=True)
class Updated:
    """The item at `index` changed: its text grew at the end, or anything else about it."""

    index: int
    what: Literal["text", "state"]


@dataclass(frozen=True, slots=True)
class Removed:
    """`count` items were removed, the first of them at `first`."""

    first: int
    count: int


Change = Added | Prepended | Updated | Removed


class ItemList:
    """The items, in order. Only items at the end are ever removed; those that are prepended move all indexes.

    `ids` continue the ids of another list.
    """

    def __init__(self, ids: Iterator[str] | None = None) -> None:
        self.items: list[Item] = []
        self.ids = ids or (f"item-{number}" for number in count(1))

    def new_id(self) -> str:
        """Return an unused item id."""
        return next(self.ids)

    def add(self, item: Item) -> Added:
        """Append the item."""
        self.items.append(item)
        return Added(len(self.items) - 1)

    def last_notices(self) -> Iterator[tuple[int, NoticeItem]]:
        """Yield the notices at the end with their indexes, the last first; the one that is yielded may be removed."""
        for index in range(len(self.items) - 1, -1, -1):
            item = self.items[index]
            if not isinstance(item, NoticeItem):
                return
            yield index, item

    def last_model_index(self) -> int | None:
        """Return the index of the model's last item. Notices in between neither end nor split what it was writing."""
        index = len(self.items) - 1
        while index >= 0 and isinstance(self.items[index], NoticeItem):
            index -= 1
        return index if index >= 0 else None


_SENTENCE_ENDS = frozenset(".!?:`")


@dataclass(slots=True)
class _OpenItem:
    """An item that may grow. `part_start` is the offset of its last part, in characters."""

    index: int
    item: AnswerItem | ThinkingItem
    since: datetime
    part_start: int = 0
    part_is_closed: bool = False


class TextItems:
    """Grows the open items, one for each part that a server writes side by side.

    Parts of one text that follow each other are one item for the reader, however a server cut it up.
    """

    def __init__(self, items: ItemList) -> None:
        self._items = items
        self._open: dict[int, _OpenItem] = {}  # by part

    def grow(
        self, piece: str, kind: type[AnswerItem] | type[ThinkingItem], message_id: str, at: datetime, part: int = 0
    ) -> list[Change]:
        """Append to the open item of this part and kind, or open one."""
        if part not in self._open:
            self._continue_as(part)
        open_item = self._open.get(part)
        is_closed = open_item is not None and open_item.part_is_closed
        if (
            open_item is not None
            and isinstance(open_item.item, kind)
            and not (is_closed and _starts_new_item(open_item, piece))
        ):
            if is_closed:
                open_item.part_start, open_item.part_is_closed = open_item.item.text.length, False
            open_item.item.text.append(piece)
            return [Updated(open_item.index, "text")]
        closed = self.end(part, at)
        item = kind(self._items.new_id(), message_id, StreamedText(piece))
        added = self._items.add(item)
        self._open[part] = _OpenItem(added.index, item, at)
        return [*closed, added]

    def end_part(self, citations: tuple[Citation, ...], part: int = 0) -> list[Change]:
        """Finish the text so far as a part, with these citations."""
        open_item = self._open.get(part)
        if open_item is None or not isinstance(open_item.item, AnswerItem) or open_item.part_is_closed:
            return []
        open_item.part_is_closed = True
        if not citations:
            return []
        open_item.item.citations += _shifted(citations, open_item.part_start)
        return [Updated(open_item.index, "state")]

    def add(self, block: Text | Thinking, message_id: str, at: datetime) -> list[Change]:
        """Add a whole block, to the open item or a new one; `close` ends it. Empty thinking still separates texts."""
        if isinstance(block, Text):
            grown = self.grow(block.text, AnswerItem, message_id, at) if block.text else []
            return grown + (self.end_part(block.citations) if grown else [])
        closed = self.close(at)
        if not block.text:
            return closed
        text = StreamedText(block.text)
        item = ThinkingItem(self._items.new_id(), message_id, text, finished=True, seconds=block.seconds)
        return [*closed, self._items.add(item)]

    def end(self, part: int, at: datetime) -> list[Change]:
        """Finish this part, part 0 and all complete ones; others beside it may still grow."""
        ended = [number for number, open_item in self._open.items() if number in (0, part) or open_item.part_is_closed]
        return [change for number in ended for change in self._finish(number, at)]

    def close(self, at: datetime, *, interrupted: bool = False) -> list[Change]:
        """Finish all open text, if any: from now on it never changes."""
        return [change for number in list(self._open) for change in self._finish(number, at, interrupted=interrupted)]

    def move(self, by: int) -> None:
        """Move all indexes: so many items were prepended."""
        for open_item in self._open.values():
            open_item.index += by

    def _continue_as(self, part: int) -> None:
        """Continue a complete text in this part, where nothing else is open."""
        if len(self._open) == 1:
            ((number, only),) = self._open.items()
            if only.part_is_closed:
                self._open = {part: self._open.pop(number)}

    def _finish(self, part: int, at: datetime, *, interrupted: bool = False) -> list[Change]:
        open_item = self._open.pop(part)
        open_item.item.finished = True
        if isinstance(open_item.item, AnswerItem):
            open_item.item.interrupted = interrupted
        else:
            # The clock of the machine may have been set back meanwhile.
            open_item.item.seconds = max(0.0, (at - open_item.since).total_seconds())
        return [Updated(open_item.index, "state")]


def _starts_new_item(last: _OpenItem, piece: str) -> bool:
    """Return whether a new item begins behind a closed part.

    Servers cut cited text in the middle of sentences, and put remarks before the answer without any space.
    """
    return last.item.text.last in _SENTENCE_ENDS and not piece[:1].isspace()


def _shifted(citations: tuple[Citation, ...], by: int) -> tuple[Citation, ...]:
    """Return the citations with offsets into the whole text."""
    if not by:
        return citations
    return tuple(
        citation.model_copy(
            update={
                "start": None if citation.start is None else citation.start + by,
                "end": None if citation.end is None else citation.end + by,
            }
        )
        for citation in citations
    )
