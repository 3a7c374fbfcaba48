"""The inline half of Markdown: one line of styled runs. Offsets count UTF-16 units, as Qt's layouts do."""

import re
from dataclasses import dataclass
from typing import Any

from markdown_it.token import Token

from ui.transcript.markdown.parser import References, make_parser
from ui.transcript.markdown.pieces import PIECE

LINE_BREAK = "\u2028"
"""What Qt's layouts break a line at inside one paragraph."""

_PARSER = make_parser()
# Without an inline marker there is nothing to parse; most short paragraphs are like that.
_MARKUP = re.compile(r"[\\`*_~\[\]!<&\n]|https?://")
_ADDRESS = re.compile(r"https?://[^\s<>\"`]+[^\s<>\"`.,:;!?')\]}]")
# The parser looks for the end of a link from every bracket on: thousands of them cost tenths of a second.
_MOST_BRACKETS = 500
_SAFE = re.compile(r"(?:https?://|mailto:)", re.IGNORECASE)


class Style:
    """How a run looks: bits of a plain number, because flags of the standard library cost ten times as much."""

    PLAIN = 0
    BOLD = 1
    ITALIC = 2
    STRIKE = 4
    CODE = 8
    LINK = 16
    IMAGE = 32


@dataclass(frozen=True, slots=True)
class Span:
    """Part of a line in one style. `href` is empty unless it leads somewhere that may be opened."""

    start: int
    length: int
    style: int
    href: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """Text without markup, and what is special about parts of it."""

    text: str
    spans: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class RemoteImage:
    """A picture that a text points to. It is named, never fetched."""

    label: str
    target: str


def units(text: str) -> int:
    """Length in UTF-16 units."""
    return len(text) if text.isascii() else len(text) + sum(1 for char in text if char > "\uffff")


def cut(text: str, start: int, end: int) -> str:
    """A slice by UTF-16 offsets; half of a pair is left out."""
    if text.isascii() or max(text) <= "\uffff":
        return text[start:end]
    return text.encode("utf-16-le")[start * 2 : end * 2].decode("utf-16-le", "ignore")


def inline(text: str, references: References | None = None) -> Line:
    """Parse inline Markdown. Links lead only to http, https and mailto; other targets are plain text.

    What is too long or too full of brackets to be read quickly is plain text as a whole.
    """
    if not _MARKUP.search(text):
        return Line(text)
    if len(text) > PIECE or text.count("[") > _MOST_BRACKETS:
        return Line(text.replace("\n", LINE_BREAK))
    run = _Run()
    for token in _tokens(text, references):
        run.take(token)
    return Line("".join(run.parts), tuple(run.spans))


def only_image(text: str, references: References | None = None) -> RemoteImage | None:
    """The picture, when a paragraph is nothing but one."""
    if not text.startswith(("![", "[![")):
        return None
    tokens = [token for token in _tokens(text, references) if token.type not in {"link_open", "link_close"}]
    tokens = [token for token in tokens if token.type != "text" or token.content.strip()]
    if len(tokens) != 1 or tokens[0].type != "image":
        return None
    return RemoteImage(tokens[0].content, str(tokens[0].attrs.get("src", "")))


def _tokens(text: str, references: References | None) -> list[Token]:
    tokens: list[Token] = []
    env: dict[str, Any] = {"references": references or {}}
    _PARSER.inline.parse(text, _PARSER, env, tokens)
    return tokens


_OPENS = {"strong_open": Style.BOLD, "em_open": Style.ITALIC, "s_open": Style.STRIKE}
_CLOSES = {"strong_close": Style.BOLD, "em_close": Style.ITALIC, "s_close": Style.STRIKE}


class _Run:
    """Collects text and spans, token by token."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.spans: list[Span] = []
        self._at = 0
        # Emphasis may stand inside emphasis of the same kind, so each kind is counted.
        self._depth = dict.fromkeys(_OPENS.values(), 0)
        self._href = ""

    def take(self, token: Token) -> None:
        """One inline token."""
        kind = token.type
        if kind in _OPENS:
            self._depth[_OPENS[kind]] += 1
        elif kind in _CLOSES:
            self._depth[_CLOSES[kind]] -= 1
        elif kind == "link_open":
            self._href = str(token.attrs.get("href", ""))
        elif kind == "link_close":
            self._href = ""
        elif kind == "image":
            target = str(token.attrs.get("src", ""))
            self._add(f"[{token.content or target}]", Style.IMAGE, self._href or target)
        elif kind == "code_inline":
            self._add(token.content, Style.CODE, self._href)
        elif kind in {"softbreak", "hardbreak"}:
            self._add(LINE_BREAK, Style.PLAIN, "")
        elif self._href:
            self._add(token.content, Style.PLAIN, self._href)
        else:
            self._add_text(token.content)

    def _add_text(self, text: str) -> None:
        """Plain text; bare web addresses in it become links."""
        at = 0
        if "://" in text:
            for found in _ADDRESS.finditer(text):
                self._add(text[at : found.start()], Style.PLAIN, "")
                self._add(found[0], Style.PLAIN, found[0])
                at = found.end()
        self._add(text[at:] if at else text, Style.PLAIN, "")

    def _add(self, text: str, style: int, href: str) -> None:
        if not text:
            return
        for each, depth in self._depth.items():
            if depth:
                style |= each
        if href and _SAFE.match(href):
            style |= Style.LINK
        else:
            href = ""
        length = units(text)
        if style:
            self._join(style, href, length)
        self.parts.append(text)
        self._at += length

    def _join(self, style: int, href: str, length: int) -> None:
        """One span for neighbours that look the same: the parser may cut text anywhere."""
        last = self.spans[-1] if self.spans else None
        if last and last.start + last.length == self._at and (last.style, last.href) == (style, href):
            self.spans[-1] = Span(last.start, last.length + length, style, href)
        else:
            self.spans.append(Span(self._at, length, style, href))
