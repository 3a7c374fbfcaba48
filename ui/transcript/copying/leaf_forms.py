"""Leaves written as Markdown and as HTML, without what stands around them.

What the model wrote is kept where it says the same in another place; otherwise it is written anew.
"""

import re
from collections.abc import Sequence
from html import escape

from ui.transcript.markdown.inline import Line, parse_inline
from ui.transcript.markdown.leaves import Leaf
from ui.transcript.markdown.stream import parse_leaves
from ui.transcript.markdown.written import footnotes_in, line_to_html, line_to_markdown

_EDGES = re.compile(r"^[ \t]+|[ \t]+$")
# A line that begins like this may begin a block where it goes on with a paragraph now.
_AMBIGUOUS = re.compile(
    r"\n[ \t]*[^\w\s(\"'“„]|\n[ \t]*\d|\A(?:[-+#>=|~]|\*\s|```|\d+[.)](?:\s|\Z)|\[(?:[^\[\]\\]|\\.)*\]:)"
)
_EMPTY_LINE = re.compile(r"(?m)^(?=\n)")
RULE_TEXT = "___"
"""Neither a bullet on its line nor a paragraph before it makes something else of it."""
_ALIGNMENTS = {"center": ":-:", "right": "--:"}

TableLines = Sequence[Sequence[Line]]
"""The cells of a table, row by row, the head first."""


def leaf_markdown(leaf: Leaf, line: Line) -> str:
    """A whole paragraph or heading; `line` is its text as it was read."""
    text = _source_or_markdown(leaf.text, line, goes_on=leaf.separator is not None)
    return _as_heading(text, leaf.level) if leaf.kind == "heading" and leaf.separator is None else text


def code_markdown(text: str, info: str) -> str:
    """With a fence that stands nowhere in the code."""
    sign = "~" if "`" in info else "`"
    longest = max(map(len, re.findall(f"{sign}+", text)), default=0)
    fence = sign * max(3, longest + 1)
    info = re.sub(r"\\(?=[!-/:-@\[-`{-~])|&(?=#?\w+;)", r"\\\g<0>", " ".join(info.split("\n")))
    return "\n".join([f"{fence}{info}", *([text] if text else []), fence])


def code_html(text: str, language: str) -> str:
    """The language as HTML 5 proposes it."""
    mark = f' class="language-{escape(language)}"' if language else ""
    return f"<pre><code{mark}>{escape(text)}\n</code></pre>"


def math_markdown(latex: str) -> str:
    """Between the signs that it allows."""
    ways = (f"$$\n{latex}\n$$", f"\\[\n{latex}\n\\]", latex, f"$${latex}$$")
    return next((way for way in ways if _is_math(way, latex)), ways[0])


def _is_math(text: str, latex: str) -> bool:
    return [(leaf.kind, leaf.text) for leaf in parse_leaves(text)[0]] == [("math", latex)]


def table_markdown(cells: Sequence[Sequence[str]], lines: TableLines) -> str:
    """Rows of a table; `cells` is how they were written."""
    return "\n".join(f"| {' | '.join(map(_cell_markdown, *row))} |" for row in zip(cells, lines, strict=True))


def table_rule(aligns: Sequence[str]) -> str:
    """What stands below the head of a table."""
    return f"| {' | '.join(_ALIGNMENTS.get(align, '---') for align in aligns)} |"


def _cell_markdown(text: str, line: Line) -> str:
    return _source_or_markdown(text, line, begins_line=False).replace("|", "\\|")


def table_html(aligns: Sequence[str], lines: TableLines, *, has_head: bool = True) -> str:
    """Rows of a table."""
    parts = ["<table>"]
    for row, cells in enumerate(lines):
        tag = "td" if row or not has_head else "th"
        parts.append("<tr>")
        for align, line in zip(aligns, cells, strict=False):
            side = f' align="{align}"' if align in _ALIGNMENTS else ""
            parts.append(f"<{tag}{side}>{line_to_html(line)}</{tag}>")
        parts.append("</tr>")
    return "".join([*parts, "</table>"])


def _source_or_markdown(text: str, line: Line, *, goes_on: bool = False, begins_line: bool = True) -> str:
    """As it was written, when it says the same without the definitions of its text and under other lines.

    Without a text the line is written anew.
    """
    before = "\n" if goes_on else ""
    is_sure = not begins_line or not _AMBIGUOUS.search(f"{before}{text}")
    if text and is_sure and ("]" not in text or parse_inline(text, footnotes_in(line)) == line):
        return text
    written = _EMPTY_LINE.sub(lambda _: "\\", line_to_markdown(line))
    return _EDGES.sub(lambda found: "".join(f"&#{ord(char)};" for char in found[0]), written)


def _as_heading(text: str, level: int) -> str:
    if "\n" in text:
        # Below a bar three of them would be the rule of a table.
        return f"{text}\n{'===' if level == 1 else '-' if '|' in text else '---'}"
    # A heading's own signs at its end would be taken for the end of the heading.
    end = f" {'#' * level}" if text.endswith("#") else ""
    return f"{'#' * level} {text}{end}" if text else "#" * level


def math_html(latex: str) -> str:
    """Its source."""
    return f"<p><code>{escape(f'$${latex}$$')}</code></p>"
