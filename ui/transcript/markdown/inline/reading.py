"""Inline Markdown, read into lines."""

import re
from typing import Any

from markdown_it.token import Token

from desktop_agent.vocabulary.text.hidden_characters import DECEPTIVE_CHARACTERS, find_deceptive
from ui.transcript.markdown.inline.lines import (
    FOOTNOTE_TARGET,
    LINE_BREAK,
    OBJECT,
    Line,
    RemoteImage,
    Span,
    SpanStyle,
    utf16_length,
)
from ui.transcript.markdown.inline.links import find_urls, misleading_link_note, safe_target
from ui.transcript.markdown.inline.spelling import spell_out_hidden
from ui.transcript.markdown.parser import References, make_parser
from ui.transcript.markdown.pieces import PIECE

_PARSER = make_parser()
# Without an inline marker there is nothing to parse; most short paragraphs are like that.
_MARKUP = re.compile(rf"[\\`*_~\[\]!<&$\n{DECEPTIVE_CHARACTERS}]|://")
_MARKUP_IN_ASCII = re.compile(r"[\\`*_~\[\]!<&$\x00-\x08\x0a-\x1f\x7f]|://")
_MAY_HIDE = re.compile(f"[{DECEPTIVE_CHARACTERS}]")
# The parser looks for the end of a link from every bracket on: thousands of them cost tenths of a second.
_MAX_BRACKETS = 500
_LINKED = {"link_open", "link_close"}


def parse_inline(text: str, references: References | None = None) -> Line:
    """Parse inline Markdown. Links lead only to http, https and mailto; other targets are plain text.

    What is too long or too full of brackets to be read quickly is plain text as a whole.
    """
    if not (_MARKUP_IN_ASCII if text.isascii() else _MARKUP).search(text):
        return Line(text)
    # A character may also be written as its number.
    run = _LineBuilder(may_hide="&" in text or _MAY_HIDE.search(text) is not None)
    if len(text) > PIECE or text.count("[") > _MAX_BRACKETS:
        for index, part in enumerate(text.split("\n")):
            if index:
                run.add_own(LINE_BREAK)
            run.add(part)
    else:
        for token in _parse_tokens(text, references):
            run.take(token)
    return run.line()


def parse_image_only(text: str, references: References | None = None) -> RemoteImage | None:
    """The picture, when a paragraph is nothing but one."""
    if not text.startswith(("![", "[![")):
        return None
    tokens = [token for token in _parse_tokens(text, references) if token.type not in _LINKED]
    tokens = [token for token in tokens if token.type != "text" or token.content.strip()]
    if len(tokens) != 1 or tokens[0].type != "image":
        return None
    return RemoteImage(_plain_words(tokens[0]), str(tokens[0].attrs.get("src", "")))


def _parse_tokens(text: str, references: References | None) -> list[Token]:
    tokens: list[Token] = []
    env: dict[str, Any] = {"references": references or {}}
    _PARSER.inline.parse(text, _PARSER, env, tokens)
    return tokens


def _plain_words(image: Token) -> str:
    """What a picture's description reads like."""
    parts = [" " if each.type.endswith("break") else _plain_words(each) for each in image.children or ()]
    return "".join(parts) or ("" if image.children else image.content or _label(image))


def _label(token: Token) -> str:
    """Of a reference to a footnote, as it is shown: a bare number would become part of the word before it."""
    return f"[{token.meta['label']}]" if token.type == "footnote_ref" else ""


_OPENS = {"strong_open": SpanStyle.BOLD, "em_open": SpanStyle.ITALIC, "s_open": SpanStyle.STRIKE}
_CLOSES = {"strong_close": SpanStyle.BOLD, "em_close": SpanStyle.ITALIC, "s_close": SpanStyle.STRIKE}


