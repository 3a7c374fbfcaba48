"""What every block offers to its row: layout, painting, text, selection; base classes for each way of being copied;
and the joined text of blocks below each other.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

from PySide6.QtCore import QCoreApplication, QPoint, QRect, QRectF
from PySide6.QtGui import QPainter

from ui.transcript.markdown.elements import Container
from ui.transcript.markdown.inline import LINE_BREAK, Line, RemoteImage, slice_utf16
from ui.transcript.markdown.links import safe_target
from ui.transcript.markdown.serializer import (
    code_html,
    code_markdown,
    line_to_html,
    line_to_markdown,
    math_html,
    math_markdown,
)
from ui.transcript.markdown.text_units import utf16_length
from ui.transcript.style import RenderStyle

TextRange = tuple[int, int]
"""Start and end, in UTF-16 units of a block's text."""

WHOLE_TEXT: TextRange = (0, 1 << 30)


@dataclass(frozen=True, slots=True)
class Control:
    """Something to press. `name` is for assistive technology, `box` in the block's coordinates."""

    name: str
    box: QRect
    press: Callable[[], None]
    is_link: bool = False


@dataclass(frozen=True, slots=True)
class MenuAction:
    """Something that a menu offers for what is under the pointer."""

    label: str
    callback: Callable[[], None]


@dataclass(slots=True)
class PaintContext:
    """One painting of one block: the painter stands at the block's origin."""

    painter: QPainter
    style: RenderStyle
    clip: QRect
    selection: TextRange | None = None
    hovered: str = ""
    focused: str = ""

    @property
    def ratio(self) -> float:
        """Device pixels for each pixel."""
        return self.painter.device().devicePixelRatio()


class Block:
    """Laid out when it comes near the screen, forgotten when it leaves; its text stays known."""

    gap = 0
    containers: tuple[Container, ...] = ()
    is_laid_out = False
    tight = False
    starts = True
    """Of what it shows of Markdown: as in a Leaf."""
    separator: str | None = None
    """Between this block and the one before it, when both are pieces of one paragraph: what stood there."""
    dirty_from = 0
    """After a change of its own, the y from which it must be painted again."""
    layout_count = 0
    """How often it was laid out as it is now: with this content, in this width."""

    def estimate(self, width: int, style: RenderStyle) -> int:
        """A guess at the height, cheap."""
        raise NotImplementedError

    def layout(self, width: int, style: RenderStyle) -> int:
        """Lay out; answers the height in pixels."""
        raise NotImplementedError

    def forget(self) -> None:
        """Give up the layout."""
        self.is_laid_out = False

    def paint(self, context: PaintContext) -> None:
        """Draw what lies in the clip. Only called when laid out."""
        raise NotImplementedError

    def plain(self) -> str:
        """The text as it is copied; nothing where there is nothing to copy."""
        return ""

    def markdown(self, start: int = 0, end: int = WHOLE_TEXT[1]) -> str:
        """A part of the text as Markdown, without what stands around the block. Places are those of plain()."""
        return line_to_markdown(Line(self.plain().replace("\n", LINE_BREAK)), start, end)

    def html(self, start: int = 0, end: int = WHOLE_TEXT[1]) -> str:
        """The same as an element of HTML."""
        return f"<p>{line_to_html(Line(self.plain().replace(chr(10), LINE_BREAK)), start, end)}</p>"

    def markdown_prefix(self) -> str:
        """What must stand above a part of it in Markdown, so that the part is read as what it is."""
        return ""

    def spoken_text(self) -> str:
        """The text as assistive technology reads it."""
        return self.plain()

    def offset_at(self, point: QPoint) -> int:
        """The place in the text nearest to a point. Only called when laid out."""
        del point
        return 0

    def boxes(self, start: int, end: int) -> list[QRectF]:
        """What a part of the text covers, box by box; none where the whole block stands for it. Only when laid out."""
        del start, end
        return []

    def caret_rect_at(self, offset: int) -> QRectF | None:
        """Where a caret stands before the character at a place; None without such a place. Only when laid out."""
        del offset
        return None

    def caret_stop_at(self, offset: int) -> int:
        """The place itself, or the next one at which a caret may stand."""
        return offset

    def paragraph_at(self, offset: int) -> TextRange:
        """The paragraph around a place."""
        del offset
        return WHOLE_TEXT

    def link_at(self, point: QPoint) -> str:
        """The target under a point, or nothing."""
        del point
        return ""

    def tooltip_at(self, point: QPoint) -> str:
        """What is said about what is under a point, where that is more than is seen."""
        del point
        return ""

    def controls(self) -> Sequence[Control]:
        """What can be pressed."""
        return ()

    def actions(self, point: QPoint) -> Sequence[MenuAction]:
        """What a menu offers at a point, beside what it offers for every text."""
        del point
        return ()

    def natural_width(self) -> int:
        """How wide the content is, where that is less than the width it was given. Only called when laid out."""
        return 1 << 20

    def scroll_horizontally(self, pixels: int) -> bool:
        """Move content that is too wide; answers whether anything moved."""
        del pixels
        return False


