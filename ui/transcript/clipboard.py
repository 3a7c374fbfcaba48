"""Copy to the clipboard as plain text, Markdown, HTML and CSV.

Blocks are nested in their lists, quotes and footnotes again, so that the pasted text reads the same. A whole long
conversation is assembled in slices between frames.
"""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from time import perf_counter

from PySide6.QtCore import QMimeData, QObject, QTimer, Signal
from PySide6.QtGui import QGuiApplication, QImage

from desktop_agent.types.hidden_characters import DECEPTIVE_CHARACTERS
from ui.transcript.markdown.elements import Container
from ui.transcript.words import tr


@dataclass(frozen=True, slots=True)
class CopiedBlock:
    """A block or a part of one, serialized in one format, with the fields of its Leaf."""

    text: str
    containers: tuple[Container, ...] = ()
    tight: bool = False
    starts: bool = True
    separator: str | None = None


def shared_depth(block: CopiedBlock, open_kinds: list[str]) -> int:
    """Return how many containers of the previous block continue around this one."""
    if block.starts:
        return 0
    depth = 0
    for container, kind in zip(block.containers, open_kinds, strict=False):
        if container.kind != kind or container.marker:
            break
        depth += 1
    return depth


@dataclass(frozen=True, slots=True)
class CopyExtract:
    """The parts of a block to copy in all formats; `before` separates it from the previous one in the plain text."""

    before: str
    text: str
    markdown: CopiedBlock
    html: CopiedBlock


EMPTY_EXTRACT = CopyExtract("", "", CopiedBlock(""), CopiedBlock(""))
"""A step in which time passed but nothing was copied. It is recognised by identity."""

CopyStep = CopyExtract | str | int
"""An extract to copy, the heading of a message that begins, or the number of messages done."""


_BULLETS = "-*+"
_BOXES = {"☐": "[ ] ", "☑": "[x] "}
_MAX_ITEM_NUMBER = 999_999_999
_BLOCK_SYNTAX = re.compile(r"```|~~~|\$\$|\\\[|\\begin|[|#]|___\Z")
# An unused definition that separates two lists of the same kind, which would otherwise become one.
_LIST_SEPARATOR = "[//]: #"


@dataclass(frozen=True, slots=True)
class _OpenContainer:
    """A container that may continue. `first` precedes its first line, `rest` the others.

    `sign` is an item's bullet, or the punctuation after its `number`.
    """

    kind: str
    first: str = ""
    rest: str = ""
    sign: str = ""
    number: int | None = None


