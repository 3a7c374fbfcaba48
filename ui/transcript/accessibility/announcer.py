"""Tells a screen reader what is new: each row once, when it is finished, and never while it grows."""

from collections.abc import Callable, Sequence
from weakref import ref

from desktop_agent.conversation.items import (
    Added,
    AnswerItem,
    CallState,
    Change,
    Item,
    NoticeItem,
    Removed,
    ServerStepItem,
    ThinkingItem,
    ToolCallItem,
    UnknownItem,
    Updated,
)
from desktop_agent.conversation.transcript import Transcript
from ui.transcript.rows.row import MAX_SPOKEN, Row
from ui.transcript.surface.row_list import RowList


class Announcer:
    """`say` takes the words and whether they are urgent. Nothing is said while nobody listens."""

    def __init__(self, say: Callable[[str, bool], None], listening: Callable[[], bool]) -> None:
        self._announce = say
        self._is_listening = listening
        self._announced: set[tuple[str, str]] = set()
        self._of: Callable[[], Transcript | None] = lambda: None

    def announce_changes(self, changes: Sequence[Change], rows: RowList) -> None:
        """After a frame's changes were taken in."""
        self._forget_removed(changes, rows.transcript)
        if not self._is_listening():
            return
        known = min(len(rows), len(rows.transcript))
        indices = dict.fromkeys(each.index for each in changes if isinstance(each, Added | Updated))
        for index in indices:
            if index < known:
                self._announce_row(index, rows)

    def _forget_removed(self, changes: Sequence[Change], transcript: Transcript) -> None:
        """What was said of rows that are gone, or of another conversation."""
        if self._of() is not transcript:
            self._of = ref(transcript)
            self._announced.clear()
        elif self._announced and any(isinstance(each, Removed) for each in changes):
            there = {item.id for item in transcript}
            self._announced = {said for said in self._announced if said[0] in there}

    def _announce_row(self, index: int, rows: RowList) -> None:
        item = rows.transcript[index]
        what = _occasion_of(item)
        if what and (item.id, what) not in self._announced:
            self._announced.add((item.id, what))
            self._announce(
                _announcement_for(rows.row(index), item)[:MAX_SPOKEN],
                isinstance(item, NoticeItem) and item.level == "error",
            )


def _occasion_of(item: Item) -> str:
    """What has happened to an item that is said once; nothing while it grows, nor of what the person said."""
    match item:
        case AnswerItem() | ThinkingItem():
            return "finished" if item.finished else ""
        case ToolCallItem():
            return str(item.state) if item.state in {CallState.WAITING, CallState.ENDED} else ""
        case NoticeItem() | ServerStepItem() | UnknownItem():
            return "there"
        case _:
            return ""


def _announcement_for(row: Row, item: Item) -> str:
    if isinstance(item, AnswerItem):
        return row.spoken_text()
    if isinstance(item, NoticeItem):
        return f"{row.label}: {row.spoken_text()}"
    # Of thinking and calls how they ended: the rest is folded away, and read where somebody wants it.
    first = row.blocks[0].spoken_text() if row.blocks else ""
    return f"{row.label}: {first}" if first else row.label
