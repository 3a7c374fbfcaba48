"""Hidden characters of a line, spelled out."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ui.look.visible_text import by_number
from ui.transcript.markdown.inline.lines import Line, Span, Style, units

_Piece = tuple[str, str, bool]
"""What stood there, what is shown instead, and whether that is another thing."""


def spelled_out(line: Line, hidden: Sequence[int]) -> Line:
    """The line with the characters at these indices of its text written as their numbers."""
    spans: list[Span] = []
    shown: list[str] = []
    old = new = first = 0
    for was, now, is_hidden in _pieces(line.text, hidden):
        end = old + units(was)
        while first < len(line.spans) and line.spans[first].start + line.spans[first].length <= old:
            first += 1
        moved = list(_moved(line.spans, first, old, end, new))
        if is_hidden:
            around = moved[0] if moved else Span(new, 0, Style.PLAIN)
            moved = [replace(around, start=new, length=len(now), style=around.style | Style.HIDDEN)]
        for span in moved:
            _join(spans, span)
        shown.append(now)
        old, new = end, new + units(now)
    return Line("".join(shown), tuple(spans))


def _pieces(text: str, hidden: Sequence[int]) -> Iterator[_Piece]:
    at = 0
    for place in hidden:
        if place > at:
            yield text[at:place], text[at:place], False
        yield text[place], by_number(text[place]), True
        at = place + 1
    if at < len(text):
        yield text[at:], text[at:], False


def _moved(spans: Sequence[Span], first: int, start: int, end: int, to: int) -> Iterator[Span]:
    """The parts of spans inside a piece, where that piece is shown."""
    for index in range(first, len(spans)):
        span = spans[index]
        if span.start >= end:
            return
        left, right = max(span.start, start), min(span.start + span.length, end)
        yield replace(span, start=to + left - start, length=right - left)


def _join(spans: list[Span], new: Span) -> None:
    """Neighbours that are both hidden are one span."""
    last = spans[-1] if spans else None
    touch = last and new.style & Style.HIDDEN and last.start + last.length == new.start
    if last and touch and (last.style, last.href) == (new.style, new.href):
        spans[-1] = replace(last, length=last.length + new.length)
    else:
        spans.append(new)
