"""Markdown as HTML, read by the window's own grammar. All of a text is escaped: no tag in it survives."""

import re
from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import Any, cast

from markdown_it.common.utils import unescapeAll
from markdown_it.token import Token

from desktop_agent.exchange.simple_math import simple_math
from desktop_agent.markdown.link_targets import find_urls, safe_target, target_host
from desktop_agent.markdown.long_text import PIECE, split_long_text
from desktop_agent.markdown.parser import FOOTNOTES_KEY, DepthLimitedParser, make_parser
from desktop_agent.types.hidden_characters import mark_hidden

StyledPieces = Sequence[tuple[str, str]]
Highlight = Callable[[str, str], StyledPieces | None]
"""Returns code in pieces with their kinds, given the code and its language; None where it stays plain."""

Typeset = Callable[[str, bool], str | None]
"""Returns a formula as SVG, given its LaTeX and whether it stands alone; None where it cannot be drawn."""

_MAX_BRACKETS = 500
_TASK = re.compile(r"\[([ xX])\][ \t]+(?=\S)")
_LIKE_A_HOST = re.compile(r"[^\s/.]\.[^\W\d_]{2,}|://")
_LANGUAGE = re.compile(r"[\w+#.-]{1,40}")
_KIND = re.compile(r"[a-z]+")
_SIMPLE_TAGS = {
    "blockquote_open": "<blockquote>", "blockquote_close": "</blockquote>", "bullet_list_open": '<ul dir="auto">',
    "bullet_list_close": "</ul>", "ordered_list_close": "</ol>", "list_item_open": "<li>",
    "list_item_close": "</li>", "hr": "<hr>", "paragraph_close": "</p>", "footnote_reference_close": "</div>",
    "strong_open": "<strong>", "strong_close": "</strong>", "em_open": "<em>", "em_close": "</em>", "s_open": "<s>",
    "s_close": "</s>", "softbreak": "<br>", "hardbreak": "<br>", "paragraph_open": '<p dir="auto">',
}  # fmt: skip

_BLOCKS = make_parser(DepthLimitedParser())
_BLOCKS.core.ruler.enableOnly(["normalize", "block"])
_INLINE = make_parser()


def escape_text(text: str) -> str:
    """Return a text for between tags and in attributes; hidden characters are spelled out."""
    return escape(mark_hidden(text.replace("\r\n", "\n").replace("\r", "\n")))


def link(target: str, inner: str) -> str:
    """Return a link around HTML where the target may be opened, else the HTML alone."""
    safe = safe_target(target)
    if not safe:
        return inner
    return f'<a href="{escape_text(safe)}" rel="noopener noreferrer nofollow">{inner}</a>'


def code_block(code: str, label: str, language: str, highlight: Highlight) -> str:
    """Return a block of code with its label above it, in colours where `highlight` gives some."""
    pieces = highlight(code, language) if language else None
    inner = "".join(map(_styled, pieces)) if pieces is not None else escape_text(code)
    head = f'<figcaption dir="auto">{escape_text(label)}</figcaption>' if label else ""
    return f'<figure class="code">{head}<pre tabindex="0" dir="ltr"><code>{inner}</code></pre></figure>'


def _styled(piece: tuple[str, str]) -> str:
    text, kind = piece
    return f'<span class="{kind}">{escape_text(text)}</span>' if _KIND.fullmatch(kind) else escape_text(text)


