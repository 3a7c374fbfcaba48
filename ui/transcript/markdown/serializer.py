"""Serialize lines and leaves to Markdown that parses the same again, and to HTML that is safe to paste anywhere."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import product
from typing import Literal

from desktop_agent.markdown.link_targets import find_urls
from desktop_agent.markdown.parser import FOOTNOTES_KEY
from ui.transcript.markdown.elements import Leaf
from ui.transcript.markdown.inline import (
    FOOTNOTE_TARGET,
    LINE_BREAK,
    Line,
    Span,
    SpanStyle,
    formula_source,
    make_slicer,
    parse_inline,
    slice_utf16,
)
from ui.transcript.markdown.parser import References
from ui.transcript.markdown.stream import parse_leaves
from ui.transcript.markdown.text_units import utf16_length

_INDIVISIBLE = SpanStyle.MATH | SpanStyle.FOOTNOTE
_ESCAPED_SIGNS = re.compile(r"[\\`*\[<$]|(?<![^\W_])_|_(?![^\W_])|~|&(?=#?\w+;)|!(?=\Z)|:(?=//)")
# What would begin a block at the beginning of a line, and the character to escape.
_BLOCK_START = re.compile(r"(?m)^([ \t]*)(?:([#>=|+-]|:(?=-))|(\d{1,9})([.)])(?=\s|$))")
_NUMBERED = re.compile(r"⟨U\+([0-9A-F]{4,6})⟩")
_IN_DOLLARS = re.compile(r"(?!\s)[^$\\]*(?:\\.[^$\\]*)*(?<!\s)", re.DOTALL)
_FIRST_SPACE, _LAST_SPACE = re.compile(r"^[ \t]+"), re.compile(r"[ \t]+$")
_AT_BREAKS = re.compile(rf"(?<={LINE_BREAK})[ \t]+|[ \t]+(?={LINE_BREAK})")


@dataclass(frozen=True, slots=True)
class _Notation:
    """One way to write a line. Which one parses back correctly depends on the characters around its markup.

    `guarded` writes letters beside emphasis, and brackets, as character references. An address is bare, in angle
    brackets, or a link.
    """

    italic: str
    bold: str
    guarded: bool
    address: Literal["bare", "angles", "link"]


_NOTATIONS = [
    _Notation(italic, bold, guarded, address)
    for address, guarded, italic, bold in product(("bare", "angles", "link"), (False, True), "*_", ("**", "__"))
]


@dataclass(frozen=True, slots=True)
class _Run:
    text: str
    style: int = SpanStyle.PLAIN
    href: str = ""
    source: str = ""
    is_linked: bool = False
    """Whether an image is among the words of a link."""

    @property
    def wraps(self) -> frozenset[int | str]:
        """Return the markup around the run: kinds of emphasis, and the target of its link."""
        kinds = (SpanStyle.BOLD, SpanStyle.ITALIC, SpanStyle.STRIKE)
        markup: set[int | str] = {kind for kind in kinds if self.style & kind}
        if self.href and not self.style & SpanStyle.FOOTNOTE and (self.is_linked or not self.style & SpanStyle.IMAGE):
            markup.add(self.href)
        return frozenset(markup)


def line_to_markdown(line: Line, start: int = 0, end: int | None = None) -> str:
    """Return a part of a line as inline Markdown that parses to the same line. Offsets are UTF-16 units.

    Notes added by the program are left out; hidden characters are written as they were.
    """
    part = slice_line(line, start, end)
    plain = part.text.replace(LINE_BREAK, "\n")
    if not part.spans and not (
        _ESCAPED_SIGNS.search(plain) or _BLOCK_START.search(plain) or _AT_BREAKS.search(part.text)
    ):
        return plain
    known, runs = footnotes_in(part), _linked([run for run in _unspelled_runs(_runs(part)) if run.text])
    first = ""
    for notation in _NOTATIONS:
        text = _Writer(notation).write(runs)
        if parse_inline(text, known) == part:
            return text
        first = first or text
    return first


def line_to_html(line: Line, start: int = 0, end: int | None = None) -> str:
    """Return a part of a line as HTML of a few harmless elements, with formulas as source."""
    parts: list[str] = []
    for run in _runs(slice_line(line, start, end)):
        text = formula_source(Span(0, 1, run.style, "", run.source)) if run.style & SpanStyle.MATH else run.text
        text = escape(text).replace(LINE_BREAK, "<br>")
        for style, element in _ELEMENTS:
            if run.style & style:
                text = f"<{element}>{text}</{element}>"
        if run.href and not run.href.startswith(FOOTNOTE_TARGET):
            text = f'<a href="{escape(run.href)}">{text}</a>'
        parts.append(text)
    return "".join(parts)


_ELEMENTS = (
    (SpanStyle.CODE, "code"),
    (SpanStyle.FOOTNOTE, "sup"),
    (SpanStyle.STRIKE, "s"),
    (SpanStyle.ITALIC, "em"),
    (SpanStyle.BOLD, "strong"),
)


def slice_line(line: Line, start: int, end: int | None) -> Line:
    """Return the line between two offsets. Formulas and footnotes are taken as a whole or not at all."""
    length = utf16_length(line.text)
    end = length if end is None else min(end, length)
    if start <= 0 and end == length:
        return line
    spans: list[Span] = []
    for span in line.spans:
        first, last = max(span.start, start), min(span.start + span.length, end)
        if first < last:
            spans.append(replace(span, start=first - start, length=last - first))
    return Line(slice_utf16(line.text, start, end), tuple(spans))


def _runs(line: Line) -> Iterator[_Run]:
    offset, slice_text = 0, make_slicer(line.text)
    for span in line.spans:
        if span.start > offset:
            yield _Run(slice_text(offset, span.start))
        end = span.start + span.length
        yield _Run(slice_text(span.start, end), span.style, span.href, span.source)
        offset = end
    if offset < (end := utf16_length(line.text)):
        yield _Run(slice_text(offset, end))


def _unspelled_runs(runs: Iterator[_Run]) -> Iterator[_Run]:
    """Yield runs with hidden characters restored, and joined where spelling them out had split a run."""
    last, texts, was_hidden = _Run(""), [""], False
    for spelled in runs:
        run, is_hidden = spelled, bool(spelled.style & SpanStyle.HIDDEN)
        if is_hidden:
            run = replace(spelled, text=_unspelled(spelled.text), style=spelled.style & ~SpanStyle.HIDDEN)
        is_same = (last.style, last.href) == (run.style, run.href) and not run.style & _INDIVISIBLE
        if is_same and (is_hidden or was_hidden):
            texts.append(run.text)
        else:
            yield replace(last, text="".join(texts))
            last, texts = run, [run.text]
        was_hidden = is_hidden
    yield replace(last, text="".join(texts))


def _linked(runs: list[_Run]) -> list[_Run]:
    """Mark images beside words of a link with the same target as part of that link."""
    linked: list[_Run] = []
    for index, run in enumerate(runs):
        neighbours = (*runs[max(0, index - 1) : index], *runs[index + 1 : index + 2]) if run.href else ()
        is_linked = any(neighbour.href == run.href and neighbour.style & SpanStyle.LINK for neighbour in neighbours)
        linked.append(replace(run, is_linked=is_linked) if run.style & SpanStyle.IMAGE and is_linked else run)
    return linked


def _unspelled(text: str) -> str:
    return _NUMBERED.sub(lambda match: chr(int(match[1], 16)), text)


def footnotes_in(line: Line) -> References:
    """Return the footnotes that the line refers to as definitions, for parsing the line again."""
    notes = (span.href.removeprefix(FOOTNOTE_TARGET) for span in line.spans if span.style & SpanStyle.FOOTNOTE)
    return {FOOTNOTES_KEY: dict.fromkeys(notes, True)}


class _Writer:
    """Opens and closes markup around runs; the longest-lasting markup is outermost."""

    def __init__(self, notation: _Notation) -> None:
        self._notation = notation
        self._open: list[int | str] = []
        self._out: list[str] = []

    def write(self, runs: list[_Run]) -> str:
        runs = [_Run(""), *runs, _Run("")]
        for index in range(1, len(runs) - 1):
            self._switch_markup(runs[index], runs[index - 1], runs[index:])
            if not runs[index].style & SpanStyle.NOTE:
                self._out.append(self._content(runs[index], runs[index - 1], runs[index + 1]))
        self._close_to(0)
        return "".join(self._out)

    def _switch_markup(self, run: _Run, before: _Run, rest: list[_Run]) -> None:
        """Close markup that ends before this run, and open what begins with it."""
        if run.href and (before.style, before.href) == (run.style, run.href):
            self._close_to(self._open.index(run.href) if run.href in self._open else len(self._open))
        markup_of_run = run.wraps - {run.href} if self._is_address(run) else run.wraps
        kept = 0
        while kept < len(self._open) and self._open[kept] in markup_of_run:
            kept += 1
        self._close_to(kept)
        opening = [markup for markup in markup_of_run if markup not in self._open]
        for markup in sorted(opening, key=lambda markup: (-_run_count(markup, rest), str(markup))):
            self._out.append("[" if isinstance(markup, str) else self._sign(markup))
            self._open.append(markup)

    def _is_address(self, run: _Run) -> bool:
        """Return whether the run is a bare URL that links to itself, and is to be written so."""
        if not run.style & SpanStyle.LINK or self._notation.address == "link":
            return False
        return [(0, run.text)] == list(find_urls(run.text)) and parse_inline(run.text).spans[0].href == run.href

    def _close_to(self, depth: int) -> None:
        while len(self._open) > depth:
            markup = self._open.pop()
            self._out.append(f"](<{_target(markup)}>)" if isinstance(markup, str) else self._sign(markup))

    def _sign(self, kind: int) -> str:
        return {SpanStyle.BOLD: self._notation.bold, SpanStyle.ITALIC: self._notation.italic}.get(kind, "~~")

    def _content(self, run: _Run, last: _Run, after: _Run) -> str:
        style = run.style
        if style & SpanStyle.MATH:
            before = "".join(self._out[-1:])[-1:]
            # Brackets need a letter inside; dollars between two formulas would be one delimiter.
            guarded = self._notation.guarded and not (re.search(r"\w", run.source) and (after.source or before == "$"))
            return _formula(run, is_free=guarded or (not after.source and _is_free_dollar(before, after.text[:1])))
        if style & SpanStyle.FOOTNOTE:
            return f"[^{run.href[len(FOOTNOTE_TARGET) :]}]"
        if self._is_address(run):
            return run.text if self._notation.address == "bare" else f"<{run.text}>"
        text = run.text
        if style & SpanStyle.IMAGE:
            return f"![{self._escaped(text[1:-1], in_link=True)}](<{'' if run.is_linked else _target(run.href)}>)"
        if style & SpanStyle.CODE:
            return _code(text)
        return self._guarded(self._escaped(text, in_link=bool(run.href)), run, last, after)

    def _escaped(self, text: str, *, in_link: bool) -> str:
        text = _ESCAPED_SIGNS.sub(lambda match: f"\\{match[0]}", text)
        if self._notation.guarded:
            return text.replace("\\[", "&#91;").replace("]", "&#93;")
        return text.replace("]", "\\]") if in_link else text

    def _guarded(self, text: str, run: _Run, last: _Run, after: _Run) -> str:
        """Write letters next to markup as character references where emphasis could not begin or end otherwise."""
        text = _AT_BREAKS.sub(_numeric_references, text)
        if run.wraps - last.wraps or self._notation.guarded:
            text = _FIRST_SPACE.sub(_numeric_references, text)
        if run.wraps - after.wraps or self._notation.guarded:
            text = _LAST_SPACE.sub(_numeric_references, text)
        if last.style & SpanStyle.FOOTNOTE and text.startswith(("(", ":")):
            text = _numeric_reference(text[0]) + text[1:]
        if self._notation.guarded and text[-1:].isalnum() and (after.wraps or after.source):
            text = text[:-1] + _numeric_reference(text[-1])
        if self._notation.guarded and text[:1].isalnum() and not run.wraps and self._out:
            text = _numeric_reference(text[0]) + text[1:]
        elif self._notation.guarded and text.startswith("\\$"):
            text = _numeric_reference("$") + text[2:]
        text = text.replace(LINE_BREAK, "\n")
        if not self._out or self._out[-1].endswith("\n"):
            return _BLOCK_START.sub(_not_a_block, text)
        head, feed, rest = text.partition("\n")
        return f"{head}{feed}{_BLOCK_START.sub(_not_a_block, rest)}"


def _target(href: str) -> str:
    return re.sub(r"&(?=#?\w+;)", "&amp;", href)


def _run_count(markup: int | str, rest: list[_Run]) -> int:
    count = 0
    while count < len(rest) and markup in rest[count].wraps:
        count += 1
    return count


def _not_a_block(match: re.Match[str]) -> str:
    spaces, sign, number, point = match.groups()
    return f"{spaces}\\{sign}" if sign else f"{spaces}{number}\\{point}"


def _numeric_references(match: re.Match[str]) -> str:
    return "".join(map(_numeric_reference, match[0]))


def _numeric_reference(char: str) -> str:
    return f"&#{ord(char)};"


def _code(text: str) -> str:
    """Return the text in a code span with enough backticks around it."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * (1 if not longest else longest + 1)
    pad = " " if text[:1] in {"`", " "} or text[-1:] in {"`", " "} else ""
    pad = pad if text.strip(" ") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _is_free_dollar(before: str, after: str) -> bool:
    """Return whether a dollar sign between these characters opens or closes a formula."""
    return not before.isalnum() and before != "$" and not re.match(r"[\w${]", after)


