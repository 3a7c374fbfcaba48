"""A conversation for printing: the HTML of its page in the tags that Qt's rich text knows, in parts of bounded length.

Supported HTML Subset, Qt 6.11: no flex, no rounded corners, no details, no figure; tables have backgrounds. Nothing
here has to be escaped: every text in the page is, so whatever looks like a tag is one of ours.
"""

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING

from desktop_agent.data_files import load_text
from desktop_agent.exchange.archive import ReadPicture
from desktop_agent.exchange.branch_view import Speaker, Turn, branch_turns, one_line
from desktop_agent.exchange.html_export import FindChanges, HtmlPage, open_page
from desktop_agent.exchange.html_markdown import escape_text
from desktop_agent.types.blocks import Image
from desktop_agent.types.conversation_tree import UNTITLED, ConversationTree

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

PRINT_STYLE = load_text(__name__, "print.css")
"""For QTextDocument.setDefaultStyleSheet: the light colours of the window, always."""

PAGE_WIDTH = 640
"""Of the text, in CSS pixels: about that of A4 and of Letter between their margins."""
_MAX_PICTURE_HEIGHT = 760
# Two pixels of a picture for one of CSS: about 190 a printed inch.
_PICTURE_DENSITY = 2
_MAX_PIXELS = 60_000_000
# Characters of a part. Laying out more at once would make the window lag.
_PART = 800
_MAX_PART = 2_000

