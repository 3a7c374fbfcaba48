"""Split a long finished text into sections that parse one by one to the same as the whole text."""

import re
from collections.abc import Generator, Iterator, Sequence
from typing import TypeVar

from desktop_agent.markdown.parser import FOOTNOTES_KEY, MATH_OPENING
from ui.transcript.markdown.open_blocks import end_of_fence
from ui.transcript.markdown.parser import References, parse_blocks
from ui.transcript.markdown.stream import MarkdownStream, line_offset

SECTION = 4000
"""The minimum length of a section in characters, except the last."""

_SECTION_END = re.compile(r"\n(?:[ \t]*\n(?=(?![-+*](?:[ \t\n]|$))[^\s\d])|(?=#{1,6}(?:[ \t\n]|$)))")
_FENCE = re.compile(r"^[ \t>]*(?:(?:[-+*]|\d{1,9}[.)]|\[\^[^\] \n]{1,999}\]:)[ \t>]*)*(`{3,}|~{3,})(.*)$", re.MULTILINE)
_DEFINITION = re.compile(r"^[ \t>*+\-0-9.)]*\[(?:[^\[\]\\]++|\\.)++\]:", re.MULTILINE | re.DOTALL)
# Spaces alone, or the bullet of an item: what follows is the fence of a code block in any case.
_PLAIN_PREFIX = re.compile(r" +| {0,3}[-+*] {1,3}")
_UNUSUAL_SIGN = re.compile(r"[`|]")
# Characters searched in one step: for a fence, and for section ends or definitions.
_WINDOW = 20_000
_STEP = 2000


def split_sections(text: str) -> list[tuple[int, int]]:
    """Return the start and end of each section of a text with normalised newlines; joined they are the text."""
    return _between([end for end in _section_ends(text) if end is not None], text)


def definitions_of(text: str, parts: Sequence[tuple[int, int]]) -> References:
    """Return the link and footnote definitions in these sections; only those that may have one are parsed."""
    return run_to_end(_definitions_in_steps(text, parts))


Sections = tuple[list[tuple[int, int]], References]
"""The sections of a text, and its definitions."""

Result = TypeVar("Result")


def split_in_steps(text: str) -> Generator[None, None, Sections]:
    """Find sections and definitions in steps of a few milliseconds."""
    ends: list[int] = []
    for end in _section_ends(text):
        if end is not None:
            ends.append(end)
        yield
    parts = _between(ends, text)
    return parts, (yield from _definitions_in_steps(text, parts))