_OPENING, _CLOSING = "$$\n", "\n$$"


class StyledTextBlock(Block):
    """A line of styled text."""

    def line(self) -> Line:
        """The text and its styles."""
        raise NotImplementedError

    def plain(self) -> str:
        """Without markup."""
        return self.line().plain()

    def markdown(self, start: int = 0, end: int = WHOLE_TEXT[1]) -> str:
        """With its styles; a formula that is selected in part is left out."""
        line = self.line()
        return line_to_markdown(line, line.from_plain(start), line.from_plain(end)).strip(" ")

    def html(self, start: int = 0, end: int = WHOLE_TEXT[1]) -> str:
        """A paragraph."""
        line = self.line()
        return f"<p>{line_to_html(line, line.from_plain(start), line.from_plain(end))}</p>"


class CodeSourceBlock(Block):
    """Code, as it is in a file. `info` is what stands behind its fence."""

    language = ""
    info = ""

    @property
    def text(self) -> str:
        """All of it."""
        raise NotImplementedError

    def plain(self) -> str:
        """The code."""
        return self.text

    def markdown(self, start: int = 0, end: int = WHOLE_TEXT[1]) -> str:
        """In a fence."""
        return code_markdown(slice_utf16(self.text, start, end), self.info)

    def html(self, start: int = 0, end: int = WHOLE_TEXT[1]) -> str:
        """With its line ends."""
        return code_html(slice_utf16(self.text, start, end), self.language)


class FormulaSourceBlock(Block):
    """A formula that stands alone."""

    OPENING = _OPENING
    text = ""

    def plain(self) -> str:
        """The source between its signs."""
        return f"{_OPENING}{self.text}{_CLOSING}"

    def spoken_text(self) -> str:
        """The source, with what it is before it."""
        return QCoreApplication.translate("Transcript", "Formula: {0}").format(self.text)

    def markdown(self, start: int = 0, end: int = WHOLE_TEXT[1]) -> str:
        """A formula; of a part of it, the source."""
        plain = self.plain()
        return math_markdown(self.text) if not start and end >= utf16_length(plain) else slice_utf16(plain, start, end)

    def html(self, start: int = 0, end: int = WHOLE_TEXT[1]) -> str:
        """Its source."""
        plain = self.plain()
        return math_html(self.text if not start and end >= utf16_length(plain) else slice_utf16(plain, start, end))


class ImageSourceBlock(Block):
    """A picture that a text points to; it is copied as a whole."""

    def __init__(self, image: RemoteImage) -> None:
        self._image = image

    def label(self) -> str:
        """What it shows, as the text says."""
        return self._image.label or QCoreApplication.translate("Transcript", "Picture")

    def plain(self) -> str:
        """Description and address."""
        return f"{self._image.label} ({self._image.target})" if self._image.label else self._image.target

    def markdown(self, start: int = 0, end: int = WHOLE_TEXT[1]) -> str:
        """As a picture, whatever of it is selected."""
        del start, end
        label = self._image.label.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
        return f"![{label}](<{self._image.target}>)"

    def html(self, start: int = 0, end: int = WHOLE_TEXT[1]) -> str:
        """A link: whoever pastes it fetches nothing by that."""
        del start, end
        label, target = escape(self.label()), safe_target(self._image.target)
        return f'<p><a href="{escape(target)}">{label}</a></p>' if target else f"<p>{label}</p>"


