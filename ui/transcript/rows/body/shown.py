"""How leaves are shown: what is open as if it were closed, long tables in pieces."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ui.transcript.markdown.leaves import Leaf, Row
from ui.transcript.markdown.unfinished import closed_inline

_CELLS = 128
"""Of one piece of a table: what is read and measured at once."""


def presentable(tail: tuple[Leaf, ...]) -> tuple[Leaf, ...]:
    """The last leaf with its open emphasis, code and links shown as if they were closed."""
    if not tail:
        return tail
    last = tail[-1]
    if last.kind in {"paragraph", "heading"}:
        closed = closed_inline(last.text)
        return tail if closed == last.text else (*tail[:-1], replace(last, text=closed))
    if last.kind == "table" and last.cells:
        row = list(last.cells[-1])
        filled = max((index for index, cell in enumerate(row) if cell), default=0)
        row[filled] = closed_inline(row[filled])
        return (*tail[:-1], replace(last, cells=(*last.cells[:-1], tuple(row))))
    return tail


def in_pieces(leaves: Iterable[Leaf]) -> Iterator[Leaf]:
    """The same leaves, but of tables only so many rows together; the first piece has the head and no joint."""
    for leaf in leaves:
        count = rows_together(leaf)
        if leaf.kind != "table" or len(leaf.cells) <= count:
            yield leaf
            continue
        yield replace(leaf, cells=leaf.cells[:count])
        rest = _going_on(leaf)
        for at in range(count, len(leaf.cells), count):
            yield replace(rest, cells=leaf.cells[at : at + count])


def rows_together(table: Leaf) -> int:
    """How many rows a piece of a table has."""
    return max(1, _CELLS // max(1, len(table.aligns)))


def _going_on(leaf: Leaf) -> Leaf:
    inside = tuple(replace(each, marker="") for each in leaf.inside)
    return replace(leaf, inside=inside, joint="\n", starts=False)


def grown(pieces: list[Leaf], rows: tuple[Row, ...], replaced: int) -> tuple[int, list[Leaf]]:
    """The last piece of the table that ends these leaves, with rows in the place of its last ones.

    Answers where the leaves now differ, and the leaves from there on. Costs what is new.
    """
    first = len(pieces) - 1
    cells = pieces[first].cells
    while len(cells) < replaced and pieces[first].joint is not None:
        first -= 1
        cells = pieces[first].cells + cells
    cells = (*cells[: len(cells) - replaced], *rows)
    (whole,) = presentable((replace(pieces[first], cells=cells),))
    if whole.cells:
        return first, list(in_pieces((whole,)))
    return first, []
