"""A page as Markdown: the library's way, where pages of documentation, tables and addresses need no other."""

from bs4 import Tag

from desktop_agent.tools.web.reading.code import BESIDE_CODE, code_block, code_span
from desktop_agent.tools.web.reading.parsing import (
    BLOCKS,
    HEADINGS,
    attribute,
    child_elements,
    class_names,
    iter_elements,
    name_set,
    remove_children,
)
from desktop_agent.tools.web.reading.pieces import SPACES, ElementConverter, escape_brackets
from desktop_agent.tools.web.reading.tables import is_layout, table_lines, table_rows

_SKIPPED_CLASSES = frozenset({"hideme", "example-header", "code-header-lang", "tooltip"})
# What makers of documentation put behind a heading to be copied.
_ANCHORS = frozenset({"¶", "§", "#", "🔗", "⚓", "Permalink", "Anchor", "Link to this heading"})
# The blocks that the library knows; any other it takes for words within a line.
_KNOWN_BLOCKS = HEADINGS | name_set(
    "article blockquote dd div dl dt hr li ol p pre section summary table tbody td tfoot th thead tr ul"
)
_LISTS = frozenset({"ul", "ol"})


def to_markdown(part: Tag, base: str) -> str:
    """All of a part of a page; `base` is what its addresses are relative to. The tree is changed."""
    _prepare(part)
    return _MarkdownWriter(base).process_tag(part, set()).strip("\n") + "\n"


def _prepare(part: Tag) -> None:
    for each in list(iter_elements(part)):
        if each.name in {"menu", "dir"}:
            each.name = "ul"
        elif each.name in BLOCKS and each.name not in _KNOWN_BLOCKS:
            each.name = "div"
        if each.name in _LISTS:
            _nest_lists(each)


def _nest_lists(ancestors: Tag) -> None:
    """Not allowed, and written by many: a list that stands in another, beside the item that it belongs to."""
    item: Tag | None = None
    moved: list[tuple[Tag, Tag]] = []
    for each in child_elements(ancestors):
        if item is not None and each.name in _LISTS:
            moved.append((item, each))
        else:
            item = each if each.name == "li" else None
    remove_children(ancestors, [each for _, each in moved])
    for item, each in moved:
        item.append(each)


class _MarkdownWriter(ElementConverter):
    """Writes what is not made of the pieces in it, or not of them alone."""

    def __init__(self, base: str) -> None:
        super().__init__(base)
        self._whole = {"a": self._link, "math": self._formula, "pre": self._code, "table": self._table}

    def process_tag(self, node: Tag, parent_tags: set[str] | None = None) -> str:
        """Write one element."""
        ancestors = parent_tags or set[str]()
        if class_names(node) & _SKIPPED_CLASSES:
            return ""
        whole = self._whole.get(node.name)
        return whole(node, ancestors) if whole else super().process_tag(node, ancestors)

    def _link(self, node: Tag, ancestors: set[str]) -> str:
        text = super().process_tag(node, ancestors | {"_inline"})
        if "_noformat" in ancestors:
            return text
        has_blocks = "_inline" not in ancestors and any(each.name in BLOCKS for each in iter_elements(node))
        said = SPACES.sub(" ", text).strip()
        if not said or said in _ANCHORS:
            return " "
        address = self.address(attribute(node, "href"))
        made = (
            said if address is None else f"<{address}>" if said == address else f"[{escape_brackets(said)}]({address})"
        )
        return f"\n\n{made}\n\n" if has_blocks else " " * text[:1].isspace() + made + " " * text[-1:].isspace()

    def _formula(self, node: Tag, ancestors: set[str]) -> str:
        del ancestors
        for each in iter_elements(node):
            if each.name == "annotation" and "tex" in attribute(each, "encoding"):
                return f"${each.get_text().strip()}$"
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
        captions = [self._on_one_line(each, ancestors) for each in child_elements(node) if each.name == "caption"]
        lines = table_lines(rows, lambda cell: self._on_one_line(cell, ancestors).replace("|", "\\|"))
        return "\n\n" + "\n\n".join([*filter(None, captions), "\n".join(lines)]) + "\n\n" if lines else ""

    def _unwrap_box(self, box: Tag, ancestors: set[str]) -> str:
        box.name = "div"
        return self.process_tag(box, ancestors).strip("\n")

    def _on_one_line(self, element: Tag, ancestors: set[str]) -> str:
        return SPACES.sub(" ", super().process_tag(element, ancestors | {"_inline"})).strip()
