"""Thinking and tool output that is opened for the current match alone, and folded again when that is another one."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from desktop_agent.conversation.items import Change
from ui.transcript.row_changes import index_after
from ui.transcript.rows.row import RowSelection
from ui.transcript.surface.finding.texts import UNFOLDED_KEY, is_fully_unfolded
from ui.transcript.surface.screen import RowViewport
from ui.transcript.surface.scroller import Scroller


@dataclass(frozen=True, slots=True)
class _UnfoldedRow:
    index: int
    item_id: str
    chosen: bool | None
    """What the person had chosen before."""


class TemporaryUnfolding:
    """At most one row is open for finding at a time."""

    def __init__(self, viewport: RowViewport, scroller: Scroller) -> None:
        self._viewport = viewport
        self._scroller = scroller
        self._opened: _UnfoldedRow | None = None

    def unfold(self, index: int, places: Sequence[RowSelection], nth: int) -> None:
        """Unfold a row, if a match cannot be seen without that."""
        rows = self._viewport.rows
        row = rows.row(index)
        if is_fully_unfolded(row) or nth >= len(places):
            return
        made = rows.render_context.choices.made
        self._opened = _UnfoldedRow(index, row.item.id, made.get((row.item.id, UNFOLDED_KEY)))
        rows.render_context.choices.set(row.item.id, UNFOLDED_KEY, value=True)
        self._show(index)

    def fold_others(self, index: int | None) -> None:
        """The current match is in this row: fold what was opened for another one, unless the person folded it."""
        opened, rows = self._opened, self._viewport.rows
        if opened is None or opened.index == index:
            return
        self._opened = None
        key = (opened.item_id, UNFOLDED_KEY)
        made = rows.render_context.choices.made
        if not made.get(key):
            return
        del made[key]
        if opened.chosen is not None:
            made[key] = opened.chosen
        if opened.index < len(rows):
            self._show(opened.index)

    def apply(self, changes: Sequence[Change]) -> None:
        """Rows came, or went."""
        if self._opened:
            index = index_after(self._opened.index, changes)
            self._opened = None if index is None else replace(self._opened, index=index)

    def keep_open(self) -> None:
        """What is open stays open."""
        self._opened = None

    def _show(self, index: int) -> None:
        rows = self._viewport.rows
        if rows.existing_row(index):
            rows.update_row(index, "state")
            self._scroller.row_arrived(index)
