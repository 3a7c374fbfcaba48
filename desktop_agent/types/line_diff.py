"""A diff of lines in bounded time: a hostile file must not freeze the window that shows it.

Lines that occur once on both sides anchor the comparison (Bram Cohen's patience diff); only short runs between
anchors go to difflib, whose worst case is cubic.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import groupby
from operator import itemgetter
from typing import Literal

MAX_LINES = 10_000
"""Lines of one side that are shown."""

CONTEXT = 3
MAX_EXACT_LINES = 60

MAX_COMPARED = 40_000

LineKind = Literal["same", "added", "removed", "gap", "more"]


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line of a diff. Numbers begin with 1 and are None on the side that lacks it. A gap stands for equal lines."""

    kind: LineKind
    text: str
    old: int | None = None
    new: int | None = None


def whole_file_lines(
    kind: Literal["added", "removed"], text: str, most: int = MAX_LINES, first: int = 1
) -> list[DiffLine]:
    """Return the lines of a new or deleted file, numbered from `first`; of very many the first `most`."""
    if not text:
        return []
    # A final line break begins no line.
    count = text.count("\n") + (not text.endswith("\n"))
    texts = text.split("\n", most)[: min(count, most)]
    if kind == "added":
        lines = [DiffLine(kind, text, None, number) for number, text in enumerate(texts, first)]
    else:
        lines = [DiffLine(kind, text, number) for number, text in enumerate(texts, first)]
    return [*lines, DiffLine("more", str(count - most))] if count > most else lines


def count_lines(lines: Sequence[DiffLine], kind: LineKind) -> int:
    """Count the lines of a kind, with those that are not shown."""
    count, last = 0, None
    for line in lines:
        if line.kind == "more":
            count += int(line.text) if last == kind else 0
        else:
            count += line.kind == kind
            last = line.kind
    return count


def count_changes(before: str, after: str) -> tuple[int, int]:
    """Return how many lines are added, and how many are removed."""
    if not before or not after:
        lines = whole_file_lines("removed", before) + whole_file_lines("added", after)
    else:
        lines = diff_texts(before, after, 0)
    return count_lines(lines, "added"), count_lines(lines, "removed")


def diff_texts(before: str, after: str, context: int = CONTEXT) -> list[DiffLine]:
    """Compare two texts; return the changes with `context` equal lines around each.

    Where very many lines change they are not compared: all old ones are removed and all new ones added.
    """
    start, end = _changed_part(before, after, context)
    is_long = before.count("\n", start, len(before) - end) + after.count("\n", start, len(after) - end) > MAX_COMPARED
    if is_long:
        start, end = _changed_part(before, after, 0)
    above, below = before.count("\n", 0, start), before[len(before) - end :]
    left, right = before[start : len(before) - end], after[start : len(after) - end]
    if is_long:
        most = MAX_LINES // 2
        lines = whole_file_lines("removed", left, most, above + 1) + whole_file_lines("added", right, most, above + 1)
    else:
        lines = [_renumber(line, above) for line in _compare(left, right, context)]
    rest = below.count("\n") + (bool(below) and not below.endswith("\n"))
    return _merge_gaps([DiffLine("gap", str(above)), *lines, DiffLine("gap", str(rest))])


def _compare(before: str, after: str, context: int) -> list[DiffLine]:
    old, new = before.split("\n"), after.split("\n")
    if not old[-1] and not new[-1]:
        # A final line break begins no line.
        old, new = old[:-1], new[:-1]
    return list(_collapse_unchanged(list(_merged_lines(old, new)), context))


def _changed_part(before: str, after: str, context: int) -> tuple[int, int]:
    """Return how many characters of whole lines are equal at the start and at the end, less the context."""
    shorter = min(len(before), len(after))
    same = _longest_common(shorter, lambda low, high: before[low:high] == after[low:high])
    start = before.rfind("\n", 0, same) + 1
    for _ in range(context):
        start = before.rfind("\n", 0, max(0, start - 1)) + 1
    old, new = len(before), len(after)
    same = _longest_common(
        shorter - same, lambda low, high: before[old - high : old - low] == after[new - high : new - low]
    )
    tail = old - same
    is_line = before[max(0, tail - 1) : tail] == after[max(0, new - same - 1) : new - same] == "\n"
    for _ in range(context if is_line else context + 1):
        tail = before.find("\n", tail) + 1 or old
    return start, old - tail


def _longest_common(limit: int, is_same: Callable[[int, int], bool]) -> int:
    """Return the largest end for which `is_same` holds, by bisection."""
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        if is_same(low, middle):
            low = middle
        else:
            high = middle - 1
    return low


