"""The parser of Markdown, for the window and for exports: docs/markdown.md describes what it reads."""

from markdown_it import MarkdownIt
from markdown_it.parser_block import ParserBlock

from desktop_agent.markdown.rules import (
    bounded_definition,
    bounded_heading,
    display_math,
    footnote_definition,
    footnote_reference,
    inline_math,
    is_valid_target,
    normalize_target,
    table,
)


class _Parser(MarkdownIt):
    """The library's parser with faster checks of link targets."""

    def normalizeLink(self, url: str) -> str:
        return normalize_target(url)

    def validateLink(self, url: str) -> bool:
        return is_valid_target(url)


def make_parser(blocks: ParserBlock | None = None) -> MarkdownIt:
    """Create a parser for CommonMark with tables, strikethrough, footnotes and math. HTML stays text."""
    parser = _Parser()
    parser.block = blocks or parser.block
    parser.configure("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.disable(["html_block", "html_inline"])
    rules = parser.block.ruler
    rules.at("table", table, {"alt": ["paragraph", "reference"]})
    rules.at("lheading", bounded_heading)
    rules.at("reference", bounded_definition)
    rules.before("fence", "math", display_math, {"alt": ["paragraph", "reference"]})
    rules.before("reference", "footnote", footnote_definition, {"alt": ["paragraph", "reference", "blockquote"]})
    parser.inline.ruler.before("escape", "math", inline_math)
    parser.inline.ruler.after("image", "footnote_ref", footnote_reference)
    return parser
