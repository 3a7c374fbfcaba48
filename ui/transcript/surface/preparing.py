"""What stands on the screen and beside it, made and laid out in slices: beside it before somebody goes there."""

from time import perf_counter

from ui.transcript.surface.row_list import RowList


def prefetch_rows(rows: RowList, until: float) -> bool:
    """Make and lay out rows one screen above and below until the clock says so; answers whether there were any."""
    has_worked = False
    while _prefetch_row(rows, until):
        has_worked = True
        if perf_counter() > until:
            break
    return has_worked


def _prefetch_row(rows: RowList, until: float) -> bool:
    """The next row: those above first, since most look back."""
    last = min(len(rows), len(rows.transcript)) - 1
    if last < 0:
        return False
    top = rows.top
    above, below = top - rows.view, top + 2 * rows.view
    shown = min(rows.row_at(top), last)
    for index in (*range(shown, rows.row_at(above) - 1, -1), *range(shown + 1, min(rows.row_at(below), last) + 1)):
        row = rows.existing_row(index)
        if row is None:
            rows.row(index)
            return True
        y = rows.row_top(index)
        if row.layout_ahead(above - y, below - y, until):
            rows.remeasure_row(index)
            return True
    return False


def layout_in_view(rows: RowList, until: float) -> None:
    """Lay out what was read on the screen until the clock says so, one block at least; all, when there is time."""
    rows.is_view_laid_out = _is_view_laid_out(rows, until)
    if rows.is_view_laid_out:
        rows.settle(0)


def _is_view_laid_out(rows: RowList, until: float) -> bool:
    # What is laid out is mostly less high than was guessed, and more comes into sight.
    has_laid = True
    while has_laid:
        has_laid, top = False, rows.top
        for index, row, y in list(rows.between(top, top + rows.view)):
            has_laid |= row.layout_ahead(top - y, top + rows.view - y, until)
            rows.remeasure_row(index)
            if has_laid and perf_counter() > until:
                return False
    return True
