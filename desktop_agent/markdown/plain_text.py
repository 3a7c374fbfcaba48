"""Markdown without its signs, for one line of a list: parsed by patterns, since what is shown may begin anywhere."""

import re
from collections.abc import Iterable, Iterator

TextRange = tuple[int, int]

_LINE_SIGNS = re.compile(
    r"^[ \t]{0,20}(?:(?:`{3,}|~{3,})[^\n`]*$"
    r"|\|?(?:[ \t]?:?-{2,}:?[ \t]?\|?)+$|(?:\*[ \t]?){3,}$"
    r"|(?:>[ \t]?)*(?:\#{1,6}[ \t]+|[-*+][ \t]+(?:\[[ xX]\][ \t]+)?|(?<=>)|(?<=>[ \t])))",
    re.MULTILINE,
)
# One pair of signs around words. Underscores count only around several words: `__init__` is a name.
_PAIRS = re.compile(
    # Most characters are none of these: this makes it five times as fast.
    r"(?=[`!\[*_~])(?:(?P<code>`{1,2})(?=[^`\n])(?P<in_code>[^`\n]{1,400})(?P=code)"
    r"|!?\[(?P<label>[^\[\]\n]{0,400})\]\((?P<target>[^()\s]{0,2000}(?:\([^()\s]{0,400}\)[^()\s]{0,400})?)\)"
    r"|(?P<stars>\*{2,3})(?=[^\s*])(?P<bold>(?:[^*\n]|\*(?!\*)){0,399}(?:[^\s*]|(?<=[^\s*])\*))(?P=stars)"
    r"|(?<![\w*])\*(?=[^\s*])(?P<starred>[^*\n]{0,399}[^\s*])\*(?![\w*])"
    r"|(?<![\w_])(?P<lines>_{1,3})(?=[^\s_])(?P<underlined>[^_\n]{0,300} [^_\n]{0,98}[^\s_])(?P=lines)(?![\w_])"
    r"|(?P<strike>~~)(?=[^\s~])(?P<struck>[^~\n]{0,399}[^\s~])~~)"
)
_KEPT_GROUPS = ("in_code", "label", "bold", "starred", "underlined", "struck")


def find_signs(text: str, begin: int = 0, end: int | None = None) -> Iterator[TextRange]:
    """Yield the ranges of markup signs between two places, in order. There are none within backticks."""
    last = len(text) if end is None else end
    position = begin
    for start, stop in sorted((*_line_signs(text, begin, last), *_pair_signs(text, begin, last))):
        if stop > max(start, position):
            yield max(start, position), stop
            position = stop


def without_signs(text: str) -> str:
    """Return the text without markup signs."""
    return "".join(text[begin:end] for begin, end in kept_ranges(0, len(text), find_signs(text)))


def kept_ranges(begin: int, end: int, signs: Iterable[TextRange]) -> Iterator[TextRange]:
    """Yield the ranges between two places without these signs."""
    for start, stop in signs:
        if start > begin:
            yield begin, start
        begin = stop
    if begin < end:
        yield begin, end


def _line_signs(text: str, begin: int, end: int) -> Iterator[TextRange]:
    for match in _LINE_SIGNS.finditer(text, begin, end):
        if match.end() > match.start():
            yield match.span()


def _pair_signs(text: str, begin: int, end: int) -> Iterator[TextRange]:
    for match in _PAIRS.finditer(text, begin, end):
        group = next(name for name in _KEPT_GROUPS if match[name] is not None)
        first, last = match.span(group)
        yield match.start(), first
        if group != "in_code":
            yield from _pair_signs(text, first, last)
        yield last, match.end()
