"""A tree of HTML as Markdown: headings, paragraphs, code, lists, tables, quotations."""

import re
from collections.abc import Callable, Iterator

from desktop_agent.tools.web.reading.inline import Lines, code_span, fence_for
from desktop_agent.tools.web.reading.tables import is_layout, rows_of, table_lines
from desktop_agent.tools.web.reading.tree import BLOCKS, HEADINGS, Element

_LISTS = frozenset({"ul", "ol", "menu", "dir"})
# How makers of highlighters say which language it is: GitHub, Prism and highlight.js, Sphinx, MDN.
_LANGUAGE = re.compile(
    r"(?:^|\s)(?:highlight-source-|highlight-text-|language-|lang-|highlight-|brush:\s*|sourceCode\s+)([A-Za-z0-9+#_.-]+)"
)
_NO_LANGUAGE = frozenset({"default", "none", "notranslate", "text", "plaintext", "plain", "wrapper"})
# Signatures in the documentation of Sphinx and rustdoc: code, though made of words and links.
_SIGNATURES = frozenset({"sig", "code-header"})
# Numbers of lines, and what mdBook folds away.
_BESIDE_CODE = frozenset(
    {"boring", "linenos", "lineno", "linenodiv", "gutter", "line-numbers", "line-numbers-rows", "hljs-ln-numbers"}
)
_TITLES = frozenset({"admonition-title", "admonitionblock-title", "callout-title", "alert-title"})
_ITEM = re.compile(r"(?:-|\d+\.) ")
_UNSAID = frozenset({"hideme", "example-header", "code-header-lang", "tooltip"})


class Writer:
    """Writes the blocks of a page. `base` is what its addresses are relative to."""

    def __init__(self, base: str) -> None:
        self._lines = Lines(base)
        self._language = ""
        self._writers: dict[str, Callable[[Element], list[str]]] = {
            "pre": self._code,
            "table": self._table,
            "blockquote": self._quotation,
            "hr": lambda _node: ["---"],
            "dl": self._terms,
            **dict.fromkeys(_LISTS, self._list),
            **dict.fromkeys(HEADINGS, self._heading),
        }

    def page(self, element: Element) -> str:
        """All of it."""
        return "\n\n".join(self.blocks(element)) + "\n"

    def blocks(self, element: Element) -> list[str]:
        """What is in it, without lines between."""
        made: list[str] = []
        run: list[Element | str] = []
        for each in (*element.children, None):
            if each is not None and (isinstance(each, str) or not _begins_lines(each)):
                run.append(each)
                continue
            if run and (paragraph := self._lines.of(run)):
                made.append(paragraph)
            run = []
            if each is not None:
                made += self._block(each)
        return made

    def _block(self, node: Element) -> list[str]:
        if node.words & _UNSAID:
            return []
        if writer := self._writers.get(node.name):
            return writer(node)
        if node.words & _TITLES and (line := self._lines.line(node)):
            return [f"**{line}**"]
        if node.name == "a" and (line := self._lines.of([node]).replace("\n", " ")):
            return [line]
        if node.name == "summary" and not node.has_blocks:
            return [f"**{line}**"] if (line := self._lines.line(node)) else []
        around, self._language = self._language, _language(node) or self._language
        made = self.blocks(node)
        self._language = around
        return made

    def _heading(self, node: Element) -> list[str]:
        text = code_span(_without_anchors(node)) if node.words & _SIGNATURES else self._lines.line(node)
        return [f"{'#' * int(node.name[1])} {text}"] if text else []

    def _code(self, node: Element) -> list[str]:
        text = _code_text(node).strip("\n").rstrip()
        if not text.strip():
            return []
        fence = fence_for(text, 3)
        return [f"{fence}{_own_language(node) or self._language}\n{text}\n{fence}"]

    def _quotation(self, node: Element) -> list[str]:
        text = "\n\n".join(self.blocks(node))
        return ["\n".join(f"> {line}".rstrip() for line in text.split("\n"))] if text else []

    def _list(self, node: Element) -> list[str]:
        start = node.attributes.get("start", "")
        number = int(start) if start.isdecimal() and len(start) < 10 else 1
        items: list[str] = []
        for each in node.elements:
            if each.name in _LISTS and items:
                # Not allowed, and written by many: a list beside the item that it belongs to.
                items[-1] += "\n" + _indented("\n".join(self._list(each)), 2)
                continue
            mark = f"{number}. " if node.name == "ol" else "- "
            body = self.blocks(each) if each.name != "a" else [self._lines.of([each])]
            if text := _joined(body):
                items.append(mark + _indented(text, len(mark)).lstrip(" "))
                number += 1
        return ["\n".join(items)] if items else []

    def _terms(self, node: Element) -> list[str]:
        items: list[str] = []
        for each in _in_groups(node):
            if each.name == "dt":
                is_code = bool(each.words & _SIGNATURES)
                text = code_span(_without_anchors(each)) if is_code else " ".join(self.blocks(each))
                items += [f"- {text}"] if text else []
            elif text := "\n\n".join(self.blocks(each)):
                items.append(_indented(text, 2) if items else text)
        return ["\n".join(items)] if items else []

    def _table(self, node: Element) -> list[str]:
        rows = rows_of(node)
        if is_layout(node, rows):
            cells = [cell for row in rows for cell in row if not cell.words & _BESIDE_CODE]
            return [block for cell in cells for block in self.blocks(cell)]
        lines = table_lines([[(self._cell(cell), _span(cell)) for cell in row] for row in rows])
        captions = [self._lines.line(each) for each in node.elements if each.name == "caption"]
        return [*filter(None, captions), "\n".join(lines)] if lines else []

    def _cell(self, cell: Element) -> str:
        return " ".join(self.blocks(cell)).replace("\n", " ").replace("|", "\\|")


def _begins_lines(node: Element) -> bool:
    return node.name in BLOCKS or node.has_blocks


def _in_groups(node: Element) -> Iterator[Element]:
    """The terms and descriptions, which may be grouped in a div."""
    for each in node.elements:
        if each.name == "div":
            yield from _in_groups(each)
        else:
            yield each


def _without_anchors(node: Element) -> str:
    return node.text().rstrip("¶§# \n")


def _code_text(node: Element) -> str:
    """As it stands there, without the numbers of lines."""
    pieces: list[str] = []

    def gather(part: Element) -> None:
        for each in part.children:
            if isinstance(each, str):
                pieces.append(each)
            elif each.name == "br":
                pieces.append("\n")
            elif not each.words & _BESIDE_CODE:
                if each.name in BLOCKS and pieces and not pieces[-1].endswith("\n"):
                    pieces.append("\n")
                gather(each)

    gather(node)
    return "".join(pieces).replace("\r\n", "\n")


def _own_language(node: Element) -> str:
    return next(filter(None, (_language(each) for each in (node, *node.elements))), "")


def _language(node: Element) -> str:
    found = _LANGUAGE.search(node.attributes.get("class", ""))
    name = found[1].lower() if found else ""
    return name if name not in _NO_LANGUAGE and len(name) < 20 else ""


def _span(cell: Element) -> int:
    said = cell.attributes.get("colspan", "1")
    return min(int(said), 50) if said.isdecimal() and len(said) < 4 else 1


def _joined(blocks: list[str]) -> str:
    """An item of a list: its first paragraph and the lists in it close together, anything else apart."""
    text = ""
    for each in blocks:
        is_list = _ITEM.match(each)
        text += ("" if not text else "\n" if is_list else "\n\n") + each
    return text


def _indented(text: str, by: int) -> str:
    return "\n".join(" " * by + line if line else "" for line in text.split("\n"))
