"""Blocks that are open and made of bare text: what comes is appended and not parsed, until an end is in sight."""

import re

from markdown_it.common.utils import unescapeAll

from ui.transcript.markdown.leaves import Leaf
from ui.transcript.markdown.rules.display_math import MATH_OPENING, end_mark, math_source

_FENCE = re.compile(r"(`{3,}|~{3,})(.*)")
_FENCE_OPENING = re.compile(r" {0,3}(`{3,}|~{3,})")


def open_fence(text: str) -> "OpenFence | None":
    """The code block that is all of a text, if its first line is complete and its end is not there."""
    first, complete, rest = text.partition("\n")
    found = _FENCE.fullmatch(first)
    if not found or not complete:
        return None
    fence = OpenFence(found[1], found[2].strip())
    fence.feed(rest)
    return fence if fence.rest is None else None


def end_of_fence(text: str, start: int, end: int) -> int | None:
    """Where the text after a code block begins whose first line begins here; None when `end` comes first."""
    found = _FENCE_OPENING.match(text, start)
    marker = found[1] if found else "`"
    last = re.compile(rf"^ {{0,3}}{re.escape(marker[0])}{{{len(marker)},}}[ \t]*(?:\n|\Z)", re.MULTILINE)
    after = last.search(text, found.end() if found else start, end)
    return after.end() if after else None


class OpenFence:
    """A code block without its end. Feeding costs what the new text costs."""

    def __init__(self, marker: str, info: str) -> None:
        self._language = unescapeAll(info)
        self._opening = f"{marker}{info}"
        self._end = re.compile(rf" {{0,3}}{re.escape(marker[0])}{{{len(marker)},}}[ \t]*")
        self._maybe_end = re.compile(rf" {{0,3}}{re.escape(marker[0])}*[ \t]*")
        self._lines: list[str] = []
        self._open_line = ""
        self._shown = 0
        self.rest: str | None = None

    def feed(self, text: str) -> str:
        """Take text; answers what is to be shown more. When the end was found, `rest` is what came after it."""
        *complete, open_line = (self._open_line + text).split("\n")
        grown: list[str] = []
        for index, line in enumerate(complete):
            if self._end.fullmatch(line):
                self.rest = "\n".join([*complete[index + 1 :], open_line])
                return "".join(grown)
            # A line end is shown together with the first character after it, as in the finished block.
            grown.append(("\n" if self._lines and not self._shown else "") + line[self._shown :])
            self._lines.append(line)
            self._shown = 0
        self._open_line = open_line
        if open_line and not self._maybe_end.fullmatch(open_line):
            grown.append(("\n" if self._lines and not self._shown else "") + open_line[self._shown :])
            self._shown = len(open_line)
        return "".join(grown)

    def leaf(self) -> Leaf:
        """The finished block."""
        return Leaf("code", "\n".join(self._lines), info=self._language, starts=True)

    def shown_leaf(self) -> Leaf:
        """What is to be seen of it now."""
        lines = [*self._lines, self._open_line] if self._shown else self._lines
        return Leaf("code", "\n".join(lines), info=self._language, starts=True)

    def source(self) -> str:
        """The text that was taken, opening line included."""
        return "\n".join([self._opening, *self._lines, self._open_line])


_EMPTY_LINE = re.compile(r"\n[ \t]*\n")
# Spaces vanish at the end of a formula, and these signs may be the beginning of it.
_UNSETTLED = " \t\n$\\"
_MAX_MARK_LENGTH = 60


class OpenMath:
    """A formula without its end. Whether it is one is decided by its end or by a blank line: until then it only grows.

    `text` is all that is not final yet, the formula is its end from `start` on; at least its first line is complete.
    """

    def __init__(self, text: str, start: int) -> None:
        opened = MATH_OPENING.match(text[start:].lstrip(" "))
        self._parts = [text]
        self._mark = end_mark(opened[0] if opened else "")
        self._line = self._end_of(text)
        self._held = math_source(text[start:], opened[0] if opened else "", is_open=True)
        self.shown = self._settle_text("")

    def feed(self, text: str) -> str | None:
        """Take text; answers what is to be shown more, or None when its source must be parsed again."""
        self._parts.append(text)
        seen = self._line + text
        if self._mark.search(seen) or _EMPTY_LINE.search(seen):
            return None
        self._line = self._end_of(seen)
        return self._settle_text(text)

    def source(self) -> str:
        """All text that was taken."""
        return "".join(self._parts)

    def _settle_text(self, text: str) -> str:
        text = self._held + text
        settled = text.rstrip(_UNSETTLED)
        self._held = text[len(settled) :]
        return settled

    @staticmethod
    def _end_of(text: str) -> str:
        """The line that is not complete, with the line end before it; of a long line what may belong to an end."""
        line = text[max(0, text.rfind("\n")) :]
        if len(line) <= _MAX_MARK_LENGTH:
            return line
        return line[-_MAX_MARK_LENGTH:] if line.strip() else "\n"
