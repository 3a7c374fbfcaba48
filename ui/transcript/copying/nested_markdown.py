"""Blocks joined as Markdown: lists, quotes and footnotes around them written so that they are read the same again."""

import re
from dataclasses import dataclass

from ui.transcript.copying.passage import CopiedBlock, shared_depth
from ui.transcript.markdown.leaves import Container

_BULLETS = "-*+"
_BOXES = {"☐": "[ ] ", "☑": "[x] "}
_MAX_ITEM_NUMBER = 999_999_999
_BLOCK_SYNTAX = re.compile(r"```|~~~|\$\$|\\\[|\\begin|[|#]|___\Z")
_LIST_SEPARATOR = "[//]: #"
"""A definition that nothing uses: two lists of the same kind with nothing else between them would be one."""


@dataclass(frozen=True, slots=True)
class _OpenContainer:
    """A container that may go on. `first` stands before its first line, `rest` before the others.

    `sign` is an item's bullet, or what follows its `number`.
    """

    kind: str
    first: str = ""
    rest: str = ""
    sign: str = ""
    number: int | None = None


class MarkdownWriter:
    """Takes the passages of one message in order. Containers that began before the first of them are left out."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._open: list[_OpenContainer] = []

    def text(self) -> str:
        """All of it."""
        return "\n".join(self._lines)

    def add(self, passage: CopiedBlock) -> None:
        """The next one."""
        if passage.separator is not None and self._lines:
            head, *more = f"{passage.separator}{passage.text}".split("\n")
            self._lines[-1] += head
            self._add_lines(more)
            return
        kept = shared_depth(passage, [each.kind for each in self._open])
        before = self._open[kept] if kept < len(self._open) else None
        # What is added to an item after a blank line belongs to it only where the same item is still open.
        del self._open[kept:]
        if self._lines and not passage.tight:
            self._add_lines([""])
        prefix = self._prefix()
        for depth, each in enumerate(passage.containers[kept:], kept):
            is_sibling = before is not None and before.kind == each.kind == "item"
            opened = self._open_container(each, before if is_sibling else None, passage, prefix if depth > kept else "")
            if is_sibling and _joins_list(opened, before, starts=passage.starts):
                self._add_lines([_LIST_SEPARATOR, ""])
            before = None
            self._open.append(opened)
            prefix += opened.first
            if (
                opened.kind == "footnote"
                and opened.first
                and (passage.containers[depth + 1 :] or _BLOCK_SYNTAX.match(passage.text))
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

    def _open_container(
        self, containers: Container, before: _OpenContainer | None, passage: CopiedBlock, line: str
    ) -> _OpenContainer:
        """`before` is the item before this one, `line` what stands before the item on its line."""
        if containers.kind == "quote":
            return _OpenContainer("quote", "> ", "> ")
        if not containers.marker:
            return _OpenContainer(containers.kind)
        if containers.kind == "footnote":
            return _OpenContainer("footnote", f"[^{containers.marker}]: ", "    ")
        box = _BOXES.get(containers.marker, "")
        if before and before.number is not None and box and not passage.starts:
            number, sign = before.number + 1, before.sign
        elif containers.marker[:-1].isdigit():
            number, sign = int(containers.marker[:-1]), containers.marker[-1]
        else:
            sign = _bullet(before, line, starts=passage.starts)
            return _OpenContainer("item", f"{sign} {box}", "  ", sign)
        first = f"{min(number, _MAX_ITEM_NUMBER)}{sign} "
        return _OpenContainer("item", f"{first}{box}", " " * len(first), sign, number)


def _bullet(before: _OpenContainer | None, line: str, *, starts: bool) -> str:
    """The list's own; another one for another list, and beside a bullet on its line: both could be a rule."""
    used = before.sign if before and before.number is None else ""
    if used and not starts:
        return used
    beside = line.rstrip()[-1:]
    return next(each for each in _BULLETS if each not in (used, beside))


def _joins_list(opened: _OpenContainer, before: _OpenContainer | None, *, starts: bool) -> bool:
    if before is None or opened.number is None or before.number is None or opened.sign != before.sign:
        return False
    return starts or opened.number != before.number + 1
