"""Tables of data as Markdown; and which tables only put things beside each other."""

from collections.abc import Callable, Iterator

from bs4 import Tag

from desktop_agent.tools.web.reading.parsing import HEADINGS, attribute, child_elements, iter_elements

_PARTS = frozenset({"thead", "tbody", "tfoot"})
_CELLS = frozenset({"td", "th"})
_NEVER_IN_CELLS = HEADINGS | {"table", "form"}
_MOST_COLUMNS = 60
_TALLEST = 1_000


def table_rows(table: Tag) -> list[list[Tag]]:
    """Its cells, row by row; none of the tables in it."""
    parts = [
        each for part in child_elements(table) for each in (child_elements(part) if part.name in _PARTS else (part,))
    ]
    rows = [[cell for cell in child_elements(row) if cell.name in _CELLS] for row in parts if row.name == "tr"]
    return [row for row in rows if row]


def is_layout(table: Tag, rows: list[list[Tag]]) -> bool:
    """Whether it is no table of data: only there to place things, as old pages and highlighters do."""
    if attribute(table, "role").lower() in {"presentation", "none"}:
        return True
    cells = [cell for row in rows for cell in row]
    inside = {each.name for cell in cells for each in iter_elements(cell)}
    if inside & _NEVER_IN_CELLS or max((len(row) for row in rows), default=0) > _MOST_COLUMNS:
        return True
    if len(rows) < 2 or all(len(row) == 1 for row in rows):
        return "th" not in inside
    return "pre" in inside and "th" not in inside


def table_lines(rows: list[list[Tag]], text_of: Callable[[Tag], str]) -> list[str]:
    """GFM, one line a row, the first as the head. A cell over several columns or rows stands in the first of them."""
    wide = [line for line in _place_cells(rows, text_of) if any(line)]
    if not wide:
        return []
    columns = max(map(len, wide))
    head, *rest = [_line([*line, *[""] * (columns - len(line))]) for line in wide]
    return [head, _line(["---"] * columns), *rest]


def _place_cells(rows: list[list[Tag]], text_of: Callable[[Tag], str]) -> Iterator[list[str]]:
    reaching: dict[int, int] = {}  # column: how many rows the cell above goes on for
    for row in rows:
        line: list[str] = []
        below: dict[int, int] = {}
        for cell in row:
            _skip_spanned(line, reaching, below)
            if len(line) >= _MOST_COLUMNS:
                break
            span, tall = _span(cell, "colspan", _MOST_COLUMNS), _span(cell, "rowspan", _TALLEST)
            below.update(dict.fromkeys(range(len(line), len(line) + span), tall - 1))
            line += [text_of(cell), *[""] * (span - 1)]
        _skip_spanned(line, reaching, below)
        reaching = below
        yield line[:_MOST_COLUMNS]


def _skip_spanned(line: list[str], reaching: dict[int, int], below: dict[int, int]) -> None:
    """Leave empty the columns that a cell of an earlier row reaches into."""
    while left := reaching.get(len(line), 0):
        below[len(line)] = left - 1
        line.append("")


def _span(cell: Tag, name: str, most: int) -> int:
    said = attribute(cell, name)
    return max(1, min(int(said), most)) if said.isdecimal() and len(said) < 5 else 1


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
