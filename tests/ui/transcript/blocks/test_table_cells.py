"""Places of the cells of a table against its text, counted letter by letter."""

from hypothesis import given
from hypothesis import strategies as st

from ui.transcript.blocks.table_cells import TableCells
from ui.transcript.markdown.elements import Leaf
from ui.transcript.markdown.inline import slice_utf16
from ui.transcript.markdown.text_units import utf16_length

WRITTEN = ("", "a", "**bold** word", "😀x", "$x^2$ y", "[words](https://a.example)", "more of them")
tables = st.integers(1, 5).flatmap(
    lambda columns: st.lists(
        st.lists(st.sampled_from(WRITTEN), min_size=1, max_size=columns).map(tuple), min_size=1, max_size=4
    ).map(lambda rows: Leaf("table", cells=tuple(rows), aligns=("",) * columns))
)


def cells_of(texts):
    """Return row, column, start and end of every cell."""
    cells, position = [], 0
    for row, line in enumerate(texts.plain().split("\n")):
        for column, cell in enumerate(line.split("\t")):
            cells.append((row, column, position, position + utf16_length(cell)))
            position += utf16_length(cell) + 1
    return cells


@given(tables, st.data())
def test_every_place_is_in_its_cell(leaf, data):
    texts = TableCells(leaf, {})
    cells = cells_of(texts)
    for row, column, start, end in cells:
        assert texts.offset_of(row, column) == start
        for offset in (start, end):
            assert texts.cell_at(offset) == (row, column, start)
            assert texts.span_at(offset) == (start, end)
    size = utf16_length(texts.plain())
    assert texts.cell_at(size + 1) is None
    assert texts.span_at(size + 1) == (size + 1, size + 1)
    first, last = sorted(data.draw(st.tuples(st.integers(0, size + 1), st.integers(0, size + 2))))
    expected = [(row, column) for row, column, start, end in cells if max(first, start) < min(last, end)]
    selected = list(texts.selected(first, last))
    assert [cell[:2] for cell in selected] == expected
    for row, column, part in selected:
        # A formula is one character of its line: what lies inside it is no part of that.
        assert part[0] < part[1] or "$" in leaf.cells[row][column]
    plain = [(row, [line.plain() for line in lines]) for row, lines in texts.rows_between(first, last)]
    for row, column, start, end in cells:
        lines = dict(plain).get(row)
        is_simple = "$" not in leaf.cells[row][column : column + 1]
        if lines and is_simple and not texts.line(row, column).spans:
            text = slice_utf16(texts.plain(), max(first, start), max(first, start, min(last, end)))
            assert lines[column] == text


def test_rows_that_grow_are_counted_anew():
    texts = TableCells(Leaf("table", cells=(("a", "b"), ("c", "d")), aligns=("", "")), {})
    assert texts.offset_of(1, 1) == 6
    texts.set_leaf(Leaf("table", cells=(("a", "b"), ("longer", "d"), ("e", "f")), aligns=("", "")))
    assert texts.offset_of(1, 1) == 11
    assert texts.cell_at(13) == (2, 0, 13)
    texts.leaf = Leaf("table", cells=(("**abc**", "b"),), aligns=("", ""))
    texts.reset()
    assert texts.offset_of(0, 1) == 4


def test_a_place_far_to_the_right_costs_no_look_at_each_cell_before_it(monkeypatch):
    texts = TableCells(Leaf("table", cells=(("w",) * 500,) * 2, aligns=("",) * 500), {})
    texts.offset_of(1, 499)
    cells, line = [], TableCells.line
    monkeypatch.setattr(TableCells, "line", lambda self, *cell: cells.append(cell) or line(self, *cell))
    assert [selected[:2] for selected in texts.selected(1996, 1999)] == [(1, 498), (1, 499)]
    assert texts.span_at(1998) == (1998, 1999)
    assert set(cells) == {(1, 498), (1, 499)}
