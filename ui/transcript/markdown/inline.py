"""Parse inline Markdown into lines of styled spans, with hidden characters spelled out. Offsets are UTF-16 units."""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from markdown_it.token import Token

from desktop_agent.markdown.link_targets import find_urls, safe_target
from desktop_agent.markdown.long_text import PIECE
from desktop_agent.markdown.parser import make_parser
from desktop_agent.types.hidden_characters import DECEPTIVE_CHARACTERS, find_deceptive
from ui.style.text import code_point_text
from ui.transcript.markdown.misleading_links import misleading_link_note
from ui.transcript.markdown.parser import References
from ui.transcript.markdown.text_units import utf16_length

LINE_BREAK = "\u2028"
"""Qt's text layouts break a line at this character without starting a new paragraph."""

OBJECT = "\ufffc"
"""Takes the place of a formula in the text of a line, once for each span of style MATH."""


class SpanStyle:
    """Bits for the style of a span. Plain integers, because enum flags cost ten times as much.

    MATH with DISPLAY is display math; HIDDEN is a hidden character spelled out; NOTE is text added by the program.
    """

    PLAIN = 0
    BOLD = 1
    ITALIC = 2
    STRIKE = 4
    CODE = 8
    LINK = 16
    IMAGE = 32
    MATH = 64
    FOOTNOTE = 128
    HIDDEN = 256
    NOTE = 512
    DISPLAY = 1024