_INK = "#1d1d1b"
# CSS pixels of the printed text, ten points.
_EM = 10 / 72 * 96
_FORMULA_DENSITY = 6
_DEEP = 4
_FORMULA_PICTURE = '<img src="data:image/svg+xml;base64,'
# As many characters take as long to lay out.
_FORMULA_LENGTH = 80
_FORMULA = re.compile(
    r'<svg class="typeset d(?P<depth>\d+)"[^>]* width="(?P<width>[\d.]+)em" height="(?P<height>[\d.]+)em"'
    r" (?P<inside>.*?</svg>)",
    re.DOTALL,
)
TAG = re.compile(r"(<[^>]*>)")
_LAST_LINE_END = re.compile(r"\n(?=(<[^>]*>)*\Z)")
_NAME = re.compile(r"<(/?)([a-z0-9]+)")
_CLASS = re.compile(r' class="([^"]*)"')
_VOID = frozenset({"br", "hr", "img"})
_BOX = '<table width="100%" cellspacing="0" cellpadding="8" bgcolor="{color}"{more}><tr><td>'
_CODE_BOX = '<table width="100%" cellspacing="0" cellpadding="0" bgcolor="#f5f5f3"><tr><td width="12"></td><td>'
_BOX_END = "</td></tr></table>"
_PAD = '<p class="pad">&nbsp;</p>'
# Without margins of their own, so that one that continues in the next part shows no seam.
_BOXES = frozenset({"figure", "blockquote", "table"})
_OPENINGS = {
    ("figure", "code"): (_CODE_BOX, _BOX_END),
    ("figcaption", ""): ('<h6 class="label">', "</h6>"),
    ("code", "in pre"): ("", ""),
    ("details", "card"): ("", ""),
    ("summary", "in card"): (_BOX.format(color="#fbfbfa", more=' border="1" bordercolor="#dedcd6"'), _BOX_END),
    ("summary", ""): ('<p class="muted">', "</p>"),
    ("span", "arguments"): ('<br><span class="label">', "</span>"),
    ("details", "thought"): ('<div class="thought">', "</div>"),
    ("details", ""): ('<div class="thought">', "</div>"),
    ("div", "table"): ("", ""),
    ("div", "body"): ("", ""),
    ("table", ""): ('<table cellspacing="0" cellpadding="5" border="1" bordercolor="#dedcd6">', "</table>"),
    ("blockquote", ""): (
        '<table cellspacing="0" cellpadding="0"><tr><td width="3" bgcolor="#dedcd6"></td><td width="11"></td>'
        '<td class="quote">',
        _BOX_END,
    ),
    ("p", "in footnote"): ("", "<br>"),
    ("code", "latex"): ("<code>", "</code>"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class PrintedPart:
    """HTML for one document of Qt, to be placed below the part before; without a gap where it `continues` that.

    `done` is the number of its turn, of `total`.
    """

    html: str
    begins_turn: bool = False
    continues: bool = False
    done: int = 0
    total: int = 0


def printed_parts(
    tree: ConversationTree, read_picture: ReadPicture, find_changes: FindChanges
) -> Iterator[PrintedPart]:
    """Yield the branch in view. It blocks, and raises ExtraMissing where the Markdown parser is missing."""
    with open_page(read_picture, find_changes) as page:
        title = escape_text(one_line(tree.title)) or UNTITLED
        yield PrintedPart(f'<h1>{title}</h1><p class="muted">{page.details(tree)}</p>')
        turns = list(branch_turns(tree))
        for done, turn in enumerate(turns, 1):
            is_first = True
            for html, continues in _turn_parts(page, turn):
                yield PrintedPart(html, is_first, continues, done, len(turns))
                is_first = False


def _turn_parts(page: HtmlPage, turn: Turn) -> Iterator[tuple[str, bool]]:
    """Yield HTML, and whether it continues what was before it."""
    parts = list(turn.parts)
    is_person = turn.speaker is Speaker.PERSON
    if is_person:
        parts.sort(key=lambda part: not isinstance(part, Image))
    for part in parts:
        splitter = _Splitter(_BUBBLE_WIDTH if is_person else PAGE_WIDTH)
        whole = _FORMULA.sub(_printed_formula, "".join(page.part(part, turn.speaker)))
        for html, continues in splitter.parts(whole):
            if html.strip():
                yield _bubble(html) if is_person else html, continues
    if not turn.is_whole:
        yield '<p class="muted">Not finished</p>', False


def _printed_formula(match: re.Match[str]) -> str:
    """Return the SVG as a picture, which is all that Qt's rich text knows. It is drawn at its own size: a large one."""
    width, height = (float(match[edge]) * _EM for edge in ("width", "height"))
    size = f'width="{width * _FORMULA_DENSITY:.0f}" height="{height * _FORMULA_DENSITY:.0f}"'
    svg = f"<svg {size} {match['inside']}".replace("currentColor", _INK)
    data = base64.b64encode(svg.encode()).decode()
    # Qt has no other alignment below the line.
    style = ' style="vertical-align: middle"' if int(match["depth"]) >= _DEEP else ""
    return f'{_FORMULA_PICTURE}{data}" width="{width:.0f}" height="{height:.0f}"{style}>'


_BUBBLE_WIDTH = PAGE_WIDTH * 4 // 5 - 24


def _bubble(html: str) -> str:
    return '<table width="100%" cellspacing="0" cellpadding="0"><tr><td width="20%"></td>' + (
        f'<td width="80%" bgcolor="#eef0fb">{_PAD}<table cellpadding="0" cellspacing="0"><tr><td width="12"></td>'
        f'<td>{html}</td><td width="12"></td></tr></table>{_PAD}</td></tr></table>'
    )


@dataclass(slots=True)
class _OpenTag:
    name: str
    kind: str
    opening: str
    closing: str
    items: int = 0
    first: int = 1

    def reopening(self) -> str:
        if self.name == "ol":
            return f'<ol start="{self.first + self.items}">'
        return self.opening


class _Splitter:
    """Cuts HTML where nothing is open, and where that takes too long, between lines, rows, items or words."""

    def __init__(self, picture_width: int = PAGE_WIDTH) -> None:
        self._picture_width = picture_width
        self._open: list[_OpenTag] = []
        self._pieces: list[str] = []
        self._length = 0
        self._continues = False

    def parts(self, html: str) -> Iterator[tuple[str, bool]]:
        """Yield the parts, and whether each continues what was open at the end of the one before."""
        for token in TAG.split(html):
            if token.startswith("<"):
                yield from self._tag(token)
            elif token:
                yield from self._text(token)
        if self._pieces:
            yield "".join(self._pieces), self._continues

    def _add(self, html: str, length: int | None = None) -> None:
        self._pieces.append(html)
        self._length += len(html) if length is None else length

    def _cut(self) -> Iterator[tuple[str, bool]]:
        html = "".join(self._pieces)
        if any(tag.name == "pre" for tag in self._open):
            # Qt would show an empty line.
            html = _LAST_LINE_END.sub("", html)
        yield "".join((html, *(tag.closing for tag in reversed(self._open)))), self._continues
        self._continues = any(tag.opening for tag in self._open)
        self._pieces = [tag.reopening() for tag in self._open]
        self._length = 0

    def _text(self, text: str) -> Iterator[tuple[str, bool]]:
        in_pre = any(tag.name == "pre" for tag in self._open)
        limit = _PART if in_pre else _MAX_PART
        while self._length + len(text) > limit:
            fitting = _fitting_length(
                text, limit - self._length, "\n" if in_pre else " ", is_full=self._length * 2 > limit
            )
            self._add(text[:fitting])
            text = text[fitting:] if fitting or not in_pre else text.removeprefix("\n")
            yield from self._cut()
        self._add(text)

    def _tag(self, token: str) -> Iterator[tuple[str, bool]]:
        match = _NAME.match(token)
        name = match[2] if match else ""
        if name in _VOID:
            if name == "img":
                if token.startswith(_FORMULA_PICTURE):
                    self._add(token, _FORMULA_LENGTH)
                else:
                    self._add(_printed_picture(token, self._picture_width), _PART)
            else:
                self._add(token)
            if name == "br" and self._length > _MAX_PART:
                yield from self._cut()
        elif match and match[1]:
            yield from self._close(name)
        else:
            if name == "figure" and self._length * 2 > _PART and not any(tag.opening for tag in self._open):
                # Otherwise its label might be all that fits.
                yield from self._cut()
            self._begin(name, token)

    def _begin(self, name: str, token: str) -> None:
        match = _CLASS.search(token)
        kind = match[1] if match else ""
        parent = self._open[-1] if self._open else None
        if name == "code" and parent is not None and parent.name == "pre":
            kind = "in pre"
        if name == "summary" and parent is not None and parent.kind == "card":
            kind = "in card"
        if name == "p" and parent is not None and parent.kind == "footnote":
            kind = "in footnote"
        opening, closing = _OPENINGS.get((name, kind), (token, f"</{name}>"))
        tag = _OpenTag(name, kind, opening, closing)
        if name == "ol" and (start := re.search(r'start="(\d+)"', token)):
            tag.first = int(start[1])
        if name in _BOXES and tag.opening:
            self._add(_PAD)
        self._open.append(tag)
        self._add(opening)
        if (name, kind) == ("figure", "code"):
            self._add(_PAD)
        if name == "span" and kind.startswith("state"):
            self._add(" &nbsp; ")

    def _close(self, name: str) -> Iterator[tuple[str, bool]]:
        if not self._open:
            return
        tag = self._open.pop()
        if (tag.name, tag.kind) == ("figure", "code"):
            self._add(_PAD)
        self._add(tag.closing)
        if name in _BOXES:
            self._add(_PAD)
        if name == "li" and self._open:
            self._open[-1].items += 1
        is_between = all(not other.opening for other in self._open)
        is_row = name == "tr" or (name == "li" and len(self._open) == 1)
        if self._length > (_PART if is_between else _MAX_PART) and (is_between or is_row):
            yield from self._cut()


def _fitting_length(text: str, room: int, separator: str, *, is_full: bool) -> int:
    """Return how many characters still fit, up to the end of a line or a word; 0 if the part `is_full` without them."""
    length = text.rfind(separator, 0, max(0, room)) + 1
    if length or is_full:
        return length
    length = text.rfind(" ", 0, room) + 1
    if length:
        return length
    # Within a word, but within no character reference, such as &amp;.
    start = text.rfind("&", max(0, room - 12), room)
    is_within = start > 0 and room <= text.find(";", start, start + 12)
    return start if is_within else room


_IMAGE = re.compile(r'<img src="data:[^;]*;base64,([^"]*)" alt="([^"]*)"')


def _printed_picture(tag: str, room: int) -> str:
    """Return the picture as large as it is printed, in pixels too; its name where it cannot be read."""
    match = _IMAGE.match(tag)
    if match is None:
        return ""
    from PIL import Image as Pictures

    try:
        with Pictures.open(BytesIO(base64.b64decode(match[1]))) as picture:
            scale = min(1.0, room / picture.width, _MAX_PICTURE_HEIGHT / picture.height)
            width, height = max(1, round(picture.width * scale)), max(1, round(picture.height * scale))
            data, kind = _scaled(picture, (width * _PICTURE_DENSITY, height * _PICTURE_DENSITY))
    except (OSError, SyntaxError, ValueError, Pictures.DecompressionBombError):
        data, kind, width, height = b"", "", 0, 0
    if not data:
        return f'<span class="muted">[{match[2]}]</span>'
    address = f"data:image/{kind};base64,{base64.b64encode(data).decode()}"
    return f'<img src="{address}" width="{width}" height="{height}">'


def _scaled(picture: "Picture", size: tuple[int, int]) -> tuple[bytes, str]:
    """Return a file with at most so many pixels, and its kind; nothing for a picture that is too large to be read."""
    if picture.width * picture.height > _MAX_PIXELS:
        return b"", ""
    picture.draft("RGB", size)
    has_alpha = "A" in picture.getbands() or "transparency" in picture.info
    pixels, data = picture.convert("RGBA" if has_alpha else "RGB"), BytesIO()
    pixels.thumbnail(size)
    pixels.save(data, "PNG" if has_alpha else "JPEG", quality=88)
    return data.getvalue(), "png" if has_alpha else "jpeg"
