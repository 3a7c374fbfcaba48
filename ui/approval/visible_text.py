"""Long lines broken where they can be seen to be, so that what is approved is what was read."""

from collections.abc import Sequence

MAX_LINES, MAX_CHARACTERS = 10_000, 4_000_000
FOLD_WIDTH = 1000
FOLD_MARK = "\n↪ "


def truncate_text(text: str) -> tuple[str, int]:
    """As much of a text as can be shown at once, and how many characters are left out: Qt lays out every line."""
    end, lines = -1, 0
    while lines < MAX_LINES and (end := text.find("\n", end + 1)) >= 0:
        lines += 1
    kept = text[: min(len(text) if end < 0 else end, MAX_CHARACTERS)]
    return kept, len(text) - len(kept)


def fold_lines(text: str, width: int = FOLD_WIDTH) -> str:
    """The whole text, with very long lines broken and marked: Qt lays out a line of megabytes for seconds."""
    if len(text) <= width:
        return text
    return "\n".join(_fold_line(line, width) for line in text.split("\n"))


def map_folded_positions(text: str, places: Sequence[int], width: int = FOLD_WIDTH) -> list[int]:
    """Where rising places of the text are in what `folded` makes of it."""
    if len(text) <= width:
        return list(places)
    found: list[int] = []
    added, start, end = 0, 0, _line_end(text, 0)
    for place in places:
        while place > end:
            added += _fold_count(end - start, end - start, width)
            start, end = end + 1, _line_end(text, end + 1)
        found.append(place + len(FOLD_MARK) * (added + _fold_count(place - start, end - start, width)))
    return found


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _fold_count(at: int, length: int, width: int) -> int:
    """How often a line of this length is broken before a place in it."""
    return min(at // width, (length - 1) // width) if length else 0


def _fold_line(line: str, width: int) -> str:
    if len(line) <= width:
        return line
    return FOLD_MARK.join(line[start : start + width] for start in range(0, len(line), width))