class MarkdownRenderer:
    """Renders texts of one page; the anchors of their footnotes are numbered through it."""

    def __init__(self, highlight: Highlight, typeset: Typeset) -> None:
        self._highlight = highlight
        self._typeset = typeset
        self._texts = 0
        self._references: dict[str, Any] = {}
        self._notes: dict[str, int] = {}

    def render(self, text: str) -> str:
        """Return the HTML of one text. Headings begin at the third level, below those of the page."""
        self._texts += 1
        env: dict[str, Any] = {}
        tokens = _BLOCKS.parse(text, env)
        labels = [token.meta["label"] for token in tokens if token.type == "footnote_reference_open"]
        self._notes = {label: number for number, label in enumerate(dict.fromkeys(labels), 1)}
        self._references = {**env.get("references", {}), FOOTNOTES_KEY: self._notes}
        return "".join(self._blocks(tokens))

    def _blocks(self, tokens: list[Token]) -> Iterator[str]:
        is_item_start = False
        for token in tokens:
            kind = token.type
            if token.hidden:
                yield "" if token.nesting > 0 else "\n"
            elif kind == "inline":
                yield self._line(token.content, may_be_task=is_item_start)
            elif kind in _SIMPLE_TAGS:
                yield _SIMPLE_TAGS[kind]
            else:
                yield self._other_block(token)
            is_item_start = kind == "list_item_open" or (is_item_start and kind == "paragraph_open")

    def _other_block(self, token: Token) -> str:
        match token.type:
            case "heading_open" | "heading_close":
                slash = "/" if token.nesting < 0 else ""
                direction = "" if slash else ' dir="auto"'
                return f"<{slash}h{min(int(token.tag[1]) + 2, 6)}{direction}>"
            case "ordered_list_open":
                return f'<ol dir="auto" start="{int(token.attrs.get("start", 1))}">'
            case "fence" | "code_block":
                info = unescapeAll(token.info.strip())
                match = _LANGUAGE.match(info)
                language = match[0] if match else ""
                return code_block(token.content.removesuffix("\n"), info[:200], language, self._highlight)
            case "math_block":
                return f'<div class="math">{self._formula(token.content, display=True)}</div>'
            case "table":
                return "".join(self._table(token))
            case "footnote_reference_open":
                label = cast("str", token.meta["label"])
                anchor = f"<sup>{escape_text(label)}</sup>"
                return f'<div class="footnote" id="{self._anchor(label)}">{anchor}'
            case _:
                return escape_text(token.content)

    def _table(self, token: Token) -> Iterator[str]:
        aligns = cast("tuple[str, ...]", token.meta["aligns"])
        rows = cast("list[Sequence[str]]", token.meta["cells"])
        yield '<div class="table" tabindex="0"><table>'
        for number, row in enumerate(rows):
            tag = "td" if number else "th"
            yield "<thead><tr>" if not number else "<tbody><tr>" if number == 1 else "<tr>"
            for align, cell in zip(aligns, row, strict=False):
                yield f'<{tag} class="{align}" dir="auto">{self._line(cell)}</{tag}>'
            yield "</tr>" if number else "</tr></thead>"
        yield "</tbody></table></div>" if len(rows) > 1 else "</table></div>"

    def _anchor(self, label: str) -> str:
        return f"note-{self._texts}-{self._notes[label]}"

    def _line(self, text: str, *, may_be_task: bool = False) -> str:
        """Return inline HTML; a long paragraph is read in pieces, as in the window."""
        box = ""
        if may_be_task and (task := _TASK.match(text)):
            box = '<span class="box">☐</span> ' if task[1] == " " else '<span class="box">☑</span> '
            text = text[task.end() :]
        pieces = (
            {None: "", "\n": "<br>"}.get(separator, separator or "") + self._piece(piece)
            for separator, piece in split_long_text(text)
        )
        return box + "".join(pieces)

    def _piece(self, text: str) -> str:
        if len(text) > PIECE or text.count("[") > _MAX_BRACKETS:
            return escape_text(text).replace("\n", "<br>")
        tokens: list[Token] = []
        _INLINE.inline.parse(text, _INLINE, {"references": self._references}, tokens)
        return "".join(self._inline(tokens))

    def _inline(self, tokens: list[Token]) -> Iterator[str]:
        target, words = "", list[str]()
        for token in tokens:
            kind = token.type
            if kind == "link_open":
                target = safe_target(str(token.attrs.get("href", "")))
                if target:
                    yield link(target, "").removesuffix("</a>")
            elif kind == "link_close":
                if target:
                    yield "</a>" + _host_note("".join(words), target)
                target, words = "", []
            elif kind in _SIMPLE_TAGS:
                yield _SIMPLE_TAGS[kind]
            else:
                words += [token.content] if target else []
                yield self._inline_content(token, in_link=bool(target))

    def _inline_content(self, token: Token, *, in_link: bool) -> str:
        match token.type:
            case "code_inline":
                return f'<code dir="auto">{escape_text(token.content)}</code>'
            case "math_inline" | "math_inline_double":
                return self._formula(token.content, display=False)
            case "image":
                target = str(token.attrs.get("src", ""))
                words = escape_text(f"[{_plain_words(token) or target}]")
                return words if in_link else link(target, words)
            case "footnote_ref":
                label = cast("str", token.meta["label"])
                return f'<sup><a href="#{self._anchor(label)}">[{escape_text(label)}]</a></sup>'
            case _:
                return escape_text(token.content) if in_link else _with_links(token.content)

    def _formula(self, latex: str, *, display: bool) -> str:
        # Within a line a simple formula is made of letters, which can be selected and found.
        simple = simple_math(latex)
        if simple is None or display:
            svg = self._typeset(latex, display)
            if svg is not None:
                return svg
        if simple is not None:
            return f'<span class="formula" dir="ltr">{simple}</span>'
        return f'<code class="latex" dir="ltr">{escape_text(latex)}</code>'


def _plain_words(image: Token) -> str:
    parts = [" " if child.type.endswith("break") else _plain_words(child) for child in image.children or ()]
    return "".join(parts) or ("" if image.children else image.content)


def _host_note(words: str, target: str) -> str:
    """Return the real host behind a link whose words look like another address."""
    host = target_host(target)
    if not host or not _LIKE_A_HOST.search(words) or host.removeprefix("www.") in words.lower():
        return ""
    return f' <span class="muted">(→ {escape_text(host)})</span>'


def _with_links(text: str) -> str:
    """Return a text in which bare addresses are links."""
    if "://" not in text:
        return escape_text(text)
    pieces: list[str] = []
    offset = 0
    for start, address in find_urls(text):
        target = _INLINE.normalizeLink(address)
        pieces += (escape_text(text[offset:start]), link(target, escape_text(address)))
        offset = start + len(address)
    return "".join((*pieces, escape_text(text[offset:])))
