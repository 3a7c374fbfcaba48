"""Text and thinking: the open item at the end, which grows until something else comes."""

from datetime import datetime

from desktop_agent.conversation.items import AnswerItem, Change, ItemList, StreamedText, ThinkingItem, Updated
from desktop_agent.vocabulary.blocks import Citation, Text, Thinking

_ENDS_A_SENTENCE = frozenset(".!?:`")


class OpenText:
    """Grows the open item. Parts of one text are one item for the reader, however a server cut it up."""

    def __init__(self, shown: ItemList) -> None:
        self._shown = shown
        self._thinking_since: datetime | None = None
        self._part_start = 0  # of the open text's last part, in characters
        self._part_is_closed = False

    def grow(
        self, piece: str, kind: type[AnswerItem] | type[ThinkingItem], message_id: str, at: datetime
    ) -> list[Change]:
        """Append to the open item of this kind, or open one."""
        index = self._shown.last_of_the_model()
        last = self._shown.items[index] if index is not None else None
        if index is not None and isinstance(last, kind) and not last.finished and not self._begins_anew(last, piece):
            if self._part_is_closed:
                self._part_start, self._part_is_closed = last.text.length, False
            last.text.append(piece)
            return [Updated(index, "text")]
        closed = self.close(at)
        if kind is ThinkingItem:
            self._thinking_since = at
        return [*closed, self._shown.add(kind(self._shown.new_id(), message_id, StreamedText(piece)))]

    def end_part(self, citations: tuple[Citation, ...]) -> list[Change]:
        """The text so far is a part of its own, with these citations."""
        index = self._shown.last_of_the_model()
        last = self._shown.items[index] if index is not None else None
        if index is None or not isinstance(last, AnswerItem) or last.finished or self._part_is_closed:
            return []
        self._part_is_closed = True
        if not citations:
            return []
        last.citations += _moved(citations, self._part_start)
        return [Updated(index, "state")]

    def add(self, block: Text | Thinking, message_id: str, at: datetime) -> list[Change]:
        """A whole block, to the open item or as one; `close` ends it. Thinking that shows nothing still parts texts."""
        if isinstance(block, Text):
            grown = self.grow(block.text, AnswerItem, message_id, at) if block.text else []
            return grown + (self.end_part(block.citations) if grown else [])
        closed = self.close(at)
        if not block.text:
            return closed
        text = StreamedText(block.text)
        item = ThinkingItem(self._shown.new_id(), message_id, text, finished=True, seconds=block.seconds)
        return [*closed, self._shown.add(item)]

    def close(self, at: datetime, *, interrupted: bool = False) -> list[Change]:
        """Finish the open text, if any: from now on it never changes."""
        self._part_start, self._part_is_closed = 0, False
        index = self._shown.last_of_the_model()
        last = self._shown.items[index] if index is not None else None
        if index is None or not isinstance(last, (AnswerItem, ThinkingItem)) or last.finished:
            return []
        last.finished = True
        if isinstance(last, AnswerItem):
            last.interrupted = interrupted
        elif self._thinking_since is not None:
            # The clock of the machine may have been set back meanwhile.
            last.seconds = max(0.0, (at - self._thinking_since).total_seconds())
        return [Updated(index, "state")]

    def _begins_anew(self, last: AnswerItem | ThinkingItem, piece: str) -> bool:
        """Servers cut cited text in the middle of sentences, and put remarks before the answer without any space."""
        return self._part_is_closed and last.text.last in _ENDS_A_SENTENCE and not piece[:1].isspace()


def _moved(citations: tuple[Citation, ...], by: int) -> tuple[Citation, ...]:
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
