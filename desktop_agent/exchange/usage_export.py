"""A report of usage as CSV, for spreadsheets and other programs (RFC 4180)."""

import csv
import io

from desktop_agent.types.spending import NANOS, UsageReport, UsageRow

# A spreadsheet reads a cell that begins so as a formula. A quotation mark in front makes it a text.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
_TITLES = (
    "answers",
    "tokens",
    "input_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "output_tokens",
    "reasoning_tokens",
    "cost_usd",
    "answers_without_cost",
    "cache_saved_usd",
)


def usage_as_csv(report: UsageReport) -> str:
    """Return the rows with a line of titles. An empty cell is a number that nobody knows, which is not 0.

    `cost_usd` is the cost of the answers that have one. Numbers have a point, days are as in 2026-03-29.
    """
    text = io.StringIO()
    lines = csv.writer(text)
    lines.writerow((report.grouping, *_TITLES))
    lines.writerows(_cells(row) for row in report.rows)
    return text.getvalue()


def _cells(row: UsageRow) -> tuple[str | int, ...]:
    figures = row.figures
    tokens = (
        figures.tokens,
        figures.input_tokens,
        figures.cache_read_tokens,
        figures.cache_write_tokens,
        figures.output_tokens,
        figures.reasoning_tokens,
    )
    known = ("",) * len(tokens) if figures.known_tokens is None else tokens
    cost = "" if figures.cost is None else _dollars(figures.cost_nanos)
    return (plain_cell(row.key), figures.answers, *known, cost, figures.unpriced, _dollars(figures.saved_nanos))


def plain_cell(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula."""
    return f"'{text}" if text.lstrip().startswith(_FORMULA_STARTS) or text.startswith(_FORMULA_STARTS) else text


def _dollars(nanos: int) -> str:
    return f"{nanos / NANOS:.6f}"
