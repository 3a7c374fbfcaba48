"""The block half of Markdown: top-level pieces with their lines, inline text left as it is."""

from collections import ChainMap
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.parser_block import ParserBlock

from ui.transcript.markdown.leaves import Carried, Piece
from ui.transcript.markdown.rules.display_math import display_math
from ui.transcript.markdown.rules.footnotes import FOOTNOTES, footnote, footnote_reference
from ui.transcript.markdown.rules.inline_math import inline_math
from ui.transcript.markdown.rules.limits import BlocksToADepth, definition, underlined_heading
from ui.transcript.markdown.rules.link_targets import may_lead, written_target
from ui.transcript.markdown.rules.tables import table
from ui.transcript.markdown.walk import pieces_of

References = dict[str, Any]
"""What is defined: link labels as the parser writes them, and under `FOOTNOTES` the labels of footnotes."""


class _Parser(MarkdownIt):
    """The library's parser, but what it asks for every link costs little."""

    def normalizeLink(self, url: str) -> str:
        return written_target(url)

    def validateLink(self, url: str) -> bool:
        return may_lead(url)


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
    rules.at("lheading", underlined_heading)
    rules.at("reference", definition)
    rules.before("fence", "math", display_math, {"alt": ["paragraph", "reference"]})
    rules.before("reference", "footnote", footnote, {"alt": ["paragraph", "reference", "blockquote"]})
    parser.inline.ruler.before("escape", "math", inline_math)
    parser.inline.ruler.after("image", "footnote_ref", footnote_reference)
    return parser


# Only the outline is parsed here; inline text costs most and waits until somebody looks at it.
_OUTLINE = make_parser(BlocksToADepth())
_OUTLINE.core.ruler.enableOnly(["block"])
_OUTLINE.options["inline_definitions"] = True


def outline(
    text: str,
    references: References | None = None,
    carried: Carried | None = None,
    *,
    is_open: bool = False,
    defining: list[int] | None = None,
) -> tuple[list[Piece], References]:
    """The top-level pieces of a text whose line ends are newlines, and the definitions in it that are new.

    A text that goes on with a block that is `carried` begins with its opening.
    With `is_open` a formula may go on after the end of the text. `defining` gets the lines where definitions of links
    begin, new or not.
    """
    defined: References = {}
    env: dict[str, Any] = {"references": ChainMap(defined, references or {}), "open": is_open}
    if carried:
        env["missing"], env["goes_on"] = carried.missing, carried.kind == "paragraph"
    tokens = _OUTLINE.parse(text, env)
    notes = {token.meta["label"]: {"map": token.map} for token in tokens if token.type == "footnote_reference_open"}
    if notes:
        defined[FOOTNOTES] = notes
    if defining is not None:
        again: list[dict[str, Any]] = env.get("duplicate_refs", [])
        defining += [each["map"][0] for label, each in defined.items() if label != FOOTNOTES]
        defining += [each["map"][0] for each in again]
    return pieces_of(tokens, text, carried), defined
