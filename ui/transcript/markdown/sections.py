"""Split a long finished text into sections that can be parsed one by one and say the same as the whole text."""

import re
from collections.abc import Generator, Iterator, Sequence
from typing import TypeVar

from ui.transcript.markdown.open_blocks import end_of_fence
from ui.transcript.markdown.parser import References, parse_blocks
from ui.transcript.markdown.rules import FOOTNOTES_KEY, MATH_OPENING
from ui.transcript.markdown.stream import MarkdownStream, line_offset

SECTION = 4000
"""Characters that a section has at least, the last one aside."""

_SECTION_END = re.compile(r"\n(?:[ \t]*\n(?=(?![-+*](?:[ \t\n]|$))[^\s\d])|(?=#{1,6}(?:[ \t\n]|$)))")
_FENCE = re.compile(r"^[ \t>]*(?:(?:[-+*]|\d{1,9}[.)]|\[\^[^\] \n]{1,999}\]:)[ \t>]*)*(`{3,}|~{3,})(.*)$", re.MULTILINE)
_DEFINITION = re.compile(r"^[ \t>*+\-0-9.)]*\[(?:[^\[\]\\]|\\.)+\]:", re.MULTILINE | re.DOTALL)
# Spaces alone, or the bullet of an item: what follows is the fence of a code block in any case.
_PLAIN_PREFIX = re.compile(r" +| {0,3}[-+*] {1,3}")
_UNUSUAL_SIGN = re.compile(r"[`|]")
_WINDOW = 20_000
_STEP = 2000
"""Characters in which a code block is looked for, and of which cuts are, or definitions of a long section, at once."""


def split_sections(text: str) -> list[tuple[int, int]]:
    """Start and end of each section of a text whose line ends are newlines (see `normal`). Joined they are the text."""
    return _between([end for end in _section_ends(text) if end is not None], text)


def definitions_of(text: str, parts: Sequence[tuple[int, int]] | None = None) -> References:
    """All definitions of a text whose line ends are newlines; only sections that may hold one are parsed.

    `parts` are its sections, when they are known.
    """
    return run_to_end(_definitions_in_steps(text, split_sections(text) if parts is None else parts))


Sections = tuple[list[tuple[int, int]], References]
"""The sections of a text, and its definitions."""

Result = TypeVar("Result")


def split_in_steps(text: str) -> Generator[None, None, Sections]:
    """Both, in steps of a few milliseconds at most."""
    ends: list[int] = []
    for end in _section_ends(text):
        if end is not None:
            ends.append(end)
        yield
    parts = _between(ends, text)
    return parts, (yield from _definitions_in_steps(text, parts))


