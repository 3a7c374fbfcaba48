"""What the palette lists: groups of things to do, narrowed by what is typed, the best group first."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from PySide6.QtCore import QCoreApplication

from ui.look.parts.found_rows import ResultRow
from ui.shell.palette.matching import FuzzyMatcher

MAX_GROUP_ROWS = 50
"""Rows of a group; who types another letter finds the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRow(ResultRow):
    """A row, and what choosing it does."""

    synonyms: str = ""
    """More words by which it is found: the id of a model, its server, what else people call it."""
    command: Callable[[], object] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class CommandGroup:
    """Rows under a heading, in the order in which they are shown while nothing is typed."""

    title: str
    rows: Sequence[CommandRow]


def matching_rows(
    typed: str, groups: Iterable[CommandGroup], fallback_rows: Sequence[CommandRow] = ()
) -> list[CommandRow]:
    """Return the rows that fit, each group under its heading; what fits best stands first.

    Where none fits, that is said, and `fallback_rows` is offered.
    """
    words = FuzzyMatcher(typed)
    found = [(_best_rows(group, words), group.title) for group in groups]
    fitting = [(ranked, title) for ranked, title in found if ranked]
    # The sort is stable: among equals the order of the groups stays.
    fitting.sort(key=lambda each: each[0][0][0])
    rows: list[CommandRow] = []
    for ranked, title in fitting:
        rows.append(CommandRow(text=title, is_heading=True))
        rows += [row for _, row in ranked]
    if not rows:
        nothing = QCoreApplication.translate("CommandPalette", "Nothing is called that.")
        rows.append(CommandRow(text=nothing, is_faded=True))
        rows += fallback_rows
    return rows


def _best_rows(group: CommandGroup, words: FuzzyMatcher) -> list[tuple[int, CommandRow]]:
    if words.is_empty:
        return [(0, row) for row in group.rows[:MAX_GROUP_ROWS]]
    ranked = ((words.rank(row.text, row.synonyms), row) for row in group.rows)
    fitting = [(rank, row) for rank, row in ranked if rank is not None]
    fitting.sort(key=lambda each: each[0])
    return fitting[:MAX_GROUP_ROWS]
