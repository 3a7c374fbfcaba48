"""The headless command `usage`: what models used, by day, model or project (the workspace folder)."""

import argparse
import asyncio
from collections.abc import Sequence
from datetime import date

from desktop_agent.api.command_line import add_data_dir, chosen_data_folder
from desktop_agent.api.history import existing_data_folder
from desktop_agent.api.terminal import DONE, ERROR, INTERRUPTED, escape_controls, use_utf8, write_output, write_remark
from desktop_agent.exchange.usage_export import usage_as_csv
from desktop_agent.storage.store import Store
from desktop_agent.types.errors import AgentError
from desktop_agent.types.spending import UsageFigures, UsageReport


def run_usage(argv: Sequence[str]) -> int:
    """Print what was used; return the exit code. Exits with 2 on wrong use."""
    arguments = _parser().parse_args(argv)
    use_utf8()
    try:
        report = asyncio.run(_load(arguments))
    except AgentError as error:
        write_remark(str(error.whole))
        return ERROR
    except KeyboardInterrupt:
        return INTERRUPTED
    write_output(usage_as_csv(report) if arguments.csv else escape_controls(_as_table(report)))
    return DONE


async def _load(arguments: argparse.Namespace) -> UsageReport:
    store = await Store.open(existing_data_folder(chosen_data_folder(arguments.data_dir)))
    try:
        return await store.usage.report(arguments.by, arguments.since)
    finally:
        await store.close()


def _as_table(report: UsageReport) -> str:
    rows = [(row.key.replace("\n", " ") or "-", *_cells(row.figures)) for row in report.rows]
    rows = [(report.grouping, "answers", "tokens", "cost"), *rows, ("total", *_cells(report.total))]
    name, *widths = (max(map(len, column)) for column in zip(*rows, strict=True))
    lines = (
        "  ".join((row[0].ljust(name), *(cell.rjust(width) for cell, width in zip(row[1:], widths, strict=True))))
        for row in rows
    )
    return "\n".join(lines) + "\n"


def _cells(figures: UsageFigures) -> tuple[str, str, str]:
    tokens = "?" if figures.known_tokens is None else f"{'>=' if figures.uncounted else ''}{figures.tokens}"
    cost = "?" if figures.cost is None else f"{'>=' if figures.unpriced else ''}${figures.cost:.4f}"
    if not figures.answers:
        tokens, cost = "0", "$0.0000"
    return str(figures.answers), tokens, cost


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="desktop-agent usage",
        description="Print the tokens and the cost of all answers. A question mark is what nobody knows, >= is a sum "
        "that lacks some. Exit codes: 0 done, 1 error, 2 wrong use, 130 interrupted, 141 whoever read the output left.",
    )
    parser.add_argument(
        "--by",
        choices=["day", "model", "project"],
        default="day",
        help="a row for each; a project is a workspace folder (default: day)",
    )
    parser.add_argument("--since", metavar="DATE", type=_day, help="from this day on, such as 2026-03-29")
    parser.add_argument("--csv", action="store_true", help="print comma-separated values")
    add_data_dir(parser)
    return parser


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"“{text}” is not a day such as 2026-03-29") from None
