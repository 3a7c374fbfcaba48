"""The block half of Markdown: top-level pieces with their lines, inline text left as it is."""

from collections import ChainMap
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.parser_block import ParserBlock

from ui.transcript.markdown.leaves import CarriedBlock, TopLevelBlock
from ui.transcript.markdown.rules.display_math import display_math
from ui.transcript.markdown.rules.footnotes import FOOTNOTES_KEY, footnote_definition, footnote_reference
from ui.transcript.markdown.rules.inline_math import inline_math
from ui.transcript.markdown.rules.limits import DepthLimitedParser, bounded_definition, bounded_heading
from ui.transcript.markdown.rules.link_targets import is_valid_target, normalize_target
from ui.transcript.markdown.rules.tables import table
from ui.transcript.markdown.walk import top_level_blocks

References = dict[str, Any]
"""What is defined: link labels as the parser writes them, and under `FOOTNOTES_KEY` the labels of footnotes."""


class _Parser(MarkdownIt):
    """The library's parser, but what it asks for every link costs little."""

    def normalizeLink(self, url: str) -> str:
        return normalize_target(url)

    def validateLink(self, url: str) -> bool:
        return is_valid_target(url)


def make_parser(blocks: ParserBlock | None = None) -> MarkdownIt:
    """CommonMark with tables, strikethrough, footnotes and formulas.

    HTML is text: nothing of a model's output is ever executed.
    """
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


# Only the outline is parsed here; inline text costs most and waits until somebody looks at it.
_BLOCK_PARSER = make_parser(DepthLimitedParser())
_BLOCK_PARSER.core.ruler.enableOnly(["block"])
_BLOCK_PARSER.options["inline_definitions"] = True


def parse_blocks(
    text: str,
    references: References | None = None,
    carried: CarriedBlock | None = None,
    *,
    is_open: bool = False,
    defining: list[int] | None = None,
) -> tuple[list[TopLevelBlock], References]:
    """The top-level pieces of a text whose line ends are newlines, and the definitions in it that are new.

    A text that goes on with a block that is `carried` begins with its opening.
    With `is_open` a formula may go on after the end of the text. `defining` gets the lines where definitions of links
    begin, new or not.
    """
    defined: References = {}
    env: dict[str, Any] = {"references": ChainMap(defined, references or {}), "open": is_open}
    if carried:
        env["missing"], env["goes_on"] = carried.missing, carried.kind == "paragraph"
    tokens = _BLOCK_PARSER.parse(text, env)
    notes = {token.meta["label"]: {"map": token.map} for token in tokens if token.type == "footnote_reference_open"}
    if notes:
        defined[FOOTNOTES_KEY] = notes
    if defining is not None:
        again: list[dict[str, Any]] = env.get("duplicate_refs", [])
        defining += [each["map"][0] for label, each in defined.items() if label != FOOTNOTES_KEY]
        defining += [each["map"][0] for each in again]
    return top_level_blocks(tokens, text, carried), defined