def _formula(run: _Run, *, is_free: bool) -> str:
    source = run.source
    if run.style & SpanStyle.DISPLAY:
        return f"$${source}$$" if "$" not in source else rf"\[{source}\]"
    return f"${source}$" if is_free and _IN_DOLLARS.fullmatch(source) else rf"\({source}\)"


_EDGES = re.compile(r"^[ \t]+|[ \t]+$")
# A line that begins like this could begin a block, although here it continues a paragraph.
_AMBIGUOUS = re.compile(
    r"\n[ \t]*[^\w\s(\"'“„]|\n[ \t]*\d|\A(?:[-+#>=|~]|\*\s|```|\d+[.)](?:\s|\Z)|\[(?:[^\[\]\\]++|\\.)*+\]:)"
)
_EMPTY_LINE = re.compile(r"(?m)^(?=\n)")
RULE_TEXT = "___"
"""A rule that is neither a bullet nor the underline of a heading wherever it is written."""
_ALIGNMENTS = {"center": ":-:", "right": "--:"}

TableLines = Sequence[Sequence[Line]]
"""The cells of a table row by row, head first."""


def leaf_markdown(leaf: Leaf, line: Line) -> str:
    """Return a whole paragraph or heading as Markdown; `line` is its parsed text."""
    text = _source_or_markdown(leaf.text, line, goes_on=leaf.separator is not None)
    return _as_heading(text, leaf.level) if leaf.kind == "heading" and leaf.separator is None else text


