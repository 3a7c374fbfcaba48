"""The matches of one row: where they are is worked out when somebody asks."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import overload

from ui.transcript.blocks.block import TextRange
from ui.transcript.rows.row import RowSelection
from ui.transcript.surface.finding.texts import TextRun


class RowMatches(Sequence[RowSelection]):
    """In the order of the text."""

    def __init__(self) -> None:
        self._parts: list[tuple[TextRun, list[TextRange]]] = []
        self._firsts: list[int] = []
        self._count = 0

    def add(self, text_run: TextRun, spans: list[TextRange]) -> None:
        """More of them, further down."""
        if spans:
            self._parts.append((text_run, spans))
            self._firsts.append(self._count)
            self._count += len(spans)

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> RowSelection: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[RowSelection]: ...
    def __getitem__(self, index: int | slice) -> RowSelection | Sequence[RowSelection]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(self._count))]
        at = index + self._count if index < 0 else index
        if not 0 <= at < self._count:
            raise IndexError(index)
        part = bisect_right(self._firsts, at) - 1
        text_run, spans = self._parts[part]
        return text_run.selection(*spans[at - self._firsts[part]])
