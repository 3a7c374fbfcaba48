"""Rendered Markdown in one shape, whether it comes from leaves and lines or from HTML.

A shape is a list of blocks: the containers around each, with the marker where it stands, its kind, and its runs of
text, each with its styles and where it leads. Whether a list is tight, titles of links, and where one list ends and
another of the same kind begins are not in it; of links only those that may be opened.
"""

from html.parser import HTMLParser
from typing import NamedTuple

from desktop_agent.markdown.link_targets import safe_target
from ui.transcript.markdown.elements import Leaf
from ui.transcript.markdown.inline import LINE_BREAK, Line, SpanStyle, parse_inline, slice_utf16
from ui.transcript.markdown.parser import References

Run = tuple[str, int, str]
_STYLES = {"em": SpanStyle.ITALIC, "strong": SpanStyle.BOLD, "code": SpanStyle.CODE}
_HEADINGS = {f"h{level}" for level in range(1, 7)}


class Block(NamedTuple):
    """One leaf."""

    containers: tuple[str, ...]
    kind: str
    runs: tuple[Run, ...]


def _joined(runs: list[Run]) -> tuple[Run, ...]:
    out: list[Run] = []
    for text, style, href in runs:
        if text and out and out[-1][1:] == (style, href):
            out[-1] = (out[-1][0] + text, style, href)
        elif text:
            out.append((text, style, href))
    return tuple(out)


def shape_of_leaves(leaves: tuple[Leaf, ...], references: References) -> list[Block]:
    """Return the shape of what is shown."""
    blocks: list[Block] = []
    for leaf in leaves:
        containers = tuple(
            container.kind if container.kind == "quote" else f"{container.kind} {container.marker.rstrip('.)')}"
            for container in leaf.containers
        )
        if leaf.kind in {"paragraph", "heading"}:
            kind = f"h{leaf.level}" if leaf.level else "p"
            blocks.append(Block(containers, kind, _runs(parse_inline(leaf.text, references))))
        else:
            kind = f"code {leaf.info.split()[0] if leaf.info else ''}" if leaf.kind == "code" else leaf.kind
            blocks.append(Block(containers, kind, _joined([(leaf.text, 0, "")])))
    return blocks


def _runs(line: Line) -> tuple[Run, ...]:
    runs: list[Run] = []
    position = 0
    for span in line.spans:
        runs.append((slice_utf16(line.text, position, span.start), 0, ""))
        position = span.start + span.length
        if not span.style & SpanStyle.NOTE:
            runs.append((slice_utf16(line.text, span.start, position), span.style & ~SpanStyle.HIDDEN, span.href))
    runs.append((slice_utf16(line.text, position, 1 << 30), 0, ""))
    return _joined([(text.replace("\n", LINE_BREAK), style, href) for text, style, href in runs])


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.blocks: list[Block] = []
        self._inside: list[str] = []
        # Of each list around the number of its next item, None where items have none.
        self._lists: list[int | None] = []
        self._kind = ""
        self._runs: list[Run] = []
        self._styles: list[int] = []
        self._href = ""
        self._after_break = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        if tag in {"p", "pre", "blockquote", "ul", "ol", "hr", *_HEADINGS}:
            self._flush()
        if tag == "code" and self._kind.startswith("code"):
            self._kind += attributes.get("class", "").removeprefix("language-")
        elif tag in {*_STYLES, "a", "br", "img"}:
            self._open_inline(tag, attributes)
        elif tag in {"ul", "ol"}:
            self._lists.append(int(attributes.get("start", "1")) if tag == "ol" else None)
        elif tag in {"blockquote", "li"}:
            self._inside.append("quote" if tag == "blockquote" else f"item {self._marker()}")
        else:
            self._kind = {"pre": "code ", "hr": "rule"}.get(tag, tag)

    def _open_inline(self, tag: str, attributes: dict[str, str]) -> None:
        if tag == "a":
            self._href = safe_target(attributes.get("href", ""))
        elif tag == "br":
            self._add(LINE_BREAK)
            self._after_break = True
        elif tag == "img":
            target = attributes.get("src", "")
            self._add(f"[{attributes.get('alt') or target}]", SpanStyle.IMAGE, self._href or safe_target(target))
        else:
            self._styles.append(_STYLES[tag])

    def _marker(self) -> str:
        number = self._lists[-1]
        if number is None:
            return "•◦▪"[(self._lists.count(None) - 1) % 3]
        self._lists[-1] = number + 1
        return str(number)

    def handle_endtag(self, tag: str) -> None:
        if tag in {"br", "img"}:
            return
        if tag == "a":
            self._href = ""
        elif tag in _STYLES:
            if not self._kind.startswith("code"):
                self._styles.pop()
        elif tag in {"ul", "ol"}:
            self._lists.pop()
        else:
            self._flush()
            if tag == "li" and self._inside[-1] != "item ":
                self._kind = "p"
                self._flush()
            if tag in {"li", "blockquote"}:
                self._inside.pop()

    def handle_data(self, data: str) -> None:
        if self._kind.startswith("code"):
            self._runs.append((data, 0, ""))
        elif self._kind or data.strip() or self._runs:
            if self._after_break:
                data = data.removeprefix("\n")
            data = data if self._runs else data.lstrip("\n")
            self._add(data.replace("\n", LINE_BREAK))

    def _add(self, text: str, style: int = 0, href: str = "") -> None:
        self._after_break = False
        self._kind = self._kind or "p"
        for other_style in self._styles:
            style |= other_style
        href = href or self._href
        self._runs.append((text, style | (SpanStyle.LINK if href else 0), href))

    def _flush(self) -> None:
        if self._kind:
            is_code = self._kind.startswith("code")
            runs = list(_joined(self._runs))
            if runs and self._kind == "p":
                runs[-1] = (runs[-1][0].rstrip(LINE_BREAK), *runs[-1][1:])
            if runs and is_code:
                runs = [(runs[0][0].removesuffix("\n"), 0, "")]
            self.blocks.append(Block(tuple(self._inside), self._kind, _joined(runs)))
            self._inside = [shape.split(" ")[0] + (" " if shape != "quote" else "") for shape in self._inside]
        self._kind, self._runs = "", []

    def close(self) -> None:
        super().close()
        self._flush()


def shape_of_html(html: str) -> list[Block]:
    """Return the shape of the HTML."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader.blocks