def run_to_end(steps: Generator[None, None, Result]) -> Result:
    """Run all remaining steps and return the result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def _between(ends: list[int], text: str) -> list[tuple[int, int]]:
    ends = [*ends, len(text)]
    return list(zip([0, *ends[:-1]], ends, strict=True)) if text else []


def _definitions_in_steps(text: str, parts: Sequence[tuple[int, int]]) -> Generator[None, None, References]:
    definitions: References = {}
    for start, end in parts:
        if _DEFINITION.search(text, start, end):
            defined = yield from _defined_in(text[start:end], definitions)
            notes = defined.pop(FOOTNOTES_KEY, {})
            definitions.update(defined)
            if notes:
                definitions[FOOTNOTES_KEY] = {**notes, **definitions.get(FOOTNOTES_KEY, {})}
        yield
    return definitions


def _defined_in(section: str, known: References) -> Generator[None, None, References]:
    if len(section) < 2 * SECTION:
        return parse_blocks(section, known)[1]
    stream = MarkdownStream()
    for offset in range(0, len(section), _STEP):
        stream.append(section[offset : offset + _STEP])
        yield
    stream.finish()
    defined = stream.references.items()
    return {label: entry for label, entry in defined if label == FOOTNOTES_KEY or label not in known}


def _section_ends(text: str) -> Iterator[int | None]:
    """Yield where sections end, and None in between to allow pauses."""
    start = 0
    for cut in _possible_ends(text):
        if cut is None:
            yield None
        elif cut >= start + SECTION:
            yield cut
            start = cut


def _possible_ends(text: str) -> Iterator[int | None]:
    """Yield where a section may end outside code blocks, and None in between to allow pauses."""
    openings_for_cuts, openings_for_fences = _FormulaOpenings(text), _FormulaOpenings(text)
    begin = offset = parse_start = 0
    while True:
        fence = yield from _next_fence(text, offset)
        line, offset = (fence.start(), fence.end()) if fence else (len(text), len(text))
        is_at_margin = bool(fence) and fence.start(1) == line
        # The info string of a fence of backticks contains none.
        if fence and is_at_margin and "`" in fence[1] and "`" in fence[2]:
            continue
        for cut in _cuts_between(text, begin, line, openings_for_cuts):
            parse_start = cut or parse_start
            yield cut
        if not fence:
            return
        end = None if openings_for_fences.exist_between(parse_start, line) else _obvious_fence_end(text, fence)
        if end is None:
            after = yield from _next_cut(text, offset, openings_for_cuts)
            if after is None:
                return
            parse_start = end = _end_of_open_fence(text, parse_start, after) or after
        begin = offset = end
        parse_start = end if is_at_margin else parse_start
        yield None


def _next_fence(text: str, offset: int) -> Generator[None, None, re.Match[str] | None]:
    """Find the first line at or after the offset that may begin a code block."""
    while True:
        end = text.find("\n", offset + _WINDOW)
        end = end if end >= 0 else len(text)
        fence = _FENCE.search(text, offset, end)
        if fence or end == len(text):
            return fence
        yield
        offset = end


def _next_cut(text: str, offset: int, openings: "_FormulaOpenings") -> Generator[None, None, int | None]:
    for cut in _cuts_between(text, offset, len(text), openings):
        if cut is not None:
            return cut
        yield
    return None


class _FormulaOpenings:
    """The openings of formulas in a text, searched once if the queried offsets ascend."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._searched_end = 0
        self._last = self._blank = -1

    def exist_between(self, start: int, end: int) -> bool:
        """Return whether a formula opens between two offsets."""
        for match in MATH_OPENING.finditer(self._text, max(start, self._searched_end), end):
            self._last = match.start()
        self._searched_end = max(self._searched_end, end)
        return self._last >= start

    def may_reach(self, offset: int) -> bool:
        """Return whether a formula may surround an offset; formulas have no blank lines."""
        self._blank = max(self._blank, self._text.rfind("\n\n", max(0, self._searched_end - 1), offset))
        return self.exist_between(max(0, self._blank), offset)


def _obvious_fence_end(text: str, fence_line: re.Match[str]) -> int | None:
    """Return the end of the code block that begins here if it is the same in every context, otherwise None."""
    start, (fence, info) = fence_line.start(), fence_line.group(1, 2)
    if fence_line.start(1) == start:
        return end_of_fence(text, start, len(text)) or len(text)
    prefix = text[start : fence_line.start(1)]
    if not _PLAIN_PREFIX.fullmatch(prefix) or _UNUSUAL_SIGN.search(info):
        return None
    margin, last = f" {{{len(prefix)}}}", f"{fence[0]}{{{len(fence)},}}[ \\t]*$"
    containers = rf"(?:(?:[ \t]*|(?! *{last}){margin}[ \t]*[^ \t\n].*)\n)*"
    whole = re.compile(rf"\n{containers}{margin}{last}\n?", re.MULTILINE).match(text, fence_line.end())
    return whole.end() if whole else None


def _cuts_between(text: str, begin: int, end: int, openings: _FormulaOpenings) -> Iterator[int | None]:
    """Yield where a section may end in a range outside code blocks, and None in between to allow pauses."""
    checked = begin
    for match in _SECTION_END.finditer(text, max(0, begin - 1), end):
        is_heading = len(match[0]) == 1
        if not is_heading or not openings.may_reach(match.start()):
            yield match.end()
        if match.end() > checked + _STEP:
            yield None
            checked = match.end()


def _end_of_open_fence(text: str, start: int, end: int) -> int | None:
    """Return the end of the code block that is open at the end of this part, None if there is none."""
    blocks, _ = parse_blocks(text[start:end])
    if not blocks or blocks[-1].kind != "fence":
        return None
    fence = start + line_offset(text[start:end], blocks[-1].first)
    if end_of_fence(text, fence, end) is not None:
        return None
    return end_of_fence(text, fence, len(text)) or len(text)