def run_to_end(steps: Generator[None, None, Result]) -> Result:
    """What comes of all the steps that are left."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def _between(ends: list[int], text: str) -> list[tuple[int, int]]:
    ends = [*ends, len(text)]
    return list(zip([0, *ends[:-1]], ends, strict=True)) if text else []


def _definitions_in_steps(text: str, parts: Sequence[tuple[int, int]]) -> Generator[None, None, References]:
    found: References = {}
    for start, end in parts:
        if _DEFINITION.search(text, start, end):
            defined = yield from _defined_in(text[start:end], found)
            notes = defined.pop(FOOTNOTES_KEY, {})
            found.update(defined)
            if notes:
                found[FOOTNOTES_KEY] = {**notes, **found.get(FOOTNOTES_KEY, {})}
        yield
    return found


def _defined_in(section: str, known: References) -> Generator[None, None, References]:
    if len(section) < 2 * SECTION:
        return parse_blocks(section, known)[1]
    stream = MarkdownStream()
    for at in range(0, len(section), _STEP):
        stream.append(section[at : at + _STEP])
        yield
    stream.finish()
    return {label: each for label, each in stream.references.items() if label == FOOTNOTES_KEY or label not in known}


def _section_ends(text: str) -> Iterator[int | None]:
    """Where sections end; None in between, where looking took a while."""
    start = 0
    for cut in _possible_ends(text):
        if cut is None:
            yield None
        elif cut >= start + SECTION:
            yield cut
            start = cut


def _possible_ends(text: str) -> Iterator[int | None]:
    """Where a section may end, outside of code blocks; None in between, where looking took a while."""
    headings, fences = _MathOpenings(text), _MathOpenings(text)
    begin = at = clean = 0
    while True:
        found = yield from _next_fence(text, at)
        line, at = (found.start(), found.end()) if found else (len(text), len(text))
        is_at_margin = bool(found) and found.start(1) == line
        if found and is_at_margin and "`" in found[1] and "`" in found[2]:
            continue
        for cut in _cuts_between(text, begin, line, headings):
            clean = cut or clean
            yield cut
        if not found:
            return
        end = None if fences.stand_between(clean, line) else _obvious_fence_end(text, found)
        if end is None:
            after = yield from _next_cut(text, at, headings)
            if after is None:
                return
            clean = end = _end_of_open_fence(text, clean, after) or after
        begin = at = end
        clean = end if is_at_margin else clean
        yield None


def _next_fence(text: str, at: int) -> Generator[None, None, re.Match[str] | None]:
    """The first line from here on that may begin a code block."""
    while True:
        end = text.find("\n", at + _WINDOW)
        end = end if end >= 0 else len(text)
        found = _FENCE.search(text, at, end)
        if found or end == len(text):
            return found
        yield
        at = end


def _next_cut(text: str, at: int, headings: "_MathOpenings") -> Generator[None, None, int | None]:
    for cut in _cuts_between(text, at, len(text), headings):
        if cut is not None:
            return cut
        yield
    return None


class _MathOpenings:
    """What may open formulas, looked for once when the places that are asked for come in order."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._last = self._blank = -1

    def stand_between(self, start: int, end: int) -> bool:
        """Whether there is one."""
        for found in MATH_OPENING.finditer(self._text, max(start, self._at), end):
            self._last = found.start()
        self._at = max(self._at, end)
        return self._last >= start

    def may_reach(self, at: int) -> bool:
        """Whether a formula may stand around a place: it has no blank line."""
        self._blank = max(self._blank, self._text.rfind("\n\n", max(0, self._at - 1), at))
        return self.stand_between(max(0, self._blank), at)


def _obvious_fence_end(text: str, found: re.Match[str]) -> int | None:
    """Where the code block ends that begins here, if that is the same whatever it stands in; else None."""
    start, (fence, info) = found.start(), found.group(1, 2)
    if found.start(1) == start:
        return end_of_fence(text, start, len(text)) or len(text)
    prefix = text[start : found.start(1)]
    if not _PLAIN_PREFIX.fullmatch(prefix) or _UNUSUAL_SIGN.search(info):
        return None
    margin, last = f" {{{len(prefix)}}}", f"{fence[0]}{{{len(fence)},}}[ \\t]*$"
    containers = rf"(?:(?:[ \t]*|(?! *{last}){margin}[ \t]*[^ \t\n].*)\n)*"
    whole = re.compile(rf"\n{containers}{margin}{last}\n?", re.MULTILINE).match(text, found.end())
    return whole.end() if whole else None


def _cuts_between(text: str, begin: int, end: int, headings: _MathOpenings) -> Iterator[int | None]:
    """Where a section may end in a stretch without the inside of a code block; None where looking took a while."""
    seen = begin
    for found in _SECTION_END.finditer(text, max(0, begin - 1), end):
        is_heading = len(found[0]) == 1
        if not is_heading or not headings.may_reach(found.start()):
            yield found.end()
        if found.end() > seen + _STEP:
            yield None
            seen = found.end()


def _end_of_open_fence(text: str, start: int, end: int) -> int | None:
    """Where the code block ends that is open at the end of a part, if one is."""
    pieces, _ = parse_blocks(text[start:end])
    if not pieces or pieces[-1].kind != "fence":
        return None
    fence = start + line_offset(text[start:end], pieces[-1].first)
    if end_of_fence(text, fence, end) is not None:
        return None
    return end_of_fence(text, fence, len(text)) or len(text)