FOOTNOTE_TARGET = "#fn:"
"""The `href` of a footnote reference begins with this; its label follows."""


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a line in one style. `href` is set for links, `source` is the LaTeX of a formula."""

    start: int
    length: int
    style: int
    href: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """Text without markup, and the styled parts of it."""

    text: str
    spans: tuple[Span, ...] = ()

    def formulas(self) -> Iterator[Span]:
        """Return the spans of the formulas in order."""
        if OBJECT in self.text:
            yield from (span for span in self.spans if span.style & SpanStyle.MATH)

    def plain(self) -> str:
        """Return the text to copy: formulas as source, breaks as line feeds."""
        text = self.text.replace(LINE_BREAK, "\n")
        if OBJECT not in text:
            return text
        head, *rest = text.split(OBJECT)
        parts = [head]
        for span, after in zip(self.formulas(), rest, strict=True):
            parts += [formula_source(span), after]
        return "".join(parts)

    def to_plain(self, offset: int) -> int:
        """Return the offset in the plain text for an offset in this line."""
        return offset + sum(_extra_length(span) for span in self.formulas() if span.start < offset)

    def from_plain(self, offset: int) -> int:
        """Return the offset in this line for an offset in the plain text; inside a formula, the end of the formula."""
        for span in self.formulas():
            if offset <= span.start:
                break
            offset = max(offset - _extra_length(span), span.start + 1)
        return offset


@dataclass(frozen=True, slots=True)
class RemoteImage:
    """An image of the text. It is named, never fetched."""

    label: str
    target: str


def formula_source(formula: Span) -> str:
    """Return the source of a formula with its delimiters."""
    return f"$${formula.source}$$" if formula.style & SpanStyle.DISPLAY else f"${formula.source}$"


def _extra_length(formula: Span) -> int:
    return utf16_length(formula_source(formula)) - 1


def slice_utf16(text: str, start: int, end: int) -> str:
    """Return a slice by UTF-16 offsets, without half surrogate pairs."""
    return make_slicer(text)(start, end)


def make_slicer(text: str) -> Callable[[int, int], str]:
    """Return a function that slices this text by UTF-16 offsets; the text is encoded only once."""
    if text.isascii() or max(text) <= "\uffff":
        return lambda start, end: text[start:end]
    raw = text.encode("utf-16-le", "surrogatepass")
    return lambda start, end: raw[start * 2 : end * 2].decode("utf-16-le", "ignore")


# The original text, the displayed text, and whether it is hidden characters spelled out.
_TextPiece = tuple[str, str, bool]
_SOFT_HYPHEN = "\u00ad"
_WORD = re.compile(r"\S+")
_PUNCTUATION = ".,;:!?…()[]*–—\"'“”„\u201a\u2018\u2019«»"
_PARTS = re.compile("[-'\u2019]")


def spell_out_hidden(line: Line, hidden: Sequence[int]) -> Line:
    """Return the line with the characters at these indices spelled out as code points.

    Soft hyphens that merely hyphenate prose stay.
    """
    hidden = _without_hyphenation(line, hidden)
    if not hidden:
        return line
    spans: list[Span] = []
    shown: list[str] = []
    old = new = first = 0
    for original, displayed, is_hidden in _text_pieces(line.text, hidden, may_join=not line.spans):
        end = old + utf16_length(original)
        while first < len(line.spans) and line.spans[first].start + line.spans[first].length <= old:
            first += 1
        moved = list(_moved_spans(line.spans, first, old, end, new))
        if is_hidden:
            context = moved[0] if moved else Span(new, 0, SpanStyle.PLAIN)
            moved = [replace(context, start=new, length=len(displayed), style=context.style | SpanStyle.HIDDEN)]
        for span in moved:
            _add_span(spans, span)
        shown.append(displayed)
        old, new = end, new + utf16_length(displayed)
    return Line("".join(shown), tuple(spans))


def _text_pieces(text: str, hidden: Sequence[int], *, may_join: bool) -> Iterator[_TextPiece]:
    """Join adjacent hidden characters where no span can begin or end between them."""
    offset = index = 0
    while index < len(hidden):
        position, last = hidden[index], index + 1
        while may_join and last < len(hidden) and hidden[last] == position + last - index:
            last += 1
        if position > offset:
            yield text[offset:position], text[offset:position], False
        offset, index = position + last - index, last
        yield text[position:offset], "".join(map(code_point_text, text[position:offset])), True
    if offset < len(text):
        yield text[offset:], text[offset:], False


def _moved_spans(spans: Sequence[Span], first: int, start: int, end: int, to: int) -> Iterator[Span]:
    """Yield the parts of spans inside a piece, moved to where the piece is displayed."""
    for index in range(first, len(spans)):
        span = spans[index]
        if span.start >= end:
            return
        left, right = max(span.start, start), min(span.start + span.length, end)
        yield replace(span, start=to + left - start, length=right - left)


def _add_span(spans: list[Span], new: Span) -> None:
    last = spans[-1] if spans else None
    is_adjacent = last and new.style & SpanStyle.HIDDEN and last.start + last.length == new.start
    if last and is_adjacent and (last.style, last.href) == (new.style, new.href):
        spans[-1] = replace(last, length=last.length + new.length)
    else:
        spans.append(new)


def _without_hyphenation(line: Line, hidden: Sequence[int]) -> Sequence[int]:
    """Drop the soft hyphens of prose words, not those in code, in links, or in words that look like either."""
    if _SOFT_HYPHEN not in line.text:
        return hidden
    prose = {index for word in _WORD.finditer(line.text) if _is_hyphenated(word[0]) for index in range(*word.span())}
    soft = [index for index in hidden if line.text[index] == _SOFT_HYPHEN and index in prose]
    kept = set(soft) - set(_in_code_or_links(line, soft))
    return [index for index in hidden if index not in kept]


def _is_hyphenated(word: str) -> bool:
    """Accept words of letters only, hyphenated where languages do: never next to a single letter."""
    if _SOFT_HYPHEN not in word:
        return False
    soft = [part.split(_SOFT_HYPHEN) for part in _PARTS.split(word.strip(_PUNCTUATION))]
    syllables = [syllable for part in soft if len(part) > 1 for syllable in part]
    whole = [part[0] for part in soft if len(part) == 1]
    return all(len(syllable) > 1 for syllable in syllables) and all(map(_is_of_letters, [*syllables, *whole]))


def _is_of_letters(part: str) -> bool:
    return all(char.isalpha() or unicodedata.category(char)[0] == "M" for char in part)


def _in_code_or_links(line: Line, indices: Sequence[int]) -> Iterator[int]:
    spans = [span for span in line.spans if span.href or span.style & SpanStyle.CODE]
    starts = [span.start for span in spans]
    unit = 0
    for before, index in pairwise([0, *indices]):
        unit += utf16_length(line.text[before:index])
        number = bisect_right(starts, unit) - 1
        if number >= 0 and unit < spans[number].start + spans[number].length:
            yield index


_PARSER = make_parser()
# Without an inline marker there is nothing to parse; most short paragraphs have none.
_MARKUP = re.compile(rf"[\\`*_~\[\]!<&$\n{DECEPTIVE_CHARACTERS}]|://")
_MARKUP_IN_ASCII = re.compile(r"[\\`*_~\[\]!<&$\x00-\x08\x0a-\x1f\x7f]|://")
_MAY_HIDE = re.compile(f"[{DECEPTIVE_CHARACTERS}]")
# The parser searches the end of a link from every bracket: thousands of them cost tenths of a second.
_MAX_BRACKETS = 500
_LINKED = {"link_open", "link_close"}


def parse_inline(text: str, references: References | None = None) -> Line:
    """Parse inline Markdown. Only http, https and mailto links become links.

    A text too long, or with too many brackets, to be parsed quickly becomes plain text as a whole.
    """
    if not (_MARKUP_IN_ASCII if text.isascii() else _MARKUP).search(text):
        return Line(text)
    # Character references may be hidden characters, too.
    builder = _LineBuilder(may_hide="&" in text or _MAY_HIDE.search(text) is not None)
    if len(text) > PIECE or text.count("[") > _MAX_BRACKETS:
        for index, part in enumerate(text.split("\n")):
            if index:
                builder.add_own(LINE_BREAK)
            builder.add(part)
    else:
        for token in _parse_tokens(text, references):
            builder.add_token(token)
    return builder.line()


def parse_image_only(text: str, references: References | None = None) -> RemoteImage | None:
    """Return the image if the paragraph is nothing but one."""
    if not text.startswith(("![", "[![")):
        return None
    tokens = [
        token
        for token in _parse_tokens(text, references)
        if token.type not in _LINKED and (token.type != "text" or token.content.strip())
    ]
    if len(tokens) != 1 or tokens[0].type != "image":
        return None
    return RemoteImage(_plain_words(tokens[0]), str(tokens[0].attrs.get("src", "")))


def _parse_tokens(text: str, references: References | None) -> list[Token]:
    tokens: list[Token] = []
    env: dict[str, Any] = {"references": references or {}}
    _PARSER.inline.parse(text, _PARSER, env, tokens)
    return tokens


def _plain_words(image: Token) -> str:
    parts = [" " if child.type.endswith("break") else _plain_words(child) for child in image.children or ()]
    return "".join(parts) or ("" if image.children else image.content or _label(image))


def _label(token: Token) -> str:
    """Return the displayed label of a footnote reference, in brackets so that it does not join the word before it."""
    return f"[{token.meta['label']}]" if token.type == "footnote_ref" else ""


_OPENS = {"strong_open": SpanStyle.BOLD, "em_open": SpanStyle.ITALIC, "s_open": SpanStyle.STRIKE}
_CLOSES = {"strong_close": SpanStyle.BOLD, "em_close": SpanStyle.ITALIC, "s_close": SpanStyle.STRIKE}


class _LineBuilder:
    """Collects text and spans token by token."""

    def __init__(self, *, may_hide: bool) -> None:
        self._may_hide = may_hide
        self._program_characters: set[int] = set()
        self._size = 0
        self.parts: list[str] = []
        self.spans: list[Span] = []
        self._offset = 0
        # Emphasis may be nested in emphasis of the same kind, so count each kind.
        self._depth = dict.fromkeys(_OPENS.values(), 0)
        self._href = ""
        self._link_start = 0
        # Two adjacent links to one target stay two spans.
        self._starts_new_link = False

    def line(self) -> Line:
        """Return the whole line. Hidden characters are judged last, because their neighbours decide what they hide."""
        line = Line("".join(self.parts), tuple(self.spans))
        if not self._may_hide:
            return line
        hidden = [index for index in find_deceptive(line.text) if index not in self._program_characters]
        return spell_out_hidden(line, hidden) if hidden else line

    def add_token(self, token: Token) -> None:
        kind = token.type
        if kind in _OPENS:
            self._depth[_OPENS[kind]] += 1
        elif kind in _CLOSES:
            self._depth[_CLOSES[kind]] -= 1
        elif kind == "link_open":
            self._href, self._link_start = safe_target(str(token.attrs.get("href", ""))), len(self.parts)
            self._starts_new_link = bool(self._href)
        elif kind == "link_close":
            self._close_link()
        elif kind in {"softbreak", "hardbreak"}:
            self.add_own(LINE_BREAK, SpanStyle.PLAIN, self._href)
        else:
            self._add_content(token)

    def _add_content(self, token: Token) -> None:
        kind = token.type
        if kind == "image":
            target = str(token.attrs.get("src", ""))
            self.add(f"[{_plain_words(token) or target}]", SpanStyle.IMAGE, self._href or safe_target(target))
        elif kind == "code_inline":
            self.add(token.content, SpanStyle.CODE, self._href)
        elif kind.startswith("math"):
            style = SpanStyle.MATH | (SpanStyle.DISPLAY if kind == "math_inline_double" else SpanStyle.PLAIN)
            self.add_own(OBJECT, style, self._href, token.content)
        elif kind == "footnote_ref":
            self.add(_label(token), SpanStyle.FOOTNOTE, f"{FOOTNOTE_TARGET}{token.meta['label']}")
        elif self._href:
            self.add(token.content, SpanStyle.PLAIN, self._href)
        else:
            self._add_text(token.content)

    def _close_link(self) -> None:
        href, self._href, self._starts_new_link = self._href, "", False
        if href:
            self._add_note("".join(self.parts[self._link_start :]), href)

    def _add_note(self, words: str, href: str) -> None:
        if note := misleading_link_note(words, href):
            self.add(f" (→ {note})", SpanStyle.NOTE)

    def _add_text(self, text: str) -> None:
        offset = 0
        if "://" in text:
            for start, address in find_urls(text):
                href = _PARSER.normalizeLink(address)
                self.add(text[offset:start])
                self._starts_new_link = True
                self.add(address, SpanStyle.PLAIN, href)
                self._add_note(address, href)
                offset = start + len(address)
        self.add(text[offset:] if offset else text)

    def add_own(self, text: str, style: int = SpanStyle.PLAIN, href: str = "", source: str = "") -> None:
        """Add a character of the program, which is never taken for a hidden one of the text."""
        self._program_characters.add(self._size)
        self.add(text, style, href, source)

    def add(self, text: str, style: int = SpanStyle.PLAIN, href: str = "", source: str = "") -> None:
        """Add text in a style, within the open emphasis."""
        if not text:
            return
        for emphasis, depth in self._depth.items():
            if depth:
                style |= emphasis
        if href and not style & SpanStyle.FOOTNOTE:
            style |= SpanStyle.LINK
        length = utf16_length(text)
        if style:
            self._join(Span(self._offset, length, style, href, source))
        self.parts.append(text)
        self._offset += length
        self._size += len(text)

    def _join(self, new: Span) -> None:
        """Merge adjacent spans of one style: the parser may split text anywhere."""
        last = self.spans[-1] if self.spans else None
        same = last and last.start + last.length == new.start and (last.style, last.href) == (new.style, new.href)
        if last and same and not self._starts_new_link and not new.style & (SpanStyle.MATH | SpanStyle.FOOTNOTE):
            self.spans[-1] = Span(last.start, last.length + new.length, new.style, new.href)
        else:
            self.spans.append(new)
        self._starts_new_link = False
