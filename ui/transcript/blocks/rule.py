"""A thematic break."""

from PySide6.QtCore import QRect

from ui.transcript.blocks.block import WHOLE_TEXT, Block, PaintContext
from ui.transcript.copying.leaf_forms import RULE_TEXT
from ui.transcript.look import RenderStyle


class RuleBlock(Block):
    """A quiet line across the column."""

    def __init__(self) -> None:
        self._width = 0

    def estimate(self, width: int, style: RenderStyle) -> int:
        """Exact."""
        del width
        return style.px(9)

    def layout(self, width: int, style: RenderStyle) -> int:
        """Exact."""
        self.is_laid_out, self._width = True, width
        return self.estimate(width, style)

    def paint(self, context: PaintContext) -> None:
        """One pixel high."""
        context.painter.fillRect(QRect(0, context.style.px(4), self._width, 1), context.style.color("border"))

    def plain(self) -> str:
        """As in Markdown."""
        return "---"

    def markdown(self, start: int = 0, end: int = WHOLE_TEXT[1]) -> str:
        """A line that is a rule wherever it stands."""
        del start, end
        return RULE_TEXT

    def html(self, start: int = 0, end: int = WHOLE_TEXT[1]) -> str:
        """An element of its own."""
        del start, end
        return "<hr>"
