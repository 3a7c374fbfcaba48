"""Blocks joined as Markdown: lists, quotes and footnotes around them written so that they are read the same again."""

import re
from dataclasses import dataclass

from ui.transcript.copying.passage import Passage, depth_kept
from ui.transcript.markdown.leaves import Inside

_BULLETS = "-*+"
_BOXES = {"☐": "[ ] ", "☑": "[x] "}
_LARGEST = 999_999_999
_NO_WORDS = re.compile(r"```|~~~|\$\$|\\\[|\\begin|[|#]|___\Z")
_PARTED = "[//]: #"
"""A definition that nothing uses: two lists of the same kind with nothing else between them would be one."""


@dataclass(frozen=True, slots=True)
class _Open:
    """A container that may go on. `first` stands before its first line, `rest` before the others.

    `sign` is an item's bullet, or what follows its `number`.
    """

    kind: str
    first: str = ""
    rest: str = ""
    sign: str = ""
    number: int | None = None


class MarkdownText:
    """Takes the passages of one message in order. Containers that began before the first of them are left out."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._open: list[_Open] = []

    def text(self) -> str:
        """All of it."""
        return "\n".join(self._lines)

    def add(self, passage: Passage) -> None:
        """The next one."""
        if passage.joint is not None and self._lines:
            head, *more = f"{passage.joint}{passage.text}".split("\n")
            self._lines[-1] += head
            self._add_lines(more)
            return
        kept = depth_kept(passage, [each.kind for each in self._open])
        before = self._open[kept] if kept < len(self._open) else None
        # What is added to an item after a blank line belongs to it only where the same item is still open.
        del self._open[kept:]
        if self._lines and not passage.tight:
            self._add_lines([""])
        prefix = self._prefix()
        for depth, each in enumerate(passage.inside[kept:], kept):
            is_sibling = before is not None and before.kind == each.kind == "item"
            opened = self._opened(each, before if is_sibling else None, passage, prefix if depth > kept else "")
            if is_sibling and _would_join(opened, before, starts=passage.starts):
                self._add_lines([_PARTED, ""])
            before = None
            self._open.append(opened)
            prefix += opened.first
            if (
                opened.kind == "footnote"
                and opened.first
                and (passage.inside[depth + 1 :] or _NO_WORDS.match(passage.text))
            ):
                # The parser counts columns wrongly in what stands on the line of the label.
                self._lines.append(prefix.rstrip())
                prefix = self._prefix()
        head, *more = passage.text.split("\n")
        self._lines.append(f"{prefix}{head}" if head else prefix.rstrip())
        self._add_lines(more)

    def _prefix(self) -> str:
        return "".join(each.rest for each in self._open)

    def _add_lines(self, lines: list[str]) -> None:
        prefix = self._prefix()
        bare = prefix.rstrip()
        self._lines += [f"{prefix}{line}" if line else bare for line in lines]

    def _opened(self, inside: Inside, before: _Open | None, passage: Passage, line: str) -> _Open:
        """`before` is the item before this one, `line` what stands before the item on its line."""
        if inside.kind == "quote":
            return _Open("quote", "> ", "> ")
        if not inside.marker:
            return _Open(inside.kind)
        if inside.kind == "footnote":
            return _Open("footnote", f"[^{inside.marker}]: ", "    ")
        box = _BOXES.get(inside.marker, "")
        if before and before.number is not None and box and not passage.starts:
            number, sign = before.number + 1, before.sign
        elif inside.marker[:-1].isdigit():
            number, sign = int(inside.marker[:-1]), inside.marker[-1]
        else:
            sign = _bullet(before, line, starts=passage.starts)
            return _Open("item", f"{sign} {box}", "  ", sign)
        first = f"{min(number, _LARGEST)}{sign} "
        return _Open("item", f"{first}{box}", " " * len(first), sign, number)


def _bullet(before: _Open | None, line: str, *, starts: bool) -> str:
    """The list's own; another one for another list, and beside a bullet on its line: both could be a rule."""
    used = before.sign if before and before.number is None else ""
    if used and not starts:
        return used
    beside = line.rstrip()[-1:]
    return next(each for each in _BULLETS if each not in (used, beside))


def _would_join(opened: _Open, before: _Open | None, *, starts: bool) -> bool:
    if before is None or opened.number is None or before.number is None or opened.sign != before.sign:
        return False
    return starts or opened.number != before.number + 1
