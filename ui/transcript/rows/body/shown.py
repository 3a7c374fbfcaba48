"""How leaves are shown: what is open as if it were closed, long tables in pieces."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ui.transcript.markdown.leaves import Leaf, TableRow
from ui.transcript.markdown.unfinished import close_open_inline

_CELLS_PER_PIECE = 128
"""Of one piece of a table: what is read and measured at once."""


def displayed_leaves(tail: tuple[Leaf, ...]) -> tuple[Leaf, ...]:
    """The last leaf with its open emphasis, code and links shown as if they were closed."""
    if not tail:
        return tail
    last = tail[-1]
    if last.kind in {"paragraph", "heading"}:
        closed = close_open_inline(last.text)
        return tail if closed == last.text else (*tail[:-1], replace(last, text=closed))
    if last.kind == "table" and last.cells:
        row = list(last.cells[-1])
        filled = max((index for index, cell in enumerate(row) if cell), default=0)
        row[filled] = close_open_inline(row[filled])
        return (*tail[:-1], replace(last, cells=(*last.cells[:-1], tuple(row))))
    return tail


def split_tables(leaves: Iterable[Leaf]) -> Iterator[Leaf]:
    """The same leaves, but of tables only so many rows together; the first piece has the head and no joint."""
    for leaf in leaves:
        count = rows_per_piece(leaf)
        if leaf.kind != "table" or len(leaf.cells) <= count:
            yield leaf
            continue
        yield replace(leaf, cells=leaf.cells[:count])
        rest = _continued_leaf(leaf)
        for at in range(count, len(leaf.cells), count):
            yield replace(rest, cells=leaf.cells[at : at + count])


def rows_per_piece(table: Leaf) -> int:
    """How many rows a piece of a table has."""
    return max(1, _CELLS_PER_PIECE // max(1, len(table.aligns)))


def _continued_leaf(leaf: Leaf) -> Leaf:
    containers = tuple(replace(each, marker="") for each in leaf.containers)
    return replace(leaf, containers=containers, separator="\n", starts=False)


def grow_table(pieces: list[Leaf], rows: tuple[TableRow, ...], replaced: int) -> tuple[int, list[Leaf]]:
    """The last piece of the table that ends these leaves, with rows in the place of its last ones.

    Answers where the leaves now differ, and the leaves from there on. Costs what is new.
    """
    first = len(pieces) - 1
    cells = pieces[first].cells
    while len(cells) < replaced and pieces[first].separator is not None:
        first -= 1
        cells = pieces[first].cells + cells
    cells = (*cells[: len(cells) - replaced], *rows)
    (whole,) = displayed_leaves((replace(pieces[first], cells=cells),))
    if whole.cells:
        return first, list(split_tables((whole,)))
    return first, []
