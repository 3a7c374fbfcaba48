"""Where the commands of a line stand in it, and which of them a person looks at first."""

import re
from bisect import bisect_right
from collections.abc import Sequence

from desktop_agent.vocabulary.tool_calls import CommandPart, Risk
from ui.look.visible_text import show_hidden

SEVERE_RISKS = frozenset({Risk.DELETES, Risk.NETWORK, Risk.PRIVILEGES, Risk.LOOKALIKE})
MAX_SPANS = 1000

_WHITESPACE = re.compile(r"(?:\\\n|[ \t\n])+")

RiskSpan = tuple[int, int, bool]
"""From where to where, and whether its risk is a grave one."""


def risks_first(parts: Sequence[CommandPart]) -> list[CommandPart]:
    """Each with what it starts, and otherwise as the line has them."""
    risky: list[CommandPart] = []
    others: list[CommandPart] = []
    at = 0
    while at < len(parts):
        end = at + 1
        while end < len(parts) and parts[end].depth:
            end += 1
        group = parts[at:end]
        (risky if any(each.risks for each in group) else others).extend(group)
        at = end
    return risky + others


def find_risk_spans(line: str, parts: Sequence[CommandPart]) -> list[RiskSpan]:
    """Where those with risks stand in a line whose hidden characters are shown; of many, the grave ones.

    What another command starts is inside of that one. They do not overlap, and rise.
    """
    flat = _NormalizedLine(line)
    found: list[RiskSpan] = []
    # Where a command writes to is listed behind all commands.
    ends = {False: 0, True: 0}
    for each in parts:
        if each.depth:
            continue
        is_place = each.text.startswith(("<", ">"))
        start, end = flat.find(each.text, ends[is_place])
        if start >= 0:
            ends[is_place] = end
            if each.risks:
                found.append(
                    (
                        flat.original_position(start),
                        flat.original_position(end - 1) + 1,
                        not SEVERE_RISKS.isdisjoint(each.risks),
                    )
                )
    graves = [each for each in found if each[2]][:MAX_SPANS]
    kept = sorted(graves + [each for each in found if not each[2]][: MAX_SPANS - len(graves)])
    return [each for at, each in enumerate(kept) if at == 0 or each[0] >= kept[at - 1][1]]


class _NormalizedLine:
    """A line with one blank wherever it has any number of them: a command is told by its words."""

    def __init__(self, line: str) -> None:
        self._text = _WHITESPACE.sub(" ", line)
        self._flat_places, self._places = [0], [0]
        removed = 0
        for found in _WHITESPACE.finditer(line):
            if len(found[0]) > 1:
                removed += len(found[0]) - 1
                self._flat_places.append(found.end() - removed)
                self._places.append(found.end())

    def find(self, text: str, at: int) -> tuple[int, int]:
        """From where to where it stands, behind a place; -1 where it does not."""
        sought = _WHITESPACE.sub(" ", show_hidden(text))
        start = self._text.find(sought, at)
        return start, start + len(sought)

    def original_position(self, at: int) -> int:
        """Of a place here, that in the line itself."""
        index = bisect_right(self._flat_places, at) - 1
        return self._places[index] + at - self._flat_places[index]
