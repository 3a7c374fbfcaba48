"""Convert HTML to Markdown: elements, code blocks, tables and links."""

import re
from collections.abc import Callable, Iterator
from itertools import chain
from urllib.parse import urljoin

from bs4 import Tag
from bs4.element import NavigableString
from markdownify import MarkdownConverter

from desktop_agent.tools.web.html_parser import (
    BLOCKS,
    HEADINGS,
    attribute,
    child_elements,
    class_names,
    iter_elements,
    name_set,
    remove_children,
)

BESIDE_CODE = frozenset(
    {
        *("linenos", "lineno", "linenodiv", "gutter", "rouge-gutter", "lnt", "line-numbers", "line-numbers-rows"),
        *("hljs-ln-numbers", "boring"),
    }
)
"""Classes of line numbers, and of what mdBook folds away."""

# GitHub, Prism and highlight.js, Sphinx, MDN.
_LANGUAGE = re.compile(
    r"(?:^|\s)(?:highlight-source-|highlight-text-|language-|lang-|highlight-|brush:\s*|sourceCode\s+)([A-Za-z0-9+#_.-]+)"
)
_NO_LANGUAGE = frozenset({"default", "none", "notranslate", "text", "plaintext", "plain", "wrapper"})
_TICKS = re.compile("`+")


def code_block(pre: Tag) -> str:
    """Write a code block with its language; empty when there is no code."""
    text = _text(pre).strip("\n").rstrip()
    if not text.strip():
        return ""
    fence = _fence(text, 3)
    return f"{fence}{_language(pre)}\n{text}\n{fence}"


def code_span(text: str) -> str:
    """Write code within a line, whatever marks are in it (CommonMark, 6.1)."""
    text = " ".join(text.split())
    if not text:
        return ""
    fence = _fence(text, 1)
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _fence(text: str, minimum: int) -> str:
    """Return more backticks than the text has in a row."""
    longest = max(map(len, _TICKS.findall(text)), default=0)
    return "`" * max(minimum, longest + 1)


def _text(pre: Tag) -> str:
    """Return the code as it is in the page, without line numbers."""
    pieces: list[str] = []

    def gather(part: Tag) -> None:
        for content in part.contents:
            if isinstance(content, NavigableString):
                pieces.append(str(content))
            elif not isinstance(content, Tag) or class_names(content) & BESIDE_CODE:
                continue
            elif content.name == "br":
                pieces.append("\n")
            else:
                if content.name in BLOCKS and pieces and not pieces[-1].endswith("\n"):
                    pieces.append("\n")
                gather(content)

    gather(pre)
    return "".join(pieces)


def _language(pre: Tag) -> str:
    """Find the language at the code itself, or at something around it."""
    elements: list[Tag] = [pre, *child_elements(pre), *pre.parents]
    return next((name for element in elements if (name := _language_class(element))), "")


def _language_class(element: Tag) -> str:
    match = _LANGUAGE.search(attribute(element, "class"))
    name = match[1].lower() if match else ""
    return name if name not in _NO_LANGUAGE and len(name) < 20 else ""


_PARTS = frozenset({"thead", "tbody", "tfoot"})
_CELLS = frozenset({"td", "th"})
_NEVER_IN_CELLS = HEADINGS | {"table", "form"}
_MAX_COLUMNS = 60
_MAX_ROWSPAN = 1_000


def table_rows(table: Tag) -> list[list[Tag]]:
    """Return its cells, row by row; without those of nested tables."""
    parts = chain.from_iterable(
        child_elements(part) if part.name in _PARTS else (part,) for part in child_elements(table)
    )
    rows = ([cell for cell in child_elements(row) if cell.name in _CELLS] for row in parts if row.name == "tr")
    return list(filter(None, rows))


def is_layout(table: Tag, rows: list[list[Tag]]) -> bool:
    """Return whether it is no table of data: only there for layout, as old pages and highlighters do."""
    if attribute(table, "role").lower() in {"presentation", "none"}:
        return True
    cells = [cell for row in rows for cell in row]
    names = {element.name for cell in cells for element in iter_elements(cell)}
    if names & _NEVER_IN_CELLS or max((len(row) for row in rows), default=0) > _MAX_COLUMNS:
        return True
    if len(rows) < 2 or all(len(row) == 1 for row in rows):
        return "th" not in names
    return "pre" in names and "th" not in names