def code_markdown(text: str, info: str) -> str:
    """Return the code in a fence that does not occur in it."""
    sign = "~" if "`" in info else "`"
    longest = max(map(len, re.findall(f"{sign}+", text)), default=0)
    fence = sign * max(3, longest + 1)
    info = re.sub(r"\\(?=[!-/:-@\[-`{-~])|&(?=#?\w+;)", r"\\\g<0>", " ".join(info.split("\n")))
    return "\n".join([f"{fence}{info}", *([text] if text else []), fence])


def code_html(text: str, language: str) -> str:
    """Return the code as HTML, with the language class that HTML 5 suggests."""
    mark = f' class="language-{escape(language)}"' if language else ""
    return f"<pre><code{mark}>{escape(text)}\n</code></pre>"


def math_markdown(latex: str) -> str:
    """Return the formula between delimiters that parse back to it."""
    candidates = (f"$$\n{latex}\n$$", f"\\[\n{latex}\n\\]", latex, f"$${latex}$$")
    return next((candidate for candidate in candidates if _is_formula(candidate, latex)), candidates[0])


def _is_formula(text: str, latex: str) -> bool:
    return [(leaf.kind, leaf.text) for leaf in parse_leaves(text)[0]] == [("math", latex)]


def table_markdown(cells: Sequence[Sequence[str]], lines: TableLines) -> str:
    """Return the rows of a table as Markdown; `cells` is their source."""
    return "\n".join(f"| {' | '.join(map(_cell_markdown, *row))} |" for row in zip(cells, lines, strict=True))


