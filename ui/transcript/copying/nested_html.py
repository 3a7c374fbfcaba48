"""Blocks joined as HTML: lists, quotes and footnotes around them as elements."""

import re
from dataclasses import dataclass
from html import escape

from ui.transcript.copying.passage import CopiedBlock, shared_depth
from ui.transcript.markdown.leaves import Container

_CLOSING_TAG = re.compile(r"</(?:p|h[1-6]|table)>\Z")
_ELEMENT = re.compile(r"\A<(p|h[1-6]|table)>(.*)</\1>\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _OpenElement:
    """A container. `end` closes it, `all_end` the list around it too."""

    kind: str
    list_tag: str = ""
    end: str = ""

    @property
    def all_end(self) -> str:
        """Without anything that follows in its list."""
        return f"{self.end}</{self.list_tag}>" if self.list_tag else self.end


class HtmlWriter:
    """Takes the passages of one message in order."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._open: list[_OpenElement] = []

    def text(self) -> str:
        """All of it, closed."""
        return "".join([*self._parts, *(each.all_end for each in reversed(self._open))])

    def add(self, passage: CopiedBlock) -> None:
        """The next one."""
        if passage.separator is not None and self._parts:
            self._continue_element(passage)
            return
        kept = shared_depth(passage, [each.kind for each in self._open])
        for each in reversed(self._open[kept + 1 :]):
            self._parts.append(each.all_end)
        before = self._open[kept] if kept < len(self._open) else None
        del self._open[kept:]
        for each in passage.containers[kept:]:
            self._begin(each, before, starts=passage.starts)
            before = None
        if before:
            self._parts.append(before.all_end)
        is_first = len(passage.containers) > kept and bool(passage.containers[-1].marker)
        element = _ELEMENT.match(passage.text) if is_first else None
        self._parts.append(element[2] if element and element[1] == "p" else passage.text)

    def _continue_element(self, passage: CopiedBlock) -> None:
        """The rest of a paragraph, of a heading or of a table."""
        element = _ELEMENT.match(passage.text)
        text = element[2] if element else passage.text
        end = _CLOSING_TAG.search(self._parts[-1])
        if end:
            self._parts[-1] = self._parts[-1][: end.start()]
        if not (element and element[1] == "table"):
            self._parts.append("<br>" if passage.separator == "\n" else passage.separator or "")
        self._parts.append(f"{text}{end[0] if end else ''}")

    def _begin(self, containers: Container, before: _OpenElement | None, *, starts: bool) -> None:
        tag = _list_tag(containers.marker) if containers.kind == "item" and containers.marker else ""
        goes_on = before is not None and bool(tag) and not starts and before.list_tag == tag
        if before:
            self._parts.append(before.end if goes_on else before.all_end)
        if containers.kind == "quote":
            self._parts.append("<blockquote>")
            self._open.append(_OpenElement("quote", end="</blockquote>"))
        elif not containers.marker:
            # It began before what is copied.
            self._open.append(_OpenElement(containers.kind))
        elif containers.kind == "footnote":
            self._parts.append(f"<div><sup>{escape(containers.marker)}</sup> ")
            self._open.append(_OpenElement("footnote", end="</div>"))
        else:
            box = f"{containers.marker} " if containers.marker in ("☐", "☑") else ""
            self._parts.append(f"{'' if goes_on else _list_start(tag, containers.marker)}<li>{box}")
            self._open.append(_OpenElement("item", tag, "</li>"))


def _list_tag(marker: str) -> str:
    return "ol" if marker[:-1].isdigit() else "ul"


def _list_start(tag: str, marker: str) -> str:
    return f'<ol start="{int(marker[:-1])}">' if tag == "ol" and marker[:-1] != "1" else f"<{tag}>"
