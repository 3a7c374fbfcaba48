"""A line of code whose hidden characters are spelled out: what would deceive a reader stands there for all to see."""

import re
from dataclasses import dataclass

from ui.look.visible_text import DECEPTIVE, by_number, deceptive
from ui.transcript.markdown.inline import units

_MAY_HIDE = re.compile(f"[{DECEPTIVE}]")


@dataclass(frozen=True, slots=True)
class ShownLine:
    """`labels` are start and length of what was spelled out. All places are UTF-16 units."""

    text: str
    labels: tuple[tuple[int, int], ...]
    _growth: tuple[tuple[int, int], ...]

    def to_shown(self, offset: int) -> int:
        """Where a place of the code is."""
        return offset + sum(more for at, more in self._growth if at < offset)

    def from_shown(self, offset: int) -> int:
        """Which place of the code this is; the end of a character, where that is spelled out."""
        for at, more in self._growth:
            if offset <= at:
                break
            offset = max(offset - more, at + 1)
        return offset


def shown_line(code: str) -> ShownLine | None:
    """None for what hides nothing, as nearly every line."""
    if not _MAY_HIDE.search(code):
        return None
    parts: list[str] = []
    labels: list[tuple[int, int]] = []
    growth: list[tuple[int, int]] = []
    last = at = shown = 0
    for place in deceptive(code, is_code=True):
        plain, label = code[last:place], by_number(code[place])
        at, shown = at + units(plain), shown + units(plain)
        labels.append((shown, len(label)))
        growth.append((at, len(label) - units(code[place])))
        parts += [plain, label]
        at, shown, last = at + units(code[place]), shown + len(label), place + 1
    return ShownLine("".join([*parts, code[last:]]), tuple(labels), tuple(growth)) if labels else None