def table_rule(aligns: Sequence[str]) -> str:
    """Return the delimiter line below the head of a table."""
    return f"| {' | '.join(_ALIGNMENTS.get(align, '---') for align in aligns)} |"


def _cell_markdown(text: str, line: Line) -> str:
    return _source_or_markdown(text, line, begins_line=False).replace("|", "\\|")


def table_html(aligns: Sequence[str], lines: TableLines, *, has_head: bool = True) -> str:
    """Return the rows of a table as HTML."""
    parts = ["<table>"]
    for row, cells in enumerate(lines):
        tag = "td" if row or not has_head else "th"
        parts.append("<tr>")
        for align, line in zip(aligns, cells, strict=False):
            alignment = f' align="{align}"' if align in _ALIGNMENTS else ""
            parts.append(f"<{tag}{alignment}>{line_to_html(line)}</{tag}>")
        parts.append("</tr>")
    return "".join([*parts, "</table>"])


def _source_or_markdown(text: str, line: Line, *, goes_on: bool = False, begins_line: bool = True) -> str:
    """Return the source where it means the same without the definitions of its text, otherwise serialize the line.

    An empty source is always serialized.
    """
    before = "\n" if goes_on else ""
    is_sure = not begins_line or not _AMBIGUOUS.search(f"{before}{text}")
    if text and is_sure and ("]" not in text or parse_inline(text, footnotes_in(line)) == line):
        return text
    markdown = _EMPTY_LINE.sub(lambda _: "\\", line_to_markdown(line))
    return _EDGES.sub(lambda match: "".join(f"&#{ord(char)};" for char in match[0]), markdown)


def _as_heading(text: str, level: int) -> str:
    if "\n" in text:
        # Below a line with a bar, three hyphens would be the delimiter line of a table.
        return f"{text}\n{'===' if level == 1 else '-' if '|' in text else '---'}"
    # Trailing number signs would be taken for the end of the heading.
    end = f" {'#' * level}" if text.endswith("#") else ""
    return f"{'#' * level} {text}{end}" if text else "#" * level


def math_html(latex: str) -> str:
    """Return the source of the formula as HTML."""
    return f"<p><code>{escape(f'$${latex}$$')}</code></p>"
