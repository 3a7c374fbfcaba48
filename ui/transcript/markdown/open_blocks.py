"""Blocks that are still being written: fences and formulas that grow without parsing, and how an unfinished text is
displayed.
"""

import re
from itertools import pairwise

from markdown_it.common.utils import unescapeAll

from ui.transcript.markdown.elements import Leaf
from ui.transcript.markdown.rules import MATH_OPENING, end_mark, math_source
from ui.transcript.markdown.text_units import PIECE

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


# A line that may become a list, a heading, a rule, a setext underline or a fence: nobody can tell before more comes.
_UNDECIDED_LINE = re.compile(r"[ >]*(?:[-=*_+#>`~|:\\$]+|\d{1,9}[.)]?)[ \t]*")
# Longer lines are what they look like; the pattern takes quadratic time on rows of its signs.
_LONGEST_UNDECIDED = 500
_DELIMITER_PART = re.compile(r" {0,3}\|?[ \t:|-]*")
_DELIMITER = re.compile(r" {0,3}\|?[ \t:|-]*-[ \t:|-]*")
_BEGINS_A_BLOCK = re.compile(
    r" {0,3}(?:#{1,6}(?:[ \t]|$)|>|[-*+](?:[ \t]|$)|\d{1,9}[.)](?:[ \t]|$)|`{3}|~{3}|(?:[-*_][ \t]*){3,}$)"
)
_CODE_RUN = re.compile(r"`+")
_OPEN_LINK = re.compile(r"!?\[(?P<label>[^\[\]]*)\]\([^()\s]*$")
_LABEL_ONLY = re.compile(r"!?\[(?P<label>[^\[\]]*)$")


def displayed_tail(tail: str) -> str:
    """The open tail with what cannot be judged yet left out, and a table's head already made a table."""
    cut = tail.rfind("\n") + 1
    line = tail[cut:]
    above = tail[:cut]
    head = above[above.rfind("\n", 0, cut - 1) + 1 :].rstrip("\n") if cut else ""
    if _is_head(head) and _DELIMITER_PART.fullmatch(line) and not _with_table_head(above, head):
        return above + _delimiter(head)
    if line and len(line) <= _LONGEST_UNDECIDED and _UNDECIDED_LINE.fullmatch(line):
        return above
    if _is_head(line) and line.rstrip().endswith("|") and not _in_table(above):
        return tail + "\n" + _delimiter(line)
    return tail


def _is_head(line: str) -> bool:
    return line.startswith("|") and line.count("|") >= 3


def _in_table(above: str) -> bool:
    if above.endswith("\n\n"):
        return False
    lines = above.rstrip("\n").rpartition("\n\n")[2].split("\n")
    if lines[-1].startswith("|"):
        return True
    # Rows need no bars of their own: then the head above them and the line below it tell.
    for below, line in pairwise(reversed(lines)):
        if _BEGINS_A_BLOCK.match(below):
            return False
        if "|" in line and "|" in below and _DELIMITER.fullmatch(below):
            return True
    return False


def _with_table_head(above: str, head: str) -> bool:
    return _in_table(above[: -len(head) - 1]) if len(above) > len(head) + 1 else False


def _delimiter(head: str) -> str:
    columns = head.strip().strip("|").count("|") + 1
    return "|" + "---|" * columns


def close_open_inline(text: str) -> str:
    """Inline Markdown with what was opened last and not closed shown as if it were: emphasis, code, links."""
    if len(text) > PIECE:
        return text
    ticks = _open_code(text)
    if ticks:
        return text + ticks if not text.endswith("`") else text.rstrip("`")
    link = _OPEN_LINK.search(text) or _LABEL_ONLY.search(text)
    if link:
        text = text[: link.start()] + link["label"]
    return _closed_emphasis(text)


def _open_code(text: str) -> str:
    """The run of backticks that waits for its partner."""
    waiting = ""
    for run in _CODE_RUN.findall(text):
        if not waiting:
            waiting = run
        elif run == waiting:
            waiting = ""
    return waiting


_DELIMITERS = re.compile(r"\\.|`+[^`]*`+|\*\*|~~|\*|(?<!\w)_+|_+(?!\w)")


def _closed_emphasis(text: str) -> str:
    open_marks: list[tuple[str, int]] = []
    for found in _DELIMITERS.finditer(text):
        mark = found[0]
        if mark[0] in "\\`":
            continue
        after = text[found.end() : found.end() + 1]
        if open_marks and open_marks[-1][0] == mark and not text[found.start() - 1].isspace():
            open_marks.pop()
        elif not after:
            # A mark that just arrived says nothing yet.
            text = text[: found.start()]
            break
        elif not after.isspace():
            open_marks.append((mark, found.start()))
    text = text.rstrip(" ") if open_marks else text
    return text + "".join(mark for mark, _ in reversed(open_marks))
