"""How text that is still being written is shown, so that nothing flickers when its end arrives."""

import re
from itertools import pairwise

from ui.transcript.markdown.pieces import PIECE

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
