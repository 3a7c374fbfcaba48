"""Where a line of code is cut into pieces. Nothing is laid out here.

Places are characters of the line. Characters that belong together stay together.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence

from ui.transcript.blocks.code.lines.hidden import LONG_RUN, find_long_runs

MAX_PIECE_LENGTH = 1000
"""Characters of a piece."""

# What goes with the character before it, and joiners, after which the next one belongs to it as well.
_JOINED = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u06d6-\u06ed\u0900-\u0903"
    "\u093a-\u094f\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u1160-\u11ff\u1ab0-\u1aff\u1dc0-\u1dff\u200d\u20d0-\u20ff"
    "\u302a-\u302f\u3099\u309a\ufe00-\ufe0f\ufe20-\ufe2f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f\U000e0100-\U000e01ef"
)
_JOINS_PREVIOUS = re.compile(f"[{_JOINED}]")
_FLAG = re.compile("[\U0001f1e6-\U0001f1ff]")
_FLAGS = re.compile("[\U0001f1e6-\U0001f1ff]+")
_LOOKBACK = 32
"""Characters after which it is cut, whatever belongs together."""

_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\u200f\u202b\u202e\u2067\ufb1d-\ufdff\ufe70-\ufeff\U00010800-\U00010fff]")


def find_piece_starts(line: str, first: int = 0) -> list[int]:
    """Where pieces begin that stand side by side, from one of them on."""
    if len(line) - first <= MAX_PIECE_LENGTH:
        return [first]
    rest = line[first:]
    if rest.isascii() and rest.isprintable():
        return list(range(first, len(line), MAX_PIECE_LENGTH))
    runs = find_long_runs(line, first)
    starts, at = [first], first
    while (at := find_cut(line, at, at + MAX_PIECE_LENGTH, runs)) < len(line):
        starts.append(at)
    return starts


def stable_end(size: int) -> int:
    """Up to this place it does not matter what comes behind a text of this size."""
    return max(0, size - LONG_RUN)


def stable_count(starts: Sequence[int], size: int) -> int:
    """How many of its cuts stay where they are, however a text of this size goes on; the first one always does."""
    return max(1, bisect_right(starts, stable_end(size)))


def find_cut(line: str, before: int, at: int, runs: Sequence[tuple[int, int]]) -> int:
    """The next place to cut: `at`, or a little earlier, or behind a long run of hidden characters."""
    if at >= len(line):
        return len(line)
    nearest = bisect_right(runs, (at, 0)) - 1
    if nearest >= 0 and runs[nearest][0] < at < runs[nearest][1]:
        first, end = runs[nearest]
        return first if first > before else end
    if line[at] < "\u0300" and line[at - 1] != "\u200d":
        return at
    places = range(at, max(before, at - _LOOKBACK), -1)
    return next((position for position in places if _can_cut(line, before, position)), at)


def _can_cut(line: str, before: int, at: int) -> bool:
    """Whether what stands on both sides of a place is drawn apart; it is at `before`."""
    if _JOINS_PREVIOUS.match(line, at) or line[at - 1] == "\u200d":
        return False
    if not _FLAG.match(line, at):
        return True
    run = next((found for found in _FLAGS.finditer(line, before, at) if found.end() == at), None)
    return run is None or (at - run.start()) % 2 == 0


def has_right_to_left(part: str) -> bool:
    """Whether some of it is read from right to left: what stands side by side is then not in order."""
    return not part.isascii() and _RIGHT_TO_LEFT.search(part) is not None