def table_lines(rows: list[list[Tag]], text_of: Callable[[Tag], str]) -> list[str]:
    """Write a GFM table, the first row as the head. A cell over several columns or rows stands in the first."""
    wide = [line for line in _place_cells(rows, text_of) if any(line)]
    if not wide:
        return []
    columns = max(map(len, wide))
    head, *rest = [_line([*line, *[""] * (columns - len(line))]) for line in wide]
    return [head, _line(["---"] * columns), *rest]


def _place_cells(rows: list[list[Tag]], text_of: Callable[[Tag], str]) -> Iterator[list[str]]:
    spanned: dict[int, int] = {}  # column: how many rows the cell above goes on for
    for row in rows:
        line: list[str] = []
        next_spanned: dict[int, int] = {}
        for cell in row:
            _skip_spanned(line, spanned, next_spanned)
            if len(line) >= _MAX_COLUMNS:
                break
            span, tall = _span(cell, "colspan", _MAX_COLUMNS), _span(cell, "rowspan", _MAX_ROWSPAN)
            next_spanned.update(dict.fromkeys(range(len(line), len(line) + span), tall - 1))
            line += [text_of(cell), *[""] * (span - 1)]
        _skip_spanned(line, spanned, next_spanned)
        spanned = next_spanned
        yield line[:_MAX_COLUMNS]


def _skip_spanned(line: list[str], spanned: dict[int, int], next_spanned: dict[int, int]) -> None:
    """Leave empty the columns that a cell of an earlier row reaches into."""
    while remaining := spanned.get(len(line), 0):
        next_spanned[len(line)] = remaining - 1
        line.append("")


def _span(cell: Tag, name: str, most: int) -> int:
    value = attribute(cell, name)
    return max(1, min(int(value), most)) if value.isdecimal() and len(value) < 5 else 1


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


SPACES = re.compile(r"[ \t\r\n\f]+")

# Signatures in the documentation of Sphinx and rustdoc: code, though made of words and links.
_SIGNATURES = frozenset({"sig", "code-header"})
_TITLES = frozenset({"admonition-title", "admonitionblock-title", "callout-title", "alert-title"})
_MAX_ADDRESS_LENGTH = 1_000


# Also what would end the address, or its line.
_NOT_IN_ADDRESSES = re.compile(r"[\x00-\x20()<>\[\]\\\x7f-\xa0]")


def escape_brackets(text: str) -> str:
    """Escape the brackets in the text of a link if they do not pair up."""
    depth = 0
    for bracket in re.findall(r"(?<!\\)[\[\]]", text):
        depth += 1 if bracket == "[" else -1
        if depth < 0:
            break
    is_sound = depth == 0 and "](" not in re.sub(r"!\[[^\[\]]*\]\([^()]*\)", "", text)
    return text if is_sound else re.sub(r"(?<!\\)([\[\]])", r"\\\1", text)


def _normalize_href(href: str) -> str:
    """Normalize as the WHATWG URL standard: drop line ends and tabs; backslashes of a web address are slashes."""
    plain = re.sub(r"[\t\r\n]", "", href.strip())
    before, mark, after = plain.partition("?")
    return before.replace("\\", "/") + mark + after


def _keep_on_one_line(convert_inline: Callable[..., str]) -> Callable[..., str]:
    """Put marks around words; none around words that are marked already, nor over the end of a line."""

    def convert(self: "_MarkdownWriter", el: Tag, text: str, parent_tags: set[str]) -> str:
        inner = text.strip()
        if not inner:
            return " " if text else ""
        marked = convert_inline(self, el, text, parent_tags)
        is_marked = inner.startswith(marked.strip().partition(inner)[0] or "\n")
        return text if "\n" in inner or is_marked else marked

    return convert