class _LineBuilder:
    """Collects text and spans, token by token."""

    def __init__(self, *, may_hide: bool) -> None:
        self._may_hide = may_hide
        self._own: set[int] = set()
        self._size = 0
        self.parts: list[str] = []
        self.spans: list[Span] = []
        self._at = 0
        # Emphasis may stand inside emphasis of the same kind, so each kind is counted.
        self._depth = dict.fromkeys(_OPENS.values(), 0)
        self._href = ""
        self._link_from = 0
        # Two links to one place that touch are two.
        self._parted = False

    def line(self) -> Line:
        """All of it. Whether a character hides something is seen by what stands around it, so that is asked last."""
        line = Line("".join(self.parts), tuple(self.spans))
        hidden = [at for at in find_deceptive(line.text) if at not in self._own] if self._may_hide else []
        return spell_out_hidden(line, hidden) if hidden else line

    def take(self, token: Token) -> None:
        """One inline token."""
        kind = token.type
        if kind in _OPENS:
            self._depth[_OPENS[kind]] += 1
        elif kind in _CLOSES:
            self._depth[_CLOSES[kind]] -= 1
        elif kind == "link_open":
            self._href, self._link_from = safe_target(str(token.attrs.get("href", ""))), len(self.parts)
            self._parted = bool(self._href)
        elif kind == "link_close":
            self._close_link()
        elif kind in {"softbreak", "hardbreak"}:
            self.add_own(LINE_BREAK, SpanStyle.PLAIN, self._href)
        else:
            self._take_content(token)

    def _take_content(self, token: Token) -> None:
        kind = token.type
        if kind == "image":
            target = str(token.attrs.get("src", ""))
            self.add(f"[{_plain_words(token) or target}]", SpanStyle.IMAGE, self._href or safe_target(target))
        elif kind == "code_inline":
            self.add(token.content, SpanStyle.CODE, self._href)
        elif kind.startswith("math"):
            shape = SpanStyle.MATH | (SpanStyle.DISPLAY if kind == "math_inline_double" else SpanStyle.PLAIN)
            self.add_own(OBJECT, shape, self._href, token.content)
        elif kind == "footnote_ref":
            self.add(_label(token), SpanStyle.FOOTNOTE, f"{FOOTNOTE_TARGET}{token.meta['label']}")
        elif self._href:
            self.add(token.content, SpanStyle.PLAIN, self._href)
        else:
            self._add_text(token.content)

    def _close_link(self) -> None:
        """Say where the link leads, when its words say something else."""
        href, self._href, self._parted = self._href, "", False
        if href:
            self._note("".join(self.parts[self._link_from :]), href)

    def _note(self, words: str, href: str) -> None:
        if note := misleading_link_note(words, href):
            self.add(f" (→ {note})", SpanStyle.NOTE)

    def _add_text(self, text: str) -> None:
        """Plain text; bare web addresses in it become links."""
        at = 0
        if "://" in text:
            for start, address in find_urls(text):
                href = _PARSER.normalizeLink(address)
                self.add(text[at:start])
                self._parted = True
                self.add(address, SpanStyle.PLAIN, href)
                self._note(address, href)
                at = start + len(address)
        self.add(text[at:] if at else text)

    def add_own(self, text: str, style: int = SpanStyle.PLAIN, href: str = "", source: str = "") -> None:
        """A sign of ours, which may not be taken for one that the text hides."""
        self._own.add(self._size)
        self.add(text, style, href, source)

    def add(self, text: str, style: int = SpanStyle.PLAIN, href: str = "", source: str = "") -> None:
        """Text in a style, within the emphasis of this place."""
        if not text:
            return
        for each, depth in self._depth.items():
            if depth:
                style |= each
        if href and not style & SpanStyle.FOOTNOTE:
            style |= SpanStyle.LINK
        length = utf16_length(text)
        if style:
            self._join(Span(self._at, length, style, href, source))
        self.parts.append(text)
        self._at += length
        self._size += len(text)

    def _join(self, new: Span) -> None:
        """One span for neighbours that look the same: the parser may cut text anywhere."""
        last = self.spans[-1] if self.spans else None
        same = last and last.start + last.length == new.start and (last.style, last.href) == (new.style, new.href)
        if last and same and not self._parted and not new.style & (SpanStyle.MATH | SpanStyle.FOOTNOTE):
            self.spans[-1] = Span(last.start, last.length + new.length, new.style, new.href)
        else:
            self.spans.append(new)
        self._parted = False
