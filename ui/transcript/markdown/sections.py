"""A long finished text in sections that are read one by one and say the same as the whole text.

A section ends before a line that begins a block whatever stood before it: a line after a blank one, or an ATX heading,
that begins at the margin and is no item of a list, outside of code blocks and formulas. Where a code block begins is
seen at a glance when its fence stands at the margin, or when all of it is indented alike; else the parser is asked.
"""

import re
from collections.abc import Generator, Iterator, Sequence
from typing import TypeVar

from ui.transcript.markdown.freezing import start_of
from ui.transcript.markdown.open_blocks import end_of_fence
from ui.transcript.markdown.parser import References, outline
from ui.transcript.markdown.rules.display_math import OPENING
from ui.transcript.markdown.rules.footnotes import FOOTNOTES
from ui.transcript.markdown.stream import MarkdownStream

SECTION = 4000
"""Characters that a section has at least, the last one aside."""

_CUT = re.compile(r"\n(?:[ \t]*\n(?=(?![-+*](?:[ \t\n]|$))[^\s\d])|(?=#{1,6}(?:[ \t\n]|$)))")
_FENCE = re.compile(r"^[ \t>]*(?:(?:[-+*]|\d{1,9}[.)]|\[\^[^\] ]+\]:)[ \t>]*)*(`{3,}|~{3,})(.*)$", re.MULTILINE)
_DEFINITION = re.compile(r"^[ \t>*+\-0-9.)]*\[(?:[^\[\]\\]|\\.)+\]:", re.MULTILINE | re.DOTALL)
# Spaces alone, or the bullet of an item: what follows is the fence of a code block in any case.
_PLAIN_PREFIX = re.compile(r" +| {0,3}[-+*] {1,3}")
_UNUSUAL = re.compile(r"[`|]")
_LOOK_BACK = 5000
_STEP = 2000
"""Characters of a long section that are read for its definitions at once."""


def sections(text: str) -> list[tuple[int, int]]:
    """Start and end of each section of a text whose line ends are newlines (see `normal`). Joined they are the text."""
    return _between([*_far_apart(text)], text)


def definitions_of(text: str, parts: Sequence[tuple[int, int]] | None = None) -> References:
    """All definitions of a text whose line ends are newlines; only sections that may hold one are parsed.

    `parts` are its sections, when they are known.
    """
    return at_once(_defined(text, sections(text) if parts is None else parts))


Cut = tuple[list[tuple[int, int]], References]
"""The sections of a text, and its definitions."""

Result = TypeVar("Result")


def cut_up(text: str) -> Generator[None, None, Cut]:
    """Both, in steps of a few milliseconds at most."""
    ends: list[int] = []
    for end in _far_apart(text):
        ends.append(end)
        yield
    parts = _between(ends, text)
    return parts, (yield from _defined(text, parts))


def at_once(steps: Generator[None, None, Result]) -> Result:
    """What comes of all the steps that are left."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def _between(ends: list[int], text: str) -> list[tuple[int, int]]:
    ends = [*ends, len(text)]
    return list(zip([0, *ends[:-1]], ends, strict=True)) if text else []


def _defined(text: str, parts: Sequence[tuple[int, int]]) -> Generator[None, None, References]:
    found: References = {}
    for start, end in parts:
        if _DEFINITION.search(text, start, end):
            defined = yield from _defined_in(text[start:end], found)
            notes = defined.pop(FOOTNOTES, {})
            found.update(defined)
            if notes:
                found[FOOTNOTES] = {**notes, **found.get(FOOTNOTES, {})}
        yield
    return found


def _defined_in(section: str, known: References) -> Generator[None, None, References]:
    if len(section) < 2 * SECTION:
        return outline(section, known)[1]
    stream = MarkdownStream()
    for at in range(0, len(section), _STEP):
        stream.append(section[at : at + _STEP])
        yield
    stream.finish()
    return {label: each for label, each in stream.references.items() if label == FOOTNOTES or label not in known}


def _far_apart(text: str) -> Iterator[int]:
    start = 0
    for begin, end in _outside_fences(text):
        for cut in _cuts(text, begin, end):
            if cut >= start + SECTION:
                yield cut
                start = cut


def _outside_fences(text: str) -> Iterator[tuple[int, int]]:
    """The stretches in which a section may end."""
    begin = at = clean = 0
    while found := _FENCE.search(text, at):
        line, at = found.start(), found.end()
        is_at_margin = found.start(1) == line
        if is_at_margin and "`" in found[1] and "`" in found[2]:
            continue
        yield begin, line
        clean = max(_cuts(text, max(begin, line - _LOOK_BACK), line), default=clean)
        end = None if OPENING.search(text, clean, line) else _end_at_a_glance(text, found)
        if end is None:
            after = next(_cuts(text, at, len(text)), None)
            if after is None:
                return
            clean = end = _end_of_open_fence(text, clean, after) or after
        begin = at = end
        clean = end if is_at_margin else clean
    yield begin, len(text)


def _end_at_a_glance(text: str, found: re.Match[str]) -> int | None:
    """Where the code block ends that begins here, if that is the same whatever it stands in; else None."""
    start, (fence, info) = found.start(), found.group(1, 2)
    if found.start(1) == start:
        return end_of_fence(text, start, len(text)) or len(text)
    prefix = text[start : found.start(1)]
    if not _PLAIN_PREFIX.fullmatch(prefix) or _UNUSUAL.search(info):
        return None
    margin, last = f" {{{len(prefix)}}}", f"{fence[0]}{{{len(fence)},}}[ \\t]*$"
    inside = rf"(?:(?:[ \t]*|(?! *{last}){margin}[ \t]*[^ \t\n].*)\n)*"
    whole = re.compile(rf"\n{inside}{margin}{last}\n?", re.MULTILINE).match(text, found.end())
    return whole.end() if whole else None


def _cuts(text: str, begin: int, end: int) -> Iterator[int]:
    """Where a section may end in a stretch without the inside of a code block."""
    for found in _CUT.finditer(text, max(0, begin - 1), end):
        is_heading = len(found[0]) == 1
        if not is_heading or not _may_be_math(text, found.start()):
            yield found.end()


def _may_be_math(text: str, at: int) -> bool:
    """Whether a formula may stand around a place: it has no blank line."""
    least = max(0, at - _LOOK_BACK)
    blank = text.rfind("\n\n", least, at)
    return (blank < 0 and least > 0) or bool(OPENING.search(text, max(blank, least), at))


def _end_of_open_fence(text: str, start: int, end: int) -> int | None:
    """Where the code block ends that is open at the end of a part, if one is."""
    pieces, _ = outline(text[start:end])
    if not pieces or pieces[-1].kind != "fence":
        return None
    fence = start + start_of(text[start:end], pieces[-1].first)
    if end_of_fence(text, fence, end) is not None:
        return None
    return end_of_fence(text, fence, len(text)) or len(text)
