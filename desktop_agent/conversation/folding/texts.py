"""Text and thinking: open items, which grow until something else comes."""

from dataclasses import dataclass
from datetime import datetime

from desktop_agent.conversation.items import AnswerItem, Change, ItemList, StreamedText, ThinkingItem, Updated
from desktop_agent.vocabulary.blocks import Citation, Text, Thinking

_SENTENCE_ENDS = frozenset(".!?:`")


@dataclass(slots=True)
class _OpenItem:
    """An item that may grow. `part_start`: of its last part, in characters."""

    index: int
    item: AnswerItem | ThinkingItem
    since: datetime
    part_start: int = 0
    part_is_closed: bool = False


class TextItems:
    """Grows the open items, one for each part that a server writes side by side.

    Parts of one text that follow each other are one item for the reader, however a server cut it up.
    """

    def __init__(self, shown: ItemList) -> None:
        self._items = shown
        self._open: dict[int, _OpenItem] = {}  # by part

    def grow(
        self, piece: str, kind: type[AnswerItem] | type[ThinkingItem], message_id: str, at: datetime, part: int = 0
    ) -> list[Change]:
        """Append to the open item of this part and kind, or open one."""
        if part not in self._open:
            self._continue_as(part)
        found = self._open.get(part)
        if found is not None and isinstance(found.item, kind) and not _starts_new_item(found, piece):
            if found.part_is_closed:
                found.part_start, found.part_is_closed = found.item.text.length, False
            found.item.text.append(piece)
            return [Updated(found.index, "text")]
        closed = self.end(part, at)
        item = kind(self._items.new_id(), message_id, StreamedText(piece))
        added = self._items.add(item)
        self._open[part] = _OpenItem(added.index, item, at)
        return [*closed, added]

    def end_part(self, citations: tuple[Citation, ...], part: int = 0) -> list[Change]:
        """The text so far is a part of its own, with these citations."""
        found = self._open.get(part)
        if found is None or not isinstance(found.item, AnswerItem) or found.part_is_closed:
            return []
        found.part_is_closed = True
        if not citations:
            return []
        found.item.citations += _shifted(citations, found.part_start)
        return [Updated(found.index, "state")]

    def add(self, block: Text | Thinking, message_id: str, at: datetime) -> list[Change]:
        """A whole block, to the open item or as one; `close` ends it. Thinking that shows nothing still parts texts."""
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
        """Something else follows this part: finish it, and what else is whole, but nothing that grows beside it."""
        over = [number for number, each in self._open.items() if number in (0, part) or each.part_is_closed]
        return [change for number in over for change in self._finish(number, at)]

    def close(self, at: datetime, *, interrupted: bool = False) -> list[Change]:
        """Finish all open text, if any: from now on it never changes."""
        return [change for number in list(self._open) for change in self._finish(number, at, interrupted=interrupted)]

    def _continue_as(self, part: int) -> None:
        """A text that is whole goes on in this part, where nothing else is open."""
        if len(self._open) == 1:
            ((number, only),) = self._open.items()
            if only.part_is_closed:
                self._open = {part: self._open.pop(number)}

    def _finish(self, part: int, at: datetime, *, interrupted: bool = False) -> list[Change]:
        found = self._open.pop(part)
        found.item.finished = True
        if isinstance(found.item, AnswerItem):
            found.item.interrupted = interrupted
        else:
            # The clock of the machine may have been set back meanwhile.
            found.item.seconds = max(0.0, (at - found.since).total_seconds())
        return [Updated(found.index, "state")]


def _starts_new_item(last: _OpenItem, piece: str) -> bool:
    """Servers cut cited text in the middle of sentences, and put remarks before the answer without any space."""
    return last.part_is_closed and last.item.text.last in _SENTENCE_ENDS and not piece[:1].isspace()


def _shifted(citations: tuple[Citation, ...], by: int) -> tuple[Citation, ...]:
    """Their places in the whole text."""
    if not by:
        return citations
    return tuple(
        each.model_copy(
            update={
                "start": None if each.start is None else each.start + by,
                "end": None if each.end is None else each.end + by,
            }
        )
        for each in citations
    )
