"""What every block offers to the row it stands in."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPoint, QRect, QRectF
from PySide6.QtGui import QPainter

from ui.transcript.look import RenderStyle
from ui.transcript.markdown.inline import LINE_BREAK, Line
from ui.transcript.markdown.leaves import Container
from ui.transcript.markdown.written import line_to_html, line_to_markdown

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
