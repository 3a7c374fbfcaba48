"""Finds the words of a query in a text again, and cuts out the line that shows them."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice, pairwise

from desktop_agent.markdown.plain_text import find_signs, kept_ranges
from desktop_agent.storage.search.searchable_text import SearchableText
from desktop_agent.storage.search.text_analysis import Term, fold, is_unspaced
from desktop_agent.types.search import MatchRange, SearchPlace

_LENGTH = 200
"""Characters of a snippet, about two lines of a list."""
_BEFORE = 60
_SEAM = 1000
"""Characters at each side of the end of a piece: more than a phrase has."""
_MAX_MATCHES = 100
_PLACES = (SearchPlace.TEXT, SearchPlace.CALLS, SearchPlace.ATTACHMENTS, SearchPlace.FILES)
_ELLIPSIS = "…"
_SPACES = re.compile(r"\s+")
# Between the words of a phrase: what the index splits at, and what is in no text, such as a hump of camelCase.
_GAP = r"[\W_]*"


@dataclass(frozen=True, slots=True)
class Snippet:
    """A line of a message, the place that it is from, and the matches in it."""

    place: SearchPlace
    text: str
    matches: tuple[MatchRange, ...] = ()


NO_SNIPPET = Snippet(SearchPlace.TEXT, "")


def make_snippet(pieces: Iterable[SearchableText], terms: Sequence[Term], places: frozenset[SearchPlace]) -> Snippet:
    """Return the line around a match, of the first piece and place that has one; else the beginning of the first place.

    No places: all of them. The match is the first one of the longest term that is there, which says most.
    """
    longest_first = sorted(terms, key=lambda term: -sum(map(len, term.pieces)))
    beginning: tuple[SearchPlace, str] | None = None
    for part in _parts(pieces):
        if places and part.place not in places:
            continue
        beginning = beginning or (part.place, part.text)
        matcher = _Matcher(part.text)
        for term in longest_first:
            for match in matcher.matches(term, 0, len(part.text)):
                if part.seam is None or match[0] < part.seam < match[1]:
                    return _cut(part, matcher, terms, match)
    place, text = beginning or (SearchPlace.TEXT, "")
    line = _Line(place, text, 0, min(len(text), _LENGTH), ())
    return Snippet(place, line.between(0, line.end).lstrip() + _ELLIPSIS * (len(text) > _LENGTH))


@dataclass(frozen=True, slots=True)
class _Part:
    """A text of one place. `seam` is where two pieces meet in it; `begins`, `ends`: nothing is before or after it."""

    place: SearchPlace
    text: str
    seam: int | None
    begins: bool
    ends: bool


def _parts(pieces: Iterable[SearchableText]) -> Iterator[_Part]:
    """Yield the parts of the pieces; before each what is around its beginning: a phrase spans it."""
    before = SearchableText()
    for piece, following in pairwise(chain(pieces, (SearchableText(),))):
        for place, last, text, rest in zip(_PLACES, before.parts, piece.parts, following.parts, strict=True):
            if last and text:
                joined = last[-_SEAM:] + text[:_SEAM]
                yield _Part(place, joined, min(len(last), _SEAM), begins=False, ends=not rest and len(text) <= _SEAM)
            if text:
                yield _Part(place, text, None, begins=not last, ends=not rest)
        before = piece


def find_matches(text: str, terms: Sequence[Term]) -> tuple[MatchRange, ...]:
    """Return where these terms are in a short text, in order and without overlaps."""
    matcher = _Matcher(text)
    return _without_overlaps(match for term in terms for match in matcher.matches(term, 0, len(text)))


class _Matcher:
    """Finds terms in a text as the index does."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._folded = _FoldedText(text)

    def matches(self, term: Term, begin: int, end: int) -> Iterator[MatchRange]:
        folded = self._folded
        # The parts of a name match it whole too.
        pieces = term.humps or term.pieces
        for match in _find_pieces(folded.text, pieces, folded.place_in_folded(begin), folded.place_in_folded(end)):
            start, stop = map(folded.place_in_text, match)
            if _begins_word(self._text, start) and (term.is_open or _begins_word(self._text, stop)):
                yield start, stop


