"""The columns of a table, which all its pieces share."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Protocol

from ui.transcript.look import RenderStyle

_MIN_WIDTH, _MAX_MIN_WIDTH = 64, 240
"""Pixels at 100 %: a column is not made narrower to make the table fit; one of a table that moves sideways anyway is
not wider."""


class TablePiece(Protocol):
    """Some rows of a table."""

    is_laid_out: bool
    layout_count: int

    def measure(self, style: RenderStyle) -> None:
        """Say how wide its cells want to be."""
        ...

    def forget(self) -> None:
        """The columns are others."""
        ...

    def invalidate_widths(self) -> None:
        """What is known of its cells' widths is not true any more."""
        ...


class TableColumns:
    """As wide as the widest cell wants, if all fit. `scrolled` is how far the table was moved, in pixels."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.scrolled = 0
        self._pieces: list[TablePiece] = []
        self._needs: list[list[float]] = []
        self._before: list[list[float]] = [[0.0] * count]
        self._natural = [0.0] * count
        self._shared: tuple[int, list[int]] | None = None
        self._lefts: list[int] = []
        self._style: RenderStyle | None = None

    def set_style(self, style: RenderStyle) -> None:
        """In another look all cells are as wide as they are in that one."""
        if self._style not in (None, style):
            for piece in self._pieces:
                piece.invalidate_widths()
                piece.forget()
                piece.layout_count = 0
            self._needs = [[0.0] * self.count for _ in self._pieces]
            self._before = [[0.0] * self.count for _ in range(len(self._pieces) + 1)]
            self._natural, self._shared = self._before[-1], None
        self._style = style

    def measure(self, style: RenderStyle) -> None:
        """Have the piece with the head measured: its place on the screen may be far away."""
        self._pieces[0].measure(style)

    def add(self, piece: TablePiece) -> int:
        """A piece at the end; answers its number."""
        if self._pieces:
            # It has no lower edge any more.
            self._pieces[-1].is_laid_out, self._pieces[-1].layout_count = False, 0
        self._pieces.append(piece)
        self._needs.append([0.0] * self.count)
        self._before.append(self._before[-1])
        return len(self._pieces) - 1

    def truncate(self, count: int) -> None:
        """Keep only the first pieces."""
        if count >= len(self._pieces):
            return
        del self._pieces[count:], self._needs[count:], self._before[count + 1 :]
        if self._pieces:
            self._pieces[-1].is_laid_out, self._pieces[-1].layout_count = False, 0
        self._widen()

    def is_last(self, number: int) -> bool:
        """Whether the table ends with this piece."""
        return number == len(self._pieces) - 1

    def set_wanted_widths(self, number: int, needs: list[float]) -> None:
        """A piece wants its columns so wide; when that changes the columns, all pieces must be laid out again."""
        if needs == self._needs[number]:
            return
        self._needs[number] = needs
        for at in range(number, len(self._needs)):
            self._before[at + 1] = list(map(max, self._before[at], self._needs[at]))
        self._widen()

    def _widen(self) -> None:
        if self._natural == self._before[-1]:
            return
        self._natural, self._shared = self._before[-1], None
        for piece in self._pieces:
            piece.forget()
            piece.layout_count = 0

    @property
    def natural_widths(self) -> list[float]:
        """How wide the columns want to be."""
        return self._natural

    def widths(self, room: int, style: RenderStyle) -> list[int]:
        """Of the columns, in a room so wide."""
        if self._shared is None or self._shared[0] != room:
            pad = 2 * style.px(10)
            wanted = [int(natural) + pad for natural in self._natural]
            widths = (
                wanted
                if sum(wanted) <= room
                else distribute_width(wanted, room, style.px(_MIN_WIDTH) + pad, style.px(_MAX_MIN_WIDTH))
            )
            self._shared = room, widths
            self._lefts = list(accumulate(widths, initial=0))
            self.scrolled = min(self.scrolled, self.max_scroll(room))
        return self._shared[1]

    @property
    def lefts(self) -> list[int]:
        """Where the columns begin, and where the last one ends."""
        return self._lefts

    def max_scroll(self, room: int) -> int:
        """How far the table can be moved."""
        return max(0, self._lefts[-1] - room) if self._lefts else 0

    def scroll(self, pixels: int, room: int) -> bool:
        """Answers whether anything moved."""
        wanted = max(0, min(self.scrolled + pixels, self.max_scroll(room)))
        moved, self.scrolled = wanted != self.scrolled, wanted
        return moved


def distribute_width(wanted: Sequence[int], room: int, least: int, most: int) -> list[int]:
    """Narrow columns keep what they want, the others share the rest in proportion.

    When some would be too narrow to be read, the table is wider than the room, and only the widest give way.
    """
    if sum(min(least, each) for each in wanted) > room:
        return [min(each, max(least, most)) for each in wanted]
    widths = [0] * len(wanted)
    open_columns = set(range(len(wanted)))
    rest = room
    while open_columns:
        fair = rest / len(open_columns)
        fitting = {column for column in open_columns if wanted[column] <= fair}
        if not fitting:
            break
        for column in fitting:
            widths[column] = wanted[column]
            rest -= wanted[column]
        open_columns -= fitting
    whole = sum(wanted[column] for column in open_columns) or 1
    for column in open_columns:
        widths[column] = max(min(least, wanted[column]), int(rest * wanted[column] / whole))
    return widths
