"""What every block offers to the row it stands in."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPoint, QRect, QRectF
from PySide6.QtGui import QPainter

from ui.transcript.look import Look
from ui.transcript.markdown.inline import LINE_BREAK, Line
from ui.transcript.markdown.leaves import Inside
from ui.transcript.markdown.written import as_html, as_markdown

Span = tuple[int, int]
"""Start and end, in UTF-16 units of a block's text."""

EVERYTHING: Span = (0, 1 << 30)


@dataclass(frozen=True, slots=True)
class Control:
    """Something to press. `name` is for assistive technology, `box` in the block's coordinates."""

    name: str
    box: QRect
    press: Callable[[], None]
    is_link: bool = False


@dataclass(frozen=True, slots=True)
class Action:
    """Something that a menu offers for what is under the pointer."""

    words: str
    act: Callable[[], None]


@dataclass(slots=True)
class Brush:
    """One painting of one block: the painter stands at the block's origin."""

    painter: QPainter
    look: Look
    clip: QRect
    selection: Span | None = None
    hovered: str = ""
    focused: str = ""

    @property
    def ratio(self) -> float:
        """Device pixels for each pixel."""
        return self.painter.device().devicePixelRatio()


class Block:
    """Laid out when it comes near the screen, forgotten when it leaves; its text stays known."""

    gap = 0
    inside: tuple[Inside, ...] = ()
    laid = False
    tight = False
    starts = True
    """Of what it shows of Markdown: as in a Leaf."""
    joint: str | None = None
    """Between this block and the one before it, when both are pieces of one paragraph: what stood there."""
    dirty_from = 0
    """After a change of its own, the y from which it must be painted again."""
    layouts = 0
    """How often it was laid out as it is now: with this content, in this width."""

    def estimate(self, width: int, look: Look) -> int:
        """A guess at the height, cheap."""
        raise NotImplementedError

    def lay(self, width: int, look: Look) -> int:
        """Lay out; answers the height in pixels."""
        raise NotImplementedError

    def forget(self) -> None:
        """Give up the layout."""
        self.laid = False

    def paint(self, brush: Brush) -> None:
        """Draw what lies in the clip. Only called when laid out."""
        raise NotImplementedError

    def plain(self) -> str:
        """The text as it is copied; nothing where there is nothing to copy."""
        return ""

    def markdown(self, start: int = 0, end: int = EVERYTHING[1]) -> str:
        """A part of the text as Markdown, without what stands around the block. Places are those of plain()."""
        return as_markdown(Line(self.plain().replace("\n", LINE_BREAK)), start, end)

    def html(self, start: int = 0, end: int = EVERYTHING[1]) -> str:
        """The same as an element of HTML."""
        return f"<p>{as_html(Line(self.plain().replace(chr(10), LINE_BREAK)), start, end)}</p>"

    def above_part(self) -> str:
        """What must stand above a part of it in Markdown, so that the part is read as what it is."""
        return ""

    def spoken(self) -> str:
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

    def caret_at(self, offset: int) -> QRectF | None:
        """Where a caret stands before the character at a place; None without such a place. Only when laid out."""
        del offset
        return None

    def stop_at(self, offset: int) -> int:
        """The place itself, or the next one at which a caret may stand."""
        return offset

    def paragraph_at(self, offset: int) -> Span:
        """The paragraph around a place."""
        del offset
        return EVERYTHING

    def link_at(self, point: QPoint) -> str:
        """The target under a point, or nothing."""
        del point
        return ""

    def tip_at(self, point: QPoint) -> str:
        """What is said about what is under a point, where that is more than is seen."""
        del point
        return ""

    def controls(self) -> Sequence[Control]:
        """What can be pressed."""
        return ()

    def actions(self, point: QPoint) -> Sequence[Action]:
        """What a menu offers at a point, beside what it offers for every text."""
        del point
        return ()

    def natural_width(self) -> int:
        """How wide the content is, where that is less than the width it was given. Only called when laid out."""
        return 1 << 20

    def scroll_sideways(self, pixels: int) -> bool:
        """Move content that is too wide; answers whether anything moved."""
        del pixels
        return False
