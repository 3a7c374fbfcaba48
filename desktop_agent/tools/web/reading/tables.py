"""Tables of data as Markdown; and which tables only put things beside each other."""

from desktop_agent.tools.web.reading.tree import HEADINGS, Element

_PARTS = frozenset({"thead", "tbody", "tfoot"})
_CELLS = frozenset({"td", "th"})
_NEVER_IN_CELLS = frozenset({"table", "form", *HEADINGS})
_MOST_COLUMNS = 60


def rows_of(table: Element) -> list[list[Element]]:
    """Its cells, row by row; none of the tables in it."""
    parts = [each for part in table.elements for each in (part.elements if part.name in _PARTS else (part,))]
    rows = [[cell for cell in row.elements if cell.name in _CELLS] for row in parts if row.name == "tr"]
    return [row for row in rows if row]


def is_layout(table: Element, rows: list[list[Element]]) -> bool:
    """Whether it is no table of data: only there to place things, as old pages and highlighters do."""
    if table.attributes.get("role", "").lower() in {"presentation", "none"}:
        return True
    cells = [cell for row in rows for cell in row]
    inside = {each.name for cell in cells for each in cell.all()}
    if inside & _NEVER_IN_CELLS or max((len(row) for row in rows), default=0) > _MOST_COLUMNS:
        return True
    has_head = any(cell.name == "th" for cell in cells)
    if len(rows) < 2 or all(len(row) == 1 for row in rows):
        return not has_head
    return "pre" in inside and not has_head


def table_lines(rows: list[list[tuple[str, int]]]) -> list[str]:
    """GFM, one line a row. Each cell has its text and how many columns it goes over; the first row is the head."""
    wide = [[text for cell, span in row for text in (cell, *[""] * (span - 1))][:_MOST_COLUMNS] for row in rows]
    wide = [row for row in wide if any(row)]
    if not wide:
        return []
    columns = max(map(len, wide))
    head, *rest = [_line([*row, *[""] * (columns - len(row))]) for row in wide]
    return [head, _line(["---"] * columns), *rest]


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