class MarkdownWriter:
    """Writes the blocks of one message in order, without containers that began before the first of them."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._open: list[_OpenContainer] = []

    def text(self) -> str:
        """Return all text."""
        return "\n".join(self._lines)

    def add(self, block: CopiedBlock) -> None:
        """Add the next block."""
        if block.separator is not None and self._lines:
            head, *more = f"{block.separator}{block.text}".split("\n")
            self._lines[-1] += head
            self._add_lines(more)
            return
        shared = shared_depth(block, [container.kind for container in self._open])
        before = self._open[shared] if shared < len(self._open) else None
        # A blank line continues an item only while the same item is still open.
        del self._open[shared:]
        if self._lines and not block.tight:
            self._add_lines([""])
        prefix = self._prefix()
        for depth, container in enumerate(block.containers[shared:], shared):
            is_sibling = before is not None and before.kind == container.kind == "item"
            line = prefix if depth > shared else ""
            opened = self._open_container(container, before if is_sibling else None, block, line)
            if is_sibling and _joins_list(opened, before, starts=block.starts):
                self._add_lines([_LIST_SEPARATOR, ""])
            before = None
            self._open.append(opened)
            prefix += opened.first
            is_note = opened.kind == "footnote" and opened.first
            if is_note and (block.containers[depth + 1 :] or _BLOCK_SYNTAX.match(block.text)):
                # The parser miscounts columns of blocks on the line of the label.
                self._lines.append(prefix.rstrip())
                prefix = self._prefix()
        head, *more = block.text.split("\n")
        self._lines.append(f"{prefix}{head}" if head else prefix.rstrip())
        self._add_lines(more)

    def _prefix(self) -> str:
        return "".join(container.rest for container in self._open)

    def _add_lines(self, lines: list[str]) -> None:
        prefix = self._prefix()
        bare = prefix.rstrip()
        self._lines += [f"{prefix}{line}" if line else bare for line in lines]

    def _open_container(
        self, container: Container, before: _OpenContainer | None, block: CopiedBlock, line: str
    ) -> _OpenContainer:
        """Open a container. `before` is the previous item of the list, `line` the text before the item on its line."""
        if container.kind == "quote":
            return _OpenContainer("quote", "> ", "> ")
        if not container.marker:
            return _OpenContainer(container.kind)
        if container.kind == "footnote":
            return _OpenContainer("footnote", f"[^{container.marker}]: ", "    ")
        box = _BOXES.get(container.marker, "")
        if before and before.number is not None and box and not block.starts:
            number, sign = before.number + 1, before.sign
        elif container.marker[:-1].isdigit():
            number, sign = int(container.marker[:-1]), container.marker[-1]
        else:
            sign = _bullet(before, line, starts=block.starts)
            return _OpenContainer("item", f"{sign} {box}", "  ", sign)
        first = f"{min(number, _MAX_ITEM_NUMBER)}{sign} "
        return _OpenContainer("item", f"{first}{box}", " " * len(first), sign, number)


def _bullet(before: _OpenContainer | None, line: str, *, starts: bool) -> str:
    """Return the bullet of the list, or another one to separate lists, or where two equal bullets could be a rule."""
    used = before.sign if before and before.number is None else ""
    if used and not starts:
        return used
    neighbour = line.rstrip()[-1:]
    return next(bullet for bullet in _BULLETS if bullet not in (used, neighbour))


def _joins_list(opened: _OpenContainer, before: _OpenContainer | None, *, starts: bool) -> bool:
    if before is None or opened.number is None or before.number is None or opened.sign != before.sign:
        return False
    return starts or opened.number != before.number + 1


_CLOSING_TAG = re.compile(r"</(?:p|h[1-6]|table)>\Z")
_ELEMENT = re.compile(r"\A<(p|h[1-6]|table)>(.*)</\1>\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class _OpenElement:
    """A container in HTML. `end` closes it, `all_end` its list too."""

    kind: str
    list_tag: str = ""
    end: str = ""

    @property
    def all_end(self) -> str:
        return f"{self.end}</{self.list_tag}>" if self.list_tag else self.end


class HtmlWriter:
    """Writes the blocks of one message in order."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._open: list[_OpenElement] = []

    def text(self) -> str:
        """Return all HTML, with open elements closed."""
        return "".join([*self._parts, *(element.all_end for element in reversed(self._open))])

    def add(self, block: CopiedBlock) -> None:
        """Add the next block."""
        if block.separator is not None and self._parts:
            self._continue_element(block)
            return
        depth = shared_depth(block, [container.kind for container in self._open])
        for container in reversed(self._open[depth + 1 :]):
            self._parts.append(container.all_end)
        before = self._open[depth] if depth < len(self._open) else None
        del self._open[depth:]
        for container in block.containers[depth:]:
            self._begin(container, before, starts=block.starts)
            before = None
        if before:
            self._parts.append(before.all_end)
        is_first = len(block.containers) > depth and bool(block.containers[-1].marker)
        element = _ELEMENT.match(block.text) if is_first else None
        self._parts.append(element[2] if element and element[1] == "p" else block.text)

    def _continue_element(self, block: CopiedBlock) -> None:
        element = _ELEMENT.match(block.text)
        text = element[2] if element else block.text
        end = _CLOSING_TAG.search(self._parts[-1])
        if end:
            self._parts[-1] = self._parts[-1][: end.start()]
        if not (element and element[1] == "table"):
            self._parts.append("<br>" if block.separator == "\n" else block.separator or "")
        self._parts.append(f"{text}{end[0] if end else ''}")

    def _begin(self, container: Container, before: _OpenElement | None, *, starts: bool) -> None:
        tag = _list_tag(container.marker) if container.kind == "item" and container.marker else ""
        continues_list = before is not None and bool(tag) and not starts and before.list_tag == tag
        if before:
            self._parts.append(before.end if continues_list else before.all_end)
        if container.kind == "quote":
            self._parts.append("<blockquote>")
            self._open.append(_OpenElement("quote", end="</blockquote>"))
        elif not container.marker:
            # It began before the copied part.
            self._open.append(_OpenElement(container.kind))
        elif container.kind == "footnote":
            self._parts.append(f"<div><sup>{escape(container.marker)}</sup> ")
            self._open.append(_OpenElement("footnote", end="</div>"))
        else:
            box = f"{container.marker} " if container.marker in ("☐", "☑") else ""
            self._parts.append(f"{'' if continues_list else _list_start(tag, container.marker)}<li>{box}")
            self._open.append(_OpenElement("item", tag, "</li>"))


def _list_tag(marker: str) -> str:
    return "ol" if marker[:-1].isdigit() else "ul"


def _list_start(tag: str, marker: str) -> str:
    return f'<ol start="{int(marker[:-1])}">' if tag == "ol" and marker[:-1] != "1" else f"<{tag}>"


_CHARSET = '<meta charset="utf-8">'
_MESSAGE_SEPARATOR = "\n\n"