class ItemListBlock(Block):
    """A pointer and a caret find places before and behind each thing, and none inside of one."""

    def item_texts(self) -> Sequence[str]:
        """What is copied of each, without line ends."""
        raise NotImplementedError

    def item_rects(self) -> Sequence[QRect]:
        """Where each stands, in order; several may share a place. Only called when laid out."""
        raise NotImplementedError

    def plain(self) -> str:
        """One on each line."""
        return "\n".join(self.item_texts())

    def selected_items(self, start: int, end: int) -> list[int]:
        """The numbers of those that are touched by a part of the text."""
        return [number for number, (first, last) in enumerate(self._spans()) if start < last and end > first]

    def is_within_item(self, start: int, end: int) -> bool:
        """Whether a part of the text is less than one of them, as a word that was chosen by two clicks."""
        return any(first <= start and end <= last and (start, end) != (first, last) for first, last in self._spans())

    def _spans(self) -> Iterator[TextRange]:
        at = 0
        for text in self.item_texts():
            size = utf16_length(text)
            yield at, at + size
            at += size + 1

    def offset_at(self, point: QPoint) -> int:
        """Before or behind the nearest one."""
        boxes = self.item_rects()
        if not boxes:
            return 0
        number = min(range(len(boxes)), key=lambda at: (_distance(boxes[at], point), at))
        is_behind = point.x() > boxes[number].center().x()
        if is_behind:
            # Of several in one place the last.
            number = max(at for at, box in enumerate(boxes) if box == boxes[number])
        return list(self._spans())[number][is_behind]

    def boxes(self, start: int, end: int) -> list[QRectF]:
        """All of each that is touched."""
        places = self.item_rects()
        found = [places[at] for at in self.selected_items(start, end)]
        return [QRectF(box) for at, box in enumerate(found) if box not in found[:at]]

    def caret_rect_at(self, offset: int) -> QRectF | None:
        """At the left edge of one, or at the right."""
        for (_, last), box in zip(self._spans(), self.item_rects(), strict=True):
            if offset <= last:
                x = box.right() + 1 if offset == last else box.left()
                return QRectF(x, box.top(), 0, box.height())
        return None

    def caret_stop_at(self, offset: int) -> int:
        """The next edge."""
        edges = [edge for span in self._spans() for edge in span]
        return next((edge for edge in edges if edge >= offset), edges[-1] if edges else 0)

    def paragraph_at(self, offset: int) -> TextRange:
        """One of them."""
        return next((span for span in self._spans() if offset <= span[1]), WHOLE_TEXT)


def _distance(box: QRect, point: QPoint) -> tuple[int, int]:
    """How far a point is from a box: lines first."""
    above = max(box.top() - point.y(), point.y() - box.bottom(), 0)
    aside = max(box.left() - point.x(), point.x() - box.right(), 0)
    return above, aside


def separator_before(block: Block, before: Block) -> str:
    """What stands between a block and the one before it."""
    if block.separator is not None:
        return block.separator
    return "\n" if block.containers and before.containers else "\n\n"


def marker_before(block: Block) -> str:
    """What stands before its first line."""
    return f"{block.containers[-1].marker} " if block.containers and block.containers[-1].marker else ""


def text_parts(blocks: Iterable[Block]) -> Iterator[tuple[int, str, str]]:
    """Number and text of each block that has text, and what stands before it."""
    before: Block | None = None
    is_first = True
    for number, block in enumerate(blocks):
        if text := block.plain():
            separator = separator_before(block, before) if before and not is_first else ""
            yield number, separator + marker_before(block), text
            is_first = False
        before = block


def joined_text(blocks: Iterable[Block]) -> str:
    """All of their text."""
    return "".join(between + text for _, between, text in text_parts(blocks))


def locate_offset(blocks: Iterable[Block], offset: int) -> tuple[int, int]:
    """Which block, and which place in it, an offset of their joined text is."""
    found, at = (0, 0), 0
    for number, between, text in text_parts(blocks):
        at += utf16_length(between)
        if number and offset < at:
            return found
        size = utf16_length(text)
        found = number, min(max(0, offset - at), size)
        at += size
        if offset <= at:
            break
    return found


@dataclass(frozen=True, slots=True)
class BlockReplacement:
    """At the index `at` stand `blocks` now, where one stood before; none, when it said nothing."""

    at: int
    blocks: Sequence[Block]

    def map_position(self, block: int, offset: int = 0) -> tuple[int, int]:
        """Where a place of the row is now: a block and an offset in its text."""
        if block < self.at:
            return block, offset
        if block > self.at:
            return block + len(self.blocks) - 1, offset
        if not offset or not self.blocks:
            return block, 0
        number, inside = locate_offset(self.blocks, offset)
        return block + number, inside

    def map_key(self, key: str) -> str:
        """Where a control is now, by its key."""
        block, _, name = key.partition("/")
        return f"{self.map_position(int(block))[0]}/{name}" if name else key