def _renumber(line: DiffLine, by: int) -> DiffLine:
    if not by or line.kind == "gap":
        return line
    return replace(line, old=line.old and line.old + by, new=line.new and line.new + by)


def _merge_gaps(lines: Sequence[DiffLine]) -> list[DiffLine]:
    """Join adjacent gaps and drop empty ones."""
    joined: list[DiffLine] = []
    for line in lines:
        if line.kind == "gap" and joined and joined[-1].kind == "gap":
            joined[-1] = DiffLine("gap", str(int(joined[-1].text) + int(line.text)))
        else:
            joined.append(line)
    return [line for line in joined if line.kind != "gap" or line.text != "0"]


def _merged_lines(old: list[str], new: list[str]) -> Iterator[DiffLine]:
    old_index = new_index = 0
    for start_old, start_new, count in [*_matches(old, new), (len(old), len(new), 0)]:
        yield from (DiffLine("removed", old[i], i + 1) for i in range(old_index, start_old))
        yield from (DiffLine("added", new[j], None, j + 1) for j in range(new_index, start_new))
        yield from (DiffLine("same", old[start_old + k], start_old + k + 1, start_new + k + 1) for k in range(count))
        old_index, new_index = start_old + count, start_new + count


def _collapse_unchanged(lines: Sequence[DiffLine], context: int) -> Iterator[DiffLine]:
    near = [False] * len(lines)
    for i, line in enumerate(lines):
        if line.kind != "same":
            for j in range(max(0, i - context), min(len(lines), i + context + 1)):
                near[j] = True
    for is_near, neighbours in groupby(zip(near, lines, strict=True), key=itemgetter(0)):
        run = [line for _, line in neighbours]
        yield from run if is_near else (DiffLine("gap", str(len(run))),)


def _matches(old: list[str], new: list[str]) -> list[tuple[int, int, int]]:
    """Return equal runs (start in old, start in new, length), in order."""
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    matches = [(0, 0, head)] if head else []
    matches += _matches_between(old, new, (head, len(old) - tail), (head, len(new) - tail))
    if tail:
        matches.append((len(old) - tail, len(new) - tail, tail))
    return matches


def _matches_between(
    old: list[str], new: list[str], in_old: tuple[int, int], in_new: tuple[int, int]
) -> list[tuple[int, int, int]]:
    matches: list[tuple[int, int, int]] = []
    old_index, new_index = in_old[0], in_new[0]
    for anchor_old, anchor_new in [*_anchors(old, new, in_old, in_new), (in_old[1], in_new[1])]:
        matches += _short_matches(old[old_index:anchor_old], new[new_index:anchor_new], old_index, new_index)
        if anchor_old < in_old[1]:
            matches.append((anchor_old, anchor_new, 1))
        old_index, new_index = anchor_old + 1, anchor_new + 1
    return matches


def _short_matches(old: list[str], new: list[str], old_index: int, new_index: int) -> list[tuple[int, int, int]]:
    if not old or not new or len(old) + len(new) > MAX_EXACT_LINES:
        return []
    blocks = SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
    return [(old_index + block.a, new_index + block.b, block.size) for block in blocks if block.size]


def _unique_lines(lines: list[str]) -> set[str]:
    return {line for line, count in Counter(lines).items() if count == 1}


def _anchors(old: list[str], new: list[str], in_old: tuple[int, int], in_new: tuple[int, int]) -> list[tuple[int, int]]:
    """Return lines that occur once on both sides, thinned to the longest run that rises on both."""
    unique_old, unique_new = _unique_lines(old[slice(*in_old)]), _unique_lines(new[slice(*in_new)])
    new_indexes = {new[j]: j for j in range(*in_new) if new[j] in unique_new}
    pairs = [(i, new_indexes[old[i]]) for i in range(*in_old) if old[i] in unique_old and old[i] in new_indexes]
    return _longest_increasing(pairs)


def _longest_increasing(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the longest subsequence whose second numbers rise (patience sorting)."""
    tops: list[int] = []
    top_pairs: list[int] = []
    previous: list[int] = []
    for index, (_, second) in enumerate(pairs):
        pile = bisect_left(tops, second)
        previous.append(top_pairs[pile - 1] if pile else -1)
        if pile == len(tops):
            tops.append(second)
            top_pairs.append(index)
        else:
            tops[pile], top_pairs[pile] = second, index
    rise: list[tuple[int, int]] = []
    index = top_pairs[-1] if top_pairs else -1
    while index >= 0:
        rise.append(pairs[index])
        index = previous[index]
    return rise[::-1]