class CopyFormats:
    """Collects messages in all formats. The texts are complete once `join_in_steps` has finished."""

    def __init__(self) -> None:
        self.plain = self.markdown = self.html = ""
        self._done: tuple[list[str], list[str], list[str]] = ([], [], [])
        self._begin()

    def _begin(self) -> None:
        self._plain: list[str] = []
        self._markdown, self._html = MarkdownWriter(), HtmlWriter()

    def add(self, extract: CopyExtract) -> None:
        """Add a block of the current message."""
        if extract is EMPTY_EXTRACT:
            return
        self._plain += [extract.before, extract.text]
        self._markdown.add(extract.markdown)
        self._html.add(extract.html)

    def finish_message(self) -> None:
        """Finish the current message."""
        texts = ("".join(self._plain), self._markdown.text(), self._html.text())
        for finished, text in zip(self._done, texts, strict=True):
            if text:
                finished.append(text)
        self._begin()

    def add_heading(self, words: str) -> None:
        """Add a heading between messages, in Markdown only."""
        self._done[1].append(f"## {words}")

    def join_in_steps(self) -> Iterator[None]:
        """Join all messages, one format in each step: each may be megabytes."""
        self.finish_message()
        plain, markdown, html = self._done
        self.plain = _MESSAGE_SEPARATOR.join(plain)
        yield
        self.markdown = _MESSAGE_SEPARATOR.join(markdown)
        yield
        self.html = "".join([_CHARSET, *html]) if html else ""
        yield


# What spreadsheets take for a formula (OWASP, CSV Injection), but for plain numbers. Some skip invisible characters.
_INVISIBLE = rf"[\s\u00ad{DECEPTIVE_CHARACTERS}]"
_FORMULA = re.compile(rf"{_INVISIBLE}*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")
_NUMBER = re.compile(r"[+-]?(?:\d[\d.,' \u00a0]*|[.,]\d+)(?:[eE][+-]?\d+)?\s*%?")


def table_to_csv(rows: Sequence[Sequence[str]]) -> str:
    """Return CSV as in RFC 4180. Cells that a spreadsheet would run get an apostrophe, which makes them text."""
    buffer = io.StringIO()
    csv.writer(buffer).writerows([[_escape_formula(cell) for cell in row] for row in rows])
    return buffer.getvalue()


def _escape_formula(cell: str) -> str:
    return f"'{cell}" if _FORMULA.match(cell) and not _NUMBER.fullmatch(cell) else cell


MARKDOWN_TYPE = "text/markdown"

# Seconds of work between two turns of the event loop.
_SLICE_SECONDS = 0.006


class ClipboardWriter(QObject):
    """Writes to the clipboard. A later copy replaces one still in progress.

    `progress` carries a sentence during a long copy, and an empty string when it ends.
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
        """Copy plain text."""
        self.stop()
        if text:
            QGuiApplication.clipboard().setText(text)

    def copy_markdown(self, text: str) -> None:
        """Copy Markdown text."""
        self.stop()
        if text:
            data = QMimeData()
            data.setText(text)
            data.setData(MARKDOWN_TYPE, text.encode("utf-8", "replace"))
            QGuiApplication.clipboard().setMimeData(data)

    def copy_image(self, image: QImage) -> None:
        """Copy an image."""
        self.stop()
        QGuiApplication.clipboard().setImage(image)

    def copy_steps(self, steps: Iterator[CopyStep], *, markdown: bool = False) -> None:
        """Copy what the steps yield as plain text, Markdown and HTML, or with `markdown` as Markdown only."""
        self.stop()
        self._done = 0
        self._steps = self._copy_in_steps(steps, markdown=markdown)
        self._timer.start()
        self._continue()

    def stop(self) -> None:
        """Cancel a copy in progress."""
        self._timer.stop()
        self._steps = iter(())
        if self._is_slow:
            self._is_slow = False
            self.progress.emit("")

    def _copy_in_steps(self, steps: Iterator[CopyStep], *, markdown: bool) -> Iterator[None]:
        formats = CopyFormats()
        for step in steps:
            if isinstance(step, CopyExtract):
                formats.add(step)
            elif isinstance(step, str):
                formats.add_heading(step)
            else:
                formats.finish_message()
                self._done = step
            yield
        yield from formats.join_in_steps()
        data = QMimeData()
        data.setText(formats.markdown if markdown else formats.plain)
        data.setData(MARKDOWN_TYPE, formats.markdown.encode("utf-8", "replace"))
        yield
        if not markdown:
            data.setHtml(formats.html)
            yield
        if formats.plain:
            QGuiApplication.clipboard().setMimeData(data)

    def _continue(self) -> None:
        until = perf_counter() + _SLICE_SECONDS
        for _ in self._steps:
            if perf_counter() > until:
                self._is_slow = True
                self.progress.emit(tr("Copying… {0} messages so far.").format(self._done))
                return
        self.stop()
