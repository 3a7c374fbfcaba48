"""Tells a screen reader what is new: a finished block once, never each token."""

from collections.abc import Callable, Sequence

from desktop_agent.conversation.items import Added, AnswerItem, Change, NoticeItem, ToolCallItem, Updated
from ui.transcript.rows.answer_row import AnswerRow
from ui.transcript.surface.row_list import RowList


class Announcer:
    """`say` takes the words and whether they are urgent. Nothing is said while nobody listens."""

    def __init__(self, say: Callable[[str, bool], None], listening: Callable[[], bool]) -> None:
        self._say = say
        self._listening = listening
        self._said: dict[str, int] = {}

    def changed(self, changes: Sequence[Change], rows: RowList) -> None:
        """After a frame's changes were taken in."""
        if not self._listening():
            return
        known = min(len(rows), len(rows.transcript))
        seen: set[int] = set()
        for change in changes:
            if isinstance(change, Added | Updated) and change.index < known and change.index not in seen:
                seen.add(change.index)
                self._look_at(change, rows)

    def _look_at(self, change: Added | Updated, rows: RowList) -> None:
        item = rows.transcript[change.index]
        if isinstance(item, AnswerItem):
            row = rows.row(change.index)
            if isinstance(row, AnswerRow):
                self._say_blocks(row)
        elif isinstance(item, NoticeItem):
            row = rows.row(change.index)
            self._say(f"{row.label}: {row.spoken()}", item.level == "error")
        elif isinstance(item, ToolCallItem) and isinstance(change, Updated) and change.what == "state":
            row = rows.row(change.index)
            self._say(f"{row.label}: {row.blocks[0].spoken()}" if row.blocks else row.label, False)

    def _say_blocks(self, row: AnswerRow) -> None:
        """Blocks that were closed since."""
        before = self._said.get(row.item.id, 0)
        words = "\n".join(text for block in row.blocks[before : row.closed] if (text := block.spoken()))
        if row.is_open:
            self._said[row.item.id] = row.closed
        else:
            self._said.pop(row.item.id, None)
        if words:
            self._say(words, False)
