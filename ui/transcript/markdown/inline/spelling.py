"""Hidden characters of a line, spelled out."""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from ui.look.visible_text import code_point_text
from ui.transcript.markdown.inline.lines import Line, Span, SpanStyle, utf16_length

_TextPiece = tuple[str, str, bool]
"""What stood there, what is shown instead, and whether that is another thing."""

_SOFT_HYPHEN = "\u00ad"
_WORD = re.compile(r"\S+")
_PUNCTUATION = ".,;:!?…()[]*–—\"'“”„\u201a\u2018\u2019«»"
_PARTS = re.compile("[-'\u2019]")


def spell_out_hidden(line: Line, hidden: Sequence[int]) -> Line:
    """The line with the characters at these indices of its text written as their numbers.

    Soft hyphens that only say where a word of prose may be parted stay.
    """
    hidden = _without_hyphenation(line, hidden)
    if not hidden:
        return line
    spans: list[Span] = []
    shown: list[str] = []
    old = new = first = 0
    for was, now, is_hidden in _text_pieces(line.text, hidden, may_join=not line.spans):
        end = old + utf16_length(was)
        while first < len(line.spans) and line.spans[first].start + line.spans[first].length <= old:
            first += 1
        moved = list(_moved_spans(line.spans, first, old, end, new))
        if is_hidden:
            around = moved[0] if moved else Span(new, 0, SpanStyle.PLAIN)
            moved = [replace(around, start=new, length=len(now), style=around.style | SpanStyle.HIDDEN)]
        for span in moved:
            _add_span(spans, span)
        shown.append(now)
        old, new = end, new + utf16_length(now)
    return Line("".join(shown), tuple(spans))


def _text_pieces(text: str, hidden: Sequence[int], *, may_join: bool) -> Iterator[_TextPiece]:
    """Neighbours that are hidden are one piece where no span can begin or end between them."""
    at = index = 0
    while index < len(hidden):
        position, last = hidden[index], index + 1
        while may_join and last < len(hidden) and hidden[last] == position + last - index:
            last += 1
        if position > at:
            yield text[at:position], text[at:position], False
        at, index = position + last - index, last
        yield text[position:at], "".join(map(code_point_text, text[position:at])), True
    if at < len(text):
        yield text[at:], text[at:], False


def _moved_spans(spans: Sequence[Span], first: int, start: int, end: int, to: int) -> Iterator[Span]:
    """The parts of spans inside a piece, where that piece is shown."""
    for index in range(first, len(spans)):
        span = spans[index]
        if span.start >= end:
            return
        left, right = max(span.start, start), min(span.start + span.length, end)
        yield replace(span, start=to + left - start, length=right - left)


def _add_span(spans: list[Span], new: Span) -> None:
    """Neighbours that are both hidden are one span."""
    last = spans[-1] if spans else None
    touch = last and new.style & SpanStyle.HIDDEN and last.start + last.length == new.start
    if last and touch and (last.style, last.href) == (new.style, new.href):
        spans[-1] = replace(last, length=last.length + new.length)
    else:
        spans.append(new)


def _without_hyphenation(line: Line, hidden: Sequence[int]) -> Sequence[int]:
    """The same places but for soft hyphens of words that are neither code nor part of a link, nor look like either."""
    if _SOFT_HYPHEN not in line.text:
        return hidden
    prose = {at for word in _WORD.finditer(line.text) if _is_hyphenated(word[0]) for at in range(*word.span())}
    soft = [at for at in hidden if line.text[at] == _SOFT_HYPHEN and at in prose]
    stay = set(soft) - set(_in_code_or_links(line, soft))
    return [at for at in hidden if at not in stay]


def _is_hyphenated(word: str) -> bool:
    """Whether it is nothing but letters, and parted where languages part words: not before or behind a single one."""
    if _SOFT_HYPHEN not in word:
        return False
    soft = [part.split(_SOFT_HYPHEN) for part in _PARTS.split(word.strip(_PUNCTUATION))]
    syllables = [each for part in soft if len(part) > 1 for each in part]
    whole = [part[0] for part in soft if len(part) == 1]
    return all(len(each) > 1 for each in syllables) and all(map(_is_of_letters, [*syllables, *whole]))


def _is_of_letters(part: str) -> bool:
    return all(char.isalpha() or unicodedata.category(char)[0] == "M" for char in part)


def _in_code_or_links(line: Line, places: Sequence[int]) -> Iterator[int]:
    spans = [span for span in line.spans if span.href or span.style & SpanStyle.CODE]
    starts = [span.start for span in spans]
    unit = 0
    for before, at in pairwise([0, *places]):
        unit += utf16_length(line.text[before:at])
        index = bisect_right(starts, unit) - 1
        if index >= 0 and unit < spans[index].start + spans[index].length:
            yield at