class _FoldedText:
    """A folded text, and which places of it and of the text belong together: some characters are longer when folded."""

    def __init__(self, text: str) -> None:
        # Where stretches of the folded text begin in which all characters are as long as before; and where in the text.
        self._folded_starts, self._starts = [0], [0]
        self.text = fold(text)
        if len(self.text) != len(text):
            self._fold_characters(text)

    def _fold_characters(self, text: str) -> None:
        folded = {character: _fold_character(character) for character in set(text)}
        self.text = text.translate(str.maketrans(folded))
        moving = "".join(sorted(character for character, part in folded.items() if len(part) != 1))
        grown = 0
        # None, where letters were only put together: Hangul that was written in parts.
        for match in re.finditer(f"[{re.escape(moving)}]", text) if moving else ():
            place, length = match.start(), len(folded[match.group()])
            begin = place + grown
            self._folded_starts += range(begin, begin + length + 1)
            self._starts += [place] * length + [place + 1]
            grown += length - 1

    def place_in_text(self, place: int) -> int:
        stretch = bisect_right(self._folded_starts, place) - 1
        return self._starts[stretch] + place - self._folded_starts[stretch]

    def place_in_folded(self, place: int) -> int:
        """Return the first place of the folded text that is here in the text, or behind it."""
        stretch = bisect_left(self._starts, place)
        before = max(0, stretch - 1)
        folded_place = self._folded_starts[before] + place - self._starts[before]
        return min(folded_place, self._folded_starts[stretch]) if stretch < len(self._starts) else folded_place


_fold_character = lru_cache(maxsize=1024)(fold)


def _find_pieces(text: str, pieces: tuple[str, ...], begin: int, end: int) -> Iterator[MatchRange]:
    """Yield where these pieces follow one another, without overlaps."""
    # The first one as a string: 20 times as fast as a pattern.
    while (begin := text.find(pieces[0], begin, end)) >= 0:
        if len(pieces) == 1:
            stop = begin + len(pieces[0])
        elif match := _pattern(pieces).match(text, begin, end):
            stop = match.end()
        else:
            begin += 1
            continue
        yield begin, stop
        begin = stop


@lru_cache(maxsize=64)
def _pattern(pieces: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(_GAP.join(map(re.escape, pieces)))


def _without_overlaps(ranges: Iterable[MatchRange]) -> tuple[MatchRange, ...]:
    merged: list[MatchRange] = []
    for begin, end in sorted(ranges):
        if merged and begin < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return tuple(merged)


def _begins_word(text: str, place: int) -> bool:
    """Return whether the index has the beginning of a word here, or the end of one."""
    if place in {0, len(text)}:
        return True
    before, character = text[place - 1], text[place]
    if not before.isalnum() or not character.isalnum() or is_unspaced(before) or is_unspaced(character):
        return True
    if not character.isupper():
        return False
    return not before.isupper() or text[place + 1 : place + 2].islower()


def _cut(part: _Part, matcher: _Matcher, terms: Sequence[Term], match: MatchRange) -> Snippet:
    text = part.text
    begin = max(0, match[0] - _BEFORE)
    if begin:
        # Not in the middle of a word, where there is a space to begin at.
        space = text.find(" ", begin, match[0])
        begin = begin if space < 0 else space + 1
    end = min(len(text), max(match[1], begin + _LENGTH))
    line = "" if part.begins and not begin else _ELLIPSIS
    ranges: list[MatchRange] = []
    ranges_of_terms = (islice(matcher.matches(term, begin, end), _MAX_MATCHES) for term in terms)
    matches = _without_overlaps(chain.from_iterable(ranges_of_terms))
    source = _Line(part.place, text, begin, end, matches)
    for start, stop in matches:
        line += source.between(begin, start)
        words = _on_one_line(text[start:stop])
        ranges.append((len(line), len(line) + len(words)))
        line += words
        begin = stop
    line += source.between(begin, end) + ("" if part.ends and end == len(text) else _ELLIPSIS)
    return Snippet(part.place, line, tuple(ranges))


class _Line:
    """A part of a text on one line; of a message's text without the signs of Markdown, but for those within a match."""

    def __init__(self, place: SearchPlace, text: str, begin: int, end: int, matches: Sequence[MatchRange]) -> None:
        self.end = end
        self._text = text
        signs = find_signs(text, begin, end) if place is SearchPlace.TEXT else ()
        self._signs = [
            (first, last) for first, last in signs if not any(first < stop and start < last for start, stop in matches)
        ]

    def between(self, begin: int, end: int) -> str:
        signs = [sign for sign in self._signs if begin <= sign[0] and sign[1] <= end]
        return _on_one_line("".join(self._text[start:stop] for start, stop in kept_ranges(begin, end, signs)))


def _on_one_line(text: str) -> str:
    return _SPACES.sub(" ", text)