class _MarkdownWriter(MarkdownConverter):
    """Writes the elements of a page; the library writes those that are not named here."""

    def __init__(self, base: str) -> None:
        super().__init__(
            heading_style="atx",
            bullets="-",
            escape_asterisks=False,
            escape_underscores=False,
            sub_symbol="<sub>",
            sup_symbol="<sup>",
            wrap=True,  # a line end in the source is a space,
            wrap_width=None,  # and paragraphs stay on one line
        )
        self._base = base
        self._numbers: dict[int, int] = {}
        self._writers = {"a": self._link, "math": self._formula, "pre": self._code, "table": self._table}

    def address(self, href: str) -> str | None:
        """Return where a link leads; None for one within the page itself, or to something outside of the web."""
        try:
            url = urljoin(self._base, _normalize_href(href))
        except ValueError:
            return None
        is_web = url.lower().startswith(("http://", "https://", "mailto:"))
        if href.startswith("#") or not href or not is_web or len(url) > _MAX_ADDRESS_LENGTH:
            return None
        return _NOT_IN_ADDRESSES.sub(lambda match: f"%{ord(match[0]):02X}", url)

    def process_text(self, el: NavigableString, parent_tags: set[str] | None = None) -> str:
        """Keep text that looks like a link, and is none, from looking like one."""
        text = super().process_text(el, parent_tags)
        if "]" not in text or "_noformat" in (parent_tags or ()):
            return text
        following = el.find_next(string=True) if text.endswith("]") else None
        is_split = following is not None and str(following).startswith("(")
        return text.replace("](", "\\](") if not is_split else text[:-1].replace("](", "\\](") + "\\]"

    convert_b = convert_strong = _keep_on_one_line(MarkdownConverter.convert_b)
    convert_em = convert_i = _keep_on_one_line(MarkdownConverter.convert_em)
    convert_del = convert_s = convert_strike = _keep_on_one_line(MarkdownConverter.convert_del)
    convert_sub = _keep_on_one_line(MarkdownConverter.convert_sub)
    convert_tt = MarkdownConverter.convert_code

    def convert_sup(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """Keep marks of references as they are."""
        return text if text.startswith("[") else super().convert_sup(el, text, parent_tags)

    def convert_br(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        del el, text
        return " " if "_inline" in parent_tags else "\n"

    def convert_img(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        del text, parent_tags
        alt = escape_brackets(SPACES.sub(" ", attribute(el, "alt")).strip())
        address = self.address(attribute(el, "src"))
        return f"![{alt}]({address})" if alt and address else alt

    def convert_input(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        del text, parent_tags
        if attribute(el, "type").lower() != "checkbox":
            return ""
        beside = el.next_sibling
        has_space = isinstance(beside, NavigableString) and beside[:1].isspace()
        return ("[x]" if "checked" in el.attrs else "[ ]") + " " * (not has_space)

    def convert_q(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        del el, parent_tags
        return f"“{text}”"

    def convert_rt(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """Write how a character is read."""
        del el, parent_tags
        return f" ({text})" if text else ""

    def convert_rp(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """Write nothing: its marks are put around the reading anyway."""
        del el, text, parent_tags
        return ""

    convert_title = convert_rp

    def convert_td(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """Write what is in it: the caller puts the marks around."""
        del el, parent_tags
        return text

    convert_a = convert_caption = convert_th = convert_tr = convert_td

    def convert_hN(self, n: int, el: Tag, text: str, parent_tags: set[str]) -> str:  # noqa: N802 - the library's name
        return super().convert_hN(n, el, _signature(el) or text, parent_tags)

    def convert_dt(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        return super().convert_dt(el, _signature(el) or text, parent_tags)

    def convert_p(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        return super().convert_p(el, _title(el, text), parent_tags)

    def convert_div(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        return super().convert_div(el, _title(el, text), parent_tags)

    convert_article = convert_section = convert_div

    def convert_summary(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """Write the summary of something folded as its title."""
        return super().convert_div(el, _bold(text), parent_tags)

    def convert_li(self, el: Tag, text: str, parent_tags: set[str]) -> str:
        """Write an item. The library counts the items before each, which takes minutes for long lists."""
        del parent_tags
        text = text.strip()
        if not text:
            return ""
        mark = "- "
        if el.parent and el.parent.name == "ol":
            number = self._numbers.setdefault(id(el.parent), _first_number(el.parent))
            self._numbers[id(el.parent)] = number + 1
            mark = f"{number}. "
        indent = "\n" + " " * len(mark)
        return mark + text.replace("\n", indent).replace(f"{indent}\n", "\n\n").replace(f"{indent}\n", "\n\n") + "\n"

    def process_tag(self, node: Tag, parent_tags: set[str] | None = None) -> str:
        ancestors = parent_tags or set[str]()
        if class_names(node) & _SKIPPED_CLASSES:
            return ""
        convert = self._writers.get(node.name)
        return convert(node, ancestors) if convert else super().process_tag(node, ancestors)

    def _link(self, node: Tag, ancestors: set[str]) -> str:
        text = super().process_tag(node, ancestors | {"_inline"})
        if "_noformat" in ancestors:
            return text
        has_blocks = "_inline" not in ancestors and any(element.name in BLOCKS for element in iter_elements(node))
        words = SPACES.sub(" ", text).strip()
        if not words or words in _ANCHORS:
            return " "
        address = self.address(attribute(node, "href"))
        written = f"<{address}>" if words == address else f"[{escape_brackets(words)}]({address})"
        link = words if address is None else written
        return f"\n\n{link}\n\n" if has_blocks else " " * text[:1].isspace() + link + " " * text[-1:].isspace()

    def _formula(self, node: Tag, ancestors: set[str]) -> str:
        del ancestors
        for element in iter_elements(node):
            if element.name == "annotation" and "tex" in attribute(element, "encoding"):
                return f"${element.get_text().strip()}$"
        return f"${alt}$" if (alt := attribute(node, "alttext")) else node.get_text()

    def _code(self, node: Tag, ancestors: set[str]) -> str:
        if "_inline" in ancestors:
            return f" {code_span(node.get_text())} "
        return f"\n\n{code_block(node)}\n\n"

    def _table(self, node: Tag, ancestors: set[str]) -> str:
        rows = table_rows(node)
        if is_layout(node, rows):
            # Where the tree was cut off, a table may have words and no cells.
            cells = [cell for row in rows or [[node]] for cell in row if not class_names(cell) & BESIDE_CODE]
            return "\n\n" + "\n\n".join(filter(None, (self._unwrap_box(cell, ancestors) for cell in cells))) + "\n\n"
        captions = [self._on_one_line(child, ancestors) for child in child_elements(node) if child.name == "caption"]
        lines = table_lines(rows, lambda cell: self._on_one_line(cell, ancestors).replace("|", "\\|"))
        return "\n\n" + "\n\n".join([*filter(None, captions), "\n".join(lines)]) + "\n\n" if lines else ""

    def _unwrap_box(self, box: Tag, ancestors: set[str]) -> str:
        box.name = "div"
        return self.process_tag(box, ancestors).strip("\n")

    def _on_one_line(self, element: Tag, ancestors: set[str]) -> str:
        return SPACES.sub(" ", super().process_tag(element, ancestors | {"_inline"})).strip()


def _signature(element: Tag) -> str:
    return code_span(element.get_text().rstrip("¶§# \n")) if class_names(element) & _SIGNATURES else ""


def _title(element: Tag, text: str) -> str:
    return _bold(text) if class_names(element) & _TITLES else text


def _bold(text: str) -> str:
    line = text.strip()
    return f"**{line}**" if line and "\n" not in line and not line.startswith(("#", "**", "`")) else text


def _first_number(ordered: Tag) -> int:
    start = attribute(ordered, "start")
    return int(start) if start.isdecimal() and len(start) < 10 else 1


_SKIPPED_CLASSES = frozenset({"hideme", "example-header", "code-header-lang", "tooltip"})
# What makers of documentation put behind a heading to be copied.
_ANCHORS = frozenset({"¶", "§", "#", "🔗", "⚓", "Permalink", "Anchor", "Link to this heading"})
# The blocks that the library knows; it takes any other for words within a line.
_KNOWN_BLOCKS = HEADINGS | name_set(
    "article blockquote dd div dl dt hr li ol p pre section summary table tbody td tfoot th thead tr ul"
)
_LISTS = frozenset({"ul", "ol"})


def to_markdown(part: Tag, base: str) -> str:
    """Convert a part of a page; `base` is what its addresses are relative to. The tree is changed."""
    _prepare(part)
    return _MarkdownWriter(base).process_tag(part, set()).strip("\n") + "\n"


def _prepare(part: Tag) -> None:
    for element in list(iter_elements(part)):
        if element.name in {"menu", "dir"}:
            element.name = "ul"
        elif element.name in BLOCKS and element.name not in _KNOWN_BLOCKS:
            element.name = "div"
        if element.name in _LISTS:
            _nest_lists(element)


def _nest_lists(parent: Tag) -> None:
    """Move a list that stands in another one, not allowed but common, into the item that it belongs to."""
    item: Tag | None = None
    moves: list[tuple[Tag, Tag]] = []
    for element in child_elements(parent):
        if item is not None and element.name in _LISTS:
            moves.append((item, element))
        else:
            item = element if element.name == "li" else None
    remove_children(parent, [move for _, move in moves])
    for item, move in moves:
        item.append(move)
