"""Any leaf written by the functions that blocks write theirs with, without a view around it."""

from collections.abc import Iterator

from ui.transcript.markdown.elements import Leaf
from ui.transcript.markdown.inline import Line, parse_inline
from ui.transcript.markdown.parser import References
from ui.transcript.markdown.serializer import (
    RULE_TEXT,
    code_html,
    code_markdown,
    leaf_markdown,
    line_to_html,
    math_html,
    math_markdown,
    table_html,
    table_markdown,
    table_rule,
)


def markdown_of(leaf: Leaf, references: References) -> str:
    """Any leaf."""
    match leaf.kind:
        case "code":
            return code_markdown(leaf.text, leaf.info)
        case "math":
            return math_markdown(leaf.text)
        case "rule":
            return RULE_TEXT
        case "table":
            head, *rest = table_markdown(_filled(leaf), list(cell_lines(leaf, references))).split("\n")
            return "\n".join([head, table_rule(leaf.aligns), *rest])
        case _:
            return leaf_markdown(leaf, parse_inline(leaf.text, references))


def html_of(leaf: Leaf, references: References) -> str:
    """Any leaf."""
    match leaf.kind:
        case "code":
            return code_html(leaf.text, leaf.info.split(" ")[0])
        case "math":
            return math_html(leaf.text)
        case "rule":
            return "<hr>"
        case "table":
            return table_html(leaf.aligns, list(cell_lines(leaf, references)))
        case _:
            tag = f"h{leaf.level}" if leaf.kind == "heading" else "p"
            return f"<{tag}>{line_to_html(parse_inline(leaf.text, references))}</{tag}>"


def cell_lines(leaf: Leaf, references: References) -> Iterator[list[Line]]:
    """Yield the rows of a table as parsed lines."""
    for row in _filled(leaf):
        yield [parse_inline(cell, references) for cell in row]


def _filled(leaf: Leaf) -> list[list[str]]:
    width = len(leaf.aligns)
    return [[*row, *[""] * width][:width] for row in leaf.cells]
