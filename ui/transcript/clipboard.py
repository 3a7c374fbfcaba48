"""Copy to the clipboard as plain text, Markdown, HTML and CSV.

Blocks are joined inside their lists, quotes and footnotes, so that what is pasted reads the same. A whole long
conversation is put together in slices between frames.
"""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from time import perf_counter

from PySide6.QtCore import QCoreApplication, QMimeData, QObject, QTimer, Signal
from PySide6.QtGui import QGuiApplication, QImage

from desktop_agent.types.hidden_characters import DECEPTIVE_CHARACTERS
from ui.transcript.markdown.elements import Container


@dataclass(frozen=True, slots=True)
class CopiedBlock:
    """A block, or a part of one, written in one form, and where it stood: as in a Leaf."""

    text: str
    containers: tuple[Container, ...] = ()
    tight: bool = False
    starts: bool = True
    separator: str | None = None


def shared_depth(passage: CopiedBlock, around: list[str]) -> int:
    """How many of the containers around the passage before, by their kinds, go on around this one."""
    if passage.starts:
        return 0
    depth = 0
    for each, kind in zip(passage.containers, around, strict=False):
        if each.kind != kind or each.marker:
            break
        depth += 1
    return depth


@dataclass(frozen=True, slots=True)
class CopyExtract:
    """What is copied of a block, in all forms; `before` stands between it and the one before in the plain text."""

    before: str
    text: str
    markdown: CopiedBlock
    html: CopiedBlock


EMPTY_EXTRACT = CopyExtract("", "", CopiedBlock(""), CopiedBlock(""))
"""Time went by, and nothing was copied in it. It is known by being this very one."""

CopyStep = CopyExtract | str | int
"""Of copying: something copied, whose message begins, or how many messages are done."""


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


_CHARSET = '<meta charset="utf-8">'
_MESSAGE_SEPARATOR = "\n\n"


class CopyFormats:
    """Collects messages. `finish` must have run to its end before `plain`, `markdown` and `html` are all of it."""

    def __init__(self) -> None:
        self.plain = self.markdown = self.html = ""
        self._done: tuple[list[str], list[str], list[str]] = ([], [], [])
        self._begin()

    def _begin(self) -> None:
        self._plain: list[str] = []
        self._markdown, self._html = MarkdownWriter(), HtmlWriter()

    def add(self, extract: CopyExtract) -> None:
        """A block of the message at hand."""
        if extract is EMPTY_EXTRACT:
            return
        self._plain += [extract.before, extract.text]
        self._markdown.add(extract.markdown)
        self._html.add(extract.html)

    def finish_message(self) -> None:
        """What follows belongs to another one."""
        texts = ("".join(self._plain), self._markdown.text(), self._html.text())
        for done, text in zip(self._done, texts, strict=True):
            if text:
                done.append(text)
        self._begin()

    def add_heading(self, words: str) -> None:
        """A heading between messages, for those who read Markdown."""
        self._done[1].append(f"## {words}")

    def join_in_steps(self) -> Iterator[None]:
        """Join everything, a form at a time: each may be megabytes."""
        self.finish_message()
        plain, markdown, html = self._done
        self.plain = _MESSAGE_SEPARATOR.join(plain)
        yield
        self.markdown = _MESSAGE_SEPARATOR.join(markdown)
        yield
        self.html = "".join([_CHARSET, *html]) if html else ""
        yield


def copy_formats_of(extracts: Iterable[CopyExtract]) -> CopyFormats:
    """One message at once."""
    forms = CopyFormats()
    for extract in extracts:
        forms.add(extract)
    for _ in forms.join_in_steps():
        pass
    return forms


# What a spreadsheet takes for a formula (OWASP, CSV Injection); a plain number is none. Some skip what nobody sees.
_INVISIBLE = rf"[\s\u00ad{DECEPTIVE_CHARACTERS}]"
_FORMULA = re.compile(rf"{_INVISIBLE}*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")
_NUMBER = re.compile(r"[+-]?(?:\d[\d.,' \u00a0]*|[.,]\d+)(?:[eE][+-]?\d+)?\s*%?")


def table_to_csv(rows: Sequence[Sequence[str]]) -> str:
    """Quoted as RFC 4180 says. A cell that a spreadsheet would run gets an apostrophe before it, and is text."""
    written = io.StringIO()
    csv.writer(written).writerows([[_escape_formula(cell) for cell in row] for row in rows])
    return written.getvalue()


def _escape_formula(cell: str) -> str:
    return f"'{cell}" if _FORMULA.match(cell) and not _NUMBER.fullmatch(cell) else cell


MARKDOWN_TYPE = "text/markdown"

_SLICE_SECONDS = 0.006
"""Seconds of work between two looks at the event loop."""


class ClipboardWriter(QObject):
    """Puts text on the clipboard; a later copy replaces one that is still being put together.

    `progress` is a sentence while that takes its time, and empty when it is over.
    """

    progress = Signal(str)

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self._steps: Iterator[object] = iter(())
        self._done = 0
        self._is_slow = False
        self._timer = QTimer(self)
        self._timer.setInterval(0)
        self._timer.timeout.connect(self._continue)

    def copy(self, text: str) -> None:
        """This text, plain."""
        self.stop()
        if text:
            QGuiApplication.clipboard().setText(text)

    def copy_markdown(self, text: str) -> None:
        """This text, which is Markdown."""
        self.stop()
        if text:
            data = QMimeData()
            data.setText(text)
            data.setData(MARKDOWN_TYPE, text.encode("utf-8", "replace"))
            QGuiApplication.clipboard().setMimeData(data)

    def copy_image(self, image: QImage) -> None:
        """This picture."""
        self.stop()
        QGuiApplication.clipboard().setImage(image)

    def copy_steps(self, steps: Iterator[CopyStep], *, markdown: bool = False) -> None:
        """What these steps make: plain, Markdown and HTML; with `markdown` the plain text is Markdown too."""
        self.stop()
        self._done = 0
        self._steps = self._copy_in_steps(steps, markdown=markdown)
        self._timer.start()
        self._continue()

    def stop(self) -> None:
        """Give up a copy that is not complete."""
        self._timer.stop()
        self._steps = iter(())
        if self._is_slow:
            self._is_slow = False
            self.progress.emit("")

    def _copy_in_steps(self, steps: Iterator[CopyStep], *, markdown: bool) -> Iterator[None]:
        forms = CopyFormats()
        for step in steps:
            if isinstance(step, CopyExtract):
                forms.add(step)
            elif isinstance(step, str):
                forms.add_heading(step)
            else:
                forms.finish_message()
                self._done = step
            yield
        yield from forms.join_in_steps()
        data = QMimeData()
        data.setText(forms.markdown if markdown else forms.plain)
        data.setData(MARKDOWN_TYPE, forms.markdown.encode("utf-8", "replace"))
        yield
        if not markdown:
            data.setHtml(forms.html)
            yield
        if forms.plain:
            QGuiApplication.clipboard().setMimeData(data)

    def _continue(self) -> None:
        until = perf_counter() + _SLICE_SECONDS
        for _ in self._steps:
            if perf_counter() > until:
                self._is_slow = True
                words = QCoreApplication.translate("Transcript", "Copying… {0} messages so far.")
                self.progress.emit(words.format(self._done))
                return
        self.stop()
