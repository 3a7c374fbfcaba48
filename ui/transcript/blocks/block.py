"""What every block offers to the row it stands in."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import QPoint, QRect
from PySide6.QtGui import QPainter

from ui.transcript.look import Look
from ui.transcript.markdown.leaves import Inside

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
    joint: str | None = None
    """Between this block and the one before it, when both are pieces of one paragraph: what stood there."""
    dirty_from = 0
    """After a change of its own, the y from which it must be painted again."""

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

    def spoken(self) -> str:
        """The text as assistive technology reads it."""
        return self.plain()

    def offset_at(self, point: QPoint) -> int:
        """The place in the text nearest to a point. Only called when laid out."""
        del point
        return 0

    def paragraph_at(self, offset: int) -> Span:
        """The paragraph around a place."""
        del offset
        return EVERYTHING

    def link_at(self, point: QPoint) -> str:
        """The target under a point, or nothing."""
        del point
        return ""

    def controls(self) -> Sequence[Control]:
        """What can be pressed."""
        return ()

    def natural_width(self) -> int:
        """How wide the content is, where that is less than the width it was given. Only called when laid out."""
        return 1 << 20

    def scroll_sideways(self, pixels: int) -> bool:
        """Move content that is too wide; answers whether anything moved."""
        del pixels
        return False
