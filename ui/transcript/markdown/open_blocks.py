"""Open blocks: fences and formulas that grow without parsing, and how an unfinished text is displayed."""

import re
from itertools import pairwise

from markdown_it.common.utils import unescapeAll

from desktop_agent.markdown.long_text import PIECE
from desktop_agent.markdown.parser import MATH_OPENING, end_mark, math_source
from ui.transcript.markdown.elements import Leaf

_FENCE = re.compile(r"(`{3,}|~{3,})(.*)")
_FENCE_OPENING = re.compile(r" {0,3}(`{3,}|~{3,})")


def open_fence(text: str) -> "OpenFence | None":
    """Return the open fence that is the whole text, if its first line is complete and its end is missing."""
    first, complete, rest = text.partition("\n")
    match = _FENCE.fullmatch(first)
    if not match or not complete:
        return None
    fence = OpenFence(match[1], match[2].strip())
    fence.feed(rest)
    return fence if fence.rest is None else None


def end_of_fence(text: str, start: int, end: int) -> int | None:
    """Return the offset after the code block that begins at `start`, None if it does not end before `end`."""
    match = _FENCE_OPENING.match(text, start)
    marker = match[1] if match else "`"
    last = re.compile(rf"^ {{0,3}}{re.escape(marker[0])}{{{len(marker)},}}[ \t]*(?:\n|\Z)", re.MULTILINE)
    closing = last.search(text, match.end() if match else start, end)
    return closing.end() if closing else None


class OpenFence:
    """A fenced code block without its end. Appending costs only what the new text costs."""

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
        """Append text and return the new text to display. Once the end was found, `rest` is the text after it."""
        *complete, open_line = (self._open_line + text).split("\n")
        grown: list[str] = []
        for index, line in enumerate(complete):
            if self._end.fullmatch(line):
                self.rest = "\n".join([*complete[index + 1 :], open_line])
                return "".join(grown)
            grown.append(self._new_part(line))
            self._lines.append(line)
            self._shown = 0
        self._open_line = open_line
        if open_line and not self._maybe_end.fullmatch(open_line):
            grown.append(self._new_part(open_line))
            self._shown = len(open_line)
        return "".join(grown)

    def _new_part(self, line: str) -> str:
        # A line end is displayed together with the first character after it, as in the finished block.
        return ("\n" if self._lines and not self._shown else "") + line[self._shown :]

    def leaf(self) -> Leaf:
        """Return the finished block."""
        return Leaf("code", "\n".join(self._lines), info=self._language, starts=True)

    def shown_leaf(self) -> Leaf:
        """Return the block as it is displayed now."""
        lines = [*self._lines, self._open_line] if self._shown else self._lines
        return Leaf("code", "\n".join(lines), info=self._language, starts=True)

    def source(self) -> str:
        """Return all text appended so far, with the opening line."""
        return "\n".join([self._opening, *self._lines, self._open_line])


_EMPTY_LINE = re.compile(r"\n[ \t]*\n")
# Trailing spaces are stripped from a formula, and these characters may begin its end mark.
_UNSETTLED = " \t\n$\\"
_MAX_MARK_LENGTH = 60


class OpenFormula:
    """A formula without its end. Its end mark or a blank line will decide whether it is one; until then it only grows.

    `text` is all that is not final yet; the formula starts at `start` in it and has at least one complete line.
    """

    def __init__(self, text: str, start: int) -> None:
        opened = MATH_OPENING.match(text[start:].lstrip(" "))
        self._parts = [text]
        self._mark = end_mark(opened[0] if opened else "")
        self._line = self._end_of(text)
        self._unsettled = math_source(text[start:], opened[0] if opened else "", is_open=True)
        self.shown = self._settle_text("")

    def feed(self, text: str) -> str | None:
        """Append text and return the new text to display, None if the source must be parsed again."""
        self._parts.append(text)
        recent = self._line + text
        if self._mark.search(recent) or _EMPTY_LINE.search(recent):
            return None
        self._line = self._end_of(recent)
        return self._settle_text(text)

    def source(self) -> str:
        """Return all text appended so far."""
        return "".join(self._parts)

    def _settle_text(self, text: str) -> str:
        text = self._unsettled + text
        settled = text.rstrip(_UNSETTLED)
        self._unsettled = text[len(settled) :]
        return settled

    @staticmethod
    def _end_of(text: str) -> str:
        """Return the incomplete line with the line end before it, or the part of it that may belong to an end mark."""
        line = text[max(0, text.rfind("\n")) :]
        if len(line) <= _MAX_MARK_LENGTH:
            return line
        return line[-_MAX_MARK_LENGTH:] if line.strip() else "\n"


# A line that may become a list, a heading, a rule, a setext underline or a fence once more text arrives.
_UNDECIDED_LINE = re.compile(r"[ >]*(?:[-=*_+#>`~|:\\$]+|\d{1,9}[.)]?)[ \t]*")
# Longer lines are what they look like; the pattern is quadratic on rows of these characters.
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
    """Return the open tail without an undecided last line, and with a table head already completed to a table."""
    cut = tail.rfind("\n") + 1
    line = tail[cut:]
    above = tail[:cut]
    head = above[above.rfind("\n", 0, cut - 1) + 1 :].rstrip("\n") if cut else ""
    if _is_head(head) and _DELIMITER_PART.fullmatch(line) and not _in_table(above[: -len(head) - 1]):
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
    # Rows need no bars at their edges; the head and the delimiter line below it identify the table.
    for below, line in pairwise(reversed(lines)):
        if _BEGINS_A_BLOCK.match(below):
            return False
        if "|" in line and "|" in below and _DELIMITER.fullmatch(below):
            return True
    return False


def _delimiter(head: str) -> str:
    columns = head.strip().strip("|").count("|") + 1
    return "|" + "---|" * columns


def close_open_inline(text: str) -> str:
    """Return inline Markdown with the open emphasis, code or link at its end closed for display."""
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
    opening = ""
    for run in _CODE_RUN.findall(text):
        if not opening:
            opening = run
        elif run == opening:
            opening = ""
    return opening


_DELIMITERS = re.compile(r"\\.|`+[^`]*`+|\*\*|~~|\*|(?<!\w)_+|_+(?!\w)")


def _closed_emphasis(text: str) -> str:
    open_marks: list[tuple[str, int]] = []
    for match in _DELIMITERS.finditer(text):
        mark = match[0]
        if mark[0] in "\\`":
            continue
        after = text[match.end() : match.end() + 1]
        if open_marks and open_marks[-1][0] == mark and not text[match.start() - 1].isspace():
            open_marks.pop()
        elif not after:
            # A mark at the very end may still open or close emphasis.
            text = text[: match.start()]
            break
        elif not after.isspace():
            open_marks.append((mark, match.start()))
    text = text.rstrip(" ") if open_marks else text
    return text + "".join(mark for mark, _ in reversed(open_marks))
